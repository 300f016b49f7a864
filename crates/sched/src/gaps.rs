//! The one rule for gaps: whether the gap between two wanted pages is read, by price.
//!
//! Reading a gap costs the transfer of its pages, and memory. Skipping it costs one more operation of the device, and processor time for
//! one more hint. So a gap is read if it has at most as many pages as are transferred in the time of an operation. If most of a file is
//! wanted, every gap is that short, and the whole file is read.
//!
//! All decisions about gaps are made here: for the sweep, which forms requests ([`Terms::largest`]); for passes over a disk
//! ([`is_on_the_way`]); for the admission of entries, which leaves room for the gaps between them ([`Terms::spare`]). Whether the kernel's
//! own read-ahead continues over a gap does not matter here: a pattern with gaps is fetched page by page or with its gaps, by their price,
//! on any device.
//!
//! Data flow: the device's profile, the measured cost of operations, and the state of memory → [`Terms`] → the largest gap → the sweep,
//! which forms requests.

use crate::Order;

/// The transfer time of a page where none was measured, in ns: 100 MB/s, the bandwidth of a rotating disk and of the usual
/// network volume.
pub(crate) const PAGE_NS: u64 = 41_000;
/// The least worth of a measured operation, in pages, that counts. On busy processors, completions of a local disk (80 µs each) were seen
/// as late as those of a device whose operations are worth 2 to 3 pages.
const LEAST: u64 = 4;
/// The gap, in pages, that is always read along while memory is plentiful: transferring it costs no more than the processor
/// time of one more hint. A hint took 12 to 20 µs from the scheduler to the answer, a page of a slow local disk 8 µs, of
/// quick ones 2 to 3 µs.
const BRIDGED: u64 = 2;
/// Pages read along for each page asked for, at most, on the word of a measurement. Infill takes memory and other programs'
/// bandwidth, and the measurement may be of a busy machine. Without this bound one run in eleven at a load of 10 fetched
/// 200 MiB for 12 MB of reads.
const ALONG: u64 = 4;
/// A pass over a rotating disk includes entries of later passes if they are at most this many largest gaps away. Skipping a gap costs half
/// a turn, 4 ms, in which the disk reads 100 pages; the largest gap is 32. Half of a file of 32 MiB took 0.37 s with this, and 0.47 s
/// without.
const ON_THE_WAY: u64 = 3;

/// The facts that determine the price of a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) order: Order,
    /// The gap that costs as much as an operation, in pages, by the device's profile.
    pub(crate) known_pages: u64,
    /// Measured cost of an operation, in ns; `None` if unknown.
    pub(crate) operation_ns: Option<u64>,
    /// True if gaps twice as large were measured to cost nothing.
    pub(crate) wide: bool,
    /// Pages asked for so far, and pages read along.
    pub(crate) asked: u64,
    pub(crate) along: u64,
    /// True if memory is plentiful.
    pub(crate) plentiful: bool,
    /// Pages for which there is room.
    pub(crate) room: u64,
}

impl Terms {
    /// The largest gap that is read along, in pages.
    pub(crate) fn largest(self) -> u64 {
        self.worth().min(self.room)
    }

    /// Pages of a memory target to be left free for gaps, if gaps are read even when memory is not plentiful: as many as for wanted pages,
    /// or half of that if gaps are evicted soon after their arrival.
    pub(crate) fn spare(self, target: u64, are_given_back: bool) -> u64 {
        let scarce = Self {
            plentiful: false,
            ..self
        };
        match (scarce.worth(), are_given_back) {
            (0, _) => 0,
            (_, true) => target / 4,
            (_, false) => target / 2,
        }
    }

    /// The largest gap that costs less than an operation.
    fn worth(self) -> u64 {
        // In order of position the cost of an operation depends on the distance, so completions do not show it.
        if self.order == Order::Position {
            return self.known_pages;
        }
        let bridged = if self.plentiful { BRIDGED } else { 0 };
        let measured = self.measured();
        let measured = if self.along > ALONG * self.asked {
            0
        } else if self.plentiful && self.wide {
            2 * measured
        } else {
            measured
        };
        self.known_pages.max(bridged).max(measured)
    }

    fn measured(self) -> u64 {
        worth(self.operation_ns)
    }
}

/// Number of pages transferred in the time of an operation; 0 if it is too small to be distinguished from the delays of a busy machine.
pub(crate) fn worth(operation_ns: Option<u64>) -> u64 {
    let pages = operation_ns.unwrap_or(0) / PAGE_NS;
    if pages < LEAST { 0 } else { pages }
}

/// True if a pass over a device reads a gap of `gap` pages, `wanted` of which later passes want. Those are transferred once in any case, so
/// only the others must be worth an operation. The whole gap must not delay the pass longer than skipping it would.
pub(crate) fn is_on_the_way(gap: u64, wanted: u64, largest: u64) -> bool {
    wanted > 0 && gap <= ON_THE_WAY * largest && gap.saturating_sub(wanted) <= largest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        order: Order::Program,
        known_pages: 0,
        operation_ns: None,
        wide: false,
        asked: 100,
        along: 0,
        plentiful: false,
        room: 1000,
    };

    #[test]
    fn a_gap_is_worth_as_many_pages_as_an_operation_transfers() {
        let of = |operation_ns| {
            Terms {
                operation_ns,
                ..TERMS
            }
            .largest()
        };
        assert_eq!(of(None), 0);
        assert_eq!(of(Some(LEAST * PAGE_NS - 1)), 0, "a local disk");
        assert_eq!(of(Some(LEAST * PAGE_NS)), LEAST);
        assert_eq!(of(Some(333_333)), 8, "3000 operations a second");
    }

    #[test]
    fn memory_is_part_of_the_price() {
        let volume = Terms {
            operation_ns: Some(333_333),
            wide: true,
            ..TERMS
        };
        assert_eq!(volume.largest(), 8);
        let plentiful = Terms {
            plentiful: true,
            ..volume
        };
        assert_eq!(plentiful.largest(), 16);
        let spent = Terms {
            along: ALONG * 100 + 1,
            ..plentiful
        };
        assert_eq!(spent.largest(), BRIDGED);
    }

    #[test]
    fn no_gap_is_larger_than_there_is_room_for_and_some_room_is_left_for_gaps() {
        let disk = Terms {
            order: Order::Position,
            known_pages: 32,
            ..TERMS
        };
        assert_eq!(disk.largest(), 32);
        assert_eq!(Terms { room: 7, ..disk }.largest(), 7);
        let full = Terms { room: 0, ..disk };
        assert_eq!((full.largest(), full.spare(1024, false)), (0, 512));
        assert_eq!(full.spare(1024, true), 256, "they are given back");
        // Gaps that are read only while memory is plentiful need no reserved room.
        let local = Terms {
            plentiful: true,
            ..TERMS
        };
        assert_eq!((local.largest(), local.spare(1024, false)), (BRIDGED, 0));
    }

    #[test]
    fn what_later_passes_want_costs_this_one_nothing_more() {
        assert!(!is_on_the_way(32, 0, 32), "the sweep itself reads it along");
        assert!(is_on_the_way(64, 32, 32));
        assert!(!is_on_the_way(64, 31, 32));
        assert!(
            !is_on_the_way(3 * 32 + 1, 97, 32),
            "the pass would be held up"
        );
        assert!(!is_on_the_way(1, 1, 0));
    }
}
