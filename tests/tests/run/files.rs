//! Planned files that have changed since the recording. The program reads the present files, the changed file is named, and the plan's
//! other file is still prefetched.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

use foreread_tests::{Lab, Need, Outcome, check};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    ("a_modified_file_is_named", QUICK, &[], modified),
    ("a_file_that_shrank_is_named", QUICK, &[], shrunk),
    (
        "a_file_whose_change_leads_the_program_elsewhere_is_named",
        ALL,
        &[],
        led_elsewhere,
    ),
    ("a_file_that_grew_is_named", ALL, &[], grown),
    ("a_replaced_file_is_named", QUICK, &[], replaced),
    ("a_change_is_told_once", ALL, &[], told_once),
    (
        "what_the_program_itself_changes_is_not_told",
        ALL,
        &[],
        own_change,
    ),
    ("a_removed_file_is_named", QUICK, &[], removed),
    ("a_fifo_in_a_files_place_holds_nothing_up", QUICK, &[], fifo),
    ("a_folder_in_a_files_place_is_named", ALL, &[], folder),
    (
        "a_dangling_link_in_a_files_place_is_named",
        ALL,
        &[],
        dangling,
    ),
    (
        "an_unreadable_file_is_named",
        ALL,
        &[Need::Nobody],
        unreadable,
    ),
    (
        "a_file_that_is_no_longer_there_is_named_where_nothing_else_is_missing",
        ALL,
        &[],
        alone,
    ),
    (
        "a_file_emptied_while_the_program_reads_harms_nobody",
        QUICK,
        &[],
        emptied,
    ),
];

const COMMAND: &[&str] = &["./scatter", "500", "50", "data", "other"];

fn recorded_in(lab: Lab) -> Lab {
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.data("other", 8);
    lab.cold(&["data", "other"]);
    lab.run(COMMAND);
    lab
}

/// Records, applies `change` to `data`, and runs again with `other` cold.
#[track_caller]
fn after(lab: Lab, change: impl Fn(&Lab)) -> Outcome {
    let lab = recorded_in(lab);
    change(&lab);
    let plain = lab.plain(COMMAND);
    lab.cold(&["other"]);
    if lab.path("data").is_file() && !lab.path("data").is_symlink() {
        lab.cold(&["data"]);
    }
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&plain);
    outcome.check_mode("prefetched");
    let read = outcome.bytes("useful") + outcome.bytes("late");
    check!(read > 500 * 4096 * 8 / 10, "{outcome:?}");
    let data = lab.path("data");
    let named = outcome.account["files"].as_array().expect("a list");
    let named = named.iter().filter(|said| {
        said.as_str()
            .is_some_and(|said| said.starts_with(data.to_str().unwrap()))
    });
    let named = named.count();
    assert!(named <= 1, "{outcome:?}");
    // The program may end before foreread looks at the file.
    check!(named == 1, "{outcome:?}");
    check!(
        outcome.reason().contains(data.to_str().unwrap()),
        "{outcome:?}"
    );
    outcome
}

fn write(lab: &Lab) {
    let mut file = OpenOptions::new()
        .write(true)
        .open(lab.path("data"))
        .expect("our own file");
    file.write_all(b"something else").expect("our own file");
    file.sync_all().expect("our own file");
}

fn replace(lab: &Lab) {
    fs::rename(lab.data("new", 8), lab.path("data")).expect("our own file");
}

fn modified() {
    after(Lab::new(), write);
}

fn resized(lab: &Lab, len: u64) {
    let file = OpenOptions::new()
        .write(true)
        .open(lab.path("data"))
        .expect("our own file");
    file.set_len(len).expect("our own file");
    file.sync_all().expect("our own file");
}

fn shrunk() {
    after(Lab::new(), |lab| resized(lab, (1 << 20) + 100));
}

fn led_elsewhere() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 16);
    let command = ["./scatter", "1500", "100", "data"];
    lab.cold(&["data"]);
    lab.run(&command);
    resized(&lab, 3 << 20);
    let plain = lab.plain(&command);
    lab.cold(&["data"]);
    let outcome = lab.run(&command);
    outcome.assert_as(&plain);
    let changed = format!(
        "{}: has changed since it was recorded, to 3.00 MiB",
        lab.path("data").display()
    );
    check!(outcome.reason() == changed, "{outcome:?}");
}

