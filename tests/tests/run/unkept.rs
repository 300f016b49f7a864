//! File systems that prefetching would harm: one that keeps no pages in memory for its readers reads everything twice, and one that
//! computes its data may compute it several times. Neither is prefetched. One that only waits, as for a network, is prefetched. Reads past
//! the page cache (`O_DIRECT`) would not find there what was fetched.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use foreread_plan::Summary;
use foreread_plan::format::{Reader, RecordFile};
use foreread_tests::silent::{FILE, Silent};
use foreread_tests::{Lab, Need, Outcome, Slow, check, eventually, text};
use rustix::fs::{Advice, fadvise};
use rustix::mount::{UnmountFlags, unmount};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "nothing_is_fetched_where_the_page_cache_keeps_nothing",
        ALL,
        &[Need::Root, Need::Fuse],
        unkept,
    ),
    (
        "nothing_is_fetched_for_reads_past_the_page_cache",
        QUICK,
        &[Need::Command("python3")],
        || past("preload"),
    ),
    (
        "nothing_is_fetched_for_reads_past_the_page_cache_that_the_kernel_reports",
        QUICK,
        &[Need::Command("python3"), Need::Ebpf],
        || past("ebpf"),
    ),
    (
        "nothing_is_fetched_of_a_file_system_that_computes_what_is_read",
        ALL,
        &[Need::Root, Need::Fuse],
        computed,
    ),
    (
        "what_waits_for_a_server_that_computes_nothing_is_fetched",
        ALL,
        &[Need::Root, Need::Fuse],
        served,
    ),
    (
        "a_process_may_serve_a_file_system_on_a_block_device",
        ALL,
        &[Need::Root, Need::Fuse, Need::Loop],
        on_a_device,
    ),
];

/// Bytes of the file: far more than Python's own files, which are still prefetched.
const SIZE: u64 = 48 << 20;

/// Reads the file backward in pieces of 64 KiB.
const BACKWARD: &str = "import os
file = os.open('mnt/data', os.O_RDONLY)
for at in range(48 << 20, 0, -(64 << 10)):
    assert len(os.pread(file, 64 << 10, at - (64 << 10))) == 64 << 10
";

/// Reads a file backward, every second page, past the page cache: opened so, or told so later.
const PAST: &str = "import fcntl, mmap, os, sys
page = mmap.mmap(-1, 4096)
direct = os.O_DIRECT if sys.argv[1] == 'open' else 0
file = os.open('data', os.O_RDONLY | direct)
if not direct:
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_DIRECT)
total = 0
for offset in range((8 << 20) - 4096, -1, -8192):
    total += os.preadv(file, [page], offset)
print(total)
";

/// Whether the first run has a pattern, or a later one a record.
fn past(observer: &str) {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.write("past.py", PAST);
    // The kernel reports the flags of opens alone.
    let ways = ["open", "fcntl"];
    for way in &ways[..if observer == "preload" { 2 } else { 1 }] {
        for _ in 0..2 {
            lab.cold(&["data"]);
            let outcome = lab.run_with(
                &["--explain", "--observer", observer],
                &["python3", "past.py", way],
            );
            assert_eq!(outcome.stdout(), "4194304\n");
            assert_eq!(lab.cached("data"), 0, "{way}: {outcome:?}");
            let said = outcome.stderr().replace("\nforeread:", " ");
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains("4.00 MiB read with O_DIRECT"), "{said}");
        }
    }
}

fn unkept() {
    let lab = Lab::new();
    let _mount = Slow::mount(&lab, "striped");
    std::fs::write(lab.path("mnt/data"), vec![7; SIZE as usize]).expect("a file");
    lab.write("backward.py", BACKWARD);
    // The first run has the pattern, the second all reads.
    for _ in 0..2 {
        let outcome = lab.run(&["python3", "backward.py"]);
        assert!(outcome.output.status.success(), "{outcome:?}");
        assert!(outcome.bytes("issued") < SIZE / 2, "{outcome:?}");
        assert!(outcome.bytes("useful") < SIZE / 2, "{outcome:?}");
    }
}

