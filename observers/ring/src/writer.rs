//! The producer's side: one thread, one ring.

use crate::atomic::{AtomicU64, Ordering};
use crate::event::{
    COMMON_BITS, EXTRA_MAX, Inode, MORE, MORE_BITS, MORE_MAX, OFFSETS, Slot, code, encode,
};
use crate::layout::{RING_SLOTS, RINGS, Shared, Slots};

/// The ring has no room for the event now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A claim on one ring. Only the claiming thread may write through it.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    ring: usize,
    slots: &'a Slots,
    tail: u32,
    /// The consumer's position as last read: it can only have advanced since.
    head: u32,
    last: Last,
}

/// The access published last, or [`Last::NONE`] if that was another event.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Word 0 of its slot.
    word0: u64,
    /// Its end, in bytes.
    end: u64,
    /// Its length; 0 if there is no access.
    len: u32,
    /// Number of accesses added to the last one with its own slot.
    more: u16,
}

impl Last {
    const NONE: Self = Self {
        word0: 0,
        end: 0,
        len: 0,
        more: 0,
    };

    /// True if its file, kind and length equal another's, by that one's word 0.
    #[inline(always)]
    fn is_like(&self, word0: u64, len: u32) -> bool {
        self.len == len && (self.word0 ^ word0) & COMMON_BITS == 0
    }
}

impl<'a> Writer<'a> {
    /// Claims a free ring for a thread, preferably one whose slots are `mapped`, otherwise one that `map` maps; `None` if all are taken or
    /// the slots cannot be mapped.
    pub fn claim(
        shared: &Shared,
        (pid, tid): (u32, u32),
        mapped: impl Fn(usize) -> Option<&'a Slots>,
        map: impl FnOnce(usize) -> Option<&'a Slots>,
    ) -> Option<Self> {
        let claimed = |&ring: &usize| take(shared, ring, pid, tid);
        let mut again = (0..RINGS).filter(|&ring| mapped(ring).is_some());
        let (ring, slots) = match again.find(claimed) {
            Some(ring) => (ring, mapped(ring)),
            None => {
                let ring = (0..RINGS).find(claimed)?;
                (ring, mapped(ring).or_else(|| map(ring)))
            }
        };
        let Some(slots) = slots else {
            give_back(shared, ring, pid, tid);
            return None;
        };
        let cursors = &shared.cursors[ring];
        Some(Self {
            ring,
            slots,
            tail: cursors.tail.0.load(Ordering::Relaxed),
            head: cursors.head.0.load(Ordering::Acquire),
            last: Last::NONE,
        })
    }

    /// True if a process owns any ring.
    pub fn any_of(shared: &Shared, pid: u32) -> bool {
        shared.owners[..RINGS]
            .iter()
            .any(|word| word.load(Ordering::Relaxed) >> 32 == u64::from(pid))
    }

