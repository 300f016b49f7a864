//! What became of the pages of a read, by strand.

use std::ops::Range;

use foreread_backend::Backend;
use foreread_plan::{Access, FileId, Kind, PAGE};

use super::Engine;
use crate::site::Site;
use foreread_sched::Devices;

/// Pages looked at on both sides of one that seems to have been evicted: eviction takes many at a time.
const AROUND: u64 = 512;
/// Of the reads that do not tell whether they waited, one in this many is looked up.
const LOOK_UP: u32 = 8;
/// And all of the next so many after one whose pages were gone.
const ALERT: u32 = 64;

/// What a read was to the account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entered {
    /// Whether any of it was fetched for it.
    pub(super) ours: bool,
    /// Bytes that the program waited for and nobody had issued.
    pub(super) missed: u64,
}

impl<B: Backend> Engine<B> {
    /// Enter a read into the strands' ledgers, but for what was missed. Whether their plans knew of it is still to be seen.
    #[inline]
    pub(super) fn account(&mut self, access: &Access) -> Entered {
        let (file, pages) = (access.file, access.extent.pages());
        let scheduler = &mut self.scheduler;
        let (mut there, mut under_way) = (0, 0);
        for strand in &mut self.strands {
            strand.knew = false;
            strand.read = strand.pages.read(file, &pages, access.start, |run| {
                scheduler.pass(file, run);
            });
            there += strand.read.there;
            under_way += strand.read.under_way;
        }
        let count = pages.end - pages.start;
        let ours = there + under_way;
        let mut missed = 0;
        if access.kind == Kind::Touch {
            // A sample, or a position the program tells, says what was read, not whether that waited.
            let mut gone = self.look_up(file, &pages, there);
            self.enter(ours, |there, under_way, ledger| {
                let lost = gone.min(there);
                gone -= lost;
                ledger.useful += (there - lost) * PAGE;
                ledger.evicted += lost * PAGE;
                ledger.late += under_way * PAGE;
            });
        } else if !access.waited() {
            self.enter(ours, |there, under_way, ledger| {
                ledger.useful += (there + under_way) * PAGE;
            });
            self.scheduler.budget().kept(ours);
        } else if there == count && self.under_pressure(file, &pages) {
            // All of it had arrived, and yet the program waited: it was gone again.
            self.enter(ours, |there, _, ledger| ledger.evicted += there * PAGE);
            self.scheduler.budget().lost(there);
        } else {
            self.enter(ours, |there, under_way, ledger| {
                ledger.late += under_way * PAGE;
                ledger.useful += there * PAGE;
            });
            missed = (count - ours.min(count)) * PAGE;
        }
        Entered {
            ours: ours > 0,
            missed,
        }
    }

    /// Enter what of a read was there and under way into the ledger of each strand that it was issued for.
    #[inline]
    fn enter(&mut self, ours: u64, mut enter: impl FnMut(u64, u64, &mut crate::Ledger)) {
        if ours == 0 {
            return;
        }
        for strand in &mut self.strands {
            enter(strand.read.there, strand.read.under_way, &mut strand.ledger);
        }
    }

    /// Enter what the program missed: with whoever knew of the read, or else with the first strand.
    pub(super) fn miss(&mut self, access: &Access, missed: u64) {
        let knew = self.strands.iter().position(|strand| strand.knew);
        if let Some(strand) = self.strands.get_mut(knew.unwrap_or(0)) {
            strand.ledger.missed += missed;
            if self.hot_since.is_some_and(|since| access.start >= since) {
                self.missed_hot += missed;
            }
        }
    }

    /// Whether a file is among those that can be fetched of, or could be if it were as it was.
    pub(super) fn is_within_reach(&mut self, file: FileId) -> bool {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        site.device(file).is_some() || self.table.is_gone(file)
    }

    /// Of so many pages that were there, those that are gone again, where that is looked up.
    fn look_up(&mut self, file: FileId, pages: &Range<u64>, there: u64) -> u64 {
        if there == 0 {
            return 0;
        }
        if self.alert == 0 && self.passed_up + 1 < LOOK_UP {
            self.passed_up += 1;
            return 0;
        }
        self.passed_up = 0;
        let backend = &mut self.backend;
        let gone = backend.evicted(file, pages.clone()).or_else(|| {
            let resident = backend.resident(file, pages.clone())?;
            Some((pages.end - pages.start).saturating_sub(resident))
        });
        let gone = gone.unwrap_or(0).min(there);
        self.alert = if gone > 0 {
            ALERT
        } else {
            self.alert.saturating_sub(1)
        };
        self.scheduler.budget().lost(gone);
        self.scheduler.budget().kept(there - gone);
        gone
    }

    /// Whether pages around these had to make room lately: without that, a read that took long was
    /// held up by something else than the device.
    fn under_pressure(&mut self, file: FileId, pages: &Range<u64>) -> bool {
        let around = pages.start.saturating_sub(AROUND)..pages.end + AROUND;
        self.backend
            .evicted(file, around)
            .is_none_or(|evicted| evicted > 0)
    }
}
