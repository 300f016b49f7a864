//! The register of a running backend: files are added and removed, and workers that have them open are told.

use std::io;
use std::path::Path;
use std::sync::Arc;

use foreread_plan::{FileId, FileMeta};
use foreread_sys::file;

use super::files::{CachedFile, Files};
use super::lanes::Started;

/// Adds files to a running backend. To be used on threads that share a table of descriptors with
/// it, and dropped before it.
#[derive(Debug)]
pub struct Register {
    pub(super) files: Files,
    pub(super) started: Started,
}

impl Register {
    /// Adds a file by its present name; `path` is its permanent name. With `keep` it stays open until it is removed, so renaming or
    /// deleting it changes nothing.
    ///
    /// # Errors
    /// The error of opening; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
    pub fn add(&self, file: FileId, now: &Path, path: &Path, keep: bool) -> io::Result<()> {
        let (fd, facts) = file::open_regular(now)?;
        let known = CachedFile {
            meta: FileMeta::regular(
                path.to_owned(),
                (facts.dev, facts.ino),
                facts.size,
                facts.mtime_ns,
            ),
            live: true,
            kept: keep.then(|| Arc::new(fd)),
            exact: self.files.exact,
        };
        self.files.insert(file, known);
        Ok(())
    }

    /// Forget a file, and close it.
    pub fn remove(&self, file: FileId) {
        self.files.remove(file);
        // A worker that is not started by now has not opened it, and does not find it any more.
        self.started.forget(file);
    }
}
