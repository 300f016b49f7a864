//! Trails: the last successor of the same latest 24, 12 or 6 events.
//!
//! A partition grows by one node per instance, so after three runs a pattern has four events. Programs begin alike: a linker started 39
//! times opens the same 14 files each time, then its own. No pattern shorter than this beginning shows which of the 39 it is. The latest
//! two dozen events do, after a single run, because they reach back beyond the beginning. Their hash is enough to distinguish them.
//!
//! The lengths are in geometric progression, as in predictors of branches: the longest that is known is believed.
//!
//! Invariant: as many trails as the limit says; an event costs one look-up for each length.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Symbol;
use super::contexts::Bounded;

/// Events of a trail, the longest first.
const LENGTHS: [usize; 3] = [24, 12, 6];
/// Events that are needed of a sequence.
pub(super) const MEMORY: usize = LENGTHS[0];
/// Trails in memory, at most, three per event: the last 87,000 events. Each takes up to 50 bytes in memory, and [`KEPT`] bytes on disk.
const MOST: usize = 1 << 18;
/// Trails per file with a partition in memory, at most.
const FOR_FILE: usize = 16;
/// Bytes of a saved trail: its key, its successor, and both counts.
const KEPT: usize = 14;
/// Times that are counted, at most; then both counts are halved, so that the last times count most.
const TIMES: u8 = 15;

/// The successor of a trail.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    next: Symbol,
    /// Number of times that it occurred again, and that another one occurred: at least one if the first successor was replaced.
    right: u8,
    wrong: u8,
}

impl Step {
    fn new(next: Symbol) -> Self {
        Self {
            next,
            right: 0,
            wrong: 0,
        }
    }

    fn see(&mut self, symbol: Symbol) {
        if symbol == self.next {
            self.right += 1;
        } else if self.wrong >= self.right {
            // The successor has changed or alternates: neither is certain.
            *self = Self {
                next: symbol,
                right: 0,
                wrong: 1,
            };
            return;
        } else {
            self.wrong += 1;
        }
        if self.right.max(self.wrong) > TIMES {
            (self.right, self.wrong) = (self.right / 2, self.wrong / 2);
        }
    }

    /// The one time before they were counted is a right one.
    fn likelihood(self) -> f64 {
        let right = f64::from(self.right) + 1.0;
        right / (right + f64::from(self.wrong))
    }
}

/// Bytes that are no trails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrails {
    /// The length is no number of trails up to the limit.
    #[error("{0} bytes are no trails")]
    Length(usize),
    /// Counts that no trail has.
    #[error("trail {0} cannot be there")]
    Counts(usize),
}

/// All of them. Clones are the same trails: one is the model's, another is saved.
#[derive(Clone, Debug)]
pub struct Trails(Arc<Mutex<Bounded<u64, Step>>>);

