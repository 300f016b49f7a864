//! Looking up, now and then, from a program that is left to itself because its reads hardly waited: it
//! may come to others that do.
//!
//! Nothing is observed meanwhile. What tells is the kernel's count of bytes fetched on the program's behalf.

use std::time::Duration;

use foreread_sys::process::IoCounts;

/// The first pause between two looks; twice as long each time the program is left to itself again, so
/// that one that streams fast from its device is bothered ever more seldom.
const FIRST: Duration = Duration::from_millis(250);
/// Of a program that streams: it fetches all the time, and to find its place in a long plan takes 10 ms of processor.
const STREAMING: Duration = Duration::from_secs(1);
/// Bytes fetched by then that tell it does.
const STREAMED: u64 = 8 << 20;
const LONGEST: Duration = Duration::from_secs(30);

/// Bytes from the device between two looks that are worth looking after.
const WORTH: u64 = 16 * 4096;

/// A rest, and those before it.
#[derive(Default)]
pub(super) struct Rest {
    counts: Option<IoCounts>,
    fetched: u64,
    pause: Duration,
}

impl Rest {
    /// The program, of which process `pid` was the last to read, is left to itself; for good if none has
    /// read yet, because all it will read was found in memory.
    pub(super) fn begin(&mut self, pid: Option<u32>) {
        self.counts = pid.and_then(|pid| IoCounts::open(pid).ok());
        self.fetched = self.look().unwrap_or(0);
        let shortest = if self.fetched < STREAMED {
            FIRST
        } else {
            STREAMING
        };
        self.pause = (self.pause * 2).clamp(shortest, LONGEST);
    }

    /// How long to wait until the next look; `None` where there is nothing to look at.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.counts.as_ref().map(|_| self.pause)
    }

    /// Whether the program has fetched from its device since the last look. A process that is gone is looked at
    /// no more.
    pub(super) fn is_over(&mut self) -> bool {
        let Some(fetched) = self.look() else {
            self.counts = None;
            return false;
        };
        let since = fetched.saturating_sub(std::mem::replace(&mut self.fetched, fetched));
        if since < WORTH {
            return false;
        }
        self.counts = None;
        true
    }

    fn look(&self) -> Option<u64> {
        Some(self.counts.as_ref()?.read().ok()?.read_bytes)
    }
}
