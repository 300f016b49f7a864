//! The files a backend may be asked about; more may come, and some go, while it runs.
//!
//! Invariant: a descriptor that is kept belongs to the table of the thread that kept it, and is
//! only used and closed by threads that share that table.
//!
//! Data flow: the session's owner adds and removes files by its [`Register`](super::Register); workers look files up when they
//! open them.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use foreread_plan::{FileId, FileMeta};

/// Files as an earlier run found them.
pub trait Recorded: fmt::Debug + Send + Sync {
    /// The file with this number, if there is one.
    fn file(&self, file: FileId) -> Option<&FileMeta>;
}

impl Recorded for BTreeMap<FileId, FileMeta> {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.get(&file)
    }
}

/// A file that may be fetched.
#[derive(Clone, Debug)]
pub(crate) struct CachedFile {
    pub(crate) meta: FileMeta,
    /// True if its device number was looked up in this session, and is not from an earlier run's record.
    pub(crate) live: bool,
    /// Open since it was added, even if its name has changed.
    pub(crate) kept: Option<Arc<OwnedFd>>,
    /// True if only this very file may be opened, by a path without links.
    pub(crate) exact: bool,
}

/// All files, shared with the workers.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// Files of an earlier run, in their recorded states.
    recorded: Arc<dyn Recorded>,
    /// Files added during the session.
    added: Arc<RwLock<BTreeMap<FileId, CachedFile>>>,
    /// True if only these very files are opened, by paths without links.
    pub(super) exact: bool,
}

impl Files {
    /// Files an earlier run read.
    pub(crate) fn recorded(files: Arc<dyn Recorded>) -> Self {
        Self {
            recorded: files,
            added: Arc::default(),
            exact: false,
        }
    }

    /// Open nothing but the files themselves.
    pub(crate) fn exactly(&mut self) {
        self.exact = true;
    }

    pub(crate) fn get(&self, file: FileId) -> Option<CachedFile> {
        if let Some(meta) = self.recorded.file(file) {
            return Some(CachedFile {
                meta: meta.clone(),
                live: false,
                kept: None,
                exact: self.exact,
            });
        }
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        added.get(&file).cloned()
    }

    /// The device that a file is known to be on, and its inode; 0 if they are not known.
    pub(crate) fn place(&self, file: FileId) -> (u64, u64) {
        let place = self.with(file, |meta, _| (meta.dev, meta.ino));
        place.unwrap_or_default()
    }

    /// The result of `work` on a file; its second argument is true if the device number was looked up just now.
    pub(crate) fn with<T>(
        &self,
        file: FileId,
        work: impl FnOnce(&FileMeta, bool) -> T,
    ) -> Option<T> {
        if let Some(meta) = self.recorded.file(file) {
            return Some(work(meta, false));
        }
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        added.get(&file).map(|known| work(&known.meta, known.live))
    }

    /// The path of a file.
    pub(crate) fn path(&self, file: FileId) -> Option<PathBuf> {
        self.with(file, |meta, _| meta.path.clone())
    }

    /// Adds a file. True if the number was in use.
    pub(crate) fn add(&self, file: FileId, meta: FileMeta) -> bool {
        let known = CachedFile {
            meta,
            live: true,
            kept: None,
            exact: self.exact,
        };
        self.insert(file, known)
    }

    /// Adds a file. True if the number was in use.
    pub(super) fn insert(&self, file: FileId, known: CachedFile) -> bool {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.insert(file, known).is_some()
    }

    /// Forgets a file that was added.
    pub(super) fn remove(&self, file: FileId) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.remove(&file);
    }
}
