//! One model on a trace: its predictions, and their effect on a cache.
//!
//! Definitions; docs/models.md has them in words:
//!
//! - accuracy: share of all events whose file was the model's most likely next file in the context of the event. An event without a
//!   prediction before it counts as wrong.
//! - predicted: share of all events before which a file was predicted at the threshold.
//! - ahead: length of the sequence predicted at the threshold after an event; 0 if there is none.
//! - lead: from the event after which a file was first predicted (and predicted ever since) to the event of its use, in events of the whole
//!   machine and in time.
//! - coverage: of the files that a cache without prefetching waits for, the share that the cache with prefetching has.
//! - waste: share of the prefetched bytes that leave the cache unread or are unread at the end.
//! - hits, partial hits, misses, waits: of a device whose reads take time ([`Device`]).
//!
//! A [`Measured`] has one [`Arm`] per threshold, which has one [`Cached`] per size of memory. The model sees each event once, whatever
//! their number.

use foreread_sources::files::{Context, Model, Prediction, Symbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::cache::{Cache, Sum};
use super::device::Device;
use super::events::Event;
use super::models::Limits;
use super::quantiles::Quantiles;

/// Assumed size of a file if the trace does not show it, in bytes: half of all files of a Debian system are smaller.
pub(super) const ASSUMED_SIZE: u64 = 4096;
/// A prediction whose file was not used yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The event after which the file was first predicted, and its time.
    event: u64,
    time: Option<u64>,
    /// The last event after which it was predicted.
    last: u64,
}

/// The results of one model.
pub(super) struct Measured {
    pub(super) name: String,
    model: Box<dyn Model>,
    pub(super) events: u64,
    pub(super) right: u64,
    /// Results by threshold.
    pub(super) arms: Vec<Arm>,
    list: Vec<Prediction>,
}

/// Predictions at one threshold.
pub(super) struct Arm {
    pub(super) threshold: f64,
    pub(super) predicted: u64,
    pub(super) predicted_right: u64,
    pub(super) ahead: Quantiles,
    pub(super) lead_events: Quantiles,
    pub(super) lead_ns: Quantiles,
    /// Predictions withdrawn before their file was used.
    pub(super) withdrawn: u64,
    /// Results by size of memory.
    pub(super) caches: Vec<Cached>,
    pending: FxHashMap<Context, FxHashMap<Symbol, Pending>>,
    contexts: usize,
}

/// The effect of the predictions on a cache of one size.
pub(super) struct Cached {
    pub(super) cache: Cache,
    pub(super) hits: u64,
    /// Files that a cache without prefetching waited for, and those of them that were in this cache.
    pub(super) needed: u64,
    pub(super) covered: u64,
    /// The simulated device, if reads take time.
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

    /// Ends the trace.
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

    /// Learns from an event without measuring.
    pub(super) fn train(&mut self, event: &Event) {
        self.see(event, true);
    }

    /// Measures by an event, then learns from it if `learn`. `plain` has one entry per size of memory: true if a cache without prefetching
    /// has the file.
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
    /// Compares the predictions with the event that happened.
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

    /// Notes the predictions after an event. A repeated prediction keeps its first time.
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
    /// Wasted files and bytes, if nothing more is read.
    pub(super) fn wasted(&self) -> Sum {
        let unread = self.cache.unread();
        Sum {
            files: self.cache.wasted.files + unread.files,
            bytes: self.cache.wasted.bytes + unread.bytes,
        }
    }
}

/// Sizes of files, as far as the traces have shown them.
#[derive(Debug)]
pub(super) struct Sizes {
    known: FxHashMap<Symbol, u64>,
    most: usize,
    /// True if the size of any file was assumed.
    pub(super) assumed: bool,
}

impl Sizes {
    /// For this many files.
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
