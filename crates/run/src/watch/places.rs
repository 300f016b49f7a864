//! Paths to files of the session.
//!
//! Each path is resolved once, with few calls. Folders without a symbolic link in their path are remembered, and so is the file of
//! each path. In such a folder a name is not looked up if the program's own call has returned its inode, unless the inode has changed
//! since the run began.
//!
//! Invariants: nothing is opened, and no automount point is triggered; a link is followed only where the program has followed
//! it. The session has regular files, directories and symbolic links, and nothing else.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use foreread_observe::Inode;
use foreread_plan::{FileId, FileMeta};
use foreread_sys::way::{self, Links};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, fstat, makedev, statx};
use rustix::io::Errno;

use super::Sink;
use crate::files::Files;

/// Paths remembered at a time; beyond it the tables start afresh.
const REMEMBERED: usize = 1 << 20;
/// Limit of the bytes of paths, for files and for paths that lead to them: it bounds the memory that another user's process can consume by
/// opening files, real or made up.
pub(super) const PATHS: usize = 512 << 20;
/// Limits of files known by name only, and of the bytes of their paths, chosen so that a record still has room for the files that are read
/// ([`foreread_plan::format::MAX_ID`], [`foreread_plan::format::MAX_PATHS`]).
const NAMED: usize = 1_000_000;
const NAMED_PATHS: usize = 96 << 20;

/// The result of resolving a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The symbolic link at the path itself, if there is one.
    pub(super) link: Option<FileId>,
    /// The path's target.
    pub(super) target: Target,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Target {
    /// Nobody has looked: the link was not followed.
    #[default]
    Unknown,
    /// No file of the session.
    Nothing,
    Regular(FileId),
    Directory(FileId),
}

/// The use for which a path is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The target was opened or mapped.
    Opened,
    /// The target was looked up.
    Followed,
    /// The path itself was looked up, without following a link.
    Named,
    /// The same, and the program's call has returned this inode.
    Told(Inode),
}

impl Use {
    /// True if a link at the path itself was not followed.
    fn is_of_itself(&self) -> bool {
        matches!(self, Self::Named | Self::Told(_))
    }
}

/// A file's facts, and when it was made.
#[derive(Clone, Debug)]
pub(super) struct FileFacts {
    kind: FileType,
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i64,
    made: Option<SystemTime>,
}

/// The paths of a session, and the files they lead to.
pub(super) struct Places {
    began: SystemTime,
    /// The libraries put into the program, which are no files of its own.
    own: Vec<PathBuf>,
    pub(super) files: Files,
    pub(super) by_path: FxHashMap<OsString, Resolved>,
    /// Folders whose paths have no symbolic links and no redundant parts.
    pub(super) direct: FxHashSet<OsString>,
    /// Files met by their names alone so far.
    unopened: FxHashSet<FileId>,
    /// The bytes of the paths of `files`, and of those in `by_path`.
    paths: usize,
    kept: usize,
    /// Files met by their names alone, the bytes of their paths, and uses of names that there was no room for.
    named: usize,
    named_paths: usize,
    unnamed: u64,
}

impl Places {
    pub(super) fn new(began: SystemTime, own: Vec<PathBuf>, files: Files) -> Self {
        Self {
            began,
            own,
            files,
            by_path: FxHashMap::default(),
            direct: FxHashSet::default(),
            unopened: FxHashSet::default(),
            paths: 0,
            kept: 0,
            named: 0,
            named_paths: 0,
            unnamed: 0,
        }
    }

    /// Uses of names that are not accounted for, because there were too many.
    pub(super) fn unnamed(&self) -> u64 {
        self.unnamed
    }

    /// Resolves a path. A new file is passed to `sink`.
    pub(super) fn find(&mut self, path: PathBuf, used: &Use, sink: &mut impl Sink) -> Resolved {
        if let Some(&known) = self.by_path.get(path.as_os_str())
            && (known.target != Target::Unknown || used.is_of_itself())
        {
            return known;
        }
        let found = self.resolve(&path, used, sink).unwrap_or(Resolved {
            link: None,
            target: Target::Nothing,
        });
        self.keep(path, found);
        found
    }

