//! Records made to mislead: their checksums are right and their contents are not.
//!
//! Plain damage stops at the checksums, so these tests forge them and reach the decoders
//! behind. The fuzz target does the same, for longer.

use std::path::Path;

use foreread_plan::format::{
    BLOCK_ACCESSES, MAX_ACCESSES, MAX_ID, MAX_META, MAX_SIGNATURES, MAX_SIGNATURES_BYTES,
    ReadError, Reader,
};
use foreread_plan::{Access, FileId, Kind, Summary, ThreadId};

use crate::forge::{HEAD, assemble, ended, frame, header, rows, seal, trailer};
use crate::support::{file, meta, pread, signature, thread};

/// The tags and payloads of a record with something of everything in it.
fn parts() -> Vec<(u8, Vec<u8>)> {
    let mut writer = foreread_plan::format::Writer::new(Vec::new(), &meta()).unwrap();
    for n in 0..4 {
        writer.file(FileId(n * 9), file(n)).unwrap();
        writer.thread(ThreadId(n), thread(n)).unwrap();
    }
    for n in 0..30u64 {
        let access = Access {
            thread: ThreadId((n % 4) as u32),
            kind: Kind::ALL[n as usize % Kind::ALL.len()],
            ..pread((n % 4 * 9) as u32, n * n * 500, n, n * 20, 9)
        };
        writer.access(&access).unwrap();
    }
    let signatures = (0..5).map(signature).collect();
    writer.signatures(signatures).unwrap();
    let bytes = writer.finish(Summary::default()).unwrap();
    let mut rest = &bytes[header().len()..bytes.len() - 20];
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (raw, stored) = (word(1), word(5));
        let payload = zstd::bulk::decompress(&rest[HEAD..HEAD + stored], raw).unwrap();
        parts.push((rest[0], payload));
        rest = &rest[HEAD + stored..];
    }
    parts
}

/// Reads everything; the content must keep to the limits.
fn read_through(bytes: &[u8]) -> bool {
    let Ok(mut reader) = Reader::from_bytes(bytes, Path::new("memory")) else {
        return false;
    };
    let mut whole = true;
    for access in reader.accesses() {
        match access {
            Ok(access) => assert!(access.file.0 < MAX_ID && access.thread.0 < MAX_ID),
            Err(_) => whole = false,
        }
    }
    assert!(reader.files().keys().all(|id| id.0 < MAX_ID));
    assert!(reader.signatures().len() <= MAX_SIGNATURES);
    whole
}

#[test]
fn forged_records_are_read_or_refused_within_the_limits() {
    let original = parts();
    assert!(read_through(&assemble(&original)));
    let mut noise = fastrand::Rng::with_seed(11);
    let (mut whole, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut parts = original.clone();
        for _ in 0..=noise.u64(..2) {
            let part = noise.usize(..parts.len());
            match noise.u64(..10) {
                0 => drop(parts.remove(part)),
                1 => parts.insert(part, original[noise.usize(..original.len())].clone()),
                _ if parts[part].1.is_empty() => {}
                _ => {
                    let payload = &mut parts[part].1;
                    let at = noise.usize(..payload.len());
                    payload[at] = noise.u8(..);
                    if noise.u64(..4) == 0 {
                        payload.truncate(at);
                    }
                }
            }
        }
        let count = if read_through(&assemble(&parts)) {
            &mut whole
        } else {
            &mut refused
        };
        *count += 1;
    }
    assert!(
        whole > 500 && refused > 500,
        "{whole} whole, {refused} refused"
    );
}

#[test]
fn a_frame_that_unpacks_to_more_than_it_says_is_refused() {
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
    for claimed in [0, 1_000, 4 << 20, (4 << 20) + 1, u32::MAX] {
        let bytes = [header(), seal(b'F', claimed, &zeros)].concat();
        let mut reader = Reader::from_bytes(&bytes, Path::new("memory")).unwrap();
        assert!(reader.accesses().next().unwrap().is_err(), "{claimed}");
        assert!(reader.files().is_empty());
    }
}

#[test]
fn claimed_lengths_are_not_believed() {
    // A frame of 4 GiB, and a header of 4 GiB, in a few bytes.
    let mut huge = header();
    huge.extend([b'A', 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]);
    assert!(!read_through(&huge));
    let mut huge = header();
    huge[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Reader::from_bytes(&huge, Path::new("memory")).is_err());
    huge[12..16].copy_from_slice(&(MAX_META as u32).to_le_bytes());
    assert!(Reader::from_bytes(&huge, Path::new("memory")).is_err());
    // More accesses than a block may hold.
    let mut payload = (BLOCK_ACCESSES as u32 + 1).to_le_bytes().to_vec();
    payload.resize(10 + BLOCK_ACCESSES + 1, 0);
    assert!(!read_through(&[header(), frame(b'A', &payload)].concat()));
}

#[test]
fn an_index_that_points_anywhere_is_not_followed() {
    let good = assemble(&parts());
    for index in [0, 1, 16, good.len() as u64 - 1, good.len() as u64, u64::MAX] {
        let bytes = [&good[..good.len() - 20], &trailer(index)].concat();
        let mut reader = Reader::from_bytes(&bytes, Path::new("memory")).unwrap();
        assert!(!reader.is_complete());
        assert_eq!(reader.accesses().filter(Result::is_ok).count(), 30);
    }
}

fn refusal(bytes: &[u8]) -> (&'static str, u64, u64) {
    match Reader::from_bytes(bytes, Path::new("memory")) {
        Err(ReadError::Limit {
            what, value, limit, ..
        }) => (what, value, limit),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken"),
    }
}

#[test]
fn a_record_beyond_a_limit_is_refused_as_a_whole_and_the_value_named() {
    let bytes = ended(rows(MAX_ID), &Summary::default());
    let reader = Reader::from_bytes(&bytes, Path::new("memory")).unwrap();
    assert_eq!(reader.files().len(), MAX_ID as usize);
    let bytes = ended(rows(MAX_ID + 1), &Summary::default());
    let most = u64::from(MAX_ID) - 1;
    assert_eq!(refusal(&bytes), ("a file's number", most + 1, most));
    // Without its end as well.
    let (at, value, _) = refusal(&bytes[..bytes.len() - 30]);
    assert_eq!((at, value), ("a file's number", most + 1));

    let summary = Summary {
        accesses: MAX_ACCESSES + 1,
        ..Summary::default()
    };
    let said = ("the number of its accesses", MAX_ACCESSES + 1, MAX_ACCESSES);
    assert_eq!(refusal(&ended(rows(1), &summary)), said);

    let signed = |signatures: Vec<_>| {
        let mut parts = rows(1);
        parts.push((b'S', serde_json::to_vec(&signatures).unwrap()));
        ended(parts, &Summary::default())
    };
    let most = MAX_SIGNATURES;
    let bytes = signed((0..most).map(signature).collect());
    let reader = Reader::from_bytes(&bytes, Path::new("memory")).unwrap();
    assert_eq!(reader.signatures().len(), most);
    let said = ("the number of its signatures", most as u64 + 1, most as u64);
    assert_eq!(refusal(&signed((0..=most).map(signature).collect())), said);
    let mut long = signature(0);
    long.notation = "x".repeat(MAX_SIGNATURES_BYTES);
    let (what, _, limit) = refusal(&signed(vec![long]));
    assert_eq!(
        (what, limit),
        (
            "the length of its signatures in bytes",
            MAX_SIGNATURES_BYTES as u64
        )
    );
}
