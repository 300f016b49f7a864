//! `foreread daemon stop`: returns when the daemon has saved what it learned and has ended.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use foreread_daemon::control::ask;
use foreread_daemon::control::wire::Asked;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::to_ask;
use crate::args::daemon::Where;

/// How long the daemon may take to save what it has learned: up to 64 MiB, on a disk that may be slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Stops the daemon.
pub(super) fn stop(place: &Where) -> Result<ExitCode> {
    let answer = ask(&to_ask(place), &Asked::Stop)?;
    let pid = i32::try_from(answer.pid).ok().and_then(Pid::from_raw);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let ended = pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if ended {
            println!("the daemon, process {}, has ended", answer.pid);
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK);
    }
    bail!(
        "the daemon, process {}, is to end, and has not within {} s",
        answer.pid,
        PATIENCE.as_secs()
    )
}
