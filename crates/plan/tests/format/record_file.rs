//! A record file replaces its destination whole, keeps to its size, and survives its writer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{file, meta, pread, signature, thread};
use foreread_plan::format::{Ending, Place, Reader, RecordFile, WriteError, redefine};
use foreread_plan::{Advice, FileId, FileMeta, PAGE, Summary, ThreadId};

const AMPLE: u64 = 1 << 30;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn the_destination_is_replaced_only_by_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    fs::write(&path, "before").unwrap();

    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.access(&pread(0, 0, PAGE, 0, 1)).unwrap();
    record.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before");
    let partial = record.partial_path().to_owned();
    assert_eq!(
        fs::metadata(&partial).unwrap().permissions().mode() & 0o777,
        0o600
    );
    drop(record);
    assert_eq!(names(directory.path()), ["run.foreread"]);
    assert_eq!(fs::read(&path).unwrap(), b"before");

    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.file(FileId(0), file(0)).unwrap();
    record.access(&pread(0, 0, PAGE, 0, 1)).unwrap();
    record.commit(Summary::default()).unwrap();
    assert_eq!(names(directory.path()), ["run.foreread"]);
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.is_complete());
    assert_eq!(reader.accesses().count(), 1);
    assert_eq!(reader.size_bytes(), fs::metadata(&path).unwrap().len());
}

#[test]
fn what_a_killed_writer_flushed_is_found_read_and_adopted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    fs::write(directory.path().join(".other.partial-12-aaaaaa"), "").unwrap();
    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.file(FileId(0), file(0)).unwrap();
    for n in 0..100 {
        record.access(&pread(0, n * PAGE, PAGE, n * 10, 1)).unwrap();
    }
    record.flush().unwrap();
    for n in 0..100 {
        record
            .access(&pread(0, n * PAGE, PAGE, 1_000 + n * 10, 1))
            .unwrap();
    }
    // A killed process runs no destructors: its files stay, but its locks are gone.
    let kept = directory.path().join("kept");
    fs::copy(record.partial_path(), &kept).unwrap();
    let name = record.partial_path();
    drop(record);
    fs::rename(kept, name).unwrap();

    let place = Place::at(&path).unwrap();
    let found = place.partials().unwrap();
    assert_eq!(found.len(), 1);
    let taken = found[0].take_over().unwrap().unwrap();
    found[0].adopt(&taken, &place).unwrap();
    assert!(place.partials().unwrap().is_empty());
    let mut reader = Reader::open(&path).unwrap();
    assert!(matches!(reader.ending(), Ending::Truncated { .. }));
    assert_eq!(reader.files()[&FileId(0)], file(0));
    assert_eq!(reader.accesses().filter(Result::is_ok).count(), 100);
}

/// Its process number says nothing: a run in another PID namespace sees no process with it.
#[test]
fn what_a_living_writer_writes_is_not_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.access(&pread(0, 0, PAGE, 0, 1)).unwrap();
    record.flush().unwrap();
    let place = Place::at(&path).unwrap();
    let found = place.partials().unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].take_over().unwrap().is_none());
    assert_eq!(found[0].writer(), Some(std::process::id()));
    record.commit(Summary::default()).unwrap();
    assert!(found[0].take_over().is_err(), "it is gone");
}

#[test]
fn two_records_of_one_program_may_grow_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let records = [0, 1].map(|_| RecordFile::create(&path, &meta(), AMPLE).unwrap());
    assert_ne!(records[0].partial_path(), records[1].partial_path());
    // The file of a process with this number that is long gone.
    let left = records[1].partial_path();
    drop(records);
    fs::write(&left, "").unwrap();
    let number = left.to_str().unwrap().rsplit_once('-').unwrap().1;
    let next: u32 = number.parse::<u32>().unwrap() + 1;
    let taken = left.with_file_name(
        left.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace(number, &next.to_string()),
    );
    fs::write(taken, "").unwrap();
    RecordFile::create(&path, &meta(), AMPLE)
        .unwrap()
        .commit(Summary::default())
        .unwrap();
    assert!(Reader::open(&path).unwrap().is_complete());
}

#[test]
fn nothing_but_a_regular_file_is_opened_at_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| Place::at(&directory.path().join(name)).unwrap();
    fs::write(directory.path().join("file"), "x").unwrap();
    std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
    fs::create_dir(directory.path().join("folder")).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(at("file").open().is_ok());
    // A pipe that nobody writes into would be waited for.
    for name in ["link", "folder", "pipe"] {
        let refused = at(name).open().unwrap_err();
        assert_eq!(refused.to_string(), "not a regular file", "{name}");
    }
    assert!(Reader::open(&pipe).is_err());
}

/// A folder on the path that is exchanged meanwhile leads nothing elsewhere.
#[test]
fn a_record_stays_in_the_folder_that_was_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, moved) = (directory.path().join("a"), directory.path().join("b"));
    fs::create_dir(&folder).unwrap();
    let record = RecordFile::create(&folder.join("run"), &meta(), AMPLE).unwrap();
    fs::rename(&folder, &moved).unwrap();
    fs::create_dir(&folder).unwrap();
    record.commit(Summary::default()).unwrap();
    assert!(names(&folder).is_empty());
    assert_eq!(names(&moved), ["run"]);
}

