//! Two levels: the context of each process tree, and one global context.
//!
//! A program's next read depends mostly on its own earlier reads: its own context. The first read of a program, and the next program to be
//! started, are only visible in the sequence of all events: the global context. Each level has a model of its own, so their patterns are
//! counted separately. The own context is asked first. If nothing is more likely than not there, the level with the higher likelihood for
//! its next file is used.

use super::{Context, Model, Prediction, Symbol};

/// The context of the whole machine.
const GLOBAL: Context = Context(u64::MAX);
/// The likelihood above which nothing else can be as likely.
const SURE: f64 = 0.5;

/// Two models of one kind.
#[derive(Clone, Debug)]
pub struct Levels<M> {
    own: M,
    global: M,
}

impl<M: Model> Levels<M> {
    /// A model of the contexts, and one of the whole sequence.
    pub fn new(own: M, global: M) -> Self {
        Self { own, global }
    }
}

impl<M: Model> Model for Levels<M> {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.own.see(context, symbol, learn);
        self.global.see(GLOBAL, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        self.own.predict(context, threshold, out);
        let own = out.first().map_or(0.0, |one| one.likelihood);
        if own > SURE {
            return;
        }
        let mut others = Vec::new();
        self.global.predict(GLOBAL, threshold, &mut others);
        if others.first().is_some_and(|one| one.likelihood > own) {
            std::mem::swap(out, &mut others);
        }
    }

    fn predict_after(&mut self, symbol: Symbol, threshold: f64, out: &mut Vec<Prediction>) {
        // The global sequence is not changed by the question.
        self.own.predict_after(symbol, threshold, out);
    }

    fn end(&mut self, context: Context) {
        self.own.end(context);
    }

    fn end_all(&mut self) {
        self.own.end_all();
        self.global.end_all();
    }

    fn bytes(&self) -> usize {
        self.own.bytes() + self.global.bytes()
    }

    fn flush(&mut self) {
        self.own.flush();
        self.global.flush();
    }
}
