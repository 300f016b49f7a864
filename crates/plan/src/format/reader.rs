//! Reads an untrusted record.
//!
//! Opening takes the definitions and the summary: from the index of a complete record,
//! or else by one pass over the frames that skips the blocks of accesses. Accesses are
//! then read from the start, one block in memory at a time, as often as asked.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::columns::BlockDecoder;
use super::definitions::{Beyond, Tables, decode_files, decode_threads, within};
use super::frame::{self, FrameReader, TRAILER_LEN, Tag};
use super::handle::{FileView, Handle};
use super::parts::{Fault, frame_len, read_head, read_header};
use super::place::not_regular;
use super::sample::Sample;
use super::signatures::{Signature, Signatures};
use super::writer::Foot;
use super::{Ending, MAX_ACCESSES, ReadError};
use crate::{Access, FileId, FileMeta, Meta, Summary, ThreadId, ThreadMeta};

/// A record being read.
pub struct Reader<R = BufReader<FileView>> {
    input: R,
    path: PathBuf,
    size: u64,
    meta: Meta,
    summary: Option<Summary>,
    tables: Tables,
    signatures: Signatures,
    sample: Option<Sample>,
    /// Accesses given since the last rewind.
    given: u64,
    ending: Ending,
    frames: FrameReader,
    block: BlockDecoder,
    /// Offset of the first frame.
    start: u64,
    /// Offset of the next frame to read accesses from.
    at: u64,
    /// One past the last frame that may have accesses.
    end: u64,
    /// Offset of the block being read.
    block_at: u64,
    /// An error has ended the current pass over the accesses.
    failed: bool,
}

impl Reader {
    /// Opens the record at `path`. Only its header and definitions are read.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read, is no record, is from a newer foreread, or has a damaged or incomplete header. Faults
    /// after the header are reported by [`Reader::ending`] instead.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let open = || {
            // To open a device may set it to work.
            if !path.metadata()?.is_file() {
                return Err(not_regular());
            }
            // A pipe in its place by now is not waited for.
            let flags = OFlags::NONBLOCK.bits() as i32;
            OpenOptions::new().read(true).custom_flags(flags).open(path)
        };
        let file = open().map_err(|source| ReadError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::from_file(file, path)
    }

    /// As [`Reader::open`], of a file that is open already; errors name it `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn from_file(file: File, path: &Path) -> Result<Self, ReadError> {
        Self::within(file, path, u64::MAX)
    }

    /// As [`Reader::from_file`], its definitions taking at most `memory` bytes.
    ///
    /// # Errors
    /// As [`Reader::open`], and [`ReadError::Limit`] where they would take more.
    pub fn within(file: File, path: &Path, memory: u64) -> Result<Self, ReadError> {
        Self::of_view(FileView::new(Arc::new(file)), path, memory)
    }

    pub(super) fn of_view(file: FileView, path: &Path, memory: u64) -> Result<Self, ReadError> {
        Self::bounded(BufReader::new(file), path, memory)
    }

    /// A record that is still being written to this file, with the files that were defined so far.
    pub(super) fn unfinished(
        file: File,
        path: &Path,
        files: &Arc<BTreeMap<FileId, FileMeta>>,
        accesses: u64,
    ) -> Result<Self, ReadError> {
        let mut reader = Self::begun(
            BufReader::new(FileView::new(Arc::new(file))),
            path,
            u64::MAX,
        )?;
        reader.tables.files = Arc::clone(files);
        reader.summary = Some(Summary {
            accesses,
            ..Summary::default()
        });
        Ok(reader)
    }

    /// The open file, even if its name leads elsewhere by now.
    pub fn handle(&self) -> Handle {
        self.input.get_ref().handle(&self.path)
    }
}

