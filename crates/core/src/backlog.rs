//! Wants that wait to be requested, in the program's order and by position.
//!
//! A request begins with the first want. Wants from anywhere in the plan join it if they cost the device next to nothing more: pages of the
//! same file behind a gap that is cheaper to read than to skip ([`crate::price`]), and small files with neighbouring inodes, most of which
//! were written one after the other.
//!
//! Invariant: each position belongs to a waiting want. Data flow: wants → [`Backlog::add`] → [`Backlog::take`] → one request.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::Range;

use foreread_plan::{FileId, FileMeta, PAGE};

use crate::Files;
use crate::pages::Pages;
use crate::price::Reach;
use crate::wants::{INODES, JOINED, Want, What};

/// Small files of one request, at most: as many requests as the kernel keeps back to join them (its BLK_MAX_REQUEST_COUNT).
const TOGETHER: usize = 32;

/// Device, inode and first page.
type FirstPage = (u64, u64, u64);

/// The wants that wait.
#[derive(Default)]
pub(crate) struct Backlog {
    /// In the program's order; `None` for wants that were requested before their turn.
    wants: VecDeque<Option<Waiting>>,
    /// The number of the first of them.
    first: u64,
    places: BTreeMap<FirstPage, u64>,
    /// Pages before the requested wants that are left to the kernel, and pages that the program read before they were requested; not
    /// yet reported.
    left: u64,
}

/// A want that waits.
struct Waiting {
    want: Want,
    /// The position of its pages; `None` if neighbours cannot join.
    place: Option<FirstPage>,
    is_small: bool,
}

/// The contents of one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) want: Want,
    /// Its wanted pages: without the gaps.
    pub(crate) wanted: u64,
    /// The block device it lies on.
    pub(crate) dev: Option<u64>,
}

impl Backlog {
    /// Wants that wait, those before their turn included.
    pub(crate) fn len(&self) -> usize {
        self.wants.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a want at the end.
    pub(crate) fn add(&mut self, want: Want, files: &dyn Files) {
        let number = self.first + self.wants.len() as u64;
        let meta = match want.what {
            What::Pages(_) => files.file(want.file),
            _ => None,
        };
        let place = meta.and_then(|meta| place(meta, &want));
        let is_small = meta.is_some_and(|meta| meta.size <= JOINED * PAGE);
        if let Some(place) = place {
            self.places.insert(place, number);
        }
        self.wants.push_back(Some(Waiting {
            want,
            place,
            is_small,
        }));
    }

    /// Takes the first want together with others that add little cost: those within `reach` on the same device, up to `room` wanted pages
    /// in all. The first want is taken even if it is larger. Pages that the program has `read` already are left out.
    pub(crate) fn take(
        &mut self,
        room: u64,
        read: &Pages,
        reach: impl FnOnce(u64) -> Reach,
    ) -> Option<Taken> {
        let first = loop {
            let first = self.remove(self.first)?;
            match &first.want.what {
                What::Pages(pages) if read.has_all(first.want.file, pages.clone()) => {
                    self.left += first.want.pages();
                }
                _ => break first,
            }
        };
        let (Some(place), What::Pages(pages)) = (first.place, &first.want.what) else {
            let wanted = first.want.pages();
            return Some(Taken {
                want: first.want,
                wanted,
                dev: None,
            });
        };
        let part = Piece {
            file: first.want.file,
            pages: pages.clone(),
            place,
            is_small: first.is_small,
        };
        let wanted = first.want.pages();
        let mut group = Group {
            reach: reach(place.0),
            room,
            parts: VecDeque::from([part]),
            wanted,
        };
        while let Some((&place, &number)) = self.behind(group.last().place)
            && let Some(part) = self.part(place, number)
        {
            let passed = part.passed(read);
            if passed == 0 && !group.goes_on(part) {
                break;
            }
            self.left += passed;
            self.remove(number);
        }
        while let Some((&place, &number)) = self.before(group.first().place)
            && let Some(part) = self.part(place, number)
        {
            let passed = part.passed(read);
            if passed == 0 && !group.begins(part) {
                break;
            }
            self.left += passed;
            self.remove(number);
        }
        Some(group.taken())
    }

    fn behind(&self, place: FirstPage) -> Option<(&FirstPage, &u64)> {
        self.places.range((Excluded(place), Unbounded)).next()
    }

    fn before(&self, place: FirstPage) -> Option<(&FirstPage, &u64)> {
        self.places.range(..place).next_back()
    }

    fn part(&self, place: FirstPage, number: u64) -> Option<Piece> {
        let waiting = self.wants.get((number - self.first) as usize)?.as_ref()?;
        let What::Pages(pages) = &waiting.want.what else {
            return None;
        };
        Some(Piece {
            file: waiting.want.file,
            pages: pages.clone(),
            place,
            is_small: waiting.is_small,
        })
    }

    /// Pages left to the kernel's read-ahead before the wants taken since the last call, and pages left out as read.
    pub(crate) fn left(&mut self) -> u64 {
        std::mem::take(&mut self.left)
    }

    /// Removes a want.
    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let slot = self.wants.get_mut((number - self.first) as usize)?;
        let waiting = slot.take();
        self.left += waiting.as_ref().map_or(0, |waiting| waiting.want.left);
        while let Some(None) = self.wants.front() {
            self.wants.pop_front();
            self.first += 1;
        }
        if let Some(place) = waiting.as_ref().and_then(|waiting| waiting.place)
            && self.places.get(&place) == Some(&number)
        {
            self.places.remove(&place);
        }
        waiting
    }
}

