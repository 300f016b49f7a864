//! `foreread predict`: the predicted successors of a file.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use foreread_daemon::cli::own_state;
use foreread_daemon::control::wire::{Following, Said, Subject};
use foreread_daemon::control::{AskError, ask};
use foreread_daemon::{Options, predict_saved};
use foreread_sys::cache;
use foreread_words::shown;
use foreread_words::units::{WIDTH, cut};
use rustix::fs::OFlags;
use serde::Serialize;

use super::asking::{to_ask, unexpected};
use super::status::percent;
use crate::args;
use crate::output::{output, width};

/// Exit status if no file is predicted; errors have 2.
const NOTHING: u8 = 1;
/// Columns before the file's name.
const COLUMN: usize = 30;

/// A predicted file as JSON.
#[derive(Serialize)]
struct Listed {
    path: String,
    likelihood: f64,
    ahead: u32,
    /// The share of the file in memory; `null` for an empty file, or if the user may not know the share.
    in_memory: Option<f64>,
}

/// Prints the successors of a file.
pub(crate) fn predict(args: &args::daemon::Predict) -> Result<ExitCode> {
    // The daemon knows files by paths without symbolic links.
    let file = match args.file.canonicalize() {
        Ok(file) => file,
        Err(_) => std::path::absolute(&args.file)?,
    };
    let (files, nothing) = match ask(
        &to_ask(&args.place),
        &Subject::Predict { path: file.clone() },
    ) {
        Ok(answer) => match answer.said {
            Said::Predicted { files } => (files, "the daemon predicts"),
            other => return Err(unexpected(&other)),
        },
        Err(AskError::NotRunning) => (
            saved(args, &file)?,
            "no daemon is running, and the saved models predict",
        ),
        Err(why) => return Err(why.into()),
    };
    let mut met = HashSet::new();
    let first = |one: &&Following| met.insert(one.path.clone());
    let most = args.limit.map_or(usize::MAX, NonZeroUsize::get);
    // A pattern that returns to the file predicts the file itself.
    let files: Vec<&Following> = files.iter().filter(first).take(most).collect();
    let mut out = output();
    if args.json {
        let listed: Vec<Listed> = files.iter().map(|file| listed(file)).collect();
        serde_json::to_writer_pretty(&mut out, &listed).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    if files.is_empty() {
        let name = file.display().to_string();
        eprintln!("foreread: {nothing} no file after {}", shown(&name));
        return Ok(ExitCode::from(NOTHING));
    }
    if args.json {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "AHEAD  LIKELIHOOD  IN MEMORY  FILE")?;
    for file in &files {
        writeln!(out, "{}", line(file, width().is_some()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The prediction of the saved models.
fn saved(args: &args::daemon::Predict, file: &Path) -> Result<Vec<Following>> {
    let state: PathBuf = args
        .state
        .clone()
        .or_else(own_state)
        .context("no daemon is running, and there is no place for saved models: neither XDG_DATA_HOME nor HOME is set")?;
    let options = Options::default();
    let files = predict_saved(&state, options.model, options.threshold, file)
        .context("no daemon is running")?;
    Ok(files.into_iter().map(Into::into).collect())
}

fn listed(file: &Following) -> Listed {
    Listed {
        path: file.path.display().to_string(),
        likelihood: file.likelihood,
        ahead: file.ahead,
        in_memory: in_memory(&file.path).map(|(there, all)| there as f64 / all as f64),
    }
}

fn line(file: &Following, is_cut: bool) -> String {
    let memory = match in_memory(&file.path) {
        Some((there, all)) if there == all => "all".to_owned(),
        Some((there, all)) => percent(there, all),
        None => "?".to_owned(),
    };
    let name = file.path.display().to_string();
    let name = match is_cut {
        true => cut(&shown(&name), WIDTH - COLUMN, true),
        false => shown(&name).into_owned(),
    };
    let likelihood = format!("{:.0} %", file.likelihood * 100.0);
    format!("{:>5}  {likelihood:>10}  {memory:>9}  {name}", file.ahead)
}

/// The number of a file's resident pages, and of all its pages.
fn in_memory(path: &Path) -> Option<(u64, u64)> {
    // Opened without blocking: the path may be a pipe by now.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(flags.bits() as i32);
    let file = open.open(path).ok()?;
    let about = file.metadata().ok()?;
    let pages = about.len().div_ceil(foreread_sys::page_size());
    if !about.is_file() || pages == 0 {
        return None;
    }
    let there = cache::stat(&file, 0..about.len()).ok()?;
    Some((there.cached.min(pages), pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_says_how_much_is_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![0; 10_000]).expect("a file");
        let following = |path: &Path| Following {
            path: path.to_path_buf(),
            likelihood: 0.934,
            ahead: 3,
        };
        let near = line(&following(&path), true);
        if in_memory(&path).is_some() {
            assert!(near.starts_with("    3        93 %        all  "), "{near}");
        }
        let long = folder.path().join("x\n".repeat(200));
        let whole = line(&following(&long), false);
        assert!(whole.chars().count() > 400 && !whole.contains('\n'));
        let line = line(&following(&long), true);
        assert!(line.chars().count() <= WIDTH && !line.contains('\n'));
        assert!(line.contains(" ?  "), "{line}");
        assert_eq!(in_memory(folder.path()), None);
    }
}