    /// True if the path is known from this run or from the record.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.by_path.contains_key(path.as_os_str()) || self.files.recorded_at(path).is_some()
    }

    /// True if an opened file was known by name only before.
    pub(super) fn is_first_opened(&mut self, file: FileId) -> bool {
        self.unopened.remove(&file)
    }

    /// The identity of the regular file, directory or link at `path` now.
    pub(super) fn facts(&self, path: &Path) -> Option<FileMeta> {
        self.meta(path, &FileFacts::of(path)?)
    }

    /// The same of a regular file only.
    pub(super) fn regular(&self, path: &Path) -> Option<FileMeta> {
        let facts = FileFacts::of(path)?;
        let is_regular = facts.kind == FileType::RegularFile;
        is_regular.then(|| self.meta(path, &facts))?
    }

    fn resolve(&mut self, path: &Path, used: &Use, sink: &mut impl Sink) -> Option<Resolved> {
        if let Some(facts) = self.trusted(path, used, sink) {
            let met = self.meet(path, &facts, used, sink);
            return Some(Resolved {
                link: None,
                target: met.map_or(Target::Nothing, Target::Regular),
            });
        }
        let place = self.place(path)?;
        let facts = self.told(used).or_else(|| FileFacts::of(&place))?;
        let mut found = Resolved::default();
        let (place, facts) = if facts.kind != FileType::Symlink {
            (place, facts)
        } else {
            found.link = self.meet(&place, &facts, &Use::Named, sink);
            if used.is_of_itself() {
                return Some(found);
            }
            let Some(led) = way::real(&place).ok().and_then(|led| {
                let facts = FileFacts::of(&led)?;
                Some((Cow::Owned(led), facts))
            }) else {
                found.target = Target::Nothing;
                return Some(found);
            };
            led
        };
        // Known by its own path.
        let is_other = place.as_os_str() != path.as_os_str();
        if is_other
            && let Some(known) = self.by_path.get(place.as_os_str())
            && known.target != Target::Unknown
        {
            found.target = known.target;
            return Some(found);
        }
        let met = self.meet(&place, &facts, used, sink);
        found.target = match met {
            Some(file) if facts.kind == FileType::Directory => Target::Directory(file),
            Some(file) => Target::Regular(file),
            None => Target::Nothing,
        };
        if is_other {
            let direct = Resolved {
                link: None,
                ..found
            };
            self.keep(place.into_owned(), direct);
        }
        Some(found)
    }

    /// The record's entry for an opened file, if it can be trusted.
    fn trusted(&self, path: &Path, used: &Use, sink: &impl Sink) -> Option<FileFacts> {
        let (file, meta) = self
            .files
            .recorded_at(path)
            .filter(|_| *used == Use::Opened)?;
        sink.trusts(file).then_some(FileFacts {
            kind: FileType::RegularFile,
            dev: meta.dev,
            ino: meta.ino,
            size: meta.size,
            mtime_ns: meta.mtime_ns,
            made: None,
        })
    }

    /// Facts from the program's own call. `None` if the inode has changed since the run began: it may be another file by now.
    fn told(&self, used: &Use) -> Option<FileFacts> {
        let Use::Told(inode) = used else { return None };
        let changed = u64::try_from(inode.ctime_ns).ok()?;
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(changed);
        (changed < self.began).then(|| FileFacts {
            kind: FileType::from_raw_mode(u32::from(inode.kind) << 12),
            dev: u64::from(inode.dev),
            ino: inode.ino,
            size: inode.size,
            mtime_ns: inode.mtime_ns,
            made: None,
        })
    }

    /// The number of the file at a place. `None` if it is no file of the session, or beyond the limit.
    fn meet(
        &mut self,
        place: &Path,
        facts: &FileFacts,
        used: &Use,
        sink: &mut impl Sink,
    ) -> Option<FileId> {
        if self.is_own(place) {
            return None;
        }
        let meta = self.meta(place, facts)?;
        let made = facts.made.filter(|_| meta.written);
        let len = place.as_os_str().len();
        if self.paths >= PATHS {
            return None;
        }
        let is_full = self.named >= NAMED || self.named_paths + len > NAMED_PATHS;
        let is_opened = *used == Use::Opened;
        if !is_opened && is_full && !self.files.knows(&meta, made) {
            self.unnamed += 1;
            return None;
        }
        let (id, is_new) = self.files.meet(meta, made)?;
        if !is_new {
            return Some(id);
        }
        self.paths += len;
        let meta = self.files.met(id);
        if is_opened {
            sink.file(id, meta);
        } else {
            self.named += 1;
            self.named_paths += len;
            self.unopened.insert(id);
            sink.named(id, meta);
        }
        Some(id)
    }

    /// Remembers the result for a path.
    fn keep(&mut self, path: PathBuf, found: Resolved) {
        let len = path.as_os_str().len();
        if self.by_path.len() >= REMEMBERED || self.kept + len > PATHS {
            self.by_path.clear();
            self.kept = 0;
        }
        self.kept += len;
        self.by_path.insert(path.into_os_string(), found);
    }

    /// The place that a path names, its folder's links followed. To follow a path link by link takes a call for each of its
    /// folders, so those that were found to lead through no link are kept.
    fn place<'a>(&mut self, path: &'a Path) -> Option<Cow<'a, Path>> {
        if folder_of(path).is_some_and(|folder| self.direct.contains(folder)) {
            return Some(Cow::Borrowed(path));
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            // The root, or a path that ends with dots: no link.
            return Some(Cow::Owned(way::real(path).ok()?));
        };
        // Without the dots and slashes that mean nothing.
        let mut place: PathBuf = folder.components().collect();
        if !self.direct.contains(place.as_os_str()) {
            let canonical = way::real(folder).ok()?;
            if canonical.as_os_str() == place.as_os_str() {
                if self.direct.len() >= REMEMBERED {
                    self.direct.clear();
                }
                self.direct.insert(place.clone().into_os_string());
            }
            place = canonical;
        }
        place.push(name);
        Some(Cow::Owned(place))
    }

    fn is_own(&self, canonical: &Path) -> bool {
        self.own.iter().any(|own| {
            own.file_name() == canonical.file_name()
                && own.canonicalize().is_ok_and(|own| own == canonical)
        })
    }

    /// The identity of a file found at `path`, if it is a file of the session.
    fn meta(&self, path: &Path, facts: &FileFacts) -> Option<FileMeta> {
        let directory = facts.kind == FileType::Directory;
        let is_file = matches!(facts.kind, FileType::RegularFile | FileType::Symlink);
        (directory || is_file).then(|| FileMeta {
            written: facts.made.is_some_and(|made| made >= self.began),
            directory,
            ..FileMeta::regular(
                path.to_owned(),
                (facts.dev, facts.ino),
                facts.size,
                facts.mtime_ns,
            )
        })
    }
}

