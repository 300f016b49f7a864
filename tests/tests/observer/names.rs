//! The names that programs look up: every way to do so, and real programs compared with strace's account.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use foreread_ring::{Inode, Mode, NAME_FOLLOWED, NAME_LISTED, What};
use foreread_tests::{Need, check};

use super::harness::{Seen, Stage, check_end, library, observe, observe_in};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "every_way_to_look_a_name_up_is_reported_as_it_was",
        ALL,
        &[Need::Command("cc")],
        every_way,
    ),
    (
        "what_a_call_tells_of_an_inode_is_reported_along",
        ALL,
        &[Need::Command("cc")],
        inodes,
    ),
    (
        "threads_that_look_names_up_side_by_side_are_all_seen",
        ALL,
        &[Need::Command("cc")],
        side_by_side,
    ),
    (
        "looking_a_name_up_takes_no_other_system_call_than_alone",
        QUICK,
        &[Need::Command("strace")],
        no_other_call,
    ),
    (
        "nothing_is_reported_where_nobody_listens",
        ALL,
        &[Need::Command("cc")],
        muted,
    ),
    (
        "the_kernel_saw_the_same_names_of_walks",
        ALL,
        &[Need::Command("strace")],
        of_walks,
    ),
    (
        "the_kernel_saw_the_same_names_of_python",
        ALL,
        &[Need::Command("strace")],
        of_python,
    ),
    (
        "the_kernel_saw_the_same_names_of_git",
        ALL,
        &[Need::Command("strace")],
        of_git,
    ),
];

/// A path without its dots. No link lies in between here.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The folder in which `names.c` looks names up.
fn surroundings(stage: &Stage) -> PathBuf {
    let folder = stage.path("folder");
    for name in [
        "sub/inner",
        "sub/fdopendir",
        "opendir",
        "scandir",
        "getdents64",
    ] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
    for name in [
        "stat",
        "stat64",
        "lstat",
        "lstat64",
        "__xstat",
        "__lxstat",
        "__fxstatat",
        "access",
        "eaccess",
        "syscall",
        "opath",
        "untouched",
        "target",
        "sub/fstatat",
        "sub/faccessat",
        "sub/statx",
        "sub/inner/deep",
        "sub/inner/after",
        "sub/up",
    ] {
        fs::write(folder.join(name), name).expect("a file");
    }
    for name in [
        "readlink",
        "__readlink_chk",
        "through",
        "at",
        "sub/readlinkat",
    ] {
        std::os::unix::fs::symlink("target", folder.join(name)).expect("a link");
    }
    folder
}

fn inodes() {
    let stage = Stage::new();
    let program = stage.cc("names", &["-w"]);
    let folder = surroundings(&stage);
    let seen = observe(&program, |command| {
        command.current_dir(&folder);
    });
    check_end(&seen, 0);
    let mut told = BTreeSet::new();
    for event in &seen.events {
        let What::Name {
            path,
            inode: Some(inode),
            ..
        } = &event.what
        else {
            continue;
        };
        let path = plain(path);
        let real = fs::symlink_metadata(&path).expect("what was looked at");
        let nanos = |seconds: i64, nanos: i64| seconds * 1_000_000_000 + nanos;
        let expected = Inode {
            dev: real.dev() as u32,
            ino: real.ino(),
            kind: (real.mode() >> 12) as u8,
            size: real.size(),
            mtime_ns: nanos(real.mtime(), real.mtime_nsec()),
            ctime_ns: nanos(real.ctime(), real.ctime_nsec()),
        };
        assert_eq!(*inode, expected, "{path:?}");
        let path = path.strip_prefix(&folder).expect("in the folder");
        told.insert(path.to_str().expect("our own name").to_owned());
    }
    // Where a link would have been followed, the reported inode is not the link's.
    let expected = ["__lxstat", "at", "lstat", "lstat64", "sub/statx"];
    assert_eq!(told, expected.map(str::to_owned).into());
}

