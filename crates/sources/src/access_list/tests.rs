use std::sync::{Arc, Mutex};
use std::time::Instant;

use foreread_plan::{Expected, PAGE, Pattern};
use proptest::prelude::*;

use super::*;
use crate::{Outlook, Source};

mod advice;

const A: FileId = FileId(0);
const B: FileId = FileId(1);

fn entry(file: FileId, offset: u64, len: u64, marked: bool) -> Entry {
    Entry {
        file,
        extent: Extent::new(offset, len),
        marked,
    }
}

fn page(n: u64) -> Entry {
    entry(A, n * PAGE, PAGE, false)
}

/// A list over all of both files.
fn list(capacity: usize) -> AccessList {
    let mut list = AccessList::new(capacity);
    list.region(A, 0..u64::MAX);
    list.region(B, 0..u64::MAX);
    list
}

fn read(list: &mut AccessList, entry: Entry) -> Match {
    list.read(entry.file, entry.extent)
}

/// Pages without neighbours: a permutation of the numbers below 2^32.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(2_654_435_761) % (1 << 32)
}

/// The same list, every question answered by going through all entries.
struct Naive {
    capacity: usize,
    regions: Vec<(FileId, Range<u64>)>,
    entries: Vec<(Entry, bool)>,
    position: usize,
    first: u64,
    goal: usize,
    done: bool,
    far: Option<usize>,
    marked: Option<(FileId, u64)>,
    counts: Counts,
}

impl Naive {
    fn new(capacity: usize) -> Self {
        Self {
            capacity,
            regions: Vec::new(),
            entries: Vec::new(),
            position: 0,
            first: 0,
            goal: 0,
            done: false,
            far: None,
            marked: None,
            counts: Counts::default(),
        }
    }

    fn replace(&mut self, first: u64) {
        self.entries.clear();
        self.position = 0;
        self.first = first;
        self.goal = 0;
        self.done = false;
        self.far = None;
    }

    fn append(&mut self, entries: &[Entry]) -> usize {
        let room = self.capacity - (self.entries.len() - self.position);
        let count = entries.len().min(room);
        self.entries
            .extend(entries[..count].iter().map(|&entry| (entry, false)));
        self.counts.accepted += count as u64;
        self.done &= count == 0;
        while self.position < self.goal.min(self.entries.len()) {
            self.pass();
        }
        count
    }

    fn pass(&mut self) {
        self.counts.skipped += u64::from(!self.entries[self.position].1);
        self.position += 1;
    }

    fn hit(&self, at: usize, file: FileId, read: Extent) -> bool {
        let entry = self.entries[at].0;
        let end = entry.extent.offset + entry.extent.len.max(1);
        entry.file == file && entry.extent.offset < read.end() && read.offset < end
    }

    fn note(&mut self, at: usize) {
        let entry = self.entries[at].0;
        if entry.marked {
            self.marked = Some((entry.file, entry.extent.offset));
        }
    }

    fn read(&mut self, file: FileId, read: Extent) -> Match {
        let inside = !read.is_empty()
            && self.regions.iter().any(|(region, bytes)| {
                *region == file && bytes.start < read.end() && read.offset < bytes.end
            });
        if !inside {
            self.counts.outside += 1;
            return Match::Outside;
        }
        let ahead = (self.position..self.entries.len()).find(|&at| self.hit(at, file, read));
        if let Some(at) = ahead.filter(|at| at - self.position <= BEHIND as usize) {
            return self.reach(at, read);
        }
        let base = self.position.saturating_sub(BEHIND as usize);
        let passed = (base..self.position)
            .rev()
            .find(|&at| self.hit(at, file, read));
        if let Some(at) = passed {
            self.again(at);
            return Match::Listed;
        }
        let Some(at) = ahead else {
            self.counts.unlisted += 1;
            return Match::Unlisted;
        };
        if let Some(far) = self.far.replace(at)
            && far < at
            && at - far <= BEHIND as usize
        {
            return self.reach(at, read);
        }
        self.counts.listed += 1;
        self.entries[at].1 = true;
        self.note(at);
        Match::Listed
    }

