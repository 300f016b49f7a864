//! The programme of experiments.
//!
//! Invariant: every experiment starts with nothing of the file in memory, and ends when its share of the time is over, so a slow device
//! takes as long as a fast one. Costs are per page read.

use std::ops::Range;
use std::time::Duration;

use foreread_sched::{Order, Profile};

use super::decide::{SIZES, depth_of, infill_of, order_of, request_of};
use super::{DepthSample, GapSample, LatenessSample, LeadSample, RequestSample, Samples, decide};

/// Depths tried, in requests.
const DEPTHS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Depths the engine is tried at where it asks by position, in requests.
const ORDERED_DEPTHS: [usize; 4] = [2, 8, 32, 128];
/// Pages under way while requests of several sizes are compared, at most: 16 MiB.
const UNDER_WAY: u64 = 4096;
/// Gaps tried, in pages.
const GAPS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Largest leads tried, in accesses; the last is all of a [`READS`] long program.
const LEADS: [u64; 5] = [16, 64, 256, 1024, READS];
/// Permitted lateness, in multiples of the time of a full queue; unlimited lateness comes last.
const LATENESS: [u64; 3] = [0, 4, 16];
/// Reads of the program the engine is tried on: the paper's Backward 1 reads 16 MB by 4 KiB.
const READS: u64 = 4096;
/// Orders are compared with one wanted page in this many: dense enough for a pass over the device to pay if distance costs anything, and
/// much too sparse for reading everything.
pub(super) const SPARSE: u64 = 16;
/// Single pages asked for in one experiment, at most.
const PAGES: u64 = 4096;
/// Reads that T is the median of, at most: 3 s of a disk with a moving head.
const SINGLE: usize = 500;
/// Times each trial of the engine is made, if its share of the time allows; the best counts, because neighbours only
/// slow a trial down.
const ROUNDS: u32 = 3;

/// A file that can be read cold, in real or virtual time.
pub trait Probe {
    /// The reason why the file could not be read.
    type Error;

    /// Pages of the file.
    fn pages(&self) -> u64;

    /// Cold: reads single pages as a program without prefetching does, for at most `limit`. Returns the time of each read.
    ///
    /// # Errors
    /// When the file cannot be read, or is in memory after all.
    fn single(&mut self, pages: &[u64], limit: Duration) -> Result<Vec<u64>, Self::Error>;

    /// Cold: fetches these ranges of pages in turn, `depth` at a time, starting none after `limit`. Returns the number fetched and the
    /// time.
    ///
    /// # Errors
    /// As above.
    fn fetch(
        &mut self,
        runs: &[Range<u64>],
        depth: usize,
        limit: Duration,
    ) -> Result<Trial, Self::Error>;

    /// Cold: a program reads these pages in turn without computing, with the engine ahead of it under `profile`, for at most `limit`.
    /// Returns the number of pages read and the time.
    ///
    /// # Errors
    /// As above.
    fn follow(
        &mut self,
        pages: &[u64],
        profile: &Profile,
        limit: Duration,
    ) -> Result<Trial, Self::Error>;
}

/// The outcome of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Runs fetched or pages read.
    pub count: u64,
    /// The time that took.
    pub took: Duration,
}

impl Trial {
    /// Time for one; infinite if there was none.
    fn each(&self) -> f64 {
        self.took.as_nanos() as f64 / self.count as f64
    }
}

/// A stage of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Single reads.
    Single,
    /// Scattered pages at several depths.
    Depth,
    /// Neighbouring pages in requests of several sizes.
    Sequential,
    /// Gaps skipped.
    Gaps,
    /// Random order against order by position.
    Order,
    /// The engine with several thresholds.
    Thresholds,
}

impl Stage {
    /// All stages in turn.
    pub const ALL: [Stage; 6] = [
        Stage::Single,
        Stage::Depth,
        Stage::Sequential,
        Stage::Gaps,
        Stage::Order,
        Stage::Thresholds,
    ];

