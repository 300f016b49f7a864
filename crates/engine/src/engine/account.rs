//! Accounts for the pages of a read, by strand.

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
/// One in this many of the reads with unknown waiting is checked.
const LOOK_UP: u32 = 8;
/// After a read of evicted pages, this many of the next reads are all checked.
const ALERT: u32 = 64;

/// The result of entering a read in the account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entered {
    /// True if any of its pages had been requested ahead.
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

    /// Enters a read into the strands' ledgers, except for its missed bytes. Whether the plans had the read is decided later.
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
            // A sample, or a position given by the program, shows the read but not its waiting.
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
            // All of it had arrived, and yet the program waited: the pages may have been evicted.
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

    /// True if the file can be fetched, or could be if it were unchanged.
    pub(super) fn is_within_reach(&mut self, file: FileId) -> bool {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        site.device(file).is_some() || self.table.is_gone(file)
    }

    /// Enters the latest read: its pages had stayed in memory.
    #[inline]
    fn enter_unlooked(&mut self, ours: u64) {
        self.enter(ours, |there, under_way, ledger| {
            ledger.useful += there * PAGE;
            ledger.late += under_way * PAGE;
        });
    }

    /// Enters the latest read once it is known whether its pages had been evicted.
    fn doubt(&mut self, file: FileId, pages: Range<u64>, waited: bool) {
        let reads = self.strands.iter().map(|strand| strand.read).collect();
        let doubt = Doubt { reads, waited };
        self.ask(file, vec![pages], Purpose::Read(doubt));
    }

    /// True if this read of resident pages is one that is checked.
    fn is_to_be_looked_up(&mut self) -> bool {
        if self.alert == 0 && self.passed_up + 1 < LOOK_UP || !self.may_doubt() {
            self.passed_up += 1;
            return false;
        }
        self.passed_up = 0;
        true
    }

    /// A read was checked; this many of its pages had been evicted.
    pub(super) fn looked_up(&mut self, gone: u64) {
        self.alert = if gone > 0 {
            ALERT
        } else {
            self.alert.saturating_sub(1)
        };
    }
}
