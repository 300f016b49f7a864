//! Finds the record, and the account of the last run, that a command line names.
//!
//! Data flow: start of an id, program name, path, command, or nothing → the record's [`Reader`] and the run's [`RunAccount`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, anyhow, bail};
use foreread_plan::format::Reader;
use foreread_plan::{Identity, Rank};
use foreread_run::RunAccount;
use foreread_store::{Store, StoredRecord, StoredRun, Underway, identity_of, underway_at};
use foreread_words::units::ago;
use foreread_words::{counted, plain};

use crate::command_line::{command_line, short_command_line};
use crate::top::runs::front_of;

/// A chosen run.
pub(crate) struct Chosen {
    /// The command's record, if it has one.
    pub(crate) record: Option<Reader>,
    /// The account of its last run, if there is one.
    pub(crate) told: Option<RunAccount>,
    /// Remarks for the user, in sentences.
    pub(crate) remarks: Vec<String>,
    /// For a rank: the accounts of the last runs of its program's ranks, the first [`RANKS`] of them, by rank.
    pub(crate) ranks: BTreeMap<u32, RunAccount>,
}

/// Number of ranks whose accounts are read, at most.
const RANKS: u32 = 256;

/// The record with this name; with `last_run`, the record of the run that ended last.
///
/// # Errors
/// When there is none, or it cannot be read. The error names it.
pub(crate) fn record(name: Option<&str>, last_run: bool, command: &[OsString]) -> Result<Reader> {
    if last_run {
        let record = run(None, true, &[])?.record;
        return record.context("the last run has no record: foreread explain says why");
    }
    if let Some(name) = name.filter(|name| is_path(name)) {
        return at(Path::new(name));
    }
    let store = Store::open()?;
    if !command.is_empty() {
        let (reader, remarks) = of_command(&store, command)?;
        for remark in remarks {
            eprintln!("foreread: {remark}");
        }
        return Ok(reader);
    }
    match name {
        Some(name) => named(&store, name),
        None => last(&store),
    }
}

/// The record with this name, and the account of its command's last run. Without a name, or with `last_run`, they belong to the run that
/// ended last, which may have no record.
///
/// # Errors
/// As [`record`].
pub(crate) fn run(name: Option<&str>, last_run: bool, command: &[OsString]) -> Result<Chosen> {
    if let Some(name) = name.filter(|name| is_path(name)) {
        let path = Path::new(name);
        let mut chosen = Chosen {
            record: Some(at(path)?),
            told: None,
            remarks: Vec::new(),
            ranks: BTreeMap::new(),
        };
        // A record in the store has an account, whichever path leads to it.
        if let Ok(store) = Store::open()
            && let (Ok(folder), Ok(there)) = (store.folder().canonicalize(), path.canonicalize())
            && there.parent() == Some(&folder)
        {
            chosen.add_run(&store);
        }
        return Ok(chosen);
    }
    let store = Store::open()?;
    let mut chosen = Chosen {
        record: None,
        told: None,
        remarks: Vec::new(),
        ranks: BTreeMap::new(),
    };
    if !command.is_empty() {
        let (reader, remarks) = of_command(&store, command)?;
        chosen.remarks = remarks;
        chosen.record = Some(reader);
    } else if let Some(name) = name.filter(|_| !last_run) {
        chosen.record = Some(named(&store, name)?);
    } else {
        match store.last_run()? {
            Some((Some(id), _)) => chosen.record = Some(store.entry(&id)?.reader()?),
            Some((None, run)) => {
                chosen.told = Some(told(&run)?);
                return Ok(chosen);
            }
            None => chosen.record = Some(last(&store)?),
        }
    }
    chosen.add_run(&store);
    Ok(chosen)
}

impl Chosen {
    /// Adds the account of the last run of the record's command.
    fn add_run(&mut self, store: &Store) {
        let Some(reader) = &self.record else { return };
        let id = reader.path().file_stem().map(|id| id.to_string_lossy());
        let run = id.map_or(Ok(None), |id| store.run_of(&id));
        let read = run.and_then(|run| run.as_ref().map(told).transpose());
        match read {
            Ok(told) => {
                self.told = told;
                self.ranks = ranks(store, &reader.meta().identity);
            }
            Err(why) => self.remarks.push(format!(
                "The account of the last run cannot be used: {}.",
                plain(&format!("{why:#}"))
            )),
        }
        if let Some(run) = store.underway_of(&reader.meta().identity) {
            self.remarks.push(format!(
                "A run of this command is being recorded now ({}). What is shown is the run before it.",
                since(&run)
            ));
        }
    }
}

/// The accounts of all ranks of a rank's program.
fn ranks(store: &Store, identity: &Identity) -> BTreeMap<u32, RunAccount> {
    let of = identity.rank.map_or(0, |rank| rank.of);
    let ranks = (0..of.min(RANKS)).filter_map(|rank| {
        let identity = Identity {
            rank: Some(Rank { rank, of }),
            ..identity.clone()
        };
        let path = store.place_for(&identity).path();
        let run = store.run_of(&path.file_stem()?.to_string_lossy());
        // Ranks without a readable account are left out.
        Some((rank, told(&run.ok()??).ok()?))
    });
    ranks.collect()
}