    /// The stage's name, in plain words.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Single => "single reads",
            Stage::Depth => "several reads at once",
            Stage::Sequential => "reading in order",
            Stage::Gaps => "skipping gaps",
            Stage::Order => "order by position",
            Stage::Thresholds => "how far to be ahead",
        }
    }

    /// Its share of the time, in percent.
    const fn share(self) -> u32 {
        match self {
            Stage::Single => 4,
            Stage::Depth => 16,
            Stage::Sequential => 5,
            Stage::Gaps => 15,
            Stage::Order => 10,
            Stage::Thresholds => 50,
        }
    }

    /// Time for each of `parts` experiments of the stage.
    fn slice(self, total: Duration, parts: usize) -> Duration {
        total * self.share() / 100 / parts as u32
    }
}

/// Measures a device in about `total` time: runs all stages and returns the samples. Calls `at` at the start of each stage.
///
/// # Errors
/// Those of the probe.
pub fn measure<P: Probe>(
    probe: &mut P,
    total: Duration,
    mut at: impl FnMut(Stage),
) -> Result<Samples, P::Error> {
    let mut dice = Dice::new(probe.pages());
    let mut samples = Samples::default();

    at(Stage::Single);
    let pages = dice.distinct(SINGLE);
    let mut times = probe.single(&pages, Stage::Single.slice(total, 1))?;
    times.sort_unstable();
    samples.service_ns = times.get(times.len() / 2).copied().unwrap_or(0);

    at(Stage::Depth);
    let slice = Stage::Depth.slice(total, DEPTHS.len());
    for depth in DEPTHS {
        // If a queue takes longer to empty than there is time, deeper queues are left out.
        let queue_ns = samples.scattered.last().map_or(0.0, |last| last.page_ns) * depth as f64;
        if queue_ns > slice.as_nanos() as f64 {
            break;
        }
        let runs = dice.scattered();
        let page_ns = probe.fetch(&runs, depth, slice)?.each();
        samples.scattered.push(DepthSample { depth, page_ns });
    }
    let depth = depth_of(&samples.scattered).unwrap_or(1);

    at(Stage::Sequential);
    let slice = Stage::Sequential.slice(total, SIZES.len());
    for pages in SIZES {
        let runs = dice.along(pages);
        // A few MiB under way are enough; more would take longer to come in than is measured.
        let depth = depth.min((UNDER_WAY / pages) as usize);
        let trial = probe.fetch(&runs, depth, slice)?;
        samples.requests.push(RequestSample {
            pages,
            page_ns: trial.each() / pages as f64,
        });
    }
    let page_ns = samples
        .requests
        .iter()
        .map(|sample| sample.page_ns)
        .fold(f64::INFINITY, f64::min);

    at(Stage::Gaps);
    let slice = Stage::Gaps.slice(total, GAPS.len());
    for pages in GAPS {
        let runs = dice.skipping(pages);
        let skipped_ns = probe.fetch(&runs, depth, slice)?.each();
        samples.gaps.push(GapSample {
            pages,
            skipped_ns,
            along_ns: page_ns * (pages + 1) as f64,
        });
    }

    at(Stage::Order);
    let slice = Stage::Order.slice(total, 2);
    let wanted = dice.distinct((probe.pages() / SPARSE) as usize);
    samples.order.random_ns = probe.fetch(&singles(&wanted), depth, slice)?.each();
    samples.order.ordered_ns = by_position(probe, &wanted, depth, &samples, slice)?;

    at(Stage::Thresholds);
    thresholds(probe, total, &mut dice, &mut samples)?;
    Ok(samples)
}