    fn again(&mut self, at: usize) {
        self.counts.listed += 1;
        if !std::mem::replace(&mut self.entries[at].1, true) {
            self.counts.skipped -= 1;
        }
        self.note(at);
    }

    fn reach(&mut self, at: usize, read: Extent) -> Match {
        self.far = None;
        self.counts.listed += 1;
        while self.position < at {
            self.pass();
        }
        loop {
            self.entries[self.position].1 = true;
            self.note(self.position);
            self.position += 1;
            let last = self.entries[self.position - 1].0;
            let Some((next, _)) = self.entries.get(self.position) else {
                break;
            };
            let len = |entry: &Entry| entry.extent.len.max(1);
            if next.file != last.file
                || next.extent.offset < last.extent.offset + len(&last)
                || next.extent.offset + len(next) > read.end()
            {
                break;
            }
        }
        if self.done && self.position == self.entries.len() {
            Match::RanOut
        } else {
            Match::Listed
        }
    }

    fn at(&mut self, n: u64) -> Option<Match> {
        let at = match n.checked_sub(self.first) {
            None => {
                self.counts.listed += 1;
                return Some(Match::Listed);
            }
            Some(at) => at as usize,
        };
        if at >= self.entries.len() {
            if self.done {
                return None;
            }
            self.goal = at + 1;
            while self.position < self.entries.len() {
                self.pass();
            }
            self.counts.listed += 1;
            return Some(Match::Listed);
        }
        if at >= self.position {
            let mut extent = self.entries[at].0.extent;
            extent.len = extent.len.max(1);
            return Some(self.reach(at, extent));
        }
        if at >= self.position.saturating_sub(BEHIND as usize) {
            self.again(at);
        } else {
            self.counts.listed += 1;
        }
        Some(Match::Listed)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Set(Vec<Entry>, bool),
    Append(Vec<Entry>, bool),
    /// Many entries at once, so that the window behind and the index of a long list are used.
    Bulk {
        seed: u64,
        count: u64,
        spread: u64,
    },
    Clear,
    Read(FileId, Extent),
    /// The entry so far from the position, read whole.
    Follow(i64),
    At(i64),
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let offset = prop_oneof![0u64..40_000, (0u64..40).prop_map(|n| n << 30)];
    let len = prop_oneof![0u64..9000, Just(1u64 << 33), 0u64..200];
    (0u32..3, offset, len, any::<bool>())
        .prop_map(|(file, offset, len, marked)| entry(FileId(file), offset, len, marked))
}

fn op() -> impl Strategy<Value = Op> {
    let entries = || proptest::collection::vec(any_entry(), 0..20);
    let near = || prop_oneof![-3i64..12, -5000i64..9000];
    prop_oneof![
        1 => (entries(), any::<bool>()).prop_map(|(e, done)| Op::Set(e, done)),
        3 => (entries(), any::<bool>()).prop_map(|(e, done)| Op::Append(e, done)),
        1 => (any::<u64>(), 1u64..9000, prop_oneof![Just(20u64), Just(2000), Just(1 << 20)])
            .prop_map(|(seed, count, spread)| Op::Bulk { seed, count, spread }),
        1 => Just(Op::Clear),
        6 => (0u32..3, 0u64..60_000, prop_oneof![0u64..9000, 0u64..3_000_000])
            .prop_map(|(file, offset, len)| Op::Read(FileId(file), Extent::new(offset, len))),
        12 => near().prop_map(Op::Follow),
        2 => near().prop_map(Op::At),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever is done to it, the indexed list gives the answers of one that is gone through entry by entry.
    #[test]
    fn it_agrees_with_going_through_all_entries(
        ops in proptest::collection::vec(op(), 1..80),
        capacity in prop_oneof![1usize..30, Just(30_000usize)],
    ) {
        let mut list = AccessList::new(capacity);
        let mut naive = Naive::new(capacity);
        for (file, bytes) in [(FileId(0), 0..u64::MAX), (FileId(1), 1000..30_000)] {
            list.region(file, bytes.clone());
            naive.regions.push((file, bytes));
        }
        for op in ops {
            let at = |by: i64, list: &AccessList| {
                let position = list.next().map_or(list.end(), |(n, _)| n);
                position.saturating_add_signed(by)
            };
            match op {
                Op::Set(entries, done) => {
                    naive.replace(0);
                    prop_assert_eq!(list.set(&entries), naive.append(&entries));
                    if done { list.done(); naive.done = true; }
                }
                Op::Append(entries, done) => {
                    prop_assert_eq!(list.append(&entries), naive.append(&entries));
                    if done { list.done(); naive.done = true; }
                }
                Op::Bulk { seed, count, spread } => {
                    let entries: Vec<_> = (0..count)
                        .map(|n| page(scattered(seed.wrapping_add(n) % (1 << 32)) % spread))
                        .collect();
                    prop_assert_eq!(list.append(&entries), naive.append(&entries));
                }
                Op::Clear => {
                    list.clear();
                    naive.replace(naive.first + naive.entries.len() as u64);
                }
                Op::Read(file, extent) => {
                    prop_assert_eq!(list.read(file, extent), naive.read(file, extent));
                }
                Op::Follow(by) => {
                    let n = at(by, &list).checked_sub(naive.first);
                    if let Some((entry, _)) = n.and_then(|n| naive.entries.get(n as usize)) {
                        let (file, extent) = (entry.file, entry.extent);
                        prop_assert_eq!(list.read(file, extent), naive.read(file, extent));
                    }
                }
                Op::At(by) => {
                    let n = at(by, &list);
                    prop_assert_eq!(list.at(n), naive.at(n));
                }
            }
            prop_assert_eq!(list.counts(), naive.counts);
            prop_assert_eq!(list.marked(), naive.marked);
            prop_assert_eq!(list.ahead(), (naive.entries.len() - naive.position) as u64);
            prop_assert_eq!(list.end(), naive.first + naive.entries.len() as u64);
        }
    }
}

#[test]
fn the_talks_example_goes_as_its_slides_show() {
    let mut list = AccessList::new(100);
    list.region(A, 75..350);
    list.region(B, 100..200);
    list.region(B, 300..400);
    let first = [
        entry(A, 100, 0, true),
        entry(B, 150, 0, false),
        entry(A, 200, 0, true),
    ];
    assert_eq!(list.set(&first), 3);
    list.done();
    assert_eq!(list.read(A, Extent::new(100, 10)), Match::Listed);
    assert_eq!(list.read(B, Extent::new(350, 10)), Match::Unlisted);
    assert_eq!(list.marked(), Some((A, 100)));
    assert_eq!(
        list.set(&[entry(B, 150, 0, false), entry(A, 200, 0, true)]),
        2
    );
    list.done();
    assert_eq!(list.read(A, Extent::new(400, 10)), Match::Outside);
    assert_eq!(list.read(A, Extent::new(200, 10)), Match::RanOut);
    assert_eq!(list.marked(), Some((A, 200)));
    assert_eq!(list.counts().skipped, 1, "B 150 was never read");
}

#[test]
fn a_list_without_done_runs_out_silently() {
    let mut list = list(10);
    list.set(&[page(1)]);
    assert_eq!(read(&mut list, page(1)), Match::Listed);
    assert_eq!(read(&mut list, page(2)), Match::Unlisted);
}

#[test]
fn a_full_list_takes_the_rest_as_it_is_read() {
    let mut list = list(4);
    let entries: Vec<_> = (0..10).map(|n| page(n * 2)).collect();
    assert_eq!(list.set(&entries), 4);
    assert_eq!(list.append(&entries[4..]), 0);
    read(&mut list, entries[1]);
    assert_eq!(list.append(&entries[4..]), 2);
    assert_eq!(list.end(), 6);
}

#[test]
fn what_was_passed_stays_listed_for_a_while() {
    let mut list = list(1 << 20);
    let entries: Vec<_> = (0..6000).map(|n| page(n * 3)).collect();
    list.set(&entries);
    for &entry in &entries {
        assert_eq!(read(&mut list, entry), Match::Listed);
    }
    assert_eq!(read(&mut list, entries[2000]), Match::Listed);
    assert_eq!(read(&mut list, entries[1000]), Match::Unlisted);
}

#[test]
fn one_read_far_ahead_skips_nothing_and_a_second_one_does() {
    let mut list = list(1 << 20);
    let entries: Vec<_> = (0..50_000).map(|n| page(scattered(n))).collect();
    list.set(&entries);
    read(&mut list, entries[0]);
    assert_eq!(read(&mut list, entries[40_000]), Match::Listed);
    assert_eq!(list.next().unwrap().0, 1);
    assert_eq!(read(&mut list, entries[40_003]), Match::Listed);
    assert_eq!(list.next().unwrap().0, 40_004);
    assert_eq!(
        list.counts().skipped,
        40_001,
        "all between but the one read before its turn"
    );
}

#[test]
fn a_large_read_takes_the_entries_it_covers() {
    let mut list = list(10);
    list.set(&[page(0), page(1), page(2), page(3)]);
    list.done();
    assert_eq!(list.read(A, Extent::new(0, 3 * PAGE)), Match::Listed);
    assert_eq!(list.next().unwrap().0, 3);
    assert_eq!(list.read(A, Extent::new(3 * PAGE, 1)), Match::RanOut);
    assert_eq!(list.counts().skipped, 0);
}

#[test]
fn a_place_beyond_any_list_passes_all_that_comes() {
    let mut list = list(100);
    assert_eq!(list.at(u64::MAX), Some(Match::Listed));
    assert_eq!(list.append(&[page(1), page(2)]), 2);
    assert_eq!((list.ahead(), list.counts().skipped), (0, 2));
}

#[test]
fn telling_a_place_that_is_still_to_come_passes_what_comes_before_it() {
    let mut list = list(1 << 20);
    list.set(&[page(0), page(5)]);
    assert_eq!(list.at(3), Some(Match::Listed));
    list.append(&[page(7), page(9), page(11)]);
    assert_eq!(list.next().unwrap(), (4, page(11)));
    list.done();
    assert_eq!(list.at(5), None);
    assert_eq!(list.at(4), Some(Match::RanOut));
}

fn disclosed(feed: &mut Feed, room: usize) -> Vec<Expected> {
    let mut out = Vec::new();
    feed.disclose(room, &mut out);
    out
}

fn fed(entries: &[Entry]) -> (Arc<Mutex<AccessList>>, Feed) {
    let mut list = list(1 << 20);
    list.set(entries);
    let list = Arc::new(Mutex::new(list));
    let mut feed = Feed::new(Arc::clone(&list));
    let mut out = Vec::new();
    assert_eq!(feed.disclose(0, &mut out), Outlook::Void);
    assert_ne!(feed.disclose(0, &mut out), Outlook::Void);
    (list, feed)
}

#[test]
fn what_the_program_has_passed_is_not_disclosed_any_more() {
    let entries: Vec<_> = (0..100).map(|n| page(n * 2)).collect();
    let (list, mut feed) = fed(&entries);
    read(&mut list.lock().unwrap(), entries[49]);
    let first = disclosed(&mut feed, 10);
    assert_eq!(first[0].pages, 100..101);
    assert_eq!(disclosed(&mut feed, 1000).len(), 40);
    list.lock().unwrap().append(&[page(1000)]);
    assert_eq!(disclosed(&mut feed, 1000)[0].pages, 1000..1001);
}

#[test]
fn the_rest_of_an_entry_that_is_being_read_is_disclosed() {
    let long = entry(A, 100 * PAGE, 8 * PAGE, false);
    let (list, mut feed) = fed(&[page(1), long, page(7)]);
    let beginning = entry(A, 100 * PAGE, PAGE, false);
    read(&mut list.lock().unwrap(), beginning);
    let pages: Vec<_> = disclosed(&mut feed, 10)
        .into_iter()
        .map(|expected| expected.pages)
        .collect();
    assert_eq!(pages, [100..108, 7..8]);
}

#[test]
fn nothing_of_a_new_list_is_disclosed_before_the_old_one_is_void() {
    let (list, mut feed) = fed(&[page(1), page(3)]);
    disclosed(&mut feed, 1);
    list.lock().unwrap().set(&[page(7)]);
    let mut none = Vec::new();
    assert_eq!(feed.disclose(10, &mut none), Outlook::Void);
    assert!(none.is_empty());
    let new = disclosed(&mut feed, 10);
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].pages, 7..8);
}

