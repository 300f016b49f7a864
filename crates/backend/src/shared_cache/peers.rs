//! The other ranks on this host: parts that one of them has or is reading are left to it, and not read again.
//!
//! This code never waits for another rank. The rank's program searches all segments of its host, and waits for a page that is being filled
//! in one of them as long as a read of its own would take (`observers/pmpi/src/cache.c`). So a rank whose foreread has died or was stopped
//! costs only the pages that it has claimed.
//!
//! Data flow: the peers that the own segment names → [`Peers::of`] → [`leave`], before a claim, and [`settle`], after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foreread_segment::{Fill, Key, Segment};

use super::collective::lock;

/// A process, its descriptor and its segment's token.
type Name = (u32, u32, u64);

/// Segments by their names; `None` for a name without a segment.
#[derive(Default)]
pub(super) struct Peers(Mutex<HashMap<Name, Option<Arc<Segment>>>>);

impl Peers {
    /// The segments that this one names and that can be opened.
    pub(super) fn of(&self, segment: &Segment) -> Vec<Arc<Segment>> {
        let named = segment.peers();
        let mut peers = lock(&self.0);
        let opened = named.into_iter().filter_map(|name| {
            let (pid, fd, token) = name;
            let open = || Segment::of_peer(pid, fd, token).map(Arc::new);
            peers.entry(name).or_insert_with(open).clone()
        });
        opened.collect()
    }
}

/// Leaves the `wanted` parts of a page that peers have or are reading to them. Returns the remaining ones, and all parts that no peer has.
pub(super) fn leave(
    own: &Segment,
    peers: &[Arc<Segment>],
    (key, wanted): (&Key, u16),
) -> (u16, u16) {
    let state = own.opened(key.dev, key.ino).map(|file| file.version);
    let there = own.resident(key);
    let (mut remaining, mut on_hand) = (wanted, 0);
    for peer in peers {
        let theirs = peer.on_hand(key, state);
        on_hand |= theirs;
        let left = remaining & theirs & !there;
        if left != 0 {
            own.leave_to(peer, key, left);
            remaining &= !left;
        }
    }
    (remaining, !on_hand)
}

/// After a claim of a page: leaves to peers the parts that they have claimed at the same time and read first. True if any wanted part
/// remains to be read; no other rank reads it from now on.
pub(super) fn settle(fill: &mut Fill<'_>, peers: &[Arc<Segment>]) -> bool {
    peers.iter().for_each(|peer| fill.leave_to(peer));
    fill.begin_reading();
    fill.wanted() != 0
}
