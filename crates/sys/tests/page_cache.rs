//! The calls on a real file system: requests fetch pages, residency is truthful.
//!
//! The files are beside the test binaries, on a disk, because `/tmp` may be in memory.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_steady::{check, rounds};
use foreread_sys::device::Device;
use foreread_sys::file::FileFacts;
use foreread_sys::residency::Residency;
use foreread_sys::{cache, file, page_size};

const MIB: u64 = 1 << 20;

/// A file of `len` bytes on disk, not in the page cache, and its name while it lives.
fn cold_file(len: u64) -> (tempfile::NamedTempFile, File) {
    let name = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(name.path(), vec![7u8; len as usize]).unwrap();
    let (fd, facts) = file::open_regular(name.path()).unwrap();
    assert_eq!(facts.size, len);
    assert_eq!(cache::evict(&fd).unwrap(), 0, "pages stayed after evict");
    (name, File::from(fd))
}

/// True if pages of the folder's file system can be evicted.
fn on_a_disk() -> bool {
    let dev = file_dev(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let device = Device::of(dev);
    if device.fs_type == "tmpfs" {
        println!("skipped: the build folder is in memory (tmpfs)");
        return false;
    }
    true
}

fn file_dev(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().dev()
}

/// Waits, for ten seconds at most, until all pages of `range` are ready.
fn arrives(residency: &Residency, range: std::ops::Range<u64>) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    let mut pages = Vec::new();
    loop {
        residency.uptodate(range.clone(), &mut pages).unwrap();
        if pages.iter().all(|&ready| ready) {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn will_need_fetches_its_range_and_nothing_before_it() {
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(4 * MIB);
        cache::advise_random(&file).unwrap();
        cache::will_need(&file, MIB..MIB + 65536).unwrap();
        let residency = Residency::new(&file, 4 * MIB).unwrap();
        check!(arrives(&residency, MIB..MIB + 65536));
        let mut pages = Vec::new();
        residency.uptodate(0..MIB, &mut pages).unwrap();
        assert_eq!(pages.len() as u64, MIB / page_size());
        assert!(!pages.contains(&true));
        let fetched = cache::stat(&file, MIB..MIB + 65536).unwrap().cached;
        check!(fetched == 65536 / page_size(), "{fetched}");
        assert_eq!(cache::stat(&file, 0..MIB).unwrap().cached, 0);
    });
}

#[test]
fn readahead_fetches_its_range() {
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(MIB);
        cache::advise_random(&file).unwrap();
        cache::readahead(&file, 0..32768).unwrap();
        check!(arrives(&Residency::new(&file, MIB).unwrap(), 0..32768));
    });
}

#[test]
fn a_hint_of_max_hint_bytes_is_not_cut() {
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(12 * MIB);
        let hint = Device::of(file::FileFacts::of(&file).unwrap().dev)
            .max_hint
            .min(12 * MIB);
        cache::will_need(&file, 0..hint).unwrap();
        let cached = cache::stat(&file, 0..hint).unwrap().cached;
        check!(
            cached == hint / page_size(),
            "{cached} of a hint of {hint} bytes"
        );
    });
}

#[test]
fn an_empty_hint_does_not_mean_the_whole_file() {
    rounds(|| {
        let (_name, file) = cold_file(MIB);
        cache::will_need(&file, 8192..8192).unwrap();
        cache::readahead(&file, 8192..8192).unwrap();
        assert_eq!(cache::stat(&file, 0..MIB).unwrap().cached, 0);
        assert_eq!(
            cache::stat(&file, 5..5).unwrap(),
            cache::CacheStat::default()
        );
        file.read_at(&mut [0; 4096], 0).unwrap();
        let before = cache::stat(&file, 0..MIB).unwrap().cached;
        cache::dont_need(&file, 0..0).unwrap();
        let after = cache::stat(&file, 0..MIB).unwrap().cached;
        check!(after == before, "{after} of {before}");
    });
}