/// The engine itself under candidate constants, the others as found so far.
fn thresholds<P: Probe>(
    probe: &mut P,
    total: Duration,
    dice: &mut Dice,
    samples: &mut Samples,
) -> Result<(), P::Error> {
    let by_position = order_of(&samples.order) == Order::Position;
    let depths: &[usize] = if by_position { &ORDERED_DEPTHS } else { &[] };
    let parts = depths.len() + 2 * LEADS.len() + LATENESS.len() + 1;
    let slice = Stage::Thresholds.slice(total, parts);
    // A slow device gets a shorter program, because a pass over the device counts only as a whole.
    let expected = samples.order.ordered_ns.min(samples.order.random_ns) * 2.0;
    let reads = ((slice.as_nanos() as f64 / expected) as u64).clamp(64, READS);
    let random = |dice: &mut Dice| dice.dense(reads);
    let backward = |dice: &mut Dice| dice.part(READS).rev().collect::<Vec<u64>>();

    let mut profile = decide(samples);
    profile.horizon.time_threshold = i64::MIN;
    for &depth in depths {
        profile.depth = depth;
        let page_ns = best(probe, &random(dice), &profile, slice)?;
        samples.ordered.push(DepthSample { depth, page_ns });
    }
    profile.depth = decide(samples).depth;
    for queue_threshold in LEADS {
        profile.horizon.queue_threshold = queue_threshold;
        samples.leads.push(LeadSample {
            queue_threshold,
            backward_ns: best(probe, &backward(dice), &profile, slice)?,
            random_ns: best(probe, &random(dice), &profile, slice)?,
        });
    }
    profile.horizon.queue_threshold = decide(samples).horizon.queue_threshold;
    let full_queue = samples.service_ns * (profile.depth as u64 + 1);
    let some = LATENESS.map(|times| Some(times * full_queue));
    for lateness_ns in some.into_iter().chain([None]) {
        profile.horizon.time_threshold =
            lateness_ns.map_or(i64::MIN, |ns| i64::try_from(ns).map_or(i64::MIN, |ns| -ns));
        samples.lateness.push(LatenessSample {
            lateness_ns,
            read_ns: best(probe, &random(dice), &profile, slice)?,
        });
    }
    Ok(())
}

/// The best of a few trials of the engine that together take at most `limit`: disturbances only make a trial longer.
fn best<P: Probe>(
    probe: &mut P,
    pages: &[u64],
    profile: &Profile,
    limit: Duration,
) -> Result<f64, P::Error> {
    let mut least = f64::INFINITY;
    let mut spent = Duration::ZERO;
    for _ in 0..ROUNDS {
        let trial = probe.follow(pages, profile, limit - spent)?;
        least = least.min(trial.each());
        spent += trial.took;
        // A trial cut short is no match for a whole one.
        if spent * 2 > limit {
            break;
        }
    }
    Ok(least)
}

/// Time a wanted page when they are asked for by position, gaps read along as `samples` say.
fn by_position<P: Probe>(
    probe: &mut P,
    wanted: &[u64],
    depth: usize,
    samples: &Samples,
    limit: Duration,
) -> Result<f64, P::Error> {
    let infill = infill_of(&samples.gaps);
    let request = request_of(samples).unwrap_or(1);
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<Range<u64>> = Vec::new();
    // Pages wanted of all runs up to each.
    let mut served: Vec<u64> = Vec::new();
    for (count, &page) in (1..).zip(&sorted) {
        match runs.last_mut() {
            Some(run) if page - run.end <= infill && page + 1 - run.start <= request => {
                run.end = page + 1;
                if let Some(last) = served.last_mut() {
                    *last = count;
                }
            }
            _ => {
                runs.push(page..page + 1);
                served.push(count);
            }
        }
    }
    let trial = probe.fetch(&runs, depth, limit)?;
    let pages = (trial.count as usize)
        .checked_sub(1)
        .and_then(|last| served.get(last))
        .copied()
        .unwrap_or(0);
    Ok(Trial {
        count: pages,
        took: trial.took,
    }
    .each())
}

