//! Decides whether a plan is worth fetching: once, before the program starts.
//!
//! The record carries a sample of its plan. Each place of the sample is looked for in memory, without waiting for any device. The
//! expected gain is the time that the recorded run waited, times the share of the sample that is missing; what it waited for in files
//! that it had written itself, the next run will wait for again.
//!
//! Data flow: the record's sample and its foot → [`Look`] → [`Look::pays`].

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use foreread_plan::format::Sample;
use foreread_plan::{FileId, FileMeta, PAGE, Summary};
use foreread_sys::file::FileFacts;
use foreread_sys::{file, way};

use crate::Files;
use crate::worker::{Difference, difference};

/// Below this gain, in ns, the program runs unobserved: observing costs a run 4 ms if everything is in memory.
pub const WORTH: u64 = 5_000_000;
/// Places of a sample that are checked, at most.
const PLACES: usize = 64;

/// The result of checking a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Places checked.
    pub looked: u64,
    /// Places of these that are not in memory, in part or as a whole.
    pub missing: u64,
    /// Files of the sample that differ from the record.
    pub differences: Vec<(FileId, Difference)>,
}

impl Look {
    /// Looks for a sample in memory.
    pub fn at(sample: &Sample, files: &impl Files) -> Self {
        let mut memory = Kernel::default();
        let look = Self::by(sample, files, &mut memory);
        let differences = memory.differences;
        Self {
            differences,
            ..look
        }
    }

    /// Looks for a sample in this memory.
    pub(crate) fn by(sample: &Sample, files: &impl Files, memory: &mut impl Memory) -> Self {
        let mut look = Self::default();
        let pages = sample.parts.iter().flat_map(|part| &part.expected);
        let pages: Vec<_> = pages.filter(|one| !one.pages.is_empty()).collect();
        let names: Vec<_> = sample.parts.iter().flat_map(|part| &part.names).collect();
        let share = PLACES / 2;
        for one in spread(&pages, PLACES - names.len().min(share)) {
            if let Some(meta) = files.file(one.file) {
                look.add(memory.has(one.file, meta, &one.pages));
            }
        }
        for name in spread(&names, PLACES - pages.len().min(share)) {
            if let Some(meta) = files.file(name.file) {
                look.add(memory.knows(meta));
            }
        }
        look
    }

    fn add(&mut self, is_there: bool) {
        self.looked += 1;
        self.missing += u64::from(!is_there);
    }

    /// True if fetching this run's plan pays, on this many processors.
    pub fn pays(&self, recorded: &Summary, processors: u64) -> bool {
        self.gain(recorded, processors)
            .map_or(self.missing > 0, |gain| gain >= WORTH)
    }

    /// Gain of fetching this run's plan, on this many processors, in ns; `None` if the record does not show the waits of a cold run.
    pub fn gain(&self, recorded: &Summary, processors: u64) -> Option<u64> {
        // The times of an imported list were not measured.
        if recorded.imported.is_some() {
            return None;
        }
        // The waits of a cold run are unknown if the recorded run was hot or prefetched.
        let was_cold = recorded
            .device_bytes
            .is_none_or(|bytes| bytes >= WAITED_BYTES);
        if !was_cold || recorded.helped {
            return None;
        }
        // Waits at mapped pages are not observed: the run did not compute meanwhile.
        let idle = recorded
            .cpu_ns
            .map_or(0, |cpu| recorded.wall_ns.saturating_sub(cpu));
        // A thread that waits while others keep all processors busy does not delay the program.
        let computed = recorded.cpu_ns.map_or(0, |cpu| cpu / processors.max(1));
        let spare = recorded.wall_ns.saturating_sub(computed);
        let waited = recorded.read_ns.max(idle).min(spare);
        let again = recorded.rewritten_ns.min(waited);
        let others = u128::from(waited - again);
        let gain = others * u128::from(self.missing) / u128::from(self.looked.max(1));
        Some(again.saturating_add(gain.try_into().unwrap_or(u64::MAX)))
    }
}

/// Bytes from a device below which a run counts as one that found everything in memory.
const WAITED_BYTES: u64 = 1 << 20;

/// Picks this many, evenly spread.
fn spread<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.iter().step_by(step)
}

/// Questions about memory, answered without waiting for any device.
pub(crate) trait Memory {
    /// True if all these pages are in memory, or cannot be fetched.
    fn has(&mut self, file: FileId, meta: &FileMeta, pages: &Range<u64>) -> bool;

    /// True if a name and its inode are in memory.
    fn knows(&mut self, meta: &FileMeta) -> bool;
}

