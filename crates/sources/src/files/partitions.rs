//! The partitions of all files, and where each context is in them.
//!
//! A context is at several nodes at once: one in each partition that begins with one of its latest events, while the following events form
//! a known pattern. [`Partitions::see`] moves all of them on; [`Growth`] defines how a partition grows at a new pattern.
//!
//! Invariant: partitions, contexts and places of a context are bounded. A partition that leaves memory goes to the
//! [`Pager`], and comes back from it when its file is seen again; places in it are lost.

use std::collections::VecDeque;

use super::contexts::Bounded;
use super::partition::{Partition, ROOT};
use super::{Context, Symbol};

/// Keeps the partitions that are not in memory.
pub trait Pager: Send {
    /// The stored partition of a file, if there is one. `stamp` provides each node's stamp, as in [`Partition::decode`].
    fn page_in(&mut self, symbol: Symbol, stamp: &mut dyn FnMut() -> u32) -> Option<Partition>;

    /// A partition that has changed since it came.
    fn page_out(&mut self, symbol: Symbol, partition: &Partition);
}

/// A pager that stores nothing: partitions that leave memory are forgotten.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPager;

impl Pager for NoPager {
    fn page_in(&mut self, _: Symbol, _: &mut dyn FnMut() -> u32) -> Option<Partition> {
        None
    }

    fn page_out(&mut self, _: Symbol, _: &Partition) {}
}

/// The limits of a partitioned model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes of a partition, including the file's own.
    pub size: usize,
    /// Events of a pattern: the depth of a partition.
    pub order: usize,
    /// Files that have a partition in memory.
    pub partitions: usize,
    /// Contexts followed at the same time.
    pub contexts: usize,
}

/// Growth of a partition at a new pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// By all that follows, up to the order.
    Whole,
    /// By one node for each instance of a pattern.
    OneNode,
}

/// A node that a context is at.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeAt {
    pub(super) partition: Symbol,
    node: u16,
    stamp: u32,
    depth: u16,
}

#[derive(Debug)]
struct Kept {
    partition: Partition,
    changed: bool,
}

/// The last events of a context, and the nodes that they lead to.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    /// The longest pattern first.
    pub(super) places: VecDeque<NodeAt>,
    /// The last events, the oldest first: as many as a jump may take.
    pub(super) recent: VecDeque<Symbol>,
    /// True if the last event was counted.
    counted: bool,
}

impl Followed {
    /// Number of visits to a node with this count before the present one, which has no successor yet.
    pub(super) fn seen_before(&self, count: u32) -> f64 {
        f64::from(count.saturating_sub(self.counted.into()).max(1))
    }
}

pub(super) struct Partitions {
    pub(super) shape: Shape,
    growth: Growth,
    /// Events that are remembered of a context.
    memory: usize,
    kept: Bounded<Symbol, Kept>,
    contexts: Bounded<Context, Followed>,
    pager: Box<dyn Pager>,
    stamps: u32,
}

impl Partitions {
    pub(super) fn new(shape: Shape, growth: Growth, memory: usize, pager: Box<dyn Pager>) -> Self {
        Self {
            shape,
            growth,
            memory,
            kept: Bounded::new(shape.partitions),
            contexts: Bounded::new(shape.contexts),
            pager,
            stamps: 0,
        }
    }

    pub(super) fn followed(&self, context: Context) -> Option<&Followed> {
        self.contexts.get(context)
    }

    pub(super) fn partition(&self, symbol: Symbol) -> Option<&Partition> {
        self.kept.get(symbol).map(|kept| &kept.partition)
    }

    /// Number of occurrences of a pattern, if its partition is in memory.
    pub(super) fn count_of(&self, pattern: &[Symbol]) -> u32 {
        let Some((first, rest)) = pattern.split_first() else {
            return 0;
        };
        let Some(partition) = self.partition(*first) else {
            return 0;
        };
        let node = rest
            .iter()
            .try_fold(ROOT, |node, symbol| partition.child(node, *symbol));
        node.map_or(0, |node| partition.count(node))
    }

