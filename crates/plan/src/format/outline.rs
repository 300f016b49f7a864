//! The outline of a record: enough of it to decide whether its plan is in memory.
//!
//! Invariant: how long that takes does not depend on how much was recorded.
//!
//! Data flow: the record's header, sample, signatures and summary → [`Outline`]; the other parts are read by [`Outline::open`].

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::definitions::HELD;
use super::frame::{self, FrameReader, TRAILER_LEN, Tag};
use super::handle::{FileView, Handle};
use super::parts::{Fault, frame_len, read_head, read_header};
use super::sample::Sample;
use super::signatures::{Signature, Signatures};
use super::{ReadError, Reader};
use crate::{FileId, FileMeta, Identity, Meta, Summary};

/// Facts about a record that are known before its definitions and accesses are read.
#[derive(Debug)]
pub struct Outline {
    handle: Handle,
    /// Limit of the definitions' memory, in bytes.
    memory: u64,
    meta: Meta,
    /// Offset of its first frame.
    start: u64,
    foot: Option<Foot>,
}

/// The end of a complete record, without its definitions.
#[derive(Debug)]
struct Foot {
    summary: Summary,
    signatures: Signatures,
    sample: Option<Sample>,
    /// The definitions that the sample has.
    files: Arc<BTreeMap<FileId, FileMeta>>,
    trailer_at: u64,
}

impl Outline {
    /// Reads the outline of a record. If the record breaks off or its foot is damaged, the outline is the header alone.
    ///
    /// # Errors
    ///
    /// A fault of the header, or [`ReadError::Limit`] if its definitions take more than `memory` bytes by the record's own figures: they
    /// need not be read to find out.
    pub fn of(handle: &Handle, memory: u64) -> Result<Self, ReadError> {
        let size = handle.file().metadata().map_err(|source| ReadError::Io {
            path: handle.path().to_owned(),
            source,
        })?;
        let mut input = handle.input();
        let (meta, start) = read_header(&mut input, size.len(), handle.path())?;
        let foot = Foot::taken_in(&mut input, (start, size.len()), memory);
        let files = foot.as_ref().map_or(0, |foot| foot.summary.files);
        let held = files.saturating_mul(HELD);
        if held > memory {
            return Err(ReadError::Limit {
                path: handle.path().to_owned(),
                what: "the memory for its files and threads in bytes",
                value: held,
                limit: memory,
            });
        }
        Ok(Self {
            handle: handle.clone(),
            memory,
            meta,
            start,
            foot,
        })
    }

    /// The open file, even if its name leads elsewhere by now.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The record's path, as errors name it.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    /// The record's header.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The identity of the record's command.
    pub fn identity(&self) -> &Identity {
        &self.meta.identity
    }

    /// The summary of the run; `None` if the record has no end.
    pub fn summary(&self) -> Option<&Summary> {
        self.foot.as_ref().map(|foot| &foot.summary)
    }

    /// The patterns found in the record. They are untrusted.
    pub fn signatures(&self) -> &[Signature] {
        let foot = self.foot.as_ref();
        foot.map_or(&[], |foot| &foot.signatures.all)
    }

    /// True if it has no content, as far as is known: the content of a record without an end is unknown.
    pub fn is_empty(&self) -> bool {
        self.summary()
            .is_some_and(|summary| summary.files == 0 && !summary.tells_who_observes())
    }

    /// The sample of the record's plan, if it has one.
    pub fn sample(&self) -> Option<&Sample> {
        self.foot.as_ref()?.sample.as_ref()
    }

    /// The files of the sample, and those with advice for the kernel about their order of reads.
    pub fn files(&self) -> Arc<BTreeMap<FileId, FileMeta>> {
        let foot = self.foot.as_ref();
        foot.map(|foot| Arc::clone(&foot.files)).unwrap_or_default()
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
    /// [`ReadError::Damaged`] with the first damaged frame, or [`ReadError::Io`].
    pub fn check(&self) -> Result<(), ReadError> {
        let Some(foot) = &self.foot else {
            return self.open()?.check();
        };
        let mut input = self.handle.input();
        let mut at = self.start;
        let mut checked = || -> Result<(), Fault> {
            let mut frames = FrameReader::new()?;
            input.seek(SeekFrom::Start(at))?;
            while at < foot.trailer_at {
                let head = read_head(&mut input, at, foot.trailer_at)?;
                frames.check(&mut input, &head)??;
                at += frame_len(&head);
            }
            Ok(())
        };
        let outcome = checked();
        outcome.map_err(|fault| fault.at(self.handle.path(), at))
    }
}

impl Foot {
    /// The foot of a record of this size whose frames begin at `start`; `None` if it is missing or damaged.
    fn taken_in(
        input: &mut BufReader<FileView>,
        (start, size): (u64, u64),
        memory: u64,
    ) -> Option<Self> {
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
            let head = read_head(input, at, trailer_at).ok()?;
            at += frame_len(&head);
            if matches!(head.tag, Tag::Files | Tag::Threads) {
                input.seek_relative(head.stored_len as i64).ok()?;
                continue;
            }
            let payload = frames.payload(input, &head).ok()?.ok()?;
            match head.tag {
                Tag::Sample => sample = Some(Sample::decode(payload, memory).ok()?),
                Tag::Signatures => signatures = Signatures::decode(payload).ok()?,
                Tag::End => summary = Some(serde_json::from_slice(payload).ok()?),
                Tag::Index | Tag::Files | Tag::Threads => {}
                Tag::Accesses => return None,
            }
        }
        let (sample, files) = sample.unzip();
        Some(Self {
            summary: summary?,
            signatures,
            sample,
            files: files.unwrap_or_default(),
            trailer_at,
        })
    }
}

impl Handle {
    pub(super) fn input(&self) -> BufReader<FileView> {
        BufReader::new(self.view())
    }
}
