//! fio's iologs, version 2: the input of `fio --read_iolog=FILE`.
//!
//! A line is `FILE ACTION` or `FILE ACTION OFFSET LENGTH`. fio reads its names by `scanf("%256s")`, so they have no space and at most 255
//! bytes. fio keeps files open as the log opens and closes them: at most [`OPEN`] at a time. Pauses are not in the log: fio reads as fast
//! as it can.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foreread_plan::Extent;
use lru::LruCache;
use rustc_hash::FxHashSet;

use crate::Line;

/// The first line.
const HEAD: &[u8] = b"fio version 2 iolog\n";
/// Files open at the same time, below the default limit of a process (1024).
const OPEN: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Bytes of one read: fio takes a buffer as large as the largest.
const PIECE: u64 = 1 << 20;
/// Bytes of a name.
const NAME: usize = 255;

/// Writes a log.
pub(crate) struct Log {
    added: FxHashSet<PathBuf>,
    open: LruCache<PathBuf, ()>,
}

impl Log {
    pub(crate) fn new(out: &mut impl Write) -> io::Result<Self> {
        out.write_all(HEAD)?;
        Ok(Self {
            added: FxHashSet::default(),
            open: LruCache::new(OPEN),
        })
    }

    /// Why a log cannot hold a path, if it cannot.
    pub(crate) fn refuses(path: &Path) -> Option<&'static str> {
        let name = path.as_os_str().as_bytes();
        if name.iter().any(|byte| b" \t\n\r\x0b\x0c".contains(byte)) {
            Some("fio's logs end a name at a space or a newline")
        } else if name.len() > NAME {
            Some("fio's logs hold no name of more than 255 bytes")
        } else {
            None
        }
    }

    /// Writes a read; for a file without a known extent, of this size.
    pub(crate) fn line(&mut self, out: &mut impl Write, line: &Line) -> io::Result<()> {
        // fio takes a read that ends beyond the file for an error.
        let whole = Extent::new(0, line.state.size.unwrap_or(0));
        let extent = match (line.extent, line.state.size) {
            (Some(extent), Some(size)) => extent.clipped(size),
            (Some(extent), None) => extent,
            (None, _) => whole,
        };
        let (mut at, end) = (extent.offset, extent.end());
        if at >= end {
            return Ok(());
        }
        if self.added.insert(line.path.clone()) {
            action(out, &line.path, "add")?;
        }
        if self.open.get(&line.path).is_none() {
            let closed = self.open.push(line.path.clone(), ());
            if let Some((closed, ())) = closed {
                action(out, &closed, "close")?;
            }
            action(out, &line.path, "open")?;
        }
        while at < end {
            let len = (end - at).min(PIECE);
            action(out, &line.path, &format!("read {at} {len}"))?;
            at += len;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        while let Some((path, ())) = self.open.pop_lru() {
            action(out, &path, "close")?;
        }
        Ok(())
    }
}

fn action(out: &mut impl Write, path: &Path, action: &str) -> io::Result<()> {
    out.write_all(path.as_os_str().as_bytes())?;
    writeln!(out, " {action}")
}