#[test]
fn a_full_record_counts_what_it_leaves_out_and_stays_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    for limit in [20_000, 300_000, 1_000_000] {
        let mut record = RecordFile::create(&path, &meta(), limit).unwrap();
        let mut noise = fastrand::Rng::with_seed(limit);
        let count = 500_000;
        for n in 0..count {
            let number = (n / 1_000) as u32;
            if n % 1_000 == 0 {
                record.file(FileId(number), file(number)).unwrap();
            }
            let offset = noise.u64(..1 << 24) * PAGE;
            record
                .access(&pread(number, offset, PAGE, n * 10, 3))
                .unwrap();
        }
        assert!(record.is_full());
        let lost = record.lost();
        record
            .commit(Summary {
                lost: 5,
                ..Summary::default()
            })
            .unwrap();

        let mut reader = Reader::open(&path).unwrap();
        assert!(reader.is_complete());
        let size = reader.size_bytes();
        assert!(size <= limit, "{size} bytes, limit {limit}");
        assert!(
            size > limit / 2,
            "{size} bytes, limit {limit}: room was wasted"
        );
        let summary = reader.summary().unwrap().clone();
        assert_eq!(summary.lost, lost + 5);
        assert_eq!(summary.accesses + lost, count);
        let kept: Vec<_> = reader.accesses().collect::<Result<_, _>>().unwrap();
        assert_eq!(kept.len() as u64, summary.accesses);
        assert!(
            kept.iter()
                .all(|access| reader.files().contains_key(&access.file))
        );
    }
}

#[test]
fn definitions_alone_keep_to_the_limit_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), 200_000).unwrap();
    for n in 0..50_000 {
        record.file(FileId(n), file(n)).unwrap();
        record.thread(ThreadId(n), thread(n)).unwrap();
    }
    assert!(record.is_full());
    // The state of a file can still be corrected.
    let grown = FileMeta {
        size: 1,
        written: true,
        advice: Advice::Sequential,
        ..file(0)
    };
    record.file(FileId(0), grown.clone()).unwrap();
    record.commit(Summary::default()).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert!(reader.is_complete());
    assert!(reader.size_bytes() <= 200_000);
    assert_eq!(reader.files()[&FileId(0)], grown);
    assert_eq!(reader.summary().unwrap().files, reader.files().len() as u64);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let outcome = RecordFile::create(Path::new("/nonexistent/run"), &meta(), AMPLE);
    let Err(WriteError::File { path, .. }) = outcome else {
        panic!("created");
    };
    assert_eq!(path, Path::new("/nonexistent"));
}

#[test]
fn files_are_defined_anew_and_the_rest_of_a_record_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.thread(ThreadId(0), thread(0)).unwrap();
    for number in 0..3 {
        record.file(FileId(number), file(number)).unwrap();
    }
    for n in 0..100_000 {
        let access = pread((n % 3) as u32, n * PAGE, PAGE, n * 10, 1);
        record.access(&access).unwrap();
    }
    record.signatures((0..3).map(signature).collect()).unwrap();
    let summary = Summary {
        wall_ns: 5,
        cold_wall_ns: Some(7),
        ..Summary::default()
    };
    record.commit(summary).unwrap();
    let mut before = Reader::open(&path).unwrap();
    let kept: Vec<_> = before.accesses().map(Result::unwrap).collect();

    let grown = FileMeta {
        size: 3,
        mtime_ns: -1,
        ..file(1)
    };
    redefine(&Place::at(&path).unwrap(), |meta| {
        (meta.path == grown.path).then(|| grown.clone())
    })
    .unwrap();
    assert_eq!(names(directory.path()), ["run.foreread"]);
    let mut after = Reader::open(&path).unwrap();
    assert!(after.is_complete());
    assert_eq!(after.files()[&FileId(1)], grown);
    assert_eq!(after.files()[&FileId(2)], file(2));
    assert_eq!(after.threads(), before.threads());
    assert_eq!(
        (after.meta(), after.summary()),
        (before.meta(), before.summary())
    );
    assert_eq!(
        after.signatures(),
        (0..3).map(signature).collect::<Vec<_>>()
    );
    after.check().unwrap();
    let accesses: Vec<_> = after.accesses().map(Result::unwrap).collect();
    assert!(accesses == kept);
}

#[test]
fn a_record_without_an_end_is_not_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.foreread");
    let mut record = RecordFile::create(&path, &meta(), AMPLE).unwrap();
    record.file(FileId(0), file(0)).unwrap();
    record.commit(Summary::default()).unwrap();
    let whole = fs::read(&path).unwrap();
    let cut = &whole[..whole.len() - 3];
    fs::write(&path, cut).unwrap();
    redefine(&Place::at(&path).unwrap(), |meta| Some(meta.clone())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), cut);

    fs::write(&path, "something else").unwrap();
    let refused = redefine(&Place::at(&path).unwrap(), |meta| Some(meta.clone())).unwrap_err();
    assert!(refused.to_string().contains("run.foreread"), "{refused}");
    let none = directory.path().join("none");
    assert!(redefine(&Place::at(&none).unwrap(), |_| None).is_err());
    assert_eq!(names(directory.path()), ["run.foreread"]);
}
