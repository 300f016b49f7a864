//! The progress of a run, asked for by another mapping of the area.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foreread_ring::{BOARD_WORDS, Visit, address};

use super::ring;

#[test]
fn who_asks_is_answered_and_nothing_is_written_for_nobody() {
    let ring = ring();
    let board = ring.board();
    let value = ring.env_value();
    let path = address(value.as_bytes()).expect("its own address").path;
    let visit = Visit::at(Path::new(OsStr::from_bytes(path))).expect("an area");
    assert_eq!(visit.token(), ring.shared().token());
    assert!(!board.is_asked() && visit.answer().is_none());
    visit.ask();
    assert!(board.is_asked());
    for number in 1..4 {
        board.answer([number; BOARD_WORDS]);
        assert!(!board.is_asked());
        assert_eq!(visit.answer(), Some([number; BOARD_WORDS]));
        visit.ask();
    }
    // While questions are possible, the area can be found, even if the ring was dropped.
    drop(ring);
    assert!(Path::new(OsStr::from_bytes(path)).exists());
    board.answer([9; BOARD_WORDS]);
    assert_eq!(visit.answer(), Some([9; BOARD_WORDS]));
}

#[test]
fn what_is_no_area_is_not_mapped() {
    let file = tempfile();
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    file.set_len(foreread_ring::AREA_SIZE as u64)
        .expect("room for nothing");
    // Its owner could shrink it under whoever looks.
    let why = Visit::at(&path).expect_err("no area");
    assert_eq!(why.kind(), ErrorKind::InvalidData);
    assert!(Visit::at(Path::new("/no/such/file")).is_err());
}

fn tempfile() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("foreread-board-{}", std::process::id()));
    let mut options = std::fs::File::options();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = file.expect("a file");
    std::fs::remove_file(path).expect("our own file");
    file
}
