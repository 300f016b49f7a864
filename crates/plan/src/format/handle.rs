//! The file of a record, opened once, for several readers.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ReadError, Reader};

/// The file of a record that was opened.
#[derive(Clone, Debug)]
pub struct Handle {
    file: Arc<File>,
    path: PathBuf,
}

impl Handle {
    /// The file, for queries and advice; nothing is read through it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens the record once more.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open(&self) -> Result<Reader, ReadError> {
        self.open_within(u64::MAX)
    }

    /// As [`Handle::open`], its definitions taking at most `memory` bytes.
    ///
    /// # Errors
    /// As [`Reader::within`].
    pub fn open_within(&self, memory: u64) -> Result<Reader, ReadError> {
        Reader::of_view(self.view(), &self.path, memory)
    }

    /// The record's path, as errors name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a record that is open already; errors name it `path`.
    pub fn new(file: File, path: &Path) -> Self {
        Self {
            file: Arc::new(file),
            path: path.to_owned(),
        }
    }

    pub(super) fn view(&self) -> FileView {
        FileView::new(Arc::clone(&self.file))
    }
}

/// An open file, with a position that is this reader's alone.
#[derive(Debug)]
pub struct FileView {
    file: Arc<File>,
    at: u64,
}

impl FileView {
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

impl Read for FileView {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for FileView {
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
