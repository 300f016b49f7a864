//! What became of the pages of a read, by strand.

use std::ops::Range;

use foreread_backend::Backend;
use foreread_plan::{Access, FileId, Kind, PAGE};

use super::Engine;
use super::ask::{Doubt, Purpose};
use crate::Ledger;
use crate::site::Site;
use foreread_sched::Devices;

/// Pages checked on both sides of one that seems to have been evicted (2 MiB): the kernel evicts many at a time.
const AROUND: u64 = 512;
/// Of the reads for which it is unknown whether they waited, one in this many is checked.
const LOOK_UP: u32 = 8;
/// After a read whose pages were gone, all of this many next reads are checked.
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
    /// The account so far.
    pub fn ledger(&self) -> Ledger {
        self.strands.iter().map(|strand| strand.ledger).sum()
    }

    /// The account of each strand so far, in the order in which they were added.
    pub fn ledgers(&self) -> impl Iterator<Item = Ledger> + '_ {
        self.strands.iter().map(|strand| strand.ledger)
    }

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
            if there > 0 && self.is_to_be_looked_up() {
                self.doubt(file, pages, false);
            } else {
                self.enter_unlooked(ours);
            }
        } else if !access.waited() {
            self.enter(ours, |there, under_way, ledger| {
                ledger.useful += (there + under_way) * PAGE;
            });
            self.scheduler.budget().kept(ours);
        } else if there == count && self.may_doubt() {
            // All of it had arrived, and yet the program waited: it may have been gone again.
            let around = pages.start.saturating_sub(AROUND)..pages.end + AROUND;
            self.doubt(file, around, true);
        } else {
            self.enter_unlooked(ours);
            missed = (count - ours.min(count)) * PAGE;
        }
        Entered {
            ours: ours > 0,
            missed,
        }
    }

    /// Enters the pages of a read that were in memory or under way, into the ledger of each strand that they were issued for.
    #[inline]
    fn enter(&mut self, ours: u64, mut enter: impl FnMut(u64, u64, &mut Ledger)) {
        if ours == 0 {
            return;
        }
        for strand in &mut self.strands {
            enter(strand.read.there, strand.read.under_way, &mut strand.ledger);
        }
    }

    /// Enters missed bytes: for the strands that knew of the read, or else for the first strand.
    pub(super) fn miss(&mut self, access: &Access, missed: u64) {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        self.scheduler.missed(access.file, access.took, &mut site);
        let knew = self.strands.iter().position(|strand| strand.knew);
        if let Some(strand) = self.strands.get_mut(knew.unwrap_or(0)) {
            strand.ledger.missed += missed;
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

    /// Enter the latest read as one whose pages had stayed in memory.
    #[inline]
    fn enter_unlooked(&mut self, ours: u64) {
        self.enter(ours, |there, under_way, ledger| {
            ledger.useful += there * PAGE;
            ledger.late += under_way * PAGE;
        });
    }

    /// Enter the latest read when it is known whether its pages were gone again.
    fn doubt(&mut self, file: FileId, pages: Range<u64>, waited: bool) {
        let reads = self.strands.iter().map(|strand| strand.read).collect();
        let doubt = Doubt { reads, waited };
        self.ask(file, vec![pages], Purpose::Read(doubt));
    }

    /// Whether a read of pages that were there is one of those that are looked up.
    fn is_to_be_looked_up(&mut self) -> bool {
        if self.alert == 0 && self.passed_up + 1 < LOOK_UP || !self.may_doubt() {
            self.passed_up += 1;
            return false;
        }
        self.passed_up = 0;
        true
    }

    /// A read was looked up; so many of its pages were gone.
    pub(super) fn looked_up(&mut self, gone: u64) {
        self.alert = if gone > 0 {
            ALERT
        } else {
            self.alert.saturating_sub(1)
        };
    }
}
