//! The record of each program's predictions, right and wrong, in bytes. The engine judges a program's first prediction by it.
//!
//! Each session of the engine starts with these figures. They are saved with the models, so a restart of the daemon keeps
//! them. At each start all figures are halved, so that old ones count little.
//!
//! Invariant: at most [`PROGRAMS`] programs are kept; those with the fewest bytes go first.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustc_hash::FxHashMap;

use crate::programs::{Key, PROGRAMS};

/// Bytes that were fetched for a program and read, and those that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) right: u64,
    pub(crate) wrong: u64,
}

/// The records of all programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proofs(FxHashMap<Key, Proof>);

impl Proofs {
    pub(crate) fn of(&self, key: &Key) -> Proof {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Adds the outcome of fetches for a program.
    pub(crate) fn add(&mut self, key: &Key, more: Proof) {
        if more == Proof::default() {
            return;
        }
        if self.0.len() >= PROGRAMS && !self.0.contains_key(key) {
            let weight = |proof: &Proof| proof.right.saturating_add(proof.wrong);
            let least = self.0.iter().min_by_key(|(_, proof)| weight(proof));
            if let Some(least) = least.map(|(key, _)| key.clone()) {
                self.0.remove(&least);
            }
        }
        let proof = self.0.entry(key.clone()).or_default();
        proof.right = proof.right.saturating_add(more.right);
        proof.wrong = proof.wrong.saturating_add(more.wrong);
    }

    /// All records as bytes: for each program its user, both numbers, the length of its name in a byte, and the name. Numbers are
    /// little-endian.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for ((name, uid), Proof { right, wrong }) in &self.0 {
            let Ok(length) = u8::try_from(name.len()) else {
                continue;
            };
            bytes.extend(uid.to_le_bytes());
            bytes.extend(right.to_le_bytes());
            bytes.extend(wrong.to_le_bytes());
            bytes.push(length);
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    /// Decodes records, each counted half.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Self> {
        let mut proofs = Self::default();
        while !bytes.is_empty() {
            let uid = u32::from_le_bytes(take(&mut bytes)?);
            let right = u64::from_le_bytes(take(&mut bytes)?) / 2;
            let wrong = u64::from_le_bytes(take(&mut bytes)?) / 2;
            let [length] = take(&mut bytes)?;
            let (name, rest) = bytes.split_at_checked(length.into()).context("it is cut")?;
            bytes = rest;
            let name = std::str::from_utf8(name).context("a name")?;
            ensure!(proofs.0.len() < PROGRAMS, "more than {PROGRAMS} programs");
            proofs.add(&(Arc::from(name), uid), Proof { right, wrong });
        }
        Ok(proofs)
    }
}

/// The first bytes of these, which are left out from then on.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().context("it is cut")?;
    *bytes = rest;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(number: u64) -> Key {
        (Arc::from(format!("program {number}")), 1000)
    }

    #[test]
    fn proofs_are_bounded_saved_and_count_half_after_a_start() {
        let mut proofs = Proofs::default();
        for number in 0..1000 {
            let (right, wrong) = (number * 10, number);
            proofs.add(&key(number), Proof { right, wrong });
        }
        assert_eq!(proofs.0.len(), PROGRAMS);
        let later = Proofs::decode(&proofs.encode()).expect("saved");
        assert_eq!(later.0.len(), PROGRAMS);
        let (right, wrong) = (4995, 499);
        assert_eq!(later.of(&key(999)), Proof { right, wrong });
        assert_eq!(later.of(&key(1)), Proof::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_proofs_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(proofs) = Proofs::decode(&bytes) {
                prop_assert!(proofs.0.len() <= PROGRAMS);
            }
        }
    }
}
