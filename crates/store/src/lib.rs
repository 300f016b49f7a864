//! The store of records: one file a program, least recently used ones dropped first.
//!
//! Records lie in `$XDG_DATA_HOME/foreread/records`, each named by an id that is made from
//! its program's identity alone, so a program's record is found without an index. The id's
//! first six digits stand for the executable, so that its other records are found too, the nearest by [`facts`] noted
//! of them.
//!
//! Invariants: everything is done in folders that were opened once, to regular files that belong to the user; what cannot be read is never deleted but by the user's wish or for its age;
//! a record of a newer foreread is not replaced; a file that does not look like a record of the store
//! is never touched. A record's modification time is the time it was last used.
//!
//! Data flow: [`Store::open`] tidies up, [`Store::find`] answers what is known of a
//! program, [`Found::mark_used`] keeps that from being dropped, [`Store::path_for`] says where to
//! keep what is learnt, [`Store::settle`] makes room for it.

#![forbid(unsafe_code)]

mod accounts;
mod facts;
mod identity;
mod models;
mod nearest;
mod rank;
mod redact;
mod settings;
mod underway;
mod upkeep;

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use foreread_plan::format::{Handle, Outline, Place, ReadError, Reader};
use foreread_plan::{Identity, PAGE, Rank};
use foreread_sys::{cache, file, memory};
use rustix::fs::{Dir, FileType, Mode, OFlags};

use facts::{CommandFacts, Index};
use settings::{data_home, limit_from};

pub use accounts::StoredRun;
pub use identity::identity_of;
pub use models::ModelFile;
pub use nearest::foreign;
pub use rank::rank;
pub use underway::{Underway, underway_at};

/// Size of one record, at most, in bytes.
pub const RECORD_LIMIT: u64 = 256 << 20;
/// Size of all records, at most, in bytes, unless `FOREREAD_STORE_LIMIT` says otherwise.
const STORE_LIMIT: u64 = 1 << 30;
const LIMIT_VARIABLE: &str = "FOREREAD_STORE_LIMIT";
/// Digits of an id, and how many of them stand for the executable.
const ID_DIGITS: usize = 16;
const EXE_DIGITS: usize = 6;
const SUFFIX: &str = "fr";
/// The folders in the user's data folder, and the key that command lines are redacted by.
const RECORDS: &str = "records";
const NEAREST: &str = "nearest";
const KEY: &str = "redact.key";
/// Records opened in search of the nearest, at most: those noted as near are sound but for damage.
const OPENED: usize = 4;
/// Records equally near, of which the last used is wanted: as many of the newest are looked at.
const EQUALS: usize = 64;
/// Memory for the definitions of a record: for any, and so many times its size. Those of `grep -r` over 10,175 files took
/// 9.5 times the record's size, those of a million names that were looked up in 106 folders 46 times.
const ROOM: u64 = 16 << 20;
const TIMES: u64 = 64;
/// And of what is available at most this share: the session holds about four times as much of them.
const SHARE: u64 = 16;
/// Bytes at either end of a record of which opening it reads some, whatever else it holds: all of a record that is no longer
/// than both is asked for at once. One of 26,000 names has 0.45 MB, half of which is their definitions, at its end.
const END: u64 = 512 << 10;

/// The records of the user.
#[derive(Clone, Debug)]
pub struct Store {
    /// The user's data folder, as messages name it, and open.
    home: PathBuf,
    data: Arc<OwnedFd>,
    /// The folder of records in it.
    folder: PathBuf,
    directory: Arc<OwnedFd>,
    /// Bytes.
    limit: u64,
}

/// What is known of a program.
#[derive(Clone, Debug)]
pub struct Found {
    /// The record.
    pub path: PathBuf,
    /// Whether it is of this very program, arguments and all.
    pub exact: bool,
    /// Whose record it is, if it is not: a phrase to follow "the record of".
    pub differs: String,
    /// The program that it is to serve, if it is of another: [`foreign`] tells which of its files that will not read. Not so of the same
    /// program elsewhere.
    pub wanted: Option<Identity>,
    /// Why its own record is not used, if there is one.
    pub trouble: Option<String>,
}

