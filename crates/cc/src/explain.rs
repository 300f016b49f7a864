//! Explains the driver's work on request: `--explain`, or `FOREREAD_CC_EXPLAIN`.
//!
//! Nothing is printed without a request, because callers of a compiler read its standard error, except one line per link if the translator
//! is missing: users of this driver expect prefetch threads.

use std::fmt::{self, Display, Formatter};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use foreread_words::shown;
use serde::Serialize;

use super::slice::{Function, Opened};

/// `0` for nothing, not even a warning; `1` for standard error, or the path of a file to append to; a path ending in `.jsonl` gets a
/// line of JSON for each object and program.
const VARIABLE: &str = "FOREREAD_CC_EXPLAIN";

/// Destination of explanations.
#[derive(Debug)]
pub(super) struct Explanation {
    to_stderr: bool,
    file: Option<PathBuf>,
    /// Not even a warning is wanted.
    silent: bool,
}

impl Explanation {
    /// The destination requested by the environment and the command line.
    pub(super) fn wanted(by_option: bool) -> Self {
        let asked = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let silent = asked.as_ref().is_some_and(|value| value == "0");
        let asked = asked.filter(|_| !silent);
        let to_stderr = by_option || asked.as_ref().is_some_and(|value| value == "1");
        let file = asked.filter(|value| value != "1").map(PathBuf::from);
        Self {
            to_stderr,
            file,
            silent,
        }
    }

    /// Prints an unrequested warning on standard error, unless explanations go there anyway.
    pub(super) fn warn(&self, report: &Report) {
        if !self.silent && !self.to_stderr {
            let _ = std::io::stderr().write_all(report.to_string().as_bytes());
        }
    }

    /// Writes a report to the requested places, with one write each, so that reports of a parallel build do not mix. A file that cannot be
    /// written costs only the explanation.
    pub(super) fn give(&self, report: &Report) {
        if self.to_stderr {
            let _ = std::io::stderr().write_all(report.to_string().as_bytes());
        }
        let Some(path) = &self.file else { return };
        let json = path.extension().is_some_and(|suffix| suffix == "jsonl");
        let text = if json {
            serde_json::to_string(report)
                .map(|line| line + "\n")
                .unwrap_or_default()
        } else {
            report.to_string()
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
    }
}

/// The result for an object or program.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The object or program.
    output: PathBuf,
    /// True if it has a prefetch thread.
    sliced: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Its units.
    units: Vec<UnitReport>,
    functions: Vec<Function>,
    /// The files that the program opens.
    files: Vec<Opened>,
    /// Assumptions, with their places.
    assumed: Vec<String>,
    /// Loads from mapped files that are not announced: places, and why.
    unannounced: Vec<String>,
    /// Places where the prefetch thread waits for the program.
    sync_points: u64,
    seconds: Seconds,
    bytes: Bytes,
}

/// The result for a unit of the program.
#[derive(Debug, Serialize)]
pub(super) struct UnitReport {
    /// Its source, or its object where the source is not known.
    pub(super) name: String,
    /// `changed`, `unchanged` or `left whole`.
    pub(super) state: &'static str,
    /// Why it was left whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// Time of the driver's own work, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Seconds {
    pub(super) slicing: f64,
    pub(super) compiling: f64,
    pub(super) linking: f64,
}

/// The size of the program's file before and after, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Bytes {
    pub(super) plain: u64,
    pub(super) sliced: u64,
}

impl Report {
    /// The report of an output that is unchanged.
    pub(super) fn plain(output: &Path, why: &anyhow::Error) -> Self {
        Self {
            output: output.to_owned(),
            why: Some(format!("{why:#}")),
            ..Self::default()
        }
    }

    /// The report of a program before its result is known.
    pub(super) fn of(output: &Path, units: Vec<UnitReport>) -> Self {
        Self {
            output: output.to_owned(),
            units,
            ..Self::default()
        }
    }

    /// Adds the slicer's results.
    pub(super) fn sliced_into(&mut self, slice: super::slice::Slice) {
        self.functions = slice.functions;
        self.files = slice.files;
        self.assumed = slice.assumed;
        self.unannounced = slice.unannounced;
        self.sync_points = slice.sync_points;
    }

    /// The program has its prefetch thread.
    pub(super) fn done(mut self, seconds: Seconds, bytes: Bytes) -> Self {
        self.sliced = true;
        (self.seconds, self.bytes) = (seconds, bytes);
        self
    }

    /// The program stays unchanged.
    pub(super) fn undone(mut self, why: &anyhow::Error) -> Self {
        self.why = Some(format!("{why:#}"));
        self
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let output = self.output.to_string_lossy();
        let output = shown(&output);
        match &self.why {
            Some(why) => {
                let why = shown_lines(why);
                writeln!(out, "foreread cc: {output}: no prefetch thread: {why}")?;
            }
            None => {
                let Seconds {
                    slicing,
                    compiling,
                    linking,
                } = self.seconds;
                writeln!(
                    out,
                    "foreread cc: {output}: has a prefetch thread (slicing {slicing:.2} s, \
                     compiling {compiling:.2} s, linking {linking:.2} s; {} to {} bytes; \
                     waits for the program at {} places)",
                    self.bytes.plain, self.bytes.sliced, self.sync_points
                )?;
            }
        }
        for unit in &self.units {
            write!(out, "  {}: {}", shown(&unit.name), unit.state)?;
            write_why(out, unit.why.as_deref())?;
        }
        for function in &self.functions {
            let Function {
                name,
                file,
                line,
                status,
                why,
            } = function;
            let file = shown(file);
            write!(out, "  {file}:{line}: {name}: {status}")?;
            write_why(out, why.as_deref())?;
        }
        for file in &self.files {
            let (place, path) = (shown(&file.place), shown(&file.path));
            write!(out, "  {place}: file {path}: {}", file.kind)?;
            write_why(out, file.why.as_deref())?;
        }
        for place in &self.assumed {
            writeln!(out, "  assumed: {}", shown(place))?;
        }
        for place in &self.unannounced {
            writeln!(out, "  not announced: {}", shown(place))?;
        }
        Ok(())
    }
}

/// The same as [`shown`], except that lines are kept: linker messages have several.
fn shown_lines(why: &str) -> String {
    let lines: Vec<_> = why.split('\n').map(shown).collect();
    lines.join("\n")
}

fn write_why(out: &mut Formatter<'_>, why: Option<&str>) -> fmt::Result {
    match why.filter(|why| !why.is_empty()) {
        Some(why) => writeln!(out, ": {}", shown_lines(why)),
        None => writeln!(out),
    }
}
