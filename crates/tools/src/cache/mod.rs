//! `foreread cache`: saves which pages of files are in memory, and restores them.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`group`] | a control group → the files of its programs |
//! | [`mounts`] | the file systems whose files are examined |
//! | [`save`] | files and folders → pages in memory → a saved cache |
//! | [`saved`] | a saved cache → missing pages of unchanged files |
//! | [`restore`] | these pages → the page cache, in their order on the devices |
//!
//! A saved cache is a record ([`foreread_plan::format`]): each range of pages is a touch, and files have the order in which the user named
//! them.
//!
//! Invariants: no link is followed, nothing is mounted, and only regular files on local file systems that this user may read are opened.

mod group;
mod mounts;
mod restore;
mod save;
mod saved;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use foreread_words::shown;
use foreread_words::units::folded;

use crate::args::cache::Cache;
use crate::output::{Output, width};

/// Runs `save` or `restore`.
pub(crate) fn cache(args: &Cache) -> Result<ExitCode> {
    match args {
        Cache::Save(args) => save::save(args),
        Cache::Restore(args) => restore::restore(args),
    }
}

/// Prints each sentence on its own line, wrapped on a narrow terminal.
fn print(out: &mut Output, sentences: &[String]) -> std::io::Result<()> {
    for sentence in sentences {
        let sentence = shown(sentence);
        match width() {
            None => writeln!(out, "{sentence}")?,
            Some(width) => {
                for line in folded(&sentence, width) {
                    writeln!(out, "{line}")?;
                }
            }
        }
    }
    Ok(())
}

/// Files left out for one reason: their number and the first of them.
#[derive(Debug, Default, serde::Serialize)]
struct LeftOut {
    files: u64,
    /// The first file, with the reason.
    first: Option<String>,
}

impl LeftOut {
    fn add(&mut self, path: &std::path::Path, why: &dyn std::fmt::Display) {
        self.files += 1;
        if self.first.is_none() {
            let why = foreread_words::plain(&why.to_string());
            self.first = Some(format!("{}: {why}", path.display()));
        }
    }
}
