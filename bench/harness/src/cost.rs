//! What being watched costs: nanoseconds per hot read, and the price of recording.
//!
//! What is timed is in memory, so that only foreread's own work is measured; states
//! are interleaved in rounds and each is set against the plain run of its round.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::case::{Job, Size, Tools, Workload};
use crate::cases;
use crate::foreread::Foreread;
use crate::measure::Scratch;
use crate::process::{self, Invocation};
use crate::stats::{Spread, paired_ratio};

/// Hot reads per run of the read-cost program.
const READS: u64 = 1_000_000;
/// Pages of its file; those not read in the timed part give a prefetcher something to do.
const PAGES: usize = 4096;

/// The added time of one hot 4 KiB pread in each state of the preload library.
pub fn per_read(binary: &Path, tools: &Tools, rounds: usize) -> Result<String> {
    let scratch = Scratch::new("pread-cost", tools)?;
    let file = tools.root.join("hot-page");
    std::fs::write(&file, vec![1; PAGES * 4096])
        .with_context(|| format!("writing {}", file.display()))?;
    let program = tools.compiled("hotpread", include_str!("../../programs/hotpread.c"))?;
    let command = Invocation {
        program,
        args: vec![file.clone().into(), READS.to_string().into()],
        cwd: tools.root.clone(),
        env: Vec::new(),
    };
    let foreread = Foreread::new(binary, &tools.root.join("records/pread-cost"), &scratch.0);
    let mut unattended = command.clone();
    let library = binary.with_file_name("libforeread_preload.so");
    unattended
        .env
        .push(("LD_PRELOAD".into(), library.clone().into()));

    let nanoseconds = |command: &Invocation| -> Result<f64> {
        crate::cache::evict(std::slice::from_ref(&file))?;
        let run = process::run(command, &scratch.0, &[])?;
        let text = run.stdout.trim();
        text.parse().with_context(|| {
            format!(
                "`{}` printed `{text}` (status {}): {}",
                command.line(),
                run.outcome.status,
                run.stderr
            )
        })
    };
    let mut states: Vec<State> = Vec::new();
    for _ in 0..rounds {
        let plain = nanoseconds(&command)?;
        note(&mut states, "plain", plain, plain);
        if library.is_file() {
            note(
                &mut states,
                "preloaded, no supervisor",
                nanoseconds(&unattended)?,
                plain,
            );
        }
        foreread.forget()?;
        for expected in ["recorded", "prefetched"] {
            let cost = nanoseconds(&foreread.wrap(&command))?;
            let mode = foreread.account()?.mode;
            let name = if mode == expected {
                mode
            } else {
                format!("{mode} (for {expected})")
            };
            note(&mut states, &name, cost, plain);
        }
    }
    let mut out =
        format!("a hot 4 KiB pread, ns (medians of {rounds} paired runs of {READS} reads)\n\n");
    out += &format!(
        "{:<28} {:>9} {:>9} {:>20}\n",
        "state", "ns", "added", "added, range"
    );
    for state in &states {
        let (Some(cost), Some(added)) = (
            Spread::of(state.costs.clone()),
            Spread::of(state.added.clone()),
        ) else {
            continue;
        };
        let range = format!("{:.1}..{:.1}", added.min, added.max);
        out += &format!(
            "{:<28} {:>9.1} {:>9.1} {range:>20}\n",
            state.name, cost.median, added.median
        );
    }
    Ok(out + "\nto reach: at most 60 ns added while prefetching\n")
}

/// One state of the preload library and its costs, in ns per read.
struct State {
    name: String,
    costs: Vec<f64>,
    added: Vec<f64>,
}

fn note(states: &mut Vec<State>, name: &str, cost: f64, plain: f64) {
    let place = states
        .iter()
        .position(|state| state.name == name)
        .unwrap_or_else(|| {
            states.push(State {
                name: name.to_owned(),
                costs: Vec::new(),
                added: Vec::new(),
            });
            states.len() - 1
        });
    states[place].costs.push(cost);
    states[place].added.push(cost - plain);
}

/// The run time and memory that recording adds to hot runs: many reads, a scan, many processes.
pub fn recording(binary: &Path, tools: &Tools, rounds: usize) -> Result<String> {
    let mut out = format!(
        "recording, everything in memory (medians of {rounds} paired runs)\n\n{:<12} {:>9} {:>10} {:>8} {:>20} {:>13}\n",
        "case", "plain s", "recorded s", "added", "added, range", "foreread MiB"
    );
    for name in ["hot", "sequential", "make"] {
        let all = cases::all();
        let case = all
            .iter()
            .find(|case| case.name == name)
            .context("a case has gone")?;
        let scratch = Scratch::new(name, tools)?;
        let job = hot_job(case.work.as_ref(), tools, &scratch.0)?;
        let foreread = Foreread::new(binary, &tools.root.join("records/record-cost"), &scratch.0);
        let (mut plain, mut recorded, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            job.clear_outputs()?;
            plain.push(process::run(&job.command, &scratch.0, &[])?.seconds);
            foreread.forget()?;
            job.clear_outputs()?;
            let run = process::run_watching(&foreread.wrap(&job.command), &scratch.0, &[], true)?;
            recorded.push(run.seconds);
            memory.extend(run.peak_rss_kb.map(|kb| kb as f64 / 1024.0));
        }
        let added = paired_ratio(&recorded, &plain).context("no rounds")?;
        let median =
            |samples: Vec<f64>| Spread::of(samples).map_or(f64::NAN, |spread| spread.median);
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        out += &format!(
            "{name:<12} {:>9.3} {:>10.3} {:>7.1}% {:>20} {:>13.1}\n",
            median(plain),
            median(recorded),
            percent(added.median),
            format!("{:.1}..{:.1}%", percent(added.min), percent(added.max)),
            median(memory),
        );
    }
    Ok(out + "\nto reach: at most 5 % and 64 MiB\n")
}

/// A case's job with its data in memory.
fn hot_job(work: &dyn Workload, tools: &Tools, scratch: &Path) -> Result<Job> {
    let data: PathBuf = tools.data(work, Size::Quick)?;
    let job = work.job(&data, scratch, Size::Quick, tools)?;
    crate::cache::warm(&job.files)?;
    Ok(job)
}
