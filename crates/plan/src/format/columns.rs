//! A block of accesses as columns of bytes, and back.
//!
//! Each access puts one byte into the head column: its kind, and which of the others it
//! needs. Numbers go to columns made of planes: one plane tells how many bytes each
//! number has, the next hold all lowest bytes, all second bytes, and so on. A plane's
//! bytes are alike, so each compresses close to its entropy: a random page number of
//! 18 bits takes 18 bits, a constant none.
//!
//! Lengths of all planes follow from the head column and the planes before them, so the
//! decoder checks them against the payload once, and then cannot run out.

use super::BLOCK_ACCESSES;
use super::frame::u32_at;
use super::model::{Model, Seen, apply, residual, unzigzag, zigzag};
use crate::{Access, Extent, FileId, Kind, ThreadId};

const KIND: u8 = 0x0f;
/// The offset's distance is in bytes, not pages.
const BYTES: u8 = 0x10;
/// The thread is not the previous access's.
const THREAD: u8 = 0x20;
/// The file is not the one this thread read before.
const FILE: u8 = 0x40;
/// The length is not the stream's previous one.
const LENGTH: u8 = 0x80;

const COLUMNS: usize = 6;
const THREADS: usize = 0;
const FILES: usize = 1;
const OFFSETS: usize = 2;
const LENGTHS: usize = 3;
const GAPS: usize = 4;
const TOOKS: usize = 5;

/// The most bytes an access can take before compression.
const ACCESS_RAW: usize = 1 + COLUMNS * 9;
const _: () = assert!(4 + BLOCK_ACCESSES * ACCESS_RAW <= super::frame::MAX_RAW);

/// Numbers, split by the significance of their bytes.
#[derive(Default)]
struct Column {
    sizes: Vec<u8>,
    planes: [Vec<u8>; 8],
}

impl Column {
    fn push(&mut self, mut value: u64) {
        let size = (u64::BITS - value.leading_zeros()).div_ceil(8);
        self.sizes.push(size as u8);
        for plane in &mut self.planes[..size as usize] {
            plane.push(value as u8);
            value >>= 8;
        }
    }

    fn clear(&mut self) {
        self.sizes.clear();
        self.planes.iter_mut().for_each(Vec::clear);
    }
}

/// Gathers accesses into a block.
#[derive(Default)]
pub(super) struct BlockEncoder {
    model: Model,
    count: [u8; 4],
    heads: Vec<u8>,
    columns: [Column; COLUMNS],
    raw_len: usize,
    /// Start of the block's first access, in µs.
    first: u64,
}

impl BlockEncoder {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Bytes the block has taken so far, before compression.
    pub(super) fn raw_len(&self) -> usize {
        self.raw_len
    }

    /// Start of the block's first access, in µs; 0 in an empty block.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn push(&mut self, access: &Access) {
        let seen = Seen {
            thread: access.thread.0,
            file: access.file.0,
            offset: access.extent.offset,
            len: access.extent.len,
            start: micros(access.start),
            took: micros(access.took),
        };
        if self.heads.is_empty() {
            self.first = seen.start;
        }
        let mut head = access.kind as u8;
        if seen.thread != self.model.last_thread {
            head |= THREAD;
            self.put(THREADS, u64::from(seen.thread));
        }
        let thread = self.model.thread(seen.thread);
        let (last_file, last_end) = (self.model.of(thread).file, self.model.of(thread).end);
        if seen.file != last_file {
            head |= FILE;
            self.put(FILES, zigzag(i64::from(seen.file) - i64::from(last_file)));
        }
        let stream = self.model.stream(thread, seen.thread, seen.file);
        let expected = self.model.expected(stream);
        let (bytes, distance) = residual(seen.offset, expected.offset);
        if bytes {
            head |= BYTES;
        }
        self.put(OFFSETS, distance);
        if seen.len != expected.len {
            head |= LENGTH;
            self.put(LENGTHS, seen.len);
        }
        self.put(GAPS, zigzag(seen.start.wrapping_sub(last_end) as i64));
        self.put(TOOKS, seen.took);
        self.heads.push(head);
        self.raw_len += 1;
        self.model.learn(thread, stream, &seen);
    }

    fn put(&mut self, column: usize, value: u64) {
        self.raw_len += 1 + (u64::BITS - value.leading_zeros()).div_ceil(8) as usize;
        self.columns[column].push(value);
    }

    /// The block's payload as the streams it is made of.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = &[u8]> + Clone {
        self.count = (self.heads.len() as u32).to_le_bytes();
        let columns = self.columns.iter().flat_map(|column| {
            std::iter::once(&column.sizes[..]).chain(column.planes.iter().map(|plane| &plane[..]))
        });
        [&self.count[..], &self.heads[..]]
            .into_iter()
            .chain(columns)
    }

    pub(super) fn clear(&mut self) {
        self.model.clear();
        self.heads.clear();
        self.columns.iter_mut().for_each(Column::clear);
        self.raw_len = 0;
        self.first = 0;
    }
}

