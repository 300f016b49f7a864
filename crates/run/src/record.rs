//! Records the reads and lookups of a run.
//!
//! A separate thread writes the record, so a slow disk delays neither the watcher nor, through a full ring, the program. Thread and file
//! are created only when there is enough to write: a short program is over before, and a followed program mostly needs no new record.
//!
//! Data flow: watcher → [`Recorder`] (a batch at a time, a bounded number of batches) → writer thread →
//! [`RecordFile`].

mod lessons;
mod orders;
pub(super) mod part;
mod sample;
pub(super) mod writer;

use std::path::Path;
use std::time::Instant;

use foreread_plan::format::{Place, RecordFile};
use foreread_plan::{
    Access, FileId, FileMeta, Identity, Meta, Sequence, Summary, ThreadId, ThreadMeta,
};
use foreread_sources::signature::Roles;
use foreread_sys::processor::Aside;
use rustc_hash::FxHashMap;

use super::watch::Sink;
pub(super) use lessons::learnt;
use part::{LeftOut, Limits};
use writer::{FLUSH, Item, Writer, Writing};

/// Accesses and definitions handed over at a time, or a few more: those of a sequence go together.
const BATCH: usize = 4096;
/// Accesses kept in memory while a plan is followed, because its record is mostly kept: 56 MiB at most.
const HELD: usize = 1 << 20;

/// A record being written. The first error ends the recording and is kept; the program continues.
pub(super) struct Recorder {
    place: Place,
    meta: Meta,
    limit: u64,
    /// When a batch was handed over last, or the recording began.
    handed_over: Instant,
    batch: Vec<Item>,
    /// The record's numbers of the session's files: in the order they are met, without gaps.
    numbers: FxHashMap<FileId, FileId>,
    /// The last access's file, which mostly is the next one's too, and its number.
    last: Option<(FileId, FileId)>,
    /// Accesses and definitions in it.
    gathered: usize,
    writer: Writer,
    /// True if nothing is written until there are more than [`HELD`] accesses and definitions.
    is_held_back: bool,
    /// For the writer.
    aside: Aside,
    read_ns: u64,
    reads: u64,
    names: u64,
    accesses: u64,
}

impl Recorder {
    /// Begin a record that will be at `place`, of at most `limit` bytes.
    pub(super) fn new(place: &Place, meta: Meta, limit: u64) -> Self {
        Self {
            place: place.clone(),
            meta,
            limit,
            handed_over: Instant::now(),
            batch: Vec::new(),
            numbers: FxHashMap::default(),
            last: None,
            gathered: 0,
            writer: Writer::Unstarted,
            is_held_back: false,
            aside: Aside::new(),
            read_ns: 0,
            reads: 0,
            names: 0,
            accesses: 0,
        }
    }

    /// The same recorder, which writes only when the record is known to be needed, or is too large to be kept in memory.
    pub(super) fn held_back(self, is_held_back: bool) -> Self {
        Self {
            is_held_back,
            ..self
        }
    }

    /// The record is needed: from now on everything is written.
    pub(super) fn is_needed(&mut self) {
        self.is_held_back = false;
    }

    /// Passes observed accesses to the writer from time to time.
    pub(super) fn flush(&mut self) {
        if !self.is_held_back && !self.batch.is_empty() && self.handed_over.elapsed() >= FLUSH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.handed_over = Instant::now();
        self.gathered = 0;
        let room = self.batch.len().min(BATCH);
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(room));
        if let Writer::Unstarted = self.writer {
            self.writer = Writer::start(&self.place, &self.meta, self.limit, self.aside.clone());
        }
        if let Writer::Running(writer) = &self.writer {
            writer.send(batch);
        }
    }

    /// The place of the finished record.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Time the program spent in reads and in using names, in ns, over all threads.
    pub(super) fn read_ns(&self) -> u64 {
        self.read_ns
    }

    /// Accesses recorded, names and maps included.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Reads recorded.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    /// Uses of names recorded.
    pub(super) fn names(&self) -> u64 {
        self.names
    }

    /// Puts the record, cut to the limits, in its place, replacing an earlier one. Returns what was left out.
    ///
    /// # Errors
    /// When something could not be written, or no part of the record fits. An earlier record is unchanged then.
    pub(super) fn commit(
        self,
        summary: Summary,
        limits: Limits,
    ) -> anyhow::Result<Option<LeftOut>> {
        let mut writing = match self.writer {
            Writer::Unstarted => {
                Writing::new(RecordFile::create_at(&self.place, &self.meta, self.limit)?)
            }
            Writer::Running(writer) => {
                let died = || anyhow::anyhow!("{}: the writer died", self.place.path().display());
                writer.end().ok_or_else(died)??
            }
            Writer::Failed(why) => return Err(why),
        };
        writing.write(&self.batch)?;
        let Identity { argv, cwd, .. } = &self.meta.identity;
        let roles = Roles::new(argv.iter().map(String::as_str), Path::new(cwd));
        let (file, waits) = writing.end(roles)?;
        let ended = file.end(Summary {
            wait_ns: waits.scattered.ninth_tenth(),
            onward_wait_ns: waits.onward.ninth_tenth(),
            name_wait_ns: waits.names.median(),
            rewritten_ns: waits.rewritten_ns,
            ..summary
        })?;
        part::cut(ended, &self.place, limits)
    }

    /// Discards everything recorded.
    pub(super) fn discard(self) {
        if let Writer::Running(writer) = self.writer
            && let Some(Ok(writing)) = writer.end()
        {
            writing.leave();
        }
    }

    /// The record's number of a file.
    fn number_of(&mut self, file: FileId) -> Option<FileId> {
        if let Some((last, number)) = self.last
            && last == file
        {
            return Some(number);
        }
        let number = *self.numbers.get(&file)?;
        self.last = Some((file, number));
        Some(number)
    }

    fn push(&mut self, item: Item, count: usize) {
        self.batch.push(item);
        self.gathered += count;
        let enough = if self.is_held_back { HELD } else { BATCH };
        if self.gathered >= enough {
            self.hand_over();
        }
    }
}

impl Sink for Recorder {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        let next = FileId(self.numbers.len() as u32);
        let number = *self.numbers.entry(id).or_insert(next);
        self.push(Item::File(number, Box::new(meta.clone())), 1);
    }

    fn grown(&mut self, _: FileId, _: &FileMeta) {}

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        self.push(Item::Thread(id, Box::new(meta.clone())), 1);
    }

    fn accesses(&mut self, mut sequence: Sequence) {
        let Some(number) = self.number_of(sequence.first.file) else {
            return;
        };
        sequence.first.file = number;
        self.accesses += sequence.count();
        let Access { kind, took, .. } = sequence.first;
        if kind.reads() || kind.names() {
            self.read_ns += took * sequence.count();
        }
        if kind.reads() {
            self.reads += sequence.count();
        } else if kind.names() {
            self.names += 1;
        }
        self.push(Item::Accesses(sequence), sequence.count() as usize);
    }
}

#[cfg(test)]
mod tests;