/// The kernel's.
#[derive(Default)]
struct Kernel {
    /// The file of the last place.
    open: Option<Open>,
    differences: Vec<(FileId, Difference)>,
}

impl Memory for Kernel {
    fn has(&mut self, file: FileId, meta: &FileMeta, pages: &Range<u64>) -> bool {
        if self.open.as_ref().is_none_or(|open| open.path != meta.path) {
            let opened = Open::of(&meta.path);
            let differs = opened.difference(meta).map(|how| (file, how));
            self.differences.extend(differs);
            self.open = Some(opened);
        }
        self.open.as_ref().is_some_and(|open| open.has(pages))
    }

    fn knows(&mut self, meta: &FileMeta) -> bool {
        way::in_memory(&meta.path, way::Links::Refused).is_some()
    }
}

/// A file of the sample.
struct Open {
    path: PathBuf,
    /// `None` if it takes a device to find it.
    found: Option<std::io::Result<(OwnedFd, FileFacts)>>,
}

impl Open {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            found: file::open_in_memory(path),
        }
    }

    /// The difference between the file and its entry in the record.
    fn difference(&self, meta: &FileMeta) -> Option<Difference> {
        match self.found.as_ref()? {
            Ok((_, facts)) => difference(meta, facts),
            Err(why) => Some(Difference::Gone(why.to_string())),
        }
    }

    /// True if all these pages are in memory, or cannot be fetched.
    fn has(&self, pages: &Range<u64>) -> bool {
        let Some(found) = &self.found else {
            return false;
        };
        let Ok((fd, facts)) = found else {
            // A file that cannot be opened is missing nothing.
            return true;
        };
        let end = pages.end.min(facts.size.div_ceil(PAGE));
        if pages.start >= end {
            return true;
        }
        crate::system::missing(fd, facts, &(pages.start..end)).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(read_ns: u64, device_bytes: u64) -> Summary {
        Summary {
            read_ns,
            wall_ns: 2 * read_ns,
            device_bytes: Some(device_bytes),
            ..Summary::default()
        }
    }

    #[test]
    fn a_plan_pays_if_its_missing_share_of_the_recorded_wait_is_long_enough() {
        let look = |missing| Look {
            looked: 64,
            missing,
            differences: Vec::new(),
        };
        let waited = recorded(64_000_000, 1 << 30);
        assert!(!look(0).pays(&waited, 2) && !look(4).pays(&waited, 2));
        assert!(look(5).pays(&waited, 2) && look(64).pays(&waited, 2));
        assert!(!look(64).pays(&recorded(4_000_000, 1 << 30), 2));
    }

    #[test]
    fn files_that_the_program_writes_itself_are_missing_again_in_each_run() {
        let look = |missing| Look {
            looked: 64,
            missing,
            differences: Vec::new(),
        };
        let rewriting = Summary {
            rewritten_ns: 48_000_000,
            ..recorded(64_000_000, 1 << 30)
        };
        assert_eq!(look(0).gain(&rewriting, 2), Some(48_000_000));
        assert_eq!(look(32).gain(&rewriting, 2), Some(56_000_000));
        assert_eq!(look(64).gain(&rewriting, 2), Some(64_000_000));
    }

    #[test]
    fn a_run_that_found_all_in_memory_does_not_tell_what_a_cold_one_waits_for() {
        let look = |missing| Look {
            looked: 64,
            missing,
            differences: Vec::new(),
        };
        let hot = recorded(1_000_000, 4096);
        assert!(look(1).pays(&hot, 2) && !look(0).pays(&hot, 2));
    }

    #[test]
    fn waits_while_all_processors_compute_are_no_gain() {
        let look = Look {
            looked: 64,
            missing: 64,
            differences: Vec::new(),
        };
        // Four threads wait 40 ms each, and keep one processor busy for 97 of 100 ms meanwhile.
        let busy = Summary {
            read_ns: 160_000_000,
            wall_ns: 100_000_000,
            cpu_ns: Some(97_000_000),
            device_bytes: Some(1 << 30),
            ..Summary::default()
        };
        assert!(!look.pays(&busy, 1) && look.pays(&busy, 2));
    }

    #[test]
    fn places_are_spread_over_the_sample() {
        let all: Vec<_> = (0..100).collect();
        assert_eq!(spread(&all, 64).count(), 50);
        assert_eq!(
            spread(&all, 10).copied().collect::<Vec<_>>(),
            [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
        );
        assert_eq!(spread(&all, 200).count(), 100);
    }
}
