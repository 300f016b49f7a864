//! Where in the queue an entry is found: a hash table of nothing but ordinals.
//!
//! The keys are in the queue's entries, so the table keeps only the low bits of an ordinal, which tell
//! it from any other in the queue at one time, and fills the rest of 32 bits with bits of the
//! hash, so that nearly every probe is decided without a look at an entry. Linear probing, and deletion
//! by shifting back: no tombstones, so the table never grows and its size is a promise (6 bytes an entry).
//!
//! Invariant: no slot between an ordinal's home and its slot is empty.

/// An empty slot; a used one has [`USED`] set.
const EMPTY: u32 = 0;
const USED: u32 = 1 << 31;

/// Ordinals by hash.
#[derive(Debug)]
pub(crate) struct Index {
    slots: Vec<u32>,
    /// Low bits of a slot that hold the ordinal's.
    ordinal: u32,
}

impl Index {
    /// A table for up to `capacity` ordinals that lie within as many of each other.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: vec![EMPTY; capacity + capacity / 2 + 1],
            ordinal: (capacity.next_power_of_two() as u32 - 1).max(1),
        }
    }

    /// The whole ordinal from its low bits, given that it is not below `base`.
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

    /// The slot and the ordinal of this hash for which `is` holds; `base` is the lowest ordinal there is.
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

    /// Enter an ordinal. There must be room.
    pub(crate) fn insert(&mut self, hash: u64, ordinal: u64) {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            at = self.after(at);
        }
        self.slots[at] = USED | hash as u32 & !self.ordinal | ordinal as u32 & self.ordinal;
    }

    /// Empty a slot; `hash` tells the hash of any other ordinal entered.
    pub(crate) fn remove(&mut self, mut at: usize, base: u64, hash: impl Fn(u64) -> u64) {
        let slots = self.slots.len();
        let mut next = self.after(at);
        loop {
            let slot = self.slots[next];
            if slot == EMPTY {
                break;
            }
            let home = self.home(hash(self.whole(slot, base)));
            // It may move as far back as its home.
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
        /// Against a plain list: what was entered and not removed is found, and nothing else.
        #[test]
        fn the_table_agrees_with_a_list(
            base in 0u64..u64::from(u32::MAX) * 2,
            ops in proptest::collection::vec((any::<bool>(), 0u64..40), 0..300),
        ) {
            let mut index = Index::new(40);
            let mut held: Vec<u64> = Vec::new();
            for (insert, n) in ops {
                let ordinal = base + n;
                let found = index.find(hash(ordinal), base, |one| one == ordinal);
                prop_assert_eq!(found.map(|(_, ordinal)| ordinal), held.contains(&ordinal).then_some(ordinal));
                match found {
                    None if insert => {
                        index.insert(hash(ordinal), ordinal);
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