/// The folder of a path as written, if the path ends with a name and not with slashes or dots.
fn folder_of(path: &Path) -> Option<&OsStr> {
    let bytes = path.as_os_str().as_bytes();
    let slash = bytes.iter().rposition(|&byte| byte == b'/')?;
    let ends_with_name = !matches!(&bytes[slash + 1..], b"" | b"." | b"..");
    ends_with_name.then(|| OsStr::from_bytes(&bytes[..slash.max(1)]))
}

impl From<Statx> for FileFacts {
    fn from(found: Statx) -> Self {
        let (changed, born) = (found.stx_mtime, found.stx_btime);
        let known = StatxFlags::from_bits_retain(found.stx_mask);
        let made = known.contains(StatxFlags::BTIME).then(|| {
            let since = Duration::new(born.tv_sec.try_into().ok()?, born.tv_nsec);
            SystemTime::UNIX_EPOCH.checked_add(since)
        });
        Self {
            kind: FileType::from_raw_mode(found.stx_mode.into()),
            dev: makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            size: found.stx_size,
            mtime_ns: nanos(changed.tv_sec, changed.tv_nsec.into()),
            made: made.flatten(),
        }
    }
}

/// A time in ns since the epoch.
fn nanos(seconds: i64, nanos: u64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanos as i64)
}

impl FileFacts {
    /// The facts of any file at a path. Triggers no mount.
    fn of(path: &Path) -> Option<Self> {
        let place = way::find(path, Links::Refused).ok()?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        match statx(&place, c"", AtFlags::EMPTY_PATH, wanted) {
            Ok(found) => Some(Self::from(found)),
            // A container may refuse the call, as one that it does not know.
            Err(Errno::NOSYS | Errno::PERM) => {
                let found = fstat(&place).ok()?;
                Some(Self {
                    kind: FileType::from_raw_mode(found.st_mode),
                    dev: found.st_dev,
                    ino: found.st_ino,
                    size: found.st_size as u64,
                    mtime_ns: nanos(found.st_mtime, found.st_mtime_nsec),
                    made: None,
                })
            }
            Err(_) => None,
        }
    }
}
