//! The files of a client, by identity and by number.
//!
//! A file is found ([`Candidate`]), opened by the threads, and entered ([`Files::enter`]): a file system that does not answer delays only
//! threads that register a file, and none that only reads one.
//!
//! Invariant: a file (device and inode) has one number, for all names and descriptors and any number of registrations, and another for
//! reads past the page cache. No number is reused.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use foreread_plan::FileId;
use foreread_sys::file::FileFacts;
use rustix::fs::OFlags;

use crate::Error;
use crate::lock::lock;
use crate::threads::{Addition, Registered, Threads};

/// Files kept open at a time; more are opened by name when they are fetched from. Well below the
/// 1024 descriptors a process usually may have, of which the hint threads use some hundreds.
const KEPT: usize = 256;

/// Device and inode.
type Identity = (u64, u64);

/// The way in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// Through the page cache.
    Cached,
    /// Past it (`O_DIRECT`): the threads do not know of such a file, for fetching it would be for nothing.
    Direct,
}

#[derive(Debug)]
struct File {
    identity: Identity,
    way: Way,
    path: PathBuf,
    kept: bool,
    /// Times it was added and not removed.
    uses: u64,
    /// The kernel's read-ahead for it, in bytes; `None` of a file that is read past the page cache.
    read_ahead: Option<u64>,
}

/// A file that is to be registered.
#[derive(Debug)]
pub(crate) struct Candidate {
    identity: Identity,
    way: Way,
    /// The name it can be opened by now.
    now: PathBuf,
    /// Its name for good.
    path: PathBuf,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<(Identity, Way), FileId>,
    known: HashMap<FileId, File>,
    next: u32,
    kept: usize,
    /// Files kept open at a time.
    most_kept: usize,
}

impl Candidate {
    /// The file with this name.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let refused = |why| Error::File {
            path: path.to_owned(),
            why,
        };
        // The working directory may change before the file is opened again.
        let name = path.canonicalize().map_err(refused)?;
        let facts = rustix::fs::stat(&name).map_err(|error| refused(error.into()))?;
        Ok(Self {
            identity: (facts.st_dev, facts.st_ino),
            way: Way::Cached,
            now: name.clone(),
            path: name,
        })
    }

    /// An open file of the calling thread.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> Result<Self, Error> {
        let number = fd.as_raw_fd();
        let refused = |why| Error::File {
            path: format!("descriptor {number}").into(),
            why,
        };
        let facts = FileFacts::of(fd).map_err(refused)?;
        let flags = rustix::fs::fcntl_getfl(fd).map_err(|error| refused(error.into()))?;
        let way = if flags.contains(OFlags::DIRECT) {
            Way::Direct
        } else {
            Way::Cached
        };
        // Not /proc/self: the main thread may have ended, or have another table.
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let now = PathBuf::from(format!("/proc/self/task/{thread}/fd/{number}"));
        let path = std::fs::read_link(&now).map_err(refused)?;
        Ok(Self {
            identity: (facts.dev, facts.ino),
            way,
            now,
            path,
        })
    }

    /// Makes the threads open the file, if they need to know it.
    fn open_apart(&self, file: FileId, keep: bool, threads: &Threads) -> Result<Registered, Error> {
        if self.way == Way::Direct {
            return Ok(Registered { read_ahead: None });
        }
        let addition = Addition {
            file,
            now: self.now.clone(),
            path: self.path.clone(),
            dev: self.identity.0,
            keep,
        };
        threads.add(addition).map_err(|why| Error::File {
            path: self.path.clone(),
            why,
        })
    }
}

/// Registers a file and returns its number. One call at a time: the caller holds the lock of the threads.
pub(crate) fn register(
    files: &Mutex<Files>,
    found: Candidate,
    threads: &Threads,
) -> Result<FileId, Error> {
    let (file, kept) = match lock(files).place_for(&found) {
        Registration::Known(file) => return Ok(file),
        Registration::New { file, kept } => (file, kept),
    };
    // Without the lock: opening may take any time.
    let facts = found.open_apart(file, kept, threads)?;
    lock(files).enter(file, found, kept, facts);
    Ok(file)
}

/// The registration of a file.
enum Registration {
    /// It was registered before, and is once more now.
    Known(FileId),
    /// It gets this number; `kept` if it stays open.
    New { file: FileId, kept: bool },
}

impl Files {
    /// No files yet; with `keep_open` the first files stay open, otherwise each is open only while it is fetched from.
    pub(crate) fn new(keep_open: bool) -> Self {
        Self {
            most_kept: if keep_open { KEPT } else { 0 },
            ..Self::default()
        }
    }

    fn place_for(&mut self, found: &Candidate) -> Registration {
        let Some(&file) = self.numbers.get(&(found.identity, found.way)) else {
            return Registration::New {
                file: FileId(self.next),
                kept: found.way == Way::Cached && self.kept < self.most_kept,
            };
        };
        if let Some(known) = self.known.get_mut(&file) {
            known.uses += 1;
        }
        Registration::Known(file)
    }

    fn enter(&mut self, file: FileId, found: Candidate, kept: bool, facts: Registered) {
        let Candidate {
            identity,
            way,
            path,
            ..
        } = found;
        self.next += 1;
        self.kept += usize::from(kept);
        self.numbers.insert((identity, way), file);
        self.known.insert(
            file,
            File {
                identity,
                way,
                path,
                kept,
                uses: 1,
                read_ahead: facts.read_ahead,
            },
        );
    }

    /// Reverses one registration. True if it was the last; `None` if there is no such file.
    pub(crate) fn remove(&mut self, file: FileId, threads: &Threads) -> Option<bool> {
        let known = self.known.get_mut(&file)?;
        known.uses -= 1;
        if known.uses > 0 {
            return Some(false);
        }
        let known = self.known.remove(&file)?;
        self.numbers.remove(&(known.identity, known.way));
        self.kept -= usize::from(known.kept);
        if known.way == Way::Cached {
            threads.remove(file);
        }
        Some(true)
    }

    pub(crate) fn identity(&self, file: FileId) -> Option<Identity> {
        Some(self.known.get(&file)?.identity)
    }

    /// The kernel's read-ahead for a file, in bytes.
    pub(crate) fn read_ahead(&self, file: FileId) -> Option<u64> {
        self.known.get(&file)?.read_ahead
    }

    pub(crate) fn has(&self, file: FileId) -> bool {
        self.known.contains_key(&file)
    }

    /// A file's name in a report: on one line, for any path.
    pub(crate) fn name(&self, file: FileId) -> String {
        match self.known.get(&file) {
            Some(known) => escaped(&known.path),
            None => format!("file number {}", file.0),
        }
    }
}

/// A path without anything that a terminal or a reader of lines would interpret: control characters, marks of direction and invalid bytes
/// are escaped.
pub(crate) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' || character.is_control() || is_invisible(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// True if a character changes the display of its neighbours: marks of direction, ends of lines and paragraphs.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_hostile_name_is_one_line_of_plain_text() {
        let name = |bytes: &[u8]| escaped(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name("/d\u{e4}ta/a b.db".as_bytes()), "/d\u{e4}ta/a b.db");
        let hostile = b"/a\nroot::0:0\r\t\x1b[2J";
        assert_eq!(name(hostile), r"/a\nroot::0:0\r\t\u{1b}[2J");
        assert_eq!(name(b"/\xff\\"), r"/\xff\\");
        let turned = "/a\u{202e}b\u{85}";
        assert_eq!(name(turned.as_bytes()), r"/a\u{202e}b\u{85}");
    }
}
