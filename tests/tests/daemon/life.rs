//! The daemon's start and end, and the time between.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use foreread_tests::{Need, eventually, foreread, text};
use rustix::process::{Pid, Signal, kill_process};

use super::Place;
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "it_starts_is_asked_and_stops_and_starts_again",
        QUICK,
        &[Need::Fanotify],
        it_starts_is_asked_and_stops_and_starts_again,
    ),
    (
        "its_reads_come_last_but_are_never_idle",
        ALL,
        &[Need::Fanotify, Need::Command("ionice")],
        its_reads_come_last_but_are_never_idle,
    ),
    (
        "the_second_daemon_says_which_runs",
        ALL,
        &[Need::Fanotify],
        the_second_daemon_says_which_runs,
    ),
    (
        "one_that_was_killed_is_started_anew",
        ALL,
        &[Need::Fanotify],
        one_that_was_killed_is_started_anew,
    ),
    (
        "what_was_learned_is_saved_on_sigterm_and_asked_without_a_daemon",
        ALL,
        &[Need::Fanotify],
        what_was_learned_is_saved_on_sigterm_and_asked_without_a_daemon,
    ),
    (
        "one_that_cannot_start_says_why",
        QUICK,
        &[Need::Fanotify],
        one_that_cannot_start_says_why,
    ),
    (
        "a_full_disk_costs_what_was_learned_and_nothing_else",
        ALL,
        &[Need::Fanotify, Need::Loop],
        a_full_disk_costs_what_was_learned_and_nothing_else,
    ),
    (
        "top_is_shown_in_a_terminal_and_quits",
        ALL,
        &[Need::Fanotify, Need::Command("script")],
        top_is_shown_in_a_terminal_and_quits,
    ),
    (
        "metrics_are_kept_in_a_file",
        ALL,
        &[Need::Fanotify],
        metrics_are_kept_in_a_file,
    ),
];

fn it_starts_is_asked_and_stops_and_starts_again() {
    let place = Place::new();
    assert!(
        place
            .complaint(&["daemon", "status"])
            .contains("no daemon is running")
    );
    assert!(
        place
            .complaint(&["daemon", "stop"])
            .contains("no daemon is running")
    );
    for _ in 0..2 {
        let said = place.said(&["daemon", "start"]);
        assert!(said.contains("the daemon runs as process"), "{said}");
        let status = place.status();
        assert_eq!(status["observer"], "fanotify");
        assert!(said.contains(&status["pid"].to_string()));
        eventually("something is seen", || {
            fs::read("/etc/passwd").expect("a file");
            place.status()["events"].as_u64() > Some(0)
        });
        let shown = place.said(&["daemon", "status"]);
        assert!(shown.contains("fanotify"), "{shown}");
        let metrics = place.said(&["daemon", "metrics"]);
        assert!(
            metrics.contains("# TYPE foreread_events_total counter"),
            "{metrics}"
        );
        let said = place.said(&["daemon", "stop"]);
        assert!(said.contains("has ended"), "{said}");
        assert!(!place.socket().exists());
    }
}

/// A page is locked while it is read. A process that needs a page of an idle-class read waits as long as other processes read.
fn its_reads_come_last_but_are_never_idle() {
    let place = Place::new();
    place.said(&["daemon", "start"]);
    let tasks = format!("/proc/{}/task", place.status()["pid"]);
    let tasks = fs::read_dir(tasks).expect("threads");
    let names: Vec<_> = tasks.map(|one| one.expect("one").file_name()).collect();
    let mut ionice = Command::new("ionice");
    let output = ionice.arg("-p").args(&names).output().expect("ionice");
    let classes = text(&output.stdout);
    // The serving thread, whose class the threads that it starts inherit; other threads prefetch nothing.
    assert!(
        classes.lines().any(|one| one == "best-effort: prio 7"),
        "{output:?}"
    );
    assert!(!classes.contains("idle"), "{classes}");
    place.said(&["daemon", "stop"]);
}

fn the_second_daemon_says_which_runs() {
    let place = Place::new();
    let running = place.running();
    let first = format!("a daemon is running already: process {}", running.0.id());
    for words in [["daemon", "run"], ["daemon", "start"]] {
        let said = place.complaint(&words);
        assert!(said.contains(&first), "{said}");
    }
    // At another socket, with the same models.
    let other = Command::new(foreread())
        .args(["daemon", "run", "--observer", "fanotify", "--socket"])
        .arg(place.lab.path("run/other.sock"))
        .arg("--state")
        .arg(place.state())
        .output()
        .expect("foreread");
    assert!(
        text(&other.stderr).contains(&first),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(place.status()["pid"], running.0.id());
}

fn one_that_was_killed_is_started_anew() {
    let place = Place::new();
    let running = place.running();
    running.signal(Signal::KILL);
    assert!(!running.end().status.success());
    assert!(place.socket().exists(), "it had no time to tidy up");
    assert!(
        place
            .complaint(&["daemon", "status"])
            .contains("no daemon is running")
    );
    let again = place.running();
    again.signal(Signal::INT);
    let output = again.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!place.socket().exists());
}

