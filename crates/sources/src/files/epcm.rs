//! Extended partitioned context modeling (section 2.3, Figure 4): predicts the sequence that is about to occur.
//!
//! Partitions are deep (`order` is 75 to 85 % of their size) and grow by one node for each instance of a pattern, as
//! Lempel-Ziv coding builds its contexts. From the longest pattern that the last events are an instance of and that says
//! something, the child seen most often is predicted, then that one's, as long as the likelihood stays at or above the
//! threshold. With a threshold above 0.5 each level has one such child at most.
//!
//! With a growth of one node an instance, the instance that made a node says nothing of what follows it: in the paper's counts each
//! node of a sequence that never varies has one less than the node before, and after three instances the second file ahead has a
//! likelihood of 1/3. Who looks ahead ([`Epcm::looking_ahead`]) has the likelihood of a sequence as the product of its steps, and that of a
//! step as the child's count by the number of instances that could have come to a child.
//!
//! With partition jumping (section 6) the sequence goes on where a partition ends: the last `jump` events of it are
//! looked up in the partition that begins with the first of them.

use super::partition::{Partition, ROOT};
use super::partitions::{Followed, Growth, NoPager, Pager, Partitions, Shape};
use super::{Context, Model, Prediction, Symbol};

/// Files predicted ahead, at most. Patterns that lead back to their beginning are predicted without end otherwise. On three
/// builds half of the leads are of up to 13 events, nine tenths of up to 50; and with 256 an event took 60 µs where each
/// sequence went on to the limit.
const LONGEST: usize = 64;

/// The model.
pub struct Epcm {
    partitions: Partitions,
    jump: usize,
    looks_ahead: bool,
}

impl Epcm {
    /// A model that knows nothing, and jumps by so many events; 0 stands for no jumps.
    pub fn new(shape: Shape, jump: usize) -> Self {
        Self::with_pager(shape, jump, Box::new(NoPager))
    }

    /// A model that knows what the pager has.
    pub fn with_pager(shape: Shape, jump: usize, pager: Box<dyn Pager>) -> Self {
        Self {
            partitions: Partitions::new(shape, Growth::OneNode, jump, pager),
            jump,
            looks_ahead: false,
        }
    }

    /// Leave the instance that made a node out of the likelihood of what follows it: of a walk over 5,500 files that was seen three
    /// times, 16 files are predicted in the median in place of one (docs/models.md). To ask for the pattern that says eight files, and not for
    /// the longest that says one, led no further then, and its first file was wrong two to eight times as often.
    #[must_use]
    pub fn looking_ahead(mut self) -> Self {
        self.looks_ahead = true;
        self
    }

    /// The shape for partitions of this size: the order is 80 % of it, in the middle of the paper's range.
    pub fn shape(size: usize, partitions: usize, contexts: usize) -> Shape {
        Shape {
            size,
            order: (size * 4 / 5).max(2),
            partitions,
            contexts,
        }
    }

    /// Predicts from a node whose pattern was seen `before` times, at `odds` that the sequence comes to it.
    fn follow(
        &self,
        (partition, mut node): (&Partition, u16),
        (odds, before): (f64, f64),
        threshold: f64,
        out: &mut Vec<Prediction>,
    ) -> Option<f64> {
        let (mut reached, mut seen) = (odds, before);
        while let Some(child) = partition.best(node) {
            let count = f64::from(partition.count(child));
            let likelihood = match self.looks_ahead {
                true => reached * (count / (seen - 1.0).max(1.0)).min(1.0),
                false => (odds * count / before).min(reached),
            };
            if likelihood < threshold || out.len() >= LONGEST {
                return None;
            }
            out.push(Prediction {
                symbol: partition.symbol(child),
                likelihood,
                ahead: out.len() as u32 + 1,
            });
            (reached, seen) = (likelihood, count);
            node = child;
        }
        Some(reached)
    }

    /// Where the sequence goes on: the longest of its ends, of `jump` events at most, that a partition begins with.
    fn landing(&self, followed: &Followed, out: &[Prediction]) -> Option<(&Partition, u16)> {
        let known = followed.recent.len();
        let all = known + out.len();
        let event = |at: usize| match at.checked_sub(known) {
            None => followed.recent[at],
            Some(at) => out[at].symbol,
        };
        (1..=self.jump.min(all)).rev().find_map(|length| {
            let partition = self.partitions.partition(event(all - length))?;
            let mut node = ROOT;
            for at in all - length + 1..all {
                node = partition.child(node, event(at))?;
            }
            partition.best(node).map(|_| (partition, node))
        })
    }

    /// The partition of a file, if it is in memory.
    pub fn partition(&self, symbol: Symbol) -> Option<&Partition> {
        self.partitions.partition(symbol)
    }

    /// How often the pattern was seen.
    pub fn count(&self, pattern: &[Symbol]) -> u32 {
        self.partitions.count_of(pattern)
    }
}

impl Model for Epcm {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.partitions.see(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        out.clear();
        let Some(followed) = self.partitions.followed(context) else {
            return;
        };
        let mut ended = None;
        for place in &followed.places {
            let Some((partition, node)) = self.partitions.at(place) else {
                continue;
            };
            let before = followed.seen_before(partition.count(node));
            ended = self.follow((partition, node), (1.0, before), threshold, out);
            if !out.is_empty() {
                break;
            }
        }
        while let Some(odds) = ended.filter(|_| !out.is_empty()) {
            let Some((partition, node)) = self.landing(followed, out) else {
                break;
            };
            let before = f64::from(partition.count(node).max(1));
            let from = out.len();
            ended = self.follow((partition, node), (odds, before), threshold, out);
            if out.len() == from {
                break;
            }
        }
    }

    fn end(&mut self, context: Context) {
        self.partitions.end(context);
    }

    fn end_all(&mut self) {
        self.partitions.end_all();
    }

    fn bytes(&self) -> usize {
        self.partitions.bytes()
    }

    fn flush(&mut self) {
        self.partitions.flush();
    }
}
