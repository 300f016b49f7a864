//! `foreread daemon run` and `foreread daemon start`.
//!
//! Invariants: one daemon for each socket and each folder of models; a daemon that was killed leaves nothing that the next one cannot
//! start over; signals that end it end it by way of the loop, which saves what was learned.
//!
//! Data flow: settings → [`Options`] → locks → observer → control socket → [`serve`].

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use foreread_daemon::control::wire::Asked;
use foreread_daemon::control::{AskError, Held, Lock, Server, ask};
use foreread_daemon::{Answer, Ask, Desk, Options, desk, metrics, open, serve};
use foreread_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use super::{own_socket, own_state};
use crate::args::daemon::{METRICS, Run, Settings};
use crate::output::output;

/// What is wrong, in errors of the folder of the control socket. The folder of a socket that the user names is not made: a
/// mistyped path would leave folders behind.
const SOCKET_FOLDER: &str = "the control socket's folder";
/// How long a daemon may take until it answers: it reads what it has learned from a disk that may be slow.
const READY: Duration = Duration::from_secs(30);
/// How often is looked whether it answers.
const LOOK: Duration = Duration::from_millis(20);
/// How long the loop may take to answer.
const LOOP: Duration = Duration::from_secs(5);
/// Bytes of the log beyond which it is begun anew.
const LOG: u64 = 1 << 20;
/// Bytes at the log's end that are shown of a daemon that did not start.
const SHOWN: u64 = 2000;

/// Is the daemon, until somebody stops it.
pub(super) fn run(args: &Run) -> Result<ExitCode> {
    let options = options(&args.settings)?;
    // Before there are threads: they are to leave these signals alone.
    let signals = [Signal::TERM, Signal::INT, Signal::HUP].map(Signal::as_raw);
    let signals = Signals::block(&signals)?;
    if args.detached {
        rustix::process::setsid()?;
    }
    if args.settings.place.socket.is_none() {
        Server::make_folder(&options.socket).context(SOCKET_FOLDER)?;
    }
    Server::check_folder(&options.socket).context(SOCKET_FOLDER)?;
    if let Some(file) = &args.settings.metrics {
        metrics::check(file).with_context(|| file.display().to_string())?;
    }
    make_state(&options.state)?;
    let _locks = [
        lock(&options.socket.with_extension("lock"))?,
        lock(&options.state.join("lock"))?,
    ];
    let say = &mut |said: String| eprintln!("foreread: {}", foreread_words::plain(&said));
    let watch = open(&options, say).map_err(|why| anyhow!("no observer: {why}"))?;
    let observer = watch.name();
    let (desk, counter) = desk()?;
    let _server = Server::start(&options.socket, desk.clone())
        .with_context(|| options.socket.display().to_string())?;
    spawn("signals", {
        let desk = desk.clone();
        move || stop_on(&signals, &desk)
    })?;
    // Dropped when the loop has ended.
    let (_running, running) = channel::<()>();
    if let Some(file) = args.settings.metrics.clone() {
        let file = std::path::absolute(file)?;
        spawn("metrics", move || keep_metrics(&file, &desk, &running))?;
    }
    let status = serve(&options, watch, counter, || {
        eprintln!(
            "foreread: the daemon runs, observing by {observer}; it is asked at {}",
            options.socket.display()
        );
        notify("READY=1");
    })?;
    notify("STOPPING=1");
    for problem in &status.problems {
        eprintln!("foreread: {}", foreread_words::plain(problem));
    }
    // Who started it, systemd above all, is to see that something is lost.
    let lost = status.model.unsaved.is_some();
    Ok(if lost {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)?;
    Ok(())
}

fn options(settings: &Settings) -> Result<Options> {
    let socket = settings.place.socket.clone().or_else(own_socket);
    let state = settings.state.clone().or_else(own_state);
    let socket = socket.context("no place for the control socket: XDG_RUNTIME_DIR is not set")?;
    let state = state.context("no place for the models: neither XDG_DATA_HOME nor HOME is set")?;
    Ok(Options {
        state: std::path::absolute(state)?,
        socket: std::path::absolute(socket)?,
        model: settings.model.into(),
        threshold: settings.threshold,
        budget: settings.budget,
        observer: settings.observer.into(),
        priority: settings.priority.into(),
        fuse: settings.fuse,
    })
}

/// Makes the folder of models, for this user alone: file names are in there.
fn make_state(state: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(state);
    made.with_context(|| format!("{}: cannot make the folder of models", state.display()))
}

fn lock(path: &Path) -> Result<Lock> {
    match Lock::take(path) {
        Ok(lock) => Ok(lock),
        Err(Held::By(0)) => bail!("a daemon is running already"),
        Err(Held::By(pid)) => bail!("a daemon is running already: process {pid}"),
        Err(Held::Failed(why)) => Err(anyhow::Error::new(why).context(path.display().to_string())),
    }
}

/// Has the loop end when a signal says so.
fn stop_on(signals: &Signals, desk: &Desk) {
    loop {
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], None);
        if let Ok(Some(_)) = signals.next() {
            // A loop that is busy is asked again; one that has ended takes the process with it.
            while desk.ask(Ask::Stop, LOOP).is_none() {
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Keeps the status in a file.
fn keep_metrics(file: &Path, desk: &Desk, running: &Receiver<()>) {
    let mut failed = false;
    loop {
        if let Some(Answer::Status(status)) = desk.ask(Ask::Status, LOOP) {
            match metrics::replace(file, &metrics::text(&status)) {
                Ok(()) => failed = false,
                Err(_) if failed => {}
                // Said once, however long the disk is full.
                Err(why) => {
                    failed = true;
                    let why = foreread_words::plain(&why.to_string());
                    eprintln!("foreread: {}: {why}", file.display());
                }
            }
        }
        if running.recv_timeout(METRICS) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Tells systemd, if that started this process.
fn notify(state: &str) {
    use std::os::unix::ffi::OsStrExt;

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    };
    // Who does not listen is not told.
    let _ = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}

/// Starts the daemon as a process of its own, and says when it answers or why it does not.
pub(super) fn start(settings: &Settings) -> Result<ExitCode> {
    let options = options(settings)?;
    match ask(&options.socket, &Asked::Status) {
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
        if let Ok(answer) = ask(&options.socket, &Asked::Status)
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

/// This program as the daemon, with the same settings.
fn child(log: &File) -> Result<Child> {
    let program: PathBuf = std::env::current_exe()?;
    // The words after `foreread daemon start`.
    let settings = std::env::args_os().skip(3);
    let child = Command::new(program)
        .args(["daemon", "run", "--detached"])
        .args(settings)
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
