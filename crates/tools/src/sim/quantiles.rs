//! The distribution of any number of values, in constant memory.
//!
//! Values below 512 are counted exactly, greater ones to one part in 256.

/// Bits of a value that are kept.
const KEPT: u32 = 8;

/// A distribution.
#[derive(Clone, Debug, Default)]
pub(super) struct Quantiles {
    counts: Vec<u64>,
    total: u64,
}

impl Quantiles {
    pub(super) fn add(&mut self, value: u64) {
        let place = place(value);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.total += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.total
    }

    /// The value that this share of the values is at or below; `None` without values.
    pub(super) fn at(&self, share: f64) -> Option<u64> {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (place, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return Some(value(place));
            }
        }
        None
    }

    /// The values that occur, smallest first, each with the share of all values that are at least as large.
    pub(super) fn shares(&self) -> impl Iterator<Item = (u64, f64)> {
        let mut rest = self.total;
        let counts = self.counts.iter().enumerate();
        let occurring = counts.filter(|(_, count)| **count > 0);
        occurring.map(move |(place, count)| {
            let share = rest as f64 / self.total as f64;
            rest -= count;
            (value(place), share)
        })
    }

    /// The share of values that are at least this.
    pub(super) fn from(&self, least: u64) -> Option<f64> {
        let from = self.counts.iter().skip(place(least)).sum::<u64>();
        (self.total > 0).then(|| from as f64 / self.total as f64)
    }
}

fn place(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(KEPT + 1);
    ((u64::from(shift) << KEPT) + (value >> shift)) as usize
}

/// The least value of a place.
fn value(place: usize) -> u64 {
    let shift = (place >> KEPT).saturating_sub(1) as u32;
    ((place as u64) - (u64::from(shift) << KEPT)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_below_512_and_near_above() {
        for at in 0..512 {
            assert_eq!(value(place(at)), at);
        }
        for at in (0..63).map(|bit| (1_u64 << bit) * 3 / 2) {
            let near = value(place(at));
            assert!(near <= at && at - near <= at >> KEPT, "{at}: {near}");
        }
        let mut all = Quantiles::default();
        assert_eq!(all.at(0.5), None);
        (1..=100).for_each(|value| all.add(value));
        assert_eq!(
            [all.at(0.1), all.at(0.5), all.at(1.0)],
            [Some(10), Some(50), Some(100)]
        );
        assert_eq!(all.from(91), Some(0.1));
        let shares: Vec<(u64, f64)> = all.shares().collect();
        assert_eq!((shares[0], shares[90]), ((1, 1.0), (91, 0.1)));
    }
}