#[test]
fn streams_and_very_long_entries_are_left_to_the_kernel_after_their_beginning() {
    let (_, mut feed) = fed(&(0..256).map(page).collect::<Vec<_>>());
    let stream = disclosed(&mut feed, usize::MAX);
    assert_eq!(
        stream
            .iter()
            .filter(|one| one.pattern == Pattern::Scattered)
            .count(),
        64
    );

    let (_, mut feed) = fed(&[entry(A, 0, 1 << 40, false)]);
    let long = disclosed(&mut feed, usize::MAX);
    assert_eq!(long.len(), 17);
    assert!(
        long[..16]
            .iter()
            .all(|one| one.pattern == Pattern::Scattered && one.pages.end - one.pages.start == 256)
    );
    assert!(long[16].pattern == Pattern::Sequential && long[16].pages.end == (1 << 40) / PAGE);
}

#[test]
fn an_entry_without_length_is_fetched_as_its_page() {
    let (_, mut feed) = fed(&[entry(A, 5 * PAGE + 7, 0, false)]);
    assert_eq!(disclosed(&mut feed, 10)[0].pages, 5..6);
}

proptest! {
    /// Every page of every entry is disclosed, whatever the room.
    #[test]
    fn disclosure_covers_every_page(
        reads in proptest::collection::vec((0u32..3, 0u64..100_000, 0u64..3_000_000), 0..40),
        room in 1usize..300,
    ) {
        let entries: Vec<_> = reads.iter().map(|&(f, o, l)| entry(FileId(f), o, l, false)).collect();
        let (_, mut feed) = fed(&entries);
        let mut all = Vec::new();
        loop {
            let some = disclosed(&mut feed, room);
            if some.is_empty() { break; }
            prop_assert!(some.len() <= room);
            all.extend(some);
        }
        for entry in entries {
            for page in Extent::new(entry.extent.offset, entry.extent.len.max(1)).pages() {
                prop_assert!(all.iter().any(|one| one.file == entry.file && one.pages.contains(&page)));
            }
        }
    }
}