impl<'b> Reader<Cursor<&'b [u8]>> {
    /// Opens a record held in memory; errors name it `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn from_bytes(bytes: &'b [u8], path: &Path) -> Result<Self, ReadError> {
        Self::new(Cursor::new(bytes), path)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a record on any seekable input, read from its start; errors name it `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(input: R, path: &Path) -> Result<Self, ReadError> {
        Self::bounded(input, path, u64::MAX)
    }

    fn bounded(input: R, path: &Path, memory: u64) -> Result<Self, ReadError> {
        let mut reader = Self::begun(input, path, memory)?;
        if !reader.read_index()? {
            reader.tables = Tables::within(memory);
            reader.summary = None;
            reader.signatures = Signatures::default();
            reader.sample = None;
            reader.scan()?;
        }
        Ok(reader)
    }

    /// A reader that has read the header.
    fn begun(mut input: R, path: &Path, memory: u64) -> Result<Self, ReadError> {
        let at_path = |source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let size = input.seek(SeekFrom::End(0)).map_err(at_path)?;
        input.rewind().map_err(at_path)?;
        let (meta, start) = read_header(&mut input, size, path)?;
        Ok(Self {
            input,
            path: path.to_owned(),
            size,
            meta,
            summary: None,
            tables: Tables::within(memory),
            signatures: Signatures::default(),
            sample: None,
            given: 0,
            ending: Ending::Complete,
            frames: FrameReader::new().map_err(at_path)?,
            block: BlockDecoder::default(),
            start,
            at: start,
            end: size,
            block_at: start,
            failed: false,
        })
    }

    /// The record's header.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The summary of the run; `None` if the record has no end.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The patterns found in the record; none if the record has no end. They are untrusted.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures.all
    }

    /// The record's files, as last defined. An access may name a file that is not here.
    pub fn files(&self) -> &BTreeMap<FileId, FileMeta> {
        &self.tables.files
    }

    /// The same, to be kept.
    pub fn shared_files(&self) -> Arc<BTreeMap<FileId, FileMeta>> {
        Arc::clone(&self.tables.files)
    }

    /// Approximate memory of the definitions, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.tables.held()
    }

    /// The record's threads, as last defined. An access may name a thread that is not here.
    pub fn threads(&self) -> &BTreeMap<ThreadId, ThreadMeta> {
        &self.tables.threads
    }

    /// True if the record has its end, and no fault was found so far.
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }

    /// The end of the record, as far as is known: damage within a block of accesses is found only when the block is read.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// The input, with the offset and content of a complete record's index; `None` for any other record.
    pub(super) fn into_ending(self) -> Option<(R, u64, Foot)> {
        let summary = self.summary.filter(|_| self.ending == Ending::Complete)?;
        let foot = Foot {
            tables: self.tables,
            sample: self.sample,
            signatures: self.signatures,
            summary,
        };
        Some((self.input, self.end, foot))
    }

    /// The record's size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size
    }

    /// The record's path, as errors name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All accesses from the start, in the order they were recorded.
    ///
    /// Damage ends the iteration with an error, after everything before it; a truncated
    /// record just ends.
    pub fn accesses(&mut self) -> impl Iterator<Item = Result<Access, ReadError>> + '_ {
        self.rewind();
        std::iter::from_fn(|| self.next_access())
    }

    /// Makes [`Reader::next_access`] begin anew.
    pub fn rewind(&mut self) {
        self.block.clear();
        self.at = self.start;
        self.given = 0;
        self.failed = false;
    }

    /// Makes [`Reader::next_access`] skip whole blocks up to the one at this share of the record (0 to 1, by its bytes), if that is still
    /// ahead.
    pub fn skip_to(&mut self, share: f64) {
        let length = self.end.saturating_sub(self.start).saturating_sub(1);
        let wanted = self.start + (length as f64 * share.clamp(0.0, 1.0)) as u64;
        let mut skipped = false;
        while self.at < self.end && !self.failed {
            let head = self
                .input
                .seek(SeekFrom::Start(self.at))
                .map_err(Fault::from)
                .and_then(|_| read_head(&mut self.input, self.at, self.end));
            // The fault is found when the block is read.
            let Ok(head) = head else { break };
            let after = self.at + frame_len(&head);
            if after > wanted {
                break;
            }
            self.at = after;
            skipped = true;
        }
        if skipped {
            self.block.clear();
        }
    }

    /// The next access; `None` at the record's end, and after an error.
    ///
    /// For those who keep the reader and cannot hold an iterator borrowed from it.
    pub fn next_access(&mut self) -> Option<Result<Access, ReadError>> {
        while !self.failed {
            match self.block.next() {
                Some(Ok(access)) => {
                    self.given += 1;
                    if self.given > MAX_ACCESSES {
                        let why = "the record holds more accesses than the limit";
                        return Some(Err(self.damaged(self.block_at, why)));
                    }
                    return Some(Ok(access));
                }
                Some(Err(what)) => return Some(Err(self.damaged(self.block_at, what))),
                None => {}
            }
            if self.at >= self.end {
                return match self.ending {
                    Ending::Damaged { at, why } => Some(Err(self.damaged(at, why))),
                    Ending::Complete | Ending::Truncated { .. } => None,
                };
            }
            if let Err(fault) = self.load_block()
                && let Err(error) = self.end_by(fault)
            {
                return Some(Err(error));
            }
        }
        None
    }

    /// Looks for damage in all of the record: every frame against its checksum, which takes 1 ns a read, and many times
    /// as long if it were decoded. [`Reader::next_access`] begins anew afterwards.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] with the first damaged frame, or [`ReadError::Io`]. A record that is only cut short is sound.
    pub fn check(&mut self) -> Result<(), ReadError> {
        self.rewind();
        while self.at < self.end {
            if let Err(fault) = self.check_frame() {
                self.end_by(fault)?;
            }
        }
        if let Ending::Damaged { at, why } = self.ending {
            return Err(self.damaged(at, why));
        }
        self.rewind();
        Ok(())
    }

    /// Ends the record at a frame that could not be read: with an error, unless the record is only cut short.
    fn end_by(&mut self, fault: Fault) -> Result<(), ReadError> {
        match fault {
            Fault::Damaged(what) => Err(self.damaged(self.at, what)),
            Fault::Beyond(beyond) => {
                self.failed = true;
                Err(self.beyond(beyond))
            }
            Fault::Truncated if self.ending == Ending::Complete => {
                let why = "the frame reaches past the index, or the file has shrunk";
                Err(self.damaged(self.at, why))
            }
            Fault::Truncated => {
                self.end = self.at;
                self.ending = Ending::Truncated { at: self.at };
                Ok(())
            }
            Fault::Io(source) => {
                self.failed = true;
                Err(self.io(source))
            }
        }
    }

    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn beyond(&self, Beyond { what, value, limit }: Beyond) -> ReadError {
        ReadError::Limit {
            path: self.path.clone(),
            what,
            value,
            limit,
        }
    }

    fn damaged(&mut self, at: u64, why: &'static str) -> ReadError {
        self.failed = true;
        self.ending = Ending::Damaged { at, why };
        ReadError::Damaged {
            path: self.path.clone(),
            offset: at,
            what: why,
        }
    }

    /// Holds the frame at `self.at` against its checksum.
    fn check_frame(&mut self) -> Result<(), Fault> {
        self.input.seek(SeekFrom::Start(self.at))?;
        let head = read_head(&mut self.input, self.at, self.end)?;
        self.frames.check(&mut self.input, &head)??;
        self.at += frame_len(&head);
        Ok(())
    }

    /// Reads the frame at `self.at`, and its accesses if it has any.
    fn load_block(&mut self) -> Result<(), Fault> {
        self.input.seek(SeekFrom::Start(self.at))?;
        let head = read_head(&mut self.input, self.at, self.end)?;
        if head.tag == Tag::Accesses {
            let payload = self.frames.payload(&mut self.input, &head)??;
            self.block.load(payload)?;
            self.block_at = self.at;
        } else {
            // Definitions came from the index.
            self.frames.check(&mut self.input, &head)??;
        }
        self.at += frame_len(&head);
        Ok(())
    }

    /// Reads definitions and summary from the index of a complete record; `false` if it is missing or damaged.
    fn read_index(&mut self) -> Result<bool, ReadError> {
        let Some(trailer_at) = self.size.checked_sub(TRAILER_LEN as u64) else {
            return Ok(false);
        };
        let index = match self.index_before(trailer_at) {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(false),
            Err(source) => return Err(self.io(source)),
        };
        let mut at = index;
        while at < trailer_at {
            match self.take_frame(at, trailer_at) {
                Ok(Tag::Accesses) | Err(Fault::Damaged(_) | Fault::Truncated) => return Ok(false),
                Ok(Tag::Index) if at != index => return Ok(false),
                Ok(_) => at = self.at,
                Err(Fault::Beyond(beyond)) => return Err(self.beyond(beyond)),
                Err(Fault::Io(source)) => return Err(self.io(source)),
            }
        }
        self.at = self.start;
        self.end = index;
        Ok(self.summary.is_some())
    }

    /// The offset of the index, if there is a valid trailer; the input is positioned there.
    fn index_before(&mut self, trailer_at: u64) -> io::Result<Option<u64>> {
        let mut trailer = [0; TRAILER_LEN];
        self.input.seek(SeekFrom::Start(trailer_at))?;
        self.input.read_exact(&mut trailer)?;
        let index = frame::decode_trailer(&trailer);
        let index = index.filter(|&index| index >= self.start && index < trailer_at);
        if let Some(index) = index {
            self.input.seek(SeekFrom::Start(index))?;
        }
        Ok(index)
    }

    /// Finds definitions and, if present, the summary by passing over all frames.
    fn scan(&mut self) -> Result<(), ReadError> {
        self.at = self.start;
        let start = SeekFrom::Start(self.start);
        self.input.seek(start).map_err(|source| self.io(source))?;
        self.ending = loop {
            let at = self.at;
            if self.summary.is_some() {
                // Only the trailer can follow, and it was not found whole.
                break if self.size - at < TRAILER_LEN as u64 {
                    Ending::Truncated { at }
                } else {
                    let why = "the trailer or the index before it is not whole";
                    Ending::Damaged { at, why }
                };
            }
            match self.take_frame(at, self.size) {
                Ok(_) => {}
                Err(Fault::Truncated) => break Ending::Truncated { at },
                Err(Fault::Damaged(why)) => break Ending::Damaged { at, why },
                Err(Fault::Beyond(beyond)) => return Err(self.beyond(beyond)),
                Err(Fault::Io(source)) => return Err(self.io(source)),
            }
        };
        self.end = self.at;
        self.at = self.start;
        Ok(())
    }

    /// Reads the frame at `at`, where the input stands, but skips accesses; leaves `self.at`
    /// and the input after it.
    fn take_frame(&mut self, at: u64, end: u64) -> Result<Tag, Fault> {
        let head = read_head(&mut self.input, at, end)?;
        if head.tag == Tag::Accesses {
            self.input.seek_relative(head.stored_len as i64)?;
        } else {
            let payload = self.frames.payload(&mut self.input, &head)??;
            match head.tag {
                Tag::Files => decode_files(payload, &mut self.tables)?,
                Tag::Threads => decode_threads(payload, &mut self.tables)?,
                Tag::Sample => self.sample = Some(Sample::decode(payload, self.tables.memory())?.0),
                Tag::Signatures => self.signatures = Signatures::decode(payload)?,
                Tag::End => {
                    let summary: Result<Summary, _> = serde_json::from_slice(payload);
                    let summary = summary.map_err(|_| "the summary is not understood")?;
                    let accesses = summary.accesses;
                    within("the number of its accesses", accesses, MAX_ACCESSES)
                        .map_err(Fault::Beyond)?;
                    self.summary = Some(summary);
                }
                Tag::Index | Tag::Accesses => {}
            }
        }
        self.at = at + frame_len(&head);
        Ok(head.tag)
    }
}
