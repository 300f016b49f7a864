//! Partitioned context modeling (section 2.2, Figure 3).
//!
//! The trie's patterns of up to `order` events, in one partition per file. It predicts the next event only: for each pattern that ends with
//! the latest events, the longest first, the files whose likelihood reaches the threshold.

use super::partition::Partition;
use super::partitions::{Growth, NoPager, Pager, Partitions, Shape};
use super::{Context, Model, Prediction, Symbol};

/// The model.
pub struct Pcm {
    partitions: Partitions,
}

impl Pcm {
    /// A model that knows nothing.
    pub fn new(shape: Shape) -> Self {
        Self::with_pager(shape, Box::new(NoPager))
    }

    /// A model with the pager's partitions.
    pub fn with_pager(shape: Shape, pager: Box<dyn Pager>) -> Self {
        Self {
            partitions: Partitions::new(shape, Growth::Whole, 0, pager),
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

impl Model for Pcm {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.partitions.see(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        out.clear();
        let Some(followed) = self.partitions.followed(context) else {
            return;
        };
        for place in &followed.places {
            let Some((partition, node)) = self.partitions.at(place) else {
                continue;
            };
            let from = out.len();
            let before = followed.seen_before(partition.count(node));
            for child in partition.children(node) {
                let symbol = partition.symbol(child);
                let likelihood = (f64::from(partition.count(child)) / before).min(1.0);
                if likelihood >= threshold && !out.iter().any(|one| one.symbol == symbol) {
                    out.push(Prediction {
                        symbol,
                        likelihood,
                        ahead: 1,
                    });
                }
            }
            // Stable: of those seen as often, the last seen stays first.
            out[from..].sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
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
