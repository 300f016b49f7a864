//! Looks a record through without reading what it tells: every frame against its checksum.
//!
//! That takes 1 ns a read; decoding it takes many times as long.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::frame::{self, HEAD_LEN, HEADER_FIXED, Head, TRAILER_LEN};
use super::{Ending, ReadError, Reader};

/// Looks for damage in the record at `path`, in all of it. One that is only cut short is not damaged.
///
/// # Errors
/// As [`Reader::open`], and [`ReadError::Damaged`] with the first frame that is not what was written.
pub fn check(path: &Path) -> Result<(), ReadError> {
    let damaged = |offset, what| ReadError::Damaged {
        path: path.to_owned(),
        offset,
        what,
    };
    let reader = Reader::open(path)?;
    let end = match *reader.ending() {
        Ending::Complete => reader.size_bytes() - TRAILER_LEN as u64,
        Ending::Truncated { at } => at,
        Ending::Damaged { at, why } => return Err(damaged(at, why)),
    };
    match first_damage(path, end) {
        Ok(None) => Ok(()),
        Ok(Some((at, what))) => Err(damaged(at, what)),
        Err(source) => Err(ReadError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The first frame before `end` that is not what was written, and what is wrong with it.
fn first_damage(path: &Path, end: u64) -> io::Result<Option<(u64, &'static str)>> {
    let mut input = BufReader::new(File::open(path)?);
    let mut header = [0; HEADER_FIXED];
    input.read_exact(&mut header)?;
    let mut at = HEADER_FIXED as u64 + u64::from(frame::u32_at(&header, 12)) + 4;
    input.seek(SeekFrom::Start(at))?;
    let mut bytes = [0; HEAD_LEN];
    let mut stored = Vec::new();
    while at < end {
        if end - at < HEAD_LEN as u64 {
            return Ok(Some((at, "no frame begins here")));
        }
        input.read_exact(&mut bytes)?;
        let head = match Head::decode(bytes) {
            Ok(head) => head,
            Err(what) => return Ok(Some((at, what))),
        };
        let next = at + (HEAD_LEN + head.stored_len) as u64;
        if next > end {
            return Ok(Some((at, "the frame reaches past the record's end")));
        }
        stored.resize(head.stored_len, 0);
        input.read_exact(&mut stored)?;
        if !head.fits(&stored) {
            return Ok(Some((at, "the frame does not match its checksum")));
        }
        at = next;
    }
    Ok(None)
}
