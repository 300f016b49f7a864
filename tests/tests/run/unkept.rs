//! Where a file system keeps no pages in memory for its readers, hints only have it read everything twice: none are given.

use foreread_tests::{Lab, Need, Slow};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[(
    "nothing_is_fetched_where_the_page_cache_keeps_nothing",
    ALL,
    &[Need::Root, Need::Fuse],
    unkept,
)];

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
