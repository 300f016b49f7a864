//! `foreread analyze`: the I/O signatures of a trace that another tool has made.
//!
//! Data flow: trace → accesses → a [`Stream`](streams::Stream) a process and file and operation, each with a recogniser →
//! signatures → [`families`], in which signatures that differ in a few numbers are one → a row each, the largest first.
//!
//! Invariant: memory is bounded by [`streams`]' limits, however long the traces are; what a trace has before the place
//! where it cannot be read on is analysed all the same.

mod families;
mod report;
mod signature;
mod streams;

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use foreread_traces::{Access, Format, Names, Operation, Trace};
use foreread_words::plain;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args;
use crate::chosen::or_underway_at;
use crate::output::output;
use families::Family;
use streams::Streams;

pub(crate) use report::{Row, print_families, rows};

/// Accesses between two moves of the progress bar.
const TICK: u64 = 1 << 18;

/// What was read of one trace.
#[derive(Debug, Serialize)]
pub(crate) struct TraceRead {
    path: PathBuf,
    format: &'static str,
    title: &'static str,
    /// What counts as raw bytes.
    raw: &'static str,
    accesses: u64,
    opens: u64,
    maps: u64,
    /// What was wrong, in full sentences: the first ones.
    problems: Vec<String>,
    /// How many there were.
    problem_count: u64,
    /// Whether the trace was read to its end.
    complete: bool,
    /// What was understood and is in no signature all the same.
    left_out: Vec<String>,
}

/// All that the traces come to.
pub(crate) struct Analysis {
    told: Vec<TraceRead>,
    names: Names,
    streams: Streams,
    families: Vec<Family>,
}

/// Analyses the traces asked for.
pub(crate) fn analyze(args: &args::Analyze) -> Result<ExitCode> {
    let mut names = Names::new();
    let mut streams = Streams::default();
    let mut told = Vec::new();
    let progress = progress();
    for path in paths(&args.traces)? {
        told.push(read(
            &path,
            args.format,
            &mut names,
            &mut streams,
            &progress,
        )?);
    }
    progress.finish_and_clear();
    streams.finish();
    let families = families::group(&streams);
    let analysis = Analysis {
        told,
        names,
        streams,
        families,
    };
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report::json(&analysis))
            .map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::print(&mut out, &analysis, args.all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Analyses records of the ranks of a parallel program: what of these files they read and write.
///
/// # Errors
/// When one cannot be opened.
pub(crate) fn ranks(records: &[PathBuf], files: &HashSet<String>) -> Result<Analysis> {
    let mut names = Names::new();
    let mut streams = Streams::default();
    for path in records {
        let mut trace = Trace::open(path, Some(Format::Record))?;
        while let Some(access) = trace.next(&mut names) {
            let moves = matches!(access.operation, Operation::Read | Operation::Write);
            if moves && files.contains(names.file(access.file)) {
                // Ranks that do the same take different times for it.
                streams.add(&Access { start: 0, ..access });
            }
        }
    }
    streams.finish();
    let families = families::group(&streams);
    Ok(Analysis {
        told: Vec::new(),
        names,
        streams,
        families,
    })
}

/// The traces: those named, and of a folder all the files in it.
fn paths(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        let within = || path.display().to_string();
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).with_context(within)? {
            let entry = entry.with_context(within)?;
            if entry.file_type().with_context(within)?.is_file() {
                inside.push(entry.path());
            }
        }
        if inside.is_empty() {
            bail!("{}: no trace is in this folder", path.display());
        }
        inside.sort();
        paths.append(&mut inside);
    }
    Ok(paths)
}

/// Reads one trace to its end, or to the place where it cannot be read on.
fn read(
    path: &Path,
    format: Option<Format>,
    names: &mut Names,
    streams: &mut Streams,
    progress: &ProgressBar,
) -> Result<TraceRead> {
    let mut trace = Trace::open(path, format).map_err(|why| or_underway_at(path, why))?;
    let (mut accesses, mut opens, mut maps) = (0, 0, 0);
    while let Some(access) = trace.next(names) {
        if access.operation == Operation::Start {
            continue;
        }
        accesses += 1;
        match access.operation {
            Operation::Open => opens += 1,
            Operation::Map => maps += 1,
            Operation::Read | Operation::Write => streams.add(&access),
            Operation::Start => {}
        }
        if accesses % TICK == 0 {
            progress.set_message(format!("{}: {accesses} accesses", path.display()));
        }
    }
    let problems = trace.problems();
    if accesses == 0
        && let Some(first) = problems.kept().first()
    {
        bail!("{first} (nothing else in the trace could be read)");
    }
    let complete = problems.end().is_none();
    Ok(TraceRead {
        path: path.to_path_buf(),
        format: trace.format().name(),
        title: trace.format().title(),
        raw: trace.format().raw(),
        accesses,
        opens,
        maps,
        problems: problems
            .kept()
            .iter()
            .map(|problem| plain(&problem.to_string()))
            .collect(),
        problem_count: problems.count(),
        complete,
        left_out: trace.left_out(),
    })
}

/// Shows on a terminal how far reading is, of a trace that takes a while.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("reading {msg}") {
        bar.set_style(style);
    }
    bar
}
