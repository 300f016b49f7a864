//! `foreread daemon stop`: ends the daemon, and returns after it has saved its models.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use foreread_daemon::cli::Where;
use foreread_daemon::control::ask;
use foreread_daemon::control::wire::{SAVING, Said, Subject};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::asking::to_ask;
use crate::output::output;

/// Stops the daemon.
pub(super) fn stop(place: &Where) -> Result<ExitCode> {
    let socket = to_ask(place);
    // Opened before the daemon ends: its process id may be reused afterwards.
    let pid = ask(&socket, &Subject::Status)?.pid;
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number
        .with_context(|| format!("the daemon sent a process number that cannot be: {pid}"))?;
    let process = pidfd_open(number, PidfdFlags::empty())
        .with_context(|| format!("the daemon, process {pid}"))?;
    let answer = ask(&socket, &Subject::Stop)?;
    let patience = Timespec::try_from(SAVING)?;
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    if poll(&mut ended, Some(&patience))? == 0 {
        bail!(
            "the daemon, process {pid}, did not end within {} s",
            SAVING.as_secs()
        );
    }
    writeln!(output(), "the daemon, process {pid}, has ended")?;
    if let Said::Stopping { unsaved: Some(why) } = answer.said {
        bail!(
            "the models were not saved, and what the daemon learned since the last save is lost: {why}"
        );
    }
    Ok(ExitCode::SUCCESS)
}