/// Opens files in this order, in a program started for that.
fn open_in_order(place: &Place, names: &[String]) {
    let mut read = String::new();
    for name in names {
        read += &format!("read x <{name}; ");
    }
    let status = Command::new("sh")
        .args(["-c", &format!("{read} exit 0")])
        .current_dir(place.lab.path(""))
        .status();
    assert!(status.expect("a shell").success());
}

fn what_was_learned_is_saved_on_sigterm_and_asked_without_a_daemon() {
    let place = Place::new();
    let names: Vec<String> = (0..12).map(|number| format!("file{number}")).collect();
    for name in &names {
        place.lab.write(name, "one line\n");
    }
    let running = place.running();
    let first = place.lab.path(&names[2]);
    let ask = || place.predicted(&first);
    let follows = |said: &str| {
        let followers: Vec<serde_json::Value> = serde_json::from_str(said).expect("JSON");
        let next = place.lab.path(&names[3]).display().to_string();
        followers.first().is_some_and(|first| first["path"] == next)
    };
    eventually("what follows is known", || {
        for _ in 0..4 {
            open_in_order(&place, &names);
        }
        follows(&ask())
    });
    running.signal(Signal::TERM);
    let output = running.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(follows(&ask()), "by what was saved");
    let first = first.display().to_string();
    let said = place.said(&["predict", "--limit", "1", &first]);
    assert_eq!(said.lines().count(), 2, "{said}");
    let nothing = place.output(&["predict", "/nowhere"]);
    assert_eq!(nothing.status.code(), Some(1), "nobody has opened it");
    let why = text(&nothing.stderr);
    assert_eq!(
        why,
        "foreread: no daemon is running, and the saved models predict no file after /nowhere\n"
    );
    let held: Vec<&str> = names.iter().map(String::as_str).collect();
    let _held = place.lab.held(&held);
    let said = place.said(&["predict", &first]);
    assert!(
        said.starts_with("AHEAD  LIKELIHOOD  IN MEMORY  FILE"),
        "{said}"
    );
    assert!(said.contains(" all  "), "they are held there: {said}");
    let full = fs::File::options().write(true).open("/dev/full");
    let mut unwritable = place.command(&["predict", &first]);
    let output = unwritable.stdout(full.expect("/dev/full")).output();
    let why = text(&output.expect("foreread").stderr);
    assert!(why.starts_with("foreread: standard output: "), "{why}");
    let _again = place.running();
    assert!(follows(&ask()), "by the next daemon");
    let nothing = text(&place.output(&["predict", "/nowhere"]).stderr);
    assert_eq!(
        nothing,
        "foreread: the daemon predicts no file after /nowhere\n"
    );
}

fn one_that_cannot_start_says_why() {
    let place = Place::new();
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(place.lab.path("run"), mode(0o777)).expect("its mode");
    for words in [["daemon", "run"], ["daemon", "start"]] {
        let said = place.complaint(&words);
        assert!(
            said.contains("other users can write to this folder"),
            "{said}"
        );
    }
    fs::set_permissions(place.lab.path("run"), mode(0o755)).expect("its mode");
    fs::write(place.socket(), "precious").expect("a file");
    for words in [["daemon", "run"], ["daemon", "start"]] {
        let said = place.complaint(&words);
        assert!(
            said.contains("daemon.sock: something other than a socket"),
            "{said}"
        );
    }
    let kept = fs::read_to_string(place.socket()).expect("still there");
    assert_eq!(kept, "precious");
    fs::remove_file(place.socket()).expect("there");
    let pipe = place.lab.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
    let said = place.complaint(&["daemon", "run", "--metrics", &pipe.display().to_string()]);
    assert!(said.contains("pipe: is no regular file"), "{said}");
    fs::remove_dir_all(place.state()).expect("it was made for the log");
    fs::write(place.state(), "no folder").expect("a file");
    let said = place.complaint(&["daemon", "start"]);
    assert!(said.contains("is no folder"), "{said}");
}

