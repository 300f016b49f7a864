//! Trial runs of a translated program before it is timed. They find the cost that translation adds to the program itself, and the
//! amount of computing at which its hot and cold runs differ as much as the paper's.

use std::time::Instant;

use anyhow::Result;

use crate::case::{Case, Cold, Group};
use crate::disk::DiskKind;
use crate::paper::paper;
use crate::runs::Runs;

/// The most pairs of hot runs (the original and the translated program), and the seconds after which no further pair begins.
const HOT_PAIRS: usize = 25;
const HOT_SECONDS: f64 = 5.0;
/// How far the share of computing may be from the paper's, and the seconds for which a better fit is sought.
const FITTING: f64 = 0.05;
const FITTING_SECONDS: f64 = 20.0;
/// The computation per block whose hot time gives the time of one unit.
const TRIED_WORK: u64 = 16;
/// Hot runs; the shortest counts.
const HOT_TRIES: usize = 3;

/// Hot times of the original and the translated program, in pairs.
pub fn hot_pairs(runs: &Runs) -> Result<Vec<(f64, f64)>> {
    let mut pairs = Vec::new();
    let began = Instant::now();
    while pairs.len() < HOT_PAIRS && began.elapsed().as_secs_f64() < HOT_SECONDS {
        pairs.push(runs.hot_pair(pairs.len() % 2 == 1)?);
    }
    Ok(pairs)
}

/// The share of computing that a case must have in its plain time: the paper's, on a disk like the paper's; otherwise `None`.
pub fn computing(case: &Case, disk: DiskKind) -> Option<f64> {
    (case.group == Group::Slice && disk == DiskKind::Hdd7200)
        .then(|| paper(case.name)?.computing)
        .flatten()
}

/// Sets the computation per block so that the hot run takes `share` of the cold run's time, and returns it. The kernel's
/// read-ahead hides more of the waiting the more the program computes, and the first units may take longer than later ones. So a
/// guess is tried, hot and cold, and corrected for as long as time allows.
pub fn fit(runs: &mut Runs, share: f64) -> Result<u64> {
    let began = Instant::now();
    let least = shortest_hot(runs)?;
    let (mut hot, mut cold) = (least, runs.plain(Cold::Files)?.seconds);
    runs.compute(TRIED_WORK);
    let mut unit = (shortest_hot(runs)? - least) / (TRIED_WORK - 1) as f64;
    let mut tried = None;
    loop {
        let wanted = share / (1.0 - share) * (cold - hot).max(0.0);
        let work = 1 + ((wanted - least) / unit).max(0.0).round() as u64;
        if tried.replace(work) == Some(work) {
            return Ok(work);
        }
        runs.compute(work);
        (hot, cold) = (shortest_hot(runs)?, runs.plain(Cold::Files)?.seconds);
        let fits = (hot / cold / share - 1.0).abs() < FITTING;
        if fits || began.elapsed().as_secs_f64() > FITTING_SECONDS {
            return Ok(work);
        }
        if work > 1 {
            unit = (hot - least) / (work - 1) as f64;
        }
    }
}

/// The shortest of several hot runs, in seconds.
fn shortest_hot(runs: &Runs) -> Result<f64> {
    let mut shortest = f64::INFINITY;
    for _ in 0..HOT_TRIES {
        shortest = shortest.min(runs.hot()?.seconds);
    }
    Ok(shortest)
}
