//! The names of files in Python programs, and their numbers in the session.
//!
//! A program names a file by `str`, `bytes`, `os.PathLike`, an object with `fileno()`, or a descriptor. The session
//! has one [`FileId`] for each device and inode. [`Files`] stores the number for each name, and the way in which the
//! file is read ([`Means`]).
//!
//! Invariants: the maps are locked only while no Python code can run. The file of a descriptor is found out each time,
//! because its number may belong to another file by now. Descriptors of the program are never duplicated, because
//! closing the duplicate would drop the program's POSIX locks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{ptr, slice};

use foreread_client::{Advice, Client, Extent, FileId};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use rustix::fs::{fadvise, fstat};
use rustix::io::{Errno, pread};

use crate::error;

/// Limit of stored objects, after which all are forgotten: a generator may make a new string for each entry.
const REMEMBERED: usize = 4096;

/// Longest read, in bytes, for which memory is allocated without asking for the file's size.
const SMALL: u64 = 1 << 20;

/// A program's name for a file.
enum Name {
    Path(PathBuf),
    Descriptor(RawFd),
}

/// The way in which a file is read.
enum Means {
    /// By a descriptor that this module has opened.
    Own(Arc<File>),
    /// By the program's file object, which is asked for its descriptor each time.
    Object(Py<PyAny>),
    /// By the program's descriptor, while it refers to the file with this device and inode.
    Descriptor(RawFd, (u64, u64)),
}

/// A file that was named.
struct NamedFile {
    /// Its first name.
    name: Py<PyAny>,
    /// Its first path, made absolute, because the program may change its directory.
    path: Option<PathBuf>,
    /// `None` before the file is read for the first time.
    means: Option<Means>,
}

#[derive(Default)]
struct Maps {
    /// By the address of the naming object, which is kept alive.
    objects: HashMap<usize, (Py<PyAny>, FileId)>,
    /// Files named by descriptors, by device and inode.
    opened: HashMap<(u64, u64), FileId>,
    known: HashMap<FileId, NamedFile>,
}

/// The files of one session.
#[derive(Default)]
pub struct Files(Mutex<Maps>);

impl Files {
    /// The number of the file with this name, which is registered if it is new. `whose` is the beginning of errors' texts.
    pub fn id(
        &self,
        name: &Bound<'_, PyAny>,
        client: &Client,
        whose: &dyn Display,
    ) -> PyResult<FileId> {
        if let Some((_, id)) = self.maps().objects.get(&(name.as_ptr() as usize)) {
            return Ok(*id);
        }
        let (added, path) = match classify(name, whose)? {
            Name::Path(path) => (client.add_path(&path), Some(path)),
            Name::Descriptor(fd) => {
                let fd = borrow(name, fd)?;
                let stat =
                    fstat(fd).map_err(|errno| error::os(name.py(), name.clone(), &errno.into()))?;
                let file = (stat.st_dev, stat.st_ino);
                let opened = self.maps().opened.get(&file).copied();
                let added = opened.map_or_else(|| client.add_fd(fd), Ok);
                if let Ok(id) = added {
                    self.maps().opened.insert(file, id);
                }
                (added, None)
            }
        };
        let refused = |error| error::client(name.py(), Some(name), error);
        let id = added.map_err(refused)?;
        let new = !self.maps().known.contains_key(&id);
        if new {
            client.region(id, 0..u64::MAX).map_err(refused)?;
        }
        self.remember(name, id, path);
        Ok(id)
    }

    fn remember(&self, name: &Bound<'_, PyAny>, id: FileId, path: Option<PathBuf>) {
        let mut maps = self.maps();
        let known = maps.known.entry(id).or_insert_with(|| NamedFile {
            name: name.clone().unbind(),
            path: None,
            means: None,
        });
        let mut means = None;
        if let (None, Some(path)) = (&known.path, path) {
            // From now on the file is read by a descriptor of this module, so the program may close its own.
            known.path = Some(std::path::absolute(&path).unwrap_or(path));
            means = known.means.take();
        }
        if name.is_instance_of::<PyInt>() {
            return;
        }
        let forgotten = if maps.objects.len() < REMEMBERED {
            HashMap::new()
        } else {
            mem::take(&mut maps.objects)
        };
        maps.objects
            .insert(name.as_ptr() as usize, (name.clone().unbind(), id));
        drop(maps);
        // Dropping an object may run Python code: not under the lock.
        drop((forgotten, means));
    }

