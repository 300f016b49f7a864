//! The gain from `foreread daemon`: programs that open many files, run beside a daemon with each of its models.
//!
//! The protocol is that of section 4 of the paper of EPCM (Kroeger and Long, USENIX 2001): warm-up runs in which the daemon
//! learns, then the measured runs, with all caches dropped before each; means with 90 % confidence intervals. The paper measures
//! one kernel after another. Here the runs are divided into a few passes, and each pass has all variants, so that a slowdown of
//! the machine affects all of them. A daemon's state is kept on disk from pass to pass.
//!
//! Data flow: [`measure`] → the variants' [`Daemon`]s and runs → [`Series`] → [`figures`] → tables and targets. Read latencies
//! come from further runs, under strace ([`latency`]).

mod daemon;
pub mod figures;
pub mod latency;

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::case::{Case, Cold, Lesson};
use crate::device::{DEFAULT_READ_AHEAD_KB, Facts};
use crate::disk::Disk;
use crate::process;
use crate::runs::{Runs, Settings};
use crate::sample::Sample;
use crate::scratch::Scratch;
use crate::tools::Tools;
pub use daemon::Variant;
use daemon::{Daemon, Means};
use latency::Latencies;

/// Warm-up runs before the first measured one, as in the paper.
const WARM_UPS: usize = 3;
/// Measured runs by default (as in the paper), and with --quick.
const RUNS: usize = 20;
const QUICK_RUNS: usize = 4;
/// Passes that the measured runs are divided into. More passes pair the variants better, but each one costs a start of every
/// daemon and an uncounted run.
const PASSES: usize = 4;

/// All runs of one variant.
#[derive(Debug, Serialize)]
pub struct Series {
    /// The variant.
    pub variant: Variant,
    /// The measured runs.
    pub runs: Vec<Sample>,
    /// Read latencies, from further runs.
    pub reads: Latencies,
    /// The daemon's status before each of its ends.
    pub status: Vec<serde_json::Value>,
}

/// Everything measured of a case on a disk.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// The case.
    pub case: String,
    /// The disk.
    pub disk: String,
    /// The device below the data, before the benchmarks changed it.
    pub device: Option<Facts>,
    /// The command.
    pub command: String,
    /// A series for each variant, plain first.
    pub series: Vec<Series>,
    /// Variants that could not be measured, with the reason.
    pub missing: Vec<(Variant, String)>,
    /// Starts that were not cold and so were not counted.
    pub discarded: usize,
    /// Anything unusual, as text.
    pub notes: Vec<String>,
}

impl Measured {
    /// The series of a variant.
    pub fn of(&self, variant: Variant) -> Option<&Series> {
        self.series.iter().find(|series| series.variant == variant)
    }
}

/// Measures `case` on `disk` with the data in `original`. `say` receives the current step; `keep` receives the times of each pass
/// of a variant at its end, so that an interrupt loses none of them.
pub fn measure(
    case: &Case,
    disk: &Disk,
    original: &Path,
    (settings, variants): (&Settings, &[Variant]),
    tools: &Tools,
    say: &dyn Fn(&str),
    keep: &dyn Fn(&str),
) -> Result<Measured> {
    say("copying");
    let data = disk.holding(original)?;
    let scratch = Scratch::new(case.name, tools)?;
    let job = case.work.job(&data, &scratch.0, settings.size, tools)?;
    let alone = Settings {
        foreread: None,
        ..settings.clone()
    };
    let runs = Runs::new(case, disk, job, &data, &scratch.0, &alone, tools)?;
    let _read_ahead = runs.set_read_ahead(DEFAULT_READ_AHEAD_KB)?;
    let mut notes = disk.notes();
    notes.extend(runs.job.notes.iter().cloned());
    let means = Means {
        foreread: settings.foreread.as_deref(),
        state: &tools.root.join("daemons").join(case.name),
        scratch: &scratch.0,
    };
    let mut missing = Vec::new();
    let mut series = Vec::new();
    for &variant in variants {
        match means.missing(variant) {
            Some(reason) => missing.push((variant, reason)),
            None => series.push(Series {
                variant,
                runs: Vec::new(),
                reads: Latencies::default(),
                status: Vec::new(),
            }),
        }
    }
    if series.is_empty() {
        bail!("no variant can be measured here");
    }
    means.forget()?;
    let wanted = match settings.exact_rounds {
        true => settings.rounds,
        false => settings.size.pick(QUICK_RUNS, RUNS),
    };
    let passes = wanted.min(PASSES);
    for pass in 0..passes {
        let count = (pass + 1) * wanted / passes - pass * wanted / passes;
        let turns = series.len();
        for turn in 0..turns {
            // Each variant comes first in turn.
            let series = &mut series[(pass + turn) % turns];
            let say = |what: &str| {
                let variant = series.variant.name();
                say(&format!("pass {}/{passes} {variant}: {what}", pass + 1));
            };
            let warm_ups = match (pass, series.variant) {
                // Nobody learns.
                (_, Variant::Plain) | (1.., _) => 1,
                (0, _) => runs.job.lesson.times.unwrap_or(WARM_UPS),
            };
            let turn = Turn {
                runs: &runs,
                means: &means,
                variant: series.variant,
                warm_ups,
                count,
                strace: settings.strace,
            };
            let done = turn.take(&scratch.0, &say)?;
            let times = figures::times(&done.samples);
            let (name, disk, pass) = (series.variant.name(), disk.kind.name(), pass + 1);
            keep(&format!(
                "{} on {disk}, {name}, pass {pass}/{passes}: {times}",
                case.name
            ));
            series.runs.extend(done.samples);
            series.reads.add(&done.reads);
            series.status.extend(done.status);
        }
    }
    notes.extend(warmer(&series));
    Ok(Measured {
        case: case.name.to_owned(),
        disk: disk.kind.name().to_owned(),
        device: runs.facts(),
        command: runs.job.command.line(),
        series,
        missing,
        discarded: runs.discarded.get(),
        notes,
    })
}

