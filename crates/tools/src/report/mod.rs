//! `foreread report`: a page on a command, its record and its last run, or one part of that as a drawing or as data.
//!
//! The page is one file that loads nothing and needs no script. It is made whole in memory and then takes its place, so that where there is
//! no room for it an earlier one stays.
//!
//! Data flow: [`chosen`] → [`Facts`] → [`charts`] → the page; `foreread explain` ([`text`]) prints the same facts.

pub(crate) mod charts;
mod csv;
pub(crate) mod digest;
pub(crate) mod facts;
mod findings;
mod page;
pub(crate) mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use foreread_sys::replace;
use foreread_words::shown;
use foreread_words::units::bytes;

use crate::args::Part;
use crate::output::{Unable, output};
use crate::{args, chosen};
use charts::Chart;
use facts::Facts;

/// Makes the report asked for.
pub(crate) fn report(args: &args::Report) -> Result<ExitCode> {
    let chosen = chosen::run(args.record.as_deref(), args.last, &args.command)?;
    let facts = Facts::of(chosen).with_findings();
    if let Some(part) = args.csv {
        return put(args.output.as_deref(), &csv::of(&facts, part));
    }
    if args.json {
        let text = serde_json::to_string_pretty(&facts)? + "\n";
        return put(args.output.as_deref(), &text);
    }
    if let Some(part) = args.svg {
        return put(args.output.as_deref(), &drawing(&facts, part)?);
    }
    let page = page::of(&facts)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}-report.html", file_name(&facts.program))),
    };
    put(Some(&path), &page)?;
    if path != Path::new("-") {
        let path = path.to_string_lossy();
        writeln!(output(), "{}: {}", shown(&path), bytes(page.len() as u64))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to a file, or without one to standard output.
fn put(path: Option<&Path>, text: &str) -> Result<ExitCode> {
    match path.filter(|path| *path != Path::new("-")) {
        None => output().write_all(text.as_bytes())?,
        Some(path) => {
            replace::file(path, text).with_context(|| Unable(path.display().to_string()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A program's name as a part of a file's.
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

/// A part as one drawing.
fn drawing(facts: &Facts, part: Part) -> Result<String> {
    let chart = match part {
        Part::Ledger => charts::ledger(facts),
        Part::Timeline => stacked(charts::timeline(facts)),
        Part::Distance => charts::distance(facts),
        Part::Device => charts::device(facts),
        Part::Files => {
            let record = facts.record.as_ref();
            let file = record.and_then(|record| Some((record, record.files.first()?)));
            file.map(|(record, file)| charts::map(record, file))
        }
        Part::Processes => stacked(charts::processes(facts)),
    };
    match chart {
        Some(chart) => Ok(chart.alone()),
        None => bail!("nothing is known of this part: foreread report says why"),
    }
}

/// Charts one above the other, as one.
fn stacked(charts: Vec<Chart>) -> Option<Chart> {
    let mut charts = charts.into_iter();
    let mut all = charts.next()?;
    for chart in charts {
        let body = &chart.body;
        all.body += &format!(
            r#"<g transform="translate(0 {:.0})">{body}</g>"#,
            all.height
        );
        all.title = format!("{}; {}", all.title, chart.title);
        all.legend.extend(chart.legend);
        all.height += chart.height;
    }
    Some(all)
}

#[cfg(test)]
mod tests;
