//! `foreread forget` and `foreread prune`: deleting records.

use std::process::ExitCode;

use anyhow::Result;

use crate::args;
use crate::store::{Entry, Store};
use crate::units::bytes;

/// Deletes the records named, or all.
///
/// # Errors
/// When one of the ids names no record or several; none is deleted then.
pub(crate) fn forget(args: &args::Forget) -> Result<ExitCode> {
    let store = Store::open()?;
    let entries = if args.all {
        store.entries()?
    } else {
        args.ids
            .iter()
            .map(|id| store.entry(id))
            .collect::<Result<Vec<_>>>()?
    };
    for entry in &entries {
        store.remove(entry)?;
    }
    report("forgot", &entries);
    Ok(ExitCode::SUCCESS)
}

/// Deletes the records least recently used.
pub(crate) fn prune(args: &args::Prune) -> Result<ExitCode> {
    let store = Store::open()?;
    report("deleted", &store.prune(args.max_size, args.older_than)?);
    Ok(ExitCode::SUCCESS)
}

fn report(done: &str, entries: &[Entry]) {
    let size = entries.iter().map(|entry| entry.size).sum();
    let records = match entries.len() {
        1 => "record",
        _ => "records",
    };
    println!("{done} {} {records}, {}", entries.len(), bytes(size));
}
