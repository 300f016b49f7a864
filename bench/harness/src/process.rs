//! One timed run of a whole process, and its results.
//!
//! The output goes to a file in memory (the scratch folder), never to a terminal or a pipe, so that the harness adds nothing to
//! the measured time. All output of the program is then hashed, because runs in different modes must have equal output.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use foreread_sys::procfs::{self, Status};

use crate::signals;

/// A command that can be run any number of times.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The program: a path, or a name to be searched in PATH.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
}

impl Invocation {
    /// The same program run by `runner` with `leading` arguments before the command.
    pub fn under(&self, runner: &Path, leading: Vec<OsString>) -> Self {
        let mut args = leading;
        args.push(self.program.clone().into());
        args.extend(self.args.iter().cloned());
        Self {
            program: runner.to_owned(),
            args,
            ..self.clone()
        }
    }

    /// The command as one line, for reports.
    pub fn line(&self) -> String {
        let mut words = vec![self.program.display().to_string()];
        words.extend(
            self.args
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned()),
        );
        words.join(" ")
    }
}

/// The results of a run, apart from its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or 128 + the signal that ended it.
    pub status: i32,
    /// Hash of standard output and of every output file, in order.
    pub output: u64,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Wall-clock time from just before the start to the exit, in seconds.
    pub seconds: f64,
    /// Processor time of the command and of all processes that it waited for, in seconds.
    pub cpu_seconds: f64,
    /// Exit status and output.
    pub outcome: Outcome,
    /// Standard output, up to 64 KiB.
    pub stdout: String,
    /// The last lines of standard error.
    pub stderr: String,
    /// The most memory that the started process itself held at once, in KiB.
    pub peak_rss_kb: Option<u64>,
}

/// Runs `command` once with its output in `scratch`, and hashes `outputs` afterwards.
pub fn run(command: &Invocation, scratch: &Path, outputs: &[PathBuf]) -> Result<Run> {
    run_when(|| (), command, scratch, outputs)
}

/// As [`run`]; the command starts as soon as `ready` returns.
pub fn run_when(
    ready: impl FnOnce(),
    command: &Invocation,
    scratch: &Path,
    outputs: &[PathBuf],
) -> Result<Run> {
    start(ready, command, scratch, outputs, false)
}

/// As [`run`], sampling the started process's peak memory.
pub fn run_watching(command: &Invocation, scratch: &Path, outputs: &[PathBuf]) -> Result<Run> {
    start(|| (), command, scratch, outputs, true)
}

fn start(
    ready: impl FnOnce(),
    command: &Invocation,
    scratch: &Path,
    outputs: &[PathBuf],
    watch_memory: bool,
) -> Result<Run> {
    signals::check()?;
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    let create =
        |path: &Path| File::create(path).with_context(|| format!("creating {}", path.display()));
    let mut process = Command::new(&command.program);
    process
        .args(&command.args)
        .current_dir(&command.cwd)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(create(&out)?)
        .stderr(create(&err)?);
    let used = foreread_sys::usage::of_children();
    ready();
    let began = Instant::now();
    let mut child = process
        .spawn()
        .with_context(|| format!("starting {}", command.program.display()))?;
    let pid = child.id();
    let guard = signals::watch_child(pid);
    let watcher = watch_memory.then(|| std::thread::spawn(move || peak_memory(pid)));
    let status = child
        .wait()
        .with_context(|| format!("waiting for {}", command.program.display()))?;
    let seconds = began.elapsed().as_secs_f64();
    drop(guard);
    signals::check()?;
    let cpu_seconds = (foreread_sys::usage::of_children() - used).as_secs_f64();
    let status = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let mut hash = std::hash::DefaultHasher::new();
    for path in std::iter::once(&out).chain(outputs) {
        hash_file(path, &mut hash)?;
    }
    let text =
        |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let stderr = text(&err).with_context(|| format!("reading {}", err.display()))?;
    let mut head = Vec::new();
    File::open(&out)
        .and_then(|file| file.take(64 << 10).read_to_end(&mut head))
        .with_context(|| format!("reading {}", out.display()))?;
    Ok(Run {
        seconds,
        cpu_seconds,
        outcome: Outcome {
            status,
            output: hash.finish(),
        },
        stdout: String::from_utf8_lossy(&head).into_owned(),
        stderr: last_lines(&stderr, 5),
        peak_rss_kb: watcher.and_then(|watcher| watcher.join().ok()).flatten(),
    })
}

/// Adds a file's bytes to `hash`; a missing file adds a mark.
fn hash_file(path: &Path, hash: &mut impl Hasher) -> Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            hash.write_u8(0);
            return Ok(());
        }
        Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
    };
    hash.write_u8(1);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file
            .read(&mut buffer)
            .with_context(|| format!("reading {}", path.display()))?
        {
            0 => return Ok(()),
            count => hash.write(&buffer[..count]),
        }
    }
}

/// The peak resident size of `pid`, in KiB, as last read before it ended.
fn peak_memory(pid: u32) -> Option<u64> {
    let mut peak = None;
    // The figure disappears when the process becomes a zombie.
    while let Some(seen) = procfs::status(pid)
        .ok()
        .and_then(|text| Status(&text).number("VmHWM"))
    {
        peak = Some(seen);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    peak
}

/// The last `count` lines of `text`.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, dir: &Path) -> Run {
        let command = Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: dir.to_owned(),
            env: Vec::new(),
        };
        run(&command, dir, &[dir.join("made")]).unwrap()
    }

    #[test]
    fn outcomes_tell_output_files_and_status_apart() {
        let dir = tempfile::tempdir().unwrap();
        let plain = shell("echo a", dir.path());
        assert_eq!(plain.stdout, "a\n");
        assert_eq!(
            plain.outcome,
            shell("echo a; echo noise >&2", dir.path()).outcome
        );
        assert_ne!(plain.outcome, shell("echo b", dir.path()).outcome);
        assert_ne!(plain.outcome, shell("echo a; exit 3", dir.path()).outcome);
        assert_ne!(
            plain.outcome,
            shell("echo a; echo x > made", dir.path()).outcome
        );
    }

    #[test]
    fn a_signal_shows_in_the_status_and_the_time_is_the_whole_processs() {
        let dir = tempfile::tempdir().unwrap();
        let run = shell("sleep 0.05; kill -9 $$", dir.path());
        assert_eq!(run.outcome.status, 137);
        assert!(run.seconds >= 0.05);
    }

    #[test]
    fn the_processor_time_is_that_of_all_processes() {
        let dir = tempfile::tempdir().unwrap();
        let busy = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'";
        assert!(shell(busy, dir.path()).cpu_seconds > 0.0);
    }
}
