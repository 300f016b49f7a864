//! Keeps the store small and consistent: pruning, and files left by killed recorders.
//!
//! Invariant: a file being written by a living process is never touched, and a complete
//! record is never replaced by an incomplete one.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use foreread_plan::Identity;
use foreread_plan::format::{Place, Reader};
use foreread_words::units::bytes;
use rustix::fs::Dir;

use super::facts::{CommandFacts, Index};
use super::{Store, StoredRecord, check_owner, id_of, identity, mark_used, room_for};

/// Records that are noted in one go, at most, while a program runs: 25 µs each.
const NOTED: usize = 64;

impl Store {
    /// Deletes records not used for `older_than`, then those least recently used until all
    /// take at most `max_size` bytes (the store's limit without). Returns the deleted ones.
    pub fn prune(
        &self,
        max_size: Option<u64>,
        older_than: Option<Duration>,
    ) -> Result<Vec<StoredRecord>> {
        self.prune_of(self.entries()?, max_size, older_than)
    }

    /// [`Store::prune`] of these records, which are all there are, the last used first.
    fn prune_of(
        &self,
        entries: Vec<StoredRecord>,
        max_size: Option<u64>,
        older_than: Option<Duration>,
    ) -> Result<Vec<StoredRecord>> {
        let limit = max_size.unwrap_or(self.limit);
        let oldest = older_than.and_then(|age| SystemTime::now().checked_sub(age));
        let mut kept = 0u64;
        let mut deleted = Vec::new();
        // The last used come first, so the records beyond the limit are the least recently used ones.
        for entry in entries {
            let expired = oldest.is_some_and(|oldest| entry.used < oldest);
            if expired || kept.saturating_add(entry.size) > limit {
                self.remove(&entry)?;
                deleted.push(entry);
            } else {
                kept += entry.size;
            }
        }
        Ok(deleted)
    }

    /// Adopts files left by killed recorders, and deletes accounts without a record. It deletes no record, because the caller may only want
    /// to read the store.
    pub fn tidy(&self) {
        self.take_in();
        self.sweep_runs();
    }

    /// Adopts files left by killed recorders, brings the store within its limit, and updates the index of this program's executable. The
    /// records are listed once for both.
    pub fn tidy_for(&self, identity: &Identity) {
        self.take_in();
        let Ok(mut entries) = self.entries() else {
            return;
        };
        let _ = self.prune_of(entries.clone(), None, None);
        let id = identity::id(identity);
        // Without an index, it is made when it is needed.
        let Some(place) = self.index_place(&id) else {
            return;
        };
        let Some(mut index) = Index::read(&place) else {
            return;
        };
        entries.retain(|entry| identity::same_exe(&entry.id, &id));
        let number = |entry: &StoredRecord| u64::from_str_radix(&entry.id, 16).unwrap_or(0);
        let there: HashSet<u64> = entries.iter().map(number).collect();
        let noted: HashSet<u64> = index.0.iter().map(|facts| facts.id).collect();
        index.0.retain(|facts| there.contains(&facts.id));
        let mut changed = index.0.len() < noted.len();
        let fresh = entries
            .iter()
            .filter(|entry| !noted.contains(&number(entry)));
        for entry in fresh.take(NOTED) {
            changed |= self.note(&mut index, entry);
        }
        if changed {
            let _ = index.write(&place);
        }
    }

    /// Brings the store within its limit. Failures are not reported, because the next call tries again.
    fn shrink(&self) {
        let _ = self.prune(None, None);
    }

    /// Brings the store within its limit with a program's record that was just put into it, which is the last to go.
    ///
    /// # Errors
    /// When the record alone exceeds the limit, so it was deleted again.
    pub fn settle(&self, identity: &Identity) -> Result<()> {
        let file = self.place_for(identity).open().ok();
        let size = file.as_ref().and_then(|file| file.metadata().ok());
        let size = size.map_or(0, |meta| meta.len());
        // The file system's clock ticks seldom: a record marked as used a moment ago may seem younger.
        if let Some(file) = &file {
            mark_used(file);
        }
        let id = identity::id(identity);
        if let Some(place) = self.index_place(&id)
            && let Some(mut index) = Index::read(&place)
            && let Some(facts) = CommandFacts::of(&id, identity)
            && index.add(facts)
        {
            // A missing entry is added when the store is tidied.
            let _ = index.write(&place);
        }
        self.shrink();
        ensure!(
            size <= self.limit,
            "the record would take {}, which is more than the {} that all records may",
            bytes(size),
            bytes(self.limit)
        );
        Ok(())
    }

    /// Adopts files left by killed recorders. Failures are not reported, because the next opening tries again.
    pub(super) fn take_in(&self) {
        for destination in self.unfinished() {
            for partial in destination.partials().unwrap_or_default() {
                // Its writer lives, perhaps where its process number says nothing here.
                let Ok(Some(taken)) = partial.take_over() else {
                    continue;
                };
                if check_owner(&taken).is_err() {
                    continue;
                }
                let adopted = !destination.is_taken()
                    && worth_keeping(&taken, &partial.place().path())
                    && partial.adopt(&taken, &destination).is_ok();
                if !adopted {
                    let _ = partial.place().remove();
                }
            }
        }
    }

    /// The records that recorders have begun in the store and not finished.
    pub(super) fn unfinished(&self) -> Vec<Place> {
        let Ok(listed) = Dir::read_from(self.directory.as_fd()) else {
            return Vec::new();
        };
        let ids: BTreeSet<String> = listed
            .filter_map(|file| {
                let file = file.ok()?;
                let name = OsStr::from_bytes(file.file_name().to_bytes());
                let (name, _) = name.to_str()?.strip_prefix('.')?.split_once(".partial-")?;
                id_of(Path::new(name))
            })
            .collect();
        ids.iter().map(|id| self.place_of(id)).collect()
    }
}

/// True if an unfinished record has enough content to be useful.
fn worth_keeping(taken: &File, path: &Path) -> bool {
    let opened = taken.try_clone().ok().and_then(|file| {
        let size = file.metadata().ok()?.len();
        Reader::within(file, path, room_for(size)).ok()
    });
    opened.is_some_and(|reader| !reader.files().is_empty())
}
