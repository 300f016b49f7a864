//! The completions already decided, in order of time; of equal times, the one
//! decided first comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Completion;

#[derive(Default)]
pub(crate) struct Agenda {
    /// (time, order of decision, request)
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    decided: u64,
}

impl Agenda {
    pub(crate) fn put(&mut self, at_ns: u64, id: u64) {
        self.heap.push(Reverse((at_ns, self.decided, id)));
        self.decided += 1;
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(crate) fn pop_until(&mut self, now: u64) -> Option<Completion> {
        if self.next()? > now {
            return None;
        }
        let Reverse((at_ns, _, id)) = self.heap.pop()?;
        Some(Completion { id, at_ns })
    }
}
