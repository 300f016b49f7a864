//! `foreread cache save`: lists files in folders, or of the programs in a control group, and saves which of their pages are in memory.
//!
//! Data flow: paths → [`walk`] → [`ready::pages`] → [`RecordFile`], which replaces the file when it is complete.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use foreread_plan::format::{RecordFile, WriteError};
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, PAGE, Summary, ThreadId,
};
use foreread_run::destination;
use foreread_sys::file::{FileFacts, Opener};
use foreread_sys::{ready, way};
use foreread_words::counted;
use foreread_words::units::{bytes, duration};
use serde::Serialize;
use walkdir::WalkDir;

use super::group::Group;
use super::mounts::Mounts;
use super::{LeftOut, print};
use crate::args::cache::Save;
use crate::output::{output, unable};

/// The result of a save.
#[derive(Debug, Default, Serialize)]
struct Account {
    path: String,
    files: u64,
    bytes: u64,
    ranges: u64,
    /// Regular files examined, including those with no page in memory.
    looked_at: u64,
    /// Processes of the control group, if one was named.
    processes: Option<u64>,
    wall_ns: u64,
    /// Size of the saved cache, in bytes.
    saved_bytes: u64,
    /// Files and folders that could not be read.
    unreadable: LeftOut,
    /// Files whose residency the kernel does not report to this user.
    untold: LeftOut,
    /// Files and folders that are not on local file systems.
    elsewhere: LeftOut,
    /// Files beyond the limit of a saved cache.
    beyond: LeftOut,
}

/// Saves the resident pages.
pub(super) fn save(args: &Save) -> Result<ExitCode> {
    let begun = Instant::now();
    let mounts = Mounts::now()?;
    let mut account = Account::default();
    let group = args.cgroup.as_deref().map(Group::at).transpose()?;
    let group = group.unwrap_or_default();
    if args.cgroup.is_some() {
        account.processes = Some(group.processes);
        account.unreadable = group.hidden;
    }
    let given = match args.all {
        true => vec![PathBuf::from("/")],
        false => args.paths.clone(),
    };
    let mut roots = Vec::new();
    for path in &given {
        let real =
            way::real(&std::path::absolute(path)?).with_context(|| path.display().to_string())?;
        match mounts.refused(&real) {
            Some(kind) => account.elsewhere.add(&real, &on(kind)),
            None => roots.push(real),
        }
    }
    let place = destination(&args.file).map_err(unable)?;
    let meta = Meta {
        identity: Identity {
            exe: String::new(),
            argv: ["foreread", "cache", "save"].map(str::to_owned).into(),
            cwd: String::new(),
            rank: None,
        },
        recorded_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        writer: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut saving = Saving {
        record: RecordFile::create_at(&place, &meta, u64::MAX)?,
        known: HashSet::new(),
        opener: Opener::default(),
        account,
    };
    for root in &roots {
        saving.walk(root, &mounts)?;
    }
    for file in &group.files {
        saving.one(file, &mounts)?;
    }
    saving.opener.close();
    let Saving {
        record,
        mut account,
        ..
    } = saving;
    record.commit(Summary {
        wall_ns: nanos(begun),
        ..Summary::default()
    })?;
    account.path = args.file.display().to_string();
    account.saved_bytes = std::fs::metadata(&args.file).map_or(0, |about| about.len());
    account.wall_ns = nanos(begun);
    let mut out = output();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &account).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&mut out, &sentences(&account))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn nanos(since: Instant) -> u64 {
    since.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}

fn on(kind: &str) -> String {
    format!("on {kind}, no local file system")
}

/// A cache being saved.
struct Saving {
    record: RecordFile,
    /// Files already saved: one file may have several names.
    known: HashSet<(u64, u64)>,
    opener: Opener,
    account: Account,
}

