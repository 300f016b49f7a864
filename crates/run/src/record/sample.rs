//! A sample of a record's plan, by which a later run decides whether the plan is in memory.
//!
//! A long read counts as the many requests that it takes, so a few of them are not lost among a program's small reads.
//!
//! Data flow: the written record → [`of`] → the record's sample. `foreread_core::cold` checks it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use foreread_core::{JOINED, Trace as _};
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
            expected: pieces(&expected, PLACES / count as usize),
            names: pick(names.len() as u64, NAMES / count as usize)
                .map(|number| names[number as usize])
                .collect(),
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

/// The requests that a place is fetched by. What a program touched together of a mapping is one.
fn requests(place: &Expected) -> u64 {
    match place.pattern {
        Pattern::Loose => 1,
        _ => (place.pages.end - place.pages.start).div_ceil(JOINED),
    }
}

/// Picks this many requests of the places, in order.
fn pieces(places: &[Expected], most: usize) -> Vec<Expected> {
    let mut picked = pick(places.iter().map(requests).sum(), most).peekable();
    let mut before = 0;
    let mut pieces = Vec::new();
    for place in places {
        let end = before + requests(place);
        while let Some(number) = picked.next_if(|number| *number < end) {
            pieces.push(Expected {
                pages: piece(place, number - before),
                ..place.clone()
            });
        }
        before = end;
    }
    pieces
}

/// The pages of a place's request with this number.
fn piece(place: &Expected, number: u64) -> Range<u64> {
    if place.pattern == Pattern::Loose {
        return place.pages.clone();
    }
    let start = place.pages.start + number * JOINED;
    start..place.pages.end.min(start + JOINED)
}

/// Picks this many of the numbers below `among`, in order, at random distances: at equal distances a sample could miss a periodic part
/// of the plan.
fn pick(among: u64, most: usize) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut picked = BTreeSet::new();
    while (picked.len() as u64) < among.min(most as u64) {
        picked.insert(random.u64(..among));
    }
    picked.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{FileId, ThreadId};

    #[test]
    fn a_sample_is_taken_in_no_rhythm_and_in_order() {
        let picked: Vec<_> = pick(512, 48).collect();
        assert_eq!(picked.len(), 48);
        let fourth = picked.iter().filter(|number| **number % 4 == 0).count();
        assert!((1..30).contains(&fourth), "{fourth} of 48");
        assert!(picked.is_sorted());
        assert!(pick(10, 48).eq(0..10));
    }

    #[test]
    fn a_long_read_counts_as_the_requests_that_it_takes() {
        let place = |file, pages, pattern| Expected {
            odds: Odds::SURE,
            file: FileId(file),
            pages,
            thread: ThreadId(1),
            pattern,
        };
        let mut places: Vec<_> = (0..400)
            .map(|page| place(1, page..page + 1, Pattern::Scattered))
            .collect();
        places.push(place(2, 100..100 + 8192, Pattern::Scattered));
        places.push(place(3, 0..8192, Pattern::Loose));
        let picked = pieces(&places, 48);
        assert_eq!(picked.len(), 48);
        let of = |file| picked.iter().filter(move |one| one.file == FileId(file));
        assert!((10..30).contains(&of(2).count()), "{}", of(2).count());
        assert!(of(2).all(|one| (one.pages.start - 100) % JOINED == 0));
        assert!(of(2).all(|one| one.pages.end - one.pages.start == JOINED));
        // All requests, if there is room: the last piece is as long as what is left.
        let few = [place(2, 0..100, Pattern::Scattered), places[401].clone()];
        let pages: Vec<_> = pieces(&few, 48).into_iter().map(|one| one.pages).collect();
        assert_eq!(pages, [0..32, 32..64, 64..96, 96..100, 0..8192]);
    }
}