/// The own record of a command, no further than needed to tell whether its plan is in memory, if all that it takes to find and to
/// read it is in the kernel's caches. No file system is asked.
pub fn find_in_memory(command: &[OsString]) -> Option<(Found, Outline)> {
    let identity = identity::identity_in_memory(command)?;
    if identity.rank.is_some() {
        return None;
    }
    let name = format!("{}.{SUFFIX}", identity::id(&identity));
    let path = data_home().ok()?.join("foreread").join(RECORDS).join(name);
    let (file, facts) = file::open_in_memory(&path)?.ok()?;
    let is_own = facts.uid == rustix::process::geteuid().as_raw();
    let cached = cache::stat(&file, 0..facts.size).ok()?.cached;
    if !is_own || cached < facts.size.div_ceil(PAGE) {
        return None;
    }
    let handle = Handle::new(File::from(file), &path);
    let outline = Outline::of(&handle, room_for(facts.size)).ok()?;
    let is_its = *outline.identity() == identity && !outline.is_empty();
    let found = Found {
        path,
        exact: true,
        differs: String::new(),
        wanted: None,
        trouble: None,
    };
    is_its.then_some((found, outline))
}

/// Notes that a record, which is open, was used. One that cannot be marked is only pruned earlier.
pub fn mark_used(record: &File) {
    let _ = record.set_modified(SystemTime::now());
}

/// A record in the store, or what passes for one.
#[derive(Clone, Debug)]
pub struct StoredRecord {
    /// The id: the file's name without its suffix.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    place: Place,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last used.
    pub used: SystemTime,
}

impl StoredRecord {
    /// Opens the record.
    ///
    /// # Errors
    /// Why it cannot be used, naming it.
    pub fn reader(&self) -> Result<Reader> {
        Ok(read(&self.place)?)
    }
}

/// Opens the record at a place in the store. One that is too large is not taken in before that is found out.
fn read(place: &Place) -> Result<Reader, ReadError> {
    outline(place)?.open()
}

/// The same, no further than needed to tell whether its plan is in memory.
fn outline(place: &Place) -> Result<Outline, ReadError> {
    let (handle, memory) = handle(place)?;
    Outline::of(&handle, memory)
}

/// The file of the record at a place in the store, and the memory that its definitions may take, in bytes.
fn handle(place: &Place) -> Result<(Handle, u64), ReadError> {
    #[cfg(test)]
    tests::OPENS.with(|opens| opens.set(opens.get() + 1));
    let path = place.path();
    let opened = place.open().and_then(|file| {
        check_owner(&file)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    });
    let (file, size) = opened.map_err(|source| ReadError::Io {
        path: path.clone(),
        source,
    })?;
    Ok((Handle::new(file, &path), room_for(size)))
}

/// Memory for the definitions of a record of this size, in bytes.
fn room_for(size: u64) -> u64 {
    let room = size.saturating_mul(TIMES).saturating_add(ROOM);
    // What is available takes a while to find out; there is always so little.
    if room <= 2 * ROOM {
        return room;
    }
    memory::available().map_or(room, |free| room.min((free / SHARE).max(ROOM)))
}

