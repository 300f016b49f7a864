//! `foreread cache`: which pages of files are in memory, saved, and brought back.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`group`] | a control group → the files of its programs |
//! | [`mounts`] | the file systems whose files are looked at |
//! | [`save`] | files and folders → pages in memory → a saved cache |
//! | [`saved`] | a saved cache → pages of files that are as they were |
//! | [`restore`] | these pages → the page cache, in the order in which they lie on their devices |
//!
//! A saved cache is a record ([`foreread_plan::format`]): each run of pages is a touch, files in the order in which they were named.
//!
//! Invariants: no link is followed, nothing is mounted, nothing is opened but regular files on local file systems that this user may read.

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

/// Saves or restores.
pub(crate) fn cache(args: &Cache) -> Result<ExitCode> {
    match args {
        Cache::Save(args) => save::save(args),
        Cache::Restore(args) => restore::restore(args),
    }
}

/// Prints sentences, each on a line of its own, broken where a terminal is too narrow.
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

/// Files that are left out for one reason: their number, and the first of them.
#[derive(Debug, Default, serde::Serialize)]
struct LeftOut {
    files: u64,
    /// One of them, and why.
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
