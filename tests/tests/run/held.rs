//! The program's closed files are free: foreread holds no file open or mapped longer than it works on the file, neither while it records
//! nor while it prefetches.

use std::path::PathBuf;
use std::process::Command;

use foreread_tests::{Lab, Need, eventually, finish, foreread, start, text};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    ("a_file_that_was_closed_can_be_leased", QUICK, &[], leased),
    (
        "who_holds_a_lease_is_not_told_of_foreread",
        QUICK,
        &[],
        lessee,
    ),
    (
        "a_file_system_whose_files_were_closed_can_be_unmounted",
        QUICK,
        &[Need::Loop],
        unmounted,
    ),
    (
        "a_file_system_that_the_program_leaves_can_be_unmounted",
        QUICK,
        &[Need::Loop],
        left,
    ),
    (
        "the_room_of_a_deleted_file_is_free",
        QUICK,
        &[Need::Loop],
        deleted,
    ),
    ("an_executable_can_be_written_anew", QUICK, &[], rewritten),
];

/// Runs a command three times under foreread: recorded, prefetched, and with all files in memory, each after `before`.
#[track_caller]
fn thrice(lab: &Lab, command: &[&str], before: impl Fn(bool)) {
    before(false);
    let plain = lab.plain(command);
    assert!(plain.status.success(), "{plain:?}");
    for cold in [true, true, false] {
        before(cold);
        let outcome = lab.run(command);
        outcome.assert_as(&plain);
    }
}

fn leased() {
    let lab = Lab::new();
    lab.program("lease", &[]);
    let names: Vec<String> = (0..24).map(|n| format!("small{n}")).collect();
    let mut files: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &files {
        lab.write(name, vec![7; 30_000]);
    }
    lab.data("large", 4);
    files.push("large");
    let mut command = vec!["./lease"];
    command.extend(&files);
    thrice(&lab, &command, |cold| {
        if cold {
            lab.cold(&files);
        }
    });
}

fn lessee() {
    let lab = Lab::new();
    lab.program("lessee", &[]);
    let names = ["leased", "one", "two", "three"];
    for name in names {
        lab.data(name, 4);
    }
    let command = [&["./lessee"], &names[..]].concat();
    if lab.plain(&command).status.code() == Some(77) {
        eprintln!("skipped: this file system has no leases");
        return;
    }
    thrice(&lab, &command, |cold| {
        if cold {
            lab.cold(&names);
        }
    });
}

/// A small file system in a lab, mounted at `mnt`.
struct Disk<'a>(&'a Lab);

impl<'a> Disk<'a> {
    fn new(lab: &'a Lab) -> Self {
        lab.write("image", vec![0; 64 << 20]);
        std::fs::create_dir(lab.path("mnt")).expect("our own directory");
        let disk = Self(lab);
        disk.call("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", "image"]);
        disk
    }

    fn call(&self, program: &str, args: &[&str]) {
        let status = self.0.command(program).args(args).status();
        assert!(status.is_ok_and(|status| status.success()), "{program}");
    }

    fn mount(&self) {
        self.unmount();
        // Another process may take the free loop device first.
        eventually("a mount", || {
            let mut mount = self.0.command("mount");
            let output = mount.args(["-o", "loop", "image", "mnt"]).output();
            output.is_ok_and(|output| output.status.success())
        });
    }

    fn unmount(&self) {
        let _ = self.0.command("umount").arg("mnt").output();
    }

    fn file(&self) -> PathBuf {
        self.0.path("mnt/data")
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Retries a command, because foreread's threads may wait for a processor meanwhile. A file held until the program's end would be held
/// longer than all retries take.
const AGAIN: &str = "again() { n=0; while [ $n -lt 1500 ]; do \"$@\" 2> /dev/null && return; sleep 0.02; n=$((n + 1)); done; \
                     echo \"$*: refused\"; }";

fn unmounted() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    let disk = Disk::new(&lab);
    disk.mount();
    std::fs::copy(lab.data("data", 16), disk.file()).expect("room");
    let script = format!("{AGAIN}; ./scatter 600 50 mnt/data; again umount mnt");
    thrice(&lab, &["sh", "-c", &script], |cold| {
        disk.mount();
        if !cold {
            std::fs::read(disk.file()).expect("our own file");
        }
    });
}

fn left() {
    let lab = Lab::new();
    let disk = Disk::new(&lab);
    let mount = lab.path("mnt").display().to_string();
    // Standard input and the working directory are on the disk, and the program leaves both.
    let script = format!("{AGAIN}; cat; exec < /dev/null; cd /; again umount {mount}");
    let mut all = Vec::new();
    for is_plain in [true, false, false] {
        disk.mount();
        std::fs::write(disk.file(), "read\n").expect("room");
        let mut command = lab.command("sh");
        command.args(["-c", "exec \"$@\" < data", "sh"]);
        if !is_plain {
            command.arg(foreread()).args(["run", "--quiet", "--"]);
        }
        command.args(["sh", "-c", &script]).current_dir(&mount);
        all.push(finish(start(&mut command)));
    }
    assert_eq!(text(&all[0].stdout), "read\n");
    assert_eq!(all[1], all[0]);
    assert_eq!(all[2], all[0]);
}

fn deleted() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    let disk = Disk::new(&lab);
    lab.data("data", 36);
    // The second copy has room only after the first one is freed.
    let copy = "head -c 36M data > mnt/again";
    let script = format!(
        "{AGAIN}; ./scatter 600 50 mnt/data; rm mnt/data; copy() {{ {copy}; }}; again copy; rm mnt/again"
    );
    thrice(&lab, &["sh", "-c", &script], |cold| {
        disk.mount();
        std::fs::copy(lab.path("data"), disk.file()).expect("room");
        if cold {
            // A new mount has nothing in memory.
            let synced = Command::new("sync").status();
            assert!(synced.is_ok_and(|status| status.success()));
            disk.mount();
        }
    });
}

fn rewritten() {
    let lab = Lab::new();
    lab.script("tool", "");
    lab.program("scatter", &[]);
    lab.data("data", 4);
    let script =
        "cp scatter tool; ./tool 100 50 data; cat /bin/true > tool && ./tool && echo rewritten";
    thrice(&lab, &["sh", "-c", script], |cold| {
        if cold {
            lab.cold(&["data", "scatter"]);
        }
    });
}