    /// Frees every ring a process owns: those of threads that are gone because it has
    /// become another program.
    pub fn release_all(shared: &Shared, pid: u32) {
        for word in &shared.owners[..RINGS] {
            let found = word.load(Ordering::Relaxed);
            if found >> 32 == u64::from(pid) {
                // Losing the race means that another process freed it.
                let _ = word.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// The number of the ring.
    pub fn ring(&self) -> usize {
        self.ring
    }

    /// Publishes a one-slot event.
    #[inline]
    pub fn push(&mut self, shared: &Shared, slot: &Slot) -> Result<(), Full> {
        self.room(shared, 1)?;
        self.put(0, slot);
        self.publish(shared, 1);
        Ok(())
    }

    /// Publishes an access, as [`encode::access`] makes it, to which others may be added by [`Writer::add`].
    #[inline]
    pub fn push_access(&mut self, shared: &Shared, slot: &Slot) -> Result<(), Full> {
        self.push(shared, slot)?;
        let len = slot[3] as u32;
        self.last = Last {
            word0: slot[0],
            end: slot[2].wrapping_add(u64::from(len)),
            len,
            more: 0,
        };
        Ok(())
    }

    /// Adds an access, begun when the last one ended, to that. True if another could be added; `None` if this one cannot: its file, kind or
    /// length differs, there are [`MORE_MAX`], or the ring is full.
    #[inline(always)]
    pub fn add(
        &mut self,
        shared: &Shared,
        (inst, kind): (u32, u8),
        offset: u64,
        len: u32,
    ) -> Option<bool> {
        let Last {
            word0, end, more, ..
        } = self.last;
        if !self.last.is_like(encode::word0(0, kind, 0, inst), len) || more == MORE_MAX {
            return None;
        }
        let slot = self.last_slot();
        let held = ((word0 & MORE_BITS) / MORE) as u16 + 1;
        let word0 = if word0 as u8 == code::ACCESS && offset == end {
            slot[0].store(word0 + MORE, Ordering::Release);
            word0 + MORE
        } else if word0 as u8 == code::OFFSETS && held < OFFSETS {
            slot[usize::from(held) + 1].store(offset, Ordering::Relaxed);
            slot[0].store(word0 + MORE, Ordering::Release);
            word0 + MORE
        } else {
            let first = [encode::word0(code::OFFSETS, kind, 0, inst), offset, 0, 0];
            self.push(shared, &first).ok()?;
            first[0]
        };
        self.last = Last {
            word0,
            end: offset.wrapping_add(u64::from(len)),
            len,
            more: more + 1,
        };
        Some(more + 1 < MORE_MAX)
    }

    /// Added to a [`Writer::counter`] for each access that continues the previous one.
    pub const ONE_MORE: u64 = MORE;

    /// The counter for accesses that continue the last one, and how many more it can count, if any. After adding to it, call
    /// [`Writer::counted`] before publishing anything else.
    #[inline]
    pub fn counter(&self) -> Option<(&'a AtomicU64, u16)> {
        let counts = self.last.len > 0 && self.last.word0 as u8 == code::ACCESS;
        let left = MORE_MAX - self.last.more;
        let slot = self.last_slot();
        (counts && left > 0).then_some((&slot[0], left))
    }

    /// Notes the accesses counted there: `left` more can be counted now.
    #[inline]
    pub fn counted(&mut self, left: u16) {
        let last = &mut self.last;
        let more = MORE_MAX.saturating_sub(left).saturating_sub(last.more);
        last.word0 += MORE * u64::from(more);
        last.end = last.end.wrapping_add(u64::from(last.len) * u64::from(more));
        last.more += more;
    }

    /// True if an access has the same file, kind and length as the last published event, if that was one.
    #[inline(always)]
    pub fn is_like_last(&self, slot: &Slot) -> bool {
        self.last.is_like(slot[0], slot[3] as u32)
    }

    /// The kind of the access published last, where it ended, in bytes, and its length, if the last event was one.
    pub fn last_access(&self) -> Option<(u8, u64, u32)> {
        let Last {
            word0, end, len, ..
        } = self.last;
        (len > 0).then_some(((word0 >> 8) as u8, end, len))
    }

    /// Number of accesses added to the last one with its own slot.
    #[inline(always)]
    pub fn more(&self) -> u16 {
        self.last.more
    }

    /// Publishes an event and its path, given in parts, so that no one needs a buffer for the whole. `first` must have been built for the
    /// total length; a path over [`crate::PATH_MAX`] bytes is not published.
    pub fn push_path(
        &mut self,
        shared: &Shared,
        first: &Slot,
        parts: &[&[u8]],
    ) -> Result<(), Full> {
        self.push_parts(shared, first, None, parts)
    }

    /// The same for the use of a name, with its inode if known. If that leaves too little room for the path, the event is not published.
    pub fn push_name(
        &mut self,
        shared: &Shared,
        first: &Slot,
        inode: &Inode,
        parts: &[&[u8]],
    ) -> Result<(), Full> {
        self.push_parts(shared, first, Some(inode.slot()), parts)
    }

    #[inline(always)]
    fn push_parts(
        &mut self,
        shared: &Shared,
        first: &Slot,
        facts: Option<Slot>,
        parts: &[&[u8]],
    ) -> Result<(), Full> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let head = 1 + u32::from(facts.is_some());
        let slots = head + len.div_ceil(32) as u32;
        if slots > 1 + EXTRA_MAX as u32 {
            return Ok(());
        }
        self.room(shared, slots)?;
        self.put(0, first);
        if let Some(facts) = facts {
            self.put(1, &facts);
        }
        let mut parts = parts.iter().copied();
        let mut part: &[u8] = &[];
        for at in head..slots {
            let mut bytes = [0; 32];
            let mut filled = 0;
            while filled < bytes.len() {
                if part.is_empty() {
                    match parts.next() {
                        Some(next) => part = next,
                        None => break,
                    }
                }
                let (now, rest) = part.split_at(part.len().min(bytes.len() - filled));
                bytes[filled..filled + now.len()].copy_from_slice(now);
                filled += now.len();
                part = rest;
            }
            let mut slot = [0; 4];
            for (word, bytes) in slot.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            self.put(at, &slot);
        }
        self.publish(shared, slots);
        Ok(())
    }

    /// Releases the ring; published events stay readable.
    pub fn release(self, shared: &Shared, pid: u32, tid: u32) {
        give_back(shared, self.ring, pid, tid);
    }

    #[inline]
    fn room(&mut self, shared: &Shared, slots: u32) -> Result<(), Full> {
        let used = |tail: u32, head: u32| tail.wrapping_sub(head).saturating_add(slots);
        if used(self.tail, self.head) > RING_SLOTS as u32 {
            self.head = shared.cursors[self.ring].head.0.load(Ordering::Acquire);
            if used(self.tail, self.head) > RING_SLOTS as u32 {
                return Err(Full);
            }
        }
        Ok(())
    }

    /// The slot published last.
    #[inline(always)]
    fn last_slot(&self) -> &'a [AtomicU64; 4] {
        &self.slots.0[self.tail.wrapping_sub(1) as usize % RING_SLOTS]
    }

    #[inline]
    fn put(&self, at: u32, slot: &Slot) {
        let place = self.tail.wrapping_add(at) as usize % RING_SLOTS;
        let words = &self.slots.0[place];
        for (word, value) in words.iter().zip(slot) {
            word.store(*value, Ordering::Relaxed);
        }
    }

    #[inline]
    fn publish(&mut self, shared: &Shared, slots: u32) {
        self.tail = self.tail.wrapping_add(slots);
        self.last = Last::NONE;
        shared.cursors[self.ring]
            .tail
            .0
            .store(self.tail, Ordering::Release);
    }
}

/// Makes a free ring a thread's. Returns whether it was free.
fn take(shared: &Shared, ring: usize, pid: u32, tid: u32) -> bool {
    let (word, me) = (&shared.owners[ring], owner(pid, tid));
    word.load(Ordering::Relaxed) == 0
        && word
            .compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
}

fn give_back(shared: &Shared, ring: usize, pid: u32, tid: u32) {
    let (word, me) = (&shared.owners[ring], owner(pid, tid));
    // A failure means that the consumer has already freed it.
    let _ = word.compare_exchange(me, 0, Ordering::AcqRel, Ordering::Relaxed);
}

pub(crate) fn owner(pid: u32, tid: u32) -> u64 {
    u64::from(pid) << 32 | u64::from(tid)
}
