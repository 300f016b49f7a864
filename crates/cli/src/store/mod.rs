//! The store of records: one file a program, least recently used ones dropped first.
//!
//! Records lie in `$XDG_DATA_HOME/foreread/records`, each named by an id that is made from
//! its program's identity alone, so a program's record is found without an index. The id's
//! first six digits stand for the executable, so that its other records are found too.
//!
//! Invariants: what cannot be read is never deleted but by the user's wish or for its age;
//! a record of a newer foreread is not replaced; a file that does not look like a record of the store
//! is never touched. A record's modification time is the time it was last used.
//!
//! Data flow: [`Store::open`] tidies up, [`Store::find`] answers what is known of a
//! program, [`Found::mark_used`] keeps that from being dropped, [`Store::path_for`] says where to
//! keep what is learnt, [`Store::settle`] makes room for it.

mod identity;
mod nearest;
mod upkeep;

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use foreread_plan::format::{ReadError, Reader};
use foreread_plan::{FileId, Identity};
use foreread_sys::cache;

pub(crate) use identity::identity_of;

/// Size of one record, at most, in bytes.
pub(crate) const RECORD_LIMIT: u64 = 256 << 20;
/// Size of all records, at most, in bytes, unless `FOREREAD_STORE_LIMIT` says otherwise.
const STORE_LIMIT: u64 = 1 << 30;
const LIMIT_VARIABLE: &str = "FOREREAD_STORE_LIMIT";
/// Digits of an id, and how many of them stand for the executable.
const ID_DIGITS: usize = 16;
const EXE_DIGITS: usize = 6;
const SUFFIX: &str = "fr";
/// Bytes at either end of a record that hold, of all but the largest, what opening it reads.
const END: u64 = 64 << 10;

/// The records of the user.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// Bytes.
    limit: u64,
}

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The record.
    pub(crate) path: PathBuf,
    /// Whether it is of this very program, arguments and all.
    pub(crate) exact: bool,
    /// Whose record it is, if it is not: a phrase to follow "the record of".
    pub(crate) differs: String,
    /// Those of its files that this program will not read, as the arguments have it.
    pub(crate) foreign: HashSet<FileId>,
    /// Why its own record is not used, if there is one.
    pub(crate) trouble: Option<String>,
}

impl Found {
    /// Notes that the record was used. One that cannot be marked is only pruned earlier.
    pub(crate) fn mark_used(&self) {
        mark_used(&self.path);
    }
}

fn mark_used(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// A record in the store, or what passes for one.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The id: the file's name without its suffix.
    pub(crate) id: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// When it was last used.
    pub(crate) used: SystemTime,
}

impl Entry {
    /// Opens the record.
    ///
    /// # Errors
    /// Why it cannot be used, naming it.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Ok(Reader::open(&self.path)?)
    }
}

impl Store {
    /// Opens the user's store, making its folder if needed, and tidies it up.
    ///
    /// # Errors
    /// When there is no place for it, or the folder cannot be made.
    pub(crate) fn open() -> Result<Self> {
        let store = Self::open_soon()?;
        store.tidy();
        Ok(store)
    }

