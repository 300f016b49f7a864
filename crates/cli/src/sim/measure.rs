//! One model on a trace: what it predicts, and what a cache makes of that.
//!
//! Definitions, which docs/models.md has in words:
//!
//! - accuracy: of all events, the share whose file was the model's most likely next file in the context of the event.
//!   An event without a prediction before it counts as wrong.
//! - predicted: of all events, the share before which a file was predicted at the threshold.
//! - ahead: the length of the sequence that is predicted at the threshold after an event; 0 where nothing is.
//! - lead: between the event after which a file was predicted first, and has been ever since, and the event that comes to
//!   it: in events of the whole machine, and in time.
//! - coverage: of the files that a cache without prefetching has to wait for, the share that the one with it does not.
//! - waste: of what is fetched ahead, what leaves the cache unread or is unread at the end.

use std::collections::HashMap;

use foreread_sources::files::{Context, Model, Prediction, Symbol};

use super::cache::{Cache, Sum};
use super::events::Event;
use super::quantiles::Quantiles;

/// Bytes that a file is taken to have where the trace does not say: half of all files of a Debian system are smaller.
pub(super) const ASSUMED_SIZE: u64 = 4096;
/// Contexts whose predictions are followed at once.
const CONTEXTS: usize = 1 << 12;
/// Files whose sizes are remembered.
const SIZES: usize = 1 << 20;

/// A prediction that has not come true yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The event after which the file was predicted first, and its time.
    event: u64,
    time: Option<u64>,
    /// The last event after which it was predicted.
    last: u64,
}

/// What one model has done.
pub(super) struct Measured {
    pub(super) name: String,
    model: Box<dyn Model>,
    threshold: f64,
    pub(super) events: u64,
    pub(super) right: u64,
    pub(super) predicted: u64,
    pub(super) predicted_right: u64,
    pub(super) ahead: Quantiles,
    pub(super) lead_events: Quantiles,
    pub(super) lead_ns: Quantiles,
    /// Predictions that were withdrawn without having come true.
    pub(super) withdrawn: u64,
    pub(super) hits: u64,
    /// Files that a cache without prefetching had to wait for, and of those the ones that were there.
    pub(super) needed: u64,
    pub(super) covered: u64,
    pub(super) cache: Cache,
    pending: HashMap<Context, HashMap<Symbol, Pending>>,
    list: Vec<Prediction>,
}

impl Measured {
    pub(super) fn new(name: String, model: Box<dyn Model>, threshold: f64, memory: u64) -> Self {
        Self {
            name,
            model,
            threshold,
            events: 0,
            right: 0,
            predicted: 0,
            predicted_right: 0,
            ahead: Quantiles::default(),
            lead_events: Quantiles::default(),
            lead_ns: Quantiles::default(),
            withdrawn: 0,
            hits: 0,
            needed: 0,
            covered: 0,
            cache: Cache::new(memory),
            pending: HashMap::new(),
            list: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.model.bytes()
    }

    /// The trace has ended.
    pub(super) fn end_all(&mut self) {
        self.model.end_all();
        self.pending.clear();
    }

    /// An event to learn from only.
    pub(super) fn train(&mut self, event: &Event) {
        self.model.see(event.context, event.symbol, true);
    }

    /// An event to be measured by. `plain` says whether the cache without prefetching has the file.
    pub(super) fn test(&mut self, event: &Event, plain: bool, sizes: &Sizes, learn: bool) {
        let list = &mut self.list;
        self.events += 1;
        self.model.predict(event.context, 0.0, list);
        let right = list.first().is_some_and(|one| one.symbol == event.symbol);
        self.right += u64::from(right);
        self.model.predict(event.context, self.threshold, list);
        if let Some(first) = list.first() {
            self.predicted += 1;
            self.predicted_right += u64::from(first.symbol == event.symbol);
        }
        self.read(event, plain, sizes);
        self.model.see(event.context, event.symbol, learn);
        let list = &mut self.list;
        self.model.predict(event.context, self.threshold, list);
        let length = list.iter().map(|one| one.ahead).max().unwrap_or(0);
        self.ahead.add(length.into());
        self.follow(event);
        for one in &self.list {
            self.cache.fetch(one.symbol, sizes.of(one.symbol));
        }
    }

    fn read(&mut self, event: &Event, plain: bool, sizes: &Sizes) {
        let (hit, _) = self.cache.read(event.symbol, sizes.of(event.symbol));
        self.hits += u64::from(hit);
        if !plain {
            self.needed += 1;
            self.covered += u64::from(hit);
        }
        let pending = self.pending.get_mut(&event.context);
        let Some(come) = pending.and_then(|pending| pending.remove(&event.symbol)) else {
            return;
        };
        self.lead_events.add(self.events - come.event);
        if let (Some(then), Some(now)) = (come.time, event.time) {
            self.lead_ns.add(now.saturating_sub(then));
        }
    }

    /// Takes note of what is predicted now: what was so before keeps its time.
    fn follow(&mut self, event: &Event) {
        if self.pending.len() >= CONTEXTS && !self.pending.contains_key(&event.context) {
            self.pending.clear();
        }
        let pending = self.pending.entry(event.context).or_default();
        for one in &self.list {
            let known = pending.entry(one.symbol).or_insert(Pending {
                event: self.events,
                time: event.time,
                last: self.events,
            });
            known.last = self.events;
        }
        let before = pending.len();
        pending.retain(|_, one| one.last == self.events);
        self.withdrawn += (before - pending.len()) as u64;
    }

    /// What was fetched ahead in vain, taken that nothing more is read.
    pub(super) fn wasted(&self) -> Sum {
        let unread = self.cache.unread();
        Sum {
            files: self.cache.wasted.files + unread.files,
            bytes: self.cache.wasted.bytes + unread.bytes,
        }
    }
}

/// The sizes of files, as far as traces have said.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    known: HashMap<Symbol, u64>,
    /// Whether any had to be assumed.
    pub(super) assumed: bool,
}

impl Sizes {
    pub(super) fn learn(&mut self, event: &Event) {
        let known = self.known.contains_key(&event.symbol);
        match event.size {
            Some(size) if known || self.known.len() < SIZES => {
                self.known.insert(event.symbol, size);
            }
            _ => self.assumed |= !known,
        }
    }

    pub(super) fn of(&self, symbol: Symbol) -> u64 {
        self.known.get(&symbol).copied().unwrap_or(ASSUMED_SIZE)
    }
}
