//! `foreread daemon run` and `foreread daemon start`: forereadd is started, in this process or in one of its own.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use foreread_daemon::cli::{Settings, make_state};
use foreread_daemon::control::wire::Subject;
use foreread_daemon::control::{AskError, ask};
use foreread_sys::{own, spawn};

use crate::output::output;

/// The daemon.
const DAEMON: &str = "forereadd";
/// How long a daemon may take until it answers: it reads what it has learned from a disk that may be slow.
const READY: Duration = Duration::from_secs(30);
/// How often is looked whether it answers.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of the log beyond which it is begun anew.
const LOG: u64 = 1 << 20;
/// Bytes at the log's end that are shown of a daemon that did not start.
const SHOWN: u64 = 2000;

/// Has the daemon take this process's place.
pub(super) fn run() -> Result<Infallible> {
    let program = program()?;
    let words: Vec<OsString> = [program.clone().into()]
        .into_iter()
        .chain(settings())
        .collect();
    Err(spawn::replace(&program, &words, &[], None)).context(program.display().to_string())
}

fn program() -> Result<PathBuf> {
    Ok(own::part(DAEMON, "../libexec")?)
}

/// The words after `foreread daemon start` or `run`.
fn settings() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(3)
}

/// Starts the daemon as a process of its own, and says when it answers or why it does not.
pub(super) fn start(settings: &Settings) -> Result<ExitCode> {
    let options = settings.options()?;
    match ask(&options.socket, &Subject::Status) {
        Err(AskError::NotRunning) => {}
        Ok(answer) => bail!("a daemon is running already: process {}", answer.pid),
        Err(why) => return Err(why.into()),
    }
    make_state(&options.state)?;
    let path = options.state.join("daemon.log");
    let (log, began) = open_log(&path).with_context(|| path.display().to_string())?;
    let mut child = child(&log)?;
    let until = Instant::now() + READY;
    while Instant::now() < until {
        if let Ok(answer) = ask(&options.socket, &Subject::Status)
            && answer.pid == child.id()
        {
            writeln!(
                output(),
                "the daemon runs as process {}; foreread daemon status says how it goes",
                answer.pid
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = child.try_wait()? {
            let said = last_words(&log, began);
            let said = said.unwrap_or_else(|| format!("it ended with {status}"));
            bail!("the daemon did not start: {said}");
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    bail!(
        "the daemon did not answer within {} s, and was stopped",
        READY.as_secs()
    )
}

/// The log, and how long it was.
fn open_log(path: &Path) -> Result<(File, u64)> {
    let log = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32)
        .open(path)?;
    let about = log.metadata()?;
    if !about.is_file() {
        bail!("is no regular file");
    }
    if about.len() > LOG {
        log.set_len(0)?;
        return Ok((log, 0));
    }
    Ok((log, about.len()))
}

/// The daemon in the background, with the same settings.
fn child(log: &File) -> Result<Child> {
    let child = Command::new(program()?)
        .arg("--detached")
        .args(settings())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .spawn()?;
    Ok(child)
}

/// What a daemon that has ended said since the log had so many bytes.
fn last_words(mut log: &File, began: u64) -> Option<String> {
    let len = log.metadata().ok()?.len();
    let from = began.max(len.saturating_sub(SHOWN));
    log.seek(SeekFrom::Start(from)).ok()?;
    let mut said = Vec::new();
    log.take(SHOWN).read_to_end(&mut said).ok()?;
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rfind(|line| !line.is_empty())?;
    let line = line.strip_prefix("foreread: ").unwrap_or(line);
    Some(foreread_words::shown(line).into_owned())
}
