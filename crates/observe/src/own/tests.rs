//! The observer, fed with events directly and by a ring.

use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};
use std::time::Duration;

use foreread_ring::{Writer, encode};

use super::*;
use crate::Rate;
use crate::processes::SWEEP;

/// The observer, where there can be one.
fn observer() -> Option<OwnPrograms> {
    let begun = OwnPrograms::begin(false);
    begun.inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

/// A process to report as.
fn process() -> Child {
    Command::new("sleep").arg("100").spawn().expect("a process")
}

/// The interpretation of a process's event.
fn told(watch: &mut OwnPrograms, pid: u32, what: What) -> Vec<String> {
    let mut told = Vec::new();
    let at = now();
    let who = Who {
        pid,
        tid: pid,
        uid: None,
    };
    let event = Event { who, at, what };
    watch.eyes.tell(event, at, &mut |event| {
        told.push(match event.what {
            What::Forked { parent } => format!("made by {parent}"),
            What::Begin { program, .. } => format!("runs {}", program.path.display()),
            What::Open { file, how, .. } => {
                format!("opens {} {}", file.path.display(), how.writes)
            }
            What::Ended => format!("{} ends", event.who.pid),
            other => panic!("{other:?}"),
        });
    });
    told
}

fn thread(parent: u32, exe: &Path) -> What {
    What::Begin {
        parent,
        program: exe.to_path_buf().into(),
        stdio: true,
    }
}

fn open(path: &Path, how: How) -> What {
    What::Open {
        handle: 1,
        file: path.to_path_buf().into(),
        took: 0,
        how,
    }
}

fn read(path: &Path) -> What {
    open(path, How::default())
}

/// A folder on a device, with the names of two programs in it.
fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
    let path = folder.path().canonicalize().expect("it is there");
    let names = ["one", "two"].map(|name| path.join(name));
    for name in &names {
        std::fs::write(name, "program").expect("a file");
    }
    let [one, two] = names;
    (folder, one, two)
}

#[test]
fn starts_copies_opens_and_ends_are_told_apart() {
    let (Some(mut watch), (folder, one, two)) = (observer(), folder()) else {
        return;
    };
    let (mut shell, mut child) = (process(), process());
    let own = std::process::id();
    let pid = shell.id();
    let runs = |path: &Path| format!("runs {}", path.display());
    let first = told(&mut watch, pid, thread(own, &one));
    assert_eq!(first, [runs(&one)]);
    assert!(
        told(&mut watch, pid, thread(own, &one)).is_empty(),
        "a second thread"
    );
    // The kernel says that this process made it, which does not report.
    let other = told(&mut watch, child.id(), thread(pid, &two));
    assert_eq!(other, [runs(&two)]);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&one, &link).expect("a link");
    let opened = told(&mut watch, pid, read(&link));
    assert_eq!(opened, [format!("opens {} false", one.display())]);
    let writes = How {
        writes: true,
        ..How::default()
    };
    let written = told(&mut watch, pid, open(&one, writes));
    assert_eq!(written, [format!("opens {} true", one.display())]);
    for how in [
        How {
            found: true,
            ..How::default()
        },
        How {
            directory: true,
            ..How::default()
        },
    ] {
        assert!(told(&mut watch, pid, open(&one, how)).is_empty());
    }
    // Said to end, and run by the same number again: another program, though of the same name.
    assert!(told(&mut watch, pid, What::Exit).is_empty());
    let again = told(&mut watch, pid, thread(own, &one));
    assert_eq!(again, [runs(&one)]);
    // Ended by a word, and without one.
    told(&mut watch, pid, What::Exit);
    for process in [&mut shell, &mut child] {
        process.kill().expect("it runs");
        process.wait().expect("our child");
    }
    let mut ended = Vec::new();
    let mut end = |event: Event| {
        assert_eq!(event.what, What::Ended);
        ended.push(event.who.pid);
    };
    // At its announcement, and at the next check.
    watch.eyes.settle(0, &mut end);
    watch.eyes.settle(now() + SWEEP, &mut end);
    assert_eq!(ended, [pid, child.id()]);
}

