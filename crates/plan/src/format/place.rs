//! The place of a record: a name in an open folder.
//!
//! Invariant: files are opened, replaced and deleted in the folder that was opened, even if the folder's path is replaced meanwhile. A
//! symbolic link under the name is not followed, and only regular files are opened.
//!
//! A record is written under a hidden name, `.NAME.partial-PID-NUMBER`, and locked (flock(2)) while its writer lives. The lock shows
//! whether it is abandoned; the process number does not, because another PID namespace may use it for another process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::WriteError;

/// Names that are tried for a new file, at most.
const TRIES: u32 = 64;
/// Follows a record's name in the name of its unfinished file.
const PARTIAL: &str = ".partial-";

/// A name in an open folder.
#[derive(Clone, Debug)]
pub struct Place {
    directory: Arc<OwnedFd>,
    folder: PathBuf,
    name: OsString,
}

impl Place {
    /// The place of a path, whose folder is opened.
    ///
    /// # Errors
    /// [`WriteError::File`] if the path has no name, or its folder cannot be opened.
    pub fn at(path: &Path) -> Result<Self, WriteError> {
        let name = path.file_name().ok_or_else(|| {
            failed("create a record named", path)(io::ErrorKind::InvalidInput.into())
        })?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = open_folder(folder).map_err(failed("create a record in", folder))?;
        Ok(Self::new(&Arc::new(directory), folder, name))
    }

    /// A name in a folder that is open already; `folder` is how messages name it.
    pub fn new(directory: &Arc<OwnedFd>, folder: &Path, name: &OsStr) -> Self {
        Self {
            directory: Arc::clone(directory),
            folder: folder.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The path, as messages name it.
    pub fn path(&self) -> PathBuf {
        match self.folder.as_os_str().as_bytes() {
            b"." => PathBuf::from(&self.name),
            _ => self.folder.join(&self.name),
        }
    }

    /// The folder, as messages name it.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name in the folder.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the regular file at the place for reading.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::InvalidInput`] if there is anything but a regular file.
    pub fn open(&self) -> io::Result<File> {
        // Opening a pipe must not wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::openat(
            self.directory.as_fd(),
            &self.name,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let file = match opened {
            Err(Errno::LOOP | Errno::NXIO) => return Err(not_regular()),
            opened => opened?,
        };
        regular(&rustix::fs::fstat(&file)?)?;
        Ok(File::from(file))
    }

    /// The state of the file here; links are not followed.
    ///
    /// # Errors
    /// The system's.
    pub fn stat(&self) -> io::Result<Stat> {
        let directory = self.directory.as_fd();
        Ok(rustix::fs::statat(
            directory,
            &self.name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// True if there is any file here.
    pub fn is_taken(&self) -> bool {
        self.stat().is_ok()
    }

    /// Deletes the file at the place.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            self.directory.as_fd(),
            &self.name,
            AtFlags::empty(),
        )?)
    }

    /// Writes a file with this content here at once, replacing an earlier one.
    ///
    /// # Errors
    /// [`WriteError::File`]; an earlier file is unchanged then.
    pub fn put(&self, content: &[u8]) -> Result<(), WriteError> {
        let (mut file, growing) = Growing::create(self)?;
        io::Write::write_all(&mut file, content).map_err(failed("write", &self.path()))?;
        growing.take_place(self)
    }

    fn named(&self, name: OsString) -> Self {
        Self {
            name,
            ..self.clone()
        }
    }

    /// The abandoned or growing files of this place, in no particular order.
    ///
    /// # Errors
    /// The system's, if the folder cannot be listed.
    pub fn partials(&self) -> io::Result<Vec<Partial>> {
        let prefix = partial_prefix(&self.name);
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.directory.as_fd())? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name.as_bytes().starts_with(prefix.as_bytes()) {
                found.push(Partial(self.named(name.to_owned())));
            }
        }
        Ok(found)
    }
}

/// A record that was begun at a place and never finished there.
#[derive(Clone, Debug)]
pub struct Partial(Place);

impl Partial {
    /// Its place.
    pub fn place(&self) -> &Place {
        &self.0
    }

    /// The process that began it, by its number, as its name has it.
    pub fn writer(&self) -> Option<u32> {
        let (_, numbers) = self.0.name.to_str()?.rsplit_once(PARTIAL)?;
        numbers.split_once('-')?.0.parse().ok()
    }

    /// Locks and opens the file if its writer is gone. `None` while the writer lives, or without support for locks.
    ///
    /// # Errors
    /// The system's.
    pub fn take_over(&self) -> io::Result<Option<File>> {
        let file = self.0.open()?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The name may stand for another file by now.
            Ok(()) => Ok(is_at(&file, &self.0).then_some(file)),
            Err(_) => Ok(None),
        }
    }

    /// Puts the taken-over file at `destination`, unchanged: readers get everything that its writer had flushed.
    ///
    /// # Errors
    /// [`WriteError::File`]; both files are unchanged then.
    pub fn adopt(&self, taken: &File, destination: &Place) -> Result<(), WriteError> {
        taken
            .sync_all()
            .map_err(failed("sync the record", &self.0.path()))?;
        rename(&self.0, destination)?;
        rustix::fs::fsync(destination.directory.as_fd())
            .map_err(|why| failed("sync the directory", &destination.folder)(why.into()))
    }
}

/// A locked, unfinished file under a hidden name. It is deleted on drop.
#[derive(Debug)]
pub(super) struct Growing {
    place: Place,
    kept: bool,
}

impl Growing {
    /// A new file for `destination`, with its guard.
    pub(super) fn create(destination: &Place) -> Result<(File, Self), WriteError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mut refused = Errno::EXIST;
        for _ in 0..TRIES {
            let mut name = partial_prefix(&destination.name);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            name.push(format!("{}-{number}", std::process::id()));
            let place = destination.named(name);
            let opened = rustix::fs::openat(
                place.directory.as_fd(),
                &place.name,
                flags | OFlags::CLOEXEC,
                Mode::RUSR | Mode::WUSR,
            );
            match opened {
                Ok(file) => {
                    let file = File::from(file);
                    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                        // Another process mistook it for abandoned before it was locked.
                        Err(Errno::WOULDBLOCK) => continue,
                        Ok(()) if !is_at(&file, &place) => continue,
                        // Without support for locks, no file is taken over.
                        Ok(()) | Err(_) => return Ok((file, Self { place, kept: false })),
                    }
                }
                // The name of another process with this number, perhaps long gone.
                Err(Errno::EXIST) => {}
                Err(why) => {
                    refused = why;
                    break;
                }
            }
        }
        Err(failed("create a record in", destination.folder())(
            refused.into(),
        ))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.path()
    }

    /// Replaces `destination`.
    pub(super) fn take_place(mut self, destination: &Place) -> Result<(), WriteError> {
        rename(&self.place, destination)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.place.remove();
        }
    }
}

/// Opens a folder.
pub(super) fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

fn rename(from: &Place, to: &Place) -> Result<(), WriteError> {
    rustix::fs::renameat(
        from.directory.as_fd(),
        &from.name,
        to.directory.as_fd(),
        &to.name,
    )
    .map_err(|why| failed("replace the record", &to.path())(why.into()))
}

/// True if an open file is the one at a place.
fn is_at(file: &File, place: &Place) -> bool {
    let Ok(open) = rustix::fs::fstat(file) else {
        return false;
    };
    place
        .stat()
        .is_ok_and(|there| (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino))
}

fn regular(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(not_regular()),
    }
}

pub(super) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn partial_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(PARTIAL);
    prefix
}

pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::File {
        action,
        path,
        source,
    }
}
