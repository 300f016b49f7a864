//! Files and threads, as rows of bytes in definition frames, and the tables they fill.
//!
//! A later definition of a number replaces an earlier one. The tables enforce the format's limits when writing and when reading, so
//! everything written can be read. No record makes its reader use more than the limits permit, nor more memory than the reader was given.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::frame::{FrameWriter, Tag};
use super::model::{unzigzag, zigzag};
use super::{MAX_ID, MAX_PATH, MAX_PATHS, WriteError};
use crate::{Advice, FileId, FileMeta, ThreadId, ThreadMeta};

/// A row without its path, at most, in bytes: the numbers of a file.
const ROW_RAW: usize = 5 + 2 + 2 + 4 * 10 + 1;

/// Marks of a file: written, directory, and one order of reads, if any.
const WRITTEN: u8 = 1;
const RANDOM: u8 = 2;
const SEQUENTIAL: u8 = 4;
const DROPPED: u8 = RANDOM | SEQUENTIAL;
const DIRECTORY: u8 = 8;

/// Rows gathered for one definition frame, at most, in bytes (one more row may follow).
const ROWS_RAW: usize = 1 << 20;

/// Memory of a definition without its path, in bytes. A million files with paths of one byte took 151 bytes each (`tests/memory.rs`),
/// including the allocator's own; that allocator is exact, others round up.
pub(super) const HELD: u64 = 224;

/// The definitions of a record.
pub(super) struct Tables {
    pub(super) files: Arc<BTreeMap<FileId, FileMeta>>,
    pub(super) threads: BTreeMap<ThreadId, ThreadMeta>,
    /// Bytes of all paths held.
    paths: usize,
    /// Limit of the tables' memory, in bytes.
    memory: u64,
}

impl Default for Tables {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

/// A value is beyond a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beyond {
    pub(super) what: &'static str,
    pub(super) value: u64,
    pub(super) limit: u64,
}

impl From<Beyond> for WriteError {
    fn from(Beyond { what, value, limit }: Beyond) -> Self {
        WriteError::Limit { what, value, limit }
    }
}

impl Tables {
    /// Empty tables with a limit of memory in bytes.
    pub(super) fn within(memory: u64) -> Self {
        Self {
            files: Arc::default(),
            threads: BTreeMap::new(),
            paths: 0,
            memory,
        }
    }

    pub(super) fn define_file(&mut self, id: FileId, meta: FileMeta) -> Result<(), Beyond> {
        let new = meta.path.as_os_str().len();
        let old = self
            .files
            .get(&id)
            .map_or(0, |old| old.path.as_os_str().len());
        self.paths = self.checked("a file's number", id.0, old, new)?;
        // Not shared while definitions come.
        Arc::make_mut(&mut self.files).insert(id, meta);
        Ok(())
    }

    pub(super) fn define_thread(&mut self, id: ThreadId, meta: ThreadMeta) -> Result<(), Beyond> {
        let old = self.threads.get(&id).map_or(0, |old| old.exe.len());
        self.paths = self.checked("a thread's number", id.0, old, meta.exe.len())?;
        self.threads.insert(id, meta);
        Ok(())
    }

    /// The memory that the tables may take, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Size of all rows before compression at most, in bytes.
    pub(super) fn raw_bound(&self) -> u64 {
        (self.paths + (self.files.len() + self.threads.len()) * ROW_RAW) as u64
    }

    /// Approximate memory of the tables, in bytes.
    pub(super) fn held(&self) -> u64 {
        let rows = (self.files.len() + self.threads.len()) as u64;
        rows * HELD + self.paths as u64
    }

    /// The bytes of all paths once one of `old` bytes is replaced by one of `new`.
    fn checked(
        &self,
        what: &'static str,
        id: u32,
        old: usize,
        new: usize,
    ) -> Result<usize, Beyond> {
        limit(what, id as usize, MAX_ID as usize - 1)?;
        limit("a path's length in bytes", new, MAX_PATH)?;
        let paths = self.paths - old + new;
        limit("the length of all paths in bytes", paths, MAX_PATHS)?;
        let held = self.held() + HELD + new as u64;
        within(
            "the memory for its files and threads in bytes",
            held,
            self.memory,
        )?;
        Ok(paths)
    }
}

/// `Ok` if `value` is at most `limit`.
pub(super) fn limit(what: &'static str, value: usize, limit: usize) -> Result<(), Beyond> {
    within(what, value as u64, limit as u64)
}

/// [`limit`] of wider values.
pub(super) fn within(what: &'static str, value: u64, limit: u64) -> Result<(), Beyond> {
    if value <= limit {
        return Ok(());
    }
    Err(Beyond { what, value, limit })
}

/// A fault of definitions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flaw {
    Damage(&'static str),
    Beyond(Beyond),
}

impl From<&'static str> for Flaw {
    fn from(what: &'static str) -> Self {
        Flaw::Damage(what)
    }
}

impl From<Beyond> for Flaw {
    fn from(beyond: Beyond) -> Self {
        Flaw::Beyond(beyond)
    }
}

