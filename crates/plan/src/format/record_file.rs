//! A record file that appears whole, or not at all.
//!
//! The record is written to a locked hidden file beside its destination ([`super::place`]), and replaces the destination by one rename when
//! it is complete. It is not synced: after a power failure the checksums show the damage. If the writer is killed, the hidden file remains:
//! [`Place::partials`] finds it, a [`Reader`] reads its content, and [`super::Partial::adopt`] moves it to the destination.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::path::{Path, PathBuf};

use super::frame::FrameWriter;
use super::place::{Growing, Place, failed};
use super::sample::Sample;
use super::signatures::Signature;
use super::{MAX_ACCESSES, Reader, WriteError, Writer};
use crate::{Access, FileId, FileMeta, Meta, Sequence, Summary, ThreadId, ThreadMeta};

/// Flushing a block for less than this much room would leave crumbs.
const CRUMB: u64 = 4096;

/// A record being written to a file that does not replace its destination until committed.
///
/// Dropped without [`RecordFile::commit`], it leaves nothing behind.
pub struct RecordFile {
    writer: Writer<BufWriter<File>>,
    partial: Growing,
    destination: Place,
    limit: u64,
    full: bool,
    lost: u64,
}

impl RecordFile {
    /// Removes the written file, in a process that is about to end: its memory is not freed.
    pub fn leave(self) {
        let Self {
            writer, partial, ..
        } = self;
        drop(partial);
        std::mem::forget(writer);
    }

    /// Begins a record that will be at `destination` and take about `limit` bytes at most.
    ///
    /// # Errors
    /// [`WriteError::File`] if no file can be created beside `destination`, otherwise the errors of [`Writer::new`].
    pub fn create(destination: &Path, meta: &Meta, limit: u64) -> Result<Self, WriteError> {
        Self::create_at(&Place::at(destination)?, meta, limit)
    }