/// Reads scattered pieces of the file; none of them is in memory.
const SCATTERED: &str = "import os
file = os.open('mnt/data', os.O_RDONLY)
for piece in range(150):
    assert len(os.pread(file, 4096, piece * 37 % 151 << 14)) == 4096
";

fn computed() {
    let lab = Lab::new();
    let mounted = Silent::mount(&lab.path("mnt")).expect("FUSE");
    mounted.compute();
    lab.write("scattered.py", SCATTERED);
    for _ in 0..2 {
        let outcome = lab.run(&["python3", "scattered.py"]);
        assert!(outcome.output.status.success(), "{outcome:?}");
        assert!(!outcome.says("mnt/data"), "{outcome:?}");
        check_nothing_fetched(&outcome);
    }
    // foreread holds the file system no longer; another process may look at it.
    eventually("it is unmounted", || {
        unmount(&mounted.folder, UnmountFlags::empty()).is_ok()
    });
}

/// A run of the program with nothing of the file in memory; its record says that other processes computed for this long meanwhile.
fn follow(lab: &Lab, mounted: &Silent, others_ns: u64) -> Outcome {
    let path = lab.record();
    let mut reader = Reader::open(&path).expect("the record");
    let mut record = RecordFile::create(&path, reader.meta(), u64::MAX).expect("a record");
    for (&id, meta) in reader.files() {
        record.file(id, meta.clone()).expect("a record");
    }
    for (&id, meta) in reader.threads() {
        record.thread(id, meta.clone()).expect("a record");
    }
    let summary = reader.summary().expect("a whole record").clone();
    for access in reader.accesses() {
        record
            .access(&access.expect("an access"))
            .expect("a record");
    }
    record
        .commit(Summary {
            others_ns: Some(others_ns),
            helped: false,
            ..summary
        })
        .expect("a record");
    let file = File::open(mounted.folder.join(FILE)).expect("the file");
    fadvise(&file, 0, None, Advice::DontNeed).expect("dropped from memory");
    let outcome = lab.run(&["python3", "scattered.py"]);
    assert!(outcome.output.status.success(), "{outcome:?}");
    outcome
}

/// Checks the rule for runs that follow a record: the file is prefetched only if no other process computed while its reads waited.
fn check_rule(lab: &Lab, mounted: &Silent) {
    mounted.wait();
    lab.write("scattered.py", SCATTERED);
    let recorded = lab.run(&["python3", "scattered.py"]);
    assert!(recorded.output.status.success(), "{recorded:?}");
    let spared = follow(lab, mounted, u64::MAX);
    check_nothing_fetched(&spared);
    let fetched = follow(lab, mounted, 0);
    check!(fetched.bytes("issued") > 0, "{fetched:?}");
}

/// Checks that nothing was fetched. Python's own files are, if another process has emptied the page cache.
fn check_nothing_fetched(outcome: &Outcome) {
    check!(outcome.bytes("issued") == 0, "{outcome:?}");
}

fn served() {
    let lab = Lab::new();
    let mounted = Silent::mount(&lab.path("mnt")).expect("FUSE");
    check_rule(&lab, &mounted);
}

fn on_a_device() {
    let lab = Lab::new();
    let device = Loop::new(&lab.data("image", 1));
    let mounted = Silent::mount_on(&device.0, &lab.path("mnt")).expect("FUSE");
    check_rule(&lab, &mounted);
}

/// A loop device, detached on drop.
struct Loop(PathBuf);

impl Loop {
    fn new(image: &Path) -> Self {
        let mut losetup = Command::new("losetup");
        let made = losetup.args(["--find", "--show"]).arg(image).output();
        let made = made.expect("losetup");
        assert!(made.status.success(), "{made:?}");
        Self(text(&made.stdout).trim().into())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}
