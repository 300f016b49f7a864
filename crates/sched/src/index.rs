//! Finds entries in the queue: a hash table of ordinals only.
//!
//! The keys are in the queue's entries. The table keeps only the low bits of an ordinal, which distinguish the entries present at one time,
//! and fills the rest of 32 bits with bits of the hash, so nearly every probe is decided without reading an entry. Probing is linear, and
//! deletion shifts entries back: there are no tombstones, so its size is bounded (6 bytes per entry at most). It starts small, because even
//! few entries touch all of a table, and the memory may be the program's own.
//!
//! Invariant: no slot between an ordinal's home and its slot is empty.

/// An empty slot; a used one has [`USED`] set.
const EMPTY: u32 = 0;
const USED: u32 = 1 << 31;
/// Slots to start with.
const FEW: usize = 1024;

/// Ordinals by hash.
#[derive(Debug)]
pub(crate) struct Index {
    slots: Vec<u32>,
    used: usize,
    /// Slots at most.
    most: usize,
    /// Low bits of a slot that hold the ordinal's.
    ordinal: u32,
}

impl Index {
    /// A table for up to `capacity` ordinals that lie within as many of each other.
    pub(crate) fn new(capacity: usize) -> Self {
        let most = capacity + capacity / 2 + 1;
        Self {
            slots: vec![EMPTY; most.min(FEW)],
            used: 0,
            most,
            ordinal: (capacity.next_power_of_two() as u32 - 1).max(1),
        }
    }

    /// The whole ordinal from its low bits; it must be at least `base`.
    fn whole(&self, slot: u32, base: u64) -> u64 {
        base + u64::from(slot.wrapping_sub(base as u32) & self.ordinal)
    }

    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    /// The slot and the ordinal with this hash for which `is` returns true; `base` is the lowest ordinal in use.
    pub(crate) fn find(
        &self,
        hash: u64,
        base: u64,
        mut is: impl FnMut(u64) -> bool,
    ) -> Option<(usize, u64)> {
        let tag = USED | (hash as u32 & !self.ordinal);
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            if slot & !self.ordinal == tag {
                let ordinal = self.whole(slot, base);
                if is(ordinal) {
                    return Some((at, ordinal));
                }
            }
            at = self.after(at);
        }
    }

    /// Put another ordinal of the same hash into a slot.
    pub(crate) fn replace(&mut self, at: usize, ordinal: u64) {
        self.slots[at] = self.slots[at] & !self.ordinal | ordinal as u32 & self.ordinal;
    }

    /// Inserts an ordinal. There must be room. `base` is the lowest ordinal in use, and `of` returns the hash of any other ordinal in the
    /// table.
    pub(crate) fn insert(&mut self, hash: u64, ordinal: u64, base: u64, of: impl Fn(u64) -> u64) {
        self.used += 1;
        if self.used + self.used / 2 + 1 > self.slots.len() && self.slots.len() < self.most {
            let slots = vec![EMPTY; (self.slots.len() * 2).min(self.most)];
            for slot in std::mem::replace(&mut self.slots, slots) {
                if slot != EMPTY {
                    let one = self.whole(slot, base);
                    self.put(of(one), one);
                }
            }
        }
        self.put(hash, ordinal);
    }

    fn put(&mut self, hash: u64, ordinal: u64) {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            at = self.after(at);
        }
        self.slots[at] = USED | hash as u32 & !self.ordinal | ordinal as u32 & self.ordinal;
    }

    /// Empties a slot; `hash` returns the hash of any other ordinal in the table.
    pub(crate) fn remove(&mut self, mut at: usize, base: u64, hash: impl Fn(u64) -> u64) {
        self.used -= 1;
        let slots = self.slots.len();
        let mut next = self.after(at);
        loop {
            let slot = self.slots[next];
            if slot == EMPTY {
                break;
            }
            let home = self.home(hash(self.whole(slot, base)));
            // It may move back no further than its home slot.
            if way(home, next, slots) >= way(at, next, slots) {
                self.slots[at] = slot;
                at = next;
            }
            next = self.after(next);
        }
        self.slots[at] = EMPTY;
    }
}

/// Slots from one to another, around the end.
fn way(from: usize, to: usize, slots: usize) -> usize {
    if to >= from {
        to - from
    } else {
        to + slots - from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few distinct hashes, so that runs collide, and tags that differ.
    fn hash(ordinal: u64) -> u64 {
        (ordinal % 5) << 62 | (ordinal % 7) << 40 | (ordinal % 3) << 20
    }

    proptest! {
        /// Compared with a plain list: inserted and not removed ordinals are found, and no others.
        #[test]
        fn the_table_agrees_with_a_list(
            base in 0u64..u64::from(u32::MAX) * 2,
            ops in proptest::collection::vec((any::<bool>(), 0u64..40), 0..300),
            slots in 2usize..61,
        ) {
            let mut index = Index::new(40);
            index.slots.truncate(slots);
            let mut held: Vec<u64> = Vec::new();
            for (insert, n) in ops {
                let ordinal = base + n;
                let found = index.find(hash(ordinal), base, |one| one == ordinal);
                prop_assert_eq!(found.map(|(_, ordinal)| ordinal), held.contains(&ordinal).then_some(ordinal));
                match found {
                    None if insert => {
                        index.insert(hash(ordinal), ordinal, base, hash);
                        held.push(ordinal);
                    }
                    Some((at, _)) if !insert => {
                        index.remove(at, base, hash);
                        held.retain(|&one| one != ordinal);
                    }
                    _ => {}
                }
                for &one in &held {
                    prop_assert!(index.find(hash(one), base, |ordinal| ordinal == one).is_some());
                }
            }
        }
    }
}