/// Where a column's planes are in the payload, and how far each has been read.
#[derive(Clone, Copy, Default)]
struct Cursor {
    sizes: usize,
    planes: [usize; 8],
}

/// Gives back the accesses of a block, one at a time.
#[derive(Default)]
pub(super) struct BlockDecoder {
    model: Model,
    payload: Vec<u8>,
    columns: [Cursor; COLUMNS],
    /// Next access, and one past the last, as places in the head column.
    next: usize,
    end: usize,
}

impl BlockDecoder {
    /// Takes the block whose payload this is, leaving the previous one's buffer in its place.
    ///
    /// On an error the block is empty.
    pub(super) fn load(&mut self, payload: &mut Vec<u8>) -> Result<(), &'static str> {
        self.clear();
        std::mem::swap(&mut self.payload, payload);
        let payload = &self.payload[..];
        if payload.len() < 4 {
            return Err("the block is shorter than its count");
        }
        let count = u32_at(payload, 0) as usize;
        if count > BLOCK_ACCESSES {
            return Err("the block holds more accesses than the limit");
        }
        let heads = payload
            .get(4..4 + count)
            .ok_or("the block is shorter than its head column")?;
        let mut numbers = [count; COLUMNS];
        for (column, flag) in [(THREADS, THREAD), (FILES, FILE), (LENGTHS, LENGTH)] {
            numbers[column] = heads.iter().filter(|&head| head & flag != 0).count();
        }
        let mut at = 4 + count;
        for (cursor, numbers) in self.columns.iter_mut().zip(numbers) {
            let sizes = payload
                .get(at..at + numbers)
                .ok_or("the block is shorter than its columns")?;
            let mut with_size = [0usize; 9];
            for &size in sizes {
                *with_size
                    .get_mut(usize::from(size))
                    .ok_or("a number in the block is longer than 8 bytes")? += 1;
            }
            cursor.sizes = at;
            at += numbers;
            let mut longer = numbers;
            for (plane, exactly) in cursor.planes.iter_mut().zip(with_size) {
                longer -= exactly;
                *plane = at;
                at += longer;
            }
        }
        if at != payload.len() {
            return Err("the block's columns do not fill it");
        }
        self.next = 4;
        self.end = 4 + count;
        Ok(())
    }

    /// Forgets the block, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.model.clear();
        self.next = 0;
        self.end = 0;
    }

    /// The block's next access; `None` at its end.
    pub(super) fn next(&mut self) -> Option<Result<Access, &'static str>> {
        if self.next == self.end {
            return None;
        }
        let decoded = self.decode();
        if decoded.is_err() {
            self.clear();
        }
        Some(decoded)
    }

    fn decode(&mut self) -> Result<Access, &'static str> {
        let head = self.payload[self.next];
        self.next += 1;
        let kind = Kind::from_code(head & KIND).ok_or("an access has an unknown kind")?;
        let thread = if head & THREAD != 0 {
            id(self.take(THREADS)).ok_or("a thread's number is beyond the limit")?
        } else {
            self.model.last_thread
        };
        let thread_slot = self.model.thread(thread);
        let (last_file, last_end) = (
            self.model.of(thread_slot).file,
            self.model.of(thread_slot).end,
        );
        let file = if head & FILE != 0 {
            let change = unzigzag(self.take(FILES));
            id(i64::from(last_file).wrapping_add(change) as u64)
                .ok_or("a file's number is beyond the limit")?
        } else {
            last_file
        };
        let stream = self.model.stream(thread_slot, thread, file);
        let expected = self.model.expected(stream);
        let offset = apply(expected.offset, head & BYTES != 0, self.take(OFFSETS));
        let len = if head & LENGTH != 0 {
            self.take(LENGTHS)
        } else {
            expected.len
        };
        let start = last_end.wrapping_add(unzigzag(self.take(GAPS)) as u64);
        let took = self.take(TOOKS);
        let seen = Seen {
            thread,
            file,
            offset,
            len,
            start,
            took,
        };
        self.model.learn(thread_slot, stream, &seen);
        Ok(Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(thread),
            kind,
            start: start.saturating_mul(1000),
            took: took.saturating_mul(1000),
        })
    }

    fn take(&mut self, column: usize) -> u64 {
        let cursor = &mut self.columns[column];
        let size = usize::from(self.payload[cursor.sizes]);
        cursor.sizes += 1;
        let mut value = 0;
        for (place, plane) in cursor.planes[..size].iter_mut().enumerate() {
            value |= u64::from(self.payload[*plane]) << (8 * place);
            *plane += 1;
        }
        value
    }
}

fn id(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|&id| id < super::MAX_ID)
}

/// Nanoseconds to the nearest µs.
pub(super) fn micros(nanos: u64) -> u64 {
    nanos / 1000 + u64::from(nanos % 1000 >= 500)
}
