//! Finds the cursors of one file: positions that move through it by equal strides, with any reads in between.
//!
//! A read that equals a cursor's expectation belongs to that cursor. Any other read is added to a small window of unexpected reads.
//! Together with two of them at equal distances, and with sizes that change equally, it forms a new cursor. So an expected read costs a
//! comparison with each cursor, and an unexpected one a search of the window in addition.
//!
//! Invariant: `expects[n]` is the offset that `cursors[n]` expects, or [`NOWHERE`] if there is no such cursor.

use foreread_plan::{Extent, ThreadId};

use super::lead::{Caution, Lead, Pause};

/// Cursors distinguished in one file: twice the eight that are required, because random reads form some by chance.
pub(super) const CURSORS: usize = 16;
/// Unexpected reads in which a new cursor is looked for: eight cursors that take turns are found at the third turn of each.
pub(super) const WINDOW: usize = 16;
/// The offset of nothing: no read begins there.
const NOWHERE: u64 = u64::MAX;

/// A straight line through a file: extents at equal strides, of sizes that change by equal amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The next extent on it.
    pub(super) next: Extent,
    /// Bytes from the start of one extent to that of the next; never 0.
    pub(super) stride: i64,
    /// Growth of each extent over the previous one, in bytes.
    pub(super) growth: i64,
}

impl Line {
    /// The line through these two extents, if they are apart and the line continues.
    pub(super) fn through(before: Extent, last: Extent) -> Option<Self> {
        let stride = difference(last.offset, before.offset)?;
        let growth = difference(last.len, before.len)?;
        let line = Self {
            next: last,
            stride,
            growth,
        };
        let next = line.at(1)?;
        (stride != 0).then_some(Self { next, ..line })
    }

    /// The extent `steps` after the next; `None` where the line has left the file.
    pub(super) fn at(&self, steps: u64) -> Option<Extent> {
        let steps = i64::try_from(steps).ok()?;
        let moved = |from: u64, by: i64| {
            let to = i64::try_from(from)
                .ok()?
                .checked_add(by.checked_mul(steps)?)?;
            u64::try_from(to).ok()
        };
        let extent = Extent::new(
            moved(self.next.offset, self.stride)?,
            moved(self.next.len, self.growth)?,
        );
        (extent.len > 0 && extent.offset.checked_add(extent.len)? <= i64::MAX as u64)
            .then_some(extent)
    }
}

fn difference(to: u64, from: u64) -> Option<i64> {
    i64::try_from(i128::from(to) - i128::from(from)).ok()
}

/// A line, with the program's progress along it.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The read that it expects.
    pub(super) line: Line,
    /// The reads disclosed ahead of it.
    pub(super) lead: Lead,
    /// The thread that read last.
    pub(super) thread: ThreadId,
    /// Distinguishes a cursor from the former one in its slot.
    pub(super) generation: u32,
}

/// The relation of a read to the cursors of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The cursor in this slot expected it.
    Expected(usize),
    /// This read and two earlier ones form a new cursor, in this slot. The former cursor of the slot had disclosed this many reads in vain.
    Found(usize, u64),
    /// No cursor expected it.
    Stray,
}

/// All cursors of one file.
#[derive(Clone, Debug)]
pub(super) struct Cursors {
    expects: [u64; CURSORS],
    cursors: Vec<Cursor>,
    /// Unexpected reads, a ring: the newest before `newest`.
    window: Vec<Extent>,
    newest: usize,
    /// Reads of the file so far.
    reads: u64,
    found: u32,
    rest: Pause,
    /// The proof required of a new cursor.
    caution: Caution,
}

impl Default for Cursors {
    fn default() -> Self {
        Self {
            expects: [NOWHERE; CURSORS],
            cursors: Vec::new(),
            window: Vec::new(),
            newest: 0,
            reads: 0,
            found: 0,
            rest: Pause::default(),
            caution: Caution::default(),
        }
    }
}

