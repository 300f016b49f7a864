//! Files as Python programs name them, and as the session numbers them.
//!
//! A program says `str`, `bytes`, `os.PathLike`, an object with `fileno()`, or a descriptor; the
//! session says [`FileId`], one for each device and inode. [`Files`] remembers the way from one to the
//! other, and how a file is read ([`Means`]).
//!
//! Invariants: the maps are locked only while no Python code can run; a descriptor number is looked
//! up anew each time, because it may have been given to another file; descriptors of the program are
//! never duplicated, since closing the copy would drop its POSIX locks.

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

/// Objects remembered before the memory of them starts anew: a generator may make a new string
/// for every entry.
const REMEMBERED: usize = 4096;

/// Longest read, in bytes, whose memory is taken without a look at the file's size.
const SMALL: u64 = 1 << 20;

/// What a program names a file by.
enum Name {
    Path(PathBuf),
    Descriptor(RawFd),
}

/// How a file is read.
enum Means {
    /// By an opening of this module.
    Own(Arc<File>),
    /// By the program's file object, asked for its descriptor each time.
    Object(Py<PyAny>),
    /// By the program's descriptor, as long as it is the file with this device and inode.
    Descriptor(RawFd, (u64, u64)),
}

/// A file once named.
struct NamedFile {
    /// The first name it was given.
    name: Py<PyAny>,
    /// The first path it was named by, absolute: the program may change its directory.
    path: Option<PathBuf>,
    /// Made when the file is read for the first time.
    means: Option<Means>,
}

#[derive(Default)]
struct Maps {
    /// By the address of the object that names it, which is kept alive.
    objects: HashMap<usize, (Py<PyAny>, FileId)>,
    /// By device and inode, those named by descriptors.
    opened: HashMap<(u64, u64), FileId>,
    known: HashMap<FileId, NamedFile>,
}

/// The files of one session.
#[derive(Default)]
pub struct Files(Mutex<Maps>);

impl Files {
    /// The number of the file that `name` names; `whose` begins the text of errors.
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
            // From now on an opening of this module serves, whatever the program closes.
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

    /// The first name a file was given; `None` in Python for a file that was given none.
    pub fn name<'py>(&self, py: Python<'py>, id: FileId) -> Bound<'py, PyAny> {
        let maps = self.maps();
        let name = maps.known.get(&id).map(|known| known.name.clone_ref(py));
        name.unwrap_or_else(|| py.None()).into_bound(py)
    }

    /// Read a file by the name it was given just now.
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

    /// Read a file that was named before. `advice` tells how the kernel is to read ahead; asked where the file has to be
    /// opened.
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

    /// Show Python's garbage collector the names, unless they are in use at the moment.
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

    /// Forget all names.
    pub fn clear(&self) {
        let forgotten = mem::take(&mut *self.maps());
        // Dropping an object may run Python code: not under the lock.
        drop(forgotten);
    }

    fn maps(&self) -> MutexGuard<'_, Maps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Read a file by its name alone, whether a session knows it or not.
pub fn read_plainly<'py>(
    name: &Bound<'py, PyAny>,
    extent: Extent,
) -> PyResult<Bound<'py, PyBytes>> {
    Means::of(name, None, Advice::Normal)?.read(name, extent)
}

impl Means {
    /// How to read what `name` names. `path` instead of the name, if it is known; `advice` is for an opening of this module.
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
                    // Only advice: a file system that refuses it reads ahead as always.
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

/// The bytes of `extent`, fewer only at the end of the file. Other threads may run Python meanwhile.
fn bytes<'py>(
    name: &Bound<'py, PyAny>,
    fd: BorrowedFd<'_>,
    extent: Extent,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = name.py();
    let failed = |errno: Errno| error::os(py, name.clone(), &errno.into());
    let mut len = extent.len;
    if len > SMALL {
        // `length` may stand for "the rest": no memory for what is not there.
        let size = fstat(fd).map_err(failed)?.st_size as u64;
        len = len.min(size.saturating_sub(extent.offset));
    }
    let len = len as usize;
    // Not `PyBytes::new_with`, which writes zeros first: half the time of a large read.
    // SAFETY: no source asks for memory without contents; a new reference comes back, or null and an exception.
    let whole = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(ptr::null(), len as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: `whole` is a bytes object.
    let start = unsafe { ffi::PyBytes_AsString(whole.as_ptr()) }.cast::<u8>();
    // SAFETY: the object holds `len` bytes, lives as long as `whole`, and nobody else knows it yet;
    // `MaybeUninit` asks nothing of what is in there.
    let mut rest = unsafe { slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len) };
    let mut filled = 0;
    while !rest.is_empty() {
        match py.detach(|| {
            pread(fd, &mut *rest, extent.offset + filled as u64).map(|(read, _)| read.len())
        }) {
            Ok(0) => {
                // SAFETY: `pread` has written these.
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
            // An object whose path is bytes.
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

/// A descriptor of the program's for the time of one system call.
fn borrow<'fd>(name: &Bound<'_, PyAny>, fd: RawFd) -> PyResult<BorrowedFd<'fd>> {
    if fd < 0 {
        let failure = io::Error::from(Errno::BADF);
        return Err(error::os(name.py(), name.clone(), &failure));
    }
    // SAFETY: not -1. The number comes from the program, which may have closed it: the calls it is
    // given to (fstat, pread, a look into /proc) then fail with EBADF or are of another file of the
    // program's own, as `os.pread` would be; none of them closes it or keeps it.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
