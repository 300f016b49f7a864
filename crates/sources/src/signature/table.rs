//! A table of fixed size that keeps recently used values.
//!
//! Invariant: `places[key]` is the index of the entry with that key, and each entry has a place.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, with a limit.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    places: FxHashMap<K, usize>,
    entries: Vec<TableEntry<K, V>>,
    /// The entry asked for last: a program mostly reads again where it has just read.
    last: usize,
    most: usize,
}

#[derive(Debug)]
struct TableEntry<K, V> {
    key: K,
    /// When it was used last.
    used: u64,
    value: V,
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    /// A table with this limit.
    pub(super) fn new(most: usize) -> Self {
        Self {
            places: FxHashMap::default(),
            entries: Vec::new(),
            last: 0,
            most,
        }
    }

    fn place(&self, key: K) -> Option<usize> {
        match self.entries.get(self.last) {
            Some(entry) if entry.key == key => Some(self.last),
            _ => self.places.get(&key).copied(),
        }
    }

    /// The value of this key.
    pub(super) fn get(&self, key: K) -> Option<&V> {
        Some(&self.entries[self.place(key)?].value)
    }

    /// The value of this key.
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.last = self.place(key)?;
        Some(&mut self.entries[self.last].value)
    }

    /// The value of this key, marked as used now; created if absent.
    pub(super) fn used(&mut self, key: K, now: u64, make: impl FnOnce() -> V) -> &mut V {
        self.last = match self.place(key) {
            Some(place) => place,
            None => self.insert(key, now, make()),
        };
        let entry = &mut self.entries[self.last];
        entry.used = now;
        &mut entry.value
    }

    /// Appends a value; if there is no room, the least recently used half is dropped.
    fn insert(&mut self, key: K, used: u64, value: V) -> usize {
        if self.entries.len() >= self.most {
            let mut times: Vec<_> = self.entries.iter().map(|entry| entry.used).collect();
            let middle = *times.select_nth_unstable(self.most / 2).1;
            self.retain(|_, used| used > middle);
        }
        let place = self.entries.len();
        self.entries.push(TableEntry { key, used, value });
        self.places.insert(key, place);
        place
    }

    /// Keeps the values for which this is true, of their keys and of when they were used last.
    pub(super) fn retain(&mut self, keeps: impl Fn(K, u64) -> bool) {
        self.entries.retain(|entry| keeps(entry.key, entry.used));
        self.places.clear();
        let keys = self.entries.iter().enumerate();
        self.places
            .extend(keys.map(|(place, entry)| (entry.key, place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut table = Table::new(8);
        for number in 0..1000_u64 {
            table.used(number, number, || number);
            table.used(0, number, || unreachable!("0 is used all the time"));
            assert!(table.entries.len() <= 8);
            assert_eq!(table.get(number), Some(&number));
        }
        assert!(table.get(999).is_some() && table.get(1).is_none());
        table.retain(|key, _| key != 999);
        assert_eq!(table.get(999), None);
        assert_eq!(table.get_mut(0), Some(&mut 0));
    }
}
