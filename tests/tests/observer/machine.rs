//! One suite for every observer of the machine, which the daemon takes: the same programs, seen by all of them at once.
//!
//! Each row says what an observer must deliver, and so what it cannot see. docs/daemon.md has the same for users.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use foreread_fanotify::Fanotify;
use foreread_observe::{Budget, Event, Observer, OwnPrograms, What};
use foreread_tests::{Need, check, eventually};

use super::conform::built;
use super::harness::{Stage, library};
use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[(
    "observers_of_the_machine_deliver_what_programs_open",
    QUICK.one_at_a_time(),
    &[Need::Command("cc"), Need::Fanotify],
    all_deliver,
)];

/// What an observer delivers of a program between its start and its end: a file is opened, or opened to be written to, pages of it come
/// from the device, the process makes another.
type Seen = &'static [&'static str];

/// What the program does, and with which file; what eBPF, fanotify and the preload library deliver of that.
type Row = (&'static [&'static str], [Seen; 3]);

const OPENED: Seen = &["open data"];
const FETCHED: Seen = &["open data", "fetch data"];
const WRITTEN: Seen = &["write data"];
const RENAMED: Seen = &["open renamed"];
const FORKED: Seen = &["fork", "open data"];
const ROWS: &[Row] = &[
    (&["read", "data"], [FETCHED, OPENED, OPENED]),
    (&["map", "data"], [FETCHED, OPENED, OPENED]),
    // fanotify does not say what a file is opened for.
    (&["write", "data"], [WRITTEN, OPENED, WRITTEN]),
    (&["fork", "data"], [FORKED; 3]),
    (&["rename", "other", "renamed"], [RENAMED; 3]),
    // What is gone before anybody looks only the kernel has seen.
    (&["remove", "renamed"], [RENAMED, &[], &[]]),
    // By these no file is read.
    (&["place", "data"], [&[]; 3]),
    (&["look", "data"], [&[]; 3]),
    (&["list", "."], [&[]; 3]),
    (&["pipe", "pipe"], [&[]; 3]),
];

/// The name of the program that no library is loaded into.
const STATIC: &str = "static";

/// An observer, with what it has delivered.
struct Watch {
    observer: Box<dyn Observer>,
    events: Vec<Event>,
}

impl Watch {
    fn of(observer: impl Observer + 'static) -> Self {
        Self {
            observer: Box::new(observer),
            events: Vec::new(),
        }
    }

    fn poll(&mut self) {
        let hour = Duration::from_secs(3600);
        let Self { observer, events } = self;
        while observer
            .poll(&mut Budget::new(1 << 20, hour), &mut |event| {
                events.push(event)
            })
            .more
        {}
    }

    /// What was delivered of a process and its child, in words: of the files in this folder.
    fn delivered(&mut self, pid: u32, folder: &Path) -> Vec<String> {
        self.poll();
        let inode = fs::metadata(folder.join("data")).expect("a file").ino();
        let mut children = vec![pid];
        let mut said = Vec::new();
        for event in &self.events {
            let name = |path: &Path| {
                let name = path.strip_prefix(folder).ok()?;
                Some(name.to_string_lossy().into_owned())
            };
            let new = match &event.what {
                What::Forked { parent } if *parent == pid => {
                    children.push(event.who.pid);
                    Some("fork".to_owned())
                }
                _ if !children.contains(&event.who.pid) => None,
                What::Begin { program, .. } => {
                    name(&program.path).map(|name| format!("begin {name}"))
                }
                What::Open { file, how, .. } => {
                    let verb = if how.writes { "write" } else { "open" };
                    name(&file.path).map(|name| format!("{verb} {name}"))
                }
                What::Fetched { inode: of, .. } if *of == inode => Some("fetch data".to_owned()),
                _ => None,
            };
            said.extend(new.filter(|new| said.last() != Some(new)));
        }
        said
    }

    fn has_ended(&mut self, pid: u32) -> bool {
        self.poll();
        let ended = |event: &Event| event.who.pid == pid && event.what == What::Ended;
        self.events.iter().any(ended)
    }
}

/// Takes a file out of memory.
fn make_cold(path: &Path) {
    let file = File::open(path).expect("a file");
    file.sync_all().expect("a disk");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
}

/// The observers there are, in the order of a row.
fn observers() -> [Option<Watch>; 3] {
    let ebpf = foreread_ebpf::system::observe();
    let ebpf = ebpf.inspect_err(|why| eprintln!("skipped: no eBPF: {why}"));
    let fanotify = Fanotify::new(false).expect("fanotify");
    let own = OwnPrograms::begin(false).expect("a ring");
    [
        ebpf.ok().map(Watch::of),
        Some(Watch::of(fanotify)),
        Some(Watch::of(own)),
    ]
}

/// Runs a program that does what a row says; its number. Observers look once that is done, while the program lives, and at its end.
fn run(stage: &Stage, program: &str, row: &Row, observers: &mut [Option<Watch>; 3]) -> u32 {
    let (words, expected) = row;
    make_cold(&stage.data());
    let mut command = Command::new(stage.path(program));
    command.env("LD_PRELOAD", library());
    for watch in observers.iter().flatten() {
        command.envs(watch.observer.environment());
    }
    let mut child = command
        .args(*words)
        .current_dir(stage.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let done = child.stdout.as_mut().expect("a pipe").read(&mut [0]);
    // What pages a thread has had fetched eBPF says at its next event, its end at the latest.
    observers.iter_mut().flatten().for_each(Watch::poll);
    drop(child.stdin.take());
    let status = child.wait().expect("our child");
    assert!(
        status.success() && done.is_ok_and(|done| done == 1),
        "{words:?}: {status}"
    );
    let pid = child.id();
    let folder = stage.path("");
    for (watch, expected) in observers.iter_mut().zip(expected) {
        let Some(watch) = watch else { continue };
        let name = watch.observer.name();
        let is_static = program == STATIC;
        let expected = match *expected {
            // The library is not in it.
            _ if is_static && name == "preload" => String::new(),
            expected => format!("begin {program}, {}", expected.join(", ")),
        };
        let delivered = watch.delivered(pid, &folder).join(", ");
        check!(
            delivered == expected.trim_end_matches(", "),
            "{name} of {words:?}: {delivered}, not {expected}"
        );
    }
    pid
}

fn all_deliver() {
    let stage = Stage::new();
    assert!(built(&stage, "opens", ("cc", &[])), "a program");
    let mut observers = observers();
    let mut pids: Vec<u32> = Vec::new();
    for row in ROWS {
        pids.push(run(&stage, "opens", row, &mut observers));
    }
    fs::rename(stage.path("opens"), stage.path("dynamic")).expect("our folder");
    if built(&stage, "opens", ("cc", &["-static"])) {
        fs::rename(stage.path("opens"), stage.path(STATIC)).expect("our folder");
        run(&stage, STATIC, &ROWS[0], &mut observers);
    } else {
        eprintln!("skipped: no static program can be built here");
    }
    for watch in observers.iter_mut().flatten() {
        let name = watch.observer.name();
        eventually(&format!("{name} delivers all ends"), || {
            pids.iter().all(|pid| watch.has_ended(*pid))
        });
    }
}
