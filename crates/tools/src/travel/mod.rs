//! Records in other formats (`export`, `import`), on other machines, and several joined (`merge`).
//!
//! Invariants: a file or record is replaced as a whole or not at all. An imported record names only files that the user may read: each is
//! opened first. Everything left out is named.
//!
//! Data flow: record → [`export`] → list; list, trace or record → [`import`], [`here`] → record; records → [`merge`] → record.

pub(crate) mod export;
mod here;
pub(crate) mod import;
pub(crate) mod merge;

use std::ffi::OsString;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use foreread::words::redacts;
use foreread_lists as lists;
use foreread_plan::format::Place;
use foreread_plan::{Identity, Meta};
use foreread_run::destination;
use foreread_store::{Store, identity_of};
use foreread_traces as traces;
use foreread_words::{counted, plain};

use crate::output::unable;

/// Prefix of a redacted word, before its hash.
const REDACTED: &str = "redacted:";
/// Number of left-out files that are named one by one.
const NAMED: usize = 10;

/// Formats that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// A list.
    List(lists::Format),
    /// A trace of another tool.
    Trace(traces::Format),
    /// A record of foreread's own.
    Record,
}

impl From {
    /// The format with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let list = lists::Format::named(name).filter(|format| *format != lists::Format::Fio);
        let trace = || match traces::Format::named(name)? {
            traces::Format::Record => Some(Self::Record),
            trace => Some(Self::Trace(trace)),
        };
        list.map(Self::List).or_else(trace)
    }
}

/// Destination and command of a new record.
struct Goal {
    identity: Identity,
    place: Place,
    /// The store, if the record goes there.
    store: Option<Store>,
}

impl Goal {
    /// The record of the given command, or of `own`, in the store or in a file.
    fn of(command: &[OsString], own: Option<Identity>, output: Option<&Path>) -> Result<Self> {
        let identity = own
            .filter(|_| command.is_empty())
            .unwrap_or_else(|| identity_of(command));
        let is_redacted = || identity.argv.iter().any(|word| word.starts_with(REDACTED));
        let identity = match redacts() && !is_redacted() {
            true => Store::open()?.redacted(&identity)?,
            false => identity,
        };
        if let Some(path) = output {
            return Ok(Self {
                identity,
                place: destination(path).map_err(unable)?,
                store: None,
            });
        }
        let store = Store::open()?;
        // A record of a newer foreread is not replaced.
        store.look(&identity)?;
        Ok(Self {
            place: store.place_for(&identity),
            identity,
            store: Some(store),
        })
    }

    fn meta(&self) -> Meta {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Meta {
            identity: self.identity.clone(),
            recorded_at: now.map_or(0, |age| age.as_secs()),
            writer: concat!("foreread ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Makes room in the store after the record was written.
    fn settle(&self) -> Result<()> {
        match &self.store {
            Some(store) => store.settle(&self.identity),
            None => Ok(()),
        }
    }
}

/// Prints to standard error what was left out, with the first names.
fn say_left_out(names: &[String], kind: (&str, &str)) {
    for name in names.iter().take(NAMED) {
        eprintln!("foreread: {}", plain(name));
    }
    let more = names.len().saturating_sub(NAMED) as u64;
    if more > 0 {
        eprintln!("foreread: and {} more", counted(more, kind.0, kind.1));
    }
}
