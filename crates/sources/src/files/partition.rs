//! A partition: a file and the patterns that begin with it, in a fixed number of nodes (section 2.2).
//!
//! If a node is needed and there is no room, all counts are halved and nodes with a count of zero are cleared together with all nodes
//! below. If that frees none, the event is ignored.
//!
//! Each node has a unique stamp: a place that is remembered together with its stamp can be checked for having been cleared since.

use thiserror::Error;

use super::Symbol;

/// Nodes of a partition, at most.
pub(super) const MOST_NODES: usize = 4096;
/// No node.
const NONE: u16 = u16::MAX;
/// The node of the pattern that is the partition's file alone.
pub(super) const ROOT: u16 = 0;
/// Bytes of a node on disk: symbol, count, parent.
const KEPT: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    symbol: Symbol,
    count: u32,
    stamp: u32,
    parent: u16,
    /// The first child: the latest one seen.
    child: u16,
    /// The next child of the same parent; of a free node, the next free one.
    next: u16,
}

/// The patterns that begin with one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    nodes: Vec<Node>,
    free: u16,
    live: u16,
}

/// Why bytes are no partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The length is no number of nodes from 1 to the limit.
    #[error("{0} bytes are no partition")]
    Length(usize),
    /// A node is before its parent, occurs twice, or has a count of zero.
    #[error("node {0} of a partition cannot be there")]
    Node(usize),
}

impl Partition {
    pub(super) fn new(symbol: Symbol, stamp: u32) -> Self {
        let root = Node {
            symbol,
            count: 0,
            stamp,
            parent: NONE,
            child: NONE,
            next: NONE,
        };
        Self {
            nodes: vec![root],
            free: NONE,
            live: 1,
        }
    }

    fn at(&self, node: u16) -> &Node {
        &self.nodes[usize::from(node)]
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.live.into()
    }

