//! Writes a record, front to back, to anything that takes bytes.
//!
//! Definitions and accesses are gathered in memory. A block is written when it is full, when it spans so much time that a kill would lose
//! too much, or on [`Writer::flush`]. Definitions are always written before the block that may refer to them.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use super::columns::{BlockEncoder, micros};
use super::definitions::{Rows, Tables, limit};
use super::frame::{self, FrameWriter, Tag};
use super::sample::Sample;
use super::signatures::{Signature, Signatures};
use super::{BLOCK_ACCESSES, BLOCK_SPAN_US, MAX_ID, MAX_META, WriteError};
use crate::{Access, FileId, FileMeta, Meta, Sequence, Summary, ThreadId, ThreadMeta};

/// Accesses gathered for one block. Few enough that little is left to be packed when the run ends, and that a block is
/// packed within the processor's caches.
const GATHERED: usize = BLOCK_ACCESSES / 8;

/// Room besides the rows: the index, summary and trailer of a finished record.
const ENDING_ROOM: u64 = 4096;

/// A record being written.
pub struct Writer<W: Write> {
    out: W,
    frames: FrameWriter,
    written: u64,
    tables: Tables,
    rows: Rows,
    signatures: Signatures,
    sample: Option<Sample>,
    block: BlockEncoder,
    accesses: u64,
    bytes: u64,
    broken: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a record of the run `meta` with its header.
    ///
    /// # Errors
    /// [`WriteError::Limit`] if `meta` takes more than [`MAX_META`] bytes as JSON;
    /// [`WriteError::Io`] if the header cannot be written.
    pub fn new(mut out: W, meta: &Meta) -> Result<Self, WriteError> {
        let meta = serde_json::to_vec(meta).map_err(std::io::Error::from)?;
        limit("the run's description in bytes", meta.len(), MAX_META)?;
        let written = frame::write_header(&mut out, &meta)?;
        out.flush()?;
        Ok(Self {
            out,
            frames: FrameWriter::new()?,
            written,
            tables: Tables::default(),
            rows: Rows::default(),
            signatures: Signatures::default(),
            sample: None,
            block: BlockEncoder::default(),
            accesses: 0,
            bytes: 0,
            broken: false,
        })
    }

    /// Defines a file, or defines it again: the later definition holds for the whole record.
    ///
    /// # Errors
    /// [`WriteError::Limit`] if the number or the path is beyond the format's limits; the
    /// record remains usable. Otherwise as [`Writer::access`].
    pub fn file(&mut self, id: FileId, meta: FileMeta) -> Result<(), WriteError> {
        self.usable()?;
        self.tables.define_file(id, meta)?;
        self.rows.files.file(id, &self.tables.files[&id]);
        self.rows_added()
    }

    /// Defines a thread, or defines it again: the later definition holds for the whole record.
    ///
    /// # Errors
    /// As [`Writer::file`].
    pub fn thread(&mut self, id: ThreadId, meta: ThreadMeta) -> Result<(), WriteError> {
        self.usable()?;
        self.tables.define_thread(id, meta)?;
        self.rows.threads.thread(id, &self.tables.threads[&id]);
        self.rows_added()
    }

    /// Appends an access. Accesses are kept in the order they come in.
    ///
    /// # Errors
    /// [`WriteError::Limit`] if the file's or thread's number is beyond [`MAX_ID`];
    /// [`WriteError::Io`] if a full block could not be written, and [`WriteError::Broken`]
    /// ever after.
    pub fn access(&mut self, access: &Access) -> Result<(), WriteError> {
        self.sequence(Sequence::from(*access))
    }

    /// Appends each access of a sequence.
    ///
    /// # Errors
    /// As [`Writer::access`].
    pub fn sequence(&mut self, sequence: Sequence) -> Result<(), WriteError> {
        self.usable()?;
        let Access {
            file, thread, kind, ..
        } = sequence.first;
        limit("a file's number", file.0 as usize, MAX_ID as usize - 1)?;
        limit("a thread's number", thread.0 as usize, MAX_ID as usize - 1)?;
        for (number, access) in sequence.accesses().enumerate() {
            let span = micros(access.start).saturating_sub(self.block.first());
            if self.block.len() > 0 && span >= BLOCK_SPAN_US {
                self.flush()?;
            }
            if number == 0 || !self.block.go_on(&access) {
                self.block.push(&access);
            }
            self.accesses += 1;
            if self.block.len() == GATHERED {
                self.flush()?;
            }
        }
        if kind.reads() {
            self.bytes = self.bytes.saturating_add(sequence.extent().len);
        }
        Ok(())
    }

    /// The patterns found in the record, in place of any given before.
    ///
    /// # Errors
    /// [`WriteError::Limit`] if there are more than [`super::MAX_SIGNATURES`], or if they are longer than
    /// [`super::MAX_SIGNATURES_BYTES`] together; the record remains usable.
    pub fn signatures(&mut self, signatures: Vec<Signature>) -> Result<(), WriteError> {
        self.signatures = Signatures::new(signatures)?;
        Ok(())
    }