    /// The partition and node of a place, if they are still there.
    pub(super) fn at(&self, place: &NodeAt) -> Option<(&Partition, u16)> {
        let partition = self.partition(place.partition)?;
        let there = partition.holds(place.node, place.stamp);
        there.then_some((partition, place.node))
    }

    pub(super) fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        let mut followed = self.contexts.remove(context).unwrap_or_default();
        followed
            .places
            .retain_mut(|place| self.advance(place, symbol, learn));
        self.begin(symbol, learn, &mut followed.places);
        followed.counted = learn;
        followed.recent.push_back(symbol);
        if followed.recent.len() > self.memory {
            followed.recent.pop_front();
        }
        self.contexts.insert(context, followed, |_, _| {});
    }

    /// Moves a place on by an event; `false` if the pattern ends here.
    fn advance(&mut self, place: &mut NodeAt, symbol: Symbol, learn: bool) -> bool {
        if usize::from(place.depth) >= self.shape.order {
            return false;
        }
        let Some(kept) = self.kept.used(place.partition) else {
            return false;
        };
        let partition = &mut kept.partition;
        if !partition.holds(place.node, place.stamp) {
            return false;
        }
        kept.changed |= learn;
        place.depth += 1;
        if let Some(child) = partition.child(place.node, symbol) {
            if learn {
                partition.visit(child);
            }
            place.node = child;
            place.stamp = partition.stamp(child);
            return true;
        }
        if !learn {
            return false;
        }
        let stamp = next(&mut self.stamps);
        let Some(child) = partition.add(place.node, symbol, stamp, self.shape.size) else {
            return false;
        };
        place.node = child;
        place.stamp = stamp;
        self.growth == Growth::Whole
    }

    /// A new pattern begins with this event.
    fn begin(&mut self, symbol: Symbol, learn: bool, places: &mut VecDeque<NodeAt>) {
        let (pager, stamps, kept) = (&mut self.pager, &mut self.stamps, &mut self.kept);
        let mut known = true;
        if kept.used(symbol).is_none() {
            let mut stamp = || next(stamps);
            let paged = pager.page_in(symbol, &mut stamp);
            known = paged.is_some();
            if !known && !learn {
                return;
            }
            let partition = paged.unwrap_or_else(|| Partition::new(symbol, stamp()));
            let changed = false;
            let gone = |symbol, kept: Kept| {
                if kept.changed {
                    pager.page_out(symbol, &kept.partition);
                }
            };
            kept.insert(symbol, Kept { partition, changed }, gone);
        }
        let Some(kept) = kept.used(symbol) else {
            return;
        };
        if learn {
            kept.changed = true;
            kept.partition.visit(ROOT);
        }
        if known || self.growth == Growth::Whole {
            places.push_back(NodeAt {
                partition: symbol,
                node: ROOT,
                stamp: kept.partition.stamp(ROOT),
                depth: 1,
            });
        }
    }

    pub(super) fn end(&mut self, context: Context) {
        self.contexts.remove(context);
    }

    pub(super) fn end_all(&mut self) {
        self.contexts.clear();
    }

    pub(super) fn flush(&mut self) {
        let mut changed = Vec::new();
        for (symbol, kept) in self.kept.iter() {
            if kept.changed {
                self.pager.page_out(symbol, &kept.partition);
                changed.push(symbol);
            }
        }
        for symbol in changed {
            if let Some(kept) = self.kept.used(symbol) {
                kept.changed = false;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let partitions = self.kept.iter().map(|(_, kept)| kept.partition.bytes());
        let contexts = self.contexts.iter().map(|(_, followed)| {
            followed.places.capacity() * size_of::<NodeAt>()
                + followed.recent.capacity() * size_of::<Symbol>()
        });
        partitions.sum::<usize>() + contexts.sum::<usize>()
    }
}

fn next(stamps: &mut u32) -> u32 {
    *stamps = stamps.wrapping_add(1);
    *stamps
}
