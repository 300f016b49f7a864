//! Small files that are asked for together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::sync::Arc;

use foreread_backend::{Backend, Event, PageCache};
use foreread_plan::{FileId, PAGE, Request, RequestId};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use super::backend::wait_for;
use super::{dir, meta};

/// Number of files and pages of each.
const FILES: u32 = 20;
const LONG: u64 = 3;

/// Requests for all of each file, but for those that are left out.
fn requests(files: impl Iterator<Item = u32>, pages: u64) -> Vec<Request> {
    let request = |n: u32| Request {
        id: RequestId(n.into()),
        file: FileId(n),
        pages: 0..pages,
    };
    files.map(request).collect()
}

/// The answered requests, each once; true if everything arrived.
fn answered(events: &[Event]) -> BTreeMap<u64, bool> {
    let mut answers = BTreeMap::new();
    for event in events {
        if let Event::Done { id, complete, .. } = *event {
            assert!(answers.insert(id.0, complete).is_none(), "{id:?} twice");
        }
    }
    answers
}

#[test]
fn each_of_several_small_files_is_answered_for_whatever_has_become_of_it() {
    rounds(|| {
        let dir = dir();
        let path = |n: u32| dir.path().join(n.to_string());
        let (mut known, mut inodes) = (BTreeMap::new(), BTreeMap::new());
        for n in 0..FILES {
            fs::write(path(n), vec![7; (LONG * PAGE) as usize]).unwrap();
            inodes.insert(n, meta(&path(n)).ino);
            known.insert(FileId(n), meta(&path(n)));
        }
        // Deleted; shortened; in memory; grown beyond the limit of small files.
        fs::remove_file(path(3)).unwrap();
        File::options()
            .write(true)
            .open(path(4))
            .unwrap()
            .set_len(PAGE)
            .unwrap();
        let grown = 100;
        fs::write(path(6), vec![7; (grown * PAGE) as usize]).unwrap();
        let files: BTreeMap<_, _> = (0..FILES)
            .filter(|&n| n != 3)
            .map(|n| (n, File::open(path(n)).unwrap()))
            .collect();
        if files
            .iter()
            .any(|(&n, file)| n != 5 && cache::evict(file).unwrap() > 0)
        {
            eprintln!("skipped: {} keeps pages in memory", dir.path().display());
            return;
        }
        let mut backend = PageCache::new(&Arc::new(known));
        // Inodes that lie in one block, of 16.
        let mut kin = |n: u32| backend.kin(FileId(n)).expect("a small file");
        let pairs: BTreeSet<_> = inodes
            .iter()
            .map(|(&n, inode)| (kin(n), (inode - 1) / 16))
            .collect();
        let kins: BTreeSet<_> = pairs.iter().map(|pair| pair.0).collect();
        let blocks: BTreeSet<_> = pairs.iter().map(|pair| pair.1).collect();
        assert_eq!((kins.len(), blocks.len()), (pairs.len(), pairs.len()));
        let mut asked = requests(0..FILES, LONG);
        asked[6].pages = 0..grown;
        backend.submit_together(asked);
        let mut events = Vec::new();
        for n in 0..FILES {
            let done =
                |event: &Event| matches!(event, Event::Done { id, .. } if id.0 == u64::from(n));
            if !events.iter().any(done) {
                events.extend(wait_for(&mut backend, done));
            }
        }
        let answers = answered(&events);
        assert_eq!(answers.len(), FILES as usize);
        let gone = |event: &Event| matches!(event, Event::Gone { file, .. } if *file == FileId(3));
        assert!(events.iter().any(gone), "{events:?}");
        check!(answers.values().all(|&complete| complete), "{answers:?}");
        for (n, file) in files {
            let pages = match n {
                4 => 1,
                6 => grown,
                _ => LONG,
            };
            let cached = cache::stat(&file, 0..pages * PAGE).unwrap().cached;
            check!(cached == pages, "{n}: {cached} of {pages}");
        }
        let issued = events
            .iter()
            .any(|event| matches!(event, Event::Issued { id, .. } if id.0 == 5));
        check!(!issued, "it was in memory");
    });
}

#[test]
fn large_files_and_those_of_which_nothing_is_known_have_no_kin() {
    let dir = dir();
    let path = dir.path().join("data");
    fs::write(&path, [7; 100]).unwrap();
    let small = meta(&path);
    let mut large = small.clone();
    large.size = 1 << 20;
    let mut unknown = small.clone();
    unknown.ino = 0;
    let files = (0..).map(FileId).zip([small, large, unknown]);
    let mut backend = PageCache::new(&Arc::new(files.collect()));
    let kin = |n| backend.kin(FileId(n)).is_some();
    assert_eq!([0, 1, 2, 3].map(kin), [true, false, false, false]);
}
