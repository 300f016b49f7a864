//! The store of records: one file a program, least recently used ones dropped first.
//!
//! Records lie in `$XDG_DATA_HOME/foreread/records`, each named by an id that is made from
//! its program's identity alone, so a program's record is found without an index. The id's
//! first six digits stand for the executable, so that its other records are found too, the nearest by [`facts`] noted
//! of them.
//!
//! Invariants: all work is done in folders that were opened once, on regular files that belong to the user. An unreadable file is deleted
//! only on the user's request or because of its age. A record of a newer foreread is not replaced. A file that does not look like a record
//! of the store is never touched. A record's modification time is the time of its last use.
//!
//! Data flow: [`Store::open`] tidies up, [`Store::find`] returns the record of a program, [`Found::mark_used`] protects it from pruning,
//! [`Store::path_for`] returns the place of a new record, [`Store::settle`] makes room for it.

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
/// Number of equally similar records examined, the newest first: the last used one is wanted.
const EQUALS: usize = 64;
/// Memory for the definitions of a record: a minimum, and a multiple of its size. Those of `grep -r` over 10,175 files took
/// 9.5 times the record's size, those of a million names that were looked up in 106 folders 46 times.
const ROOM: u64 = 16 << 20;
const TIMES: u64 = 64;
/// At most this share of the available memory: the session uses about four times as much for them.
const SHARE: u64 = 16;
/// Bytes at either end of a record of which opening always reads some. A record that is no longer than both is requested as a whole. A
/// record of 26,000 names has 0.45 MB, half of which is their definitions, at its end.
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

/// The record found for a program.
#[derive(Clone, Debug)]
pub struct Found {
    /// The record.
    pub path: PathBuf,
    /// True if it is this command's own record, with the same arguments.
    pub exact: bool,
    /// The difference to the record's command, as a phrase after "the record of"; empty for its own.
    pub differs: String,
    /// The program that follows the record, if it is another's: [`foreign`] finds the files that this program will not read. Absent for the
    /// same program elsewhere.
    pub wanted: Option<Identity>,
    /// The reason why its own record is not used, if there is one.
    pub trouble: Option<String>,
}

/// A command's own record, opened as far as needed to check whether its plan is in memory, if everything for this is in the kernel's
/// caches. No file system is called.
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

/// Marks an open record as used. A record that cannot be marked is only pruned earlier.
pub fn mark_used(record: &File) {
    let _ = record.set_modified(SystemTime::now());
}

/// A file in the store with the name of a record.
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

/// Opens the record at a place in the store. An excessive size is found out before the record is read.
fn read(place: &Place) -> Result<Reader, ReadError> {
    outline(place)?.open()
}

/// The same, as far as needed to check whether its plan is in memory.
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
    // Measuring the available memory takes time; this much is always available.
    if room <= 2 * ROOM {
        return room;
    }
    memory::available().map_or(room, |free| room.min((free / SHARE).max(ROOM)))
}

/// Refuses another user's file, because its owner may write anything into it.
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
    /// When there is no place for it, or the folder cannot be created.
    pub fn open() -> Result<Self> {
        let store = Self::open_soon()?;
        store.tidy();
        Ok(store)
    }

    /// The same as [`Store::open`], without its delay: tidying is left to [`Store::tidy_for`].
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

    /// The place of a program's record, whether it exists or not.
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

    /// Checks that the place of a program's record is free, or has a record that may be replaced.
    ///
    /// # Errors
    /// When there is a newer foreread's record ([`is_newer`]).
    pub fn look(&self, identity: &Identity) -> Result<()> {
        match self.own_record(identity) {
            Err(error) if is_newer(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Requests the parts of a program's own record that [`Store::find`] reads first, while the caller does other work. If that fails, they
    /// are read later.
    pub fn announce(&self, identity: &Identity) {
        let _ = announce(&self.place_for(identity));
    }

    /// The record for a program: its own, or the nearest one of its executable, opened as far as needed to check whether its plan is in
    /// memory.
    ///
    /// # Errors
    /// When its own record is unusable and no other is similar, or it is a newer foreread's; the error names it.
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

    /// The same as [`Store::find`]. If the program has no record of its own, a record of the same program `elsewhere` is preferred to the
    /// nearest.
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

    /// The usable record of another command of this executable with the most similar arguments; of equally similar ones, the last used.
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
                // Unreadable records are reported by `list`, and are of no use here.
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

    /// The index of the executable that this id stands for; made again if there is none.
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
            // If it cannot be stored, it is made again next time.
            let _ = index.write(&place);
            index
        })
    }

    /// Adds a record to the index. True if that changes it.
    fn note(&self, index: &mut Index, entry: &StoredRecord) -> bool {
        let record = outline(&entry.place).ok();
        let facts = record.and_then(|record| CommandFacts::of(&entry.id, record.identity()));
        facts.is_some_and(|facts| index.add(facts))
    }

    /// The place of the index of an id's executable; `None` if there cannot be one.
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

    /// The records whose ids are wanted, the last used first. No other file is examined.
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
            // A record may have been deleted meanwhile; only regular files count.
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

/// True if a record cannot be used only because a newer foreread wrote it, which may still need it.
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

/// The id in the name of a file of the store; `None` if the name has none.
fn id_of(path: &Path) -> Option<String> {
    let id = path.file_stem()?.to_str()?;
    let named = path.extension()? == SUFFIX
        && id.len() == ID_DIGITS
        && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    named.then(|| id.to_owned())
}

#[cfg(test)]
mod tests;
