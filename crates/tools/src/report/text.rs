//! `foreread explain`: the facts of a report as one screen of text.
//!
//! Lines are no longer than the terminal is wide, except for a long path: the terminal wraps it, so it can be copied whole.
//!
//! Data flow: [`CommandFacts`] → lines.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use foreread_words::counted;
use foreread_words::units::wrapped;

use super::facts::{CommandFacts, date};
use super::lanes::extremes;
use super::page::numbers;
use crate::output::{columns, output};
use crate::{args, chosen};

/// Lines of a screen; one is the prompt's.
const SCREEN: usize = 23;

/// Explains the chosen run.
pub(crate) fn explain(args: &args::Explain) -> Result<ExitCode> {
    let chosen = chosen::run(args.record.as_deref(), args.last, &args.command)?;
    let facts = CommandFacts::of(chosen).with_findings();
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &facts).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in lines(&facts, columns()) {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows that the lines take on a terminal of this width.
fn rows(lines: &[String], width: usize) -> usize {
    let rows = |line: &String| line.chars().count().div_ceil(width).max(1);
    lines.iter().map(rows).sum()
}

/// The text. It begins with the line printed after the run.
pub(super) fn lines(facts: &CommandFacts, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |text: &str, indent: usize| {
        let indent = indent.min(width / 4);
        for line in wrapped(text, width - indent) {
            lines.push(format!("{:indent$}{line}", ""));
        }
    };
    if let Some(line) = &facts.line {
        say(line, 0);
    }
    say(&facts.verdict, 0);
    let when = match (facts.run_at, facts.recorded_at) {
        (Some(run), Some(recorded)) => {
            format!("last run {}, recorded {}", date(run), date(recorded))
        }
        (Some(run), None) => format!("last run {}, no record", date(run)),
        (None, Some(recorded)) => format!("recorded {}, no account of a run", date(recorded)),
        (None, None) => String::new(),
    };
    let rank = facts.rank.as_ref().map(|rank| format!(", {rank}"));
    let rank = rank.unwrap_or_default();
    say(&format!("{}{rank} ({when})", facts.command), 0);
    let numbers = numbers(facts).map(|one| match one.note {
        "" => format!("{} {}", one.name, one.value),
        note => format!("{} {} ({note})", one.name, one.value),
    });
    say(&numbers.join(", "), 0);
    if let Some(ranks) = extremes(facts) {
        say(&ranks, 0);
    }
    let mut rest: Vec<Vec<String>> = Vec::new();
    let block = |text: [&str; 3]| -> Vec<String> {
        let mut block = Vec::new();
        for (place, part) in text.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let (first, more) = if place == 0 {
                ("- ", "  ")
            } else {
                ("  ", "  ")
            };
            for (line, part) in wrapped(part, width - 2).iter().enumerate() {
                let mark = if line == 0 { first } else { more };
                block.push(format!("{mark}{part}"));
            }
        }
        block
    };
    for finding in &facts.findings {
        rest.push(block([&finding.what, &finding.place, &finding.advice]));
    }
    for lack in &facts.lacks {
        rest.push(block([lack, "", ""]));
    }
    let mut left = rest.len();
    for block in rest {
        // The worst finding is always shown, whatever its length.
        let is_first = left == facts.findings.len() + facts.lacks.len();
        if !is_first && rows(&lines, width) + rows(&block, width) + 1 > SCREEN {
            break;
        }
        lines.extend(block);
        left -= 1;
    }
    if left > 0 {
        let more = counted(left as u64, "more finding", "more findings");
        let more = format!("{more}: foreread report");
        lines.extend(wrapped(&more, width).iter().map(|line| line.to_string()));
    }
    lines
}
