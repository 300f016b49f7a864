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
//! - hits, partial hits, misses, waits: of a device that takes time ([`Device`]).
//!
//! A [`Measured`] has an [`Arm`] for each threshold, and that a [`Cached`] for each size of memory: the model sees each
//! event once, however many there are.

use foreread_sources::files::{Context, Model, Prediction, Symbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::cache::{Cache, Sum};
use super::device::Device;
use super::events::Event;
use super::models::Limits;
use super::quantiles::Quantiles;

/// Bytes that a file is taken to have where the trace does not say: half of all files of a Debian system are smaller.
pub(super) const ASSUMED_SIZE: u64 = 4096;
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
    pub(super) events: u64,
    pub(super) right: u64,
    /// One for each threshold.
    pub(super) arms: Vec<Arm>,
    list: Vec<Prediction>,
}

/// What it predicted at a threshold.
pub(super) struct Arm {
    pub(super) threshold: f64,
    pub(super) predicted: u64,
    pub(super) predicted_right: u64,
    pub(super) ahead: Quantiles,
    pub(super) lead_events: Quantiles,
    pub(super) lead_ns: Quantiles,
    /// Predictions that were withdrawn without having come true.
    pub(super) withdrawn: u64,
    /// One for each size of memory.
    pub(super) caches: Vec<Cached>,
    pending: FxHashMap<Context, FxHashMap<Symbol, Pending>>,
    contexts: usize,
}

/// What a cache of one size made of that.
pub(super) struct Cached {
    pub(super) cache: Cache,
    pub(super) hits: u64,
    /// Files that a cache without prefetching had to wait for, and of those the ones that were there.
    pub(super) needed: u64,
    pub(super) covered: u64,
    /// Where the files come from, if reads take time.
    pub(super) device: Option<Device>,
}

impl Measured {
    pub(super) fn new(
        name: String,
        model: Box<dyn Model>,
        thresholds: &[f64],
        memories: &[u64],
        read_ns: Option<u64>,
        limits: Limits,
    ) -> Self {
        let arm = |threshold: &f64| Arm {
            threshold: *threshold,
            predicted: 0,
            predicted_right: 0,
            ahead: Quantiles::default(),
            lead_events: Quantiles::default(),
            lead_ns: Quantiles::default(),
            withdrawn: 0,
            caches: memories
                .iter()
                .map(|memory| Cached {
                    cache: Cache::new(*memory, limits.files),
                    hits: 0,
                    needed: 0,
                    covered: 0,
                    device: read_ns.map(|ns| Device::new(ns, limits.files)),
                })
                .collect(),
            pending: FxHashMap::default(),
            contexts: limits.contexts,
        };
        Self {
            name,
            model,
            events: 0,
            right: 0,
            arms: thresholds.iter().map(arm).collect(),
            list: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.model.bytes()
    }

    /// The trace has ended.
    pub(super) fn end_all(&mut self) {
        self.model.end_all();
        self.arms.iter_mut().for_each(|arm| arm.pending.clear());
    }

    fn see(&mut self, event: &Event, learn: bool) {
        match event.kind {
            SymbolKind::Start => self.model.start(event.context, event.symbol, learn),
            SymbolKind::File => self.model.see(event.context, event.symbol, learn),
        }
    }

    /// An event to learn from only.
    pub(super) fn train(&mut self, event: &Event) {
        self.see(event, true);
    }

    /// An event to be measured by. `plain` says of each size of memory whether a cache without prefetching has the file.
    pub(super) fn test(&mut self, event: &Event, plain: &[bool], sizes: &Sizes, learn: bool) {
        let list = &mut self.list;
        self.events += 1;
        self.model.predict(event.context, 0.0, list);
        let right = list.first().is_some_and(|one| one.symbol == event.symbol);
        self.right += u64::from(right);
        for arm in &mut self.arms {
            self.model.predict(event.context, arm.threshold, list);
            arm.judge(event, list);
            arm.read(event, self.events, plain, sizes);
        }
        self.see(event, learn);
        let list = &mut self.list;
        for arm in &mut self.arms {
            self.model.predict(event.context, arm.threshold, list);
            arm.follow(event, self.events, list);
            for cached in &mut arm.caches {
                for one in list.iter() {
                    let is_fetched = cached.cache.fetch(one.symbol, sizes.of(one.symbol));
                    if let (true, Some(device), Some(time)) =
                        (is_fetched, &mut cached.device, event.time)
                    {
                        device.fetch(one.symbol, time);
                    }
                }
            }
        }
    }
}

impl Arm {
    /// Holds what was predicted before an event against it.
    fn judge(&mut self, event: &Event, list: &[Prediction]) {
        if let Some(first) = list.first() {
            self.predicted += 1;
            self.predicted_right += u64::from(first.symbol == event.symbol);
        }
    }

    fn read(&mut self, event: &Event, number: u64, plain: &[bool], sizes: &Sizes) {
        for (cached, plain) in self.caches.iter_mut().zip(plain) {
            let (hit, _) = cached.cache.read(event.symbol, sizes.of(event.symbol));
            cached.hits += u64::from(hit);
            if let (Some(device), Some(time)) = (&mut cached.device, event.time) {
                device.read(event.symbol, hit, time);
            }
            if !plain {
                cached.needed += 1;
                cached.covered += u64::from(hit);
            }
        }
        let pending = self.pending.get_mut(&event.context);
        let Some(come) = pending.and_then(|pending| pending.remove(&event.symbol)) else {
            return;
        };
        self.lead_events.add(number - come.event);
        if let (Some(then), Some(now)) = (come.time, event.time) {
            self.lead_ns.add(now.saturating_sub(then));
        }
    }

    /// Takes note of what is predicted after an event: what was so before keeps its time.
    fn follow(&mut self, event: &Event, number: u64, list: &[Prediction]) {
        let length = list.iter().map(|one| one.ahead).max().unwrap_or(0);
        self.ahead.add(length.into());
        if self.pending.len() >= self.contexts && !self.pending.contains_key(&event.context) {
            self.pending.clear();
        }
        let pending = self.pending.entry(event.context).or_default();
        for one in list {
            let known = pending.entry(one.symbol).or_insert(Pending {
                event: number,
                time: event.time,
                last: number,
            });
            known.last = number;
        }
        let before = pending.len();
        pending.retain(|_, one| one.last == number);
        self.withdrawn += (before - pending.len()) as u64;
    }
}

impl Cached {
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
#[derive(Debug)]
pub(super) struct Sizes {
    known: FxHashMap<Symbol, u64>,
    most: usize,
    /// Whether any had to be assumed.
    pub(super) assumed: bool,
}

impl Sizes {
    /// Of so many files.
    pub(super) fn new(most: usize) -> Self {
        Self {
            known: FxHashMap::default(),
            most,
            assumed: false,
        }
    }

    pub(super) fn learn(&mut self, event: &Event) {
        let known = self.known.contains_key(&event.symbol);
        match event.size {
            Some(size) if known || self.known.len() < self.most => {
                self.known.insert(event.symbol, size);
            }
            _ => self.assumed |= !known,
        }
    }

    pub(super) fn of(&self, symbol: Symbol) -> u64 {
        self.known.get(&symbol).copied().unwrap_or(ASSUMED_SIZE)
    }
}
