//! Keeping the store small and whole: pruning, and what killed recorders left behind.
//!
//! Invariant: a file being written by a living process is never touched, and a complete
//! record is never replaced by an incomplete one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use foreread_plan::format::{self, Reader};

use super::{Entry, Store, id_of, mark_used};
use crate::units::bytes;

impl Store {
    /// Deletes records not used for `older_than`, then those least recently used until all
    /// take at most `max_size` bytes (the store's limit without). Returns the deleted ones.
    pub(crate) fn prune(
        &self,
        max_size: Option<u64>,
        older_than: Option<Duration>,
    ) -> Result<Vec<Entry>> {
        let limit = max_size.unwrap_or(self.limit);
        let oldest = older_than.and_then(|age| SystemTime::now().checked_sub(age));
        let mut kept = 0u64;
        let mut deleted = Vec::new();
        // The last used come first, so what does not fit any more is what was used before.
        for entry in self.entries()? {
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

    /// Takes in what killed recorders left, and brings the store within its limit.
    pub(crate) fn tidy(&self) {
        self.take_in();
        self.shrink();
    }

    /// Brings the store within its limit. What cannot be done now is tried again the next time, so
    /// failures are not reported.
    fn shrink(&self) {
        let _ = self.prune(None, None);
    }

    /// Brings the store within its limit with a record that was just put into it, which is the last to go.
    ///
    /// # Errors
    /// When the record alone is above the limit, so that it is gone again.
    pub(crate) fn settle(&self, record: &Path) -> Result<()> {
        let size = fs::metadata(record).map_or(0, |meta| meta.len());
        // The file system's clock ticks seldom: a record marked as used a moment ago may seem younger.
        mark_used(record);
        self.shrink();
        ensure!(
            size <= self.limit,
            "the record would take {}, which is more than the {} that all records may",
            bytes(size),
            bytes(self.limit)
        );
        Ok(())
    }

    /// Takes in what killed recorders left. What cannot be done now is tried again at the next
    /// opening, so failures are not reported.
    pub(super) fn take_in(&self) {
        for destination in self.abandoned() {
            for partial in format::partials(&destination).unwrap_or_default() {
                if Path::new("/proc").join(partial.pid.to_string()).exists() {
                    continue;
                }
                let adopted = !destination.exists()
                    && worth_keeping(&partial.path)
                    && format::adopt(&partial.path, &destination).is_ok();
                if !adopted {
                    let _ = fs::remove_file(&partial.path);
                }
            }
        }
    }

    /// The records that recorders have begun in the store and not finished.
    fn abandoned(&self) -> BTreeSet<PathBuf> {
        let Ok(listed) = fs::read_dir(&self.folder) else {
            return BTreeSet::new();
        };
        listed
            .flatten()
            .filter_map(|file| {
                let name = file.file_name();
                let (name, _) = name.to_str()?.strip_prefix('.')?.split_once(".partial-")?;
                let destination = self.folder.join(name);
                id_of(&destination).map(|_| destination)
            })
            .collect()
    }
}

/// Whether an unfinished record says enough to be of use.
fn worth_keeping(path: &Path) -> bool {
    Reader::open(path).is_ok_and(|reader| !reader.files().is_empty())
}
