//! Files: how they are named, what becomes of them, and what the program has open.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use foreread_client::{Error, FileId, Flags, Match, Options};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use crate::{
    PAGE, PAGES, cached, client, cold, cold_region, dir, entry, read, scattered, settle, wait_for,
    wait_for_all,
};

#[test]
fn a_lock_of_the_program_survives_everything_the_client_does_with_the_file() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        let writable = File::options().write(true).open(&path).unwrap();
        rustix::fs::fcntl_lock(
            &writable,
            rustix::fs::FlockOperation::NonBlockingLockExclusive,
        )
        .unwrap();
        let held = || {
            let own = format!(" {} ", std::process::id());
            let inode = format!(":{} ", rustix::fs::fstat(&writable).unwrap().st_ino);
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks
                .lines()
                .any(|line| line.contains(&own) && line.contains(&inode))
        };
        assert!(held());
        let client = client();
        let id = client.add_path(&path).unwrap();
        assert_eq!(client.add_fd(file.as_fd()).unwrap(), id, "the same file");
        client.region(id, 0..u64::MAX).unwrap();
        let list = scattered(id);
        client.request(&list, Flags::SET).unwrap();
        wait_for_all(&file, &list);
        assert!(held());
        client.remove_file(id).unwrap();
        client.remove_file(id).unwrap();
        drop(client);
        settle();
        assert!(held(), "closed in the client's own table");
        drop(File::open(&path).unwrap());
        assert!(!held(), "what closing it in the program's table does");
    });
}

#[test]
fn a_client_takes_no_descriptor_from_the_program() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
        let list = scattered(id);
        client.request(&list, Flags::SET).unwrap();
        wait_for_all(&file, &list);
        let (dev, ino) = client.identity(id).unwrap();
        // Only the two this test opened itself can be there.
        let own = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| {
                use std::os::unix::fs::MetadataExt;
                let facts = std::fs::metadata(fd.ok()?.path()).ok()?;
                ((facts.dev(), facts.ino()) == (dev, ino)).then_some(())
            })
            .count();
        assert_eq!(own, 1);
    });
}

#[test]
fn a_file_whose_descriptor_is_closed_and_whose_name_is_gone_is_still_fetched() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        let client = client();
        let other = File::open(&path).unwrap();
        let id = client.add_fd(other.as_fd()).unwrap();
        std::fs::remove_file(&path).unwrap();
        drop(other);
        client.region(id, 0..u64::MAX).unwrap();
        let list = scattered(id);
        client.request(&list, Flags::SET).unwrap();
        wait_for_all(&file, &list);
    });
}

#[test]
fn a_descriptor_number_used_again_is_another_file() {
    rounds(|| {
        let dir = dir();
        let (Some((a, _)), Some((b, _))) = (cold(dir.path(), "A"), cold(dir.path(), "B")) else {
            return;
        };
        let client = client();
        let first = File::open(&a).unwrap();
        let id = client.add_fd(first.as_fd()).unwrap();
        let identity = client.identity(id).unwrap();
        // In the very place of the first, as close() and open() would have it.
        let second = File::open(&b).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&first);
        let mut place: std::os::fd::OwnedFd = first.into();
        rustix::io::dup3(&second, &mut place, rustix::io::DupFlags::empty()).unwrap();
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&place), number);
        let again = client.add_fd(place.as_fd()).unwrap();
        assert_ne!(again, id);
        assert_ne!(client.identity(again).unwrap(), identity);
    });
}