impl Default for Trails {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl Trails {
    /// A table with this limit.
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Bounded::new(limit))))
    }

    /// A table for this many files.
    pub(super) fn beside(files: usize) -> Self {
        Self::new(files.saturating_mul(FOR_FILE).min(MOST))
    }

    fn lock(&self) -> MutexGuard<'_, Bounded<u64, Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them as bytes, [`KEPT`] each, numbers little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, step) in self.lock().iter() {
            bytes.extend(key.to_le_bytes());
            bytes.extend(step.next.0.to_le_bytes());
            bytes.extend([step.right, step.wrong]);
        }
        bytes
    }

    /// Decodes trails.
    ///
    /// # Errors
    /// When the bytes are not encoded trails.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoTrails> {
        let (kept, rest) = bytes.as_chunks::<KEPT>();
        if kept.len() > MOST || !rest.is_empty() {
            return Err(NoTrails::Length(bytes.len()));
        }
        let trails = Self::default();
        let mut all = trails.lock();
        for (place, [a, b, c, d, e, f, g, h, i, j, k, l, right, wrong]) in kept.iter().enumerate() {
            if (*right).max(*wrong) > TIMES {
                return Err(NoTrails::Counts(place));
            }
            let step = Step {
                next: Symbol(u32::from_le_bytes([*i, *j, *k, *l])),
                right: *right,
                wrong: *wrong,
            };
            let key = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            all.insert(key, step, |_, _| {});
        }
        drop(all);
        Ok(trails)
    }

    /// After these events, the oldest first, came this one.
    pub(super) fn see(&self, before: &VecDeque<Symbol>, symbol: Symbol) {
        let mut all = self.lock();
        for length in LENGTHS {
            let Some(key) = key(length, before.len(), |at| before[at]) else {
                continue;
            };
            match all.used(key) {
                Some(step) => step.see(symbol),
                None => all.insert(key, Step::new(symbol), |_, _| {}),
            }
        }
    }

    /// The successor of this many events, with its likelihood.
    pub(super) fn next(
        &self,
        count: usize,
        event: impl Fn(usize) -> Symbol,
    ) -> Option<(Symbol, f64)> {
        let all = self.lock();
        let known = |length| all.get(key(length, count, &event)?);
        let step = LENGTHS.into_iter().find_map(known)?;
        Some((step.next, step.likelihood()))
    }

    pub(super) fn bytes(&self) -> usize {
        self.len() * size_of::<(u64, u64, Step)>()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// The key of the last `length` of `count` events.
fn key(length: usize, count: usize, event: impl Fn(usize) -> Symbol) -> Option<u64> {
    // An odd number near 2^64 divided by the golden ratio, by which the bits of a product are spread.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let from = count.checked_sub(length)?;
    let add = |hash: u64, at| (hash.rotate_left(23) ^ u64::from(event(at).0)).wrapping_mul(SPREAD);
    Some((from..count).fold(length as u64, add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn learn(trails: &Trails, events: &[u32]) {
        for (at, symbol) in events.iter().enumerate() {
            let before = events[at.saturating_sub(MEMORY)..at].iter();
            trails.see(&before.copied().map(Symbol).collect(), Symbol(*symbol));
        }
    }

    fn next(trails: &Trails, events: &[u32]) -> Option<(Symbol, f64)> {
        trails.next(events.len(), |at| Symbol(events[at]))
    }

    #[test]
    fn of_two_trails_that_end_alike_the_longer_one_tells() {
        let beginning = 100..110;
        let run = |number: u32| [number].into_iter().chain(beginning.clone());
        let trails = Trails::new(1000);
        let events: Vec<u32> = (1..9).flat_map(|n| run(n).chain([n + 50])).collect();
        learn(&trails, &events);
        for n in 1..9 {
            let events: Vec<u32> = run(n).chain([]).collect();
            assert_eq!(events.len(), 11, "shorter than the second length");
            let before: Vec<u32> = match n {
                1 => continue,
                _ => [n - 1 + 50].into_iter().chain(events).collect(),
            };
            assert_eq!(next(&trails, &before), Some((Symbol(n + 50), 1.0)), "{n}");
        }
    }

    #[test]
    fn what_goes_another_way_is_less_likely_and_then_forgotten() {
        let mut step = Step::new(Symbol(1));
        assert_eq!(step.likelihood(), 1.0);
        for _ in 0..100 {
            step.see(Symbol(1));
        }
        step.see(Symbol(2));
        assert!(step.likelihood() > 0.8 && step.next == Symbol(1));
        for _ in 0..20 {
            step.see(Symbol(2));
        }
        assert!(
            step.likelihood() > 0.8 && step.next == Symbol(2),
            "{step:?}"
        );
    }

    #[test]
    fn what_goes_another_way_each_time_is_never_more_likely_than_not() {
        for ways in 2..5 {
            let mut step = Step::new(Symbol(0));
            for number in 1..100 {
                step.see(Symbol(number % ways));
                assert!(step.likelihood() <= 0.5, "{step:?} of {ways}");
            }
        }
    }

    #[test]
    fn trails_are_decoded_as_they_were_encoded() {
        let trails = Trails::default();
        let events: Vec<u32> = (0..400).map(|at| at % 37).collect();
        learn(&trails, &events);
        let again = Trails::decode(&trails.encode()).expect("trails");
        assert_eq!(again.len(), trails.len());
        for at in 30..400 {
            assert_eq!(next(&again, &events[..at]), next(&trails, &events[..at]));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_trails_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(trails) = Trails::decode(&bytes) {
                prop_assert!(trails.len() <= bytes.len() / KEPT);
            }
        }

        #[test]
        fn trails_are_bounded_and_a_repetition_is_known(events in proptest::collection::vec(any::<u32>(), 30..200)) {
            let trails = Trails::new(64);
            learn(&trails, &events);
            prop_assert!(trails.len() <= 64);
            let trails = Trails::new(10_000);
            learn(&trails, &events);
            let at = events.len() - 1;
            let last = Symbol(events[at]);
            prop_assert_eq!(next(&trails, &events[..at]).map(|one| one.0), Some(last));
        }
    }
}
