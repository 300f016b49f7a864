//! Content read equals content written, and damage is always detected.

use std::path::Path;

use crate::support::{file, meta, pread, read, thread, written};
use foreread_plan::format::{
    Ending, MAX_ID, MAX_META, MAX_PATH, ReadError, Reader, VERSION, WriteError, Writer,
};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, PAGE, Sequence, Summary, ThreadId, ThreadMeta,
};
use proptest::prelude::*;

fn open(bytes: &[u8]) -> Result<Reader<std::io::Cursor<&[u8]>>, ReadError> {
    Reader::from_bytes(bytes, Path::new("memory"))
}

/// The access as the format keeps it: times to the nearest µs.
fn kept(access: &Access) -> Access {
    let round = |nanos: u64| (nanos / 1000 + u64::from(nanos % 1000 >= 500)).saturating_mul(1000);
    Access {
        start: round(access.start),
        took: round(access.took),
        ..*access
    }
}

/// Numbers of every magnitude.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..64u64,
        (0..1u64 << 20).prop_map(|page| page * PAGE),
        Just(u64::MAX),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    let id = || prop_oneof![0..4u32, 0..MAX_ID];
    let place = (id(), number(), number());
    (place, id(), 0..Kind::ALL.len(), number(), number()).prop_map(
        |((file, offset, len), thread, kind, start, took)| Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(thread),
            kind: Kind::ALL[kind],
            start,
            took,
        },
    )
}

const ADVICE: &[Advice] = &[Advice::Normal, Advice::Sequential, Advice::Random];

fn any_file() -> impl Strategy<Value = (u32, FileMeta)> {
    let numbers = (
        number(),
        number(),
        number(),
        any::<i64>(),
        any::<[bool; 2]>(),
        prop::sample::select(ADVICE),
    );
    (0..MAX_ID, "(/[a-z\u{e9}]{1,8}){1,4}", numbers).prop_map(
        |(id, path, (dev, ino, size, mtime_ns, [written, directory], advice))| {
            let meta = FileMeta {
                written,
                advice,
                directory,
                ..FileMeta::regular(path, (dev, ino), size, mtime_ns)
            };
            (id, meta)
        },
    )
}

