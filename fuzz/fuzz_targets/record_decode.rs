//! The decoder of records, on bytes nobody vouches for.
//!
//! The first byte chooses. Even: the rest is the file. Odd: the rest is cut into
//! payloads, each put into a frame with a right checksum, so that fuzzing reaches what
//! checksums otherwise protect.
//!
//!     cargo +nightly fuzz run record_decode

#![no_main]

use std::path::Path;

use foreread_plan::format::{MAX_ID, MAX_SIGNATURES, Reader, Writer};
use foreread_plan::{Identity, Meta};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    if choice % 2 == 0 {
        decode(rest);
    } else {
        decode(&forge(rest, choice & 2 != 0));
    }
});

/// Reads everything there is, twice: it must be the same, and within the limits.
fn decode(bytes: &[u8]) {
    let Ok(mut reader) = Reader::from_bytes(bytes, Path::new("fuzzed")) else {
        return;
    };
    let mut first = Vec::new();
    for access in reader.accesses().flatten() {
        assert!(access.file.0 < MAX_ID && access.thread.0 < MAX_ID);
        first.push(access);
    }
    assert!(reader.accesses().flatten().eq(first));
    assert!(reader.files().keys().all(|id| id.0 < MAX_ID));
    assert!(reader.threads().keys().all(|id| id.0 < MAX_ID));
    assert!(reader.signatures().len() <= MAX_SIGNATURES);
}

/// A record of payloads: each a byte that chooses the tag, two of length, and its bytes.
fn forge(mut rest: &[u8], ended: bool) -> Vec<u8> {
    let meta = Meta {
        identity: Identity {
            exe: String::new(),
            argv: Vec::new(),
            cwd: String::new(),
            rank: None,
        },
        recorded_at: 0,
        writer: String::new(),
    };
    let mut record = Vec::new();
    if Writer::new(&mut record, &meta).is_err() {
        return record;
    }
    let mut index = 0;
    while let [tag, low, high, payload @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(payload.len());
        let (payload, after) = payload.split_at(len);
        rest = after;
        let tag = b"FTAISE"[usize::from(*tag) % 6];
        if tag == b'I' {
            index = record.len() as u64;
        }
        frame(&mut record, tag, payload);
    }
    if ended {
        let start = index.to_le_bytes();
        record.extend(start);
        record.extend(crc(&start, b"FOREDONE"));
        record.extend(b"FOREDONE");
    }
    record
}

fn frame(record: &mut Vec<u8>, tag: u8, payload: &[u8]) {
    let Ok(stored) = zstd::bulk::compress(payload, 1) else {
        return;
    };
    let mut head = vec![tag];
    head.extend((payload.len() as u32).to_le_bytes());
    head.extend((stored.len() as u32).to_le_bytes());
    let crc = crc(&head, &stored);
    record.extend(head);
    record.extend(crc);
    record.extend(stored);
}

fn crc(a: &[u8], b: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(a);
    hasher.update(b);
    hasher.finalize().to_le_bytes()
}
