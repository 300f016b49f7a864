//! The last successor: a file is followed by the file that followed it last time (section 2).
//!
//! One entry per file. The model has no estimate of its certainty: its likelihood is always 1.

use super::contexts::Bounded;
use super::{Context, Model, Prediction, Symbol};

/// The model.
#[derive(Clone, Debug)]
pub struct LastSuccessor {
    followers: Bounded<Symbol, Symbol>,
    /// The last event of each context.
    last: Bounded<Context, Symbol>,
}

impl LastSuccessor {
    /// A model with limits of files and contexts.
    pub fn new(files: usize, contexts: usize) -> Self {
        Self {
            followers: Bounded::new(files),
            last: Bounded::new(contexts),
        }
    }
}

impl Model for LastSuccessor {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        if let Some(last) = self.last.get(context).filter(|_| learn) {
            self.followers.insert(*last, symbol, |_, _| {});
        }
        self.last.insert(context, symbol, |_, _| {});
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        out.clear();
        let follower = self
            .last
            .get(context)
            .and_then(|last| self.followers.get(*last));
        if let Some(symbol) = follower
            && threshold <= 1.0
        {
            out.push(Prediction {
                symbol: *symbol,
                likelihood: 1.0,
                ahead: 1,
            });
        }
    }

    fn end(&mut self, context: Context) {
        self.last.remove(context);
    }

    fn end_all(&mut self) {
        self.last.clear();
    }

    fn bytes(&self) -> usize {
        self.followers.len() * size_of::<(u64, u64, u64)>()
            + self.last.len() * size_of::<(u64, u64, u64)>()
    }
}
