//! The short way: an iterator of accesses in, a guard out.

use std::ops::Range;
use std::path::Path;

use foreread_plan::{Extent, FileId};
use foreread_sources::Entry;

use crate::{Client, Error, Options, Report};

/// Prefetches `accesses` in their order: pairs of an index into `files` and a byte range.
///
/// The iterator runs on a thread of its own and advances as the list is used up, so it may be endless. An invalid index ends the list.
/// Announce the program's position by [`Guard::at`].
///
/// # Errors
/// When a file cannot be opened or the session's threads cannot be started.
pub fn prefetch<P, F, I>(files: F, accesses: I) -> Result<Guard, Error>
where
    P: AsRef<Path>,
    F: IntoIterator<Item = P>,
    I: IntoIterator<Item = (usize, Range<u64>)>,
    I::IntoIter: Send + 'static,
{
    let client = Client::new(Options::default())?;
    let files = files
        .into_iter()
        .map(|path| client.add_path(path.as_ref()))
        .collect::<Result<Vec<FileId>, Error>>()?;
    for &file in &files {
        client.region(file, 0..u64::MAX)?;
    }
    // A missing file ends the list: later entries cannot be numbered.
    let entries = accesses.into_iter().map_while(move |(index, range)| {
        Some(Entry {
            file: *files.get(index)?,
            extent: Extent::new(range.start, range.end.saturating_sub(range.start)),
            marked: false,
        })
    });
    client.stream(entries)?;
    Ok(Guard { client })
}

/// A list being prefetched; dropping it ends the session.
#[derive(Debug)]
pub struct Guard {
    client: Client,
}

impl Guard {
    /// The program is about to make access number `n`, counted from 0. Accesses between the last announced one and this count as skipped;
    /// announcing some of them is enough.
    ///
    /// # Errors
    /// When the list ended before `n`, and after a fork.
    pub fn at(&self, n: u64) -> Result<(), Error> {
        self.client.at(n).map(drop)
    }

    /// The client: for its statistics, or to report reads and their durations.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// End the session and close its account.
    pub fn finish(self) -> Report {
        self.client.finish()
    }
}