fn a_full_disk_costs_what_was_learned_and_nothing_else() {
    let place = Place::new();
    let (disk, state) = (place.lab.path("disk"), place.state());
    let sh = |script: String| {
        let output = Command::new("sh")
            .args(["-c", &script])
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let (disk, at) = (disk.display(), state.display());
    sh(format!(
        "truncate -s 2M {disk} && mkfs.ext4 -q {disk} && mkdir -m 700 {at} && mount -o loop {disk} {at} && chmod 700 {at}"
    ));
    let running = place.running();
    sh(format!(
        "dd if=/dev/zero of={at}/full bs=1k 2>/dev/null; exit 0"
    ));
    let names: Vec<String> = ["/etc/passwd", "/etc/group"].map(str::to_owned).into();
    open_in_order(&place, &names);
    assert!(place.status()["pid"] == running.0.id());
    // Stopped by a request, and then by a signal: the error is reported in both cases.
    let said = place.complaint(&["daemon", "stop"]);
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("is lost"), "{said}");
    running.end();
    let running = place.running();
    open_in_order(&place, &names);
    running.signal(Signal::TERM);
    let output = running.end();
    sh(format!("umount {at}"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

fn top_is_shown_in_a_terminal_and_quits() {
    let place = Place::new();
    let _running = place.running();
    let said = place.complaint(&["top"]);
    assert!(said.contains("top takes a terminal"), "{said}");
    let dumb = Command::new("script")
        .args(["-qec", &format!("{} top", foreread().display())])
        .arg("/dev/null")
        .env("TERM", "dumb")
        .output();
    let dumb = dumb.expect("script");
    assert!(text(&dumb.stdout).contains("TERM=dumb"), "{dumb:?}");
    // By a key, by a signal, and by a key after a stop.
    for way in [Way::Key, Way::Signal, Way::KeyAfterStop] {
        let mut terminal = Terminal::with_top(&place);
        for said in ["fanotify", "predicted", "q quits"] {
            terminal.shows(said, 1);
        }
        let top = terminal.top();
        if way == Way::KeyAfterStop {
            terminal.press(CTRL_Z);
            let script = Pid::from_child(&terminal.script);
            // `script` stops with the program.
            eventually("the stop", || is_stopped(top) && is_stopped(script));
            kill_process(script, Signal::CONT).expect("script");
            // `script` may have stopped before it forwarded the last output.
            terminal.shows(GIVEN_BACK, 1);
            kill_process(top, Signal::CONT).expect("top");
            terminal.shows(TAKEN, 2);
        }
        if way == Way::Signal {
            kill_process(top, Signal::TERM).expect("top");
        } else {
            terminal.press("q");
        }
        let (status, shown) = terminal.end();
        let signalled = 128 + Signal::TERM.as_raw();
        assert_eq!(status, Some(if way == Way::Signal { signalled } else { 0 }));
        // The terminal is restored: the former screen is shown again, and the cursor.
        for restores in [GIVEN_BACK, "\x1b[?25h"] {
            let last = shown.rfind(restores);
            assert!(last > shown.rfind("q quits"), "{restores:?}: {shown:?}");
        }
    }
}

#[derive(PartialEq)]
enum Way {
    Key,
    Signal,
    KeyAfterStop,
}

const CTRL_Z: &str = "\x1a";
/// The other screen is shown, and the screen from before.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// True if a process is stopped.
fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// `foreread top` in a terminal of 80 columns, which `script` makes.
struct Terminal {
    script: Child,
    /// The bytes shown so far.
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn with_top(place: &Place) -> Self {
        let top = format!(
            "stty cols 80 rows 24; exec {} top --socket {}",
            foreread().display(),
            place.socket().display()
        );
        let script = Command::new("script")
            .args(["-qefc", &top, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut script = script.expect("script");
        let mut output = script.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                sink.lock()
                    .expect("no panic")
                    .extend_from_slice(&bytes[..count]);
            }
        });
        Self { script, shown }
    }

    /// The process number of top, once it has drawn.
    fn top(&self) -> Pid {
        let script = self.script.id();
        let children = fs::read_to_string(format!("/proc/{script}/task/{script}/children"));
        let children = children.expect("script runs");
        let child = children.split_whitespace().next().expect("a child");
        Pid::from_raw(child.parse().expect("a number")).expect("not 0")
    }

    /// Waits until a text was shown this many times.
    fn shows(&self, said: &str, times: usize) {
        eventually(&format!("{said:?} on the terminal"), || {
            text(&self.shown.lock().expect("no panic"))
                .matches(said)
                .count()
                >= times
        });
    }

    fn press(&mut self, keys: &str) {
        let input = self.script.stdin.as_mut().expect("a pipe");
        input.write_all(keys.as_bytes()).expect("script reads");
    }

    /// Waits for the end. Returns the exit status, and everything that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        let mut status = None;
        eventually("the end of top", || {
            status = self.script.try_wait().expect("script");
            status.is_some()
        });
        let shown = self.shown.clone();
        // The thread drops its reference after the last byte.
        eventually("the last output", || Arc::strong_count(&shown) == 2);
        (
            status.and_then(|status| status.code()),
            text(&shown.lock().expect("no panic")),
        )
    }
}

fn metrics_are_kept_in_a_file() {
    let place = Place::new();
    let file = place.lab.path("foreread.prom");
    let path = file.display().to_string();
    let said = place.said(&["daemon", "start", "--metrics", &path]);
    assert!(said.contains("the daemon runs"), "{said}");
    eventually("the file is there", || file.exists());
    let text = fs::read_to_string(&file).expect("the file");
    assert!(text.starts_with("# HELP foreread_info "), "{text}");
    assert!(text.contains("observer=\"fanotify\""), "{text}");
}
