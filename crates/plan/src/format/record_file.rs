//! A record file that appears whole, or not at all.
//!
//! The record grows in a hidden file beside its destination, `.NAME.partial-PID-…`, and
//! takes the destination's place by one rename once it is complete. It is not synced: what a power failure
//! leaves is known by its checksums. If the writer is killed, the hidden file remains: [`partials`] finds it, a
//! [`super::Reader`] reads what it holds, and [`adopt`] lets it take the destination's place.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::frame::FrameWriter;
use super::writer::put_ending;
use super::{Reader, WriteError, Writer};
use crate::{Access, FileId, FileMeta, Meta, Sequence, Summary, ThreadId, ThreadMeta};

/// Flushing a block for less than this much room would leave crumbs.
const CRUMB: u64 = 4096;

/// A record being written to a file that does not replace its destination until committed.
///
/// Dropped without [`RecordFile::commit`], it leaves nothing behind.
pub struct RecordFile {
    writer: Writer<BufWriter<File>>,
    partial: TempPath,
    destination: PathBuf,
    limit: u64,
    full: bool,
    lost: u64,
}

impl RecordFile {
    /// Begins a record that will be at `destination` and take about `limit` bytes at most.
    ///
    /// # Errors
    /// [`WriteError::File`] if no file can be created beside `destination`, otherwise as
    /// [`Writer::new`].
    pub fn create(destination: &Path, meta: &Meta, limit: u64) -> Result<Self, WriteError> {
        let (file, partial) = create_beside(destination)?;
        Ok(Self {
            writer: named(destination, Writer::new(BufWriter::new(file), meta))?,
            partial,
            destination: destination.to_owned(),
            limit,
            full: false,
            lost: 0,
        })
    }

    /// Defines a file: [`Writer::file`]. Once the record is full, new files are left out.
    ///
    /// # Errors
    /// As [`Writer::file`].
    pub fn file(&mut self, id: FileId, meta: FileMeta) -> Result<(), WriteError> {
        if self.has_room()? || self.writer.knows_file(id) {
            named(&self.destination, self.writer.file(id, meta))?;
        }
        Ok(())
    }

    /// Defines a thread: [`Writer::thread`]. Once the record is full, threads are left out.
    ///
    /// # Errors
    /// As [`Writer::thread`].
    pub fn thread(&mut self, id: ThreadId, meta: ThreadMeta) -> Result<(), WriteError> {
        if self.has_room()? {
            named(&self.destination, self.writer.thread(id, meta))?;
        }
        Ok(())
    }

    /// Appends an access: [`Writer::access`]. Once the record is full, it is counted as lost.
    ///
    /// # Errors
    /// As [`Writer::access`].
    pub fn access(&mut self, access: &Access) -> Result<(), WriteError> {
        self.sequence(Sequence::from(*access))
    }

    /// Appends each access of a sequence, or counts them as lost.
    ///
    /// # Errors
    /// As [`Writer::access`].
    pub fn sequence(&mut self, sequence: Sequence) -> Result<(), WriteError> {
        if self.has_room()? {
            named(&self.destination, self.writer.sequence(sequence))?;
        } else {
            self.lost += sequence.count();
        }
        Ok(())
    }

    /// Puts out everything gathered so far: [`Writer::flush`].
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        named(&self.destination, self.writer.flush())
    }

    /// Bytes written so far: [`Writer::bytes_written`].
    pub fn bytes_written(&self) -> u64 {
        self.writer.bytes_written()
    }

    /// Whether the size limit has been reached, so that accesses are no longer kept.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Accesses left out because of the size limit.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Where the record is until it is committed.
    pub fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Ends the record, as [`Writer::finish`] does, and lets it take the destination's place.
    ///
    /// The accesses left out are added to the summary's `lost`. When this returns, the
    /// record is under its name, and survives the death of any process.
    ///
    /// # Errors
    /// As [`Writer::access`], or [`WriteError::File`]; the destination is then as it was.
    pub fn commit(self, mut summary: Summary) -> Result<(), WriteError> {
        summary.lost += self.lost;
        let out = named(&self.destination, self.writer.finish(summary))?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error);
        named(&self.destination, file.map_err(Into::into))?;
        // Not synced: on a busy disk that takes seconds, which whoever runs the program would wait
        // for. A record that a power failure spoils is known by its checksums, and recorded again.
        self.partial
            .persist(&self.destination)
            .map_err(|error| failed("replace the record", &self.destination)(error.error))?;
        Ok(())
    }

    /// Whether more fits within the limit. Once it does not, the record is full for good.
    fn has_room(&mut self) -> Result<bool, WriteError> {
        let may_be_full = !self.full && self.writer.size_most() >= self.limit;
        if may_be_full && self.writer.size_bound() >= self.limit {
            // The bound counts what is gathered uncompressed: see what it really takes.
            self.flush()?;
            self.full = self.writer.size_bound() + CRUMB >= self.limit;
        }
        Ok(!self.full)
    }
}