#[test]
fn a_child_goes_on_as_its_parent_until_it_runs_another_program() {
    let (Some(mut watch), (_folder, one, two)) = (observer(), folder()) else {
        return;
    };
    // As a shell's subshell: its parent is a process that has introduced itself.
    let script = "sleep 100 & echo $!; wait";
    let mut parent = Command::new("sh")
        .args(["-c", script])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let output = parent.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a number");
    let (pid, child) = (parent.id(), line.trim().parse().expect("a number"));
    told(&mut watch, pid, thread(1, &one));
    let made = told(&mut watch, child, thread(1, &one));
    assert_eq!(made, [format!("made by {pid}")]);
    told(&mut watch, child, What::Exit);
    let runs = told(&mut watch, child, thread(1, &two));
    assert_eq!(runs, [format!("runs {}", two.display())]);
    let end = rustix::process::Pid::from_raw(child as i32).expect("a number");
    rustix::process::kill_process(end, rustix::process::Signal::KILL).expect("it runs");
    parent.wait().expect("our child");
}

#[test]
fn what_a_shell_starts_that_does_not_report_is_one_sequence() {
    let (Some(mut watch), (_folder, one, _)) = (observer(), folder()) else {
        return;
    };
    let mut shell = Command::new("sh")
        .args(["-c", "sleep 100 & echo $!; wait"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let output = shell.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a number");
    let child = line.trim().parse().expect("a number");
    let first = told(&mut watch, child, thread(shell.id(), &one));
    let made = format!("made by {}", shell.id());
    assert_eq!(first, [made, format!("runs {}", one.display())]);
    let end = rustix::process::Pid::from_raw(child as i32).expect("a number");
    rustix::process::kill_process(end, rustix::process::Signal::KILL).expect("it runs");
    shell.wait().expect("our child");
}

#[test]
fn nothing_is_believed_of_other_users_of_itself_or_of_places_without_a_device() {
    let (Some(mut watch), (_folder, one, _)) = (observer(), folder()) else {
        return;
    };
    for pid in [0, std::process::id()] {
        assert!(told(&mut watch, pid, thread(1, &one)).is_empty());
        assert!(told(&mut watch, pid, read(&one)).is_empty());
    }
    let mut process = process();
    let pid = process.id();
    told(&mut watch, pid, thread(1, &one));
    for path in [
        "/proc/self/maps",
        "/dev/null",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        assert!(
            told(&mut watch, pid, read(Path::new(path))).is_empty(),
            "{path}"
        );
    }
    assert!(told(&mut watch, pid, read(Path::new("/nothing/there"))).is_empty());
    watch.eyes.uid += 1;
    watch.eyes.known.forget(pid);
    assert!(told(&mut watch, pid, thread(1, &one)).is_empty());
    assert!(told(&mut watch, pid, read(&one)).is_empty());
    let lost = watch.lost();
    let of = |name| lost.iter().find(|(probe, _)| *probe == name);
    assert!(of("gone before they were looked at").is_some(), "{lost:?}");
    assert_eq!(of("of other users"), Some(&("of other users", 2)));
    process.kill().expect("it runs");
    process.wait().expect("our child");
}

#[test]
fn a_full_ring_and_a_flood_are_counted_and_bounded() {
    let (Some(mut watch), (_folder, one, _)) = (observer(), folder()) else {
        return;
    };
    let mut process = process();
    let pid = process.id();
    let ring = watch.reports.ring();
    let slots = |number: usize| ring.slots(number);
    let shared = ring.shared();
    // As the library does in a program.
    let claimed = Writer::claim(shared, (pid, pid), |_| None, |number| Some(slots(number)));
    let mut writer = claimed.expect("a free ring");
    let exe = one.as_os_str().as_bytes();
    let first = encode::thread(pid, pid, 1, 0, 0, exe.len());
    writer.push_path(shared, &first, &[exe]).expect("room");
    let mut full = 0;
    for _ in 0..20_000 {
        let slot = encode::open(1, 0, 0, 0, exe.len());
        if writer.push_path(shared, &slot, &[exe]).is_err() {
            shared.add_lost(1);
            full += 1;
        }
    }
    let mut seen = 0;
    let mut budget = Budget::new(1 << 20, Duration::from_secs(3600));
    let progress = watch.poll(&mut budget, &mut |_| seen += 1);
    assert!(!progress.more, "all of it was taken");
    assert!(seen > 1 && seen <= Rate::ONE.at_once + 10, "{seen}");
    let lost = watch.lost();
    assert!(full > 0 && lost.contains(&("full ring", full)), "{lost:?}");
    for pid in 1..10_000 {
        told(&mut watch, pid + 1_000_000_000, read(&one));
    }
    assert!(watch.eyes.leaving.len() <= LEAVING);
    process.kill().expect("it runs");
    process.wait().expect("our child");
}