/// Definitions on their way into frames.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) files: RowEncoder,
    pub(super) threads: RowEncoder,
}

impl Rows {
    /// Size of the gathered rows, in bytes.
    pub(super) fn len(&self) -> usize {
        self.files.bytes.len() + self.threads.bytes.len()
    }

    /// Writes the gathered rows if they fill a frame; returns its size in bytes.
    pub(super) fn put_full(
        &mut self,
        out: &mut impl Write,
        frames: &mut FrameWriter,
    ) -> io::Result<u64> {
        if self.len() < ROWS_RAW {
            return Ok(0);
        }
        self.put(out, frames)
    }

    /// Writes the gathered rows; returns the size in bytes.
    pub(super) fn put(
        &mut self,
        out: &mut impl Write,
        frames: &mut FrameWriter,
    ) -> io::Result<u64> {
        let mut written = 0;
        for (tag, rows) in [
            (Tag::Files, &mut self.files),
            (Tag::Threads, &mut self.threads),
        ] {
            if !rows.bytes.is_empty() {
                written += frames.write(out, tag, std::iter::once(&rows.bytes[..]))?;
                rows.clear();
            }
        }
        Ok(written)
    }
}

/// Rows of one definition frame. Each row omits the fields that it shares with the row before.
#[derive(Default)]
pub(super) struct RowEncoder {
    bytes: Vec<u8>,
    last_id: u32,
    last_path: Vec<u8>,
}

impl RowEncoder {
    pub(super) fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.row(id.0, meta.path.as_os_str().as_bytes());
        put(&mut self.bytes, meta.dev);
        put(&mut self.bytes, meta.ino);
        put(&mut self.bytes, meta.size);
        put(&mut self.bytes, zigzag(meta.mtime_ns));
        let order = match meta.advice {
            Advice::Normal => 0,
            Advice::Random => RANDOM,
            Advice::Sequential => SEQUENTIAL,
            Advice::Dropped => DROPPED,
        };
        let mark = |is_so, mark| if is_so { mark } else { 0 };
        self.bytes
            .push(mark(meta.written, WRITTEN) | mark(meta.directory, DIRECTORY) | order);
    }

    pub(super) fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        self.row(id.0, meta.exe.as_bytes());
        put(&mut self.bytes, u64::from(meta.pid));
        put(&mut self.bytes, u64::from(meta.tid));
        put(&mut self.bytes, u64::from(meta.ppid));
    }

    fn row(&mut self, id: u32, path: &[u8]) {
        let shared = self
            .last_path
            .iter()
            .zip(path)
            .take_while(|(a, b)| a == b)
            .count();
        put(
            &mut self.bytes,
            zigzag(i64::from(id) - i64::from(self.last_id)),
        );
        put(&mut self.bytes, shared as u64);
        put(&mut self.bytes, (path.len() - shared) as u64);
        self.bytes.extend_from_slice(&path[shared..]);
        self.last_id = id;
        self.last_path.truncate(shared);
        self.last_path.extend_from_slice(&path[shared..]);
    }

    /// The gathered rows.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.last_id = 0;
        self.last_path.clear();
    }
}

/// Adds the files of one frame to `tables`.
pub(super) fn decode_files(payload: &[u8], tables: &mut Tables) -> Result<(), Flaw> {
    take_files(&mut RowDecoder::new(payload), tables)
}

/// Adds the files in the rest of a frame to `tables`.
pub(super) fn take_files(rows: &mut RowDecoder<'_>, tables: &mut Tables) -> Result<(), Flaw> {
    while let Some(id) = rows.row()? {
        let path = PathBuf::from(OsStr::from_bytes(&rows.last_path));
        let mut meta = FileMeta::regular(
            path,
            (rows.take()?, rows.take()?),
            rows.take()?,
            unzigzag(rows.take()?),
        );
        let marks = rows.byte()?;
        meta.written = marks & WRITTEN != 0;
        meta.directory = marks & DIRECTORY != 0;
        meta.advice = match marks & !(WRITTEN | DIRECTORY) {
            0 => Advice::Normal,
            RANDOM => Advice::Random,
            SEQUENTIAL => Advice::Sequential,
            DROPPED => Advice::Dropped,
            _ => return Err("a file has unknown marks".into()),
        };
        tables.define_file(FileId(id), meta)?;
    }
    Ok(())
}

/// Adds the threads of one frame to `tables`.
pub(super) fn decode_threads(payload: &[u8], tables: &mut Tables) -> Result<(), Flaw> {
    let mut rows = RowDecoder::new(payload);
    while let Some(id) = rows.row()? {
        let exe = str::from_utf8(&rows.last_path)
            .map_err(|_| "an executable's path is not UTF-8")?
            .to_owned();
        let meta = ThreadMeta {
            exe,
            pid: rows.take_u32()?,
            tid: rows.take_u32()?,
            ppid: rows.take_u32()?,
        };
        tables.define_thread(ThreadId(id), meta)?;
    }
    Ok(())
}

/// The rest of a payload of rows.
pub(super) struct RowDecoder<'p> {
    rest: &'p [u8],
    last_id: u32,
    last_path: Vec<u8>,
}