/// A cold run that reads less than this share of a plain run's bytes did not start cold: the daemon's reads count as well.
const ALL: f64 = 0.9;

/// Notes about variants whose runs read fewer bytes from the disks than plain runs: some files were in memory before their start.
fn warmer(series: &[Series]) -> Vec<String> {
    let bytes = |one: &Series| {
        let all: f64 = one
            .runs
            .iter()
            .filter_map(|run| Some(run.device_bytes? as f64))
            .sum();
        all / one.runs.len() as f64
    };
    let plain = series.iter().find(|one| one.variant == Variant::Plain);
    let Some(plain) = plain.map(bytes) else {
        return Vec::new();
    };
    let cold = series.iter().filter(|one| one.variant != Variant::Hot);
    let less = cold.filter(|one| bytes(one) < plain * ALL);
    less.map(|one| {
        let name = one.variant.name();
        format!("{name} read less of the disks than plain: its starts were not cold")
    })
    .collect()
}

/// The runs of one variant in a pass.
struct Turn<'a> {
    runs: &'a Runs<'a>,
    means: &'a Means<'a>,
    variant: Variant,
    warm_ups: usize,
    count: usize,
    strace: bool,
}

/// The results of a turn.
struct Done {
    samples: Vec<Sample>,
    reads: Latencies,
    status: Option<serde_json::Value>,
}

impl Turn<'_> {
    fn take(&self, scratch: &Path, say: &dyn Fn(&str)) -> Result<Done> {
        let lesson = &self.runs.job.lesson;
        self.runs.prove()?;
        say("starts");
        let mut daemon = self.means.start(self.variant)?;
        for number in 0..self.warm_ups {
            say(&format!("warm-up {}", number + 1));
            self.warm_up(lesson, scratch)?;
        }
        let mut samples = Vec::new();
        for number in 0..self.count {
            say(&format!("run {}", number + 1));
            self.before(lesson, scratch)?;
            samples.push(match self.variant {
                Variant::Hot => self.runs.hot()?,
                _ => self
                    .runs
                    .cold_unseen(&self.runs.job.command, self.variant.name())?,
            });
            if let Some(between) = &lesson.between {
                succeeds(between, scratch)?;
            }
            daemon.iter_mut().try_for_each(Daemon::check)?;
        }
        let reads = match self.strace {
            true => self.reads(scratch, say)?,
            false => Latencies::default(),
        };
        let status = daemon.as_mut().and_then(Daemon::status);
        Ok(Done {
            samples,
            reads,
            status,
        })
    }

    /// The times of reads, from a run under strace.
    fn reads(&self, scratch: &Path, say: &dyn Fn(&str)) -> Result<Latencies> {
        say("what reads take");
        self.before(&self.runs.job.lesson, scratch)?;
        let trace = scratch.join("reads");
        let watched = latency::watched(&self.runs.job.command, &trace);
        match self.variant {
            Variant::Hot => self.runs.hot_run(&watched)?,
            _ => self.runs.cold_unseen(&watched, "strace")?,
        };
        latency::read(&trace)
    }

    /// One uncounted run from cold.
    fn warm_up(&self, lesson: &Lesson, scratch: &Path) -> Result<()> {
        self.before(lesson, scratch)?;
        let own = std::slice::from_ref(&self.runs.job.command);
        let commands = match lesson.teach.as_slice() {
            [] => own,
            teach => teach,
        };
        for command in commands {
            if self.variant != Variant::Hot {
                self.runs.empty(Cold::Reboot)?;
            }
            self.runs.job.clear_outputs()?;
            let run = process::run(command, scratch, &[])?;
            let expected = self.runs.job.status;
            anyhow::ensure!(
                run.outcome.status == expected,
                "`{}` ended with status {}: {}",
                command.line(),
                run.outcome.status,
                run.stderr
            );
        }
        match &lesson.between {
            Some(between) => succeeds(between, scratch),
            None => Ok(()),
        }
    }

    fn before(&self, lesson: &Lesson, scratch: &Path) -> Result<()> {
        match &lesson.before {
            Some(before) => succeeds(before, scratch),
            None => Ok(()),
        }
    }
}

/// Runs a command that is not measured; fails if the command fails.
fn succeeds(command: &process::Invocation, scratch: &Path) -> Result<()> {
    let run = process::run(command, scratch, &[])?;
    if run.outcome.status != 0 {
        let (line, status) = (command.line(), run.outcome.status);
        bail!("`{line}` ended with status {status}: {}", run.stderr);
    }
    Ok(())
}
