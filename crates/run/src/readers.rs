//! Which processor the program reads on, as far as there is one, for foreread's own threads to stay off.
//!
//! Data flow: events → [`Readers::saw`]; now and then [`Readers::look`] → [`processor::reader_is_on`].

use std::time::Instant;

use foreread_plan::waited;
use foreread_sys::processor;

use super::observer::{Event, What};

/// Who read since the last look, and how long that took.
pub(super) struct Readers {
    since: Instant,
    who: Who,
    /// In reads that waited for a device, ns; one from memory is computing too.
    waited: u64,
}

#[derive(Clone, Copy)]
enum Who {
    Nobody,
    /// Process and thread.
    One(u32, u32),
    Several,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            who: Who::Nobody,
            waited: 0,
        }
    }

    /// A thread reported something.
    pub(super) fn saw(&mut self, event: &Event) {
        self.who = match self.who {
            Who::Nobody => Who::One(event.pid, event.tid),
            Who::One(pid, tid) if (pid, tid) == (event.pid, event.tid) => self.who,
            Who::One(..) | Who::Several => Who::Several,
        };
        if let What::Read { took, extent, .. } = event.what
            && waited(took, extent.len)
        {
            self.waited += took;
        }
    }

    /// If it is time for that, say where the program computes.
    pub(super) fn look(&mut self) {
        let elapsed = self.since.elapsed();
        if elapsed < processor::LOOK || matches!(self.who, Who::Nobody) {
            return;
        }
        let computes = u128::from(self.waited) < elapsed.as_nanos() / 2;
        processor::reader_is_on(match self.who {
            Who::One(pid, tid) if computes => processor::of(pid, tid),
            _ => None,
        });
        *self = Self::new();
    }
}