    /// As [`Store::open`], for somebody in a hurry: tidying up is left to [`Store::tidy`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open_soon() -> Result<Self> {
        let store = Self {
            folder: data_home()?.join("foreread/records"),
            limit: limit_from(std::env::var(LIMIT_VARIABLE).ok().as_deref())?,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&store.folder)
            .with_context(|| format!("{}: cannot make the folder of records", store.show()))?;
        Ok(store)
    }

    /// The folder of records.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the record of a program is, or is to be.
    pub(crate) fn path_for(&self, identity: &Identity) -> PathBuf {
        self.path_of(&identity::id(identity))
    }

    /// Looks whether the place of a program's record is free, or taken by one that may be replaced.
    ///
    /// # Errors
    /// When a newer foreread's record is there ([`is_newer`]).
    pub(crate) fn look(&self, identity: &Identity) -> Result<()> {
        match own_record(&self.path_for(identity), identity) {
            Err(error) if is_newer(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Has the kernel fetch what [`Store::find`] will read of a program's own record first, while its caller does
    /// something else. Where that cannot be, it is fetched then.
    pub(crate) fn announce(&self, identity: &Identity) {
        let _ = announce(&self.path_for(identity));
    }

    /// What is known of a program: its own record, or the nearest one of its executable; and that, open.
    ///
    /// # Errors
    /// When its own record is unusable and no other comes near, or it is a newer foreread's; the error names it.
    pub(crate) fn find(&self, identity: &Identity) -> Result<Option<(Found, Reader)>> {
        let path = self.path_for(identity);
        if !path.exists() {
            // A recorder may have been killed that wrote it.
            self.take_in();
        }
        let own = match own_record(&path, identity) {
            Ok(Some(reader)) => {
                let found = Found {
                    path,
                    exact: true,
                    differs: String::new(),
                    foreign: HashSet::new(),
                    trouble: None,
                };
                return Ok(Some((found, reader)));
            }
            Ok(None) => None,
            Err(error) if is_newer(&error) => return Err(error),
            Err(error) => Some(error),
        };
        let candidates = self.entries()?.into_iter().filter(|entry| {
            entry.path != path && identity::same_exe(&entry.id, &identity::id(identity))
        });
        let nearest = nearest::nearest(identity, candidates);
        match (nearest, own) {
            (None, None) => Ok(None),
            (None, Some(error)) => Err(error),
            (Some((entry, reader, differs)), own) => {
                let found = Found {
                    path: entry.path,
                    exact: false,
                    differs,
                    foreign: nearest::foreign(identity, &reader),
                    trouble: own.map(|error| format!("{error:#}")),
                };
                Ok(Some((found, reader)))
            }
        }
    }

    /// All records, the last used first.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let listed = fs::read_dir(&self.folder)
            .with_context(|| format!("{}: cannot list the records", self.show()))?;
        for file in listed {
            let file = file.with_context(|| self.show())?;
            let path = file.path();
            let Some(id) = id_of(&path) else {
                continue;
            };
            // A record deleted meanwhile is none; nothing but a regular file is one.
            let Ok(meta) = file.metadata() else {
                continue;
            };
            if meta.is_file() {
                entries.push(Entry {
                    id,
                    path,
                    size: meta.len(),
                    used: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
        entries.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.id.cmp(&b.id)));
        Ok(entries)
    }

    /// The one record whose id starts with `prefix`.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub(crate) fn entry(&self, prefix: &str) -> Result<Entry> {
        let mut matching: Vec<Entry> = self.entries()?;
        let wanted = prefix.to_ascii_lowercase();
        matching.retain(|entry| !wanted.is_empty() && entry.id.starts_with(&wanted));
        match matching.len() {
            0 => bail!("{}: no record {prefix:?}", self.show()),
            1 => Ok(matching.swap_remove(0)),
            count => bail!(
                "{}: {count} records begin with {prefix:?} ({}, …)",
                self.show(),
                matching[0].id
            ),
        }
    }

    /// Deletes a record.
    pub(crate) fn remove(&self, entry: &Entry) -> Result<()> {
        match fs::remove_file(&entry.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => {
                removed.with_context(|| format!("{}: cannot delete it", entry.path.display()))
            }
        }
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.folder.join(id).with_extension(SUFFIX)
    }

    fn show(&self) -> String {
        self.folder.display().to_string()
    }
}

/// Whether a record cannot be used only because a newer foreread wrote it, which may still want it.
pub(crate) fn is_newer(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Future { .. }))
}

/// The record at `path`, if there is one, it is usable, and of this program.
fn own_record(path: &Path, identity: &Identity) -> Result<Option<Reader>> {
    if !path.exists() {
        return Ok(None);
    }
    let reader = Reader::open(path)?;
    // Two programs with one id are as good as impossible; a record renamed by hand is not.
    let own = reader.meta().identity == *identity && !reader.files().is_empty();
    Ok(own.then_some(reader))
}

/// Hints at a record's head and foot.
fn announce(path: &Path) -> io::Result<()> {
    let (file, facts) = foreread_sys::file::open_regular(path)?;
    let head = facts.size.min(END);
    let foot = facts.size.saturating_sub(END).max(head);
    cache::will_need(&file, 0..head)?;
    if foot < facts.size {
        cache::will_need(&file, foot..facts.size)?;
    }
    Ok(())
}

/// The id a file of the store is named by; `None` if it is not named by one.
fn id_of(path: &Path) -> Option<String> {
    let id = path.file_stem()?.to_str()?;
    let named = path.extension()? == SUFFIX
        && id.len() == ID_DIGITS
        && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    named.then(|| id.to_owned())
}

/// The folder for a user's data, by the XDG base directory specification.
fn data_home() -> Result<PathBuf> {
    foreread_profiles::data_home()
        .ok_or_else(|| anyhow!("no place for records: neither XDG_DATA_HOME nor HOME is set"))
}

fn limit_from(variable: Option<&str>) -> Result<u64> {
    match variable {
        None | Some("") => Ok(STORE_LIMIT),
        Some(text) => {
            crate::units::parse_size(text).map_err(|why| anyhow!("{LIMIT_VARIABLE}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests;
