//! A record, opened no further than it takes to tell whether its plan is in memory.
//!
//! Data flow: the record's header, sample, signatures and summary → [`Outline`]; the rest stays where it is until
//! [`Outline::open`]. [`Record`] is a record opened so far, or as a whole where it has no sample.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::definitions::HELD;
use super::frame::{self, FrameReader, TRAILER_LEN, Tag};
use super::handle::{Handle, Shared};
use super::parts::{Fault, frame_len, read_head, read_header};
use super::sample::Sample;
use super::signatures::{Signature, Signatures};
use super::{ReadError, Reader};
use crate::{FileId, FileMeta, Identity, Meta, Summary};

/// What is known of a complete record before its definitions and accesses are taken in.
#[derive(Debug)]
pub struct Outline {
    handle: Handle,
    /// What its definitions may take, in bytes.
    memory: u64,
    meta: Meta,
    summary: Summary,
    signatures: Signatures,
    sample: Sample,
    /// The definitions that the sample has.
    files: Arc<BTreeMap<FileId, FileMeta>>,
    /// Offsets of its first frame, and of its trailer.
    start: u64,
    trailer_at: u64,
}

impl Outline {
    /// The outline of a record; `None` if the record has none, or anything is wrong with it, as [`Reader::within`] will tell.
    ///
    /// # Errors
    ///
    /// [`ReadError::Limit`] where its definitions take more than `memory` bytes, as far as it says itself: nobody need take them in to
    /// find that out.
    pub fn of(handle: &Handle, memory: u64) -> Result<Option<Self>, ReadError> {
        let Some(outline) = Self::taken_in(handle, memory) else {
            return Ok(None);
        };
        let held = outline.summary.files.saturating_mul(HELD);
        if held > memory {
            return Err(ReadError::Limit {
                path: handle.path().to_owned(),
                what: "the memory for its files and threads in bytes",
                value: held,
                limit: memory,
            });
        }
        Ok(Some(outline))
    }

    fn taken_in(handle: &Handle, memory: u64) -> Option<Self> {
        let size = handle.file().metadata().ok()?.len();
        let mut input = handle.input();
        let (meta, start) = read_header(&mut input, size, handle.path()).ok()?;
        let trailer_at = size.checked_sub(TRAILER_LEN as u64)?;
        let mut trailer = [0; TRAILER_LEN];
        input.seek(SeekFrom::Start(trailer_at)).ok()?;
        input.read_exact(&mut trailer).ok()?;
        let index = frame::decode_trailer(&trailer)?;
        if index < start {
            return None;
        }
        input.seek(SeekFrom::Start(index)).ok()?;
        let mut frames = FrameReader::new().ok()?;
        let (mut at, mut sample) = (index, None);
        let (mut signatures, mut summary) = (Signatures::default(), None);
        while at < trailer_at {
            let head = read_head(&mut input, at, trailer_at).ok()?;
            at += frame_len(&head);
            if matches!(head.tag, Tag::Files | Tag::Threads) {
                input.seek_relative(head.stored_len as i64).ok()?;
                continue;
            }
            let payload = frames.payload(&mut input, &head).ok()?.ok()?;
            match head.tag {
                Tag::Sample => sample = Some(Sample::decode(payload, memory).ok()?),
                Tag::Signatures => signatures = Signatures::decode(payload).ok()?,
                Tag::End => summary = Some(serde_json::from_slice(payload).ok()?),
                Tag::Index | Tag::Files | Tag::Threads => {}
                Tag::Accesses => return None,
            }
        }
        let (sample, files) = sample?;
        let summary: Summary = summary?;
        Some(Self {
            handle: handle.clone(),
            memory,
            meta,
            summary,
            signatures,
            sample,
            files,
            start,
            trailer_at,
        })
    }

    /// The file, whatever is under its name by now.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Whose record it is.
    pub fn identity(&self) -> &Identity {
        &self.meta.identity
    }

    /// Whether it tells nothing of the program.
    pub fn is_empty(&self) -> bool {
        self.summary.files == 0 && !self.summary.tells_who_observes()
    }

    /// The sample of the record's plan.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// The files of the sample, and those that were read in an order of which the kernel is best told.
    pub fn files(&self) -> &Arc<BTreeMap<FileId, FileMeta>> {
        &self.files
    }

    /// Opens the record as a whole.
    ///
    /// # Errors
    /// As [`Reader::within`].
    pub fn open(&self) -> Result<Reader, ReadError> {
        self.handle.open_within(self.memory)
    }

    /// Looks for damage in all of the record: every frame against its checksum, which takes 1 ns a read, and many times
    /// as long if it were decoded.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] with the first frame that is not what was written, or [`ReadError::Io`].
    pub fn check(&self) -> Result<(), ReadError> {
        let mut input = self.handle.input();
        let mut at = self.start;
        let mut checked = || -> Result<(), Fault> {
            let mut frames = FrameReader::new()?;
            input.seek(SeekFrom::Start(at))?;
            while at < self.trailer_at {
                let head = read_head(&mut input, at, self.trailer_at)?;
                frames.check(&mut input, &head)??;
                at += frame_len(&head);
            }
            Ok(())
        };
        let outcome = checked();
        outcome.map_err(|fault| fault.at(self.handle.path(), at))
    }
}

/// A record that was found.
pub enum Record {
    /// Opened as far as its sample.
    Outlined(Box<Outline>),
    /// Opened as a whole.
    Whole(Box<Reader>),
}

impl Record {
    /// What the record says about its run.
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Outlined(outline) => &outline.meta,
            Self::Whole(reader) => reader.meta(),
        }
    }

    /// How the run went; `None` if the record does not reach its end.
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Outlined(outline) => Some(&outline.summary),
            Self::Whole(reader) => reader.summary(),
        }
    }

    /// The patterns found in the record. Nobody vouches for them.
    pub fn signatures(&self) -> &[Signature] {
        match self {
            Self::Outlined(outline) => &outline.signatures.all,
            Self::Whole(reader) => reader.signatures(),
        }
    }

    /// The record, opened as a whole.
    ///
    /// # Errors
    /// As [`Outline::open`].
    pub fn whole(self) -> Result<Reader, ReadError> {
        match self {
            Self::Outlined(outline) => outline.open(),
            Self::Whole(reader) => Ok(*reader),
        }
    }

    /// Whether it tells nothing of the program.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Outlined(outline) => outline.is_empty(),
            Self::Whole(reader) => {
                let tells = reader.summary().is_some_and(Summary::tells_who_observes);
                reader.files().is_empty() && !tells
            }
        }
    }

    /// The file, whatever is under its name by now.
    pub fn handle(&self) -> Handle {
        match self {
            Self::Outlined(outline) => outline.handle.clone(),
            Self::Whole(reader) => reader.handle(),
        }
    }

    /// The record's path, as errors name it.
    pub fn path(&self) -> &Path {
        match self {
            Self::Outlined(outline) => outline.handle.path(),
            Self::Whole(reader) => reader.path(),
        }
    }
}

impl Handle {
    pub(super) fn input(&self) -> BufReader<Shared> {
        BufReader::new(self.shared())
    }
}
