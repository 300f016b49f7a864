//! The daemon in use: a program that opens the same cold files repeatedly finds them in memory.
//!
//! These tests need root and the eBPF observer. Each has the machine for itself, because the daemon watches the whole machine.

mod alarms;
mod commands;
mod costs;
mod spaces;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use foreread_observe::{Budget, Event, Observer, What};
use foreread_plan::PAGE;
use foreread_tests::suite::{ALL, QUICK, Suite, Test};
use foreread_tests::{Lab, Need, eventually, finish, foreread, start, text};
use serde_json::Value;

/// Number of files that the program opens, in an order different from that of their names.
const FILES: u64 = 50;
/// Their size in bytes: more than the daemon fetches whole of a file that it has not seen read.
const SIZE: usize = 300_000;
/// A little longer than the time after which the daemon assumes that a page fetched twice is gone again.
const PAUSE: Duration = Duration::from_millis(2100);
/// How long the test waits for the files of one prediction before it runs the program again.
const SOON: Duration = Duration::from_secs(5);

const TESTS: &[Test] = &[
    (
        "files_that_follow_one_another_are_in_memory_once_the_first_is_opened",
        ALL.alone(),
        &[Need::EbpfSystem],
        files_that_follow,
    ),
    (
        "separate_commands_foretell_the_next_ones_file_after_three_rounds_and_no_other_before",
        QUICK.alone(),
        &[Need::EbpfSystem],
        commands::one_after_the_other,
    ),
    (
        "a_program_that_opens_few_files_is_seen_beside_floods_of_the_same_user",
        QUICK.alone(),
        &[Need::EbpfSystem],
        few_beside_many,
    ),
    (
        "whoever_is_about_to_wait_for_a_device_gives_an_alarm_and_floods_of_waits_give_few",
        ALL.alone(),
        &[Need::EbpfSystem],
        alarms::of_waits,
    ),
    (
        "files_of_other_mount_namespaces_are_fetched_right_or_not_at_all",
        QUICK.alone(),
        &[Need::EbpfSystem],
        spaces::of_other_namespaces,
    ),
    (
        "a_flood_of_opens_costs_the_daemon_a_bounded_number_of_events_and_turns",
        QUICK.alone(),
        &[Need::EbpfSystem],
        costs::of_a_flood,
    ),
];

pub fn add(suite: &mut Suite) {
    suite.add("learns", TESTS);
}

/// Programs that open one file endlessly until their standard input is closed.
const FLOODS: usize = 3;

fn few_beside_many() {
    let lab = Lab::new();
    let names: Vec<String> = (0..60).map(|number| format!("quiet-{number}")).collect();
    for name in &names {
        lab.write(name, "1");
    }
    lab.write("much", "1");
    let flood = "import os, select, sys\n\
                 print(flush=True)\n\
                 while not select.select([0], [], [], 0)[0]:\n    \
                 for _ in range(1000):\n        os.close(os.open('much', os.O_RDONLY))\n";
    lab.write("flood.py", flood);
    // A compiler opens as many files for one source.
    let few = names.iter().map(|name| format!("read x <{name} || :\n"));
    lab.write("few.sh", few.collect::<String>());
    let mut system = foreread_ebpf::system::observe().expect("as it was asked before");
    let mut floods = Vec::new();
    for _ in 0..FLOODS {
        let mut command = lab.command("python3");
        command.arg("flood.py");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = start(&mut command);
        let mut begun = [0];
        let said = child
            .stdout
            .as_mut()
            .expect("a pipe")
            .read_exact(&mut begun);
        said.expect("it floods");
        floods.push(child);
    }
    let mut command = lab.command("sh");
    command.arg("few.sh");
    let mut few = start(&mut command);
    let mut seen = BTreeSet::new();
    let mut has_ended = false;
    while !has_ended {
        has_ended = few.try_wait().expect("our child").is_some();
        let mut open = |event: Event| {
            if let What::Open { file, .. } = event.what {
                let name = file.path.file_name().unwrap_or_default();
                seen.insert(name.to_string_lossy().into_owned());
            }
        };
        let time = Duration::from_secs(60);
        while system.poll(&mut Budget::new(4096, time), &mut open).more {}
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(finish(few).status.success());
    for mut child in floods {
        drop(child.stdin.take());
        assert!(finish(child).status.success());
    }
    let missing: Vec<&String> = names.iter().filter(|name| !seen.contains(*name)).collect();
    // If this process gets no processor, the kernel's ring is full.
    foreread_tests::check!(missing.is_empty(), "{missing:?}, lost {:?}", system.lost());
    assert!(seen.contains("much"));
    assert!(system.lost().iter().any(|(probe, _)| *probe == "floods"));
}

/// A daemon of a lab, which ends with it.
struct Daemon<'lab> {
    lab: &'lab Lab,
    socket: PathBuf,
    child: Option<Child>,
}