#[test]
fn a_file_may_grow_shrink_and_have_holes_under_its_list() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        let writable = File::options().write(true).open(&path).unwrap();
        let client = client();
        let id = client.add_path(&path).unwrap();
        client.region(id, 0..u64::MAX).unwrap();
        // Far past the end, and then one that is there.
        let list = [entry(id, PAGES + 1000), entry(id, 1 << 40), entry(id, 3)];
        client.request(&list, Flags::SET).unwrap();
        wait_for(&file, 1);
        // Longer, first of all by a hole.
        writable.set_len((PAGES + 2000) * PAGE).unwrap();
        writable
            .write_all_at(&[1; PAGE as usize], (PAGES + 1999) * PAGE)
            .unwrap();
        cache::evict(&writable).unwrap();
        client
            .request(&[entry(id, PAGES + 5), entry(id, PAGES + 1999)], Flags::SET)
            .unwrap();
        wait_for(&file, 1);
        settle();
        let fetched = cached(&file);
        assert!(
            fetched <= 1,
            "there is nothing to fetch of a hole: {fetched}"
        );
        // Shorter: what is past the end is left out, the rest goes on.
        writable.set_len(100 * PAGE).unwrap();
        cache::evict(&writable).unwrap();
        let list: Vec<_> = [1500, 20, 99, 100, 60].map(|page| entry(id, page)).into();
        client.request(&list, Flags::SET).unwrap();
        wait_for(&file, 3);
        for one in &list {
            assert_eq!(read(&client, id, &file, one.extent), Match::Listed);
        }
        let report = client.finish();
        assert!(report.stats.ledger.is_closed(), "{:?}", report.stats.ledger);
    });
}

#[test]
fn what_lies_past_the_end_is_fetched_once_the_file_has_grown() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        // Past the page cache, as another machine's writes to a shared file system go.
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let Ok(writable) = File::options().write(true).custom_flags(direct).open(&path) else {
            eprintln!("skipped: no O_DIRECT here");
            return;
        };
        let client = client();
        let id = client.add_path(&path).unwrap();
        client.region(id, 0..u64::MAX).unwrap();
        let list: Vec<_> = (0..100).map(|n| entry(id, PAGES + n * 7 % 100)).collect();
        client.request(&list, Flags::SET).unwrap();
        settle();
        assert_eq!(client.stats().ledger.issued, 0);
        let mut memory = vec![0u8; 101 * PAGE as usize];
        let from = memory.as_ptr().align_offset(PAGE as usize);
        let bytes = &mut memory[from..from + 100 * PAGE as usize];
        bytes.fill(7);
        writable.write_all_at(bytes, PAGES * PAGE).unwrap();
        wait_for(&file, 100);
        for one in &list {
            assert_eq!(read(&client, id, &file, one.extent), Match::Listed);
        }
        let ledger = client.finish().stats.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        let read = ledger.useful + ledger.late;
        check!(
            (ledger.issued, read) == (100 * PAGE, 100 * PAGE),
            "{ledger:?}"
        );
    });
}

#[test]
fn what_cannot_be_fetched_is_refused_by_name() {
    rounds(|| {
        let dir = dir();
        let client = client();
        let missing = client.add_path(&dir.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
        assert!(client.add_path(dir.path()).is_err(), "a directory");
        let null = File::open("/dev/null").unwrap();
        assert!(client.add_fd(null.as_fd()).is_err(), "a device");
        let stranger = FileId(7);
        assert!(matches!(
            client.region(stranger, 0..1),
            Err(Error::UnknownFile(FileId(7)))
        ));
        let list = [entry(stranger, 0)];
        assert!(matches!(
            client.request(&list, Flags::SET),
            Err(Error::UnknownFile(_))
        ));
        let both = Flags::SET | Flags::APPEND;
        assert!(matches!(client.request(&[], both), Err(Error::Flags(_))));
        let path = dir.path().join("empty");
        std::fs::write(&path, "").unwrap();
        let empty = client.add_path(&path).unwrap();
        assert!(matches!(
            client.region(empty, 5..5),
            Err(Error::EmptyRegion { start: 5, end: 5 })
        ));
        client.region(empty, 0..u64::MAX).unwrap();
        client.request(&[entry(empty, 0)], Flags::SET).unwrap();
    });
}
