//! The entries of one list, and how a read finds its own among them.
//!
//! Entries are numbered by *ordinals* from 0 and stored in chunks, 20 bytes each. Entries ahead of the position are chained, earliest
//! first, in buckets by the block that contains them: a block is 4 KiB or the next power of two that fits. So a read searches the few
//! blocks that it touches in each size in use, and the entries of one bucket overlap each other or share a page. With one bucket (8 bytes)
//! for two to four entries an entry takes at most 24 bytes. The last [`BEHIND`] entries that were passed are chained too, latest first.
//!
//! Invariants: `base ≤ position ≤ end`; a stored entry is in exactly one chain; the first of a chain ahead is passed first.

use std::collections::{BTreeMap, VecDeque};

use foreread_plan::{Extent, FileId};

use super::Entry;

/// Entries passed over or read that still count as listed: as many as the scheduler's plan queue keeps.
pub(super) const BEHIND: u64 = 4096;
/// Entries a list holds at most: ordinals are kept to 31 bits.
pub(super) const MOST: usize = 1 << 30;

/// Entries in a chunk (80 KiB).
const CHUNK: u64 = 4096;
/// Buckets of a short list, and the limit when it becomes a longer one (8 MiB). A still longer list gets [`GROWTH`] times as many: chaining
/// millions again takes time, and memory for entries that never come is wasted.
const FEW_BUCKETS: usize = 1024;
const MANY_BUCKETS: usize = 1 << 20;
const GROWTH: usize = 16;
/// Entries for a bucket, at most, but where the list has all it may have.
const CROWDED: u64 = 4;
/// The smallest block, as a power of two.
const SMALLEST: u32 = 12;
/// The next entries, compared before any bucket is searched: programs mostly follow their lists.
const NEAR: u64 = 4;
/// Blocks a read may touch before going through all entries is the shorter way.
const MANY: u64 = 1024;
/// The largest offset a file can have.
const LAST: u64 = i64::MAX as u64;

const MARKED: u32 = 1 << 31;
const READ: u32 = 1 << 30;
const SEQUENTIAL: u32 = 1 << 29;
const FILE: u32 = SEQUENTIAL - 1;
/// The length stands in `Store::long`.
const LONG: u32 = u32::MAX;

/// An entry as it is stored.
#[derive(Clone, Copy, Debug)]
struct Packed {
    low: u32,
    high: u32,
    len: u32,
    /// The file's number below, flags above.
    file: u32,
    /// Distance in ordinals to the next entry of the chain (ahead), or to the previous one (passed); 0 for none.
    link: u32,
}

