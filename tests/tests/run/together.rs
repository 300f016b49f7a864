//! Small files that lie next to each other on a device are read by one operation, in whatever order the program comes to them.

use std::process::Command;

use foreread_tests::{Lab, Need, Slow, check, rounds};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[(
    "small_files_that_lie_together_are_read_together",
    ALL,
    &[Need::Root, Need::Fuse],
    together,
)];

/// Files, each of so many bytes.
const FILES: usize = 600;
const SIZE: usize = 12 << 10;

/// Reads all the files, in an order that is none.
const READER: &str = "import hashlib, os
names = sorted(os.listdir('mnt/many'), key=lambda name: hashlib.md5(name.encode()).digest())
for name in names:
    with open('mnt/many/' + name, 'rb', 0) as file:
        assert len(file.read()) == 12 << 10
";

fn together() {
    let lab = Lab::new();
    let disk = Slow::mount(&lab, "network-ssd");
    std::fs::create_dir(lab.path("mnt/many")).expect("a folder");
    let names: Vec<_> = (0..FILES).map(|n| format!("mnt/many/{n:03}")).collect();
    for name in &names {
        std::fs::write(lab.path(name), vec![7; SIZE]).expect("a file");
    }
    lab.write("reader.py", READER);
    // What was written is on the disk.
    Command::new("sync").status().expect("sync");
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    rounds(|| {
        let reads = || {
            lab.cold(&names);
            let before = disk.reads();
            let outcome = lab.run(&["python3", "reader.py"]);
            assert!(outcome.output.status.success(), "{outcome:?}");
            disk.reads() - before
        };
        // A round before this one has left a record.
        std::fs::remove_dir_all(lab.records_folder()).ok();
        let (first, second) = (reads(), reads());
        check!(first > FILES as u64 / 2, "{first} reads, unforeseen");
        check!(second < FILES as u64 / 3, "{second} reads of {first}");
    });
}