/// Refuses another user's file: its owner may write into it whatever they want done.
fn check_owner(file: &File) -> io::Result<()> {
    if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        let why = "it belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

impl Store {
    /// Opens the user's store, making its folder if needed, and tidies it up.
    ///
    /// # Errors
    /// When there is no place for it, or the folder cannot be made.
    pub fn open() -> Result<Self> {
        let store = Self::open_soon()?;
        store.tidy();
        Ok(store)
    }

    /// As [`Store::open`], for somebody in a hurry: tidying up is left to [`Store::tidy_for`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_soon() -> Result<Self> {
        let limit = limit_from(std::env::var(LIMIT_VARIABLE).ok().as_deref())?;
        Self::at(&data_home()?.join("foreread"), limit)
    }

    /// The store in the data folder `home`, of at most `limit` bytes.
    fn at(home: &Path, limit: u64) -> Result<Self> {
        let folder = home.join(RECORDS);
        let told = || format!("{}: cannot make the folder of records", folder.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(told)?;
        let open = || -> io::Result<_> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let data = rustix::fs::open(home, flags, Mode::empty())?;
            let directory = rustix::fs::openat(&data, RECORDS, flags, Mode::empty())?;
            Ok((Arc::new(data), Arc::new(directory)))
        };
        let (data, directory) = open().with_context(|| folder.display().to_string())?;
        Ok(Self {
            home: home.to_owned(),
            data,
            folder,
            directory,
            limit,
        })
    }

    /// The folder of records.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the record of a program is, or is to be.
    pub fn place_for(&self, identity: &Identity) -> Place {
        self.place_of(&identity::id(identity))
    }

    /// The same command with each of its words but the first left out.
    ///
    /// # Errors
    /// When the store has no key, and cannot be given one.
    pub fn redacted(&self, identity: &Identity) -> Result<Identity> {
        let place = Place::new(&self.data, &self.home, OsStr::new(KEY));
        Ok(redact::Key::at(&place)?.redacted(identity))
    }

    /// Looks whether the place of a program's record is free, or taken by one that may be replaced.
    ///
    /// # Errors
    /// When a newer foreread's record is there ([`is_newer`]).
    pub fn look(&self, identity: &Identity) -> Result<()> {
        match self.own_record(identity) {
            Err(error) if is_newer(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Has the kernel fetch what [`Store::find`] will read of a program's own record first, while its caller does
    /// something else. Where that cannot be, it is fetched then.
    pub fn announce(&self, identity: &Identity) {
        let _ = announce(&self.place_for(identity));
    }

    /// What is known of a program: its own record, or the nearest one of its executable; and that, opened no further than needed to
    /// tell whether its plan is in memory.
    ///
    /// # Errors
    /// When its own record is unusable and no other comes near, or it is a newer foreread's; the error names it.
    pub fn find(&self, identity: &Identity) -> Result<Option<(Found, Outline)>> {
        let place = self.place_for(identity);
        if !place.is_taken() {
            // A recorder may have been killed that wrote it.
            self.take_in();
        }
        let own = match self.own_record(identity) {
            Ok(Some(record)) => {
                let found = Found {
                    path: place.path(),
                    exact: true,
                    differs: String::new(),
                    wanted: None,
                    trouble: None,
                };
                return Ok(Some((found, record)));
            }
            Ok(None) => None,
            Err(error) if is_newer(&error) => return Err(error),
            Err(error) => Some(error),
        };
        match (self.nearest(identity), own) {
            (None, None) => Ok(None),
            (None, Some(error)) => Err(error),
            (Some(record), own) => {
                let record = self.of_like_rank(identity, record);
                let found = Found {
                    path: record.path().to_owned(),
                    exact: false,
                    differs: nearest::difference(identity, record.identity()),
                    wanted: Some(identity.clone()),
                    trouble: own.map(|error| format!("{error:#}")),
                };
                Ok(Some((found, record)))
            }
        }
    }

    /// As [`Store::find`]; where the program has no record of its own, that of the same program `elsewhere`, if there is one, comes before
    /// the nearest.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn find_or(
        &self,
        identity: &Identity,
        elsewhere: &Identity,
    ) -> Result<Option<(Found, Outline)>> {
        let found = self.find(identity)?;
        if found.as_ref().is_some_and(|(found, _)| found.exact) {
            return Ok(found);
        }
        let Ok(Some(record)) = self.own_record(elsewhere) else {
            return Ok(found);
        };
        let found = Found {
            path: record.path().to_owned(),
            exact: false,
            differs: nearest::difference(identity, elsewhere),
            wanted: None,
            trouble: None,
        };
        Ok(Some((found, record)))
    }

    /// The record of this program, if there is one, and it is usable.
    fn own_record(&self, identity: &Identity) -> Result<Option<Outline>> {
        let record = match outline(&self.place_for(identity)) {
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read?,
        };
        // Two programs with one id are as good as impossible; a record renamed by hand is not.
        let own = record.identity() == identity && !record.is_empty();
        Ok(own.then_some(record))
    }

    /// The usable record of another command of this executable that is most like this one; of equally near ones, the one
    /// used last.
    fn nearest(&self, identity: &Identity) -> Option<Outline> {
        let own = identity::id(identity);
        let wanted = CommandFacts::of(&own, identity)?;
        let mut near: Vec<(f64, usize, &CommandFacts)> = Vec::new();
        let index = self.index_of(&own);
        for (place, facts) in index.0.iter().enumerate() {
            if let Some(nearness) = wanted.nearness(facts).filter(|_| facts.id != wanted.id) {
                near.push((nearness, place, facts));
            }
        }
        // The newest of equally near ones first.
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let mut opened = 0;
        while let Some(&(nearness, ..)) = near.first() {
            let equal = near.iter().take_while(|one| one.0 >= nearness).count();
            let rest = near.split_off(equal);
            let mut equals: Vec<_> = near
                .iter()
                .take(EQUALS)
                .filter_map(|(_, _, facts)| {
                    let place = self.place_of(&format!("{:016x}", facts.id));
                    let stat = place.stat().ok()?;
                    Some((used(&stat), place))
                })
                .collect();
            equals.sort_by_key(|(used, _)| Reverse(*used));
            for (_, place) in equals {
                if opened == OPENED {
                    return None;
                }
                opened += 1;
                // What cannot be read is reported by `list`, and tells nothing here.
                if let Ok(record) = outline(&place)
                    && record.identity().exe == identity.exe
                    && record.summary().is_none_or(|summary| summary.files > 0)
                {
                    return Some(record);
                }
            }
            near = rest;
        }
        None
    }

    /// In place of the record of some rank that of the rank with this one's number, or the last one, of the same run.
    fn of_like_rank(&self, identity: &Identity, found: Outline) -> Outline {
        let (Some(wanted), Some(Rank { of, .. })) = (identity.rank, found.identity().rank) else {
            return found;
        };
        let rank = wanted.rank.min(of.saturating_sub(1));
        let like = Identity {
            rank: Some(Rank { rank, of }),
            ..found.identity().clone()
        };
        let own = self.own_record(&like).ok().flatten();
        own.unwrap_or(found)
    }

    /// What is noted of the records of the executable that this id stands for; made anew if nothing is.
    fn index_of(&self, id: &str) -> Index {
        let Some(place) = self.index_place(id) else {
            return Index::default();
        };
        Index::read(&place).unwrap_or_else(|| {
            let mut index = Index::default();
            let entries = self.entries_of(|other| identity::same_exe(other, id));
            let entries = entries.unwrap_or_default();
            for entry in entries.iter().rev() {
                self.note(&mut index, entry);
            }
            // One that cannot be kept is made again.
            let _ = index.write(&place);
            index
        })
    }

    /// Adds a record to what is noted; whether that changes anything.
    fn note(&self, index: &mut Index, entry: &StoredRecord) -> bool {
        let record = outline(&entry.place).ok();
        let facts = record.and_then(|record| CommandFacts::of(&entry.id, record.identity()));
        facts.is_some_and(|facts| index.add(facts))
    }

    /// Where the records of an id's executable are noted; `None` where nothing can be.
    fn index_place(&self, id: &str) -> Option<Place> {
        let digits = id.get(..EXE_DIGITS)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(self.data.as_fd(), NEAREST, flags, Mode::empty());
        let folder = open().or_else(|_| {
            rustix::fs::mkdirat(self.data.as_fd(), NEAREST, Mode::RWXU)?;
            open()
        });
        let folder = Arc::new(folder.ok()?);
        Some(Place::new(
            &folder,
            &self.home.join(NEAREST),
            OsStr::new(digits),
        ))
    }

    /// All records, the last used first.
    pub fn entries(&self) -> Result<Vec<StoredRecord>> {
        self.entries_of(|_| true)
    }

    /// The records of which this is true of their ids, the last used first. Nothing is asked about any other.
    fn entries_of(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<StoredRecord>> {
        let mut entries = Vec::new();
        let told = || format!("{}: cannot list the records", self.show());
        let listed = Dir::read_from(self.directory.as_fd()).with_context(told)?;
        for file in listed {
            let file = file.with_context(told)?;
            let name = OsStr::from_bytes(file.file_name().to_bytes());
            let Some(id) = id_of(Path::new(name)).filter(|id| is_wanted(id)) else {
                continue;
            };
            #[cfg(test)]
            tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
            let place = self.place_of(&id);
            // A record deleted meanwhile is none; nothing but a regular file is one.
            let Ok(stat) = place.stat() else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                entries.push(StoredRecord {
                    id,
                    path: place.path(),
                    place,
                    size: stat.st_size.max(0) as u64,
                    used: used(&stat),
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
    pub fn entry(&self, prefix: &str) -> Result<StoredRecord> {
        let mut matching: Vec<StoredRecord> = self.entries()?;
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

    /// Deletes a record, and the account of its last run.
    pub fn remove(&self, entry: &StoredRecord) -> Result<()> {
        self.forget_run(&entry.id);
        match entry.place.remove() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => {
                removed.with_context(|| format!("{}: cannot delete it", entry.path.display()))
            }
        }
    }

    fn place_of(&self, id: &str) -> Place {
        let name = format!("{id}.{SUFFIX}");
        Place::new(&self.directory, &self.folder, OsStr::new(&name))
    }

    fn show(&self) -> String {
        self.folder.display().to_string()
    }
}

/// Whether a record cannot be used only because a newer foreread wrote it, which may still want it.
pub fn is_newer(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Future { .. }))
}

/// When a file was last used.
fn used(stat: &rustix::fs::Stat) -> SystemTime {
    let nanos = (stat.st_mtime_nsec as u32).min(999_999_999);
    let since = Duration::new(stat.st_mtime.max(0) as u64, nanos);
    SystemTime::UNIX_EPOCH + since
}

/// Hints at a record's head and foot.
fn announce(place: &Place) -> io::Result<()> {
    let file = place.open()?;
    let size = file.metadata()?.len();
    let head = size.min(END);
    let foot = size.saturating_sub(END).max(head);
    cache::will_need(&file, 0..head)?;
    if foot < size {
        cache::will_need(&file, foot..size)?;
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

#[cfg(test)]
mod tests;