fn told(run: &StoredRun) -> Result<RunAccount> {
    serde_json::from_slice(&run.json).with_context(|| run.path.display().to_string())
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".fr")
}

fn of_command(store: &Store, command: &[OsString]) -> Result<(Reader, Vec<String>)> {
    let identity = identity_of(command);
    // The words of its command line may be redacted.
    let redacted = store.redacted(&identity)?;
    let known = match store.find(&identity)? {
        Some(known) if known.0.exact => Some(known),
        other => match store.find(&redacted)? {
            Some(known) if known.0.exact => Some(known),
            redacted => other.or(redacted),
        },
    };
    let underway = || {
        [&identity, &redacted]
            .into_iter()
            .find_map(|one| store.underway_of(one))
    };
    let Some((found, record)) = known else {
        match underway() {
            Some(run) => bail!(first_run(&[run])),
            None => bail!("no record of {}", command_line(&identity)),
        }
    };
    let mut remarks: Vec<String> = found.trouble.iter().map(|trouble| plain(trouble)).collect();
    if !found.exact {
        remarks.push(format!("this is the record of {}", plain(&found.differs)));
        remarks.extend(underway().map(|run| first_run(&[run])));
    }
    Ok((record.open()?, remarks))
}

fn last(store: &Store) -> Result<Reader> {
    let entries = store.entries()?;
    match (entries.first(), &store.underway()[..]) {
        (Some(last), _) => last.reader(),
        (None, []) => bail!("{}: no records", store.folder().display()),
        (None, runs) => bail!(first_run(runs)),
    }
}

fn named(store: &Store, name: &str) -> Result<Reader> {
    let by_id = store.entry(name);
    if by_id.is_ok() {
        return by_id?.reader();
    }
    let entries = store.entries()?;
    let by_name = of_program(&entries, name).next();
    match by_name {
        Some((_, reader)) => Ok(reader),
        None => by_id.map_err(|why| why_none(store, name, why))?.reader(),
    }
}

/// The record at a path.
fn at(path: &Path) -> Result<Reader> {
    Reader::open(path).map_err(|why| or_underway_at(path, why))
}

/// The error for a path that cannot be read; if the record is still being written, the error says so.
pub(crate) fn or_underway_at(path: &Path, why: impl Into<Error>) -> Error {
    match underway_at(path).filter(|_| !path.exists()) {
        Some(run) => anyhow!("{}: {}", path.display(), first_run(&[run])),
        None => why.into(),
    }
}

/// The error for an id or program name without a record: the command is in its first run, or its record may be one that cannot be read.
pub(crate) fn why_none(store: &Store, name: &str, why: Error) -> Error {
    let mut runs = store.underway();
    let is_id = |run: &Underway| !name.is_empty() && run.id.starts_with(&name.to_ascii_lowercase());
    runs.retain(|run| is_id(run) || is_of_program(&run.identity, name));
    if !runs.is_empty() {
        return anyhow!(first_run(&runs));
    }
    let entries = store.entries().unwrap_or_default();
    let unusable = entries.iter().filter(|entry| entry.reader().is_err());
    match unusable.count() as u64 {
        0 => why,
        count => anyhow!(
            "{why:#}; {} cannot be used, and may be meant: foreread list",
            counted(count, "record", "records")
        ),
    }
}

/// The sentence about runs whose record is still being written: it names the latest run and counts the others.
pub(crate) fn first_run(runs: &[Underway]) -> String {
    let Some(run) = runs.last() else {
        return String::new();
    };
    let more = match runs.len() - 1 {
        0 => String::new(),
        more => format!(
            ", and {}",
            counted(more as u64, "other like it", "others like it")
        ),
    };
    format!(
        "no record yet: the first run of {} is still going on ({}){more}; its record is there when it has ended",
        short_command_line(&run.identity),
        since(run)
    )
}

/// The process id of a run, and its start time.
fn since(run: &Underway) -> String {
    let began = format!("began {}", ago(run.began, SystemTime::now()));
    match run.writer.and_then(front_of) {
        Some(process) => format!("process {process}, {began}"),
        None => began,
    }
}

/// The records of commands that run a program with this name.
pub(crate) fn of_program<'a>(
    entries: &'a [StoredRecord],
    name: &'a str,
) -> impl Iterator<Item = (&'a StoredRecord, Reader)> {
    let read = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.reader().ok()?)));
    read.filter(move |(_, reader)| is_of_program(&reader.meta().identity, name))
}

/// True if a command runs a program with this name.
fn is_of_program(identity: &Identity, name: &str) -> bool {
    // It may have been started by a link: sh is dash.
    let called = identity.argv.first();
    let mut names = [&identity.exe].into_iter().chain(called);
    // Every path ends with an empty one.
    !name.is_empty() && names.any(|path| Path::new(path).ends_with(name))
}
