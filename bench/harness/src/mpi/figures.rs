//! Bandwidths, and the gain from foreread.

use anyhow::{Context, Result};

use super::Measured;
use crate::stats::{self, Spread};

/// The published gains.
const PAPER: &str = include_str!("../../../tables/signature.csv");

/// Bytes and seconds, in the format that the program writes.
pub(super) fn told(text: &str) -> Result<(u64, f64)> {
    let (bytes, seconds) = text.trim().split_once(' ').context("two figures")?;
    let bytes = bytes.parse().context("bytes")?;
    let seconds: f64 = seconds.parse().context("seconds")?;
    anyhow::ensure!(seconds > 0.0, "the calls took no time");
    Ok((bytes, seconds))
}

impl Measured {
    /// The median bandwidth of plain runs, in MB/s.
    pub fn plain_mb_s(&self) -> Option<f64> {
        let plain = Spread::of(self.plain.iter().copied())?;
        Some(self.bytes as f64 / 1e6 / plain.median)
    }

    /// The bandwidth of runs as a multiple of that of plain runs, pair by pair.
    pub fn faster(&self, runs: &[f64]) -> Option<Spread> {
        let pairs = runs.iter().zip(&self.plain);
        Spread::of(pairs.map(|(with, plain)| plain / with))
    }

    /// The time saved by first runs as a percentage of the time saved by second runs, round by round. Times are compared because
    /// the bandwidth of a second run has no bound: if every byte is prefetched, it reads at the speed of memory.
    pub fn first_of_second_pct(&self) -> Option<Spread> {
        stats::gain_share_pct(&self.plain, &self.first, &self.second)
    }

    /// The share of the avoidable waiting that second runs avoid, in percent; the rest of the time is a hot run's.
    pub fn masked_pct(&self) -> Option<f64> {
        let median = |runs: &[f64]| Spread::of(runs.iter().copied()).map(|spread| spread.median);
        stats::masked_pct(
            median(&self.plain)?,
            median(&self.second)?,
            median(&self.hot)?,
        )
    }

    /// The ratio of these times to the plain ones, pair by pair.
    pub fn ratio(&self, runs: &[f64]) -> Option<Spread> {
        stats::paired_ratio(runs, &self.plain)
    }

    /// The paper's average for the pattern, as a multiple of plain's bandwidth; only on the paper's file systems.
    pub fn paper(&self) -> Option<f64> {
        let disk = self.disk.strip_suffix("-2008").unwrap_or(&self.disk);
        let rows = PAPER.lines().filter(|line| !line.starts_with('#'));
        rows.map(|line| line.split(',').collect::<Vec<_>>())
            .find(|row| match row[..] {
                [pattern, on, ranks, _] => {
                    pattern == self.pattern
                        && on == disk
                        && (ranks.is_empty() || ranks == self.ranks.to_string())
                }
                _ => false,
            })
            .and_then(|row| row[3].parse::<f64>().ok())
            .map(|gain_pct| 1.0 + gain_pct / 100.0)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::mpi::Mpi;

    /// A measurement of 100 MB with these times.
    pub fn measured(pattern: &'static str, disk: &str, ranks: u32, times: [&[f64]; 4]) -> Measured {
        let [plain, first, second, hot] = times.map(<[f64]>::to_vec);
        Measured {
            case: format!("{pattern}-{ranks}-openmpi"),
            pattern,
            disk: disk.into(),
            ranks,
            mpi: Mpi::OpenMpi,
            no_harm: hot.is_empty(),
            hot_start: false,
            command: "mpirun".into(),
            bytes: 100_000_000,
            plain,
            first,
            second,
            hot,
            discarded: 0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn multiples_are_of_bandwidth_and_pair_by_pair() {
        let one = measured(
            "simple",
            "nfs",
            4,
            [&[1.0, 2.0, 4.0], &[0.8, 1.6, 3.2], &[0.5, 1.0, 2.0], &[0.1]],
        );
        assert_eq!(one.plain_mb_s(), Some(50.0));
        assert!((one.faster(&one.first).unwrap().median - 1.25).abs() < 1e-9);
        assert!((one.faster(&one.second).unwrap().median - 2.0).abs() < 1e-9);
        assert!((one.first_of_second_pct().unwrap().median - 40.0).abs() < 1e-9);
        assert!((one.masked_pct().unwrap() - 100.0 / 1.9).abs() < 1e-9);
        assert!((one.ratio(&one.second).unwrap().median - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_papers_figure_is_of_the_pattern_the_file_system_and_the_ranks() {
        let paper = |pattern, disk, ranks| measured(pattern, disk, ranks, [&[]; 4]).paper();
        assert_eq!(paper("simple", "nfs", 2), Some(1.23));
        assert_eq!(paper("btio", "striped-2008", 4), Some(1.08));
        assert_eq!(paper("btio", "striped", 16), Some(1.15));
        assert_eq!(paper("ior", "nfs", 4), None);
        assert_eq!(paper("simple", "own", 4), None);
    }

    #[test]
    fn what_the_program_tells_is_two_figures() {
        assert_eq!(told("12 0.5\n").unwrap(), (12, 0.5));
        for bad in ["", "12", "12 0", "x 1", "12 y", "12 -1"] {
            assert!(told(bad).is_err(), "{bad:?}");
        }
    }
}
