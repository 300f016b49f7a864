//! Where a record is: a name in an open folder.
//!
//! Invariant: what is opened, replaced or deleted is in the folder that was opened, whatever is put in the place of a folder
//! on the path meanwhile; a symbolic link under the name is not followed, and nothing but a regular file is opened.
//!
//! A record grows under a hidden name, `.NAME.partial-PID-NUMBER`, locked (flock(2)) as long as its writer lives: the lock,
//! not the process number, which stands for another process in another PID namespace, says whether it is abandoned.

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
/// What follows a record's name in that of a file that grows to be it.
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
    /// The system's; [`io::ErrorKind::InvalidInput`] where anything else is there.
    pub fn open(&self) -> io::Result<File> {
        // Not waited for, where it is a pipe.
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

    /// What is at the place, links not followed.
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

    /// Whether there is anything at the place.
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

    /// Puts a file of this content here at once, in the place of what was here.
    ///
    /// # Errors
    /// [`WriteError::File`]; what was here is then as it was.
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
    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.0
    }

    /// The process that began it, by its number, as its name has it.
    pub fn writer(&self) -> Option<u32> {
        let (_, numbers) = self.0.name.to_str()?.rsplit_once(PARTIAL)?;
        numbers.split_once('-')?.0.parse().ok()
    }

    /// Takes it over from a writer that is gone: locks it, and opens it. `None` while its writer lives, and where no locks
    /// are to be had.
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

    /// Lets one that was taken over take the place of `destination`, as it is: readers get all that its writer had flushed.
    ///
    /// # Errors
    /// [`WriteError::File`]; both files are then as they were.
    pub fn adopt(&self, taken: &File, destination: &Place) -> Result<(), WriteError> {
        taken
            .sync_all()
            .map_err(failed("sync the record", &self.0.path()))?;
        rename(&self.0, destination)?;
        rustix::fs::fsync(destination.directory.as_fd())
            .map_err(|why| failed("sync the directory", &destination.folder)(why.into()))
    }
}

/// A file that grows under a hidden name, locked. Dropped, it is deleted.
#[derive(Debug)]
pub(super) struct Growing {
    place: Place,
    kept: bool,
}

impl Growing {
    /// A new file for `destination`, and what becomes of it.
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
                        // Somebody has taken it for abandoned before it was locked.
                        Err(Errno::WOULDBLOCK) => continue,
                        Ok(()) if !is_at(&file, &place) => continue,
                        // Where there are no locks, nobody takes anything over.
                        Ok(()) | Err(_) => return Ok((file, Self { place, kept: false })),
                    }
                }
                // Of another process with this number, perhaps long gone.
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

    /// Takes the place of `destination`.
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

/// Whether an open file is what is at a place.
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