fn grown() {
    after(Lab::new(), |lab| resized(lab, 9 << 20));
}

fn replaced() {
    after(Lab::new(), replace);
}

/// Runs the command cold, and returns the lines about `data`.
#[track_caller]
fn said_of_data(lab: &Lab, command: &[&str]) -> Vec<String> {
    lab.cold(&["data", "other"]);
    let outcome = lab.run(command);
    outcome.check_mode("prefetched");
    check!(
        !outcome.account["recorded_wall_ns"].is_null(),
        "{outcome:?}"
    );
    let data = lab.path("data").display().to_string();
    let named = outcome.account["files"].as_array().expect("a list");
    let named = named.iter().filter_map(|said| said.as_str());
    named
        .filter(|said| said.starts_with(&data))
        .map(str::to_owned)
        .collect()
}

fn told_once() {
    let lab = recorded_in(Lab::new());
    let tell_once = |change: &dyn Fn(&Lab), word: &str| {
        change(&lab);
        let said = said_of_data(&lab, COMMAND);
        check!(said.len() == 1 && said[0].contains(word), "{said:?}");
        for _ in 0..2 {
            assert_eq!(said_of_data(&lab, COMMAND), [""; 0]);
        }
    };
    tell_once(&write, "was modified");
    tell_once(&|lab| resized(lab, 9 << 20), "has changed");
    tell_once(&replace, "is another file");
}

fn own_change() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.data("other", 8);
    lab.script(
        "job",
        "#!/bin/sh\n./scatter 500 50 data other\necho more >> data\n",
    );
    lab.cold(&["data", "other"]);
    lab.run(&["./job"]);
    for _ in 0..3 {
        assert_eq!(said_of_data(&lab, &["./job"]), [""; 0]);
    }
}

fn remove(lab: &Lab) {
    fs::remove_file(lab.path("data")).expect("our own file");
}

fn removed() {
    after(Lab::new(), remove);
}

fn fifo() {
    after(Lab::new(), |lab| {
        remove(lab);
        mknodat(CWD, lab.path("data"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    });
}

fn folder() {
    after(Lab::new(), |lab| {
        remove(lab);
        fs::create_dir(lab.path("data")).expect("a folder");
    });
}

fn dangling() {
    after(Lab::new(), |lab| {
        remove(lab);
        symlink("nowhere", lab.path("data")).expect("a link");
    });
}

/// The plan has no other file, or the other file is in memory: nothing is left to be fetched.
fn alone() {
    let only = &["./scatter", "500", "50", "data"];
    let remade = |lab: &Lab| {
        remove(lab);
        fs::create_dir(lab.path("data")).expect("a folder");
    };
    let emptied = |lab: &Lab| resized(lab, 0);
    let cut_short = |lab: &Lab| resized(lab, 1 << 20);
    let changes: [&dyn Fn(&Lab); 4] = [&remove, &emptied, &remade, &cut_short];
    let commands = [only, only, COMMAND, COMMAND];
    for (command, change) in commands.into_iter().zip(changes) {
        let lab = Lab::new();
        lab.program("scatter", &[]);
        lab.data("data", 8);
        lab.data("other", 8);
        lab.cold(&["data", "other"]);
        lab.run(command);
        change(&lab);
        let plain = lab.plain(command);
        let outcome = lab.run(command);
        outcome.assert_as(&plain);
        let data = lab.path("data");
        check!(
            outcome.reason().contains(data.to_str().unwrap()),
            "{outcome:?}"
        );
    }
}

fn unreadable() {
    after(Lab::of_nobody(), |lab| {
        fs::set_permissions(lab.path("data"), fs::Permissions::from_mode(0o000))
            .expect("our own file");
    });
}

fn emptied() {
    let lab = recorded_in(Lab::new());
    lab.script(
        "job",
        "#!/bin/sh\n./scatter 500 200 data other > /dev/null & sleep 0.05; : > data; wait; cat other | cksum\n",
    );
    let plain = lab.plain(&["sh", "-c", "cksum < other"]);
    lab.data("data", 8);
    for _ in 0..2 {
        lab.data("data", 8);
        lab.cold(&["data", "other"]);
        let outcome = lab.run(&["./job"]);
        assert_eq!(outcome.output.stdout, plain.stdout, "{outcome:?}");
        assert_eq!(outcome.output.status, plain.status, "{outcome:?}");
    }
}
