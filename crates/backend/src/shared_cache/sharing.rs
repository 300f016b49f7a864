//! Decides which parts of a page are read together: the ranks of a parallel program read neighbouring pieces of a file at about the same
//! time, and each piece by itself would be a request to the file system.
//!
//! Reading a page from a file is one request, for any number of its parts. The parts that will be wanted are derived from the latest pages
//! of the file: each rank's segment shows the parts of a page that were foretold to the rank. If other ranks wanted those pages as well,
//! the next pages are read in one piece that covers the wanted parts of those.
//!
//! Data flow: the pages that fillers begin, and the segments → [`Sharing::beside`] → the parts claimed with a page.

use std::collections::{HashMap, VecDeque};

use foreread_plan::FileId;
use foreread_segment::{Key, Segment};

/// Number of a file's pages that are remembered: other ranks reach a page later than this one by the number of foretold pages. A lead of
/// half of the correctly foretold pages has this length after 128 pages.
const LATEST: usize = 64;
/// Number of pages begun between two examinations of the segments: 64 pages of 15 other ranks take about 10 µs.
const LOOK: usize = 8;
/// Number of files that are remembered, 0.6 KiB each: as many as the segment names.
const FILES: usize = foreread_segment::layout::FILES;

/// The latest pages of files.
#[derive(Debug, Default)]
pub(super) struct Sharing(HashMap<FileId, Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// The latest page last; each with the parts with which this rank began it.
    latest: VecDeque<(Key, u16)>,
    /// Number of pages begun since the last examination.
    begun: usize,
    /// The parts of a page that are read in one piece; 0 if only wanted parts are read.
    piece: u16,
}

impl Sharing {
    /// The parts of a page to be read with those `wanted`, derived from all ranks' segments about earlier pages.
    pub(super) fn beside<'a>(
        &mut self,
        file: FileId,
        (key, wanted): (Key, u16),
        segments: impl Iterator<Item = &'a Segment> + Clone,
    ) -> u16 {
        if self.0.len() >= FILES && !self.0.contains_key(&file) {
            self.0.clear();
        }
        let pages = self.0.entry(file).or_default();
        if pages.latest.back().is_none_or(|(last, _)| *last != key) {
            if pages.latest.len() == LATEST {
                pages.latest.pop_front();
            }
            pages.latest.push_back((key, wanted));
            pages.begun += 1;
        }
        if pages.begun >= LOOK {
            pages.begun = 0;
            pages.look(segments);
        }
        match pages.piece {
            0 => 0,
            piece => hull(piece | wanted) & !wanted,
        }
    }
}

impl Pages {
    /// Examines which parts of the latest pages were wanted, and derives the piece.
    fn look<'a>(&mut self, segments: impl Iterator<Item = &'a Segment> + Clone) {
        let wanted = |key: &Key| segments.clone().fold(0, |all, one| all | one.wanted(key));
        let by_all: Vec<u16> = self.latest.iter().map(|(key, _)| wanted(key)).collect();
        let own = self.latest.iter().map(|&(_, wanted)| wanted);
        let is_shared = |(all, own): (&u16, u16)| all & !own != 0;
        let shared: Vec<bool> = by_all.iter().zip(own).map(is_shared).collect();
        // Other ranks have not reached the pages after the last shared one yet.
        let reached = shared.iter().rposition(|&one| one).map_or(0, |at| at + 1);
        let count = shared[..reached].iter().filter(|&&one| one).count();
        let known = by_all[..reached].iter().zip(&shared);
        self.piece = match count >= 2 && count * 2 >= reached {
            true => known.fold(0, |piece, (&all, &is)| piece | if is { all } else { 0 }),
            false => 0,
        };
    }
}

/// The parts from the first to the last of these.
fn hull(parts: u16) -> u16 {
    if parts == 0 {
        return 0;
    }
    let from = u16::MAX << parts.trailing_zeros();
    from & (u16::MAX >> parts.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_segment::{Claim, PAGE};

    const FILE: FileId = FileId(1);

    fn key(page: u64) -> Key {
        Key {
            dev: 1,
            ino: 2,
            page,
        }
    }

    /// Makes these parts of a page foretold to the rank of a segment.
    fn foretell(segment: &Segment, page: u64, parts: u16) {
        match segment.claim(&key(page), parts, 0, true) {
            // So its slot is not free.
            Claim::Fill(fill) => std::mem::forget(fill),
            other => panic!("{other:?}"),
        }
    }

    /// The parts read beside the first part of each page, if another rank reaches the pages `later` pages later, and wants the parts
    /// returned by `other`.
    fn run(pages: u64, later: u64, other: impl Fn(u64) -> u16) -> Vec<u16> {
        let (own, peer) = (
            Segment::create(256 * PAGE).unwrap(),
            Segment::create(256 * PAGE).unwrap(),
        );
        let mut sharing = Sharing::default();
        let segments = [&own, &peer];
        (0..pages)
            .map(|page| {
                foretell(&own, page, 1);
                if let Some(page) = page.checked_sub(later).filter(|&page| other(page) != 0) {
                    foretell(&peer, page, other(page));
                }
                sharing.beside(FILE, (key(page), 1), segments.into_iter())
            })
            .collect()
    }

    #[test]
    fn what_another_rank_reads_of_the_same_pages_is_read_with_them() {
        for later in [0, 1, 40] {
            let beside = run(100, later, |_| 0b1000);
            assert_eq!(beside[0], 0);
            assert_eq!(beside[99], 0b1110, "{later} pages later");
        }
    }

    #[test]
    fn nothing_is_read_beside_what_only_this_rank_reads() {
        assert_eq!(run(100, 0, |_| 0), [0; 100]);
        assert_eq!(run(100, 3, |_| 1), [0; 100], "it wants the same parts");
        let now_and_then = run(100, 0, |page| if page % 3 == 0 { 0b10 } else { 0 });
        assert_eq!(now_and_then[64..], [0; 36]);
        let no_more = run(200, 0, |page| if page < 50 { 0b10 } else { 0 });
        assert_eq!((no_more[49], no_more[199]), (0b10, 0));
    }

    #[test]
    fn a_piece_has_no_gaps() {
        assert_eq!(hull(0), 0);
        assert_eq!(hull(0b1_0010), 0b1_1110);
        assert_eq!(hull(0x8001), u16::MAX);
    }
}