/// The place of a want's first page, on a block device.
fn place(meta: &FileMeta, want: &Want) -> Option<FirstPage> {
    let What::Pages(pages) = &want.what else {
        return None;
    };
    (rustix::fs::major(meta.dev) != 0).then_some((meta.dev, meta.ino, pages.start))
}

/// Pages of a request.
struct Piece {
    file: FileId,
    pages: Range<u64>,
    place: FirstPage,
    is_small: bool,
}

impl Piece {
    fn count(&self) -> u64 {
        self.pages.end - self.pages.start
    }

    /// Its pages if the program has read all of them; else 0.
    fn passed(&self, read: &Pages) -> u64 {
        match read.has_all(self.file, self.pages.clone()) {
            true => self.count(),
            false => 0,
        }
    }
}

/// A request that grows.
struct Group {
    reach: Reach,
    room: u64,
    parts: VecDeque<Piece>,
    wanted: u64,
}

impl Group {
    fn first(&self) -> &Piece {
        self.parts.front().expect("a group has a first part")
    }

    fn last(&self) -> &Piece {
        self.parts.back().expect("a group has a first part")
    }

    /// True if two parts, in order of place, form one request.
    fn joins(&self, one: &Piece, next: &Piece) -> bool {
        if one.file == next.file {
            let gap = next.pages.start.saturating_sub(one.pages.end);
            return gap <= self.reach.gap && next.pages.end - one.pages.start <= self.reach.span;
        }
        let ((dev, ino, _), (next_dev, next_ino, _)) = (one.place, next.place);
        let are_near = dev == next_dev && ino != next_ino && next_ino - ino <= INODES;
        are_near && one.is_small && next.is_small && self.parts.len() < TOGETHER
    }

    fn has_room(&self, part: &Piece) -> bool {
        self.wanted + part.count() <= self.room
    }

    /// Adds the wants behind the request, if reading the gap pays.
    fn goes_on(&mut self, part: Piece) -> bool {
        if !self.joins(self.last(), &part) || !self.has_room(&part) {
            return false;
        }
        self.wanted += part.count();
        match self.parts.back_mut() {
            Some(last) if last.file == part.file => last.pages.end = part.pages.end,
            _ => self.parts.push_back(part),
        }
        true
    }

    /// Adds the wants before the request, if reading the gap pays.
    fn begins(&mut self, part: Piece) -> bool {
        if !self.joins(&part, self.first()) || !self.has_room(&part) {
            return false;
        }
        self.wanted += part.count();
        match self.parts.front_mut() {
            Some(first) if first.file == part.file => {
                first.pages.start = part.pages.start;
                first.place = part.place;
            }
            _ => self.parts.push_front(part),
        }
        true
    }