/// Defines files of a complete record anew, those for which `renewed` has new facts; its accesses and its summary stay.
/// A record without an end stays as it is.
///
/// # Errors
/// [`WriteError::Read`], or as [`RecordFile::commit`]; the record is then as it was.
pub fn redefine(
    record: &Path,
    mut renewed: impl FnMut(&FileMeta) -> Option<FileMeta>,
) -> Result<(), WriteError> {
    let Some((mut input, index, mut tables, summary)) = Reader::open(record)?.into_ending() else {
        return Ok(());
    };
    let files = tables.files.iter();
    let files: Vec<_> = files
        .filter_map(|(&id, meta)| Some((id, renewed(meta)?)))
        .collect();
    for (id, meta) in files {
        tables.define_file(id, meta)?;
    }
    let (file, partial) = create_beside(record)?;
    let mut out = BufWriter::new(file);
    let copied = input
        .rewind()
        .and_then(|()| io::copy(&mut input.take(index), &mut out));
    if copied.map_err(failed("copy the record", record))? < index {
        let shrunk = io::ErrorKind::UnexpectedEof.into();
        return Err(failed("copy the record", record)(shrunk));
    }
    let mut frames = FrameWriter::new()?;
    let ended = put_ending(&mut out, &mut frames, index, &tables, &summary);
    named(record, ended)?;
    partial
        .persist(record)
        .map_err(|error| failed("replace the record", record)(error.error))
}

/// A record whose writer never committed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Where it is.
    pub path: PathBuf,
    /// The writer's process id. If that process lives on, it may still be writing.
    pub pid: u32,
}

/// The uncommitted records of `destination`, in no particular order.
///
/// # Errors
/// [`WriteError::File`] if the directory cannot be listed.
pub fn partials(destination: &Path) -> Result<Vec<Partial>, WriteError> {
    let (directory, name) = split(destination)?;
    let prefix = partial_prefix(name);
    let mut found = Vec::new();
    let cannot_list = || failed("list", directory);
    for entry in directory.read_dir().map_err(cannot_list())? {
        let entry = entry.map_err(cannot_list())?;
        if let Some(pid) = partial_pid(&entry.file_name(), &prefix) {
            found.push(Partial {
                path: entry.path(),
                pid,
            });
        }
    }
    Ok(found)
}

/// Lets an uncommitted record take the place of `destination`, as it is.
///
/// It remains truncated: readers get all that its writer had flushed.
///
/// # Errors
/// [`WriteError::File`]; both files are then as they were.
pub fn adopt(partial: &Path, destination: &Path) -> Result<(), WriteError> {
    File::open(partial)
        .and_then(|file| file.sync_all())
        .map_err(failed("sync the record", partial))?;
    std::fs::rename(partial, destination).map_err(failed("replace the record", destination))?;
    sync_directory(destination)
}

/// Makes a rename in the directory of `path` outlive a power failure.
fn sync_directory(path: &Path) -> Result<(), WriteError> {
    let (directory, _) = split(path)?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed("sync the directory", directory))
}

/// The hidden file in which a record grows.
fn create_beside(destination: &Path) -> Result<(File, TempPath), WriteError> {
    let (directory, name) = split(destination)?;
    let mut prefix = partial_prefix(name);
    prefix.push(format!("{}-", std::process::id()));
    // The system's reason alone: the library adds a name nobody has chosen.
    let mut refused = None;
    let created = tempfile::Builder::new()
        .prefix(&prefix)
        .make_in(directory, |path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let opened = options.open(path);
            refused = opened.as_ref().err().and_then(io::Error::raw_os_error);
            opened
        })
        .map_err(|error| {
            let reason = refused.map_or(error, io::Error::from_raw_os_error);
            failed("create a record in", directory)(reason)
        })?;
    Ok(created.into_parts())
}

fn split(destination: &Path) -> Result<(&Path, &OsStr), WriteError> {
    let name = destination.file_name().ok_or_else(|| {
        failed("create a record named", destination)(io::ErrorKind::InvalidInput.into())
    })?;
    let directory = match destination.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok((directory, name))
}

fn partial_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".partial-");
    prefix
}

fn partial_pid(name: &OsStr, prefix: &OsStr) -> Option<u32> {
    let rest = name
        .as_encoded_bytes()
        .strip_prefix(prefix.as_encoded_bytes())?;
    let digits = rest.split(|&byte| byte == b'-').next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The system's refusal to write, with the record's name.
fn named<T>(destination: &Path, outcome: Result<T, WriteError>) -> Result<T, WriteError> {
    outcome.map_err(|error| match error {
        WriteError::Io(source) => failed("write the record", destination)(source),
        error => error,
    })
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::File {
        action,
        path,
        source,
    }
}
