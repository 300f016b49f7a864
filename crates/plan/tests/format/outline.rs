//! The outline of a record: its sample is stored, nothing else is read, and damage is detected.

use std::fs;
use std::path::Path;

use crate::support::{file, meta, pread, signature, thread};
use foreread_plan::format::{
    Handle, MAX_SAMPLE, Outline, PartSample, Place, ReadError, Reader, RecordFile, Sample,
    WriteError, redefine,
};
use foreread_plan::{
    Advice, Expected, FileId, FileMeta, Kind, Name, Odds, PAGE, Pattern, Summary, ThreadId,
};

const FILES: u32 = 5000;
const ADVISED: u32 = 4000;

fn expected(file: u32, first: u64, pattern: Pattern) -> Expected {
    Expected {
        file: FileId(file),
        pages: first..first + 3,
        thread: ThreadId(0),
        pattern,
        odds: Odds::SURE,
    }
}

fn name(file: u32, kind: Kind) -> Name {
    Name {
        file: FileId(file),
        kind,
        before: 0,
    }
}

fn sample() -> Sample {
    Sample {
        parts: vec![
            PartSample {
                expected: vec![
                    expected(8, 0, Pattern::Scattered),
                    expected(9, 1 << 40, Pattern::Sequential),
                ],
                names: vec![name(10, Kind::Stat), name(11, Kind::List)],
            },
            PartSample {
                expected: vec![expected(2500, 1, Pattern::Loose)],
                names: vec![name(12, Kind::Open)],
            },
        ],
    }
}

/// A record of many files with this sample, complete.
fn record(path: &Path, sample: Sample) {
    let mut record = RecordFile::create(path, &meta(), 1 << 30).unwrap();
    record.thread(ThreadId(0), thread(0)).unwrap();
    for number in 0..FILES {
        let advice = match number {
            ADVISED => Advice::Random,
            _ => Advice::Normal,
        };
        let meta = FileMeta {
            advice,
            ..file(number)
        };
        record.file(FileId(number), meta).unwrap();
        let access = pread(number, 0, PAGE, u64::from(number), 1);
        record.access(&access).unwrap();
    }
    record.signatures(vec![signature(1)]).unwrap();
    record.sample(sample).unwrap();
    record.commit(Summary::default()).unwrap();
}

fn outline(path: &Path) -> Option<Outline> {
    let handle = Handle::new(fs::File::open(path).unwrap(), path);
    Outline::of(&handle, u64::MAX).ok()
}

#[test]
fn an_outline_has_the_sample_and_the_definitions_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    record(&path, sample());
    let outline = outline(&path).unwrap();
    assert_eq!(outline.sample(), Some(&sample()));
    let ids: Vec<_> = outline.files().keys().map(|id| id.0).collect();
    assert_eq!(ids, [8, 9, 10, 11, 12, 2500, ADVISED]);
    assert_eq!(outline.files()[&FileId(8)], file(8));

    let reader = Reader::open(&path).unwrap();
    assert_eq!(outline.open().unwrap().files(), reader.files());
    assert_eq!(outline.meta(), reader.meta());
    assert_eq!(outline.summary(), reader.summary());
    assert_eq!(outline.signatures(), reader.signatures());
    assert!(!outline.is_empty());
}

#[test]
fn a_record_is_reviewed_before_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), 1 << 30).unwrap();
    record.file(FileId(0), file(0)).unwrap();
    for n in 0..100 {
        record.access(&pread(0, n * PAGE, PAGE, n, 1)).unwrap();
    }
    let mut reader = record.review().unwrap();
    assert_eq!(reader.accesses().count(), 100);
    assert_eq!(reader.files()[&FileId(0)], file(0));
    assert_eq!(reader.summary().unwrap().accesses, 100);
    drop(reader);
    record.access(&pread(0, 0, PAGE, 200, 1)).unwrap();
    record.commit(Summary::default()).unwrap();
    assert_eq!(Reader::open(&path).unwrap().accesses().count(), 101);
}

#[test]
fn a_byte_that_is_wrong_anywhere_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    record(&path, sample());
    outline(&path).unwrap().check().unwrap();
    let good = fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(37) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        // A record that seems to break off has lost its summary.
        let is_sound = |one: Outline| one.summary().is_some() && one.check().is_ok();
        assert!(!outline(&path).is_some_and(is_sound), "byte {at}");
    }
}

#[test]
fn of_a_record_without_a_sample_or_an_end_the_header_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), 1 << 30).unwrap();
    record.file(FileId(0), file(0)).unwrap();
    record.commit(Summary::default()).unwrap();
    let whole = outline(&path).unwrap();
    assert!(whole.sample().is_none() && whole.files().is_empty() && !whole.is_empty());
    assert_eq!(whole.summary().unwrap().files, 1);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = outline(&path).unwrap();
    assert_eq!((cut.meta(), cut.summary()), (&meta(), None));
    assert_eq!(cut.open().unwrap().files().len(), 1);
    fs::write(&path, "FOREREAD").unwrap();
    assert!(outline(&path).is_none());
}

#[test]
fn a_record_that_says_to_need_more_memory_than_there_is_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    record(&path, sample());
    let handle = Handle::new(fs::File::open(&path).unwrap(), &path);
    assert!(matches!(
        Outline::of(&handle, 100_000),
        Err(ReadError::Limit { limit: 100_000, .. })
    ));
}

#[test]
fn a_file_defined_anew_is_so_in_the_sample_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    record(&path, sample());
    let grown = FileMeta { size: 3, ..file(9) };
    redefine(&Place::at(&path).unwrap(), |meta| {
        (meta.path == grown.path).then(|| grown.clone())
    })
    .unwrap();
    let outline = outline(&path).unwrap();
    assert_eq!(outline.sample(), Some(&sample()));
    assert_eq!(outline.files()[&FileId(9)], grown);
}

#[test]
fn a_sample_beyond_the_limit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), 1 << 30).unwrap();
    let part = PartSample {
        expected: vec![expected(0, 0, Pattern::Scattered); MAX_SAMPLE],
        names: Vec::new(),
    };
    let sample = Sample { parts: vec![part] };
    let refused = record.sample(sample);
    assert!(
        matches!(refused, Err(WriteError::Limit { .. })),
        "{refused:?}"
    );
}
