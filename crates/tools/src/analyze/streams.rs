//! The accesses of a trace, told apart: a stream is what one process, thread or rank reads of one file, or writes to it.
//!
//! A read that came back empty says where, and not how much, the program wanted. Where such reads are in line with the
//! one after them they are taken to have its length, and are noted as exceptions: the pattern is what the program asks for.
//!
//! Invariant: the recognisers together keep at most [`MOST_STRANGE`] reads that were not foretold; a stream that is at
//! [`STRANGE`] of them, or that comes when there is no more room, is only counted.

use std::collections::HashMap;

use foreread_plan::{Extent, FileId};
use foreread_sources::signature::{Builder, Limits, Times, Trace};
use foreread_traces::{Access, Operation, WhoId};

/// Accesses of one stream that were not foretold, after which its signature is given up: written down it would be as
/// long as the trace. A term takes about 80 bytes, so that this is 5 MiB.
const STRANGE: u32 = 1 << 16;
/// The same of all streams together: 80 MiB.
const MOST_STRANGE: u64 = 1 << 20;

/// Empty accesses in a row that wait for the one after them, at most.
const WAITING: usize = 16;

/// What one process, thread or rank reads of one file, or writes to it.
pub(crate) struct Stream {
    pub(crate) who: WhoId,
    pub(crate) file: FileId,
    pub(crate) operation: Operation,
    /// Accesses.
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Bytes of the trace that describe them.
    pub(crate) raw: u64,
    builder: Option<Builder>,
    /// When the accesses began; nothing in a trace without times.
    pub(crate) times: Times,
    /// Where the last accesses were, which all came back empty.
    waiting: Vec<u64>,
    /// Accesses that the recogniser has seen.
    seen: u64,
    /// Which accesses, counted from 0, the pattern has and the trace has as empty ones.
    pub(crate) empty: Vec<u64>,
    /// Accesses that were not foretold, and exceptions.
    strange: u32,
    /// The signature; `None` if it was given up.
    pub(crate) trace: Option<Trace>,
}

impl Stream {
    /// Takes an access; how many more were not foretold or are exceptions.
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

    /// Has the recogniser see the empty accesses that wait, with the length of the next one where they lead up to it.
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

    /// Turns what the recognisers know into signatures.
    pub(crate) fn finish(&mut self) {
        self.numbers = HashMap::new();
        for stream in &mut self.all {
            stream.settle(None);
            stream.trace = stream.builder.take().map(Builder::finish);
        }
    }
}
