//! Processes, or the ranks of a parallel program, beside each other: a lane each, on one axis of time.
//!
//! A process's lane is of the recorded run: its waits above, below what it read. Nobody fetches for a single process. A rank has a
//! foreread of its own, so that its lane is of its last run: its waits above, below what was fetched for it.
//!
//! Data flow: [`CommandFacts`] → [`Chart`]s; pure.

use std::cmp::Reverse;

use foreread_run::RunAccount;
use foreread_words::counted;
use foreread_words::units::{bytes, duration};

use super::charts::{Chart, rates, rebinned, steps};
use super::digest::{Digest, LANE_BINS, Lane};
use super::facts::CommandFacts;

/// Units of height of a lane, above and below its line.
const ABOVE: f64 = 20.0;
const BELOW: f64 = 14.0;
/// Steps of what was requested, at most.
const STEPS: usize = 120;
/// Ranks that get a lane: those that waited longest.
const RANKS: usize = 32;
/// Last runs of ranks that began further apart are not of one job, in seconds: launchers start ranks within minutes.
const JOB: u64 = 600;

/// When each process waited and read, a chart each; none of those that did not wait.
pub(super) fn processes(facts: &CommandFacts) -> Vec<Chart> {
    let Some(record) = &facts.record else {
        return Vec::new();
    };
    let waited: Vec<&Lane> = (record.processes.iter())
        .filter(|lane| lane.waited_ns > 0)
        .collect();
    let read = waited.iter().flat_map(|lane| &lane.read_bytes).max();
    let read = read.copied().unwrap_or(0);
    let charts = waited.iter().map(|lane| process(lane, record, read));
    closed(charts.collect(), record.span_ns, "below: read")
}

fn process(lane: &Lane, record: &Digest, most: u64) -> Chart {
    let program = lane.program.rsplit('/').next().unwrap_or_default();
    let waited = duration(lane.waited_ns);
    let mut chart = self::lane(format!("{program} ({}): waited {waited}", lane.pid));
    let bin = record.span_ns.div_ceil(LANE_BINS as u64);
    chart.bars("waited", &lane.bins, bin, ABOVE, ABOVE, 1.0);
    chart.bars("read", &lane.read_bytes, most, ABOVE, -BELOW, 1.0);
    chart.rule(ABOVE);
    chart
}

/// When each rank waited, and when was fetched for it, a chart each, by rank; of many, those that waited longest.
pub(super) fn ranks(facts: &CommandFacts) -> Vec<Chart> {
    let mut ranks: Vec<(u32, &RunAccount)> = job(facts).collect();
    ranks.sort_by_key(|(rank, told)| (Reverse(waited(told)), *rank));
    ranks.truncate(RANKS);
    ranks.sort_by_key(|(rank, _)| *rank);
    let span = ranks.iter().map(|(_, told)| told.wall_ns).max();
    let span = span.unwrap_or(0).max(1);
    let fetched =
        |told: &RunAccount| rates(&told.went.samples, span, STEPS, |sample| sample.ahead_bytes);
    let rates: Vec<_> = ranks.iter().map(|(_, told)| fetched(told)).collect();
    let most = rates.iter().flatten().map(|one| one.2).fold(0.0, f64::max);
    let charts = ranks.iter().zip(&rates).map(|((rank, told), rates)| {
        let issued = told.ledger.map_or(0, |ledger| ledger.issued);
        let title = format!(
            "rank {rank} on {}: {}, waited {}, {} fetched ahead",
            told.host,
            duration(told.wall_ns),
            duration(waited(told)),
            bytes(issued)
        );
        let mut chart = lane(title);
        let waits = rebinned(&told.went.waits, span);
        let waits: Vec<u64> = waits.chunks(2).map(|pair| pair.iter().sum()).collect();
        let bin = span.div_ceil(waits.len() as u64);
        chart.bars("waited", &waits, bin, ABOVE, ABOVE, 1.0);
        chart.shape("fetched", steps(rates, most, ABOVE, -BELOW));
        chart.rule(ABOVE);
        chart
    });
    closed(charts.collect(), span, "below: requested ahead")
}

/// What is said above the ranks' lanes.
pub(super) fn said_of_ranks(facts: &CommandFacts) -> String {
    let known = job(facts).count();
    let mut said = format!(
        "The last run of each rank, since that rank's start: its waits above, what was requested ahead for it below. {}.",
        known_of_all(facts)
    );
    if let Some(own) = facts.run.as_ref().and_then(|run| run.rank) {
        said += &format!(" The rest of this page is on rank {}.", own.rank);
    }
    if known > RANKS {
        said += &format!(" Shown are the {RANKS} that waited longest.");
    }
    let others = facts.ranks.len() - known;
    if others > 0 {
        said += &format!(
            " {} left out, because the last run was at another time.",
            counted(others as u64, "rank is", "ranks are")
        );
    }
    said
}

/// Which ranks waited longest and least, where several are known.
pub(super) fn extremes(facts: &CommandFacts) -> Option<String> {
    let waits = || job(facts).map(|(rank, told)| (waited(told), rank));
    let (most, least) = (waits().max()?, waits().min()?);
    (most.0 > least.0).then(|| {
        format!(
            "{}: rank {} waited longest, {}, and rank {} least, {}",
            known_of_all(facts),
            most.1,
            duration(most.0),
            least.1,
            duration(least.0)
        )
    })
}

/// How many ranks of all are known.
fn known_of_all(facts: &CommandFacts) -> String {
    let of = facts.run.as_ref().and_then(|run| run.rank);
    let of = of.map_or(0, |rank| rank.of);
    let known = job(facts).count();
    format!(
        "{known} of {} known",
        counted(of.into(), "rank is", "ranks are")
    )
}

/// How long a rank's reads waited in its last run, in ns.
fn waited(told: &RunAccount) -> u64 {
    told.went.waits.waited_ns.iter().sum()
}

/// The ranks whose last run is of the same job as the run that is shown.
fn job(facts: &CommandFacts) -> impl Iterator<Item = (u32, &RunAccount)> {
    let at = facts.run_at.unwrap_or(0);
    let ranks = facts.ranks.iter().map(|(rank, told)| (*rank, told));
    ranks.filter(move |(_, told)| told.meta.recorded_at.abs_diff(at) <= JOB)
}

/// A lane without shapes and axis.
fn lane(title: String) -> Chart {
    Chart {
        title,
        height: ABOVE + BELOW,
        ..Chart::default()
    }
}

/// The first lane gets the legend for all, and the last the axis.
fn closed(mut lanes: Vec<Chart>, span: u64, below: &str) -> Vec<Chart> {
    let class = lanes
        .iter()
        .flat_map(|lane| &lane.shapes)
        .map(|shape| shape.class)
        .find(|class| ["read", "fetched"].contains(class));
    if let Some(first) = lanes.first_mut() {
        first.says("waited", "above: waited".to_owned());
        if let Some(class) = class {
            first.says(class, below.to_owned());
        }
    }
    if let Some(last) = lanes.last_mut() {
        last.axis = Chart::new("", 0.0, span).axis;
    }
    lanes
}