fn any_thread() -> impl Strategy<Value = (u32, ThreadMeta)> {
    (0..MAX_ID, any::<[u32; 3]>(), "(/[a-z]{1,8}){0,4}").prop_map(|(id, [pid, tid, ppid], exe)| {
        (
            id,
            ThreadMeta {
                pid,
                tid,
                ppid,
                exe,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_sequence_is_kept_as_its_accesses_are(
        sequences in prop::collection::vec((access(), 0..300u16), 0..60),
        quick in any::<bool>(),
    ) {
        let mut writers = [(); 2].map(|()| Writer::new(Vec::new(), &meta()).unwrap());
        for ((mut first, more), n) in sequences.into_iter().zip(0..) {
            if quick {
                // Many in one block: wild times would cut it each time.
                (first.start, first.took) = (n * 3_333, first.took % 2_000);
            }
            let sequence = Sequence { first, more };
            writers[0].sequence(sequence).unwrap();
            for access in sequence.accesses() {
                writers[1].access(&access).unwrap();
            }
        }
        let [together, singly] = writers.map(|writer| writer.finish(Summary::default()).unwrap());
        prop_assert!(together == singly);
    }

    #[test]
    fn what_is_written_is_read(
        accesses in prop::collection::vec(access(), 0..300),
        steady in any::<bool>(),
        files in prop::collection::vec(any_file(), 0..40),
        threads in prop::collection::vec(any_thread(), 0..40),
        flush_every in 1..400usize,
        exit_status in any::<Option<i32>>(),
        finished in any::<bool>(),
    ) {
        let mut accesses = accesses;
        if steady {
            // All in one block: wild starts would cut it each time.
            accesses.iter_mut().zip(0..).for_each(|(access, n)| access.start = n * 3_333);
        }
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &meta()).unwrap();
        for (id, meta) in &files {
            writer.file(FileId(*id), meta.clone()).unwrap();
        }
        for (id, meta) in &threads {
            writer.thread(ThreadId(*id), meta.clone()).unwrap();
        }
        for (n, access) in accesses.iter().enumerate() {
            writer.access(access).unwrap();
            if n % flush_every == 0 {
                writer.flush().unwrap();
            }
        }
        if finished {
            let summary = Summary { exit_status, lost: 3, ..Summary::default() };
            writer.finish(summary).unwrap();
        } else {
            writer.flush().unwrap();
            drop(writer);
        }

        let mut reader = open(&bytes).unwrap();
        prop_assert_eq!(reader.meta(), &meta());
        prop_assert_eq!(reader.is_complete(), finished);
        prop_assert_eq!(reader.size_bytes(), bytes.len() as u64);
        let last: std::collections::BTreeMap<_, _> =
            files.iter().map(|(id, meta)| (FileId(*id), meta.clone())).collect();
        prop_assert_eq!(reader.files(), &last);
        let last: std::collections::BTreeMap<_, _> =
            threads.iter().map(|(id, meta)| (ThreadId(*id), meta.clone())).collect();
        prop_assert_eq!(reader.threads(), &last);
        let expected: Vec<_> = accesses.iter().map(kept).collect();
        for _ in 0..2 {
            let read: Vec<_> = reader.accesses().collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(&read, &expected);
        }
        if finished {
            let summary = reader.summary().unwrap();
            prop_assert_eq!(summary.accesses, accesses.len() as u64);
            prop_assert_eq!(summary.exit_status, exit_status);
            prop_assert_eq!(summary.lost, 3);
        } else {
            prop_assert_eq!(reader.summary(), None);
            prop_assert_eq!(reader.ending(), &Ending::Truncated { at: bytes.len() as u64 });
        }
    }
}

#[test]
fn the_summary_counts_what_was_written() {
    let named = |kind, start| Access {
        kind,
        ..pread(0, 0, 0, start, 1)
    };
    let accesses = [
        named(Kind::Open, 0),
        pread(0, 0, 100, 2, 1),
        pread(0, 0, 100, 4, 1),
        Access {
            kind: Kind::Map,
            ..pread(0, 0, 1 << 20, 6, 1)
        },
        named(Kind::Stat, 7),
        named(Kind::List, 8),
    ];
    let bytes = written(&accesses);
    let summary = open(&bytes).unwrap().summary().unwrap().clone();
    assert_eq!((summary.accesses, summary.bytes), (6, 200));
    assert_eq!((summary.files, summary.threads), (1, 1));
}

#[test]
fn starts_do_not_drift() {
    // Each gap and each call is 0.4 µs longer than its rounded value.
    let accesses: Vec<_> = (0..100_000u64)
        .map(|n| Access {
            start: n * 8_800,
            took: 4_400,
            ..pread(0, n * PAGE, PAGE, 0, 0)
        })
        .collect();
    for (access, read) in accesses.iter().zip(read(&written(&accesses))) {
        assert!(access.start.abs_diff(read.start) <= 500);
    }
}

/// Several blocks, files and threads, few bytes.
fn small() -> (Vec<Access>, Vec<u8>) {
    let mut accesses = Vec::new();
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    for n in 0..4u32 {
        writer.file(FileId(n), file(n)).unwrap();
        writer.thread(ThreadId(n), thread(n)).unwrap();
        for m in 0..6u64 {
            let start = u64::from(n) * 100 + m * 10;
            let access = Access {
                thread: ThreadId(n),
                ..pread(n, m * m * 1_000, 700 + m, start, 7)
            };
            writer.access(&access).unwrap();
            accesses.push(access);
        }
        writer.flush().unwrap();
    }
    let bytes = writer.finish(Summary::default()).unwrap();
    (accesses, bytes)
}

#[test]
fn cut_anywhere_a_record_gives_what_came_before_the_cut() {
    let (accesses, bytes) = small();
    let mut most = 0;
    for cut in 0..bytes.len() {
        let mut reader = match open(&bytes[..cut]) {
            Ok(reader) => reader,
            Err(ReadError::Headless { size, .. }) => {
                assert_eq!(size, cut as u64);
                assert_eq!(most, 0, "the header was whole before");
                continue;
            }
            Err(error) => panic!("cut at {cut}: {error}"),
        };
        assert!(matches!(reader.ending(), Ending::Truncated { at } if *at <= cut as u64));
        let read: Vec<_> = reader.accesses().collect::<Result<_, _>>().unwrap();
        assert_eq!(read, accesses[..read.len()], "cut at {cut}");
        assert!(read.len() >= most, "cut at {cut}");
        for access in &read {
            assert_eq!(reader.files()[&access.file], file(access.file.0));
            assert_eq!(reader.threads()[&access.thread], thread(access.thread.0));
        }
        most = read.len();
    }
    assert_eq!(most, accesses.len());
}

#[test]
fn a_flipped_bit_never_gives_a_wrong_access_in_silence() {
    let (accesses, bytes) = small();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(mut reader) = open(&flipped) else {
            continue;
        };
        let (good, bad): (Vec<_>, Vec<_>) = reader.accesses().partition(Result::is_ok);
        let good: Vec<_> = good.into_iter().map(Result::unwrap).collect();
        assert_eq!(good, accesses[..good.len()], "bit {bit}");
        assert!(bad.len() <= 1);
        // The index says where the accesses end: none goes missing in silence either.
        assert!(!bad.is_empty() || good.len() == accesses.len(), "bit {bit}");
        assert!(
            bad.is_empty() || matches!(reader.ending(), Ending::Damaged { .. }),
            "bit {bit}"
        );
        for (id, meta) in reader.files() {
            assert_eq!(meta, &file(id.0), "bit {bit}");
        }
    }
}

#[test]
fn looked_through_a_record_hides_no_damage() {
    let (_, bytes) = small();
    let check = |bytes: &[u8]| Reader::from_bytes(bytes, Path::new("record"))?.check();
    check(&bytes).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x55;
        // A length that is wrong may pass for an end.
        let short = Reader::from_bytes(&flipped, Path::new("record"))
            .is_ok_and(|reader| matches!(reader.ending(), Ending::Truncated { .. }));
        assert!(check(&flipped).is_err() || short, "byte {at}");
    }
    check(&bytes[..bytes.len() / 2]).expect("a record cut short, sound as far as it goes");
}

#[test]
fn whole_blocks_are_left_out_up_to_a_share_of_a_record() {
    // Some twelve blocks.
    let accesses: Vec<Access> = (0..100_000u64)
        .map(|n| pread(0, n * 7919 % 65_536 * PAGE, PAGE, n * 1_000, 0))
        .collect();
    let bytes = written(&accesses);
    let all = read(&bytes);
    let mut reader = open(&bytes).unwrap();
    let mut at = 0;
    for share in [0.0, 0.3, 0.31, 0.9, 0.5, 2.0] {
        reader.skip_to(share);
        let next = reader.next_access().unwrap().unwrap();
        let place = at
            + all[at..]
                .iter()
                .position(|&one| one == next)
                .expect("a later access");
        // The block that holds this share, or one that was begun already.
        let wanted = (share.min(1.0) * all.len() as f64) as usize;
        assert!(place <= wanted.max(at), "{place} for {wanted}");
        assert!(place + all.len() / 8 > wanted, "{place} for {wanted}");
        at = place + 1;
    }
    reader.rewind();
    assert_eq!(reader.next_access().unwrap().unwrap(), all[0]);
}

#[test]
fn a_record_looked_through_is_read_from_its_start() {
    let (accesses, bytes) = small();
    let mut reader = Reader::from_bytes(&bytes, Path::new("record")).unwrap();
    reader.next_access().unwrap().unwrap();
    reader.check().unwrap();
    let first = reader.next_access().unwrap().unwrap();
    assert_eq!(first.extent, accesses[0].extent);
}

#[test]
fn damage_in_the_middle_ends_reading_after_everything_before_it() {
    let mut noise = fastrand::Rng::with_seed(5);
    let accesses: Vec<_> = (0..200_000)
        .map(|n| pread(0, noise.u64(..1 << 20) * PAGE, PAGE, n, 1))
        .collect();
    let mut bytes = written(&accesses);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    let mut reader = open(&bytes).unwrap();
    // Nothing was read there yet, and the definitions do not depend on it.
    assert!(reader.is_complete());
    assert_eq!(reader.files()[&FileId(0)], file(0));
    for _ in 0..2 {
        let all: Vec<_> = reader.accesses().collect();
        let (last, before) = all.split_last().unwrap();
        // All blocks before the damaged one.
        assert!(
            (80_000..=100_000).contains(&before.len()),
            "{}",
            before.len()
        );
        let expected = accesses.iter();
        assert!(
            before
                .iter()
                .zip(expected)
                .all(|(read, written)| read.as_ref().unwrap() == written)
        );
        let Err(ReadError::Damaged { offset, .. }) = last else {
            panic!("{last:?}");
        };
        assert!(*offset < middle as u64);
        let Ending::Damaged { at, .. } = reader.ending() else {
            panic!("{:?}", reader.ending());
        };
        assert_eq!(at, offset);
    }
}

#[test]
fn a_later_definition_holds_for_the_whole_record() {
    for finished in [true, false] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &meta()).unwrap();
        writer.file(FileId(0), file(0)).unwrap();
        writer.access(&pread(0, 0, 1, 0, 1)).unwrap();
        writer.flush().unwrap();
        let grown = FileMeta {
            size: 7,
            written: true,
            advice: Advice::Normal,
            ..file(0)
        };
        writer.file(FileId(0), grown.clone()).unwrap();
        writer.flush().unwrap();
        if finished {
            writer.finish(Summary::default()).unwrap();
        }
        assert_eq!(open(&bytes).unwrap().files()[&FileId(0)], grown);
    }
}

