//! The gain of parallel programs: each rank runs under `foreread run`, under MPICH and Open MPI.
//!
//! The figure is the paper's: the time that the slowest rank spends in reads, as reported by the program itself. The time of the
//! whole run is no good measure, because starting the ranks takes as long as many reads. A round has a plain run from cold, a
//! first run (without a record), a second run (with the record of the first), and a run with the file in memory, the limit. The
//! plain run and foreread's pair alternate in coming first.
//!
//! Data flow: [`measure`] → [`Measured`] → [`figures`] → tables and targets.

pub mod figures;
pub mod launch;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cache;
use crate::case::{Case, Cold, Job, Purpose, Size, Start};
use crate::device::DEFAULT_READ_AHEAD_KB;
use crate::disk::Disk;
use crate::mpi::launch::{Launch, Mpi};
use crate::process::Invocation;
use crate::runs::{Runs, Settings};
use crate::scratch::Scratch;
use crate::tools::Tools;
use crate::tree::files_below;

/// Factor for the rounds of a case that foreread cannot help: showing a ratio within 1 % needs more pairs than showing a gain of
/// 20 %.
const MORE_PAIRS: usize = 3;

/// All measurements of a case on a disk. Times in seconds, of the slowest rank in the calls that count.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The case.
    pub case: String,
    /// Its pattern, which is its name without ranks and MPI.
    pub pattern: &'static str,
    /// The disk.
    pub disk: String,
    /// The number of ranks.
    pub ranks: u32,
    /// The MPI.
    pub mpi: Mpi,
    /// True if foreread cannot gain anything.
    pub no_harm: bool,
    /// True if everything is in memory; first runs record all the same.
    pub hot_start: bool,
    /// The command.
    pub command: String,
    /// Bytes that all ranks moved.
    pub bytes: u64,
    /// Plain runs.
    pub plain: Vec<f64>,
    /// Runs under foreread with nothing recorded, by round.
    pub first: Vec<f64>,
    /// Runs under foreread with the record of the first, by round.
    pub second: Vec<f64>,
    /// Plain runs with the file in the machine's own memory.
    pub hot: Vec<f64>,
    /// Starts that were not cold and so were not counted.
    pub discarded: usize,
    /// Anything unusual, as text.
    pub notes: Vec<String>,
}

/// Measures `case` on `disk` with the data in `original`; `say` receives the current step.
pub fn measure(
    case: &Case,
    disk: &Disk,
    original: &Path,
    settings: &Settings,
    tools: &Tools,
    say: &dyn Fn(&str),
) -> Result<Measured> {
    say("copying");
    let data = disk.holding(original)?;
    let scratch = Scratch::new(case.name, tools)?;
    let job = |data: &Path| case.work.job(data, &scratch.0, settings.size, tools);
    let alone = Settings {
        foreread: None,
        ..settings.clone()
    };
    let runs = Runs::new(case, disk, job(&data)?, &data, &scratch.0, &alone, tools)?;
    let launch = runs.job.launch.clone().context("the case has no ranks")?;
    let _read_ahead = runs.set_read_ahead(DEFAULT_READ_AHEAD_KB)?;
    let in_memory = job(original)?;
    let stage = Stage {
        runs: &runs,
        launch: &launch,
        in_memory: &in_memory,
        foreread: settings.foreread.as_deref(),
        store: &tools.root.join("records").join(case.name),
    };
    let no_harm = case.purpose == Purpose::NoHarm;
    let mut notes = disk.notes();
    notes.extend(runs.job.notes.iter().cloned());
    let mut measured = Measured {
        case: case.name.to_owned(),
        pattern: case.name.split('-').next().unwrap_or(case.name),
        disk: disk.kind.name().to_owned(),
        ranks: launch.ranks,
        mpi: launch.mpi,
        no_harm,
        hot_start: case.start == Start::Hot,
        command: launch.start(&runs.job.command).line(),
        bytes: 0,
        plain: Vec::new(),
        first: Vec::new(),
        second: Vec::new(),
        hot: Vec::new(),
        discarded: 0,
        notes,
    };
    let more = no_harm && !settings.exact_rounds && settings.size == Size::Full;
    let rounds = settings.rounds * if more { MORE_PAIRS } else { 1 };
    for round in 0..rounds {
        let plain = |measured: &mut Measured| -> Result<()> {
            say(&format!("round {}/{rounds}: plain", round + 1));
            let (bytes, seconds) = stage.plain()?;
            measured.bytes = bytes;
            measured.plain.push(seconds);
            Ok(())
        };
        if round % 2 == 0 {
            plain(&mut measured)?;
        }
        if settings.foreread.is_some() {
            say(&format!("round {}/{rounds}: foreread", round + 1));
            stage.forget()?;
            measured.first.push(stage.under()?);
            measured.second.push(stage.under()?);
        }
        if round % 2 == 1 {
            plain(&mut measured)?;
        }
        if !no_harm {
            measured.hot.push(stage.hot()?);
        }
    }
    measured.discarded = runs.discarded.get();
    Ok(measured)
}

/// The parts that all runs of a case share.
struct Stage<'a> {
    runs: &'a Runs<'a>,
    launch: &'a Launch,
    /// The case with its data on the machine's own disk.
    in_memory: &'a Job,
    foreread: Option<&'a Path>,
    store: &'a Path,
}

impl Stage<'_> {
    /// Removes every record, so that the next run is a first one.
    fn forget(&self) -> Result<()> {
        if self.store.exists() {
            fs::remove_dir_all(self.store)
                .with_context(|| format!("removing {}", self.store.display()))?;
        }
        fs::create_dir_all(self.store).with_context(|| format!("creating {}", self.store.display()))
    }

    /// Bytes and seconds of a plain run.
    fn plain(&self) -> Result<(u64, f64)> {
        self.timed(&self.launch.start(&self.runs.job.command), "plain")
    }

    /// Seconds of a run under foreread, with the records that there are.
    fn under(&self) -> Result<f64> {
        let foreread = self.foreread.context("foreread is left out")?;
        let command = &self.runs.job.command;
        cache::evict(&files_below(self.store)?)?;
        let wrapped = self.launch.under(foreread, self.store, command);
        Ok(self.timed(&wrapped, "foreread")?.1)
    }

    /// Seconds of a plain run with the file in memory.
    fn hot(&self) -> Result<f64> {
        cache::warm(&self.in_memory.files)?;
        self.told(|| {
            self.runs
                .hot_run(&self.launch.start(&self.in_memory.command))
        })
        .map(|(_, seconds)| seconds)
    }

    fn timed(&self, command: &Invocation, mode: &str) -> Result<(u64, f64)> {
        self.told(|| self.runs.cold(command, mode, Cold::Files))
    }

    /// The figures that the program leaves in a run.
    fn told<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(u64, f64)> {
        let path = &self.launch.figures;
        if path.exists() {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        run()?;
        let text = fs::read_to_string(path)
            .with_context(|| format!("the program left no figures in {}", path.display()))?;
        figures::told(&text).with_context(|| format!("{}: `{text}`", path.display()))
    }
}
