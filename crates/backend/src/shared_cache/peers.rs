//! The other ranks on this host, whose segments pages are taken from.
//!
//! Data flow: the peers that the own segment names → [`Peers::of`] → [`Peer`], to copy from or to wait for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foreread_segment::{Fill, Segment};

use super::collective::lock;

/// A fill of another rank is waited for in steps of this length. After a step without a finished fill, the rank's process is looked for.
/// The program's own reads wait twice as long for a page: if the other process has died, this rank still reads the page in time.
const PATIENCE: Duration = Duration::from_millis(5);
/// The longest wait for one fill where reads are fast. Four ranks with sixteen reads each at one server of 0.4 ms a read wait for 26 ms:
/// this is enough for twice as many ranks and reads twice as slow.
const LONGEST: Duration = Duration::from_millis(100);
/// Where reads are slow, the longest wait is this many times the latest slow read. Measured together with [`FADES`] only: first runs
/// of four ranks on the model `striped-2008` took 1.4 times as long as plain in place of 5.
const TIMES: u32 = 4;
/// With each faster read the latest slow read counts one part in this many less.
const FADES: u64 = 8;

/// The duration of the latest slow read, in ns. A page that another rank is reading takes about as long. A second read of the same page
/// here would slow the file system down further: 16 ranks that waited for 5 ms, at a server that takes 6 ms for 64 KiB, read each page 7
/// times.
#[derive(Debug, Default)]
pub(super) struct ReadPace(AtomicU64);

impl ReadPace {
    /// A read took so long.
    pub(super) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let faded = |before: u64| Some(time.max(before - before / FADES));
        // The function never declines.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, faded);
    }

    /// How long another rank's fill is waited for at most.
    pub(super) fn longest(&self) -> Duration {
        LONGEST.max(TIMES * Duration::from_nanos(self.0.load(Ordering::Relaxed)))
    }
}

/// Another rank on this host.
pub(super) struct Peer {
    pub(super) segment: Segment,
    name: Name,
    /// How much it had done when it was waited for in vain: until it does more, it may be gone.
    vain: AtomicU64,
}

impl Peer {
    /// Fills that it has ended.
    fn done(&self) -> u64 {
        let counts = self.segment.counts();
        counts.filled + counts.lost
    }

    /// Whether these parts of a fill are on their way to it, and it is there.
    pub(super) fn is_waited_for(&self, fill: &Fill<'_>, parts: u16) -> bool {
        fill.comes_after(&self.segment, parts) && self.vain.load(Ordering::Relaxed) != self.done()
    }

    /// Waits for these parts of a fill while the peer's process lives, for `longest` at most. True if the peer has them.
    pub(super) fn wait_for(&self, fill: &Fill<'_>, parts: u16, longest: Duration) -> bool {
        let begun = Instant::now();
        let at_first = self.done();
        loop {
            let done = self.done();
            if self.segment.wait(&fill.key(), parts, PATIENCE) {
                return true;
            }
            let is_over = begun.elapsed() > longest;
            if self.done() == done && (!self.is_there() || is_over && done == at_first) {
                self.vain.store(done, Ordering::Relaxed);
            }
            if is_over || !self.is_waited_for(fill, parts) {
                return false;
            }
        }
    }

    /// Whether its process still has the segment.
    fn is_there(&self) -> bool {
        let (pid, fd, token) = self.name;
        Segment::of_peer(pid, fd, token).is_some()
    }
}

/// A process, its descriptor and its segment's token.
type Name = (u32, u32, u64);

/// By their names; `None` for what is none.
#[derive(Default)]
pub(super) struct Peers(Mutex<HashMap<Name, Option<Arc<Peer>>>>);

impl Peers {
    /// Those that this segment names and that can be opened.
    pub(super) fn of(&self, segment: &Segment) -> Vec<Arc<Peer>> {
        let named = segment.peers();
        let mut peers = lock(&self.0);
        let opened = named.into_iter().filter_map(|(pid, fd, token)| {
            let peer = peers.entry((pid, fd, token));
            peer.or_insert_with(|| {
                Some(Arc::new(Peer {
                    segment: Segment::of_peer(pid, fd, token)?,
                    name: (pid, fd, token),
                    vain: AtomicU64::new(u64::MAX),
                }))
            })
            .clone()
        });
        opened.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_file_system_and_comes_back_when_it_is_quick_again() {
        let pace = ReadPace::default();
        assert_eq!(pace.longest(), LONGEST);
        pace.took(Duration::from_millis(40));
        assert_eq!(pace.longest(), Duration::from_millis(160));
        pace.took(Duration::from_millis(1));
        assert_eq!(pace.longest(), Duration::from_millis(140));
        for _ in 0..100 {
            pace.took(Duration::from_millis(1));
        }
        assert_eq!(pace.longest(), LONGEST);
    }
}
