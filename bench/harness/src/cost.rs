//! What being watched costs: nanoseconds per hot read, and the price of recording.
//!
//! What is timed is in memory, so that only foreread's own work is measured; states are interleaved in
//! rounds. A read's cost is set against reads that go round the library in the same run, recording against the
//! plain run of its round.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::case::{Job, Size, Tools, Workload};
use crate::cases;
use crate::foreread::Foreread;
use crate::measure::Scratch;
use crate::process::{self, Invocation};
use crate::stats::{Spread, paired_ratio};

/// Batches of 500 reads by system call and as many by the library, in one run of the read-cost program.
const BATCHES: u64 = 1000;
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
    let mut states: Vec<State> = Vec::new();
    for _ in 0..rounds {
        note(&mut states, "plain", nanoseconds(&command)?);
        if library.is_file() {
            let name = "preloaded, no supervisor";
            note(&mut states, name, nanoseconds(&unattended)?);
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
            note(&mut states, &name, cost);
        }
    }
    let mut out = format!(
        "a hot 4 KiB pread, ns (medians of {rounds} runs of {BATCHES} pairs of batches)\n\n{:<26} {:>11} {:>11} {:>8} {:>14}\n",
        "state", "system call", "by library", "added", "added, range"
    );
    for state in &states {
        let column = |at: usize| Spread::of(state.runs.iter().map(|run| run[at]));
        let (Some(call), Some(by_library), Some(added)) = (column(0), column(1), column(2)) else {
            continue;
        };
        out += &format!(
            "{:<26} {:>11.1} {:>11.1} {:>8.1} {:>14}\n",
            state.name,
            call.median,
            by_library.median,
            added.median,
            format!("{:.1}..{:.1}", added.min, added.max)
        );
    }
    Ok(out + "\nto reach: at most 60 ns added while prefetching\n")
}

/// One state of the preload library and what its runs printed: ns a read by system call, by the library, added.
struct State {
    name: String,
    runs: Vec<[f64; 3]>,
}

fn note(states: &mut Vec<State>, name: &str, run: [f64; 3]) {
    if let Some(state) = states.iter_mut().find(|state| state.name == name) {
        state.runs.push(run);
    } else {
        states.push(State {
            name: name.to_owned(),
            runs: vec![run],
        });
    }
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
