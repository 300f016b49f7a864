//! Properties of a device, and the places of files on it.

use foreread_plan::PAGE;

use crate::Horizon;

/// A device's number within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u64);

/// The order in which a device is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the program will read: right where distance costs nothing.
    Program,
    /// By position on the device, in one direction: right where distance costs a seek.
    Position,
}

/// The pacing and ordering constants of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// In which order to ask.
    pub order: Order,
    /// Requests kept in flight: the least depth at which the device gives its full throughput.
    pub depth: usize,
    /// The pacing rule's thresholds.
    pub horizon: Horizon,
    /// The largest gap, in pages, that is cheaper to read than to skip (libprefetch's infill).
    pub infill_pages: u64,
    /// The largest request, in pages.
    pub request_pages: u64,
    /// T until it has been measured, in ns.
    pub service_ns: u64,
}

impl Profile {
    /// A disk with a moving head. With one request at a time, skipping a gap would cost half a turn, in which 105 MB/s read 400 KiB. With
    /// 32 requests in the drive's own queue it reads wanted pages as they pass, and only small gaps are better read (`calibrate` finds 16
    /// to 32 pages on such a disk).
    pub fn rotational() -> Self {
        Self {
            order: Order::Position,
            depth: 32,
            horizon: Horizon {
                time_threshold: i64::MIN,
                queue_threshold: u64::MAX,
            },
            infill_pages: 128 * 1024 / PAGE,
            request_pages: 1024 * 1024 / PAGE,
            service_ns: 8_000_000,
        }
    }

    /// A solid-state disk, local or across a network: distance costs nothing, depth pays.
    pub fn solid_state() -> Self {
        Self {
            order: Order::Program,
            depth: 128,
            horizon: Horizon {
                // One second late: the device works in parallel where the program would not, so only a swamped device is better left alone.
                time_threshold: -1_000_000_000,
                queue_threshold: 4096,
            },
            infill_pages: 0,
            request_pages: 1024 * 1024 / PAGE,
            service_ns: 80_000,
        }
    }
}

/// A run of a file that lies together on the device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Offset in the file.
    pub logical: u64,
    /// Offset on the device.
    pub physical: u64,
    /// Length.
    pub len: u64,
}

/// The place of a file on its device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    runs: Vec<Stretch>,
}

impl Layout {
    /// A layout of `runs`, in any order. With none, position is the offset in the file.
    pub fn new(mut runs: Vec<Stretch>) -> Self {
        runs.sort_by_key(|run| run.logical);
        Self { runs }
    }

    /// The position of a page on the device, in bytes. A page in no run (a hole, or past the
    /// last run) is placed by its offset, which costs order and nothing else.
    pub fn position(&self, page: u64) -> u64 {
        let offset = page.saturating_mul(PAGE);
        let after = self.runs.partition_point(|run| run.logical <= offset);
        match after.checked_sub(1).map(|at| self.runs[at]) {
            Some(run) if offset - run.logical < run.len => run.physical + (offset - run.logical),
            _ => offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_placed_by_the_run_that_holds_it() {
        let layout = Layout::new(vec![
            Stretch {
                logical: 8192,
                physical: 0,
                len: 4096,
            },
            Stretch {
                logical: 0,
                physical: 1 << 20,
                len: 8192,
            },
        ]);
        assert_eq!(layout.position(0), 1 << 20);
        assert_eq!(layout.position(1), (1 << 20) + 4096);
        assert_eq!(layout.position(2), 0);
        assert_eq!(layout.position(3), 3 * PAGE, "past the last run: by offset");
    }

    #[test]
    fn a_file_without_runs_is_placed_by_its_offsets() {
        assert_eq!(Layout::default().position(7), 7 * PAGE);
    }
}