fn singles(pages: &[u64]) -> Vec<Range<u64>> {
    pages.iter().map(|&page| page..page + 1).collect()
}

/// Pages no device and no read-ahead can guess: always the same ones, so that runs compare.
struct Dice {
    random: fastrand::Rng,
    pages: u64,
    /// Pages of the file given out by [`Dice::part`] in this round.
    used: u64,
}

impl Dice {
    fn new(pages: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(1),
            pages,
            used: 0,
        }
    }

    /// `count` different pages of the file in random order, one in each of `count` equal parts.
    fn distinct(&mut self, count: usize) -> Vec<u64> {
        let count = (count as u64).clamp(1, self.pages.max(1));
        let part = self.pages / count;
        let mut pages: Vec<u64> = (0..count)
            .map(|nth| nth * part + self.random.u64(..part.max(1)))
            .collect();
        for at in (1..pages.len()).rev() {
            pages.swap(at, self.random.usize(..=at));
        }
        pages
    }

    /// `count` different pages in random order, one in [`SPARSE`] of the next part of the file.
    fn dense(&mut self, count: u64) -> Vec<u64> {
        let part = self.part(count * SPARSE);
        let mut dice = Dice {
            random: self.random.fork(),
            ..Dice::new(part.end - part.start)
        };
        dice.distinct((dice.pages / SPARSE) as usize)
            .into_iter()
            .map(|page| part.start + page)
            .collect()
    }

    /// The next part of the file of up to `len` pages: each is read as long after its last reading as
    /// can be, for the device has a cache of its own.
    fn part(&mut self, len: u64) -> Range<u64> {
        let len = len.min(self.pages);
        if self.used + len > self.pages {
            self.used = 0;
        }
        let start = self.used;
        self.used += len;
        start..self.used
    }

    fn scattered(&mut self) -> Vec<Range<u64>> {
        singles(&self.distinct(PAGES.min(self.pages / SPARSE) as usize))
    }

    /// The file from a random place on, and around, in requests of `pages`.
    fn along(&mut self, pages: u64) -> Vec<Range<u64>> {
        let whole = self.pages / pages;
        let from = self.random.u64(..whole);
        (0..whole)
            .map(|nth| (from + nth) % whole * pages)
            .map(|start| start..start + pages)
            .collect()
    }

    /// Single pages with `gap` between, from a random place on, as far as the file goes.
    fn skipping(&mut self, gap: u64) -> Vec<Range<u64>> {
        let count = PAGES.min(self.pages / (gap + 1));
        let from = self.random.u64(..self.pages - count * (gap + 1) + 1);
        (0..count)
            .map(|nth| from + nth * (gap + 1))
            .map(|page| page..page + 1)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn pages_drawn_are_different_and_in_the_file() {
        let mut dice = Dice::new(1000);
        for count in [1, 7, 500, 1000, 5000] {
            let pages = dice.distinct(count);
            let set: HashSet<u64> = pages.iter().copied().collect();
            assert_eq!(set.len(), pages.len());
            assert_eq!(pages.len(), count.min(1000));
            assert!(pages.iter().all(|&page| page < 1000));
        }
    }

    #[test]
    fn runs_stay_within_the_file_and_apart() {
        let mut dice = Dice::new(4096);
        for gap in GAPS {
            let runs = dice.skipping(gap);
            assert!(runs.len() > 4);
            assert!(runs.windows(2).all(|two| two[1].start - two[0].end == gap));
            assert!(runs.iter().all(|run| run.end <= 4096));
        }
        for size in SIZES {
            let runs = dice.along(size);
            assert_eq!(runs.len() as u64, 4096 / size);
            assert!(runs.iter().all(|run| run.end <= 4096));
        }
    }

    #[test]
    fn the_shares_of_the_stages_make_up_the_whole() {
        assert_eq!(Stage::ALL.map(Stage::share).iter().sum::<u32>(), 100);
    }
}
