//! Extended partitioned context modeling (section 2.3, Figure 4): predicts the sequence that is about to occur.
//!
//! Partitions are deep (`order` is 75 to 85 % of their size) and grow by one node for each instance of a pattern, as
//! Lempel-Ziv coding builds its contexts. From the longest pattern that the last events are an instance of and that says
//! something, the child seen most often is predicted, then that one's, as long as the likelihood stays at or above the
//! threshold. With a threshold above 0.5 each level has one such child at most.
//!
//! When a partition grows by one node per instance, the instance that created a node says nothing about its successors. In the paper's
//! counts each node of an unvarying sequence has one less than the node before, and after three instances the second file ahead has a
//! likelihood of 1/3. A model that looks ahead ([`Epcm::looking_ahead`]) computes the likelihood of a sequence as the product of its steps,
//! and that of a step as the child's count divided by the number of instances that could have reached a child.
//!
//! With partition jumping (section 6) the sequence continues where a partition ends: its last `jump` events are looked up in the partition
//! that begins with the first of them. A model that looks ahead continues by trails ([`Trails`]) where no partition has a successor.

use super::partition::{Partition, ROOT};
use super::partitions::{Followed, Growth, NoPager, Pager, Partitions, Shape};
use super::trails::{self, Trails};
use super::{Context, LONGEST, Model, Prediction, Symbol};

/// The model.
pub struct Epcm {
    partitions: Partitions,
    jump: usize,
    /// Present in a model that looks ahead.
    trails: Option<Trails>,
}

impl Epcm {
    /// An empty model that jumps by this many events; 0 means no jumps.
    pub fn new(shape: Shape, jump: usize) -> Self {
        Self::with_pager(shape, jump, Box::new(NoPager))
    }

    /// A model with the pager's partitions.
    pub fn with_pager(shape: Shape, jump: usize, pager: Box<dyn Pager>) -> Self {
        Self {
            partitions: Partitions::new(shape, Growth::OneNode, jump.max(trails::MEMORY), pager),
            jump,
            trails: None,
        }
    }

    /// Leaves the instance that created a node out of the likelihood of its successors. In a walk over 5,500 files that was seen three
    /// times, 16 files are predicted in the median in place of one (docs/models.md). Preferring a pattern that predicts eight files to a
    /// longer one that predicts one led no further, and its first file was wrong two to eight times as often.
    #[must_use]
    pub fn looking_ahead(self) -> Self {
        let trails = Trails::beside(self.partitions.shape.partitions);
        self.looking_ahead_by(trails)
    }

    /// The same, with trails that are known already.
    #[must_use]
    pub fn looking_ahead_by(mut self, trails: Trails) -> Self {
        self.trails = Some(trails);
        self
    }

    /// The order for partitions of this many nodes: 80 % of them, in the middle of the paper's range.
    pub const fn usual_order(nodes: usize) -> usize {
        let order = nodes * 4 / 5;
        if order < 2 { 2 } else { order }
    }

    /// The shape for partitions of this size, with the usual order.
    pub fn shape(size: usize, partitions: usize, contexts: usize) -> Shape {
        Shape {
            size,
            order: Self::usual_order(size),
            partitions,
            contexts,
        }
    }

    /// Predicts from a node whose pattern was seen `before` times, with `odds` that the sequence reaches it. Returns the odds of the last
    /// prediction, and whether the partition ends there.
    fn follow(
        &self,
        (partition, mut node): (&Partition, u16),
        (odds, before): (f64, f64),
        threshold: f64,
        out: &mut Vec<Prediction>,
    ) -> (f64, bool) {
        let (mut reached, mut seen) = (odds, before);
        while let Some(child) = partition.best(node) {
            let count = f64::from(partition.count(child));
            let likelihood = match self.trails {
                Some(_) => reached * (count / (seen - 1.0).max(1.0)).min(1.0),
                None => (odds * count / before).min(reached),
            };
            if likelihood < threshold || out.len() >= LONGEST {
                return (reached, false);
            }
            out.push(Prediction {
                symbol: partition.symbol(child),
                likelihood,
                ahead: out.len() as u32 + 1,
            });
            (reached, seen) = (likelihood, count);
            node = child;
        }
        (reached, true)
    }

    /// The continuation of the sequence: the longest of its ends, of at most `jump` events, with which a partition begins.
    fn landing(&self, followed: &Followed, out: &[Prediction]) -> Option<(&Partition, u16)> {
        let all = followed.recent.len() + out.len();
        let event = |at| event(followed, out, at);
        (1..=self.jump.min(all)).rev().find_map(|length| {
            let partition = self.partitions.partition(event(all - length))?;
            let mut node = ROOT;
            for at in all - length + 1..all {
                node = partition.child(node, event(at))?;
            }
            partition.best(node).map(|_| (partition, node))
        })
    }

    /// Goes on as the sequence did the last time, from `odds` that it comes so far.
    fn go_on(&self, followed: &Followed, mut odds: f64, threshold: f64, out: &mut Vec<Prediction>) {
        let Some(trails) = &self.trails else {
            return;
        };
        while out.len() < LONGEST {
            let count = followed.recent.len() + out.len();
            let Some((symbol, likelihood)) = trails.next(count, |at| event(followed, out, at))
            else {
                return;
            };
            odds *= likelihood;
            if odds < threshold {
                return;
            }
            out.push(Prediction {
                symbol,
                likelihood: odds,
                ahead: out.len() as u32 + 1,
            });
        }
    }

    /// The partition of a file, if it is in memory.
    pub fn partition(&self, symbol: Symbol) -> Option<&Partition> {
        self.partitions.partition(symbol)
    }

    /// Number of occurrences of a pattern.
    pub fn count(&self, pattern: &[Symbol]) -> u32 {
        self.partitions.count_of(pattern)
    }
}

/// The event of this number, of the last ones and those predicted after them.
fn event(followed: &Followed, out: &[Prediction], at: usize) -> Symbol {
    match at.checked_sub(followed.recent.len()) {
        None => followed.recent[at],
        Some(at) => out[at].symbol,
    }
}

impl Model for Epcm {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        if let Some(trails) = self.trails.as_ref().filter(|_| learn)
            && let Some(followed) = self.partitions.followed(context)
        {
            trails.see(&followed.recent, symbol);
        }
        self.partitions.see(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        out.clear();
        let Some(followed) = self.partitions.followed(context) else {
            return;
        };
        let (mut odds, mut ends) = (1.0, false);
        for place in &followed.places {
            let Some((partition, node)) = self.partitions.at(place) else {
                continue;
            };
            let before = followed.seen_before(partition.count(node));
            (odds, ends) = self.follow((partition, node), (1.0, before), threshold, out);
            if !out.is_empty() {
                break;
            }
        }
        while ends && !out.is_empty() {
            let Some((partition, node)) = self.landing(followed, out) else {
                break;
            };
            let before = f64::from(partition.count(node).max(1));
            let from = out.len();
            (odds, ends) = self.follow((partition, node), (odds, before), threshold, out);
            if out.len() == from {
                break;
            }
        }
        self.go_on(followed, odds, threshold, out);
    }

    fn end(&mut self, context: Context) {
        self.partitions.end(context);
    }

    fn end_all(&mut self) {
        self.partitions.end_all();
    }

    fn bytes(&self) -> usize {
        self.partitions.bytes() + self.trails.as_ref().map_or(0, Trails::bytes)
    }

    fn flush(&mut self) {
        self.partitions.flush();
    }
}