#[test]
fn records_of_earlier_versions_are_read() {
    (1..VERSION as u8).for_each(a_record_of_version_is_read);
}

fn a_record_of_version_is_read(version: u8) {
    let accesses: Vec<_> = (0..100).map(|n| pread(0, 0, n * 7, 0, 1)).collect();
    let mut first = written(&accesses);
    first[8] = version;
    let described = u32::from_le_bytes(first[12..16].try_into().unwrap()) as usize;
    let (header, crc) = first[..16 + described + 4].split_at_mut(16 + described);
    crc.copy_from_slice(&crc32fast::hash(header).to_le_bytes());
    let mut reader = open(&first).unwrap();
    assert!(reader.is_complete());
    let read: Vec<_> = std::iter::from_fn(|| reader.next_access()).collect();
    assert_eq!(read.len(), 100);
    assert!(read.iter().all(Result::is_ok));
}

#[test]
fn what_is_no_record_is_told_apart() {
    let named = |bytes: &[u8]| open(bytes).map(|_| ()).unwrap_err();
    assert!(matches!(named(b""), ReadError::Headless { size: 0, .. }));
    assert!(matches!(
        named(b"FORE"),
        ReadError::Headless { size: 4, .. }
    ));
    assert!(matches!(
        named(b"#!/bin/sh\necho\n"),
        ReadError::Foreign { .. }
    ));
    assert!(matches!(named(&[0; 100_000]), ReadError::Foreign { .. }));
    let mut future = written(&[]);
    future[8] = VERSION as u8 + 1;
    let error = named(&future);
    assert!(matches!(error, ReadError::Future { version, .. } if version == VERSION + 1));
    assert!(error.to_string().contains("memory"));
    let mut damaged = written(&[]);
    damaged[20] ^= 1;
    assert!(matches!(
        named(&damaged),
        ReadError::Damaged { offset: 0, .. }
    ));
    let missing = Reader::open(Path::new("/nonexistent/record"))
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(missing, ReadError::Io { .. }));
    assert!(missing.to_string().contains("/nonexistent/record"));
}

