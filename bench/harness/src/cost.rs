//! Cost of observation: nanoseconds per hot read, and the price of recording.
//!
//! All data is in memory, so that only foreread's own work is measured; states are interleaved in rounds. A read's cost is
//! compared with reads that bypass the library in the same run, and that difference with the plain run's of the round: on some
//! machines the C library's own call takes much longer than the system call. Recording is compared with the plain run of its
//! pair.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::case::{Case, Job, Size};
use crate::foreread::Foreread;
use crate::process::{self, Invocation};
use crate::scratch::Scratch;
use crate::stats::{self, Spread, paired_ratio};
use crate::tools::Tools;

/// Batches of 500 reads by system call and as many by the library, in one run of the read-cost program.
pub const BATCHES: u64 = 1000;
/// Pages of its file; those not read in the timed part give a prefetcher something to do.
const PAGES: usize = 4096;
/// The cases whose recording is timed: many reads, a scan, many processes.
pub const RECORDED: [&str; 3] = ["hot", "sequential", "make"];
/// Recorded runs whose memory is watched: watching takes processor time, so these runs are not timed.
const MEMORY_RUNS: usize = 3;
/// The states of the read-cost program: the reference, and the one that is judged.
const PLAIN: &str = "plain";
pub const PREFETCHED: &str = "prefetched";

/// Duration of a part: the number of rounds, of which only the first is begun when `within` is over.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub most: usize,
    pub within: Option<Duration>,
    /// Time for pairs beyond them, until the price of recording is known well enough ([`stats::is_told`]).
    pub more_pairs_within: Duration,
}

impl Rounds {
    /// The numbers of the rounds, each when its turn has come.
    fn each(self) -> impl Iterator<Item = usize> {
        let began = Instant::now();
        let in_time = move || self.within.is_none_or(|within| began.elapsed() < within);
        (0..self.most.max(1)).take_while(move |&round| round == 0 || in_time())
    }
}

/// The measured costs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cost {
    /// A hot read in each state of the preload library.
    pub reads: Vec<ReadCost>,
    /// Recording, case by case.
    pub recording: Vec<RecordingCost>,
}

/// One hot 4 KiB pread in a state of the preload library, ns.
#[derive(Clone, Debug, Serialize)]
pub struct ReadCost {
    /// `plain`, or foreread's activity.
    pub state: String,
    /// By the system call itself.
    pub by_call_ns: Spread,
    /// By the C library's function.
    pub by_library_ns: Spread,
    /// The second minus the first, batch by batch.
    pub difference_ns: Spread,
    /// This, minus the difference of the plain run in the same round; none for `plain` itself.
    pub added_ns: Option<Spread>,
}

/// Cost of recording for a run with everything in memory.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingCost {
    /// The case.
    pub case: String,
    /// Plain runs, seconds.
    pub plain: Spread,
    /// Recorded runs, seconds.
    pub recorded: Spread,
    /// Added to the plain run of the same round, in percent of it.
    pub added_pct: Spread,
    /// How far the true median may be from this one ([`stats::ratio_margin`]), in percent; none for few pairs.
    pub margin_pct: Option<f64>,
    /// Largest memory of foreread's own process, MiB; none if the kernel does not report it.
    pub memory_mib: Option<Spread>,
}

