//! The accounts of each command's last run, beside the records.
//!
//! The file `runs/ID.run` in the user's data folder has a head, JSON, and a checksum. A run of a command without a record leaves its
//! account in `runs/none.run`, in the place of any other such run's, so that there are never more accounts than records, and one.
//!
//! Invariant: an account is written whole or not at all; one that is damaged, too large, of a newer version or of another user is an
//! error that names it, and is never read as another.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use foreread_plan::Identity;
use foreread_plan::format::Place;
use rustix::fs::{Dir, Mode, OFlags};

use super::facts::checksum;
use super::{Store, check_owner, identity, used};

const MAGIC: [u8; 8] = *b"FORERUN\n";
const VERSION: u16 = 1;
/// Magic, version, length of the JSON; and at the end a checksum.
const HEAD: usize = 14;
const FOOT: usize = 8;
/// Bytes of an account, at most: one of 2,000 samples has 200 KiB.
const LIMIT: usize = 1 << 20;
/// The folder, the suffix, and the name for runs of commands without a record.
const RUNS: &str = "runs";
const SUFFIX: &str = "run";
const NONE: &str = "none";

/// A stored account.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its path.
    pub path: PathBuf,
    /// When it was written.
    pub written: SystemTime,
    /// JSON.
    pub json: Vec<u8>,
}

impl Store {
    /// Stores the account of a run of this command, beside its record if it has one.
    ///
    /// # Errors
    /// When it is too large, or cannot be written. An earlier one may be deleted then.
    pub fn keep_run(&self, identity: &Identity, json: &[u8]) -> Result<()> {
        ensure!(json.len() <= LIMIT, "the account of the run is too large");
        let place = match self.place_for(identity).is_taken() {
            true => self.run_place(&identity::id(identity))?,
            false => self.run_place(NONE)?,
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((json.len() as u32).to_le_bytes());
        bytes.extend(json);
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        // Replacing a file makes some file systems write the new one to the device at once.
        let _ = place.remove();
        Ok(place.put(&bytes)?)
    }

    /// The account of the last run of the command whose record has this id; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be used; the error names it.
    pub fn run_of(&self, id: &str) -> Result<Option<StoredRun>> {
        let Ok(place) = self.run_place(id) else {
            return Ok(None);
        };
        let path = place.path();
        read(&place).with_context(|| path.display().to_string())
    }

    /// The latest account of any command, and the id of its record if it has one.
    ///
    /// # Errors
    /// When it cannot be used; the error names it.
    pub fn last_run(&self) -> Result<Option<(Option<String>, StoredRun)>> {
        let ids = self.runs().unwrap_or_default();
        let places = ids.into_iter().filter_map(|id| {
            let place = self.run_place(&id).ok()?;
            Some((used(&place.stat().ok()?), id))
        });
        let Some((_, id)) = places.max() else {
            return Ok(None);
        };
        let run = self.run_of(&id)?;
        Ok(run.map(|run| (Some(id).filter(|id| id != NONE), run)))
    }

    /// Deletes the account that belongs to a record.
    pub(super) fn forget_run(&self, id: &str) {
        if let Ok(place) = self.run_place(id) {
            let _ = place.remove();
        }
    }

    /// Deletes the accounts of records that are gone.
    pub(super) fn sweep_runs(&self) {
        for id in self.runs().unwrap_or_default() {
            if id != NONE && !self.place_of(&id).is_taken() {
                self.forget_run(&id);
            }
        }
    }

    /// Names of the accounts.
    fn runs(&self) -> io::Result<Vec<String>> {
        let folder = self.open_runs()?;
        let mut ids = Vec::new();
        for file in Dir::read_from(&folder)? {
            let file = file?;
            let name = file.file_name().to_string_lossy();
            if let Some((id, SUFFIX)) = name.rsplit_once('.')
                && !id.starts_with('.')
            {
                ids.push(id.to_owned());
            }
        }
        Ok(ids)
    }

    fn open_runs(&self) -> io::Result<std::os::fd::OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(&*self.data, RUNS, flags, Mode::empty());
        let folder = open().or_else(|_| {
            rustix::fs::mkdirat(&*self.data, RUNS, Mode::RWXU)?;
            open()
        });
        Ok(folder?)
    }

    fn run_place(&self, id: &str) -> Result<Place> {
        let folder = Arc::new(self.open_runs()?);
        let name = format!("{id}.{SUFFIX}");
        Ok(Place::new(
            &folder,
            &self.home.join(RUNS),
            OsStr::new(&name),
        ))
    }
}

fn read(place: &Place) -> Result<Option<StoredRun>> {
    let file = match place.open() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    check_owner(&file)?;
    let written = file.metadata()?.modified()?;
    let mut bytes = Vec::new();
    let most = (HEAD + LIMIT + FOOT) as u64;
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(Some(StoredRun {
        path: place.path(),
        written,
        json: decode(bytes)?,
    }))
}

fn decode(mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let damaged = "the account of a run is damaged";
    let Some((magic, rest)) = bytes.split_first_chunk() else {
        bail!(damaged);
    };
    ensure!(*magic == MAGIC, "not the account of a run");
    let (version, rest) = rest.split_first_chunk().context(damaged)?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        bail!(
            "the account of a run is of version {version}, and this foreread reads version {VERSION}"
        );
    }
    let (length, _) = rest.split_first_chunk().context(damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    ensure!(bytes.len() == HEAD + length + FOOT, damaged);
    let (body, sum) = bytes.split_last_chunk::<FOOT>().context(damaged)?;
    ensure!(checksum(body) == u64::from_le_bytes(*sum), damaged);
    bytes.truncate(HEAD + length);
    bytes.drain(..HEAD);
    Ok(bytes)
}
