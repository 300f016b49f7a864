//! The accesses of a trace, told apart: a stream is what one process, thread or rank reads of one file, or writes to it.
//!
//! Invariant: the recognisers together keep at most [`MOST_STRANGE`] reads that were not foretold; a stream that is at
//! [`STRANGE`] of them, or that comes when there is no more room, is only counted.

use std::collections::HashMap;

use foreread_plan::FileId;
use foreread_sources::signature::{Builder, Limits, Trace};
use foreread_traces::{Access, Operation, WhoId};

/// Accesses of one stream that were not foretold, after which its signature is given up: written down it would be as
/// long as the trace. A term takes about 80 bytes, so that this is 5 MiB.
const STRANGE: u32 = 1 << 16;
/// The same of all streams together: 80 MiB.
const MOST_STRANGE: u64 = 1 << 20;

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
    /// Accesses that were not foretold.
    strange: u32,
    /// The signature; `None` if it was given up.
    pub(crate) trace: Option<Trace>,
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
                strange: 0,
                trace: None,
            });
            self.all.len() - 1
        });
        let stream = &mut self.all[number];
        stream.count += 1;
        stream.bytes = stream.bytes.saturating_add(access.extent.len);
        stream.raw += u64::from(access.raw);
        let Some(builder) = &mut stream.builder else {
            return;
        };
        builder.push(access.extent);
        if builder.confirmed() == 0 {
            stream.strange += 1;
            self.strange += 1;
            if stream.strange >= STRANGE || self.strange >= MOST_STRANGE {
                self.strange -= u64::from(stream.strange);
                stream.builder = None;
            }
        }
    }

    /// Turns what the recognisers know into signatures.
    pub(crate) fn finish(&mut self) {
        self.numbers = HashMap::new();
        for stream in &mut self.all {
            stream.trace = stream.builder.take().map(Builder::finish);
        }
    }
}
