//! Header, frames and trailer: the envelope of a record.
//!
//! A frame is a 13-byte head and a zstd-compressed payload; its checksum covers both. This file does not interpret payloads. Reading
//! requests no more than a frame's declared, bounded sizes, and no more than the rest of the record.

use std::io::{self, Read, Write};

use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

pub(super) const MAGIC: [u8; 8] = *b"FOREREAD";
pub(super) const END_MAGIC: [u8; 8] = *b"FOREDONE";

/// Magic, version, reserved, length of the JSON.
pub(super) const HEADER_FIXED: usize = 16;
/// Tag, raw length, stored length, checksum.
pub(super) const HEAD_LEN: usize = 13;
/// Offset of the index, checksum, magic.
pub(super) const TRAILER_LEN: usize = 20;

/// A payload before compression, at most, in bytes.
pub(super) const MAX_RAW: usize = 4 << 20;
/// A payload after compression, at most: zstd's worst case and the block boundaries put between streams.
const MAX_STORED: usize = MAX_RAW + (64 << 10);

/// Below this, ending a compressed block early costs more than shared statistics do.
const OWN_BLOCK: usize = 2048;

/// Fast enough for a recorder; the columns have done most of the work already.
const LEVEL: i32 = 1;

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Files,
    Threads,
    Accesses,
    Index,
    Sample,
    Signatures,
    End,
}

impl Tag {
    fn byte(self) -> u8 {
        match self {
            Tag::Files => b'F',
            Tag::Threads => b'T',
            Tag::Accesses => b'A',
            Tag::Index => b'I',
            Tag::Sample => b'P',
            Tag::Signatures => b'S',
            Tag::End => b'E',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [
            Tag::Files,
            Tag::Threads,
            Tag::Accesses,
            Tag::Index,
            Tag::Sample,
            Tag::Signatures,
            Tag::End,
        ]
        .into_iter()
        .find(|tag| tag.byte() == byte)
    }
}

/// Compresses payloads and puts them out as frames.
pub(super) struct FrameWriter {
    encoder: Encoder<'static>,
    frame: Vec<u8>,
}

impl FrameWriter {
    pub(super) fn new() -> io::Result<Self> {
        let mut encoder = Encoder::new(LEVEL)?;
        // In noise, shorter matches cost more than the bytes that they replace.
        encoder.set_parameter(CParameter::MinMatch(7))?;
        Ok(Self {
            encoder,
            frame: Vec::new(),
        })
    }

    /// Writes one frame with `streams` one after the other as payload; returns its size in bytes.
    ///
    /// Each large stream becomes compressed blocks of its own, so that a column's bytes are
    /// coded by that column's statistics. A decoder need not know.
    pub(super) fn write<'s>(
        &mut self,
        out: &mut impl Write,
        tag: Tag,
        streams: impl Iterator<Item = &'s [u8]> + Clone,
    ) -> io::Result<u64> {
        let raw_len: usize = streams.clone().map(<[u8]>::len).sum();
        debug_assert!(raw_len <= MAX_RAW);
        self.frame.clear();
        self.frame.resize(HEAD_LEN, 0);
        self.frame.reserve(zstd::compress_bound(raw_len) + 1024);
        self.encoder.reinit()?;
        // Tables and window as the payload needs them: of a short one nearly none.
        self.encoder.set_pledged_src_size(Some(raw_len as u64))?;
        let mut shared = 0;
        for stream in streams {
            if stream.is_empty() {
                continue;
            }
            let own = stream.len() >= OWN_BLOCK;
            if own && shared > 0 {
                self.drain(|encoder, out| encoder.flush(out))?;
                shared = 0;
            }
            let mut input = InBuffer::around(stream);
            while input.pos() < stream.len() {
                let pos = self.frame.len();
                let mut out = OutBuffer::around_pos(&mut self.frame, pos);
                self.encoder.run(&mut input, &mut out)?;
                if out.pos() == out.capacity() {
                    self.frame.reserve(MAX_STORED / 8);
                }
            }
            if own {
                self.drain(|encoder, out| encoder.flush(out))?;
            } else {
                shared += stream.len();
            }
        }
        self.drain(|encoder, out| encoder.finish(out, true))?;

        let stored_len = self.frame.len() - HEAD_LEN;
        debug_assert!(stored_len <= MAX_STORED);
        self.frame[0] = tag.byte();
        self.frame[1..5].copy_from_slice(&(raw_len as u32).to_le_bytes());
        self.frame[5..9].copy_from_slice(&(stored_len as u32).to_le_bytes());
        let crc = checksum(&self.frame[..9], &self.frame[HEAD_LEN..]);
        self.frame[9..13].copy_from_slice(&crc.to_le_bytes());
        out.write_all(&self.frame)?;
        Ok(self.frame.len() as u64)
    }

