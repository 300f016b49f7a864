//! The plan queue: what will be read, and where in it the program is.
//!
//! A source pushes entries in the order it expects them; each gets the next *ordinal*, AASFP's
//! call ID (long paper, §5.1). What the program really reads is matched against the entries
//! by file and page, earliest entry first. Matching tolerates what real programs do:
//!
//! - threads and processes interleave differently, and samples have no order: an entry up to [`REORDER`] behind the
//!   position still matches, and only then expires;
//! - accesses are skipped: the entries passed over expire by ordinal;
//! - accesses are inserted: they match nothing and move nothing;
//! - the same page is read again and again (the root of a b-tree), and such matches run ahead:
//!   the position is the second lowest of the last few matches, so it takes nearly all to move it.
//!
//! Invariant: `entries[n]` has the ordinal `base + n`; `index` holds, for each (file, first
//! page), the earliest entry of a chain through `Entry::next` that may still be active.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use foreread_plan::{Expected, FileId, ThreadId};

/// How far behind the position an entry may still be read, in entries.
pub(crate) const REORDER: u64 = 4096;
/// Recent matches the position is taken from.
const MATCHES: usize = 7;
/// Pushes over which more than one thread, or a sample, makes the plan a concurrent one.
const CONCURRENCY_WINDOW: u64 = 64;
/// Files whose last matched range is remembered.
const RECENT_FILES: usize = 1 << 16;

/// Where an entry is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Disclosed; nothing was done for it yet.
    Waiting,
    /// Admitted: pending or in flight, its pages held in the budget.
    Admitted,
    /// Looked at and left to the program: only announced, too late, or of a file that is gone.
    Left,
    /// The program has read it.
    Consumed,
}

/// One expected access.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The file.
    pub file: FileId,
    /// First page.
    pub first: u64,
    /// Pages; 0 announces that the file will be opened.
    pub pages: u32,
    /// Part of a sequential stream, which the kernel's read-ahead serves better.
    pub sequential: bool,
    /// Where it is in its life.
    pub state: State,
    /// Ordinals to the next entry of the same file and first page; 0 for none.
    next: u32,
}

impl Entry {
    /// The pages expected to be read.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.pages)
    }

    fn active(&self) -> bool {
        self.state != State::Consumed
    }
}

/// What an observed access was to the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The entries it consumed, with the state they had before.
    pub consumed: Vec<(u64, Taken)>,
    /// Whether the plan knew of it: it consumed something, or re-read what was just consumed.
    pub known: bool,
}

/// An entry as it was at the moment the program read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Pages of the entry.
    pub pages: Range<u64>,
    /// Whether its pages were held in the budget.
    pub admitted: bool,
}

/// The window of expected accesses around the program's position.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    entries: VecDeque<Entry>,
    base: u64,
    index: HashMap<(FileId, u64), (u64, u64)>,
    position: u64,
    matches: VecDeque<u64>,
    recent: HashMap<FileId, Range<u64>>,
    last_thread: Option<ThreadId>,
    switched_at: Option<u64>,
}

