//! `foreread forget` and `foreread prune`: deleting records.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use foreread_store::{Store, StoredRecord};
use foreread_words::counted;
use foreread_words::units::bytes;

use crate::args;
use crate::output::output;

/// Deletes the records named, or all.
///
/// # Errors
/// When one of the ids names no record or several; none is deleted then.
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

/// The records named, each once.
fn named(store: &Store, ids: &[String]) -> Result<Vec<StoredRecord>> {
    let mut entries: Vec<StoredRecord> = Vec::new();
    for id in ids {
        let entry = store.entry(id)?;
        if entries.iter().all(|other| other.id != entry.id) {
            entries.push(entry);
        }
    }
    Ok(entries)
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
