//! The C header and this crate are one layout with one set of rules.

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::key::{sets_of, tag};
use crate::layout::{Counters, File, Header, Hint, Peer, Places, Set, version};
use crate::slot::Slot;
use crate::{Claim, ENV, Key, Mode, PAGE, PARTS, Segment};

/// The C program, compiled; `None` without a compiler.
fn program(folder: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("layout");
    let built = Command::new("cc")
        .args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../pmpi/src"))
        .arg("-o")
        .args([&path, &here.join("tests/layout.c")])
        .output();
    match built {
        Ok(built) => {
            assert!(built.status.success(), "{built:?}");
            Some(path)
        }
        Err(why) => {
            println!("skipped: cc: {why}");
            None
        }
    }
}

/// This crate's values, in the C program's form.
fn facts() -> Vec<String> {
    let mut facts = Vec::new();
    macro_rules! sizes {
        ($($name:literal $type:ty),*) => {
            $(facts.push(format!("size {} {}", $name, size_of::<$type>()));)*
        };
    }
    macro_rules! places {
        ($($name:literal $type:ty: $($field:ident),*;)*) => {
            $($(facts.push(format!("at {}.{} {}", $name, stringify!($field), offset_of!($type, $field)));)*)*
        };
    }
    sizes!("header" Header, "counts" Counters, "peer" Peer, "file" File, "set" Set, "slot" Slot, "place" Hint);
    places!(
        "header" Header: magic, version, slots, token, mode, peer_count, clock, logged, joined, file_count, claimed, slowest, reading,
            counts,
            peers, files;
        "counts" Counters: hits, hit_bytes, host_hits, host_bytes, remote_hits, remote_bytes, late, missed, voided, changed, filled,
            filled_bytes, left_bytes, beside_bytes, lost, evicted, unread;
        "peer" Peer: token, pid, fd;
        "file" File: dev, ino, direct, version;
        "slot" Slot: word, dev, ino, page, version, used, expected, fresh, waiters, wanted;
        "place" Hint: tag, place;
    );
    for slots in [1, 7, 8, 9, 512, 12345] {
        let Places {
            sets,
            slots: at,
            log,
            directory,
            pages,
            size,
        } = Places::of(slots);
        facts.push(format!(
            "places {slots} {sets} {at} {log} {directory} {pages} {size}"
        ));
    }
    // The whole pages of file 63, the last, within reads of some bytes; 0 if there are none, or if they have no word.
    let reading = |first: u64, count: u64| {
        let word = 63 << 58 | first << 24 | count;
        assert_eq!(crate::layout::reading(word), (63, first..first + count));
        word
    };
    let words = [0, reading(0, 1), reading(1, 1), 0, reading(10, 16383), 0, 0];
    facts.extend(words.map(|word| format!("reading {word}")));
    for n in 0..20_u64 {
        let key = Key {
            dev: n * 77,
            ino: n << 33,
            page: n * n,
        };
        let hash = key.hash();
        let [one, two] = sets_of(hash, 64);
        facts.push(format!("hash {n} {hash} {} {one} {two}", tag(hash)));
        facts.push(format!(
            "version {n} {}",
            version(n * 3, n as i64 * 1000, -(n as i64))
        ));
    }
    facts
}

#[test]
fn the_header_file_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return;
    };
    let said = Command::new(program).env_remove(ENV).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let facts = facts();
    for (number, said) in said.lines().enumerate() {
        assert_eq!(facts.get(number).map(String::as_str), Some(said));
    }
    assert_eq!(said.lines().count(), facts.len());
}

#[test]
fn a_rank_reads_nothing_but_what_a_page_holds_while_pages_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return;
    };
    let path = folder.path().join("file");
    let words = (0..64 * PARTS).flat_map(|part| std::iter::repeat_n(part.to_ne_bytes(), 512));
    std::fs::write(&path, words.flatten().collect::<Vec<u8>>()).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    // Eleven of the 64 pages fit, so that slots change hands all the time.
    let segment = Segment::create(11 * PAGE).unwrap();
    let mut readers: Vec<_> = (0..2)
        .map(|_| {
            let mut program = Command::new(&program);
            program.env(ENV, segment.env_value());
            program.spawn().unwrap()
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut fills = 0;
    while segment.counts().hits < 20_000
        && readers
            .iter_mut()
            .all(|one| one.try_wait().unwrap().is_none())
    {
        let key = Key {
            dev: 1,
            ino: 2,
            page: random.u64(..64),
        };
        let parts = random.u16(..);
        if let Claim::Fill(mut fill) = segment.claim(&key, parts, 0, true) {
            let parts = fill.parts();
            use std::os::fd::AsFd as _;
            fill.from_file(file.as_fd(), parts, 1).unwrap();
            fill.commit();
            fills += 1;
        }
    }
    segment.set_mode(Mode::Plain);
    for reader in &mut readers {
        assert!(reader.wait().unwrap().success());
    }
    let counts = segment.counts();
    assert!(fills > 0 && counts.evicted > 0, "{counts:?}");
}