    /// The first name of a file; Python's `None` if it has none.
    pub fn name<'py>(&self, py: Python<'py>, id: FileId) -> Bound<'py, PyAny> {
        let maps = self.maps();
        let name = maps.known.get(&id).map(|known| known.name.clone_ref(py));
        name.unwrap_or_else(|| py.None()).into_bound(py)
    }

    /// Reads a file by this name of it.
    pub fn read_named<'py>(
        &self,
        name: &Bound<'py, PyAny>,
        id: FileId,
        advice: impl FnOnce() -> Advice,
        extent: Extent,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if is_path(name)? {
            self.read(name.py(), id, advice, extent)
        } else {
            read_plainly(name, extent)
        }
    }

    /// Reads a file that was named before. If the file must be opened first, `advice` is called for the kernel's read-ahead.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        id: FileId,
        advice: impl FnOnce() -> Advice,
        extent: Extent,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (name, means) = match self.maps().known.get(&id) {
            Some(known) => (
                known.name.clone_ref(py),
                match &known.means {
                    Some(means) => Ok(means.clone_ref(py)),
                    None => Err(known.path.clone()),
                },
            ),
            None => (py.None(), Err(None)),
        };
        let name = name.into_bound(py);
        let means = match means {
            Ok(means) => means,
            Err(path) => {
                let means = Means::of(&name, path, advice())?;
                if let Some(known) = self.maps().known.get_mut(&id) {
                    known.means = Some(means.clone_ref(py));
                }
                means
            }
        };
        means.read(&name, extent)
    }

    /// Shows the names to Python's garbage collector, unless they are locked.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(maps) = self.0.try_lock() else {
            return Ok(());
        };
        for (object, _) in maps.objects.values() {
            visit.call(object)?;
        }
        for known in maps.known.values() {
            visit.call(&known.name)?;
            if let Some(Means::Object(object)) = &known.means {
                visit.call(object)?;
            }
        }
        Ok(())
    }

    /// Forgets all names.
    pub fn clear(&self) {
        let forgotten = mem::take(&mut *self.maps());
        // Dropping an object may run Python code: not under the lock.
        drop(forgotten);
    }

    fn maps(&self) -> MutexGuard<'_, Maps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a file by its name, without a session.
pub fn read_plainly<'py>(
    name: &Bound<'py, PyAny>,
    extent: Extent,
) -> PyResult<Bound<'py, PyBytes>> {
    Means::of(name, None, Advice::Normal)?.read(name, extent)
}

impl Means {
    /// The way to read a file: by `path` if it is given, else by `name`. `advice` is for a descriptor that this module opens.
    fn of(name: &Bound<'_, PyAny>, path: Option<PathBuf>, advice: Advice) -> PyResult<Self> {
        let failed = |failure| error::os(name.py(), name.clone(), &failure);
        let named = match path {
            Some(path) => Name::Path(path),
            None => classify(name, &"a read")?,
        };
        match named {
            Name::Path(path) => {
                let file = File::open(path).map_err(failed)?;
                let kernels = match advice {
                    Advice::Normal | Advice::Dropped => None,
                    Advice::Random => Some(rustix::fs::Advice::Random),
                    Advice::Sequential => Some(rustix::fs::Advice::Sequential),
                };
                if let Some(advice) = kernels {
                    // If the file system refuses the advice, it reads ahead as usual.
                    let _ = fadvise(&file, 0, None, advice);
                }
                Ok(Self::Own(Arc::new(file)))
            }
            Name::Descriptor(fd) if name.is_instance_of::<PyInt>() => {
                let stat = fstat(borrow(name, fd)?).map_err(|errno| failed(errno.into()))?;
                Ok(Self::Descriptor(fd, (stat.st_dev, stat.st_ino)))
            }
            Name::Descriptor(_) => Ok(Self::Object(name.clone().unbind())),
        }
    }

