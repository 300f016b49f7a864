//! Names: a program's lookups are recorded in their order, and a later run that follows the record is not harmed by any change of the
//! names since.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use foreread_plan::format::Reader;
use foreread_plan::{FileMeta, Kind};
use foreread_tests::silent::Silent;
use foreread_tests::{Lab, Need, Outcome, check};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "names_are_recorded_in_order_and_once",
        ALL,
        &[],
        in_order_and_once,
    ),
    (
        "what_a_run_makes_itself_is_not_recorded_as_a_name",
        ALL,
        &[],
        made_by_itself,
    ),
    (
        "a_walk_is_recorded_whole_though_it_reads_nothing",
        ALL,
        &[Need::Command("find")],
        walk,
    ),
    (
        "names_that_are_not_in_memory_are_looked_up_ahead",
        ALL,
        &[Need::Root],
        ahead,
    ),
    (
        "a_record_of_names_stays_whatever_of_its_program_is_in_memory",
        ALL,
        &[Need::Root],
        whatever_is_in_memory,
    ),
    (
        "what_has_become_of_names_since_harms_no_run",
        QUICK,
        &[Need::Command("mkfifo")],
        changed,
    ),
    (
        "a_directory_of_very_many_entries_harms_no_run",
        QUICK,
        &[],
        very_many_entries,
    ),
    (
        "names_that_the_user_may_not_look_at_are_left_alone",
        QUICK,
        &[Need::Nobody],
        of_others,
    ),
    (
        "names_of_a_file_system_that_is_gone_harm_no_run",
        QUICK,
        &[Need::Root],
        unmounted,
    ),
    (
        "names_of_a_file_system_that_does_not_answer_hold_nobody_up",
        QUICK,
        &[Need::Fuse],
        silent,
    ),
];

const COMMAND: &[&str] = &["./looker", "list"];

/// A lab with the program and the list of its lookups.
fn lab(lab: Lab, lines: &[(&str, String)]) -> Lab {
    lab.program("looker", &[]);
    let lines = lines.iter().map(|(how, path)| format!("{how} {path}\n"));
    lab.write("list", lines.collect::<String>());
    lab
}

/// The names of the only record in the order of their use, by their paths in the lab.
fn names(lab: &Lab) -> Vec<(Kind, PathBuf, FileMeta)> {
    let mut reader = Reader::open(&lab.record()).expect("the record");
    let accesses = reader.accesses().collect::<Result<Vec<_>, _>>();
    let root = lab.path("");
    let names = accesses
        .expect("a sound record")
        .into_iter()
        .filter_map(|access| {
            let meta = &reader.files()[&access.file];
            let path = meta.path.strip_prefix(&root).ok()?;
            access
                .kind
                .names()
                .then(|| (access.kind, path.to_owned(), meta.clone()))
        });
    names.collect()
}

/// This many files in folders of ten, in an order different from that of their names.
fn files(lab: &Lab, count: usize) -> Vec<String> {
    let names = (0..count).map(|n| n * 7919 % count);
    let names: Vec<_> = names.map(|n| format!("tree/d{}/f{n}", n / 10)).collect();
    for name in &names {
        let path = lab.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, name).expect("a file");
    }
    names
}