impl Cursors {
    /// A thread read this extent; `now` counts the reads of all files.
    pub(super) fn read(&mut self, extent: Extent, thread: ThreadId, now: u64) -> Met {
        self.reads += 1;
        if let Some(slot) = self.expecting(extent) {
            let cursor = &mut self.cursors[slot];
            cursor.lead.hit(self.reads, now);
            cursor.thread = thread;
            self.caution.paid(&cursor.lead);
            self.rest.note(cursor.lead.right() > 1);
            match cursor.line.at(1) {
                Some(next) => {
                    cursor.line.next = next;
                    self.expects[slot] = next.offset;
                }
                None => self.expects[slot] = NOWHERE,
            }
            return Met::Expected(slot);
        }
        if !self.rest.looks() {
            return Met::Stray;
        }
        if self.rest.note(false) {
            self.window.clear();
            self.newest = 0;
        }
        let Some(line) = self.find(extent) else {
            self.remember(extent);
            return Met::Stray;
        };
        self.admit(line, thread, now)
    }

    /// Breaks the cursors that the program seems to have left. Returns the number of reads disclosed in vain.
    pub(super) fn part(&mut self) -> u64 {
        let mut all = 0;
        for cursor in &mut self.cursors {
            if cursor.lead.is_overdue(self.reads) {
                let right = cursor.lead.right();
                let vain = cursor.lead.breaks();
                self.caution.broke(right, vain);
                all += vain;
            }
        }
        all
    }

    /// True if reads of this cursor may be disclosed.
    pub(super) fn may_disclose(&self, slot: usize) -> bool {
        self.cursors
            .get(slot)
            .is_some_and(|one| self.caution.allows(&one.lead))
    }

    /// Follow a line from its second read on, known from elsewhere.
    pub(super) fn admit(&mut self, line: Line, thread: ThreadId, now: u64) -> Met {
        self.found = self.found.wrapping_add(1);
        let cursor = Cursor {
            line,
            lead: Lead::new(self.reads, now),
            thread,
            generation: self.found,
        };
        let mut vain = 0;
        let slot = if self.cursors.len() < CURSORS {
            self.cursors.push(cursor);
            self.cursors.len() - 1
        } else {
            let oldest = (0..CURSORS).min_by_key(|&slot| self.cursors[slot].lead.last());
            let slot = oldest.expect("there are cursors");
            vain = self.cursors[slot].lead.disclosed();
            self.cursors[slot] = cursor;
            slot
        };
        self.expects[slot] = line.next.offset;
        Met::Found(slot, vain)
    }

    /// The cursor that expects exactly this.
    fn expecting(&self, extent: Extent) -> Option<usize> {
        let mut slots = 0_u32;
        for (slot, &offset) in self.expects.iter().enumerate() {
            slots |= u32::from(offset == extent.offset) << slot;
        }
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            if self.cursors[slot].line.next.len == extent.len {
                return Some(slot);
            }
            slots &= slots - 1;
        }
        None
    }

    /// A line that ends in this read: two reads of the window are as far from each other as the later one is from it.
    fn find(&mut self, last: Extent) -> Option<Line> {
        let count = self.window.len();
        // One bit for each offset in the window: most searched offsets are not there.
        let bit = |offset: u64| 1_u64 << (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58);
        let there = self.window.iter().fold(0, |all, one| all | bit(one.offset));
        for back in 1..=count {
            let at = (self.newest + count - back) % count;
            let middle = self.window[at];
            let first = middle.offset.wrapping_mul(2).wrapping_sub(last.offset);
            if bit(first) & there == 0 || middle.offset == last.offset {
                continue;
            }
            for further in back + 1..=count {
                let first_at = (self.newest + count - further) % count;
                let one = self.window[first_at];
                if one.offset == first && Line::through(one, middle)?.next == last {
                    let line = Line::through(middle, last)?;
                    self.forget(at, first_at);
                    return Some(line);
                }
            }
        }
        None
    }

    /// Take the reads of a new cursor out of the window, so that they make no other.
    fn forget(&mut self, one: usize, other: usize) {
        let count = self.window.len();
        self.window.rotate_left(self.newest % count);
        let place = |at: usize| (at + count - self.newest % count) % count;
        let (one, other) = (place(one), place(other));
        self.window.remove(one.max(other));
        self.window.remove(one.min(other));
        self.newest = 0;
    }

    fn remember(&mut self, extent: Extent) {
        if self.window.len() < WINDOW {
            // Not full: the newest is the last.
            self.window.push(extent);
            self.newest = 0;
        } else {
            self.window[self.newest] = extent;
            self.newest = (self.newest + 1) % WINDOW;
        }
    }

    /// The cursor in this slot.
    pub(super) fn get(&self, slot: usize) -> Option<&Cursor> {
        self.cursors.get(slot)
    }

    /// The cursor in this slot.
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Cursor> {
        self.cursors.get_mut(slot)
    }
}
