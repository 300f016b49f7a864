//! `foreread daemon` as a whole: it starts, answers, is killed and stopped, and shows each user only what that user may know.
//!
//! Every daemon here has folders of its own, so that a daemon of the machine is left alone.

mod life;
mod own;
mod secrets;
mod unit;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use foreread_tests::suite::Suite;
use foreread_tests::{Lab, eventually, foreread, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The unprivileged user.
const NOBODY: u32 = 65_534;

pub fn add(suite: &mut Suite) {
    for tests in [life::TESTS, own::TESTS, secrets::TESTS, unit::TESTS] {
        suite.add("daemon", tests);
    }
}

/// The folders of a daemon.
struct Place {
    lab: Lab,
    /// The observer's name.
    observer: &'static str,
}

impl Place {
    fn new() -> Self {
        Self::of(Lab::new(), "fanotify")
    }

    /// A place of an unprivileged user, whose daemon chooses the observer.
    fn of_nobody() -> Self {
        let place = Self::of(Lab::of_nobody(), "auto");
        chown(place.lab.path("run"), Some(NOBODY), None).expect("root may");
        place
    }

    /// Creates a folder for the socket, because a daemon creates none for a socket given by name.
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

    /// `foreread` with these words, and with the options that name the folders.
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

    /// Standard output of a command, which must succeed.
    fn said(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// The prediction for a file, as JSON. If nothing follows, the command fails with a status of its own and prints an empty list.
    fn predicted(&self, file: &Path) -> String {
        let output = self.output(&["predict", "--json", &file.display().to_string()]);
        let said = text(&output.stdout);
        let status = if said.trim() == "[]" { 1 } else { 0 };
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            text(&output.stderr)
        );
        said
    }

    /// Standard error of a command, which must fail.
    fn complaint(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let code = output.status.code();
        assert!(
            matches!(code, Some(1 | 2)),
            "{code:?}: {}",
            text(&output.stdout)
        );
        text(&output.stderr)
    }

    fn status(&self) -> Value {
        let said = self.said(&["daemon", "status", "--json"]);
        serde_json::from_str(&said).expect("JSON")
    }

    /// A daemon in the foreground that answers requests.
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
    /// Leaves no daemon running.
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

    /// Waits for the daemon's own end.
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