    fn read<'py>(&self, name: &Bound<'py, PyAny>, extent: Extent) -> PyResult<Bound<'py, PyBytes>> {
        let failed = |failure: io::Error| error::os(name.py(), name.clone(), &failure);
        match self {
            Self::Own(file) => bytes(name, file.as_fd(), extent),
            Self::Object(object) => {
                let fd = object.bind(name.py()).call_method0("fileno")?.extract()?;
                bytes(name, borrow(name, fd)?, extent)
            }
            Self::Descriptor(fd, file) => {
                let fd = borrow(name, *fd)?;
                let stat = fstat(fd).map_err(|errno| failed(errno.into()))?;
                if (stat.st_dev, stat.st_ino) != *file {
                    return Err(failed(Errno::BADF.into()));
                }
                bytes(name, fd, extent)
            }
        }
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Own(file) => Self::Own(Arc::clone(file)),
            Self::Object(object) => Self::Object(object.clone_ref(py)),
            Self::Descriptor(fd, file) => Self::Descriptor(*fd, *file),
        }
    }
}

/// Reads the bytes of `extent`, fewer only at the end of the file. Other threads may run Python meanwhile.
fn bytes<'py>(
    name: &Bound<'py, PyAny>,
    fd: BorrowedFd<'_>,
    extent: Extent,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = name.py();
    let failed = |errno: Errno| error::os(py, name.clone(), &errno.into());
    let mut len = extent.len;
    if len > SMALL {
        // A great `length` may stand for the rest of the file: memory is allocated only up to the end.
        let size = fstat(fd).map_err(failed)?.st_size as u64;
        len = len.min(size.saturating_sub(extent.offset));
    }
    let len = len as usize;
    // `PyBytes::new_with` writes zeros first, which takes half of the time of a large read.
    // SAFETY: a null source asks for uninitialised memory. The result is a new reference, or null and an exception.
    let whole = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(ptr::null(), len as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: `whole` is a bytes object.
    let start = unsafe { ffi::PyBytes_AsString(whole.as_ptr()) }.cast::<u8>();
    // SAFETY: the object has `len` bytes, lives as long as `whole`, and is not shared yet. `MaybeUninit` permits any
    // content.
    let mut rest = unsafe { slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len) };
    let mut filled = 0;
    while !rest.is_empty() {
        match py.detach(|| {
            pread(fd, &mut *rest, extent.offset + filled as u64).map(|(read, _)| read.len())
        }) {
            Ok(0) => {
                // SAFETY: `pread` has written these bytes.
                let read = unsafe { slice::from_raw_parts(start, filled) };
                return Ok(PyBytes::new(py, read));
            }
            Ok(count) => {
                filled += count;
                rest = &mut rest[count..];
            }
            Err(Errno::INTR) => py.check_signals()?,
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(whole)
}

fn is_path(name: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(name.is_instance_of::<PyString>()
        || name.is_instance_of::<PyBytes>()
        || name.hasattr("__fspath__")?)
}

fn classify(name: &Bound<'_, PyAny>, whose: &dyn Display) -> PyResult<Name> {
    if let Ok(bytes) = name.cast::<PyBytes>() {
        return Ok(Name::Path(
            OsString::from_vec(bytes.as_bytes().to_vec()).into(),
        ));
    }
    if is_path(name)? {
        return match name.extract::<PathBuf>() {
            Ok(path) => Ok(Name::Path(path)),
            // An object whose `__fspath__` returns bytes.
            Err(_) => classify(&name.call_method0("__fspath__")?, whose),
        };
    }
    if name.is_instance_of::<PyInt>() && !name.is_instance_of::<PyBool>() {
        return Ok(Name::Descriptor(name.extract().unwrap_or(-1)));
    }
    if name.hasattr("fileno")? {
        return Ok(Name::Descriptor(name.call_method0("fileno")?.extract()?));
    }
    Err(PyTypeError::new_err(format!(
        "{whose}: file is {}, not a path, an open file or a descriptor",
        name.repr()?
    )))
}

/// A descriptor of the program, for one system call.
fn borrow<'fd>(name: &Bound<'_, PyAny>, fd: RawFd) -> PyResult<BorrowedFd<'fd>> {
    if fd < 0 {
        let failure = io::Error::from(Errno::BADF);
        return Err(error::os(name.py(), name.clone(), &failure));
    }
    // SAFETY: not -1. The program may have closed the descriptor. Then the calls that use it (fstat, pread, a read in
    // /proc) fail with EBADF, or use another file of the program, as `os.pread` would. None of them closes or keeps it.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
