//! The arithmetic of the tables: medians, spreads, improvement, masked I/O.
//!
//! All functions are pure. Times are in seconds. Every figure of a table is computed from medians, except the "within 1 %"
//! figures, which are medians of paired ratios, so that a drift of the machine during the run cancels out.

use serde::Serialize;

/// A median and the range around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest sample.
    pub min: f64,
    /// Median; the mean of the two middle samples if the count is even.
    pub median: f64,
    /// Largest sample.
    pub max: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Spread {
    /// The spread of `samples`; `None` without samples.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        Some(Self {
            min,
            median,
            max,
            samples: sorted.len(),
        })
    }
}

/// The median of `with[i] / without[i]`: 1.01 is 1 % slower.
pub fn paired_ratio(with: &[f64], without: &[f64]) -> Option<Spread> {
    Spread::of(ratios(with, without))
}

/// How far the median of the ratios may be from the true one: half the width of the interval between two of the ratios that
/// contains the true median in 95 of 100 such series, for any distribution of the ratios. `None` for fewer than six pairs, which
/// have no such interval.
pub fn ratio_margin(with: &[f64], without: &[f64]) -> Option<f64> {
    median_margin(ratios(with, without))
}

/// The median of `with[i] - without[i]`, in seconds: the time added to a run.
pub fn paired_difference(with: &[f64], without: &[f64]) -> Option<Spread> {
    Spread::of(differences(with, without))
}

/// How far the median of the differences may be from the true one, as in [`ratio_margin`].
pub fn difference_margin(with: &[f64], without: &[f64]) -> Option<f64> {
    median_margin(differences(with, without))
}

/// Half the width of the interval of [`ratio_margin`], for any figures.
fn median_margin(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    // The number of samples below the true median is distributed like the number of heads in as many throws of a coin.
    let count = sorted.len();
    let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut fewer, mut outside) = (0.0, 0);
    loop {
        fewer += chance;
        if fewer > 0.025 {
            break;
        }
        outside += 1;
        chance *= (count + 1 - outside) as f64 / outside as f64;
    }
    let last = outside.checked_sub(1)?;
    Some((sorted[count - 1 - last] - sorted[last]) / 2.0)
}

/// Largest margin for the cost to a program that foreread cannot help, as a share of the plain time.
const MARGIN: f64 = 0.005;

/// True if the pairs give the median of their ratios to within half a percent ([`ratio_margin`]), whatever the median is.
pub fn is_told(with: &[f64], without: &[f64]) -> bool {
    ratio_margin(with, without).is_some_and(|margin| margin <= MARGIN)
}

/// The added time that a hot command may have, in seconds: the larger of 2 ms and 1 %.
pub fn allowed(plain: f64) -> f64 {
    (0.01 * plain).max(0.002)
}

/// True if the pairs give the median added time to within a quarter of the allowed time ([`allowed`]).
pub fn is_added_told(with: &[f64], without: &[f64]) -> bool {
    let plain = Spread::of(without.iter().copied());
    difference_margin(with, without)
        .zip(plain)
        .is_some_and(|(margin, plain)| margin <= allowed(plain.median) / 4.0)
}

fn differences(with: &[f64], without: &[f64]) -> impl Iterator<Item = f64> {
    with.iter()
        .zip(without)
        .map(|(with, without)| with - without)
}

fn ratios(with: &[f64], without: &[f64]) -> impl Iterator<Item = f64> {
    with.iter()
        .zip(without)
        .map(|(with, without)| with / without)
}

/// The share of the plain time that is gone, in percent; negative if the run became slower.
pub fn improvement_pct(plain: f64, foreread: f64) -> f64 {
    (plain - foreread) / plain * 100.0
}

/// The shortest time that any prefetcher could reach: the larger of the program's time with everything in memory and the time to
/// read its bytes at full depth.
pub fn limit(hot: f64, deep: Option<f64>) -> f64 {
    deep.map_or(hot, |deep| hot.max(deep))
}

/// The share of the avoidable time that is gone, in percent.
///
/// `None` if less than 2 % of the plain time is avoidable: the quotient would be noise.
pub fn masked_pct(plain: f64, foreread: f64, limit: f64) -> Option<f64> {
    let avoidable = plain - limit;
    (avoidable > 0.02 * plain).then(|| (plain - foreread) / avoidable * 100.0)
}

