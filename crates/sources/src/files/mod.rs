//! Models of file successors: the paper "Design and Implementation of a Predictive File Prefetching Algorithm" (Kroeger and Long,
//! USENIX 2001), section 2, and the future work of its section 6. docs/models.md describes each model, its results, and our reading of the
//! paper's ambiguous places.
//!
//! One model a file, all behind [`Model`]:
//!
//! - [`LastSuccessor`]: the file that followed last time.
//! - [`Trie`]: the finite multi-order context model, the reference for the others.
//! - [`Pcm`]: the trie in partitions with a fixed number of nodes, whose counts are halved when they are full.
//! - [`Epcm`]: deep partitions that grow by one node an instance, and predict sequences.
//!
//! A model that is [`Folded`] sees the start of a program and the files that it always begins with as one symbol.
//!
//! Data flow: [`Symbols`] numbers files and program starts → [`Model::see`], an event at a time → [`Model::predict`] →
//! predictions, the nearest first. [`Levels`] keeps one model for the contexts of each process tree and one for the
//! machine's whole sequence. A [`Pager`] takes partitions that leave memory, and gives them back.
//!
//! Invariants: memory is bounded by each model's limits, for any events; an event costs a bounded amount of work; the same events give the
//! same predictions.

mod contexts;
mod epcm;
mod last;
mod levels;
mod partition;
mod partitions;
mod pcm;
mod start_ups;
mod symbols;
#[cfg(test)]
mod tests;
mod trails;
mod trie;

pub use epcm::Epcm;
pub use last::LastSuccessor;
pub use levels::Levels;
pub use partition::{DecodeError, Partition};
pub use partitions::{NoPager, Pager, Shape};
pub use pcm::Pcm;
pub use start_ups::{Folded, NoStartUps, StartUps};
pub use symbols::{Identity, SymbolKind, Symbols};
pub use trails::{NoTrails, Trails};
pub use trie::Trie;

/// A file, or the start of a program, as models know it. Numbers are never used again for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

impl Symbol {
    /// The start of the system itself.
    pub const SYSTEM_START: Symbol = Symbol(0);
}

/// Whose events follow one another: a process tree, a process or a thread, as the observer numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u64);

/// Files predicted ahead, at most: patterns that return to their beginning would be predicted without end. On three builds 40.7 % of the
/// waits are covered (without start-ups), 35.4 with 64, and as many files are wasted. Half of a linker's files are in memory already, so 64
/// events are 20 ms: two seeks of a disk.
const LONGEST: usize = 256;

/// The context of an event that is only tried.
const TRIAL: Context = Context(u64::MAX - 1);

/// A file that is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The file.
    pub symbol: Symbol,
    /// Likelihood that the context reaches it, from 0 to 1.
    pub likelihood: f64,
    /// Number of events ahead: 1 for the next one.
    pub ahead: u32,
}

/// A model of which file follows which.
pub trait Model: Send {
    /// Adds the next event of a context. Without `learn` the model only moves its position, and remembers nothing.
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool);

    /// The same, where the event is the start of a program.
    fn start(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.see(context, symbol, learn);
    }

    /// The expected events of a context, with at least this likelihood, nearest first; among those for the same event the most likely
    /// first. With a threshold of 0 the first prediction is the model's most likely next file.
    ///
    /// `out` is emptied first. Taking a list keeps the callers' loop free of allocations.
    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>);

    /// The expected events after this event alone; the position does not change.
    fn predict_after(&mut self, symbol: Symbol, threshold: f64, out: &mut Vec<Prediction>) {
        self.see(TRIAL, symbol, false);
        self.predict(TRIAL, threshold, out);
        self.end(TRIAL);
    }

    /// The context has ended: its last events have no successor.
    fn end(&mut self, context: Context);

    /// All contexts have ended, as between two recorded runs.
    fn end_all(&mut self);

    /// Bytes of memory that the model holds, about.
    fn bytes(&self) -> usize;

    /// Passes all changes to the pager, if there is one.
    fn flush(&mut self) {}
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        (**self).see(context, symbol, learn);
    }

    fn start(&mut self, context: Context, symbol: Symbol, learn: bool) {
        (**self).start(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        (**self).predict(context, threshold, out);
    }

    fn predict_after(&mut self, symbol: Symbol, threshold: f64, out: &mut Vec<Prediction>) {
        (**self).predict_after(symbol, threshold, out);
    }

    fn end(&mut self, context: Context) {
        (**self).end(context);
    }

    fn end_all(&mut self) {
        (**self).end_all();
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn flush(&mut self) {
        (**self).flush();
    }
}