#[test]
fn what_is_beyond_the_limits_is_refused_and_the_record_goes_on() {
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    let long = FileMeta {
        path: "p".repeat(MAX_PATH + 1).into(),
        ..file(0)
    };
    let refused = |outcome: Result<(), WriteError>| {
        assert!(
            matches!(outcome, Err(WriteError::Limit { .. })),
            "{outcome:?}"
        );
    };
    refused(writer.file(FileId(0), long));
    refused(writer.file(FileId(MAX_ID), file(0)));
    refused(writer.thread(ThreadId(MAX_ID), thread(0)));
    refused(writer.access(&pread(MAX_ID, 0, 1, 0, 1)));
    writer.file(FileId(MAX_ID - 1), file(1)).unwrap();
    let access = pread(MAX_ID - 1, 0, 1, 0, 1);
    writer.access(&access).unwrap();
    let bytes = writer.finish(Summary::default()).unwrap();
    assert_eq!(read(&bytes), [access]);
    assert_eq!(open(&bytes).unwrap().files().len(), 1);

    let mut huge = meta();
    huge.identity.argv.push("a".repeat(MAX_META));
    refused(Writer::new(Vec::new(), &huge).map(|_| ()));
}

/// Accepts `room` bytes, then none.
struct Device {
    room: usize,
}

impl std::io::Write for Device {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.room {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let mut writer = Writer::new(Device { room: 300 }, &meta()).unwrap();
    let mut noise = fastrand::Rng::with_seed(1);
    for n in 0..1_000 {
        writer
            .access(&pread(0, noise.u64(..) >> 1, 1, n, 1))
            .unwrap();
    }
    assert!(matches!(writer.flush(), Err(WriteError::Io(_))));
    assert!(matches!(
        writer.access(&pread(0, 0, 1, 0, 1)),
        Err(WriteError::Broken)
    ));
    assert!(matches!(
        writer.finish(Summary::default()),
        Err(WriteError::Broken)
    ));
}
