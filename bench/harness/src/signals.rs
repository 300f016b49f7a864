//! Ctrl-C: the signal is passed on to the timed process, and the harness ends by unwinding, so that every guard (read-ahead,
//! mounts, scratch files) restores what it changed.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The timed process; 0 between runs.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Starts the thread that waits for signals.
pub fn install() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("installing signal handlers")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            if let Some(child) = Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
                // The child may have ended in between, and then there is no process to signal.
                kill_process(child, Signal::TERM).ok();
            }
        }
    });
    Ok(())
}

/// Fails after a signal has arrived.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        bail!("interrupted");
    }
    Ok(())
}

/// Registers the child that a signal is passed on to, until the guard is dropped.
pub fn watch_child(pid: u32) -> ChildGuard {
    CHILD.store(pid.cast_signed(), Ordering::SeqCst);
    ChildGuard
}

/// Forgets the child on drop.
pub struct ChildGuard;

impl Drop for ChildGuard {
    fn drop(&mut self) {
        CHILD.store(0, Ordering::SeqCst);
    }
}
