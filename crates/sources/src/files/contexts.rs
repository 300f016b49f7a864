//! A value for each of a bounded number of keys, those longest unused dropped first.
//!
//! When the limit is reached, the oldest quarter is dropped at once: an insertion has a constant cost on average, and a lookup has no extra
//! cost.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// One entry in this many is dropped when there are too many.
const DROPPED: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Bounded<K, V> {
    entries: FxHashMap<K, (u64, V)>,
    limit: usize,
    tick: u64,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    /// For at most `limit` entries, at least one.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            entries: FxHashMap::default(),
            limit: limit.max(1),
            tick: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.entries.get(&key).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, (_, value))| (*key, value))
    }

    /// The value of a key, which counts as used now.
    pub(super) fn used(&mut self, key: K) -> Option<&mut V> {
        self.tick += 1;
        let (used, value) = self.entries.get_mut(&key)?;
        *used = self.tick;
        Some(value)
    }

    /// The value of a key, created if absent; `gone` receives dropped values.
    pub(super) fn entry(
        &mut self,
        key: K,
        make: impl FnOnce() -> V,
        gone: impl FnMut(K, V),
    ) -> &mut V {
        self.tick += 1;
        if self.entries.len() >= self.limit && !self.entries.contains_key(&key) {
            self.drop_oldest(gone);
        }
        let (used, value) = self.entries.entry(key).or_insert_with(|| (0, make()));
        *used = self.tick;
        value
    }

    pub(super) fn insert(&mut self, key: K, value: V, gone: impl FnMut(K, V)) {
        let mut value = Some(value);
        if let Some(kept) = self.used(key) {
            if let Some(value) = value.take() {
                *kept = value;
            }
        } else if let Some(value) = value {
            self.entry(key, || value, gone);
        }
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        self.entries.remove(&key).map(|(_, value)| value)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    fn drop_oldest(&mut self, mut gone: impl FnMut(K, V)) {
        let mut ages: Vec<(u64, K)> = self
            .entries
            .iter()
            .map(|(key, (used, _))| (*used, *key))
            .collect();
        let dropped = ages.len().div_ceil(DROPPED);
        if dropped < ages.len() {
            ages.select_nth_unstable_by_key(dropped, |(used, _)| *used);
        }
        for (_, key) in ages.drain(..dropped) {
            if let Some((_, value)) = self.entries.remove(&key) {
                gone(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_go_first_and_are_named() {
        let mut bounded = Bounded::new(8);
        let mut gone = Vec::new();
        for key in 0..8 {
            bounded.entry(key, || key, |key, _| gone.push(key));
        }
        bounded.used(0);
        bounded.entry(8, || 8, |key, _| gone.push(key));
        gone.sort();
        assert_eq!(gone, [1, 2]);
        assert!(bounded.get(0).is_some() && bounded.len() == 7);
        for key in 9..1000 {
            bounded.entry(key, || key, |_, _| {});
            assert!(bounded.len() <= 8);
        }
    }
}