impl Packed {
    fn offset(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// First and last entry of a chain ahead: ordinals to 31 bits, with the top bit set; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    head: u32,
    tail: u32,
}

const USED: u32 = 1 << 31;

/// An entry that was ahead.
pub(super) struct Passed {
    pub(super) entry: Entry,
    pub(super) ordinal: u64,
    /// True if it was read before its turn.
    pub(super) read: bool,
}

/// The entries.
#[derive(Debug)]
pub(super) struct Store {
    chunks: VecDeque<Vec<Packed>>,
    base: u64,
    position: u64,
    end: u64,
    buckets: Vec<Bucket>,
    /// By block, the ordinal of the last entry passed, to 32 bits.
    passed: Vec<u32>,
    /// Sizes of blocks that occur, a bit each.
    classes: u64,
    /// Lengths of 4 GiB and more, by ordinal.
    long: BTreeMap<u64, u64>,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            base: 0,
            position: 0,
            end: 0,
            buckets: vec![Bucket::default(); FEW_BUCKETS],
            passed: Vec::new(),
            classes: 0,
            long: BTreeMap::new(),
        }
    }

    /// The lowest ordinal that is held.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The ordinal of the first entry ahead.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// One past the last ordinal.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn ahead(&self) -> u64 {
        self.end - self.position
    }

    /// Bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| chunk.capacity() * size_of::<Packed>())
            .sum::<usize>()
            + self.buckets.capacity() * size_of::<Bucket>()
            + self.passed.capacity() * size_of::<u32>()
    }

    /// Appends an entry. `capacity` is the limit of the list's length.
    pub(super) fn push(&mut self, entry: &Entry, sequential: bool, capacity: usize) {
        let ordinal = self.end;
        if self.ahead() >= self.buckets.len() as u64 * CROWDED {
            self.widen(capacity);
        }
        let offset = entry.extent.offset.min(LAST);
        let len = entry.extent.len.max(1).min(LAST - offset).max(1);
        let short = u32::try_from(len).ok().filter(|&short| short != LONG);
        if short.is_none() {
            self.long.insert(ordinal, len);
        }
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let packed = Packed {
            low: offset as u32,
            high: (offset >> 32) as u32,
            len: short.unwrap_or(LONG),
            file: entry.file.0 & FILE | flag(entry.marked, MARKED) | flag(sequential, SEQUENTIAL),
            link: 0,
        };
        if ordinal.is_multiple_of(CHUNK) {
            self.chunks.push_back(Vec::with_capacity(CHUNK as usize));
        }
        self.chunks.back_mut().expect("just pushed").push(packed);
        self.end += 1;
        self.chain(ordinal);
    }

    /// The entry with this ordinal, while it is stored, and true if it is part of a sequential stream.
    pub(super) fn get(&self, ordinal: u64) -> (Entry, bool) {
        let packed = self.packed(ordinal);
        let entry = Entry {
            file: FileId(packed.file & FILE),
            extent: Extent::new(packed.offset(), self.len(ordinal)),
            marked: packed.file & MARKED != 0,
        };
        (entry, packed.file & SEQUENTIAL != 0)
    }

    /// Notes that an entry has been read. True if it had not been read before.
    pub(super) fn mark_read(&mut self, ordinal: u64) -> bool {
        let packed = self.packed_mut(ordinal);
        let before = packed.file;
        packed.file |= READ;
        before & READ == 0
    }

    /// The earliest entry ahead that shares a byte with the read.
    pub(super) fn find_ahead(&self, file: FileId, read: Extent) -> Option<u64> {
        let near = self.end.min(self.position + NEAR);
        if let Some(found) = (self.position..near).find(|&ordinal| self.hit(ordinal, file, read)) {
            return Some(found);
        }
        if near == self.end {
            return None;
        }
        let mut best = None;
        for (class, blocks) in self.blocks(read) {
            let count = blocks.end() - blocks.start();
            if count >= MANY || count > self.ahead() {
                return (near..self.end).find(|&ordinal| self.hit(ordinal, file, read));
            }
            for block in blocks {
                best = self.first_of_chain(file, read, class, block, best);
            }
        }
        best
    }

    fn first_of_chain(
        &self,
        file: FileId,
        read: Extent,
        class: u32,
        block: u64,
        best: Option<u64>,
    ) -> Option<u64> {
        let bucket = self.buckets[self.bucket(file, class, block)];
        if bucket.head == 0 {
            return best;
        }
        let mut ordinal = self.ordinal(bucket.head);
        loop {
            if best.is_some_and(|best| best <= ordinal) {
                return best;
            }
            if self.hit(ordinal, file, read) {
                return Some(ordinal);
            }
            let link = self.packed(ordinal).link;
            if link == 0 {
                return best;
            }
            ordinal += u64::from(link);
        }
    }

    /// The latest of the last entries passed that shares a byte with the read.
    pub(super) fn find_passed(&self, file: FileId, read: Extent) -> Option<u64> {
        if self.base == self.position {
            return None;
        }
        let mut best = None;
        for (class, blocks) in self.blocks(read) {
            if blocks.end() - blocks.start() >= MANY {
                return (self.base..self.position)
                    .rev()
                    .find(|&ordinal| self.hit(ordinal, file, read));
            }
            for block in blocks {
                best = self.last_of_chain(file, read, class, block, best);
            }
        }
        best
    }

    fn last_of_chain(
        &self,
        file: FileId,
        read: Extent,
        class: u32,
        block: u64,
        best: Option<u64>,
    ) -> Option<u64> {
        let head = self.passed[place(file, class, block, BEHIND)];
        // An outdated head leads to no entry, or to another one that does not match.
        let mut back = (self.position as u32).wrapping_sub(head);
        let mut ordinal = self.position;
        loop {
            let before = ordinal.checked_sub(u64::from(back)).filter(|&before| {
                back > 0 && self.base <= before && best.is_none_or(|best| best < before)
            });
            let Some(before) = before else {
                return best;
            };
            if self.hit(before, file, read) {
                return Some(before);
            }
            ordinal = before;
            back = self.packed(ordinal).link;
        }
    }

    /// Move the position past the first entry ahead, which must exist.
    pub(super) fn pass(&mut self) -> Passed {
        if self.passed.is_empty() {
            self.passed = vec![0; BEHIND as usize];
        }
        let ordinal = self.position;
        let (entry, _) = self.get(ordinal);
        let (class, block) = block_of(entry.extent);
        let Packed { link, file, .. } = *self.packed(ordinal);
        let at = self.bucket(entry.file, class, block);
        let bucket = &mut self.buckets[at];
        if link == 0 {
            *bucket = Bucket::default();
        } else {
            bucket.head = short(ordinal + u64::from(link));
        }
        let head = &mut self.passed[place(entry.file, class, block, BEHIND)];
        let back = (ordinal as u32).wrapping_sub(*head);
        *head = ordinal as u32;
        // A link to an entry that is no longer stored also ends the chain.
        self.packed_mut(ordinal).link = back;
        self.position += 1;
        self.forget();
        Passed {
            entry,
            ordinal,
            read: file & READ != 0,
        }
    }

    /// Drops entries too far behind.
    fn forget(&mut self) {
        self.base = self.base.max(self.position.saturating_sub(BEHIND));
        while self.first() + CHUNK <= self.base {
            self.chunks.pop_front();
            if !self.long.is_empty() {
                self.long = self.long.split_off(&self.first());
            }
        }
    }

    /// The ordinal of the first entry of the first chunk.
    fn first(&self) -> u64 {
        let chunks = self.end.div_ceil(CHUNK);
        (chunks - self.chunks.len() as u64) * CHUNK
    }

    fn packed(&self, ordinal: u64) -> &Packed {
        let at = ordinal - self.first();
        &self.chunks[(at / CHUNK) as usize][(at % CHUNK) as usize]
    }

    fn packed_mut(&mut self, ordinal: u64) -> &mut Packed {
        let at = ordinal - self.first();
        &mut self.chunks[(at / CHUNK) as usize][(at % CHUNK) as usize]
    }

    fn len(&self, ordinal: u64) -> u64 {
        match self.packed(ordinal).len {
            LONG => self.long.get(&ordinal).copied().unwrap_or(1),
            len => u64::from(len),
        }
    }

    fn hit(&self, ordinal: u64, file: FileId, read: Extent) -> bool {
        let packed = self.packed(ordinal);
        let offset = packed.offset();
        packed.file & FILE == file.0
            && offset < read.end()
            && read.offset < offset + self.len(ordinal)
    }

    /// For each size of block that occurs: the blocks a read touches.
    fn blocks(
        &self,
        read: Extent,
    ) -> impl Iterator<Item = (u32, std::ops::RangeInclusive<u64>)> + use<> {
        let classes = self.classes;
        let first = read.offset.min(LAST);
        let last = read.end().saturating_sub(1).clamp(first, LAST);
        (SMALLEST..64)
            .filter(move |class| classes >> class & 1 == 1)
            .map(move |class| (class, first >> class..=last >> class))
    }

    /// Chain an entry that lies after all others in its bucket.
    fn chain(&mut self, ordinal: u64) {
        let (entry, _) = self.get(ordinal);
        let (class, block) = block_of(entry.extent);
        self.classes |= 1 << class;
        let at = self.bucket(entry.file, class, block);
        let tail = self.buckets[at].tail;
        if tail == 0 {
            self.buckets[at].head = short(ordinal);
        } else {
            let tail = self.ordinal(tail);
            self.packed_mut(tail).link = (ordinal - tail) as u32;
        }
        self.buckets[at].tail = short(ordinal);
    }

    /// The list is becoming a long one: chain all anew, if it may have more entries.
    fn widen(&mut self, capacity: usize) {
        let most = capacity.div_ceil(CROWDED as usize).next_power_of_two();
        let buckets = most.min(MANY_BUCKETS.max(self.buckets.len() * GROWTH));
        if buckets <= self.buckets.len() {
            return;
        }
        self.buckets = vec![Bucket::default(); buckets];
        for ordinal in self.position..self.end {
            self.packed_mut(ordinal).link = 0;
            self.chain(ordinal);
        }
    }

    fn bucket(&self, file: FileId, class: u32, block: u64) -> usize {
        place(file, class, block, self.buckets.len() as u64)
    }

    /// The ordinal of an entry ahead from its last 31 bits.
    fn ordinal(&self, kept: u32) -> u64 {
        let ahead = kept.wrapping_sub(self.position as u32) & !USED;
        self.position + u64::from(ahead)
    }
}

fn short(ordinal: u64) -> u32 {
    ordinal as u32 | USED
}

/// The smallest block that holds an extent whole: its size as a power of two, and its number.
fn block_of(extent: Extent) -> (u32, u64) {
    let differs = extent.offset ^ (extent.end() - 1);
    let class = (u64::BITS - differs.leading_zeros()).max(SMALLEST);
    (class, extent.offset >> class)
}

/// The bucket of a block in a table of `size` (a power of two): Fibonacci hashing.
fn place(file: FileId, class: u32, block: u64, size: u64) -> usize {
    let key = block ^ u64::from(file.0) << 40 ^ u64::from(class) << 58;
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - size.trailing_zeros()))
        as usize
}
