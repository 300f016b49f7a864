//! Which reads waited for a device: observers follow the kernel's counts of switches, not the duration that is typical of a device.

use std::fs::{self, File};

use foreread_plan::format::Reader;
use foreread_sys::cache;
use foreread_tests::suite::{ALL, QUICK, Test};
use foreread_tests::{Need, check, text};

use super::harness::Stage;
use super::recorded::record_command;

pub const TESTS: &[Test] = &[
    (
        "preload_tells_reads_that_waited_from_others",
        QUICK,
        &[Need::Command("cc")],
        || told_apart("preload"),
    ),
    (
        "ebpf_tells_reads_that_waited_from_others",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        || told_apart("ebpf"),
    ),
];

const PAGES: usize = 1000;
/// Reads longer than this, in ns, may count as waiting: the thread may have waited without being switched out.
const LONG: u64 = 20_000;

fn told_apart(observer: &str) {
    let stage = Stage::new();
    let (program, data) = (stage.cc("switched", &[]), stage.data());
    fs::write(&data, vec![7; PAGES << 12]).expect("our own file");
    cache::evict(File::open(&data).expect("our own file")).expect("pages leave memory");
    let [program, data_name] = [&program, &data].map(|path| path.to_str().expect("text"));
    let output = record_command(&stage, observer, &[program, data_name, &PAGES.to_string()]);
    assert!(output.status.success(), "{output:?}");
    let mut record = Reader::open(&stage.path("kept.fr")).expect("the record");
    let files = record.files().clone();
    let accesses = record.accesses().map(|access| access.expect("an access"));
    let reads: Vec<_> = accesses
        .filter(|access| access.kind.reads() && files[&access.file].path == data)
        .collect();
    let switched = text(&output.stdout);
    assert_eq!(reads.len(), switched.len());
    let waited = switched.matches('v').count();
    check!(waited > PAGES / 4, "the pages were in memory: {switched}");
    // An interrupted read may count as either, and a read that took as long as a device takes counts as a wait.
    let is_wrong = |switched: char, waited: bool, took: u64| match switched {
        'v' => !waited,
        '-' => waited && took < LONG,
        _ => false,
    };
    let wrong = (switched.chars().zip(&reads))
        .filter(|(how, read)| is_wrong(*how, read.waited(), read.took));
    let wrong: Vec<_> = wrong.map(|(how, read)| (how, read.took)).collect();
    // If a page arrives just when it is requested, the wait is shorter than any device takes.
    assert!(
        wrong.len() <= PAGES / 100,
        "of {waited} that waited: {wrong:?}"
    );
}
