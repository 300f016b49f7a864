//! One bench at a time. Each drops the page cache and sets the disk's read-ahead: of two at once, the later one would restore the
//! setting of the other.

use std::env;
use std::fs::File;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::signals;

/// Interval between checks for an interrupt.
const TICK: Duration = Duration::from_millis(100);

/// Waits until no other bench runs on this machine. None starts as long as the file is open.
pub fn wait() -> Result<File> {
    let path = env::temp_dir().join("foreread-bench.lock");
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut is_told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => {}
            Err(why) => return Err(why).with_context(|| format!("locking {}", path.display())),
        }
        if !is_told {
            eprintln!("waiting for another foreread-bench to end");
            is_told = true;
        }
        signals::check()?;
        thread::sleep(TICK);
    }
}
