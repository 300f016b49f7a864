//! Runs that write a record now, read from the heads of their unfinished records.
//!
//! Invariant: only the head of such a record is read, and it is not changed.

use std::path::Path;
use std::time::{Duration, SystemTime};

use foreread_plan::Identity;
use foreread_plan::format::{Handle, Outline, Partial, Place};

use super::{Store, check_owner, identity, room_for};

/// A run that writes a record now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underway {
    /// The id that its record will have in the store.
    pub id: String,
    /// Its program.
    pub identity: Identity,
    /// When it began.
    pub began: SystemTime,
    /// The process that writes the record. In another PID namespace the number stands for another process, or for none.
    pub writer: Option<u32>,
}

impl Store {
    /// All runs that write into the store, in the order in which they began.
    pub fn underway(&self) -> Vec<Underway> {
        let mut runs: Vec<Underway> = self.unfinished().iter().flat_map(at).collect();
        runs.sort_by(|a, b| (a.began, &a.id).cmp(&(b.began, &b.id)));
        runs
    }

    /// A run of this program that writes its record now.
    pub fn underway_of(&self, identity: &Identity) -> Option<Underway> {
        at(&self.place_for(identity)).next()
    }
}

/// The run whose record will be at this path.
pub fn underway_at(path: &Path) -> Option<Underway> {
    at(&Place::at(path).ok()?).next()
}

/// The runs whose records will be at a place.
fn at(place: &Place) -> impl Iterator<Item = Underway> + use<> {
    let partials = place.partials().unwrap_or_default();
    partials.into_iter().filter_map(|partial| of(&partial))
}

/// The run that writes this; `None` if it has ended, or has not begun to write.
fn of(partial: &Partial) -> Option<Underway> {
    if partial.take_over().ok()?.is_some() {
        return None;
    }
    let file = partial.place().open().ok()?;
    check_owner(&file).ok()?;
    let room = room_for(file.metadata().ok()?.len());
    let handle = Handle::new(file, &partial.place().path());
    let meta = Outline::of(&handle, room).ok()?.meta().clone();
    Some(Underway {
        id: identity::id(&meta.identity),
        began: SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(meta.recorded_at))?,
        writer: partial.writer(),
        identity: meta.identity,
    })
}
