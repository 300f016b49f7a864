//! A block of accesses as columns of bytes, and back.
//!
//! Each access puts one byte into the head column: its kind, and which of the others it
//! needs. Numbers go to columns, and a column is stored as planes: all lowest bytes, then
//! all second bytes, up to the widest number of the block. A plane's bytes are alike, so
//! each compresses close to its entropy: a random page number of 18 bits takes 18 bits, a
//! constant none, and neither does a plane of zeros with a rare exception.
//!
//! The lengths of all planes follow from the count, the widths and the head column, so
//! the decoder checks them against the payload once, and then cannot run out.

use super::BLOCK_ACCESSES;
use super::frame::u32_at;
use super::model::{Model, Seen, apply, residual, unzigzag, zigzag};
use crate::{Access, Extent, FileId, Kind, ThreadId};

const KIND: u8 = 0x0f;
/// The offset's distance is in bytes, not pages.
const BYTES: u8 = 0x10;
/// The thread is not the previous access's.
const THREAD: u8 = 0x20;
/// The file differs from this thread's previous one.
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

/// The count, and the width of each column in bytes.
const PREFIX: usize = 4 + COLUMNS;

/// The most bytes an access can take before compression.
const ACCESS_RAW: usize = 1 + COLUMNS * 8;
const _: () = assert!(PREFIX + BLOCK_ACCESSES * ACCESS_RAW <= super::frame::MAX_RAW);

/// Numbers that will be stored as planes.
#[derive(Default)]
struct Column {
    numbers: Vec<u64>,
    /// All numbers, or-ed.
    bits: u64,
}

impl Column {
    fn push(&mut self, number: u64) {
        self.numbers.push(number);
        self.bits |= number;
    }

    /// Bytes of the widest number.
    fn width(&self) -> usize {
        (u64::BITS - self.bits.leading_zeros()).div_ceil(8) as usize
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.bits = 0;
    }
}

/// Gathers accesses into a block.
#[derive(Default)]
pub(super) struct BlockEncoder {
    model: Model,
    heads: Vec<u8>,
    columns: [Column; COLUMNS],
    /// Prefix and planes, filled when the block is put out.
    prefix: Vec<u8>,
    planes: Vec<u8>,
    /// Start of the block's first access, in µs.
    first: u64,
}

impl BlockEncoder {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Size of the block so far, in bytes before compression.
    pub(super) fn raw_len(&self) -> usize {
        let columns = self.columns.iter();
        let planes: usize = columns.map(|c| c.numbers.len() * c.width()).sum();
        PREFIX + self.heads.len() + planes
    }

    /// At least [`BlockEncoder::raw_len`], at the price of a multiplication.
    pub(super) fn raw_most(&self) -> usize {
        PREFIX + self.heads.len() * ACCESS_RAW
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
            self.columns[THREADS].push(u64::from(seen.thread));
        }
        let thread = self.model.thread(seen.thread);
        let (last_file, last_end) = (self.model.of(thread).file, self.model.of(thread).end);
        if seen.file != last_file {
            head |= FILE;
            self.columns[FILES].push(zigzag(i64::from(seen.file) - i64::from(last_file)));
        }
        let stream = self.model.stream(thread, seen.thread, seen.file);
        let expected = self.model.expected(stream);
        let (bytes, distance) = residual(seen.offset, expected.offset);
        if bytes {
            head |= BYTES;
        }
        self.columns[OFFSETS].push(distance);
        if seen.len != expected.len {
            head |= LENGTH;
            self.columns[LENGTHS].push(seen.len);
        }
        self.columns[GAPS].push(zigzag(seen.start.wrapping_sub(last_end) as i64));
        self.columns[TOOKS].push(seen.took);
        self.heads.push(head);
        self.model.learn(thread, stream, &seen);
    }

    /// Adds an access that continues the latest one, with the same kind and length, by the same thread in the same file. True if only its
    /// time has to be stored, as [`BlockEncoder::push`] would have found more slowly. If false, it must still be pushed.
    #[inline]
    pub(super) fn go_on(&mut self, access: &Access) -> bool {
        let (start, took) = (micros(access.start), micros(access.took));
        let Some(last_end) = self.model.go_on(access.extent.offset, start, took) else {
            return false;
        };
        self.columns[OFFSETS].push(0);
        self.columns[GAPS].push(zigzag(start.wrapping_sub(last_end) as i64));
        self.columns[TOOKS].push(took);
        self.heads.push(access.kind as u8);
        true
    }

    /// The streams of the block's payload: prefix, heads, and each plane.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = &[u8]> + Clone {
        self.prefix.clear();
        self.prefix
            .extend_from_slice(&(self.heads.len() as u32).to_le_bytes());
        self.planes.clear();
        for column in &self.columns {
            self.prefix.push(column.width() as u8);
            for place in 0..column.width() {
                let bytes = column.numbers.iter().map(|n| (n >> (8 * place)) as u8);
                self.planes.extend(bytes);
            }
        }
        let planes = &self.planes;
        let ends = self
            .columns
            .iter()
            .flat_map(|column| std::iter::repeat_n(column.numbers.len(), column.width()));
        let planes = ends.scan(0, |at, len| {
            let start = *at;
            *at += len;
            Some(&planes[start..*at])
        });
        [&self.prefix[..], &self.heads[..]]
            .into_iter()
            .chain(planes)
    }

    pub(super) fn clear(&mut self) {
        self.model.clear();
        self.heads.clear();
        self.columns.iter_mut().for_each(Column::clear);
        self.first = 0;
    }
}

