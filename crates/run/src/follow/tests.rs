use super::*;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use foreread_plan::format::{Handle, Place};
use foreread_plan::{Advice, Identity, Meta};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use crate::record::Recorder;

#[test]
fn a_touch_of_all_pages_is_disclosed_a_few_at_a_time() {
    let pages = |extent: Extent| extent.pages().end - extent.pages().start;
    let whole = Extent::new(5000, 1 << 40);
    let (first, rest) = split(whole);
    let rest = rest.unwrap();
    assert_eq!((first.offset, first.end()), (5000, rest.offset));
    assert_eq!(rest.end(), whole.end());
    assert_eq!(pages(first), TOUCHED);
    let few = Extent::new(100, TOUCHED * PAGE - 100);
    assert_eq!(split(few), (few, None));
    for odd in [Extent::new(u64::MAX - 5, 5), Extent::new(0, u64::MAX)] {
        let (first, rest) = split(odd);
        assert!(pages(first) <= TOUCHED && rest.is_none_or(|rest| !rest.is_empty()));
    }
}

/// More than are sampled, by far.
const FILES: u64 = 3000;

/// Files in a folder, and the record of a run that looked each up and read each.
fn recorded(folder: &Path) -> Outline {
    let path = folder.join("record.fr");
    let place = Place::at(&path).unwrap();
    let meta = Meta {
        identity: Identity {
            exe: "/bin/reader".to_owned(),
            argv: Vec::new(),
            cwd: "/".to_owned(),
            rank: None,
        },
        recorded_at: 0,
        writer: String::new(),
    };
    let mut recorder = Recorder::new(&place, meta, 1 << 30);
    for number in 0..FILES {
        let path = folder.join(format!("file-{number}"));
        fs::write(&path, [1; 8192]).unwrap();
        let told = path.metadata().unwrap();
        let id = FileId(number as u32);
        let meta = FileMeta {
            path,
            dev: told.dev(),
            ino: told.ino(),
            size: told.size(),
            mtime_ns: told.mtime() * 1_000_000_000 + told.mtime_nsec(),
            written: false,
            advice: Advice::Normal,
            directory: false,
        };
        recorder.file(id, &meta);
        let uses = [(Kind::Stat, 0), (Kind::Open, 0), (Kind::Pread, 8192)];
        for (kind, length) in uses {
            let access = Access {
                file: id,
                extent: Extent::new(0, length),
                thread: ThreadId(0),
                kind,
                start: 0,
                took: 0,
            };
            Sink::accesses(&mut recorder, access.into());
        }
    }
    recorder.commit(Summary::default()).unwrap();
    let handle = Handle::new(fs::File::open(&path).unwrap(), &path);
    Outline::of(&handle, u64::MAX).expect("a record")
}

/// What a session of this record does once it has looked at the plan, and whether all of the record was taken in for that.
fn looked_at(record: Outline) -> (Phase, bool) {
    let found = Found {
        path: record.path().to_owned(),
        exact: true,
        differs: String::new(),
        wanted: None,
        trouble: None,
    };
    let roles = Roles::new(std::iter::empty(), Path::new("/"));
    let opened = Opened::new(record, &found, roles, None);
    let recorded = Arc::clone(&opened.recorded);
    let follower = Follower::start(opened, Instant::now()).unwrap();
    let phase = loop {
        match follower.decided() {
            Some(phase) => break phase,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert_eq!(recorded.trouble().get(), None);
    let is_whole = recorded.is_whole();
    let _ = follower.finish();
    (phase, is_whole)
}

#[test]
fn of_a_plan_that_is_in_memory_only_the_sample_is_taken_in() {
    // Files in memory alone: whoever empties the page cache leaves them there.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm to write in");
        return;
    };
    let looked = looked_at(recorded(folder.path()));
    assert_eq!(looked, (Phase::Hot, false));
}

#[test]
fn of_a_plan_that_is_not_in_memory_the_record_is_taken_in() {
    rounds(|| {
        let folder = tempfile::tempdir().unwrap();
        let record = recorded(folder.path());
        for number in 0..FILES {
            let file = fs::File::open(folder.path().join(format!("file-{number}"))).unwrap();
            file.sync_data().unwrap();
            cache::evict(&file).unwrap();
        }
        let looked = looked_at(record);
        check!(looked == (Phase::Ahead, true), "{looked:?}");
    });
}

/// Its own, one that breaks off, and another command's.
#[test]
fn no_record_is_taken_in_before_the_program_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(folder.path()).path().to_owned();
    let whole = fs::read(&path).unwrap();
    let outline = || {
        Outline::of(
            &Handle::new(fs::File::open(&path).unwrap(), &path),
            u64::MAX,
        )
    };
    for (length, exact) in [(0, true), (1, true), (0, false), (1, false)] {
        fs::write(&path, &whole[..whole.len() - length]).unwrap();
        let found = Found {
            path: path.clone(),
            exact,
            differs: String::new(),
            wanted: (!exact).then(|| outline().unwrap().identity().clone()),
            trouble: None,
        };
        let plan = crate::served::Plan::of(&found, outline().unwrap());
        assert!(plan.advice().count() == 0 && !plan.recorded.is_whole());
        let roles = Roles::new(std::iter::empty(), Path::new("/"));
        let opened = Opened::new(outline().unwrap(), &found, roles, None);
        assert!(opened.advice().count() == 0 && !opened.recorded.is_whole());
        assert!(opened.recorded.follows(FileId(FILES as u32 - 1)));
    }
}
