//! The durable format: one record of one run, on disk.
//!
//! A record is a header naming the run, then frames: definitions of files and
//! threads, blocks of accesses in the order they were observed, and, when the run
//! ended well, an index of all definitions, a summary and a trailer. The bytes are
//! laid out in docs/format.md, which another decoder can be written from.
//!
//! Four properties hold everywhere in this module:
//!
//! - *Streaming.* Writer and reader hold one block (at most [`BLOCK_ACCESSES`]
//!   accesses) and the tables of files and threads, however long the record.
//! - *Every frame stands alone.* Each is checksummed, and a block of accesses is
//!   decoded from nothing but itself. A record cut short by a kill gives every
//!   access of every whole frame.
//! - *Memory is bounded.* A record has at most [`MAX_ID`] files, [`MAX_ID`] threads, [`MAX_PATHS`] bytes of paths and
//!   [`MAX_ACCESSES`] accesses, and its reader may be given a bound on the memory that its tables take
//!   ([`Reader::within`]). A record beyond a bound is refused as a whole, naming the value.
//! - *Input is not trusted.* Every length is checked against its limit, and against the rest of the file, before anything is allocated for
//!   it; a wrong byte ends reading with an error, never with a wrong access.
//!
//! Data flows `Access` → [`Writer`] → columns → zstd → frame → file
//! ([`RecordFile`] makes that file appear whole or not at all), and back through
//! [`Reader`].

mod columns;
mod definitions;
mod error;
mod frame;
mod handle;
mod model;
#[cfg(test)]
mod noise;
mod outline;
mod parts;
mod place;
mod reader;
mod record_file;
mod sample;
mod signatures;
mod writer;

pub use error::{Ending, ReadError, WriteError};
pub use handle::{FileView, Handle};
pub use outline::Outline;
pub use place::{Partial, Place};
pub use reader::Reader;
pub use record_file::{Ended, RecordFile, redefine};
pub use sample::{PartSample, Sample};
pub use signatures::Signature;
pub use writer::Writer;

/// The version of the format written here, and the newest that is read.
pub const VERSION: u16 = 6;

/// Accesses in one block, at most.
pub const BLOCK_ACCESSES: usize = 65_536;

/// Trace time one block covers, at most, in µs.
pub const BLOCK_SPAN_US: u64 = 1_000_000;

/// Length of a file's path or of a thread's executable, at most, in bytes.
pub const MAX_PATH: usize = 4096;

/// Files and threads are numbered below this, so that a record has at most this many of each.
pub const MAX_ID: u32 = 1 << 20;

/// All paths of a record together, at most, in bytes.
pub const MAX_PATHS: usize = 128 << 20;

/// Accesses of a record, at most.
pub const MAX_ACCESSES: u64 = 1 << 28;

/// Signatures of a record, at most.
pub const MAX_SIGNATURES: usize = 64;

/// All signatures of a record as JSON, at most, in bytes.
pub const MAX_SIGNATURES_BYTES: usize = 64 << 10;

/// Entries of a record's sample, at most: parts, disclosures and names.
pub const MAX_SAMPLE: usize = 1024;

/// Files that a record's sample defines, at most.
pub const MAX_SAMPLE_FILES: usize = 8192;

/// The head's JSON, at most, in bytes.
pub const MAX_META: usize = 1 << 20;
