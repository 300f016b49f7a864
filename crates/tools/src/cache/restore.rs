//! `foreread cache restore`: reads the pages of a saved cache back into memory.
//!
//! Data flow: [`Saved`] → [`Wanted`], within a memory budget → [`fill`] → pages in memory.

use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use foreread_core::{Trace, fill};
use foreread_plan::{Access, Extent, FileId, Kind, PAGE, ThreadId};
use foreread_sys::file::Opener;
use foreread_sys::{cache, memory, ready};
use foreread_words::counted;
use foreread_words::units::{bytes, duration};
use serde::Serialize;

use super::mounts::Mounts;
use super::save::nanos;
use super::saved::{Saved, Wanted, count, without};
use super::{LeftOut, print};
use crate::args::cache::Restore;
use crate::output::{FAILED, output};

/// Pages per access at most, so that the plan is consumed in small steps.
const TOUCHED: u64 = 1024;

/// The result of a restore.
#[derive(Debug, Serialize)]
struct Account {
    /// Files in the saved cache, and unchanged files among them.
    files: u64,
    fitting: u64,
    /// Bytes of unchanged files that were in memory before.
    there_bytes: u64,
    /// Bytes read from a device, including gaps between ranges.
    fetched_bytes: u64,
    /// Bytes of the saved cache that were restored.
    restored_bytes: u64,
    /// Bytes that were fetched but are not in memory.
    lost_bytes: u64,
    /// Bytes left out because memory was short.
    beyond_bytes: u64,
    /// Memory that could be filled, in bytes.
    memory_bytes: u64,
    wall_ns: u64,
    changed: LeftOut,
    gone: LeftOut,
    /// The reason why the list ends early, if it does.
    problem: Option<String>,
}

/// Restores a saved cache.
pub(super) fn restore(args: &Restore) -> Result<ExitCode> {
    let begun = Instant::now();
    let saved = Saved::read(&args.file)?;
    let mounts = Mounts::now()?;
    let memory_bytes = match args.memory {
        Some(most) => most.min(memory::free()),
        None => memory::budget(),
    };
    let most = memory_bytes / PAGE;
    let opener = Opener::default();
    let mut wanted = Wanted::of(&saved, &mounts, &opener, most);
    let files = Arc::new(std::mem::take(&mut wanted.files));
    let list = List {
        parts: std::mem::take(&mut wanted.parts).into_iter(),
        rest: None,
    };
    let gaps = most - wanted.fetched;
    let filled = fill(list, Arc::clone(&files) as _, gaps).context("cannot fetch")?;
    let mut arrived = 0;
    for (id, pages) in &wanted.missing {
        arrived += match opener.open(&files[id].path) {
            Ok((file, facts)) => await_pages(&file, &facts, pages),
            Err(_) => 0,
        };
    }
    opener.close();
    let fetched = filled.issued.into_iter().map(|(_, pages)| pages);
    let fetched = count(&fetched.collect::<Vec<_>>());
    let account = Account {
        files: saved.files.len() as u64,
        fitting: wanted.fitting,
        there_bytes: wanted.there * PAGE,
        fetched_bytes: fetched * PAGE,
        restored_bytes: arrived * PAGE,
        lost_bytes: (wanted.fetched - arrived) * PAGE,
        beyond_bytes: wanted.beyond * PAGE,
        memory_bytes,
        wall_ns: nanos(begun),
        changed: wanted.changed,
        gone: wanted.gone,
        problem: saved.trouble,
    };
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &account).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&mut out, &sentences(&account, args.memory))?;
    }
    let fits_none = account.fitting == 0 && account.files > 0;
    Ok(match fits_none || account.problem.is_some() {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    })
}

/// Waits for the pages that are on their way. Returns the number of resident pages; all of them if the kernel does not report residency.
fn await_pages(file: &OwnedFd, facts: &foreread_sys::file::FileFacts, pages: &[Range<u64>]) -> u64 {
    let missing = || ready::pages(file, facts).map(|there| without(pages, &there));
    let Ok(left) = missing() else {
        return count(pages);
    };
    if left.is_empty() {
        return count(pages);
    }
    // Keeps the kernel from reading ahead.
    let _ = cache::advise_random(file);
    for page in left.into_iter().flatten() {
        let at = page * PAGE;
        let is_coming = cache::stat(file, at..at + PAGE).is_ok_and(|now| now.cached > 0);
        if is_coming {
            let _ = rustix::io::pread(file, &mut [0], at);
        }
    }
    let left = missing().map_or(0, |left| count(&left));
    count(pages) - left
}

/// Parts of files as a plan of touches, which may be fetched in any order.
struct List {
    parts: std::vec::IntoIter<(FileId, Range<u64>)>,
    rest: Option<(FileId, Range<u64>)>,
}

impl Trace for List {
    fn next(&mut self) -> Option<Access> {
        let (file, pages) = self.rest.take().or_else(|| self.parts.next())?;
        let end = pages.end.min(pages.start + TOUCHED);
        if end < pages.end {
            self.rest = Some((file, end..pages.end));
        }
        Some(Access {
            file,
            extent: Extent::new(pages.start * PAGE, (end - pages.start) * PAGE),
            thread: ThreadId(0),
            kind: Kind::Touch,
            start: 0,
            took: 0,
        })
    }
}

fn sentences(account: &Account, asked: Option<u64>) -> Vec<String> {
    let of = account.files;
    let mut all = vec![format!(
        "Restored {} of {} in {}: {} read from the device{}.",
        bytes(account.restored_bytes + account.there_bytes),
        counted(account.fitting, "file", "files"),
        duration(account.wall_ns),
        bytes(account.fetched_bytes),
        match account.there_bytes {
            0 => String::new(),
            there => format!(", {} were in memory", bytes(there)),
        }
    )];
    let mut left_out = |what: &LeftOut, one: &str, more: &str| {
        if let Some(first) = &what.first {
            let verb = if what.files == 1 { one } else { more };
            let such_as = if what.files == 1 { "" } else { "such as " };
            let all_files = counted(of, "file", "files");
            all.push(format!(
                "{} of {all_files} {verb}: left out ({such_as}{first}).",
                what.files
            ));
        }
    };
    left_out(&account.changed, "has changed", "have changed");
    left_out(&account.gone, "cannot be read", "cannot be read");
    if account.beyond_bytes > 0 {
        let beyond = bytes(account.beyond_bytes);
        let room = bytes(account.memory_bytes);
        all.push(
            match asked.is_some_and(|asked| asked <= account.memory_bytes) {
                true => format!("{beyond} left out: --memory allows {room}."),
                false => format!("{beyond} left out: there is memory for {room}."),
            },
        );
    }
    if account.lost_bytes > 0 {
        let lost = bytes(account.lost_bytes);
        all.push(format!("{lost} did not come into memory, or did not stay."));
    }
    all.extend(
        account
            .problem
            .iter()
            .map(|why| format!("{why}: the files before are restored.")),
    );
    all
}
