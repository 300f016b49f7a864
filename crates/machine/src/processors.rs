//! Processors, shared fairly by all tasks that have something to compute.
//!
//! All of them go on at one rate, so the work done for each since the beginning is one number; a task is done when that number has
//! grown by its work. Processor time beyond a quota is refused until the next period, as by the kernel's bandwidth control.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The number of a task, which the processors work for.
pub(crate) type TaskId = usize;

/// A quota's period, in ns: the kernel's default.
const PERIOD: u64 = 100_000_000;
/// Less than this is no work, in ns: the numbers are rounded.
const NOTHING: f64 = 1e-3;

/// Processors.
#[derive(Clone, Debug)]
pub struct ProcessorSpec {
    /// Number of processors.
    pub count: u64,
    /// Speed of each: twice the speed halves the time.
    pub speed: f64,
    /// Processors that all tasks may use together on average; `None` without a limit.
    pub quota: Option<f64>,
    /// Others' loops that compute all the time.
    pub others: u64,
}

pub(crate) struct Processors {
    spec: ProcessorSpec,
    /// By the work done when each is done, as bits: of positive numbers, these are in the numbers' order.
    running: BinaryHeap<Reverse<(u64, TaskId)>>,
    /// Work done for each task, in ns, until `at`.
    done: f64,
    at: u64,
    /// Processor time used in this period of the quota, and altogether, in ns.
    used: f64,
    spent: f64,
    said: u64,
}

impl Processors {
    pub(crate) fn new(spec: &ProcessorSpec) -> Self {
        Self {
            spec: spec.clone(),
            running: BinaryHeap::new(),
            done: 0.0,
            at: 0,
            used: 0.0,
            spent: 0.0,
            said: 0,
        }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent as u64
    }

    /// Number of the latest announced event.
    pub(crate) fn said(&self) -> u64 {
        self.said
    }

    /// Time of this work if nobody else computes; `None` if others do, or if a quota may end meanwhile.
    pub(crate) fn alone(&self, now: u64, ns: u64) -> Option<u64> {
        let is_alone = self.running.is_empty() && self.spec.others < self.spec.count;
        let took = (ns as f64 / self.spec.speed).ceil() as u64;
        let is_free = self.spec.quota.is_none_or(|quota| {
            let used = if now / PERIOD == self.at / PERIOD {
                self.used
            } else {
                0.0
            };
            let ends_in_period = (now + took) / PERIOD == now / PERIOD;
            ends_in_period && used + took as f64 <= quota * PERIOD as f64
        });
        (is_alone && is_free).then_some(took)
    }

    /// Work was done during which no other task could run.
    pub(crate) fn took(&mut self, now: u64, took: u64) {
        self.renew(now);
        self.used += took as f64;
        self.spent += took as f64;
        self.at = now + took;
    }

    /// A task has work to do.
    pub(crate) fn start(&mut self, now: u64, task: TaskId, ns: u64) {
        self.pass(now);
        let until = self.done + ns as f64;
        self.running.push(Reverse((until.to_bits(), task)));
    }

    /// Lets time pass; tasks that are done are ready.
    pub(crate) fn advance(&mut self, now: u64, ready: &mut VecDeque<TaskId>) {
        self.pass(now);
        while let Some(Reverse((until, task))) = self.running.peek().copied() {
            if f64::from_bits(until) > self.done + NOTHING {
                break;
            }
            self.running.pop();
            ready.push_back(task);
        }
    }

    /// When anything changes next, and the number of this answer: an earlier one is void.
    pub(crate) fn next(&mut self, now: u64) -> Option<(u64, u64)> {
        self.said += 1;
        let Reverse((until, _)) = self.running.peek()?;
        let period = (now / PERIOD + 1) * PERIOD;
        let rate = self.rate();
        let mut at = period;
        if rate > 0.0 {
            let left = (f64::from_bits(*until) - self.done).max(0.0);
            at = now + (left / rate).ceil() as u64;
        }
        if let Some(quota) = self.spec.quota
            && rate > 0.0
        {
            let left = quota * PERIOD as f64 - self.used;
            let end = now + (left / self.busy()).ceil() as u64;
            at = at.min(end).min(period);
        }
        Some((at, self.said))
    }

    fn pass(&mut self, now: u64) {
        let took = now.saturating_sub(self.at) as f64;
        if !self.running.is_empty() {
            let (rate, busy) = (self.rate(), self.busy());
            self.done += rate * took;
            if rate > 0.0 {
                self.used += busy * took;
                self.spent += busy * took;
            }
        }
        self.renew(now);
        self.at = now;
    }

    /// A new period begins.
    fn renew(&mut self, now: u64) {
        if now / PERIOD != self.at / PERIOD {
            self.used = 0.0;
        }
    }

    /// Processors that the tasks have.
    fn busy(&self) -> f64 {
        self.running.len() as f64 * self.share()
    }

    /// The part of a processor that each has.
    fn share(&self) -> f64 {
        let all = self.running.len() as u64 + self.spec.others;
        (self.spec.count as f64 / all.max(1) as f64).min(1.0)
    }

    /// Work that is done for each task in a ns.
    fn rate(&self) -> f64 {
        let quota = self.spec.quota.map(|quota| quota * PERIOD as f64);
        if quota.is_some_and(|quota| self.used >= quota - 1.0) {
            return 0.0;
        }
        self.share() * self.spec.speed
    }
}