#[test]
fn dont_need_drops_its_range_only() {
    rounds(|| {
        let (_name, mut file) = cold_file(MIB);
        // Read-ahead may join pages into large folios, which are dropped whole or not at all.
        cache::advise_random(&file).unwrap();
        file.read_to_end(&mut Vec::new()).unwrap();
        cache::dont_need(&file, 0..MIB / 2).unwrap();
        assert_eq!(cache::stat(&file, 0..MIB / 2).unwrap().cached, 0);
        let kept = cache::stat(&file, MIB / 2..MIB).unwrap().cached;
        check!(kept == MIB / 2 / page_size(), "{kept}");
    });
}

#[test]
fn evict_reports_the_pages_a_mapping_holds() {
    let (_name, file) = cold_file(MIB);
    // A mapping with touched pages pins them; the program itself is such a file.
    let (exe, _) = file::open_regular(&std::env::current_exe().unwrap()).unwrap();
    assert!(cache::evict(&exe).unwrap() > 0);
    assert_eq!(cache::evict(&file).unwrap(), 0);
}

#[test]
fn a_random_reader_gets_no_read_ahead_and_a_normal_one_does() {
    let dev = file_dev(Path::new(env!("CARGO_TARGET_TMPDIR")));
    if Device::of(dev).read_ahead == 0 {
        println!("skipped: the kernel does not read ahead on this disk");
        return;
    }
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(MIB);
        cache::advise_random(&file).unwrap();
        file.read_at(&mut [0; 4096], 0).unwrap();
        let alone = cache::stat(&file, 0..MIB).unwrap().cached;
        check!(alone == 4096u64.div_ceil(page_size()), "{alone}");
        cache::evict(&file).unwrap();
        cache::advise_normal(&file).unwrap();
        file.read_at(&mut [0; 4096], 0).unwrap();
        check!(cache::stat(&file, 0..MIB).unwrap().cached > 1);
    });
}

#[test]
fn is_uptodate_tells_hot_from_cold() {
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(MIB);
        cache::advise_random(&file).unwrap();
        // To ask is to start reading the page, and a fast device may have answered before the call looks.
        if cache::is_uptodate(&file, MIB / 2).unwrap() {
            let page = MIB / 2..MIB / 2 + page_size();
            check!(cache::stat(&file, page).unwrap().cached == 1);
        }
        file.read_at(&mut [0; 1], MIB / 2).unwrap();
        check!(cache::is_uptodate(&file, MIB / 2).unwrap());
        assert!(cache::is_uptodate(&file, MIB).unwrap(), "at the end");
    });
}

#[test]
fn a_page_that_the_question_itself_fetched_was_not_there() {
    rounds(|| {
        if !on_a_disk() {
            return;
        }
        let (_name, file) = cold_file(4 * MIB);
        cache::advise_random(&file).unwrap();
        for offset in (0..4 * MIB).step_by(8192) {
            assert!(!cache::was_uptodate(&file, offset).unwrap(), "{offset}");
        }
        file.read_at(&mut [0; 1], 4096).unwrap();
        check!(cache::was_uptodate(&file, 4096).unwrap());
    });
}

#[test]
fn residency_looks_without_touching() {
    rounds(|| {
        let (_name, file) = cold_file(MIB);
        let residency = Residency::new(&file, MIB).unwrap();
        let mut pages = Vec::new();
        residency.uptodate(0..MIB, &mut pages).unwrap();
        assert!(!pages.contains(&true));
        assert_eq!(cache::stat(&file, 0..MIB).unwrap().cached, 0);
        file.read_at(&mut [0; 1], 3 * page_size()).unwrap();
        residency
            .uptodate(3 * page_size()..4 * page_size(), &mut pages)
            .unwrap();
        check!(pages == [true], "{pages:?}");
    });
}

#[test]
fn residency_of_empty_shrunk_and_overasked_files_is_no_fault() {
    let name = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut pages = vec![true];
    let empty = Residency::new(name.as_file(), 0).unwrap();
    empty.uptodate(0..4096, &mut pages).unwrap();
    assert!(empty.is_empty() && pages.is_empty());

    fs::write(name.path(), vec![1; 10_000]).unwrap();
    let residency = Residency::new(name.as_file(), 10_000).unwrap();
    name.as_file().set_len(0).unwrap();
    residency.uptodate(0..u64::MAX, &mut pages).unwrap();
    assert_eq!(pages.len() as u64, 10_000u64.div_ceil(page_size()));
    assert!(!pages.contains(&true));
}