fn side_by_side() {
    const THREADS: usize = 8;
    const TIMES: usize = 2000;
    let stage = Stage::new();
    let program = stage.cc("lookers", &["-pthread"]);
    let folder = stage.path("folder");
    fs::create_dir(&folder).expect("a folder");
    for n in 0..10 {
        fs::write(folder.join(format!("f{n}")), "").expect("a file");
    }
    let seen = observe(&program, |command| {
        command.args([THREADS.to_string(), TIMES.to_string()]);
        command.current_dir(&folder);
    });
    check_end(&seen, 0);
    let names = seen.events.iter().filter(
        |event| matches!(&event.what, What::Name { path, .. } if path.starts_with(&folder)),
    );
    check!(seen.lost == 0, "{} lost events", seen.lost);
    let count = names.count();
    check!(count == THREADS * TIMES, "{count} of {}", THREADS * TIMES);
}

fn every_way() {
    let stage = Stage::new();
    let program = stage.cc("names", &["-w"]);
    let folder = surroundings(&stage);
    let seen = observe(&program, |command| {
        command.current_dir(&folder);
    });
    check_end(&seen, 0);
    let mut names = Vec::new();
    for event in &seen.events {
        if let What::Name { flags, path, .. } = &event.what {
            let path = plain(path);
            let path = path.strip_prefix(&folder).expect("in the folder");
            let path = path.to_str().expect("our own name").to_owned();
            // A directory is reported once for each piece of its entries.
            if names.last() != Some(&(path.clone(), *flags)) {
                names.push((path, *flags));
            }
        }
    }
    let (at, through, list) = (0, NAME_FOLLOWED, NAME_FOLLOWED | NAME_LISTED);
    let expected = [
        ("stat", through),
        ("stat64", through),
        ("lstat", at),
        ("lstat64", at),
        ("__xstat", through),
        ("__lxstat", at),
        ("__fxstatat", through),
        ("access", through),
        ("eaccess", through),
        ("readlink", at),
        ("__readlink_chk", at),
        ("syscall", through),
        ("through", through),
        ("at", at),
        ("sub/fstatat", through),
        ("sub/faccessat", through),
        ("sub/readlinkat", at),
        ("sub/statx", at),
        ("sub/inner/deep", through),
        ("sub/up", through),
        ("sub/inner/after", through),
        ("opendir", list),
        ("sub/fdopendir", list),
        ("scandir", list),
        ("getdents64", list),
        ("opath", through),
    ];
    let expected = expected.map(|(path, flags)| (path.to_owned(), flags));
    assert_eq!(names, expected);
    assert_eq!(seen.opens(&folder.join("untouched")), [0]);
}

/// The system calls of a process, from its first lookup on.
fn calls(log: &Path) -> Vec<String> {
    let log = fs::read_to_string(log).expect("strace's log");
    let calls = log.lines().skip_while(|line| !line.contains("\"stat\""));
    let names = calls.filter_map(|line| Some(line.split_once('(')?.0.to_owned()));
    // The thread's ring is mapped once.
    names.filter(|name| name != "mremap").collect()
}

fn no_other_call() {
    let stage = Stage::new();
    let program = stage.cc("names", &["-w"]);
    let folder = surroundings(&stage);
    let log = stage.path("log");
    let mut alone = std::process::Command::new("strace");
    alone.arg("-o").arg(&log).arg(&program).current_dir(&folder);
    assert!(alone.status().expect("strace").success());
    let plain = calls(&log);
    assert!(plain.len() > 200, "{plain:?}");
    for mode in [Mode::Record, Mode::Progress, Mode::Mute] {
        let seen = observe_in(mode, "strace", |strace| {
            strace.env_remove("LD_PRELOAD").arg("-o").arg(&log);
            strace
                .arg("-E")
                .arg(format!("LD_PRELOAD={}", library().display()));
            strace.arg(&program).current_dir(&folder);
        });
        check_end(&seen, 0);
        assert_eq!(calls(&log), plain, "{mode:?}");
    }
}