/// The place of a column's planes in the payload.
#[derive(Clone, Copy, Default)]
struct Planes {
    /// The next number's lowest byte.
    next: usize,
    /// Numbers in the column: from one plane to the next.
    step: usize,
    width: usize,
}

/// Gives back the accesses of a block, one at a time.
#[derive(Default)]
pub(super) struct BlockDecoder {
    model: Model,
    payload: Vec<u8>,
    columns: [Planes; COLUMNS],
    /// Next access, and one past the last, as places in the head column.
    next: usize,
    end: usize,
}

impl BlockDecoder {
    /// Loads the block with this payload, and returns the previous one's buffer in its place.
    ///
    /// On an error the block is empty.
    pub(super) fn load(&mut self, payload: &mut Vec<u8>) -> Result<(), &'static str> {
        self.clear();
        std::mem::swap(&mut self.payload, payload);
        let payload = &self.payload[..];
        let prefix = payload
            .get(..PREFIX)
            .ok_or("the block is shorter than its prefix")?;
        let count = u32_at(prefix, 0) as usize;
        if count > BLOCK_ACCESSES {
            return Err("the block holds more accesses than the limit");
        }
        let heads = payload
            .get(PREFIX..PREFIX + count)
            .ok_or("the block is shorter than its head column")?;
        let mut steps = [count; COLUMNS];
        for (column, flag) in [(THREADS, THREAD), (FILES, FILE), (LENGTHS, LENGTH)] {
            steps[column] = heads.iter().filter(|&head| head & flag != 0).count();
        }
        let mut at = PREFIX + count;
        for ((planes, step), &width) in self.columns.iter_mut().zip(steps).zip(&prefix[4..]) {
            let width = usize::from(width);
            if width > 8 {
                return Err("a column of the block is wider than 8 bytes");
            }
            *planes = Planes {
                next: at,
                step,
                width,
            };
            at += width * step;
        }
        if at != payload.len() {
            return Err("the block's columns do not fill it");
        }
        self.next = PREFIX;
        self.end = PREFIX + count;
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
        let planes = &mut self.columns[column];
        let mut at = planes.next;
        let mut value = 0;
        for place in 0..planes.width {
            value |= u64::from(self.payload[at]) << (8 * place);
            at += planes.step;
        }
        planes.next += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::noise::mutate;

    fn block() -> Vec<u8> {
        let mut encoder = BlockEncoder::default();
        for n in 0..40u64 {
            encoder.push(&Access {
                file: FileId((n % 5) as u32),
                extent: Extent::new(n * n * 777, 4096 + n % 3),
                thread: ThreadId((n % 3) as u32),
                kind: Kind::ALL[n as usize % Kind::ALL.len()],
                start: n * 1_234_567,
                took: n * 1_000,
            });
        }
        let payload: Vec<u8> = encoder.streams().flatten().copied().collect();
        assert_eq!(payload.len(), encoder.raw_len());
        payload
    }

    #[test]
    fn mutated_blocks_never_give_more_than_their_count_nor_panic() {
        let original = block();
        let mut noise = fastrand::Rng::with_seed(7);
        let mut decoder = BlockDecoder::default();
        let (mut refused, mut failed, mut whole) = (0, 0, 0);
        for _ in 0..200_000 {
            let mut payload = mutate(&original, &mut noise);
            let count = payload.get(..4).map_or(0, |count| u32_at(count, 0));
            if decoder.load(&mut payload).is_err() {
                assert!(decoder.next().is_none());
                refused += 1;
                continue;
            }
            let mut given = 0;
            let outcome = loop {
                match decoder.next() {
                    Some(Ok(access)) => {
                        assert!(access.file.0 < crate::format::MAX_ID);
                        assert!(access.thread.0 < crate::format::MAX_ID);
                        given += 1;
                    }
                    Some(Err(_)) => break false,
                    None => break true,
                }
            };
            if outcome {
                assert_eq!(given, count);
                whole += 1;
            } else {
                assert!(decoder.next().is_none());
                failed += 1;
            }
        }
        // Each of the outcomes occurred.
        assert!(refused > 1_000 && failed > 1_000 && whole > 1_000);
    }

    #[test]
    fn times_round_to_the_nearest_microsecond() {
        assert_eq!(micros(0), 0);
        assert_eq!(micros(1_499), 1);
        assert_eq!(micros(1_500), 2);
        assert_eq!(micros(u64::MAX), u64::MAX / 1000 + 1);
    }
}
