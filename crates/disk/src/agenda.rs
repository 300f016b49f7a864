//! Decided completions, and the times at which a device continues by itself, in order of time; equal times in the order of decision.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Default)]
pub(crate) struct Agenda {
    /// (time, order of decision, the request that is done then)
    heap: BinaryHeap<Reverse<(u64, u64, Option<u64>)>>,
    decided: u64,
}

impl Agenda {
    /// Request `id` completes then.
    pub(crate) fn put(&mut self, at_ns: u64, id: u64) {
        self.enter(at_ns, Some(id));
    }

    /// The device wants to be asked then, though nothing may be done.
    pub(crate) fn wake(&mut self, at_ns: u64) {
        self.enter(at_ns, None);
    }

    fn enter(&mut self, at_ns: u64, done: Option<u64>) {
        self.heap.push(Reverse((at_ns, self.decided, done)));
        self.decided += 1;
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The first entry up to `now`: its time, and the request that is done.
    pub(crate) fn pop_until(&mut self, now: u64) -> Option<(u64, Option<u64>)> {
        if self.next()? > now {
            return None;
        }
        let Reverse((at_ns, _, done)) = self.heap.pop()?;
        Some((at_ns, done))
    }
}