impl Saving {
    /// Saves the resident pages of a file, or of all files in a folder.
    fn walk(&mut self, root: &Path, mounts: &Mounts) -> Result<()> {
        let mut elsewhere = Vec::new();
        let walk = WalkDir::new(root).sort_by_file_name().into_iter();
        let walk = walk.filter_entry(|entry| {
            let refused = mounts.refused_at(entry.path());
            elsewhere.extend(refused.map(|kind| (entry.path().to_owned(), on(kind))));
            refused.is_none()
        });
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_file() => self.file(entry.path())?,
                Ok(_) => {}
                Err(why) => {
                    let path = why.path().unwrap_or(root).to_owned();
                    match why.io_error() {
                        Some(why) => self.account.unreadable.add(&path, why),
                        None => self.account.unreadable.add(&path, &why),
                    }
                }
            }
        }
        self.opener.close();
        for (path, why) in elsewhere {
            self.account.elsewhere.add(&path, &why);
        }
        Ok(())
    }

    /// Saves the resident pages of a program's file, if it is a regular file on a local file system.
    fn one(&mut self, file: &Path, mounts: &Mounts) -> Result<()> {
        if let Some(kind) = mounts.refused(file) {
            self.account.elsewhere.add(file, &on(kind));
            return Ok(());
        }
        match file.symlink_metadata() {
            Ok(facts) if facts.is_file() => self.file(file)?,
            // An open folder does not mean that its files are in use.
            Ok(_) => {}
            Err(why) => self.account.unreadable.add(file, &why),
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let account = &mut self.account;
        account.looked_at += 1;
        let ready = self.opener.open(path).and_then(|(file, facts)| {
            // Without permission the kernel returns no residency; the file itself is sound.
            match ready::pages(&file, &facts) {
                Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => Ok((facts, None)),
                ready => ready.map(|ready| (facts, Some(ready))),
            }
        });
        let (facts, ready) = match ready {
            Ok((facts, Some(ready))) => (facts, ready),
            Ok((_, None)) => {
                account
                    .untold
                    .add(path, &"its owner, its writers and root may ask");
                return Ok(());
            }
            Err(why) => {
                account.unreadable.add(path, &why);
                return Ok(());
            }
        };
        if ready.is_empty() || !self.known.insert((facts.dev, facts.ino)) {
            return Ok(());
        }
        let id = FileId(account.files.try_into().unwrap_or(u32::MAX));
        match self.record.file(id, meta(path, &facts)) {
            Ok(()) => {}
            Err(why @ WriteError::Limit { .. }) => {
                account.beyond.add(path, &why);
                return Ok(());
            }
            Err(why) => return Err(why.into()),
        }
        account.files += 1;
        for pages in ready {
            let extent = Extent::new(pages.start * PAGE, (pages.end - pages.start) * PAGE);
            let extent = extent.clipped(facts.size);
            self.record.access(&Access {
                file: id,
                extent,
                thread: ThreadId(0),
                kind: Kind::Touch,
                start: 0,
                took: 0,
            })?;
            account.ranges += 1;
            account.bytes += extent.len;
        }
        Ok(())
    }
}

fn meta(path: &Path, facts: &FileFacts) -> FileMeta {
    FileMeta::regular(
        path.to_owned(),
        (facts.dev, facts.ino),
        facts.size,
        facts.mtime_ns,
    )
}

fn sentences(account: &Account) -> Vec<String> {
    let of_group = account.processes.map_or_else(String::new, |count| {
        format!(" that {} had", counted(count, "process", "processes"))
    });
    let mut all = vec![format!(
        "Saved {} of {}, of {} looked at{of_group}, in {}. {}: {}.",
        bytes(account.bytes),
        counted(account.files, "file", "files"),
        account.looked_at,
        duration(account.wall_ns),
        account.path,
        bytes(account.saved_bytes)
    )];
    let mut left_out = |what: &LeftOut, one: &str, more: &str| {
        if let Some(first) = &what.first {
            let such_as = if what.files == 1 { "" } else { "such as " };
            let count = counted(what.files, one, more);
            all.push(format!("Left out: {count} ({such_as}{first})."));
        }
    };
    left_out(
        &account.unreadable,
        "path that cannot be read",
        "paths that cannot be read",
    );
    left_out(
        &account.untold,
        "file that you may not ask about",
        "files that you may not ask about",
    );
    left_out(&account.elsewhere, "path", "paths");
    left_out(&account.beyond, "file too many", "files too many");
    all
}