fn in_order_and_once() {
    let lab_ = Lab::new();
    let names_ = files(&lab_, 500);
    symlink("d1/f10", lab_.path("tree/link")).expect("a link");
    let mut lines: Vec<_> = names_.iter().map(|name| ("stat", name.clone())).collect();
    lines.insert(100, ("list", "tree/d3".into()));
    lines.insert(200, ("at", "tree/link".into()));
    lines.insert(300, ("open", "tree/d5/f50".into()));
    lines.insert(400, ("list", "tree/../tree".into()));
    let lab = lab(lab_, &lines);
    let plain = lab.plain(&["./looker", "list", "3"]);
    let outcome = lab.run(&["./looker", "list", "3"]);
    outcome.assert_as(&plain);
    check!(outcome.account["lost"] == 0, "{outcome:?}");
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    let names = names(&lab);
    let tree = names.iter().filter(|(_, path, _)| path.starts_with("tree"));
    let found: Vec<_> = tree
        .clone()
        .filter(|(kind, ..)| *kind != Kind::Open)
        .map(|(kind, path, _)| (*kind, path.to_str().expect("our own name")))
        .collect();
    let expected = lines
        .iter()
        .filter(|(how, _)| *how != "open")
        .map(|(how, path)| {
            let kind = if *how == "list" {
                Kind::List
            } else {
                Kind::Stat
            };
            (kind, path.strip_prefix("tree/../").unwrap_or(path))
        });
    // If a file is opened before its inode is read, its inode is not recorded again.
    let opened = names_
        .iter()
        .position(|name| name == "tree/d5/f50")
        .expect("one");
    let expected: Vec<_> = expected
        .filter(|(_, path)| opened < 297 || *path != "tree/d5/f50")
        .collect();
    assert_eq!(found, expected);
    let opens = tree.clone().filter(|(kind, ..)| *kind == Kind::Open);
    assert_eq!(opens.count(), 4, "each open is an access");
    for (kind, path, meta) in tree {
        assert_eq!(meta.directory, *kind == Kind::List, "{}", path.display());
        let of_name = lab
            .path("")
            .join(path)
            .symlink_metadata()
            .expect("it is there");
        use std::os::unix::fs::MetadataExt;
        assert_eq!((meta.dev, meta.ino), (of_name.dev(), of_name.ino()));
    }
}

fn made_by_itself() {
    let lab_ = Lab::new();
    let mut lines: Vec<_> = files(&lab_, 40)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    for n in 0..20 {
        lines.push(("makedir", format!("new{n}")));
        lines.push(("make", format!("new{n}/file")));
        lines.push(("stat", format!("new{n}/file")));
        lines.push(("list", format!("new{n}")));
    }
    let lab = lab(lab_, &lines);
    let outcome = lab.run(COMMAND);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    let names = names(&lab);
    assert_eq!(
        names
            .iter()
            .filter(|(_, path, _)| path.starts_with("tree"))
            .count(),
        40
    );
    let new = |path: &Path| path.to_string_lossy().starts_with("new");
    let new: Vec<_> = names.iter().filter(|(_, path, _)| new(path)).collect();
    let made = new
        .iter()
        .all(|(kind, _, meta)| *kind == Kind::Open && meta.written);
    assert!(made && new.len() == 20, "{new:?}");
}

