//! The figures of a series: means with their confidence intervals, and the share of plain's I/O latency that is gone.
//!
//! I/O latency is defined as in the paper: the elapsed time minus processor time (user and system), an upper bound of a program's
//! waiting time. The programs here use one processor at a time.

use serde::Serialize;

use super::{Measured, Series, Variant};
use crate::sample::Sample;
use crate::stats;

/// A mean, and half its 90 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean, in seconds.
    pub mean: f64,
    /// Half the interval; none for fewer than two runs.
    pub within: Option<f64>,
}

impl Mean {
    /// The mean of these values; `None` without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let within = (count > 1).then(|| {
            let deviation = (squares / (count - 1) as f64).sqrt();
            student(count - 1) * deviation / (count as f64).sqrt()
        });
        Some(Self { mean, within })
    }
}

/// The 95 % quantile of Student's distribution with this many degrees of freedom. Beyond the table the last entry is used, which
/// is at most 3 % too wide.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
        1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
        1.703, 1.701, 1.699, 1.697,
    ];
    TABLE[degrees.clamp(1, TABLE.len()) - 1]
}

/// The figures of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The variant.
    pub variant: Variant,
    /// Number of runs.
    pub runs: usize,
    /// From the start to the exit.
    pub elapsed: Mean,
    /// Processor time.
    pub compute: Mean,
    /// Elapsed minus processor time.
    pub io: Mean,
    /// The share of plain's elapsed time that is gone, in percent.
    pub elapsed_gone: Option<f64>,
    /// The share of plain's I/O latency that is gone, in percent.
    pub io_gone: Option<f64>,
    /// The median of the ratios to plain's elapsed times, run by run.
    pub ratio: Option<f64>,
    /// Mean bytes read from the devices, in MiB.
    pub device_mib: Option<f64>,
    /// The share of plain's mean read latency that is gone, in percent.
    pub read_gone: Option<f64>,
}

fn compute(run: &Sample) -> f64 {
    run.cpu_seconds.unwrap_or(0.0)
}

/// The I/O latency of a run, in seconds.
fn io(run: &Sample) -> f64 {
    (run.seconds - compute(run)).max(0.0)
}

/// The times of each run in words.
pub fn times(runs: &[Sample]) -> String {
    let list = |figure: fn(&Sample) -> f64| {
        let each = runs.iter().map(|run| format!(" {:.3}", figure(run)));
        each.collect::<String>()
    };
    format!("elapsed{}, I/O{} s", list(|run| run.seconds), list(io))
}

/// The figures of all variants.
pub fn of(measured: &Measured) -> Vec<Figures> {
    let plain = measured.of(Variant::Plain);
    let each = measured.series.iter();
    each.filter_map(|series| one(series, plain)).collect()
}

fn one(series: &Series, plain: Option<&Series>) -> Option<Figures> {
    let runs = &series.runs;
    let mean = |runs: &[Sample], figure: fn(&Sample) -> f64| Mean::of(runs.iter().map(figure));
    let gone = |figure: fn(&Sample) -> f64| {
        let (with, without) = (mean(runs, figure)?.mean, mean(&plain?.runs, figure)?.mean);
        (without > 0.0).then(|| (without - with) / without * 100.0)
    };
    let seconds = |runs: &[Sample]| runs.iter().map(|run| run.seconds).collect::<Vec<_>>();
    let ratios = |plain: &Series| stats::paired_ratio(&seconds(runs), &seconds(&plain.runs));
    let mib = runs.iter().filter_map(|run| run.device_bytes);
    let reads = series.reads.mean_us();
    let read_gone = reads
        .zip(plain.and_then(|plain| plain.reads.mean_us()))
        .map(|(with, without)| (without - with) / without * 100.0);
    let is_plain = series.variant == Variant::Plain;
    let of_plain = |figure: Option<f64>| figure.filter(|_| !is_plain);
    Some(Figures {
        variant: series.variant,
        runs: runs.len(),
        elapsed: mean(runs, |run| run.seconds)?,
        compute: mean(runs, compute)?,
        io: mean(runs, io)?,
        elapsed_gone: of_plain(gone(|run| run.seconds)),
        io_gone: of_plain(gone(io)),
        ratio: of_plain(plain.and_then(ratios).map(|ratio| ratio.median)),
        device_mib: Mean::of(mib.map(|bytes| bytes as f64 / (1 << 20) as f64)).map(|mib| mib.mean),
        read_gone: of_plain(read_gone),
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::files::latency::Latencies;

    /// A measurement with these elapsed times of each variant, each with 1 s of computing.
    pub fn measured(case: &str, disk: &str, times: &[(Variant, &[f64])]) -> Measured {
        let sample = |seconds: &f64| Sample {
            seconds: *seconds,
            device_bytes: Some(3 << 20),
            cpu_seconds: Some(1.0),
            account: None,
            prefetch_thread: None,
        };
        Measured {
            case: case.into(),
            disk: disk.into(),
            device: None,
            command: "sh".into(),
            series: times
                .iter()
                .map(|(variant, times)| Series {
                    variant: *variant,
                    runs: times.iter().map(sample).collect(),
                    reads: Latencies::default(),
                    status: Vec::new(),
                })
                .collect(),
            missing: vec![(Variant::Preload, "it is not there".into())],
            discarded: 0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_mean_has_the_interval_of_students_distribution() {
        // Five values with a deviation of sqrt(2.5): 2.132 * sqrt(2.5 / 5).
        let mean = Mean::of([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean.mean - 3.0).abs() < 1e-12);
        assert!((mean.within.unwrap() - 2.132 * 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Mean::of([7.0]).unwrap().within, None);
        assert_eq!(Mean::of([]), None);
        // The paper's 20 runs: 19 degrees.
        assert_eq!((student(19), student(100)), (1.729, 1.697));
    }

    #[test]
    fn what_is_gone_of_the_latency_is_held_against_plain() {
        let times: &[(Variant, &[f64])] = &[
            (Variant::Plain, &[3.0, 3.0]),
            (Variant::Epcm, &[1.1, 1.3]),
            (Variant::Hot, &[0.9, 1.0]),
        ];
        let figures = of(&measured("andrew", "own", times));
        let (plain, epcm, hot) = (&figures[0], &figures[1], &figures[2]);
        assert_eq!((plain.io_gone, plain.ratio, plain.runs), (None, None, 2));
        assert!((plain.io.mean - 2.0).abs() < 1e-9);
        assert!((epcm.io_gone.unwrap() - 90.0).abs() < 1e-9);
        assert!((epcm.elapsed_gone.unwrap() - 60.0).abs() < 1e-9);
        assert!((epcm.ratio.unwrap() - 0.4).abs() < 1e-9);
        // More processor time than elapsed time (two processes at once) counts as no waiting.
        assert!((hot.io_gone.unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(hot.device_mib, Some(3.0));
        let runs = &measured("andrew", "own", times).series[1].runs;
        assert_eq!(super::times(runs), "elapsed 1.100 1.300, I/O 0.100 0.300 s");
    }
}