    fn taken(self) -> Taken {
        let (file, dev) = (self.first().file, self.first().place.0);
        let mut parts = self.parts.into_iter().map(|part| (part.file, part.pages));
        let what = match (parts.next(), parts.len()) {
            (Some((_, pages)), 0) => What::Pages(pages),
            (one, _) => What::Together(one.into_iter().chain(parts).collect()),
        };
        Taken {
            want: Want {
                file,
                what,
                left: 0,
            },
            wanted: self.wanted,
            dev: Some(dev),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const ANY: u64 = 1 << 40;

    /// Files of these sizes, in pages, with inodes that follow each other.
    fn files(sizes: &[u64]) -> BTreeMap<FileId, FileMeta> {
        let meta = |(number, size): (usize, &u64)| {
            let meta = FileMeta::regular(
                format!("/data/{number}"),
                (0x801, number as u64 + 1),
                size * PAGE,
                0,
            );
            (FileId(number as u32), meta)
        };
        sizes.iter().enumerate().map(meta).collect()
    }

    fn backlog(
        wants: impl IntoIterator<Item = (u32, Range<u64>)>,
        files: &BTreeMap<FileId, FileMeta>,
    ) -> Backlog {
        let mut backlog = Backlog::default();
        for (file, pages) in wants {
            let what = What::Pages(pages);
            let want = Want {
                file: FileId(file),
                what,
                left: 0,
            };
            backlog.add(want, files);
        }
        backlog
    }

    fn take(backlog: &mut Backlog, room: u64, gap: u64) -> Option<Taken> {
        let reach = Reach { gap, span: 256 };
        backlog.take(room, &Pages::default(), |_| reach)
    }

    fn parts(want: Want) -> Vec<(FileId, Range<u64>)> {
        match want.what {
            What::Pages(pages) | What::Cached(pages) => vec![(want.file, pages)],
            What::Together(all) => all,
            What::Name(_) => Vec::new(),
        }
    }

    #[test]
    fn pages_behind_a_short_gap_come_along_from_anywhere_in_the_plan() {
        let files = files(&[1000]);
        let wants = [100, 500, 103, 97, 900, 110].map(|page| (0, page..page + 1));
        let mut waiting = backlog(wants, &files);
        let taken = take(&mut waiting, ANY, 2).unwrap();
        assert_eq!(parts(taken.want), [(FileId(0), 97..104)]);
        assert_eq!(taken.wanted, 3);
        let order = std::iter::from_fn(|| take(&mut waiting, ANY, 2));
        let order: Vec<_> = order.flat_map(|taken| parts(taken.want)).collect();
        assert_eq!(
            order,
            [500, 900, 110].map(|page| (FileId(0), page..page + 1))
        );
        assert!(waiting.is_empty());
    }

    #[test]
    fn small_files_whose_inodes_are_neighbours_are_requested_together() {
        let mut sizes = [3; 40];
        sizes[36] = 1000;
        let files = files(&sizes);
        let mut waiting = backlog((0..40).rev().map(|file| (file, 0..3)), &files);
        let taken = std::iter::from_fn(|| take(&mut waiting, ANY, 0));
        let sizes: Vec<_> = taken.map(|taken| parts(taken.want).len()).collect();
        assert_eq!(sizes, [3, 1, 32, 4]);
    }

    #[test]
    fn no_more_is_taken_along_than_there_is_room_for() {
        let files = files(&[1000]);
        let mut waiting = backlog((0..9).map(|n| (0, n * 10..n * 10 + 10)), &files);
        assert_eq!(take(&mut waiting, 35, 0).unwrap().wanted, 30);
        assert_eq!(take(&mut waiting, 1, 0).unwrap().wanted, 10);
    }

    proptest! {
        #[test]
        fn each_want_is_taken_once_and_nothing_lies_behind_a_longer_gap(
            wants in prop::collection::hash_set((0u32..4, 0u64..600), 1..200),
            (gap, room) in (0u64..12, 1u64..300),
        ) {
            let files = files(&[10, 20, 600, 600]);
            let all = wants.iter().map(|&(file, page)| (file, page..page + 1));
            let mut waiting = backlog(all, &files);
            let mut found = BTreeSet::new();
            while let Some(taken) = take(&mut waiting, room, gap) {
                let mut count = 0;
                for (file, pages) in parts(taken.want) {
                    let mut last = pages.start;
                    for page in pages.clone().filter(|page| wants.contains(&(file.0, *page))) {
                        prop_assert!(page - last <= gap + 1);
                        last = page;
                        if found.insert((file.0, page)) {
                            count += 1;
                        }
                    }
                    prop_assert_eq!(last + 1, pages.end);
                }
                prop_assert_eq!(count, taken.wanted);
                prop_assert!(taken.wanted <= room.max(1));
            }
            prop_assert_eq!(found.into_iter().collect::<HashSet<_>>(), wants);
            prop_assert!(waiting.places.is_empty());
        }
    }
}