impl Queue {
    /// A queue that holds up to `capacity` entries.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: VecDeque::new(),
            base: 0,
            index: HashMap::new(),
            position: 0,
            matches: VecDeque::with_capacity(MATCHES + 1),
            recent: HashMap::new(),
            last_thread: None,
            switched_at: None,
        }
    }

    /// How many more entries fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.entries.len())
    }

    /// The ordinal of the next access the program is expected to make (the paper's `i`).
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The ordinal the next pushed entry will get.
    pub fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// The lowest ordinal still worth fetching for: below it entries have expired, unless
    /// several threads read or samples were taken, whose order may differ this time.
    pub fn floor(&self) -> u64 {
        let concurrent = self
            .switched_at
            .is_some_and(|at| self.end() - at <= CONCURRENCY_WINDOW.max(self.entries.len() as u64));
        if concurrent {
            self.position.saturating_sub(REORDER)
        } else {
            self.position
        }
    }

    /// The entry with this ordinal, while the queue holds it.
    pub fn get(&self, ordinal: u64) -> Option<&Entry> {
        let at = ordinal.checked_sub(self.base)?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    /// Move an entry on in its life.
    pub fn set_state(&mut self, ordinal: u64, state: State) {
        if let Some(entry) = self.get_mut(ordinal) {
            entry.state = state;
        }
    }

    fn get_mut(&mut self, ordinal: u64) -> Option<&mut Entry> {
        let at = ordinal.checked_sub(self.base)?;
        self.entries.get_mut(usize::try_from(at).ok()?)
    }

    /// Disclose the next expected access.
    pub fn push(&mut self, expected: &Expected) {
        let Expected {
            file,
            ref pages,
            thread,
            sequential,
            loose,
        } = *expected;
        let ordinal = self.end();
        let count = u32::try_from(pages.end.saturating_sub(pages.start)).unwrap_or(u32::MAX);
        let switched = self
            .last_thread
            .replace(thread)
            .is_some_and(|last| last != thread);
        if switched || loose {
            self.switched_at = Some(ordinal);
        }
        self.entries.push_back(Entry {
            file,
            first: pages.start,
            pages: count,
            sequential,
            state: State::Waiting,
            next: 0,
        });
        if count == 0 {
            return;
        }
        match self.index.entry((file, pages.start)) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert((ordinal, ordinal));
            }
            std::collections::hash_map::Entry::Occupied(mut occupied) => {
                let tail = std::mem::replace(&mut occupied.get_mut().1, ordinal);
                if let Some(at) = tail.checked_sub(self.base)
                    && let Some(entry) = self.entries.get_mut(at as usize)
                {
                    entry.next = u32::try_from(ordinal - tail).unwrap_or(0);
                }
            }
        }
    }

    /// The program read `pages` of `file`: consume what was expected of it and move on.
    pub fn observe(&mut self, file: FileId, pages: Range<u64>) -> Matched {
        let mut matched = Matched::default();
        let mut page = pages.start;
        while page < pages.end {
            if let Some(ordinal) = self.expected(file, page) {
                let entry = self.get_mut(ordinal).expect("the index names live entries");
                let range = entry.range();
                matched.consumed.push((
                    ordinal,
                    Taken {
                        pages: range.clone(),
                        admitted: entry.state == State::Admitted,
                    },
                ));
                entry.state = State::Consumed;
                matched.known = true;
                page = range.end.max(page + 1);
                self.remember(file, range);
                self.advance(ordinal);
            } else if let Some(seen) = self.recent.get(&file).filter(|seen| seen.contains(&page)) {
                matched.known = true;
                page = seen.end;
            } else {
                page += 1;
            }
        }
        matched
    }

    /// The earliest active entry that starts at this page and is not out of reach behind.
    fn expected(&mut self, file: FileId, page: u64) -> Option<u64> {
        let &(head, tail) = self.index.get(&(file, page))?;
        let mut ordinal = head;
        loop {
            let entry = *self.get(ordinal)?;
            if entry.active() {
                break;
            }
            if entry.next == 0 {
                self.index.remove(&(file, page));
                return None;
            }
            ordinal += u64::from(entry.next);
        }
        self.index.insert((file, page), (ordinal, tail));
        Some(ordinal)
    }

    fn remember(&mut self, file: FileId, range: Range<u64>) {
        if self.recent.len() >= RECENT_FILES {
            self.recent.clear();
        }
        self.recent.insert(file, range);
    }

    fn advance(&mut self, matched: u64) {
        self.matches.push_back(matched);
        if self.matches.len() > MATCHES {
            self.matches.pop_front();
        }
        let mut sorted: Vec<u64> = self.matches.iter().copied().collect();
        sorted.sort_unstable();
        let trusted = sorted[sorted.len().min(2) - 1];
        self.position = self.position.max(trusted + 1);
    }

    /// Drop the oldest entry if the program is well past it, and return it.
    pub fn expire(&mut self) -> Option<(u64, Entry)> {
        if self.base + REORDER >= self.position {
            return None;
        }
        self.pop()
    }

    /// Drop the oldest entry, wherever the program is.
    pub fn pop(&mut self) -> Option<(u64, Entry)> {
        let entry = self.entries.pop_front()?;
        let ordinal = self.base;
        self.base += 1;
        self.position = self.position.max(self.base);
        let key = (entry.file, entry.first);
        if entry.pages > 0
            && let Some((head, _)) = self.index.get_mut(&key)
            && *head == ordinal
        {
            if entry.next == 0 {
                self.index.remove(&key);
            } else {
                *head = ordinal + u64::from(entry.next);
            }
        }
        Some((ordinal, entry))
    }

    /// Forget where the program was; the next matches decide anew.
    pub fn restart(&mut self) {
        self.matches.clear();
        self.recent.clear();
        self.switched_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: FileId = FileId(1);
    const ONE: ThreadId = ThreadId(0);

    fn expected(pages: Range<u64>, thread: ThreadId) -> Expected {
        Expected {
            file: FILE,
            pages,
            thread,
            sequential: false,
            loose: false,
        }
    }

    fn queue_of(pages: &[u64]) -> Queue {
        let mut queue = Queue::new(1 << 16);
        for &page in pages {
            queue.push(&expected(page..page + 1, ONE));
        }
        queue
    }

    #[test]
    fn the_position_follows_reads_in_order() {
        let mut queue = queue_of(&(0..100).collect::<Vec<_>>());
        for page in 0..50 {
            assert!(queue.observe(FILE, page..page + 1).known);
        }
        assert!(
            (44..=50).contains(&queue.position()),
            "{}",
            queue.position()
        );
    }

    #[test]
    fn a_page_read_again_and_again_does_not_move_the_position_ahead() {
        // 0, then a leaf, then 0, then a leaf …
        let pages: Vec<u64> = (0..200).flat_map(|leaf| [0, 1000 + leaf]).collect();
        let mut queue = queue_of(&pages);
        for leaf in 0..40 {
            queue.observe(FILE, 0..1);
            queue.observe(FILE, 1000 + leaf..1001 + leaf);
            queue.observe(FILE, 0..1); // one read of the root more than was recorded
        }
        let position = queue.position();
        assert!((60..=120).contains(&position), "{position}");
        assert!(queue.observe(FILE, 1040..1041).known);
    }

    #[test]
    fn inserted_reads_are_unknown_and_move_nothing() {
        let mut queue = queue_of(&(0..100).collect::<Vec<_>>());
        for page in 0..20 {
            queue.observe(FILE, page..page + 1);
        }
        let before = queue.position();
        for page in 5000..5100 {
            assert!(!queue.observe(FILE, page..page + 1).known);
        }
        assert_eq!(queue.position(), before);
    }

    #[test]
    fn skipped_entries_are_passed_over() {
        let mut queue = queue_of(&(0..10_000).collect::<Vec<_>>());
        for page in 0..10 {
            queue.observe(FILE, page..page + 1);
        }
        for page in 8000..8010 {
            assert!(queue.observe(FILE, page..page + 1).known);
        }
        assert!(queue.position() >= 8000);
        let mut expired = 0;
        while queue.expire().is_some() {
            expired += 1;
        }
        assert!(expired > 3800, "{expired}");
    }

    #[test]
    fn one_large_read_consumes_the_small_ones_it_covers() {
        let mut queue = queue_of(&[4, 5, 6, 7, 20]);
        let matched = queue.observe(FILE, 4..8);
        assert_eq!(matched.consumed.len(), 4);
    }

    #[test]
    fn a_read_inside_the_range_just_consumed_is_known() {
        let mut queue = Queue::new(16);
        queue.push(&expected(10..20, ONE));
        assert_eq!(queue.observe(FILE, 10..12).consumed.len(), 1);
        let again = queue.observe(FILE, 15..16);
        assert!(again.known && again.consumed.is_empty());
    }

    #[test]
    fn only_a_plan_of_several_threads_keeps_entries_behind_the_position() {
        let mut queue = Queue::new(1 << 16);
        for n in 0..4000u64 {
            queue.push(&expected(n..n + 1, ThreadId((n % 2) as u32)));
        }
        for n in 3000..3010 {
            queue.observe(FILE, n..n + 1);
        }
        assert!(queue.floor() < queue.position());
        let mut single = queue_of(&(0..100).collect::<Vec<_>>());
        single.observe(FILE, 0..50);
        assert_eq!(single.floor(), single.position());
    }

    proptest! {
        /// Against a reference that searches the plan linearly: the same entries are consumed.
        #[test]
        fn matching_agrees_with_a_linear_search(
            plan in proptest::collection::vec(0u64..40, 1..200),
            reads in proptest::collection::vec((0u64..40, 1u64..4), 0..200),
        ) {
            let mut queue = queue_of(&plan);
            let mut taken = vec![false; plan.len()];
            for (page, len) in reads {
                let matched = queue.observe(FILE, page..page + len);
                let got: Vec<u64> = matched.consumed.iter().map(|(ordinal, _)| *ordinal).collect();
                let mut expected = Vec::new();
                for p in page..page + len {
                    if let Some(at) = (0..plan.len()).find(|&at| !taken[at] && plan[at] == p) {
                        taken[at] = true;
                        expected.push(at as u64);
                    }
                }
                prop_assert_eq!(got, expected);
            }
        }

        /// Expiry keeps the index and the entries in step, whatever is read.
        #[test]
        fn expiry_never_loses_a_live_entry(
            plan in proptest::collection::vec(0u64..500, 6000..9000),
            step in 1usize..7,
        ) {
            let mut queue = queue_of(&plan);
            for (at, page) in plan.iter().enumerate().step_by(step) {
                prop_assert!(queue.observe(FILE, *page..*page + 1).known, "entry {} lost", at);
                while queue.expire().is_some() {}
            }
        }
    }
}
