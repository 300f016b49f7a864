//! `foreread top`: this user's runs and the daemon, live.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`runs`] | current runs, found in /proc and asked through the memory that they share with their programs |
//! | [`view`] | the screen, drawn on a terminal or printed as text |
//!
//! Data flow: runs and the daemon's status → [`View`]. A thread of its own asks the daemon, so keys work while the daemon does not answer.
//! Invariant: the terminal is restored, whether the command ends or is stopped.

pub(crate) mod runs;
mod view;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use foreread::end_as;
use foreread_daemon::Status;
use foreread_daemon::control::AskError;
use foreread_sys::process::End;
use foreread_sys::signals::{Signals, stop_self};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde::Serialize;

use crate::args;
use crate::daemon::asking::{status_at, to_ask};
use crate::output::{output, width};
use runs::{Run, Runs};
use view::View;

/// Time to wait for a key before the next look for changes.
const KEYS: Duration = Duration::from_millis(100);

/// The facts at one moment.
struct Now {
    runs: Vec<Run>,
    /// The daemon's status, or the reason for having none; `None` if no daemon runs.
    daemon: Option<Result<Status>>,
    at: Instant,
}

impl Now {
    fn look(runs: &mut Runs, socket: &Path) -> Self {
        let daemon = match status_at(socket) {
            Err(why) if matches!(why.downcast_ref(), Some(AskError::NotRunning)) => None,
            told => Some(told),
        };
        Self {
            runs: runs.look(),
            daemon,
            at: Instant::now(),
        }
    }
}

/// The same facts as JSON.
#[derive(Serialize)]
struct Snapshot<'a> {
    runs: &'a [Run],
    daemon: Option<&'a Status>,
}

/// Shows the screen until the user quits, or prints it once.
pub(crate) fn top(args: &args::daemon::Top) -> Result<ExitCode> {
    let socket = to_ask(&args.place);
    if args.once || args.json {
        return once(args, &socket);
    }
    let once = "foreread top --once prints the same once";
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("top takes a terminal; {once}");
    }
    if std::env::var_os("TERM").is_some_and(|kind| kind == "dumb") {
        bail!("this terminal (TERM=dumb) cannot be drawn on; {once}");
    }
    // These signals wait until the terminal is restored. They are blocked before the thread starts, because it inherits the mask.
    let ends = [Signal::TERM, Signal::INT, Signal::HUP, Signal::TSTP].map(Signal::as_raw);
    let ends = Signals::block(&ends)?;
    let mut runs = Runs::default();
    let mut view = View::default();
    view.take(Now::look(&mut runs, &socket));
    let (sender, told) = channel();
    let every = Duration::from_secs(args.every);
    std::thread::Builder::new().spawn(move || {
        loop {
            std::thread::sleep(every);
            if sender.send(Now::look(&mut runs, &socket)).is_err() {
                return;
            }
        }
    })?;
    loop {
        let mut terminal = ratatui::try_init()?;
        let shown = show(&mut terminal, &mut view, &told, &ends);
        if let Ok(Leave::Killed(signal)) = shown
            && signal == Signal::HUP.as_raw()
        {
            // The terminal is gone: nothing to restore, nowhere to print.
            return Ok(end_as(End::Killed(signal)));
        }
        let restored = ratatui::try_restore();
        // Shows the cursor again.
        drop(terminal);
        match shown? {
            Leave::Stop => stop_self()?,
            Leave::Killed(signal) => return Ok(end_as(End::Killed(signal))),
            Leave::Quit => return Ok(restored.map(|()| ExitCode::SUCCESS)?),
        }
    }
}

/// Prints the facts once.
fn once(args: &args::daemon::Top, socket: &Path) -> Result<ExitCode> {
    let now = Now::look(&mut Runs::default(), socket);
    let mut out = output();
    if args.json {
        let told = Snapshot {
            runs: &now.runs,
            daemon: now.daemon.as_ref().and_then(|told| told.as_ref().ok()),
        };
        serde_json::to_writer_pretty(&mut out, &told).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let mut view = View::default();
        view.take(now);
        out.write_all(view.text(width(), SystemTime::now()).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The reason why the terminal is restored.
#[derive(Debug, PartialEq, Eq)]
enum Leave {
    Quit,
    /// The process stops, and draws again when it is continued.
    Stop,
    Killed(i32),
}

/// Draws until the terminal must be restored.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    view: &mut View,
    told: &Receiver<Now>,
    ends: &Signals,
) -> Result<Leave> {
    loop {
        match ends.next()?.map(|received| received.signal) {
            Some(signal) if signal == Signal::TSTP.as_raw() => return Ok(Leave::Stop),
            Some(signal) => return Ok(Leave::Killed(signal)),
            None => {}
        }
        told.try_iter().for_each(|now| view.take(now));
        let drawn = terminal.draw(|frame| view.draw(frame, SystemTime::now()));
        let drawn = drawn.map(|_| ());
        if !await_key() {
            return Ok(Leave::Killed(Signal::HUP.as_raw()));
        }
        drawn?;
        if event::poll(Duration::ZERO)?
            && let Event::Key(key) = event::read()?
            && let Some(leave) = leaves(key)
        {
            return Ok(leave);
        }
    }
}

/// Waits for a key for some time; false if the terminal is gone, from which crossterm would read without end.
fn await_key() -> bool {
    let input = std::io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let wait = Timespec::try_from(KEYS).ok();
    // A signal ends the wait.
    let _ = poll(&mut fds, wait.as_ref());
    !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

fn leaves(key: KeyEvent) -> Option<Leave> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Leave::Quit),
        KeyCode::Char('c') if control => Some(Leave::Quit),
        KeyCode::Char('z') if control => Some(Leave::Stop),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_quit_control_z_stops_and_nothing_else_does() {
        let leave = |code, modifiers| leaves(KeyEvent::new(code, modifiers));
        let plain = KeyModifiers::NONE;
        for (code, modifiers) in [
            (KeyCode::Char('q'), plain),
            (KeyCode::Esc, plain),
            (KeyCode::Char('c'), KeyModifiers::CONTROL),
        ] {
            assert_eq!(leave(code, modifiers), Some(Leave::Quit));
        }
        assert_eq!(
            leave(KeyCode::Char('z'), KeyModifiers::CONTROL),
            Some(Leave::Stop)
        );
        for code in [KeyCode::Char('c'), KeyCode::Char('z'), KeyCode::Enter] {
            assert_eq!(leave(code, plain), None);
        }
    }
}