#[test]
fn a_list_that_may_become_very_long_takes_no_memory_for_that_before() {
    let mut list = list(MOST);
    let entries: Vec<_> = (0..10_000).map(|n| page(scattered(n))).collect();
    list.set(&entries);
    assert!(list.memory() < 10 << 20, "{}", list.memory());
    assert_eq!(read(&mut list, entries[4000]), Match::Listed);
    assert_eq!(read(&mut list, entries[5000]), Match::Listed);
    assert_eq!(list.counts().skipped, 4999);
}

#[test]
fn an_entry_takes_at_most_24_bytes_with_its_index() {
    const COUNT: usize = 1 << 20;
    let mut list = list(COUNT);
    let start = Instant::now();
    for chunk in (0..COUNT as u64).collect::<Vec<_>>().chunks(1024) {
        let entries: Vec<_> = chunk.iter().map(|&n| page(scattered(n))).collect();
        assert_eq!(list.append(&entries), entries.len());
    }
    let filled = start.elapsed();
    let bytes = list.memory() as f64 / COUNT as f64;
    let start = Instant::now();
    for n in 0..COUNT as u64 {
        assert_eq!(read(&mut list, page(scattered(n))), Match::Listed);
    }
    let read = start.elapsed();
    let per = |time: std::time::Duration| time.as_nanos() as f64 / COUNT as f64;
    eprintln!(
        "{bytes:.1} bytes an entry; {:.0} ns to add one, {:.0} ns to match one",
        per(filled),
        per(read)
    );
    assert!(bytes <= 24.0, "{bytes}");
}