    /// A partition has its root at least.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.capacity() * size_of::<Node>()
    }

    pub(super) fn symbol(&self, node: u16) -> Symbol {
        self.at(node).symbol
    }

    pub(super) fn count(&self, node: u16) -> u32 {
        self.at(node).count
    }

    pub(super) fn stamp(&self, node: u16) -> u32 {
        self.at(node).stamp
    }

    /// True if this node still has the stamp.
    pub(super) fn holds(&self, node: u16, stamp: u32) -> bool {
        let there = self.nodes.get(usize::from(node));
        there.is_some_and(|there| there.stamp == stamp && (node == ROOT || there.parent != NONE))
    }

    /// The children of a node, the last seen first.
    pub(super) fn children(&self, node: u16) -> impl Iterator<Item = u16> + '_ {
        let some = |at: u16| (at != NONE).then_some(at);
        std::iter::successors(some(self.at(node).child), move |at| some(self.at(*at).next))
    }

    pub(super) fn child(&self, node: u16, symbol: Symbol) -> Option<u16> {
        self.children(node).find(|at| self.symbol(*at) == symbol)
    }

    /// The most frequent child; of equal ones, the latest.
    pub(super) fn best(&self, node: u16) -> Option<u16> {
        let mut best: Option<u16> = None;
        for child in self.children(node) {
            if best.is_none_or(|best| self.count(child) > self.count(best)) {
                best = Some(child);
            }
        }
        best
    }

    /// The node was seen once more, and is the last seen of its siblings.
    pub(super) fn visit(&mut self, node: u16) {
        let place = usize::from(node);
        self.nodes[place].count = self.nodes[place].count.saturating_add(1);
        let parent = self.nodes[place].parent;
        if node != ROOT && self.at(parent).child != node {
            self.unlink(node);
            self.link(parent, node);
        }
    }

    /// A new child with a count of one; `None` if there is no room, or if making room cleared the parent.
    pub(super) fn add(
        &mut self,
        parent: u16,
        symbol: Symbol,
        stamp: u32,
        size: usize,
    ) -> Option<u16> {
        if usize::from(self.live) >= size.min(MOST_NODES) {
            let known = self.stamp(parent);
            self.halve();
            if usize::from(self.live) >= size || !self.holds(parent, known) {
                return None;
            }
        }
        let node = Node {
            symbol,
            count: 1,
            stamp,
            parent,
            child: NONE,
            next: NONE,
        };
        let at = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u16
        } else {
            let at = self.free;
            self.free = self.at(at).next;
            self.nodes[usize::from(at)] = node;
            at
        };
        self.live += 1;
        self.link(parent, at);
        Some(at)
    }

    fn link(&mut self, parent: u16, node: u16) {
        self.nodes[usize::from(node)].next = self.at(parent).child;
        self.nodes[usize::from(parent)].child = node;
    }

    fn unlink(&mut self, node: u16) {
        let (parent, next) = (self.at(node).parent, self.at(node).next);
        if self.at(parent).child == node {
            self.nodes[usize::from(parent)].child = next;
            return;
        }
        let before = self.children(parent).find(|at| self.at(*at).next == node);
        if let Some(before) = before {
            self.nodes[usize::from(before)].next = next;
        }
    }

    /// Halves all counts and clears nodes whose count becomes 0. The root stays.
    fn halve(&mut self) {
        for node in &mut self.nodes {
            node.count /= 2;
        }
        let root = &mut self.nodes[usize::from(ROOT)];
        root.count = root.count.max(1);
        let mut parents = vec![ROOT];
        while let Some(parent) = parents.pop() {
            let children: Vec<u16> = self.children(parent).collect();
            let mut last = NONE;
            self.nodes[usize::from(parent)].child = NONE;
            for child in children {
                if self.count(child) == 0 {
                    self.clear(child);
                    continue;
                }
                self.nodes[usize::from(child)].next = NONE;
                match last {
                    NONE => self.nodes[usize::from(parent)].child = child,
                    last => self.nodes[usize::from(last)].next = child,
                }
                last = child;
                parents.push(child);
            }
        }
    }

    /// Frees a node and all below.
    fn clear(&mut self, node: u16) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            nodes.extend(self.children(node));
            let free = self.free;
            let place = &mut self.nodes[usize::from(node)];
            place.parent = NONE;
            place.child = NONE;
            place.next = free;
            self.free = node;
            self.live -= 1;
        }
    }

    /// The partition as bytes: each node after its parent, siblings the last seen first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() * KEPT);
        let mut places = vec![(ROOT, NONE)];
        let mut at = 0;
        while let Some((node, parent)) = places.get(at).copied() {
            bytes.extend(self.symbol(node).0.to_le_bytes());
            bytes.extend(self.count(node).to_le_bytes());
            bytes.extend(parent.to_le_bytes());
            places.extend(self.children(node).map(|child| (child, at as u16)));
            at += 1;
        }
        bytes
    }

    /// Decodes a partition from untrusted bytes. `stamp` gives a stamp a node.
    pub fn decode(bytes: &[u8], mut stamp: impl FnMut() -> u32) -> Result<Self, DecodeError> {
        let (kept, rest) = bytes.as_chunks::<KEPT>();
        if kept.is_empty() || kept.len() > MOST_NODES || !rest.is_empty() {
            return Err(DecodeError::Length(bytes.len()));
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(kept.len());
        for (place, [a, b, c, d, e, f, g, h, i, j]) in kept.iter().enumerate() {
            let node = Node {
                symbol: Symbol(u32::from_le_bytes([*a, *b, *c, *d])),
                count: u32::from_le_bytes([*e, *f, *g, *h]),
                stamp: stamp(),
                parent: u16::from_le_bytes([*i, *j]),
                child: NONE,
                next: NONE,
            };
            let fits = match nodes.get(usize::from(node.parent)) {
                Some(_) => node.count > 0,
                None => place == 0 && node.parent == NONE,
            };
            if !fits {
                return Err(DecodeError::Node(place));
            }
            nodes.push(node);
        }
        let mut partition = Self {
            free: NONE,
            live: nodes.len() as u16,
            nodes,
        };
        for place in (1..partition.nodes.len()).rev() {
            let parent = partition.nodes[place].parent;
            let symbol = partition.nodes[place].symbol;
            if partition.child(parent, symbol).is_some() {
                return Err(DecodeError::Node(place));
            }
            partition.link(parent, place as u16);
        }
        Ok(partition)
    }
}
