//! File systems that hints do harm: one that keeps no pages in memory for its readers reads everything twice, one that computes what is
//! read may compute it several times. None are given.

use foreread_tests::silent::Silent;
use foreread_tests::{Lab, Need, Slow};
use rustix::mount::{UnmountFlags, unmount};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "nothing_is_fetched_where_the_page_cache_keeps_nothing",
        ALL,
        &[Need::Root, Need::Fuse],
        unkept,
    ),
    (
        "nothing_is_fetched_of_a_file_system_that_computes_what_is_read",
        ALL,
        &[Need::Root, Need::Fuse],
        computed,
    ),
];

/// Bytes of the file: far more than Python's own files have, which are fetched as ever.
const SIZE: u64 = 48 << 20;

/// Reads the file by pieces of 64 KiB, from the end.
const BACKWARD: &str = "import os
file = os.open('mnt/data', os.O_RDONLY)
for at in range(48 << 20, 0, -(64 << 10)):
    assert len(os.pread(file, 64 << 10, at - (64 << 10))) == 64 << 10
";

fn unkept() {
    let lab = Lab::new();
    let _mount = Slow::mount(&lab, "striped");
    std::fs::write(lab.path("mnt/data"), vec![7; SIZE as usize]).expect("a file");
    lab.write("backward.py", BACKWARD);
    // The first run knows the pattern, the second all reads.
    for _ in 0..2 {
        let outcome = lab.run(&["python3", "backward.py"]);
        assert!(outcome.output.status.success(), "{outcome:?}");
        assert!(outcome.bytes("issued") < SIZE / 2, "{outcome:?}");
        assert!(outcome.bytes("useful") < SIZE / 2, "{outcome:?}");
    }
}

/// Reads scattered pieces of the file.
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
        assert_eq!(outcome.bytes("issued"), 0, "{outcome:?}");
    }
    // Nobody is left who holds it.
    unmount(&mounted.folder, UnmountFlags::empty()).expect("unmounted at once");
}