fn muted() {
    let stage = Stage::new();
    let program = stage.cc("names", &["-w"]);
    let folder = surroundings(&stage);
    let seen = observe_in(Mode::Mute, &program, |command| {
        command.current_dir(&folder);
    });
    check_end(&seen, 0);
    assert!(seen.events.is_empty(), "{:?}", seen.events);
}

/// How a file was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Opened,
    LookedAt,
    Listed,
}

type Uses = BTreeSet<(PathBuf, Use)>;

/// The uses of files below a folder. The open of a listed directory is left out, because it may be the C library's.
fn below(folder: &Path, uses: impl Iterator<Item = (PathBuf, Use)>) -> Uses {
    let uses = uses.map(|(path, how)| (plain(&path), how));
    let uses: Uses = uses.filter(|(path, _)| path.starts_with(folder)).collect();
    let is_listing =
        |path: &PathBuf, how| how == Use::Opened && uses.contains(&(path.clone(), Use::Listed));
    uses.iter()
        .filter(|(path, how)| !is_listing(path, *how))
        .cloned()
        .collect()
}

/// Runs a command and compares the files that it used below its folder, as reported by itself and by strace.
fn compare(stage: &Stage, folder: &Path, command: &[&str]) {
    let log = stage.path("log");
    let seen = observe("strace", |strace| {
        strace.env_remove("LD_PRELOAD");
        strace
            .args(["-f", "-y", "-qq", "-s", "4096", "-o"])
            .arg(&log);
        strace.args([
            "-e",
            "trace=open,openat,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink,readlinkat,getdents64",
        ]);
        strace
            .arg("-E")
            .arg(format!("LD_PRELOAD={}", library().display()));
        strace
            .args(command)
            .current_dir(folder)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
    });
    let errors = String::from_utf8_lossy(&seen.output.stderr);
    assert!(seen.output.status.success(), "{command:?}: {errors}");
    check!(seen.lost == 0, "{} lost events", seen.lost);
    let kernels = fs::read_to_string(&log).expect("strace's log");
    // The library asks for a folder's path at most once per descriptor that it did not see opened as a folder.
    let mut asked = BTreeMap::new();
    for line in kernels.lines() {
        if let Some((_, link)) = line.split_once("\"/proc/self/fd/")
            && link.contains(&*folder.to_string_lossy())
        {
            *asked.entry(link).or_insert(0) += 1;
        }
    }
    let often = asked.iter().find(|(_, times)| **times > 2);
    assert_eq!(
        often, None,
        "{command:?}: system calls of the library's own"
    );
    let kernels = below(folder, traced(folder, &kernels).into_iter());
    let ours = below(folder, reported(&seen));
    assert!(kernels.len() > 20, "{command:?}: {kernels:?}");
    let unseen: Vec<_> = kernels.difference(&ours).collect();
    let invented: Vec<_> = ours.difference(&kernels).collect();
    assert!(
        unseen.is_empty() && invented.is_empty(),
        "{command:?}: not reported {unseen:?}, not so {invented:?}"
    );
}

fn reported(seen: &Seen) -> impl Iterator<Item = (PathBuf, Use)> {
    seen.events.iter().filter_map(|event| match &event.what {
        What::Open { path, .. } => Some((path.clone(), Use::Opened)),
        What::Name { path, flags, .. } if flags & NAME_LISTED != 0 => {
            Some((path.clone(), Use::Listed))
        }
        What::Name { path, .. } => Some((path.clone(), Use::LookedAt)),
        _ => None,
    })
}

