//! `foreread forget` and `foreread prune`: deleting records.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use foreread_store::{Store, StoredRecord};
use foreread_words::counted;
use foreread_words::units::bytes;

use crate::args;
use crate::chosen::{of_program, why_none};
use crate::output::output;

/// Number of ids in a message, and characters of each.
const SHORT: usize = 12;
const SHOWN: usize = 8;

/// Deletes the named records, or all.
///
/// # Errors
/// When an id names no record or several; then nothing is deleted.
pub(crate) fn forget(args: &args::Forget) -> Result<ExitCode> {
    let store = Store::open()?;
    let entries = if args.all {
        store.entries()?
    } else {
        named(&store, &args.ids)?
    };
    for entry in &entries {
        store.remove(entry)?;
    }
    report("forgot", &entries)
}

/// The named records, each once.
fn named(store: &Store, ids: &[String]) -> Result<Vec<StoredRecord>> {
    let mut entries: Vec<StoredRecord> = Vec::new();
    for id in ids {
        let entry = store.entry(id).map_err(|why| instead(store, id, why))?;
        if entries.iter().all(|other| other.id != entry.id) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The error, with the ids of records that the user may have meant. A program's name is not accepted as an id, because it may stand for
/// many records.
fn instead(store: &Store, name: &str, why: Error) -> Error {
    let entries = store.entries().unwrap_or_default();
    let ids: Vec<&str> = of_program(&entries, name)
        .map(|(entry, _)| entry.id.get(..SHORT).unwrap_or(&entry.id))
        .take(SHOWN)
        .collect();
    match ids[..] {
        [] => why_none(store, name, why),
        [id] => anyhow!("{name:?} is no id of a record; the record of {name} has the id {id}"),
        _ => anyhow!(
            "{name:?} is no id of a record; the records of {name} have the ids {}",
            ids.join(", ")
        ),
    }
}

/// Deletes the records least recently used.
pub(crate) fn prune(args: &args::Prune) -> Result<ExitCode> {
    let store = Store::open()?;
    report("deleted", &store.prune(args.max_size, args.older_than)?)
}

fn report(done: &str, entries: &[StoredRecord]) -> Result<ExitCode> {
    let size = entries.iter().map(|entry| entry.size).sum();
    let records = counted(entries.len() as u64, "record", "records");
    writeln!(output(), "{done} {records}, {}", bytes(size))?;
    Ok(ExitCode::SUCCESS)
}
