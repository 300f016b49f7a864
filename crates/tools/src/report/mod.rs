//! `foreread report`: a page about a command, from its record and its last run, or one part of it as a drawing or as data.
//!
//! The page is one file without scripts or external parts. It is complete in memory before it is written, so an earlier page survives a
//! full disk.
//!
//! Data flow: [`chosen`] → [`CommandFacts`] → [`charts`] → the page; `foreread explain` ([`text`]) prints the same facts.

pub(crate) mod charts;
mod csv;
pub(crate) mod digest;
mod drawing;
pub(crate) mod facts;
mod findings;
mod lanes;
mod page;
pub(crate) mod text;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use foreread_sys::replace;
use foreread_words::shown;
use foreread_words::units::bytes;

use crate::args::Section;
use crate::output::{Unable, output};
use crate::{args, chosen};
use charts::Chart;
use facts::CommandFacts;

/// Makes the report.
pub(crate) fn report(args: &args::Report) -> Result<ExitCode> {
    let chosen = chosen::run(args.record.as_deref(), args.last, &args.command)?;
    let facts = CommandFacts::of(chosen).with_findings();
    let to = args.output.as_deref();
    if let Some(part) = args.csv {
        return put(to, csv::of(&facts, part).as_bytes());
    }
    if args.json {
        let text = serde_json::to_string_pretty(&facts)? + "\n";
        return put(to, text.as_bytes());
    }
    if let Some(part) = args.svg {
        return put(to, drawing::svg(&charts_of(&facts, part)?).as_bytes());
    }
    if let Some(part) = args.png {
        if is_standard(to) && std::io::stdout().is_terminal() {
            bail!("a picture is nothing for a terminal: -o FILE.png writes it to a file");
        }
        return put(to, &drawing::png(&charts_of(&facts, part)?)?);
    }
    let page = page::of(&facts)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}-report.html", file_name(&facts.program))),
    };
    put(Some(&path), page.as_bytes())?;
    if path != Path::new("-") {
        let path = path.to_string_lossy();
        writeln!(output(), "{}: {}", shown(&path), bytes(page.len() as u64))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// True if the path means standard output.
fn is_standard(path: Option<&Path>) -> bool {
    path.is_none_or(|path| path == Path::new("-"))
}

/// Writes to a file, or to standard output if there is none.
fn put(path: Option<&Path>, content: &[u8]) -> Result<ExitCode> {
    match path.filter(|_| !is_standard(path)) {
        None => output().write_all(content)?,
        Some(path) => {
            replace::with(path, |file| file.write_all(content))
                .with_context(|| Unable(path.display().to_string()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A program's name made fit for a file name.
fn file_name(program: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.+".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = program.chars().take(64).map(plain).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "foreread".to_owned(),
        name => name.to_owned(),
    }
}

/// The charts of a part of the report.
fn charts_of(facts: &CommandFacts, part: Section) -> Result<Vec<Chart>> {
    let charts = match part {
        Section::Ledger => charts::ledger(facts).into_iter().collect(),
        Section::Timeline => charts::timeline(facts),
        Section::Distance => charts::distance(facts).into_iter().collect(),
        Section::Device => charts::device(facts).into_iter().collect(),
        Section::Files => charts::maps(facts),
        Section::Processes => lanes::processes(facts),
        Section::Ranks => lanes::ranks(facts),
    };
    match charts.is_empty() {
        false => Ok(charts),
        true => bail!("nothing is known of this part: foreread report says why"),
    }
}

#[cfg(test)]
mod tests;
