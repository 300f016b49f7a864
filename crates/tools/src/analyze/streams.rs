//! Accesses of a trace, split into streams. A stream has the reads or the writes of one file by one process, thread or rank.
//!
//! A read at the end of a file returns no bytes, so the trace has its offset and not its length. If such reads fit the pattern of the read
//! after them, they get that read's length and are noted as exceptions: the pattern describes what the program asks for.
//!
//! Invariant: all recognisers together keep at most [`MOST_STRANGE`] unpredicted reads. A stream with [`STRANGE`] of them, or a new stream
//! when no room is left, is only counted.

use std::collections::HashMap;

use foreread_plan::{Extent, FileId};
use foreread_sources::signature::{Builder, Limits, Times, Trace};
use foreread_traces::{Access, Operation, WhoId};

/// A stream's signature is given up after this many unpredicted accesses: its text would be as long as the trace. A term takes about 80
/// bytes, so the limit is 5 MiB.
const STRANGE: u32 = 1 << 16;
/// The same limit for all streams together: 80 MiB.
const MOST_STRANGE: u64 = 1 << 20;

/// Consecutive empty accesses that are kept until a later access shows their length.
const WAITING: usize = 16;

/// The reads or the writes of one file by one process, thread or rank.
pub(crate) struct Stream {
    pub(crate) who: WhoId,
    pub(crate) file: FileId,
    pub(crate) operation: Operation,
    /// Number of accesses.
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Raw bytes of these accesses in the trace.
    pub(crate) raw: u64,
    builder: Option<Builder>,
    /// Start times of the accesses; empty in a trace without times.
    pub(crate) times: Times,
    /// Offsets of the latest accesses, all empty, whose lengths are still unknown.
    waiting: Vec<u64>,
    /// Number of accesses given to the recogniser.
    seen: u64,
    /// Exceptions: accesses of the pattern, counted from 0, that returned no bytes.
    pub(crate) empty: Vec<u64>,
    /// Number of unpredicted accesses and exceptions.
    strange: u32,
    /// The signature; `None` if it grew too long.
    pub(crate) trace: Option<Trace>,
}

impl Stream {
    /// Adds an access. Returns the number of new unpredicted accesses and exceptions.
    fn learn(&mut self, extent: Extent) -> u64 {
        let before = self.strange;
        if extent.is_empty() && self.waiting.len() < WAITING {
            self.waiting.push(extent.offset);
        } else {
            self.settle(Some(extent));
            self.push(extent);
        }
        u64::from(self.strange.saturating_sub(before))
    }

    /// Gives the waiting empty accesses to the recogniser, with the length of the next access if they fit its pattern.
    fn settle(&mut self, next: Option<Extent>) {
        let waiting = std::mem::take(&mut self.waiting);
        let len = next.map_or(0, |next| next.len);
        let mut behind = next.map(|next| next.offset);
        let in_line = waiting.iter().rev().take_while(|offset| {
            let leads = len > 0 && offset.checked_add(len) == behind;
            behind = Some(**offset);
            leads
        });
        let alone = waiting.len() - in_line.count();
        for (index, offset) in waiting.into_iter().enumerate() {
            if index < alone {
                self.push(Extent::new(offset, 0));
            } else {
                self.empty.push(self.seen);
                self.strange += 1;
                self.push(Extent::new(offset, len));
            }
        }
    }

    fn push(&mut self, extent: Extent) {
        let Some(builder) = &mut self.builder else {
            return;
        };
        self.seen += 1;
        builder.push(extent);
        self.strange += u32::from(builder.confirmed() == 0);
    }

    fn give_up(&mut self) {
        self.builder = None;
        self.waiting = Vec::new();
        self.empty = Vec::new();
        self.strange = 0;
    }
}

/// The streams of all traces.
#[derive(Default)]
pub(crate) struct Streams {
    numbers: HashMap<(WhoId, FileId, Operation), usize>,
    pub(crate) all: Vec<Stream>,
    strange: u64,
}

impl Streams {
    pub(crate) fn add(&mut self, access: &Access) {
        let key = (access.who, access.file, access.operation);
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.all.push(Stream {
                who: access.who,
                file: access.file,
                operation: access.operation,
                count: 0,
                bytes: 0,
                raw: 0,
                builder: Some(Builder::new(Limits::OFFLINE)),
                times: Times::default(),
                waiting: Vec::new(),
                seen: 0,
                empty: Vec::new(),
                strange: 0,
                trace: None,
            });
            self.all.len() - 1
        });
        let stream = &mut self.all[number];
        stream.count += 1;
        stream.bytes = stream.bytes.saturating_add(access.extent.len);
        stream.raw += u64::from(access.raw);
        if access.start > 0 {
            stream.times.push(access.start);
        }
        if stream.builder.is_none() {
            return;
        }
        self.strange += stream.learn(access.extent);
        if stream.strange >= STRANGE || self.strange >= MOST_STRANGE {
            self.strange -= u64::from(stream.strange);
            stream.give_up();
        }
    }

    /// Finishes all recognisers and stores their signatures.
    pub(crate) fn finish(&mut self) {
        self.numbers = HashMap::new();
        for stream in &mut self.all {
            stream.settle(None);
            stream.trace = stream.builder.take().map(Builder::finish);
        }
    }
}
