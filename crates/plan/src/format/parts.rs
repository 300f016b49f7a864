//! The parts of a record's envelope, read one by one, and their faults.

use std::io::{self, Read};
use std::path::Path;

use super::definitions::{Beyond, Flaw};
use super::frame::{self, HEAD_LEN, HEADER_FIXED, Head, MAGIC};
use super::{MAX_META, ReadError, VERSION};
use crate::Meta;

/// Why a step of reading failed: the system, or the record.
pub(super) enum Fault {
    Io(io::Error),
    Damaged(&'static str),
    Beyond(Beyond),
    Truncated,
}

impl Fault {
    /// The error for a fault in the record at `path`, in the frame at byte `offset`.
    pub(super) fn at(self, path: &Path, offset: u64) -> ReadError {
        let path = path.to_owned();
        match self {
            Fault::Io(source) => ReadError::Io { path, source },
            Fault::Damaged(what) => ReadError::Damaged { path, offset, what },
            Fault::Beyond(Beyond { what, value, limit }) => ReadError::Limit {
                path,
                what,
                value,
                limit,
            },
            Fault::Truncated => ReadError::Damaged {
                path,
                offset,
                what: "the file has shrunk",
            },
        }
    }
}

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::Damage(what) => Fault::Damaged(what),
            Flaw::Beyond(beyond) => Fault::Beyond(beyond),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        // Sizes were checked before: the file has shrunk since it was opened.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Fault::Truncated;
        }
        Fault::Io(error)
    }
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Self {
        Fault::Damaged(what)
    }
}

/// Reads and checks the head of the frame at `at`, which must end at `end` at the latest.
pub(super) fn read_head(input: &mut impl Read, at: u64, end: u64) -> Result<Head, Fault> {
    if end - at < HEAD_LEN as u64 {
        return Err(Fault::Truncated);
    }
    let mut bytes = [0; HEAD_LEN];
    input.read_exact(&mut bytes)?;
    let head = Head::decode(bytes)?;
    if end - at < frame_len(&head) {
        return Err(Fault::Truncated);
    }
    Ok(head)
}

pub(super) fn frame_len(head: &Head) -> u64 {
    (HEAD_LEN + head.stored_len) as u64
}

/// Reads the header: the run's description, and the offset of the first frame.
pub(super) fn read_header(
    input: &mut impl Read,
    size: u64,
    path: &Path,
) -> Result<(Meta, u64), ReadError> {
    let io_error = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let damaged = |what| ReadError::Damaged {
        path: path.to_owned(),
        offset: 0,
        what,
    };
    let headless = ReadError::Headless {
        path: path.to_owned(),
        size,
    };

    let mut fixed = Vec::with_capacity(HEADER_FIXED);
    let mut head = input.take(HEADER_FIXED as u64);
    head.read_to_end(&mut fixed).map_err(io_error)?;
    let magic = fixed.len().min(MAGIC.len());
    if fixed[..magic] != MAGIC[..magic] {
        return Err(ReadError::Foreign {
            path: path.to_owned(),
        });
    }
    if fixed.len() < MAGIC.len() + 2 {
        return Err(headless);
    }
    let version = u16::from_le_bytes([fixed[8], fixed[9]]);
    if version > VERSION {
        return Err(ReadError::Future {
            path: path.to_owned(),
            version,
        });
    }
    if fixed.len() < HEADER_FIXED {
        return Err(headless);
    }
    if version == 0 {
        return Err(damaged("there is no format version 0"));
    }
    let meta_len = frame::u32_at(&fixed, 12) as usize;
    if meta_len > MAX_META {
        return Err(damaged("the run's description is longer than the limit"));
    }
    let start = (HEADER_FIXED + meta_len + 4) as u64;
    if start > size {
        return Err(headless);
    }
    let mut rest = vec![0; meta_len + 4];
    input.read_exact(&mut rest).map_err(io_error)?;
    if frame::checksum(&fixed, &rest[..meta_len]) != frame::u32_at(&rest, meta_len) {
        return Err(damaged("the header does not match its checksum"));
    }
    let meta = serde_json::from_slice(&rest[..meta_len])
        .map_err(|_| damaged("the run's description is not understood"))?;
    Ok((meta, start))
}
