//! The file of a record, opened once, for several readers.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{self, TRAILER_LEN};
use super::{ReadError, Reader};

/// The file of a record that was opened.
#[derive(Clone, Debug)]
pub struct Handle {
    file: Arc<File>,
    path: PathBuf,
}

impl Handle {
    /// The file, to be asked and told about, not to be read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens the record once more.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open(&self) -> Result<Reader, ReadError> {
        let file = Arc::clone(&self.file);
        Reader::new(BufReader::new(Shared::new(file)), &self.path)
    }
}

/// How many bytes of a complete record's file hold what opening it takes in: its definitions and its summary. `None` of any
/// other file.
pub fn definitions_len(file: &File) -> Option<u64> {
    let trailer_at = file
        .metadata()
        .ok()?
        .len()
        .checked_sub(TRAILER_LEN as u64)?;
    let mut trailer = [0; TRAILER_LEN];
    file.read_exact_at(&mut trailer, trailer_at).ok()?;
    trailer_at.checked_sub(frame::decode_trailer(&trailer)?)
}

/// An open file, with a position that is this reader's alone.
#[derive(Debug)]
pub struct Shared {
    file: Arc<File>,
    at: u64,
}

impl Shared {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self { file, at: 0 }
    }

    pub(super) fn handle(&self, path: &Path) -> Handle {
        Handle {
            file: Arc::clone(&self.file),
            path: path.to_owned(),
        }
    }
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (self.file.metadata()?.len(), by),
        };
        let at = from.checked_add_signed(by);
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
