//! `foreread analyze`: the I/O signatures in a trace of another tool.
//!
//! Data flow: trace → accesses → one [`Stream`](streams::Stream) for each process, file and operation, with its recogniser → signatures →
//! [`families`], which join signatures that differ in a few numbers → one row per family, the largest first.
//!
//! Invariant: memory is bounded by the limits in [`streams`], for traces of any length. If a trace becomes unreadable, everything before
//! that place is analysed.

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

/// Accesses between two updates of the progress bar.
const TICK: u64 = 1 << 18;

/// A trace after reading, with its counts and problems.
#[derive(Debug, Serialize)]
pub(crate) struct TraceRead {
    path: PathBuf,
    format: &'static str,
    title: &'static str,
    /// The part of the trace that counts as raw bytes, in words.
    raw: &'static str,
    accesses: u64,
    opens: u64,
    maps: u64,
    /// The first problems, as sentences.
    problems: Vec<String>,
    /// Number of problems.
    problem_count: u64,
    /// True if the trace was read to its end.
    complete: bool,
    /// Calls that were parsed but belong to no signature, in sentences.
    left_out: Vec<String>,
}

/// The result of all traces.
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

/// Analyses records of the ranks of a parallel program: their reads and writes of these files.
///
/// # Errors
/// When a record cannot be opened.
pub(crate) fn ranks(records: &[PathBuf], files: &HashSet<String>) -> Result<Analysis> {
    let mut names = Names::new();
    let mut streams = Streams::default();
    for path in records {
        let mut trace = Trace::open(path, Some(Format::Record))?;
        while let Some(access) = trace.next(&mut names) {
            let moves = matches!(access.operation, Operation::Read | Operation::Write);
            if moves && files.contains(names.file(access.file)) {
                // Equal ranks differ in their times, so times are left out.
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

/// The traces: the named files, and all files in the named folders.
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

/// Reads one trace to its end, or to the first place that cannot be read.
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

/// A progress bar, shown on a terminal only and for long traces only.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("reading {msg}") {
        bar.set_style(style);
    }
    bar
}
