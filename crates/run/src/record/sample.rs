//! A sample of a record's plan, by which a later run decides whether the plan is in memory.
//!
//! Data flow: the written record → [`of`] → the record's sample. `foreread_core::cold` checks it.

use std::sync::Arc;

use foreread_core::Trace as _;
use foreread_plan::format::{PartSample, Reader, Sample};
use foreread_plan::{Expected, Kind, Name, Odds, Pattern};

use crate::files::{Recorded, Trouble};
use crate::recording::Recording;

/// Number of sampled places. If one place in twenty is missing, the sample contains a missing one in eleven of twelve cases.
const PLACES: usize = 48;
/// Names that are sampled: the names of one block.
const NAMES: usize = 16;
/// Parts of a plan that a sample is drawn from, at most: the program may have ended before it reached the missing ones.
const PARTS: u64 = 8;
/// Accesses of a part, at least: the start of each part costs reading one block of the record.
const PART: u64 = 512;
/// Places and names of a part that some are picked from: less work than reaching another part of the record.
const AMONG: usize = 512;
/// Accesses that are gone through for each of them, at most: a program's own objects were seen to have some ten pages in a run.
const EACH: usize = 16;

/// The sample of a record that was just written.
pub(super) fn of(reader: Reader) -> Sample {
    let accesses = reader.summary().map_or(0, |summary| summary.accesses);
    let trouble = Trouble::default();
    let files = Arc::new(Recorded::made(reader));
    let mut recording = Recording::new(&files, &trouble, None);
    let count = (accesses / PART).clamp(1, PARTS);
    let parts = (0..count).map(|part| {
        // The beginning, which the program reads first, and the middle of each other part.
        if part > 0 {
            recording.skip_to((part as f64 + 0.5) / count as f64);
        }
        let (expected, names) = gather(&mut recording);
        PartSample {
            expected: pick(expected, PLACES / count as usize),
            names: pick(names, NAMES / count as usize),
        }
    });
    Sample {
        parts: parts.collect(),
    }
}

/// The next places and names, until there are [`AMONG`] of either, with consecutive repetitions joined. Pages of a mapping that were
/// touched together are one place: a program's own libraries have thousands of such pages, which would hide the rest.
fn gather(recording: &mut Recording) -> (Vec<Expected>, Vec<Name>) {
    let (mut places, mut names) = (Vec::<Expected>::new(), Vec::<Name>::new());
    for _ in 0..AMONG * EACH {
        if places.len() >= AMONG || names.len() >= AMONG {
            break;
        }
        let Some(access) = recording.next() else {
            break;
        };
        let (file, kind, pages) = (access.file, access.kind, access.extent.pages());
        if kind.names() {
            let name = Name {
                file,
                kind,
                before: 0,
            };
            if names.last() != Some(&name) {
                names.push(name);
            }
            continue;
        }
        if !kind.reads() || pages.is_empty() {
            continue;
        }
        let is_touched = kind == Kind::Touch;
        if let Some(last) = places.last_mut().filter(|last| last.file == file) {
            if last.pages.start <= pages.start && pages.end <= last.pages.end {
                continue;
            }
            if is_touched && last.pattern == Pattern::Loose && last.pages.end == pages.start {
                last.pages.end = pages.end;
                continue;
            }
        }
        let pattern = match is_touched {
            true => Pattern::Loose,
            false => Pattern::Scattered,
        };
        places.push(Expected {
            odds: Odds::SURE,
            file,
            pages,
            thread: access.thread,
            pattern,
        });
    }
    (places, names)
}

/// Picks this many, in order, at random distances: at equal distances a sample could miss a periodic part of the plan.
fn pick<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let mut random = fastrand::Rng::with_seed(1);
    let among = all.len() as u64;
    let mut left = among.min(most as u64);
    let picked = all.into_iter().enumerate().filter(|(n, _)| {
        let is_picked = random.u64(..among - *n as u64) < left;
        left -= u64::from(is_picked);
        is_picked
    });
    picked.map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_taken_in_no_rhythm_and_in_order() {
        // Every fourth is the same.
        let all: Vec<u64> = (0..512).map(|n| if n % 4 == 0 { 0 } else { n }).collect();
        let picked = pick(all.clone(), 48);
        assert_eq!(picked.len(), 48);
        let same = picked.iter().filter(|one| **one == 0).count();
        assert!((1..30).contains(&same), "{same} of 48");
        let others: Vec<_> = picked.iter().filter(|one| **one > 0).collect();
        assert!(others.is_sorted());
        assert_eq!(pick(all[..10].to_vec(), 48), all[..10]);
    }
}
