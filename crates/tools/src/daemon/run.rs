//! `foreread daemon run` and `foreread daemon start`: start forereadd in this process or in the background.

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

/// Name of the daemon's program.
const DAEMON: &str = "forereadd";
/// Time until the daemon must answer: it loads its models, perhaps from a slow disk.
const READY: Duration = Duration::from_secs(30);
/// Interval of checks for the answer.
const LOOK: Duration = Duration::from_millis(20);
/// Size beyond which a new log is begun, in bytes.
const LOG: u64 = 1 << 20;
/// Bytes of the log's end that are printed if the daemon does not start.
const SHOWN: u64 = 2000;

/// Replaces this process by the daemon.
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

/// The arguments after `foreread daemon start` or `run`.
fn settings() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(3)
}

/// Starts the daemon as a process of its own. Reports its first answer, or the reason for having none.
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
                "the daemon runs as process {}; foreread daemon status shows what it does",
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

/// Opens the log. Also returns its size.
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

/// The messages of a daemon that has ended: the log from this offset on.
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