const CUT: &str = "a definition is cut short";

impl<'p> RowDecoder<'p> {
    pub(super) fn new(payload: &'p [u8]) -> Self {
        Self {
            rest: payload,
            last_id: 0,
            last_path: Vec::new(),
        }
    }

    /// Starts the next row: its number; its path is in `last_path`.
    fn row(&mut self) -> Result<Option<u32>, &'static str> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let change = unzigzag(self.take()?);
        let id = u32::try_from(i64::from(self.last_id).wrapping_add(change))
            .map_err(|_| "a definition's number is beyond the limit")?;
        let shared = self.take()?;
        let fresh = self.take()?;
        if shared > self.last_path.len() as u64 {
            return Err("a path shares more than the previous one has");
        }
        if fresh > MAX_PATH as u64 {
            return Err("a path is longer than the limit");
        }
        let (fresh, rest) = self.rest.split_at_checked(fresh as usize).ok_or(CUT)?;
        self.rest = rest;
        self.last_path.truncate(shared as usize);
        self.last_path.extend_from_slice(fresh);
        if self.last_path.len() > MAX_PATH {
            return Err("a path is longer than the limit");
        }
        self.last_id = id;
        Ok(Some(id))
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let (&byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(super) fn take(&mut self) -> Result<u64, &'static str> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number is longer than 64 bits")
    }

    /// A file's number.
    pub(super) fn take_id(&mut self) -> Result<u32, &'static str> {
        let id = u32::try_from(self.take()?).ok();
        id.filter(|&id| id < MAX_ID)
            .ok_or("a file's number is beyond the limit")
    }

    fn take_u32(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.take()?).map_err(|_| "a process id is longer than 32 bits")
    }
}

/// Appends `value` as LEB128: seven bits a byte, the lowest first.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::noise::mutate;

    #[test]
    fn mutated_definitions_stay_within_the_limits_and_never_panic() {
        let mut files = RowEncoder::default();
        let mut threads = RowEncoder::default();
        for n in 0..12u32 {
            let path = PathBuf::from(format!("/usr/share/data/{}", "x".repeat(n as usize)));
            let meta = FileMeta {
                written: n % 2 == 0,
                advice: [
                    Advice::Normal,
                    Advice::Random,
                    Advice::Sequential,
                    Advice::Dropped,
                ][n as usize % 4],
                directory: n % 4 == 1,
                ..FileMeta::regular(path, (64_769, u64::MAX - u64::from(n)), 1 << n, -1)
            };
            files.file(FileId(n * 1_000), &meta);
            let meta = ThreadMeta {
                pid: n,
                tid: u32::MAX,
                ppid: 1,
                exe: format!("/usr/bin/programme-{n}"),
            };
            threads.thread(ThreadId(n), &meta);
        }
        let mut noise = fastrand::Rng::with_seed(3);
        let (mut good, mut bad) = (0, 0);
        for _ in 0..60_000 {
            let mut tables = Tables::default();
            for outcome in [
                decode_files(&mutate(&files.bytes, &mut noise), &mut tables),
                decode_threads(&mutate(&threads.bytes, &mut noise), &mut tables),
            ] {
                *(if outcome.is_ok() { &mut good } else { &mut bad }) += 1;
            }
            assert!(tables.files.keys().all(|id| id.0 < MAX_ID));
            assert!(tables.threads.keys().all(|id| id.0 < MAX_ID));
            let paths = tables
                .files
                .values()
                .map(|file| file.path.as_os_str().len());
            assert!(paths.max().unwrap_or(0) <= MAX_PATH);
        }
        assert!(good > 1_000 && bad > 1_000);
    }

    #[test]
    fn all_paths_together_are_bounded() {
        let mut tables = Tables::default();
        let meta = |length| ThreadMeta {
            pid: 1,
            tid: 1,
            ppid: 0,
            exe: "e".repeat(length),
        };
        let fitting = (MAX_PATHS / MAX_PATH) as u32;
        for n in 0..fitting {
            tables.define_thread(ThreadId(n), meta(MAX_PATH)).unwrap();
        }
        let beyond = tables.define_thread(ThreadId(fitting), meta(1));
        let Err(Beyond { value, limit, .. }) = beyond else {
            panic!("taken");
        };
        assert_eq!((value, limit), (MAX_PATHS as u64 + 1, MAX_PATHS as u64));
        // A shorter path in place of a longer one makes room.
        tables.define_thread(ThreadId(0), meta(10)).unwrap();
        tables.define_thread(ThreadId(fitting), meta(1)).unwrap();
    }

    #[test]
    fn numbers_longer_than_64_bits_are_refused() {
        let mut longest = Vec::new();
        put(&mut longest, u64::MAX);
        assert_eq!(RowDecoder::new(&longest).take(), Ok(u64::MAX));
        *longest.last_mut().unwrap() = 2;
        assert!(RowDecoder::new(&longest).take().is_err());
        assert!(RowDecoder::new(&[0x80; 11]).take().is_err());
    }
}