    /// As [`RecordFile::create`], in a folder that is open already.
    ///
    /// # Errors
    /// As [`RecordFile::create`].
    pub fn create_at(destination: &Place, meta: &Meta, limit: u64) -> Result<Self, WriteError> {
        let (file, partial) = Growing::create(destination)?;
        Ok(Self {
            writer: named(destination, Writer::new(BufWriter::new(file), meta))?,
            partial,
            destination: destination.clone(),
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

    /// Appends an access: [`Writer::access`]. In a full record it is counted as lost.
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

    /// The patterns found in the record: [`Writer::signatures`].
    ///
    /// # Errors
    /// As [`Writer::signatures`].
    pub fn signatures(&mut self, signatures: Vec<Signature>) -> Result<(), WriteError> {
        self.writer.signatures(signatures)
    }

    /// Reads the record so far, for a sample: gathered accesses are written first, and nothing is decoded.
    ///
    /// # Errors
    /// As [`Writer::flush`], and [`WriteError::Read`].
    pub fn review(&mut self) -> Result<Reader, WriteError> {
        self.flush()?;
        let path = self.partial.path();
        let file = self.writer.out().get_ref().try_clone();
        let file = file.map_err(failed("read the record", &path))?;
        let (files, accesses) = self.writer.so_far();
        Ok(Reader::unfinished(file, &path, files, accesses)?)
    }

    /// The sample of the plan that the record is: [`Writer::sample`].
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn sample(&mut self, sample: Sample) -> Result<(), WriteError> {
        self.writer.sample(sample)
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

    /// True if the size limit has been reached: further accesses are not kept.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Accesses left out because of the size limit.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Path of the file until it is committed.
    pub fn partial_path(&self) -> PathBuf {
        self.partial.path()
    }

    /// Ends the record, as [`Writer::finish`] does, and lets it take the destination's place.
    ///
    /// The accesses left out are added to the summary's `lost`. When this returns, the
    /// record is under its name, and survives the death of any process.
    ///
    /// # Errors
    /// The errors of [`Writer::access`], or [`WriteError::File`]; the destination is unchanged then.
    pub fn commit(self, summary: Summary) -> Result<(), WriteError> {
        self.end(summary)?.take_place()
    }

    /// Ends the record, without replacing the destination yet. Accesses that were left out are added to the summary's `lost`.
    ///
    /// # Errors
    /// The errors of [`Writer::access`]; the destination is unchanged then.
    pub fn end(self, mut summary: Summary) -> Result<Ended, WriteError> {
        summary.lost += self.lost;
        let out = named(&self.destination, self.writer.finish(summary))?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error);
        Ok(Ended {
            locked: named(&self.destination, file.map_err(Into::into))?,
            partial: self.partial,
            destination: self.destination,
        })
    }

    /// True if more fits within the limits. Once it does not, the record stays full.
    fn has_room(&mut self) -> Result<bool, WriteError> {
        let may_be_full = !self.full && self.writer.size_most() >= self.limit;
        if may_be_full && self.writer.size_bound() >= self.limit {
            // The bound counts gathered accesses uncompressed, so write them to find their real size.
            self.flush()?;
            self.full = self.writer.size_bound() + CRUMB >= self.limit;
        }
        // A sequence may be added to the accesses so far.
        self.full |= self.writer.accesses() + u64::from(u16::MAX) >= MAX_ACCESSES;
        Ok(!self.full)
    }
}

/// A record that is whole, and not yet in its place. Dropped, it leaves nothing behind.
pub struct Ended {
    /// Until it has its place.
    locked: File,
    partial: Growing,
    destination: Place,
}

impl Ended {
    /// Bytes that the record takes.
    ///
    /// # Errors
    /// [`WriteError::File`].
    pub fn size(&self) -> Result<u64, WriteError> {
        let path = self.partial.path();
        let meta = self.locked.metadata();
        Ok(meta.map_err(failed("look at the record", &path))?.len())
    }

    /// Opens it, under the destination's name.
    ///
    /// # Errors
    /// [`WriteError::File`] and [`WriteError::Read`].
    pub fn reader(&self) -> Result<Reader, WriteError> {
        let path = self.destination.path();
        let file = self.locked.try_clone();
        let file = file.map_err(failed("read the record", &path))?;
        Ok(Reader::from_file(file, &path)?)
    }

    /// Lets it take the destination's place.
    ///
    /// # Errors
    /// [`WriteError::File`]; the destination is unchanged then.
    pub fn take_place(self) -> Result<(), WriteError> {
        // Not synced: on a busy disk that takes seconds, and the user of the program would wait for it. A record damaged by a power failure
        // is recognised by its checksums, and recorded again.
        self.partial.take_place(&self.destination)
    }
}

/// Replaces the definitions of a complete record's files for which `renewed` has new facts. Accesses, signatures and summary are unchanged,
/// and so is a record without an end.
///
/// # Errors
/// [`WriteError::Read`], or the errors of [`RecordFile::commit`]; the record is unchanged then.
pub fn redefine(
    record: &Place,
    mut renewed: impl FnMut(&FileMeta) -> Option<FileMeta>,
) -> Result<(), WriteError> {
    let path = record.path();
    let file = record.open().map_err(failed("open the record", &path))?;
    let Some((mut input, index, mut foot)) = Reader::from_file(file, &path)?.into_ending() else {
        return Ok(());
    };
    let files = foot.tables.files.iter();
    let files: Vec<_> = files
        .filter_map(|(&id, meta)| Some((id, renewed(meta)?)))
        .collect();
    for (id, meta) in files {
        foot.tables.define_file(id, meta)?;
    }
    let (file, partial) = Growing::create(record)?;
    let mut out = BufWriter::new(file);
    let copied = input
        .rewind()
        .and_then(|()| io::copy(&mut input.take(index), &mut out));
    if copied.map_err(failed("copy the record", &path))? < index {
        let shrunk = io::ErrorKind::UnexpectedEof.into();
        return Err(failed("copy the record", &path)(shrunk));
    }
    let mut frames = FrameWriter::new()?;
    let ended = foot.put(&mut out, &mut frames, index);
    named(record, ended)?;
    partial.take_place(record)
}

/// The system's refusal to write, with the record's name.
fn named<T>(destination: &Place, outcome: Result<T, WriteError>) -> Result<T, WriteError> {
    outcome.map_err(|error| match error {
        WriteError::Io(source) => failed("write the record", &destination.path())(source),
        error => error,
    })
}
