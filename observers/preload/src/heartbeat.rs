//! Checks whether the supervisor is alive.
//!
//! The supervisor counts its polls of the rings. If this count stands still for long while there is something to report, the supervisor is
//! gone, and the library detaches ([`process::detach`](crate::process::detach)).

use core::sync::atomic::{AtomicU64, Ordering};

use foreread_ring::{Mode, Shared};

use crate::sys::{self, Allowed};

/// Time for which a full ring is waited for while recording, in ns.
const WAIT: u64 = 20_000_000;

/// Time without a poll after which the supervisor counts as dead, in ns.
const DEAD_AFTER: u64 = 1_000_000_000;

/// Limit of the time between two reads that counts as silence, in ns.
const AT_A_TIME: u64 = 50_000_000;

/// The heartbeat at the last unsuccessful wait, and the time when that value was first seen.
static STALLED_BEAT: AtomicU64 = AtomicU64::new(u64::MAX);
static STALLED_SINCE: AtomicU64 = AtomicU64::new(0);

/// The heartbeat at the last check, the time of the check, and how long the heartbeat had been unchanged, in ns.
static BEAT: AtomicU64 = AtomicU64::new(u64::MAX);
static LOOKED: AtomicU64 = AtomicU64::new(0);
static SILENCE: AtomicU64 = AtomicU64::new(0);

/// The supervisor has not read a full ring for [`DEAD_AFTER`].
pub struct Dead;

/// The ring is full. While recording, waits a little for the supervisor to make room. Otherwise, or if waiting does not help, the event is
/// lost. True if it was published.
#[cold]
pub fn wait(area: &Shared, mut retry: impl FnMut() -> bool) -> Result<bool, Dead> {
    let beat = area.heartbeat();
    if STALLED_BEAT.load(Ordering::Relaxed) == beat {
        // No poll since the last unsuccessful wait: does not wait again.
        area.add_lost(1);
        let since = STALLED_SINCE.load(Ordering::Relaxed);
        let stalled = sys::clock(libc::CLOCK_MONOTONIC_COARSE).saturating_sub(since);
        return if stalled > DEAD_AFTER {
            Err(Dead)
        } else {
            Ok(false)
        };
    }
    if let (Mode::Record, Some(allowed)) = (area.mode(), Allowed::now()) {
        let until = sys::clock(libc::CLOCK_MONOTONIC) + WAIT;
        while sys::clock(libc::CLOCK_MONOTONIC) < until {
            sys::nap(allowed);
            if retry() {
                return Ok(true);
            }
        }
    }
    STALLED_SINCE.store(sys::clock(libc::CLOCK_MONOTONIC_COARSE), Ordering::Relaxed);
    STALLED_BEAT.store(area.heartbeat(), Ordering::Relaxed);
    area.add_lost(1);
    Ok(false)
}

/// True if the supervisor has been silent for long while reads continued: a process that was stopped was probably stopped together with it.
pub fn is_silent(area: &Shared) -> bool {
    let beat = area.heartbeat();
    let now = sys::clock(libc::CLOCK_MONOTONIC_COARSE);
    let since = now.saturating_sub(LOOKED.swap(now, Ordering::Relaxed));
    if BEAT.swap(beat, Ordering::Relaxed) != beat {
        SILENCE.store(0, Ordering::Relaxed);
        return false;
    }
    let silence = SILENCE.fetch_add(since.min(AT_A_TIME), Ordering::Relaxed);
    silence > DEAD_AFTER
}