/// The added time of one hot 4 KiB pread in each state of the preload library.
pub fn per_read(binary: &Path, tools: &Tools, rounds: Rounds) -> Result<Vec<ReadCost>> {
    let scratch = Scratch::new("pread-cost", tools)?;
    let file = tools.root.join("hot-page");
    std::fs::write(&file, vec![1; PAGES * 4096])
        .with_context(|| format!("writing {}", file.display()))?;
    let program = tools.compiled("hotpread", include_str!("../../programs/hotpread.c"))?;
    let command = Invocation {
        program,
        args: vec![file.clone().into(), BATCHES.to_string().into()],
        cwd: tools.root.clone(),
        env: Vec::new(),
    };
    let foreread = Foreread::new(binary, &tools.root.join("records/pread-cost"), &scratch.0);
    let mut unattended = command.clone();
    let library = binary.with_file_name("libforeread_preload.so");
    unattended
        .env
        .push(("LD_PRELOAD".into(), library.clone().into()));

    let nanoseconds = |command: &Invocation| -> Result<[f64; 3]> {
        crate::cache::evict(std::slice::from_ref(&file))?;
        let run = process::run(command, &scratch.0, &[])?;
        let text = run.stdout.trim();
        let columns: Option<Vec<f64>> = text.split(' ').map(|each| each.parse().ok()).collect();
        let columns = columns.and_then(|columns| columns.try_into().ok());
        columns.with_context(|| {
            format!(
                "`{}` printed `{text}` (status {}): {}",
                command.line(),
                run.outcome.status,
                run.stderr
            )
        })
    };
    let mut runs = Vec::new();
    for round in rounds.each() {
        let mut note = |state: &str, [by_call, by_library, difference]: [f64; 3]| {
            runs.push(ReadRun {
                round,
                state: state.to_owned(),
                by_call,
                by_library,
                difference,
            });
        };
        note(PLAIN, nanoseconds(&command)?);
        if library.is_file() {
            note("preloaded, no supervisor", nanoseconds(&unattended)?);
        }
        foreread.forget()?;
        for expected in ["recorded", PREFETCHED] {
            let cost = nanoseconds(&foreread.wrap(&command))?;
            let mode = foreread.account()?.mode;
            if mode == expected {
                note(&mode, cost);
            } else {
                note(&format!("{mode} (for {expected})"), cost);
            }
        }
    }
    Ok(by_state(&runs))
}

/// The output of one run of the read-cost program.
struct ReadRun {
    round: usize,
    state: String,
    by_call: f64,
    by_library: f64,
    difference: f64,
}

/// The runs of each state together, in the order in which the states came first.
fn by_state(runs: &[ReadRun]) -> Vec<ReadCost> {
    let mut costs: Vec<ReadCost> = Vec::new();
    for first in runs {
        if costs.iter().any(|cost| cost.state == first.state) {
            continue;
        }
        let of_state = || runs.iter().filter(|run| run.state == first.state);
        let column = |get: fn(&ReadRun) -> f64| Spread::of(of_state().map(get));
        let added = of_state().filter_map(|run| {
            let same_round = |plain: &&ReadRun| plain.state == PLAIN && plain.round == run.round;
            Some(run.difference - runs.iter().find(same_round)?.difference)
        });
        let (Some(by_call_ns), Some(by_library_ns), Some(difference_ns)) = (
            column(|run| run.by_call),
            column(|run| run.by_library),
            column(|run| run.difference),
        ) else {
            continue;
        };
        costs.push(ReadCost {
            state: first.state.clone(),
            by_call_ns,
            by_library_ns,
            difference_ns,
            added_ns: (first.state != PLAIN).then(|| Spread::of(added)).flatten(),
        });
    }
    costs
}

