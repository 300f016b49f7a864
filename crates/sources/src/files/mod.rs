//! Models of which file follows which: the paper "Design and Implementation of a Predictive File Prefetching Algorithm"
//! (Kroeger and Long, USENIX 2001), section 2, and what its section 6 leaves to others. docs/models.md says what each
//! model is, what it reaches, and how the paper's ambiguous places are read.
//!
//! One model a file, all behind [`Model`]:
//!
//! - [`LastSuccessor`]: the file that followed last time.
//! - [`Trie`]: the finite multi-order context model, the reference for the others.
//! - [`Pcm`]: the trie in partitions of a fixed number of nodes, whose counts are halved when they are full.
//! - [`Epcm`]: deep partitions that grow by one node an instance, and predict sequences.
//!
//! A model that is [`Folded`] sees the start of a program and the files that it always begins with as one symbol.
//!
//! Data flow: [`Symbols`] numbers files and program starts → [`Model::see`], an event at a time → [`Model::predict`] →
//! predictions, the nearest first. [`Levels`] keeps one model for the contexts of each process tree and one for the
//! machine's whole sequence. A [`Pager`] takes partitions that leave memory, and gives them back.
//!
//! Invariants: memory is bounded by each model's limits, whatever the events; an event costs a bounded amount of work;
//! the same events give the same predictions.

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

/// Files predicted ahead, at most. Patterns that lead back to their beginning are predicted without end otherwise. On three
/// builds 40.7 % of the waits are covered (without start-ups), 35.4 with 64, and as many files are fetched in vain. Half of what a linker opens is in
/// memory already, so that 64 events are 20 ms: two seeks of a disk.
const LONGEST: usize = 256;

/// The context of an event that is only tried.
const TRIAL: Context = Context(u64::MAX - 1);

/// A file that is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The file.
    pub symbol: Symbol,
    /// How likely the context's events come to it, from 0 to 1.
    pub likelihood: f64,
    /// How many events ahead: 1 for the next one.
    pub ahead: u32,
}

/// A model of which file follows which.
pub trait Model: Send {
    /// The next event of a context. Without `learn` the model moves on to what is expected after the event, and
    /// remembers nothing of it.
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool);

    /// The same, where the event is the start of a program.
    fn start(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.see(context, symbol, learn);
    }

    /// What is expected next in a context, with at least this likelihood: the nearest first, and of those for the same
    /// event the one that the model believes most. With a threshold of 0 the first prediction is the model's most
    /// likely next file.
    ///
    /// `out` is emptied first. Taking a list keeps the callers' loop free of allocations.
    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>);

    /// What would be expected after this event alone; nothing is remembered of it.
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

    /// Hands all that has changed to the pager, if there is one.
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
