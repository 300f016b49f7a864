//! The cost of a want: processor time of all processes and threads, from the record to the account, per small file, scattered
//! page and name. Memory is emptied before each run, so that the plain side includes the program's own waits, each of which costs
//! processor time as well.

use anyhow::{Context, Result, bail};

use crate::case::Size;
use crate::cases;
use crate::foreread::Foreread;
use crate::process::{self, Invocation};
use crate::scratch::Scratch;
use crate::stats::{Spread, paired_difference};
use crate::tools::Tools;

/// A kind of want: the number of wants, the program that reads them, and the most µs that each may cost.
struct Kind {
    name: &'static str,
    /// The case that provides the data.
    case: &'static str,
    count: f64,
    script: &'static str,
    most: f64,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "small file",
        case: "ripgrep",
        count: 6000.0,
        script: "grep -r zzzz tree || true",
        most: 5.0,
    },
    Kind {
        name: "scattered page",
        case: "random-0us",
        count: 20_000.0,
        script: "",
        most: 2.0,
    },
    Kind {
        name: "name",
        case: "ripgrep",
        count: 6000.0,
        script: "find tree -size +1000k",
        most: 2.0,
    },
];

/// Measures all kinds, `rounds` times each; returns a table.
///
/// # Errors
/// When data cannot be made, or a run fails.
pub fn measure(foreread: &std::path::Path, tools: &Tools, rounds: usize) -> Result<String> {
    let mut out = format!(
        "processor time of all processes for each want, µs: medians of {rounds} pairs of cold runs\n\n\
         {:<16} {:>8} {:>10} {:>8} {:>16} {:>9}\n",
        "want", "plain", "foreread", "added", "range", "to reach"
    );
    for kind in &KINDS {
        let added = of(kind, foreread, tools, rounds)?;
        let (plain, with, difference) = added;
        let verdict = if difference.median <= kind.most {
            "met"
        } else {
            "MISSED"
        };
        out += &format!(
            "{:<16} {:>8.1} {:>10.1} {:>8.1} {:>16} {:>4.0} {verdict}\n",
            kind.name,
            plain.median,
            with.median,
            difference.median,
            format!("{:.1}..{:.1}", difference.min, difference.max),
            kind.most,
        );
    }
    Ok(out)
}

/// µs per want: plain, under foreread, and their difference pair by pair.
fn of(
    kind: &Kind,
    binary: &std::path::Path,
    tools: &Tools,
    rounds: usize,
) -> Result<(Spread, Spread, Spread)> {
    let scratch = Scratch::new("cost", tools)?;
    let case = cases::all()
        .iter()
        .find(|case| case.name == kind.case)
        .with_context(|| format!("there is no case {}", kind.case))?;
    let dir = case.data.folder(Size::Full, tools)?;
    let command = if kind.script.is_empty() {
        case.work.job(&dir, &scratch.0, Size::Full, tools)?.command
    } else {
        Invocation {
            program: "sh".into(),
            args: ["-c", kind.script].map(Into::into).to_vec(),
            cwd: dir,
            env: Vec::new(),
        }
    };
    let foreread = Foreread::new(binary, &tools.root.join("records/want-cost"), &scratch.0);
    foreread.forget()?;
    let wrapped = foreread.wrap(&command);
    let cold = |command: &Invocation| -> Result<f64> {
        crate::cache::drop_everything()?;
        let run = process::run(command, &scratch.0, &[])?;
        if run.outcome.status != 0 {
            bail!("`{}` failed: {}", command.line(), run.stderr);
        }
        Ok(run.cpu_seconds * 1e6 / kind.count)
    };
    // The recording run.
    cold(&wrapped)?;
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        plain.push(cold(&command)?);
        with.push(cold(&wrapped)?);
    }
    let difference = paired_difference(&with, &plain).context("no rounds")?;
    let spread = |all: Vec<f64>| Spread::of(all).context("no rounds");
    Ok((spread(plain)?, spread(with)?, difference))
}