fn walk() {
    let lab = Lab::new();
    files(&lab, 300);
    symlink("nowhere", lab.path("tree/dangling")).expect("a link");
    let find: &[&str] = &["find", "tree", "-newer", "tree"];
    let plain = lab.plain(find);
    let outcome = lab.run(find);
    outcome.assert_as(&plain);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    let said = outcome.stderr();
    assert!(said.contains(" names of find in "), "{said}");
    check!(outcome.account["lost"] == 0, "{outcome:?}");
    let names = names(&lab);
    let of = |wanted: Kind| {
        let names = names.iter().filter(|(kind, ..)| *kind == wanted);
        names
            .map(|(_, path, _)| path.clone())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(of(Kind::List).len(), 31);
    let all: BTreeSet<_> = names.iter().map(|(_, path, _)| path.clone()).collect();
    assert_eq!(all.len(), 300 + 31 + 1);
    // The record shows them as names.
    let shown = lab.foreread(&["show", "find"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(", 31 listed\n"), "{shown}");
    assert!(shown.contains("directory, listed"), "{shown}");
    // A later run follows them.
    let again = lab.run(find);
    again.assert_as(&plain);
}

fn ahead() {
    let lab_ = Lab::new();
    let mut lines: Vec<_> = files(&lab_, 2000)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    lines.extend((0..200).map(|n| ("list", format!("tree/d{n}"))));
    let lab = lab(lab_, &lines);
    // Slow enough that foreread can get ahead.
    let command = &["./looker", "list", "0", "200"];
    let plain = lab.plain(command);
    assert_eq!(lab.run(command).mode(), "recorded");
    drop_names();
    let outcome = lab.run_with(&["--explain"], command);
    outcome.assert_as(&plain);
    outcome.check_mode("prefetched");
    let names = |part: &str| outcome.account["names"][part].as_u64().expect("a count");
    // Each folder is read from a block of its own, whereas many inodes lie in one block.
    check!(names("fetched") >= 50, "{outcome:?}");
    check!(
        names("asked") == names("late") + names("unknown"),
        "{outcome:?}"
    );
    let said = outcome.stderr();
    // The summary may mention names alone, or pages of the program's own files as well.
    check!(said.contains(" ahead of looker: "), "{said}");
    check!(said.contains(" looked up, "), "{said}");
}

/// Runs the command with its record, and compares it with a plain run just before.
fn like_plain(lab: &Lab) -> Outcome {
    drop_names();
    let plain = lab.plain(COMMAND);
    drop_names();
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&plain);
    outcome
}

/// Drops directories and inodes, and the blocks that hold them, from memory if that is allowed.
fn drop_names() {
    rustix::fs::sync();
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
}

fn whatever_is_in_memory() {
    let lab_ = Lab::new();
    let lines: Vec<_> = files(&lab_, 2000)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    let lab = lab(lab_, &lines);
    // Reads that no record contains.
    lab.program("direct", &[]);
    lab.data("data", 16);
    let command = &["sh", "-c", "./looker list && ./direct data"];
    drop_names();
    assert_eq!(lab.run(command).mode(), "recorded");
    // States of memory: everything except the file, nothing, everything, and so on.
    for state in ["file", "none", "file", "all", "all", "none", "file", "none"] {
        match state {
            "file" => lab.cold(&["data"]),
            "none" => drop_names(),
            _ => {}
        }
        let outcome = lab.run(command);
        check!(
            outcome.account["recorded"].is_null(),
            "{state}: {outcome:?}"
        );
        check!(lab.records().len() == 1, "{state}: {outcome:?}");
    }
}

fn changed() {
    let lab_ = Lab::new();
    let mut lines = Vec::new();
    for name in files(&lab_, 200) {
        lines.push(("stat", name.clone()));
        lines.push(("open", name));
    }
    for n in 0..20 {
        lines.push(("list", format!("tree/d{n}")));
    }
    let lab = lab(lab_, &lines);
    let outcome = lab.run(COMMAND);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    let file = |n: usize| lab.path(&format!("tree/d{}/f{n}", n / 10));
    let folder = |n: usize| lab.path(&format!("tree/d{n}"));
    let gone = |path: &Path| {
        if path.is_dir() {
            fs::remove_dir_all(path).expect("ours");
        } else {
            fs::remove_file(path).expect("ours");
        }
    };
    // Files are replaced by: a directory, links (to a pipe, a device, nothing, itself), a pipe, a device, another file, nothing.
    (0..9).for_each(|n| gone(&file(n)));
    fs::create_dir(file(0)).expect("a folder");
    fs::write(file(0).join("in it"), "").expect("a file");
    mknodat(CWD, file(1), FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("a pipe");
    symlink(file(1), file(2)).expect("a link");
    symlink("/dev/zero", file(3)).expect("a link");
    symlink("nowhere", file(4)).expect("a link");
    symlink(file(5), file(5)).expect("a link");
    if mknodat(
        CWD,
        file(6),
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        rustix::fs::makedev(1, 5),
    )
    .is_err()
    {
        eprintln!("skipped: only root makes a device");
    }
    fs::write(file(7), "another").expect("a file");
    // Directories are replaced by: a file, a pipe, links (to another directory, to itself), nothing; one is moved.
    (10..16).for_each(|n| gone(&folder(n)));
    fs::write(folder(10), "").expect("a file");
    mknodat(
        CWD,
        folder(11),
        FileType::Fifo,
        Mode::from_raw_mode(0o666),
        0,
    )
    .expect("a pipe");
    symlink("d17", folder(12)).expect("a link");
    symlink(folder(13), folder(13)).expect("a link");
    fs::rename(folder(16), folder(14)).expect("ours");
    for _ in 0..2 {
        let outcome = like_plain(&lab);
        check!(outcome.account["lost"] == 0, "{outcome:?}");
    }
}

fn very_many_entries() {
    let lab_ = Lab::new();
    let mut lines: Vec<_> = files(&lab_, 100)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    lines.push(("list", "tree/d1".into()));
    let lab = lab(lab_, &lines);
    assert_eq!(lab.run(COMMAND).mode(), "recorded");
    for n in 0..100_000 {
        fs::File::create(lab.path(&format!("tree/d1/{n:06}"))).expect("a file");
    }
    like_plain(&lab);
}

fn of_others() {
    let lab_ = Lab::of_nobody();
    let mut lines: Vec<_> = files(&lab_, 100)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    lines.extend((0..10).map(|n| ("list", format!("tree/d{n}"))));
    let lab = lab(lab_, &lines);
    assert_eq!(lab.run(COMMAND).mode(), "recorded");
    // From now on only root may read them.
    for n in 0..5 {
        let closed = fs::Permissions::from_mode(0o700);
        fs::set_permissions(lab.path(&format!("tree/d{n}")), closed).expect("root may");
    }
    like_plain(&lab);
}

fn unmounted() {
    let lab_ = Lab::new();
    let folder = lab_.path("mnt");
    fs::create_dir(&folder).expect("a folder");
    let mount = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        let status = command.args(&words[1..]).arg(&folder).status();
        assert!(status.expect("mount").success(), "{words:?}");
    };
    mount(&["mount", "-t", "tmpfs", "none"]);
    let mut lines = Vec::new();
    for n in 0..40 {
        fs::create_dir(folder.join(format!("d{n}"))).expect("a folder");
        fs::write(folder.join(format!("d{n}/f")), "text").expect("a file");
        lines.push(("list", format!("mnt/d{n}")));
        lines.push(("stat", format!("mnt/d{n}/f")));
    }
    let lab = lab(lab_, &lines);
    let outcome = lab.run(COMMAND);
    // foreread's lookups do not keep the file system from being unmounted.
    mount(&["umount"]);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    like_plain(&lab);
}

fn silent() {
    let lab_ = Lab::new();
    fs::create_dir(lab_.path("mnt")).ok();
    let mount =
        Silent::mount(&lab_.path("mnt")).expect("tests that need FUSE are run where there is FUSE");
    let mut lines: Vec<_> = files(&lab_, 100)
        .into_iter()
        .map(|name| ("stat", name))
        .collect();
    let silent = format!("mnt/{}", foreread_tests::silent::FILE);
    lines.insert(0, ("list", "mnt".into()));
    lines.insert(1, ("stat", silent));
    let lab = lab(lab_, &lines);
    // Dropped before the lab, which is removed from the disk, so that no process waits in it if this test fails.
    let mount = mount;
    let outcome = lab.run(COMMAND);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    assert!(
        names(&lab)
            .iter()
            .any(|(_, path, _)| path.starts_with("mnt"))
    );
    // The same command without those names, so that it never reaches the file system.
    let rest = lines[2..]
        .iter()
        .map(|(how, path)| format!("{how} {path}\n"));
    lab.write("list", rest.collect::<String>());
    let plain = lab.plain(COMMAND);
    mount.fall_silent();
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&plain);
    mount.answer();
}
