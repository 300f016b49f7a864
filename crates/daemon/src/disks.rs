//! The sessions' findings on disks: whether distance costs time on them.
//!
//! A disk that says so has to prove it, by reads that hold up the programs': 20 ms of a disk that turns, at the start of each
//! session, which is when a program waits most.
//!
//! Invariant: a finding on one disk is not used for another that has its number now.

use foreread_profiles::Key;
use foreread_sys::mounts::Mount;
use rustc_hash::FxHashMap;

/// Disks that are remembered.
const MOST: usize = 64;

/// Identifies the disk behind an `st_dev` among the present mounts.
type Identify = fn(u64, &[Mount]) -> Key;

/// The known disks, by `st_dev`.
pub(crate) struct Disks {
    known: FxHashMap<u64, (Key, bool)>,
    identify: Identify,
}

impl Default for Disks {
    fn default() -> Self {
        Self {
            known: FxHashMap::default(),
            identify: Key::of,
        }
    }
}

impl Disks {
    /// A session has found out whether distance costs time on these.
    pub(crate) fn learn(&mut self, found: &[(u64, bool)]) {
        if found.is_empty() {
            return;
        }
        let mounts = Mount::all().unwrap_or_default();
        for &(dev, positions) in found {
            if self.known.len() < MOST || self.known.contains_key(&dev) {
                let key = (self.identify)(dev, &mounts);
                self.known.insert(dev, (key, positions));
            }
        }
    }

    /// The findings on disks that are still the same; the others are forgotten.
    pub(crate) fn known(&mut self) -> Vec<(u64, bool)> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let mounts = Mount::all().unwrap_or_default();
        let identify = self.identify;
        self.known
            .retain(|dev, (key, _)| identify(*dev, &mounts).is(key));
        let known = self.known.iter();
        known
            .map(|(dev, (_, positions))| (*dev, *positions))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn a_disk_is_known_until_another_has_its_number() {
        static SECTORS: AtomicU64 = AtomicU64::new(8);
        let identify: Identify = |dev, _| Key {
            name: format!("disk {dev}"),
            sectors: if dev == 2 { SECTORS.load(Relaxed) } else { 9 },
            id: String::new(),
        };
        let mut disks = Disks {
            identify,
            ..Disks::default()
        };
        disks.learn(&[(1, true), (2, true)]);
        disks.learn(&[(1, false)]);
        let mut known = disks.known();
        known.sort_unstable();
        assert_eq!(known, [(1, false), (2, true)]);
        SECTORS.store(16, Relaxed);
        assert_eq!(disks.known(), [(1, false)]);
        disks.learn(&(10..1000).map(|dev| (dev, true)).collect::<Vec<_>>());
        assert_eq!(disks.known().len(), MOST);
    }
}
