//! Accesses that are known in their order, as foreknowledge: for measurements, where the same list is read and fetched ahead of.
//!
//! They are made ready for prefetching on the way: consecutive accesses to the same pages are one disclosure; a file's sequential stream is
//! marked as such, small skips included, once it has run on for 256 KiB, because from there the kernel's read-ahead does at least as well;
//! pages found touched in a mapping are disclosed one by one, because the next sample will group them differently.

use std::collections::VecDeque;
use std::ops::Range;

use foreread_plan::{Access, Expected, FileId, Kind, Odds, Pattern};

use crate::streams::Streams;
use crate::{Nature, Outlook, Source};

/// Source `replay`.
#[derive(Debug)]
pub struct Replay<T> {
    accesses: T,
    streams: Streams,
    last: Option<(FileId, Range<u64>)>,
    /// Taken, and not disclosed yet.
    pending: VecDeque<Expected>,
}

impl<T: Iterator<Item = Access>> Replay<T> {
    /// Disclose these accesses.
    pub fn new(accesses: impl IntoIterator<IntoIter = T>) -> Self {
        Self {
            accesses: accesses.into_iter(),
            streams: Streams::default(),
            last: None,
            pending: VecDeque::new(),
        }
    }

    fn prepare(&mut self, access: &Access) {
        let Access { file, thread, .. } = *access;
        let pages = access.extent.pages();
        if !access.kind.reads() || pages.is_empty() {
            return;
        }
        let expected = |pages, pattern| Expected {
            odds: Odds::SURE,
            file,
            pages,
            thread,
            pattern,
        };
        if access.kind == Kind::Touch {
            let each = pages.map(|page| expected(page..page + 1, Pattern::Loose));
            self.pending.extend(each);
            return;
        }
        let pattern = self.streams.runs(thread, file, access.extent).pattern();
        let repeat = self.last.as_ref().is_some_and(|(last, seen)| {
            *last == file && seen.start <= pages.start && pages.end <= seen.end
        });
        if repeat {
            return;
        }
        self.last = Some((file, pages.clone()));
        self.pending.push_back(expected(pages, pattern));
    }
}

impl<T: Iterator<Item = Access> + Send> Source for Replay<T> {
    fn nature(&self) -> Nature {
        Nature::Told
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        for _ in 0..room {
            while self.pending.is_empty() {
                let Some(access) = self.accesses.next() else {
                    return Outlook::End;
                };
                self.prepare(&access);
            }
            out.extend(self.pending.pop_front());
        }
        Outlook::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::STREAM_AFTER;
    use foreread_plan::{Extent, PAGE, ThreadId};
    use proptest::prelude::*;

    fn access(file: u32, offset: u64, len: u64) -> Access {
        Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        }
    }

    fn replay(accesses: Vec<Access>) -> Replay<std::vec::IntoIter<Access>> {
        Replay::new(accesses)
    }

    fn all(source: &mut impl Source) -> Vec<Expected> {
        let mut out = Vec::new();
        source.disclose(usize::MAX, &mut out);
        out
    }

    #[test]
    fn small_reads_of_one_page_are_one_disclosure() {
        let reads = (0..80).map(|n| access(1, n * 100, 100)).collect();
        let disclosed = all(&mut replay(reads));
        let pages: Vec<_> = disclosed.into_iter().map(|d| d.pages).collect();
        assert_eq!(
            pages,
            [0..1, 0..2],
            "page 0, then the read across; the rest is in it"
        );
    }

    #[test]
    fn a_stream_is_left_to_the_kernel_after_its_beginning() {
        let reads = (0..256).map(|n| access(1, n * PAGE, PAGE)).collect();
        let disclosed = all(&mut replay(reads));
        let first = disclosed
            .iter()
            .position(|d| d.pattern != Pattern::Scattered)
            .unwrap();
        assert_eq!(first as u64 * PAGE, STREAM_AFTER);
        assert!(
            disclosed[first..]
                .iter()
                .all(|d| d.pattern == Pattern::Sequential)
        );
    }

    #[test]
    fn what_leaves_a_page_out_between_reads_is_no_stream() {
        let reads = (0..256).map(|n| access(1, n * 2 * PAGE, PAGE)).collect();
        let disclosed = all(&mut replay(reads));
        assert!(disclosed.iter().all(|d| d.pattern == Pattern::Scattered));
        // A part of each page.
        let reads = (0..256).map(|n| access(1, n * PAGE + 8, 100)).collect();
        let last = all(&mut replay(reads)).pop().unwrap();
        assert_eq!(last.pattern, Pattern::Sequential);
    }

    #[test]
    fn one_large_read_is_not_a_stream_by_itself() {
        let reads = vec![access(1, 0, 1 << 20), access(1, 1 << 30, 1 << 20)];
        assert!(
            all(&mut replay(reads))
                .iter()
                .all(|d| d.pattern == Pattern::Scattered)
        );
    }

    #[test]
    fn backward_and_widely_strided_reads_are_never_a_stream() {
        let backward = (0..256).rev().map(|n| access(1, n * PAGE, PAGE));
        let strided = (0..256).map(|n| access(2, n * 5 * PAGE, PAGE));
        let disclosed = all(&mut replay(backward.chain(strided).collect()));
        assert!(disclosed.iter().all(|d| d.pattern == Pattern::Scattered));
    }

    proptest! {
        /// However the room is cut up, the same is disclosed, and every page read is in it.
        #[test]
        fn disclosure_covers_every_page_whatever_the_room(
            reads in proptest::collection::vec((0u32..4, 0u64..200_000, 1u64..20_000), 0..100),
            room in 1usize..10,
        ) {
            let accesses: Vec<_> = reads.iter().map(|&(f, o, l)| access(f, o, l)).collect();
            let whole = all(&mut replay(accesses.clone()));
            let mut source = replay(accesses.clone());
            let mut pieces = Vec::new();
            loop {
                let before = pieces.len();
                source.disclose(room, &mut pieces);
                if pieces.len() == before { break; }
            }
            prop_assert_eq!(&whole, &pieces);
            for access in accesses {
                for page in access.extent.pages() {
                    prop_assert!(whole.iter().any(|d| d.file == access.file && d.pages.contains(&page)));
                }
            }
        }
    }
}
