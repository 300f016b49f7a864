//! A sample of a record's plan, by which a later run decides whether the plan is in memory.
//!
//! Data flow: the written record → [`of`] → the record's sample. `foreread_core::cold` checks it.

use std::cmp::Reverse;
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
    let count = accesses.div_ceil(PART).clamp(1, PARTS);
    let parts = (0..count).map(|part| {
        // The beginning, which the program reads first, and the middle of each other part.
        if part > 0 {
            recording.skip_to((part as f64 + 0.5) / count as f64);
        }
        let (expected, names) = gather(&mut recording);
        PartSample {
            expected: pick(expected, PLACES / count as usize, |(_, took)| *took)
                .into_iter()
                .map(|(one, _)| one)
                .collect(),
            names: pick(names, NAMES / count as usize, |_| 0),
        }
    });
    Sample {
        parts: parts.collect(),
    }
}

/// All places, with the ns that their reads took, and names; consecutive repetitions joined. Pages of a mapping that were touched together
/// are one place: a program's own libraries have thousands of such pages, which would hide the rest.
fn gather(recording: &mut Recording) -> (Vec<(Expected, u64)>, Vec<Name>) {
    let (mut places, mut names) = (Vec::<(Expected, u64)>::new(), Vec::<Name>::new());
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
        let last = places.last_mut().map(|(last, _)| last);
        if let Some(last) = last.filter(|last| last.file == file) {
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
        let place = Expected {
            odds: Odds::SURE,
            file,
            pages,
            thread: access.thread,
            pattern,
        };
        places.push((place, access.took));
    }
    (places, names)
}

/// Picks this many, in order. Half of them are those that took longest: many reads from memory would hide a few from a device. The others
/// are picked at random distances: at equal distances a sample could miss a periodic part of the plan.
fn pick<T>(all: Vec<T>, most: usize, took: impl Fn(&T) -> u64) -> Vec<T> {
    let mut longest: Vec<(u64, usize)> = all.iter().map(took).zip(0..).collect();
    longest.retain(|&(took, _)| took > 0);
    longest.sort_unstable_by_key(|&(took, at)| (Reverse(took), at));
    longest.truncate(most.min(all.len()) / 2);
    let mut is_picked = vec![false; all.len()];
    longest.iter().for_each(|&(_, at)| is_picked[at] = true);
    let mut random = fastrand::Rng::with_seed(1);
    let mut among = all.len() - longest.len();
    let mut left = most.min(all.len()) - longest.len();
    for is_picked in is_picked.iter_mut().filter(|is_picked| !**is_picked) {
        *is_picked = random.usize(..among) < left;
        left -= usize::from(*is_picked);
        among -= 1;
    }
    let mut picked = is_picked.into_iter();
    all.into_iter()
        .filter(|_| picked.next() == Some(true))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_taken_in_no_rhythm_and_in_order() {
        // Every fourth is the same.
        let all: Vec<u64> = (0..512).map(|n| if n % 4 == 0 { 0 } else { n }).collect();
        let picked = pick(all.clone(), 48, |_| 0);
        assert_eq!(picked.len(), 48);
        let same = picked.iter().filter(|one| **one == 0).count();
        assert!((1..30).contains(&same), "{same} of 48");
        let others: Vec<_> = picked.iter().filter(|one| **one > 0).collect();
        assert!(others.is_sorted());
        assert_eq!(pick(all[..10].to_vec(), 48, |&one| one), all[..10]);
    }

    #[test]
    fn what_took_longest_is_in_a_sample() {
        let all: Vec<u64> = (0..512).collect();
        let picked = pick(all, 48, |&one| if one % 50 == 7 { one } else { 1 });
        assert_eq!(picked.len(), 48);
        assert_eq!(picked.iter().filter(|&&one| one % 50 == 7).count(), 11);
        assert!(picked.is_sorted());
    }
}
