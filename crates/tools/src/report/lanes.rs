//! Lanes: processes, or ranks of a parallel program, one below the other on one axis of time.
//!
//! A process's lane shows the recorded run: waiting above the line, bytes read below, because prefetching is not counted by process. Each
//! rank has its own foreread, so its lane shows the last run: waiting above the line, fetched bytes below.
//!
//! Data flow: [`CommandFacts`] → [`Chart`]s; pure.

use std::cmp::Reverse;

use foreread_run::RunAccount;
use foreread_words::counted;
use foreread_words::units::{bytes, duration};

use super::charts::{Chart, rates, rebinned, steps};
use super::digest::{Digest, LANE_BINS, Lane};
use super::facts::CommandFacts;

/// Height of a lane above and below its line, in units.
const ABOVE: f64 = 20.0;
const BELOW: f64 = 14.0;
/// Steps in the curve of fetched bytes, at most.
const STEPS: usize = 120;
/// Number of ranks with a lane: those with most waiting.
const RANKS: usize = 32;
/// Last runs whose starts are further apart, in seconds, belong to different jobs: launchers start ranks within minutes.
const JOB: u64 = 600;

/// One chart per process: its waiting and the bytes read. Processes without waiting have none.
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

/// One chart per rank, by rank: its waiting and the bytes fetched for it. Of many ranks, those with most waiting.
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

/// The text above the ranks' lanes.
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

/// The ranks with most and least waiting, if there are several.
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

/// Number of known ranks and of all ranks.
fn known_of_all(facts: &CommandFacts) -> String {
    let of = facts.run.as_ref().and_then(|run| run.rank);
    let of = of.map_or(0, |rank| rank.of);
    let known = job(facts).count();
    format!(
        "{known} of {} known",
        counted(of.into(), "rank is", "ranks are")
    )
}

/// Waiting of a rank's reads in its last run, in ns.
fn waited(told: &RunAccount) -> u64 {
    told.went.waits.waited_ns.iter().sum()
}

/// The ranks whose last run belongs to the same job as the shown run.
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

/// Adds the common legend to the first lane and the axis to the last.
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
