//! The other ranks on this host, whose segments pages are taken from.
//!
//! Data flow: the peers that the own segment names → [`Peers::of`] → [`Peer`], to copy from or to wait for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foreread_segment::{Fill, Segment};

use super::collective::lock;

/// How long a page is waited for that another rank is filling, if that rank fills nothing else meanwhile: half of what the rank's own
/// reads wait for a page that is being filled, so that what another rank that is gone has begun is still read in that time.
const PATIENCE: Duration = Duration::from_millis(5);
/// And if it does: four ranks with sixteen reads each that all go to one server, which takes 0.4 ms for a read, wait for 26 ms.
/// Twice as many ranks, and twice as slow.
const LONGEST: Duration = Duration::from_millis(100);

/// Another rank on this host.
pub(super) struct Peer {
    pub(super) segment: Segment,
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

    /// Wait for these parts of a fill, as long as it ends one fill after the other; whether it has them then.
    pub(super) fn wait_for(&self, fill: &Fill<'_>, parts: u16) -> bool {
        let begun = Instant::now();
        loop {
            let done = self.done();
            if self.segment.wait(&fill.key(), parts, PATIENCE) {
                return true;
            }
            if self.done() == done {
                self.vain.store(done, Ordering::Relaxed);
            }
            if begun.elapsed() > LONGEST || !self.is_waited_for(fill, parts) {
                return false;
            }
        }
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
                    vain: AtomicU64::new(u64::MAX),
                }))
            })
            .clone()
        });
        opened.collect()
    }
}