impl<'lab> Daemon<'lab> {
    /// A daemon with a folder of this name.
    fn start(lab: &'lab Lab, name: &str) -> Self {
        let socket = lab.path(&format!("run-{name}/daemon.sock"));
        let folder = socket.parent().expect("a folder");
        std::fs::create_dir_all(folder).expect("a folder for the socket");
        let state = lab.path(&format!("state-{name}"));
        let mut command = lab.command(foreread());
        command.args(["daemon", "run", "--observer", "ebpf"]);
        command.arg("--socket").arg(&socket);
        command.arg("--state").arg(&state);
        let daemon = Self {
            lab,
            socket,
            child: Some(start(&mut command)),
        };
        eventually("the daemon answers", || daemon.asked("status").is_some());
        daemon
    }

    fn asked(&self, what: &str) -> Option<String> {
        let mut command = self.lab.command(foreread());
        command.args(["daemon", what]);
        if what == "status" {
            command.arg("--json");
        }
        command.arg("--socket").arg(&self.socket);
        let output = finish(start(&mut command));
        output.status.success().then(|| text(&output.stdout))
    }

    /// The predicted files after one file, the nearest first, each with its likelihood.
    fn predicted(&self, file: &Path) -> Vec<(PathBuf, f64)> {
        let mut command = self.lab.command(foreread());
        command.args(["predict", "--json"]).arg(file);
        command.arg("--socket").arg(&self.socket);
        let output = finish(start(&mut command));
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let one = |one: &Value| {
            let path = one["path"].as_str().expect("a path");
            (path.into(), one["likelihood"].as_f64().expect("a number"))
        };
        listed.iter().map(one).collect()
    }

    fn status(&self) -> Value {
        let told = self.asked("status").expect("an answer");
        serde_json::from_str(&told).expect("JSON")
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let output = finish(child);
            if std::thread::panicking() {
                eprintln!("{}", text(&output.stderr));
            }
        }
    }
}

/// Evicts files that are open already, because opening them would be an event.
fn evict(files: &[File]) {
    for file in files {
        eventually("the file is gone from memory", || {
            foreread_sys::cache::evict(file).expect("eviction") == 0
        });
    }
}

/// Bytes of a file that are in memory.
fn cached(file: &File) -> u64 {
    let stat = foreread_sys::cache::stat(file, 0..SIZE as u64);
    stat.expect("cachestat").cached * PAGE
}

fn files_that_follow() {
    let lab = Lab::new();
    // The step has no factor in common with the number of files, so each file comes once.
    let names: Vec<String> = (0..FILES)
        .map(|number| format!("file-{}", number * 17 % FILES))
        .collect();
    let files: Vec<File> = names
        .iter()
        .map(|name| {
            let content: Vec<u8> = (0..SIZE).map(|at| (at * 31 / 7) as u8).collect();
            File::open(lab.write(name, content)).expect("our own file")
        })
        .collect();
    // One program reads all files, the other only the first.
    let reads = |names: &[String]| {
        let list = names.join("', '");
        format!("for name in ['{list}']:\n    open(name, 'rb').read()\n")
    };
    lab.write("all.py", reads(&names));
    lab.write("first.py", reads(&names[..1]));
    let daemon = Daemon::start(&lab, "own");
    for _ in 0..4 {
        evict(&files);
        std::thread::sleep(PAUSE);
        let output = lab.plain(&["python3", "all.py"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let before = daemon.status();
    // A daemon that gets no processor time predicts nothing, so several runs may be needed.
    let foreseen = |wanted: Range<usize>| {
        evict(&files);
        std::thread::sleep(PAUSE);
        lab.plain(&["python3", "first.py"]);
        let until = Instant::now() + SOON;
        while Instant::now() < until {
            let mut wanted = wanted.clone();
            if wanted.all(|number| cached(&files[number]) >= SIZE as u64 / 2) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        lab.plain(&["python3", "all.py"]);
        false
    };
    eventually("the file that follows the first is in memory", || {
        foreseen(1..2)
    });
    // The files after it are predicted after more rounds, as the patterns grow.
    for _ in 0..4 {
        lab.plain(&["python3", "all.py"]);
    }
    eventually("the files that follow the first are in memory", || {
        foreseen(1..4)
    });
    lab.plain(&["python3", "all.py"]);
    eventually("what was fetched is accounted for as useful", || {
        let useful = |status: &Value| status["bytes"]["useful"].as_u64().expect("bytes");
        useful(&daemon.status()) > useful(&before).max(SIZE as u64)
    });
    let status = daemon.status();
    assert_eq!(status["observer"], "ebpf");
    assert!(status["lead"]["count"].as_u64() > Some(0), "{status}");
    let programs = status["programs"].as_array().expect("programs");
    // The process tree begins with the process that started this test.
    let any = |one: &Value| one["bytes"]["useful"].as_u64() > Some(0);
    assert!(programs.iter().any(any), "{programs:?}");
}
