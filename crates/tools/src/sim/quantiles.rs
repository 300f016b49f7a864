//! The distribution of any number of values, in bounded memory, to one part in a thousand of each value.

use hdrhistogram::Histogram;

/// Digits of a value that count.
const DIGITS: u8 = 3;

/// A distribution.
#[derive(Clone, Debug)]
pub(super) struct Quantiles(Histogram<u64>);

impl Default for Quantiles {
    fn default() -> Self {
        Self(Histogram::new(DIGITS).expect("few digits"))
    }
}

impl Quantiles {
    pub(super) fn add(&mut self, value: u64) {
        // Its range grows as needed.
        let _ = self.0.record(value);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that this share of the values is at or below; `None` without values.
    pub(super) fn at(&self, share: f64) -> Option<u64> {
        let value = || self.0.lowest_equivalent(self.0.value_at_quantile(share));
        (!self.0.is_empty()).then(value)
    }

    /// The values that occur, smallest first, each with the share of all values that are at least as large.
    pub(super) fn shares(&self) -> impl Iterator<Item = (u64, f64)> {
        let mut rest = self.count();
        self.0.iter_recorded().map(move |step| {
            let share = rest as f64 / self.count() as f64;
            rest -= step.count_at_value();
            (self.0.lowest_equivalent(step.value_iterated_to()), share)
        })
    }

    /// The share of values that are at least this; `None` without values.
    pub(super) fn from(&self, least: u64) -> Option<f64> {
        let from = self.0.count_between(least, self.0.max().max(least));
        (!self.0.is_empty()).then(|| from as f64 / self.count() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_shares_are_of_the_values_added() {
        let mut all = Quantiles::default();
        assert_eq!((all.at(0.5), all.from(0)), (None, None));
        (1..=100).for_each(|value| all.add(value));
        assert_eq!(
            [all.at(0.1), all.at(0.5), all.at(1.0)],
            [Some(10), Some(50), Some(100)]
        );
        assert_eq!([all.from(91), all.from(101)], [Some(0.1), Some(0.0)]);
        let shares: Vec<(u64, f64)> = all.shares().collect();
        assert_eq!((shares[0], shares[90]), ((1, 1.0), (91, 0.1)));
        let most = u64::MAX / 4;
        all.add(most);
        let near = all.at(1.0).expect("values");
        assert!(near <= most && most - near <= most / 1000, "{near}");
    }
}