    /// The sample of the plan that the record is, in place of any given before.
    ///
    /// # Errors
    /// [`WriteError::Limit`] if it has more than [`super::MAX_SAMPLE`] entries; the record remains usable.
    pub fn sample(&mut self, sample: Sample) -> Result<(), WriteError> {
        sample.check()?;
        self.sample = Some(sample);
        Ok(())
    }

    /// Puts out everything gathered so far, down to the operating system.
    ///
    /// To be called about once a second: flushed accesses survive the writer's death.
    ///
    /// # Errors
    /// As [`Writer::access`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.usable()?;
        self.broken = true;
        self.written += self.rows.put(&mut self.out, &mut self.frames)?;
        if self.block.len() > 0 {
            let written = self
                .frames
                .write(&mut self.out, Tag::Accesses, self.block.streams())?;
            self.written += written;
            self.block.clear();
        }
        self.out.flush()?;
        self.broken = false;
        Ok(())
    }

    /// Ends the record: everything gathered, the index, the summary, the trailer.
    ///
    /// The writer fills in the summary's `accesses`, `bytes`, `files` and `threads`; the
    /// rest is the caller's.
    ///
    /// # Errors
    /// As [`Writer::access`].
    pub fn finish(mut self, mut summary: Summary) -> Result<W, WriteError> {
        self.flush()?;
        summary.accesses = self.accesses;
        summary.bytes = self.bytes;
        summary.files = self.tables.files.len() as u64;
        summary.threads = self.tables.threads.len() as u64;

        let foot = Foot {
            tables: self.tables,
            sample: self.sample,
            signatures: self.signatures,
            summary,
        };
        foot.put(&mut self.out, &mut self.frames, self.written)?;
        Ok(self.out)
    }

    /// The files defined so far, and the number of accesses.
    pub(super) fn so_far(&self) -> (&Arc<BTreeMap<FileId, FileMeta>>, u64) {
        (&self.tables.files, self.accesses)
    }

    /// The output.
    pub(super) fn out(&self) -> &W {
        &self.out
    }

    /// Bytes written so far, without gathered accesses.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// The size the record would have if it were finished now, at most, in bytes.
    pub(super) fn size_bound(&self) -> u64 {
        self.bound(self.block.raw_len())
    }

    /// At least [`Writer::size_bound`], computed without examining gathered accesses.
    pub(super) fn size_most(&self) -> u64 {
        self.bound(self.block.raw_most())
    }

    fn bound(&self, block: usize) -> u64 {
        let pending = block + self.rows.len();
        // zstd adds at most 1/256, and a little to each stream; frames add their heads.
        let pending = pending + self.signatures.json.len();
        let raw = self.tables.raw_bound() + pending as u64;
        self.written + raw + raw / 256 + ENDING_ROOM
    }

    /// Number of accesses so far.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// True if this file is defined.
    pub(super) fn knows_file(&self, id: FileId) -> bool {
        self.tables.files.contains_key(&id)
    }

    fn usable(&self) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        Ok(())
    }

    fn rows_added(&mut self) -> Result<(), WriteError> {
        self.broken = true;
        self.written += self.rows.put_full(&mut self.out, &mut self.frames)?;
        self.broken = false;
        Ok(())
    }
}

/// The part of a finished record after its blocks.
pub(super) struct Foot {
    pub(super) tables: Tables,
    pub(super) sample: Option<Sample>,
    pub(super) signatures: Signatures,
    pub(super) summary: Summary,
}

impl Foot {
    /// Writes it from the byte `index` on: the sample, all definitions, the signatures, the summary, the trailer.
    pub(super) fn put(
        &self,
        out: &mut impl Write,
        frames: &mut FrameWriter,
        index: u64,
    ) -> Result<(), WriteError> {
        let Self { tables, .. } = self;
        frames.write(out, Tag::Index, std::iter::empty())?;
        if let Some(sample) = &self.sample {
            let payload = sample.encode(&tables.files);
            frames.write(out, Tag::Sample, std::iter::once(&payload[..]))?;
        }
        let mut rows = Rows::default();
        for (id, meta) in tables.files.iter() {
            rows.files.file(*id, meta);
            rows.put_full(out, frames)?;
        }
        for (id, meta) in &tables.threads {
            rows.threads.thread(*id, meta);
            rows.put_full(out, frames)?;
        }
        rows.put(out, frames)?;
        if !self.signatures.all.is_empty() {
            frames.write(
                out,
                Tag::Signatures,
                std::iter::once(&self.signatures.json[..]),
            )?;
        }
        let summary = serde_json::to_vec(&self.summary).map_err(std::io::Error::from)?;
        frames.write(out, Tag::End, std::iter::once(&summary[..]))?;
        out.write_all(&frame::encode_trailer(index))?;
        out.flush()?;
        Ok(())
    }
}