    /// Repeats a flushing step until the encoder holds nothing back.
    fn drain(
        &mut self,
        step: impl Fn(&mut Encoder<'static>, &mut OutBuffer<'_, Vec<u8>>) -> io::Result<usize>,
    ) -> io::Result<()> {
        loop {
            let pos = self.frame.len();
            let mut out = OutBuffer::around_pos(&mut self.frame, pos);
            let remaining = step(&mut self.encoder, &mut out)?;
            if remaining == 0 {
                return Ok(());
            }
            self.frame.reserve(remaining);
        }
    }
}

/// The head of a frame, its sizes within their limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) tag: Tag,
    raw_len: usize,
    pub(super) stored_len: usize,
    crc: u32,
    bytes: [u8; 9],
}

impl Head {
    /// Decodes a head. The error is the fault.
    pub(super) fn decode(bytes: [u8; HEAD_LEN]) -> Result<Self, &'static str> {
        let tag = Tag::from_byte(bytes[0]).ok_or("no frame begins here")?;
        let raw_len = u32_at(&bytes, 1) as usize;
        let stored_len = u32_at(&bytes, 5) as usize;
        if raw_len > MAX_RAW {
            return Err("the frame's raw length is beyond the limit");
        }
        if stored_len > MAX_STORED {
            return Err("the frame's stored length is beyond the limit");
        }
        let mut covered = [0; 9];
        covered.copy_from_slice(&bytes[..9]);
        Ok(Self {
            tag,
            raw_len,
            stored_len,
            crc: u32_at(&bytes, 9),
            bytes: covered,
        })
    }
}

/// Reads, checks and decompresses payloads; owns the buffers they pass through.
pub(super) struct FrameReader {
    decompressor: zstd::bulk::Decompressor<'static>,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

impl FrameReader {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            decompressor: zstd::bulk::Decompressor::new()?,
            stored: Vec::new(),
            raw: Vec::new(),
        })
    }

    /// Checks the payload after `head` against the checksum, and keeps it as stored. The outer error is the system's, the inner one the
    /// record's.
    pub(super) fn check(
        &mut self,
        input: &mut impl Read,
        head: &Head,
    ) -> io::Result<Result<(), &'static str>> {
        self.stored.resize(head.stored_len, 0);
        input.read_exact(&mut self.stored)?;
        if checksum(&head.bytes, &self.stored) != head.crc {
            return Ok(Err("the frame does not match its checksum"));
        }
        Ok(Ok(()))
    }

    /// Reads and checks the payload that follows `head`; errors as [`FrameReader::check`]'s.
    pub(super) fn payload(
        &mut self,
        input: &mut impl Read,
        head: &Head,
    ) -> io::Result<Result<&mut Vec<u8>, &'static str>> {
        if let Err(what) = self.check(input, head)? {
            return Ok(Err(what));
        }
        // `raw` may have been exchanged for another buffer, or hold an earlier payload.
        self.raw.clear();
        self.raw.reserve_exact(head.raw_len);
        let unpacked = self
            .decompressor
            .decompress_to_buffer(&self.stored, &mut self.raw);
        if unpacked.is_err() || self.raw.len() != head.raw_len {
            return Ok(Err("the frame does not decompress to its raw length"));
        }
        Ok(Ok(&mut self.raw))
    }
}

/// Writes the header; returns its size in bytes.
pub(super) fn write_header(out: &mut impl Write, meta: &[u8]) -> io::Result<u64> {
    let mut header = Vec::with_capacity(HEADER_FIXED + meta.len() + 4);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&super::VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 2]);
    header.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    header.extend_from_slice(meta);
    let crc = checksum(&header, &[]);
    header.extend_from_slice(&crc.to_le_bytes());
    out.write_all(&header)?;
    Ok(header.len() as u64)
}

/// The trailer of a record with its index at `index`.
pub(super) fn encode_trailer(index: u64) -> [u8; TRAILER_LEN] {
    let mut trailer = [0; TRAILER_LEN];
    trailer[..8].copy_from_slice(&index.to_le_bytes());
    let crc = checksum(&trailer[..8], &END_MAGIC);
    trailer[8..12].copy_from_slice(&crc.to_le_bytes());
    trailer[12..].copy_from_slice(&END_MAGIC);
    trailer
}

/// The offset of the index, if these bytes are a trailer.
pub(super) fn decode_trailer(bytes: &[u8; TRAILER_LEN]) -> Option<u64> {
    let mut index = [0; 8];
    index.copy_from_slice(&bytes[..8]);
    let index = u64::from_le_bytes(index);
    (encode_trailer(index) == *bytes).then_some(index)
}

/// CRC-32 (IEEE) of `a` followed by `b`.
pub(super) fn checksum(a: &[u8], b: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(a);
    hasher.update(b);
    hasher.finalize()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}