/// The gain of a first run as a percentage of the gain of a replay, round by round.
///
/// Rounds in which the replay gains less than a tenth of the plain time are left out: the quotient would be noise.
pub fn gain_share_pct(plain: &[f64], first: &[f64], replay: &[f64]) -> Option<Spread> {
    let rounds = plain.iter().zip(first).zip(replay);
    Spread::of(rounds.filter_map(|((plain, first), replay)| {
        let gain = plain - replay;
        (gain > 0.1 * plain).then(|| (plain - first) / gain * 100.0)
    }))
}

/// Jain's fairness of shares: 1 when all are equal, 1/n when one has everything.
pub fn fairness(shares: impl IntoIterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares > 0.0 {
        sum * sum / (count * squares)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_run_is_held_against_the_replay_of_its_own_round() {
        let share =
            gain_share_pct(&[10.0, 20.0, 10.0], &[6.0, 4.0, 1.0], &[2.0, 4.0, 9.9]).unwrap();
        assert_eq!((share.min, share.max, share.samples), (50.0, 100.0, 2));
        assert_eq!(gain_share_pct(&[10.0], &[5.0], &[9.9]), None);
        assert_eq!(gain_share_pct(&[10.0], &[5.0], &[]), None);
    }

    #[test]
    fn median_of_an_even_count_is_the_mean_of_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.5, 4.0));
        assert_eq!(Spread::of([5.0, 1.0, 3.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn pairing_cancels_a_drift_that_medians_would_not() {
        // The machine slows down threefold during the run; foreread is always 1 % slower.
        let plain = [1.0, 1.5, 2.0, 2.5, 3.0];
        let with = plain.map(|t| t * 1.01);
        let ratio = paired_ratio(&with, &plain).unwrap();
        assert!((ratio.median - 1.01).abs() < 1e-9);
        assert!((ratio.max - ratio.min).abs() < 1e-9);
    }

    #[test]
    fn a_medians_margin_is_between_order_statistics_and_shrinks_with_more_pairs() {
        let margin = |count: u32| {
            let with: Vec<f64> = (0..count).map(f64::from).collect();
            ratio_margin(&with, &vec![1.0; count as usize])
        };
        assert_eq!(margin(5), None);
        assert_eq!(margin(0), None);
        // From the table of the sign test: of 6 samples the 1st and 6th, of 25 the 8th and 18th, of 100 the 40th and 61st.
        assert_eq!(margin(6), Some(2.5));
        assert_eq!(margin(25), Some(5.0));
        assert_eq!(margin(100), Some(10.5));
    }

    #[test]
    fn what_is_added_is_told_to_a_quarter_of_what_may_be() {
        assert_eq!((allowed(0.1), allowed(1.0)), (0.002, 0.01));
        let plain = vec![0.1; 25];
        let spread = |step: f64| -> Vec<f64> {
            let pairs = (0..25).map(f64::from);
            pairs.map(|n| 0.105 + (n - 12.0) * step).collect()
        };
        // Of 25 samples the 8th and the 18th: ten steps apart.
        let added = paired_difference(&spread(0.0001), &plain).unwrap();
        assert!((added.median - 0.005).abs() < 1e-9);
        assert!(is_added_told(&spread(0.000_099), &plain));
        assert!(!is_added_told(&spread(0.000_101), &plain));
        assert!(!is_added_told(&spread(0.0)[..5], &plain[..5]), "too few");
    }

    #[test]
    fn improvement_is_the_papers_and_negative_for_a_loss() {
        assert!((improvement_pct(52.54, 7.63) - 85.48).abs() < 0.01);
        assert!((improvement_pct(4.61, 4.84) + 4.99).abs() < 0.01);
    }

    #[test]
    fn fairness_is_one_for_equals_and_one_nth_for_a_single_winner() {
        assert_eq!(fairness([2.0, 2.0, 2.0]), 1.0);
        assert!((fairness([1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((fairness([1.0, 0.5]) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn limit_is_the_slower_of_computing_and_reading() {
        assert_eq!(limit(1.0, Some(3.0)), 3.0);
        assert_eq!(limit(4.0, Some(3.0)), 4.0);
        assert_eq!(limit(4.0, None), 4.0);
    }

    #[test]
    fn reaching_the_limit_masks_everything_and_standing_still_nothing() {
        assert_eq!(masked_pct(10.0, 2.0, 2.0), Some(100.0));
        assert_eq!(masked_pct(10.0, 10.0, 2.0), Some(0.0));
        assert_eq!(masked_pct(10.0, 6.0, 2.0), Some(50.0));
        assert_eq!(masked_pct(10.0, 9.9, 9.9), None);
    }
}