/// The uses in a log with lines like `12 newfstatat(3</path>, "name", {…}, 0) = 0`, of processes that do not change their folder.
fn traced(folder: &Path, log: &str) -> Vec<(PathBuf, Use)> {
    let mut halves: BTreeMap<&str, String> = BTreeMap::new();
    let mut uses = Vec::new();
    for line in log.lines() {
        let (task, call) = line.split_once(' ').expect("a process and a call");
        let call = call.trim_start();
        let call = if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            halves.insert(task, begun.to_owned());
            continue;
        } else if let Some((_, rest)) = call.split_once("resumed>") {
            halves.remove(task).expect("its beginning") + rest
        } else {
            call.to_owned()
        };
        let Some((name, rest)) = call.split_once('(') else {
            continue;
        };
        // A returned descriptor is followed by its path.
        let got = call
            .rsplit_once(" = ")
            .map(|(_, got)| got.split(['<', ' ']).next().unwrap_or(""));
        let got = got.and_then(|got| got.parse::<i64>().ok());
        if got.is_none_or(|got| got < 0) {
            continue;
        }
        let base = rest
            .split(',')
            .next()
            .and_then(|first| Some(first.split_once('<')?.1.split_once('>')?.0));
        let given = rest.split('"').nth(1);
        let of_descriptor = name == "getdents64";
        let path = match (of_descriptor, base, given) {
            (true, Some(base), _) => PathBuf::from(base),
            (false, _, Some("")) => continue,
            (false, Some(base), Some(given)) => Path::new(base).join(given),
            (false, None, Some(given)) => folder.join(given),
            _ => continue,
        };
        uses.push((
            path,
            match name {
                "getdents64" => Use::Listed,
                "open" | "openat" if rest.contains("O_PATH") => Use::LookedAt,
                "open" | "openat" => Use::Opened,
                _ => Use::LookedAt,
            },
        ));
    }
    uses
}

/// A tree of 40 folders and 120 files, with links.
fn tree(stage: &Stage) -> PathBuf {
    let tree = stage.path("tree");
    for folder in 0..40 {
        let folder = tree.join(format!("d{}/e{folder}", folder % 5));
        fs::create_dir_all(&folder).expect("a folder");
        for file in 0..3 {
            fs::write(folder.join(format!("f{file}")), "text\n").expect("a file");
        }
        std::os::unix::fs::symlink("f0", folder.join("link")).expect("a link");
        std::os::unix::fs::symlink("nowhere", folder.join("dangling")).expect("a link");
    }
    tree
}

fn of_walks() {
    let stage = Stage::new();
    let tree = tree(&stage);
    for command in [
        &["find", ".", "-size", "+1"][..],
        &["find", "-L", "d0", "-name", "f*"],
        &["ls", "-lR"],
        &["tar", "cf", "/dev/null", "d1", "d2"],
        &["grep", "-r", "text", "."],
        &["du", "-a"],
        &["cp", "-r", "d3", "copy"],
        &[
            "bash",
            "-c",
            "for f in d*/e*/*; do test -r $f && test -d $f; done; true",
        ],
    ] {
        compare(&stage, &tree, command);
    }
}

fn of_python() {
    let stage = Stage::new();
    let tree = tree(&stage);
    let walk = "import os\nfor folder, _, files in os.walk('.'):\n  for f in files: os.lstat(folder + '/' + f)\n\
                for e in os.scandir('d0'): e.stat()\nfd = os.open('d1', os.O_RDONLY)\n\
                [os.stat(n, dir_fd=fd) for n in os.listdir(fd)]\nos.access('d2', os.R_OK)\nos.readlink('d0/e0/link')";
    compare(&stage, &tree, &["python3", "-c", walk]);
}

fn of_git() {
    if !super::harness::exists("git") {
        eprintln!("skipped: there is no git");
        return;
    }
    let stage = Stage::new();
    let tree = tree(&stage);
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["commit", "-qm", "all"],
        // Without this, a later git command would look up files that may have changed.
        &["update-index", "--refresh"],
    ] {
        let mut command = std::process::Command::new("git");
        command
            .arg("-C")
            .arg(&tree)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(words);
        stage.build(&mut command);
    }
    compare(
        &stage,
        &tree,
        &["git", "--no-optional-locks", "status", "--short"],
    );
    compare(
        &stage,
        &tree,
        &["git", "--no-optional-locks", "grep", "text"],
    );
}
