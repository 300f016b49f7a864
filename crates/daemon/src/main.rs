//! `forereadd`: the daemon, in the foreground. `foreread daemon` starts, stops and asks it.
//!
//! Invariants: there is one daemon per socket and per folder of models. A killed daemon leaves nothing that blocks the next one. Signals
//! end it through the loop, which saves the models. Unneeded privileges are dropped before the first question.
//!
//! Data flow: settings → [`Options`](foreread_daemon::Options) → locks → observer → control socket → [`serve`].
//!
//! Exit status: 0, 1 if something that was learned is lost, 2 if it failed.

#![forbid(unsafe_code)]

mod rights;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use foreread_daemon::cli::{Run, make_state};
use foreread_daemon::control::{Held, Lock, Server};
use foreread_daemon::{Answer, Ask, Desk, desk, metrics, open, serve};
use foreread_sys::replace;
use foreread_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

/// Predict and prefetch the files that any program opens next
#[derive(Debug, Parser)]
#[command(name = "forereadd", version, max_term_width = 80)]
struct Args {
    #[command(flatten)]
    run: Run,
}

/// Subject of errors about the control socket's folder. The folder of a socket named by the user is not created: a mistyped path would
/// leave folders behind.
const SOCKET_FOLDER: &str = "the control socket's folder";
/// Time after which a busy loop is asked again.
const LOOK: Duration = Duration::from_millis(20);
/// Time for the loop's answer.
const LOOP: Duration = Duration::from_secs(5);
/// Interval at which the status file is replaced.
const METRICS: Duration = Duration::from_secs(15);

/// Exit status of a daemon that could not start, or not save its models.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    foreread_sys::spawn::keep_children();
    match run(&Args::parse().run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("foreread: {}", foreread_words::plain(&format!("{error:#}")));
            ExitCode::from(FAILED)
        }
    }
}

/// Runs the daemon until it is stopped.
fn run(args: &Run) -> Result<ExitCode> {
    let options = args.settings.options()?;
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
        replace::check(file).with_context(|| file.display().to_string())?;
    }
    make_state(&options.state)?;
    let _locks = [
        lock(&options.socket.with_extension("lock"))?,
        lock(&options.state.join("lock"))?,
    ];
    let say = &mut |said: String| eprintln!("foreread: {}", foreread_words::plain(&said));
    let observer = open(&options, say).map_err(|why| anyhow!("no observer: {why}"))?;
    let name = observer.name();
    rights::keep(name).context("its rights")?;
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
    let status = serve(&options, observer, counter, || {
        eprintln!(
            "foreread: the daemon runs, observing by {name}; it is asked at {}",
            options.socket.display()
        );
        notify("READY=1");
    })?;
    notify("STOPPING=1");
    for problem in &status.problems {
        eprintln!("foreread: {}", foreread_words::plain(problem));
    }
    // The starter, usually systemd, must see that the models were not saved.
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

fn lock(path: &Path) -> Result<Lock> {
    match Lock::take(path) {
        Ok(lock) => Ok(lock),
        Err(Held::By(0)) => bail!("a daemon is running already"),
        Err(Held::By(pid)) => bail!("a daemon is running already: process {pid}"),
        Err(Held::Failed(why)) => Err(anyhow::Error::new(why).context(path.display().to_string())),
    }
}

/// Ends the loop on a signal.
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
            match replace::file(file, &metrics::text(&status)) {
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
    // A missing listener is ignored.
    let _ = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}