#[test]
fn an_owner_may_ask_for_residency() {
    let (_name, file) = cold_file(4096);
    assert!(Residency::permitted(&file, FileFacts::of(&file).unwrap().uid).unwrap());
}

#[test]
fn the_extents_of_a_file_cover_its_data_and_leave_out_its_holes() {
    let name = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = name.as_file();
    file.write_all_at(&vec![1; 65536], MIB).unwrap();
    file.sync_all().unwrap();
    match file::fiemap(file, 0..2 * MIB) {
        Ok(extents) => {
            let bytes: u64 = extents.iter().map(|extent| extent.len).sum();
            assert_eq!(bytes, 65536, "{extents:?}");
            assert_eq!(extents[0].logical, MIB);
            let half = file::fiemap(file, MIB + 32768..2 * MIB).unwrap();
            assert_eq!(half[0].logical, MIB + 32768);
            assert_eq!(half[0].physical, extents[0].physical + 32768);
        }
        Err(error) => println!("skipped: no FIEMAP here: {error}"),
    }
}

#[test]
fn what_was_never_written_is_told_from_what_was() {
    let name = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = name.as_file();
    file.set_len(8 * MIB).unwrap();
    // Set aside and not written to, and then written in its middle.
    let aside = rustix::fs::FallocateFlags::empty();
    if let Err(error) = rustix::fs::fallocate(file, aside, 2 * MIB, MIB) {
        println!("skipped: no room can be set aside here: {error}");
        return;
    }
    file.write_all_at(&[1; 65536], 2 * MIB + 65536).unwrap();
    file.write_all_at(&[1; 65536], 5 * MIB).unwrap();
    file.sync_all().unwrap();
    match file::written(file, 0..8 * MIB) {
        Ok(written) => assert_eq!(
            written,
            [2 * MIB + 65536..2 * MIB + 131_072, 5 * MIB..5 * MIB + 65536]
        ),
        Err(error) => println!("skipped: no FIEMAP here: {error}"),
    }
    let facts = FileFacts::of(file).unwrap();
    assert!(facts.allocated < facts.size, "{facts:?}");
    file.set_len(0).unwrap();
    assert_eq!(FileFacts::of(file).unwrap().allocated, 0);
}

#[test]
fn more_extents_than_one_call_returns_are_all_found() {
    let name = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = name.as_file();
    for block in 0..300 {
        file.write_all_at(&[1; 4096], block * 16384).unwrap();
    }
    file.sync_all().unwrap();
    match file::fiemap(file, 0..u64::MAX) {
        Ok(extents) => assert_eq!(extents.len(), 300),
        Err(error) => println!("skipped: no FIEMAP here: {error}"),
    }
}

#[test]
fn nothing_but_regular_files_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for path in [fifo.as_path(), folder.path(), Path::new("/dev/null")] {
        let error = file::open_regular(path).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    }
    let missing = file::open_regular(&folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn opening_follows_links_and_leaves_the_access_time() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = folder.path().join("target");
    let link = folder.path().join("link");
    fs::write(&target, b"hello").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    // An access time in the past would be renewed by a read under relatime.
    let past = std::time::SystemTime::now() - Duration::from_secs(10 * 86400);
    File::options()
        .write(true)
        .open(&target)
        .unwrap()
        .set_times(fs::FileTimes::new().set_accessed(past))
        .unwrap();
    let before = fs::metadata(&target).unwrap();
    let (fd, facts) = file::open_regular(&link).unwrap();
    assert_eq!((facts.ino, facts.size), (before.ino(), 5));
    assert_eq!(
        facts.mtime_ns,
        before.mtime() * 1_000_000_000 + before.mtime_nsec()
    );
    let mut text = String::new();
    File::from(fd).read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    assert_eq!(fs::metadata(&target).unwrap().atime(), before.atime());
}
