//! `foreread daemon`, whole: it starts, is asked, is killed and stopped, and tells each user no more than that user may know.
//!
//! Every daemon here has folders of its own, so that one of the machine's is left alone. What this machine cannot run is reported as
//! ignored, with the reason.

#[path = "daemon/life.rs"]
mod life;
#[path = "daemon/own.rs"]
mod own;
#[path = "daemon/secrets.rs"]
mod secrets;
#[path = "daemon/unit.rs"]
mod unit;

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use foreread_tests::{Lab, Need, eventually, foreread, rounds, text};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The user without privileges.
const NOBODY: u32 = 65_534;

/// A test, and what it cannot do without.
type Test = (&'static str, &'static [Need], fn());

fn main() {
    let mut arguments = Arguments::from_args();
    // One at a time: each watches the whole machine.
    arguments.test_threads.get_or_insert(1);
    let mut trials = Vec::new();
    let tests = [life::TESTS, own::TESTS, secrets::TESTS, unit::TESTS];
    for &(name, needs, test) in tests.into_iter().flatten() {
        let run = move || -> Result<(), Failed> {
            rounds(test);
            Ok(())
        };
        let missing = needs.iter().find_map(|need| match need {
            // Without rights there is nothing to watch with.
            Need::Root => need.missing().or_else(no_fanotify),
            _ => need.missing(),
        });
        trials.push(match missing {
            None => Trial::test(name, run),
            Some(missing) => Trial::test(format!("{name} (cannot run here: {missing})"), run)
                .with_ignored_flag(true),
        });
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Why there is no fanotify, if there is none.
fn no_fanotify() -> Option<String> {
    let made = foreread_sys::fanotify::Group::by_name();
    made.err().map(|why| format!("no fanotify: {why}"))
}

/// A place for daemons.
struct Place {
    lab: Lab,
    /// Who observes.
    observer: &'static str,
}

impl Place {
    fn new() -> Self {
        Self::of(Lab::new(), "fanotify")
    }

    /// Of a user without privileges, whose daemon finds out itself who can observe.
    fn of_nobody() -> Self {
        let place = Self::of(Lab::of_nobody(), "auto");
        chown(place.lab.path("run"), Some(NOBODY), None).expect("root may");
        place
    }

    /// With a folder for the socket: a daemon makes none for a socket that is named.
    fn of(lab: Lab, observer: &'static str) -> Self {
        fs::create_dir(lab.path("run")).expect("a folder");
        Self { lab, observer }
    }

    fn state(&self) -> PathBuf {
        self.lab.path("state")
    }

    fn socket(&self) -> PathBuf {
        self.lab.path("run/daemon.sock")
    }

    /// `foreread` with these words, and those that say where.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.command(foreread());
        command.args(words).arg("--socket").arg(self.socket());
        if words.first() == Some(&"predict") || matches!(words.get(1), Some(&("run" | "start"))) {
            command.arg("--state").arg(self.state());
        }
        if matches!(words.get(1), Some(&("run" | "start"))) {
            command.args(["--observer", self.observer]);
        }
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("foreread")
    }

    /// Standard output of a command that succeeds.
    fn said(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// What a command complains of, that fails.
    fn complaint(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    }

    fn status(&self) -> Value {
        let said = self.said(&["daemon", "status", "--json"]);
        serde_json::from_str(&said).expect("JSON")
    }

    /// A daemon in the foreground that answers.
    fn running(&self) -> Running {
        let child = self
            .command(&["daemon", "run"])
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("foreread");
        let pid = child.id();
        eventually("the daemon answers", || {
            let output = self.output(&["daemon", "status", "--json"]);
            let said: Result<Value, _> = serde_json::from_slice(&output.stdout);
            said.is_ok_and(|said| said["pid"] == pid)
        });
        Running(child)
    }
}

impl Drop for Place {
    /// Nothing is left running.
    fn drop(&mut self) {
        let _ = self.output(&["daemon", "stop"]);
    }
}

/// A daemon in the foreground.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).expect("it runs");
    }

    /// Its end, which is to come by itself.
    fn end(mut self) -> Output {
        let until = Instant::now() + Duration::from_secs(60);
        while self.0.try_wait().expect("our child").is_none() {
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.0.stderr.take() {
            std::io::Read::read_to_end(&mut pipe, &mut stderr).expect("its words");
        }
        Output {
            status: self.0.wait().expect("our child"),
            stdout: Vec::new(),
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