/// The run time and memory that recording adds to hot runs of a case.
pub fn recording(
    case: &Case,
    binary: &Path,
    tools: &Tools,
    rounds: Rounds,
) -> Result<RecordingCost> {
    let scratch = Scratch::new(case.name, tools)?;
    let job = hot_job(case, tools, &scratch.0)?;
    let foreread = Foreread::new(binary, &tools.root.join("records/record-cost"), &scratch.0);
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    let pair = |round: usize, plain: &mut Vec<f64>, recorded: &mut Vec<f64>| -> Result<()> {
        // Each goes first in turn, because the machine may favour the second run of a pair.
        let recorded_first = round % 2 == 1;
        crate::cache::warm(&job.files)?;
        for recorded_turn in [recorded_first, !recorded_first] {
            job.clear_outputs()?;
            if recorded_turn {
                foreread.forget()?;
                let command = foreread.wrap(&job.command);
                recorded.push(process::run(&command, &scratch.0, &[])?.seconds);
            } else {
                plain.push(process::run(&job.command, &scratch.0, &[])?.seconds);
            }
        }
        Ok(())
    };
    for round in rounds.each() {
        pair(round, &mut plain, &mut recorded)?;
    }
    let began = Instant::now();
    while began.elapsed() < rounds.more_pairs_within && !stats::is_told(&recorded, &plain) {
        pair(plain.len(), &mut plain, &mut recorded)?;
    }
    let mut memory = Vec::new();
    for _ in 0..rounds.most.min(MEMORY_RUNS) {
        job.clear_outputs()?;
        foreread.forget()?;
        let run = process::run_watching(&foreread.wrap(&job.command), &scratch.0, &[])?;
        memory.extend(run.peak_rss_kb.map(|kb| kb as f64 / 1024.0));
    }
    let ratio = paired_ratio(&recorded, &plain).context("no rounds")?;
    let margin_pct = stats::ratio_margin(&recorded, &plain).map(|margin| margin * 100.0);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Ok(RecordingCost {
        case: case.name.to_owned(),
        plain: Spread::of(plain).context("no rounds")?,
        recorded: Spread::of(recorded).context("no rounds")?,
        added_pct: Spread {
            min: percent(ratio.min),
            median: percent(ratio.median),
            max: percent(ratio.max),
            samples: ratio.samples,
        },
        margin_pct,
        memory_mib: Spread::of(memory),
    })
}

/// A case's job with its data in memory.
fn hot_job(case: &Case, tools: &Tools, scratch: &Path) -> Result<Job> {
    let data: PathBuf = case.data.folder(Size::Quick, tools)?;
    let job = case.work.job(&data, scratch, Size::Quick, tools)?;
    crate::cache::warm(&job.files)?;
    Ok(job)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Costs for the tests here, of the tables and of the targets.
    pub fn measured(added_ns: f64, added_pct: f64, memory_mib: f64) -> Cost {
        let spread = |value| Spread::of([value]).unwrap();
        let run = |state: &str, difference: f64| ReadRun {
            round: 0,
            state: state.into(),
            by_call: 1400.0,
            by_library: 1400.0 + difference,
            difference,
        };
        let runs = [run(PLAIN, 140.0), run(PREFETCHED, 140.0 + added_ns)];
        Cost {
            reads: by_state(&runs),
            recording: vec![RecordingCost {
                case: "hot".into(),
                plain: spread(1.0),
                recorded: spread(1.0 + added_pct / 100.0),
                added_pct: spread(added_pct),
                margin_pct: Some(0.5),
                memory_mib: Some(spread(memory_mib)),
            }],
        }
    }

    #[test]
    fn a_first_round_is_measured_even_when_there_is_no_time() {
        let rounds = |most, within| Rounds {
            most,
            within,
            more_pairs_within: Duration::ZERO,
        };
        let counted = |most, within| rounds(most, within).each().count();
        assert_eq!(counted(3, None), 3);
        assert_eq!(counted(3, Some(Duration::from_secs(60))), 3);
        assert_eq!(counted(3, Some(Duration::ZERO)), 1);
    }

    #[test]
    fn what_a_state_adds_is_counted_from_the_plain_run_of_its_round() {
        let run = |round, state: &str, difference| ReadRun {
            round,
            state: state.into(),
            by_call: 300.0,
            by_library: 300.0 + difference,
            difference,
        };
        // The machine itself adds 140 ns in one round, 10 in another.
        let costs = by_state(&[
            run(0, PLAIN, 140.0),
            run(0, PREFETCHED, 170.0),
            run(1, PLAIN, 10.0),
            run(1, "recorded", 50.0),
            run(1, PREFETCHED, 44.0),
        ]);
        let states: Vec<&str> = costs.iter().map(|cost| cost.state.as_str()).collect();
        assert_eq!(states, [PLAIN, PREFETCHED, "recorded"]);
        assert_eq!(costs[0].added_ns, None);
        assert_eq!(costs[0].difference_ns.median, 75.0);
        let added = costs[1].added_ns.unwrap();
        assert_eq!((added.min, added.median, added.max), (30.0, 32.0, 34.0));
        assert_eq!(costs[2].added_ns.unwrap().median, 40.0);
    }
}
