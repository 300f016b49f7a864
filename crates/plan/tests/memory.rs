//! Memory of reading a record, in a process of its own: the peak is the process's.

#![allow(
    dead_code,
    reason = "shared with the tests of the format, which use all of it"
)]

#[path = "format/forge.rs"]
mod forge;
#[path = "format/support.rs"]
mod support;

use foreread_plan::Summary;
use foreread_plan::format::{MAX_ID, Reader};

use forge::{ended, rows};

/// 9 bytes per file on disk must not take hundreds in memory: the reader's limit holds for the smallest record.
#[test]
fn a_small_record_does_not_fill_the_memory() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            << 10
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.fr");
    std::fs::write(&path, ended(rows(MAX_ID), &Summary::default())).unwrap();
    let open = |memory| Reader::within(std::fs::File::open(&path).unwrap(), &path, memory);
    // Resets the process's peak; without that nothing is known.
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        println!("skipped: the peak of a process cannot be reset here");
        return;
    }
    let before = peak();
    let allowed = 16 << 20;
    let Err(refused) = open(allowed) else {
        panic!("taken");
    };
    let said = refused.to_string();
    assert!(
        said.contains("hostile.fr") && said.contains("16777216"),
        "{said}"
    );
    let grown = peak() - before;
    // Besides the tables there is a frame, stored and unpacked.
    assert!(grown < allowed + (12 << 20), "{grown} bytes");
    // The counted memory is at least the real one.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let reader = open(1 << 30).unwrap();
    let held = peak() - before;
    println!(
        "{} files: {held} bytes, counted as {}",
        reader.files().len(),
        reader.held_bytes()
    );
    assert!(held < reader.held_bytes() + (12 << 20), "{held}");
}
