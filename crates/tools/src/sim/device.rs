//! A device that reads one file at a time, in virtual time. It decides whether a file has arrived when a program uses it.
//!
//! The clock is the trace's time plus all waiting so far: while a program waits, no other program continues. Prefetched files are read in
//! the order of their requests. A file that a program waits for goes first.
//!
//! Invariant: the queue is bounded; the oldest requests beyond the limit are dropped.

use std::collections::VecDeque;

use foreread_sources::files::Symbol;

/// Outcome of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Reads {
    /// Found in memory.
    pub(super) hits: u64,
    /// Being prefetched, not yet arrived.
    pub(super) partial: u64,
    /// Read for the program.
    pub(super) misses: u64,
    /// Waiting of programs, in ns.
    pub(super) waited_ns: u64,
}

/// The device.
#[derive(Debug)]
pub(super) struct Device {
    /// Time per file, in ns.
    read_ns: u64,
    /// Limit of the queue, in files.
    most: usize,
    /// Files requested ahead, with their times.
    queue: VecDeque<(Symbol, u64)>,
    /// The file being prefetched.
    current: Option<Symbol>,
    /// Time at which the device becomes idle, apart from the queue.
    free_at: u64,
    pub(super) reads: Reads,
}

impl Device {
    /// A device that takes this many ns per file, with this limit of the queue.
    pub(super) fn new(read_ns: u64, most: usize) -> Self {
        Self {
            read_ns,
            most,
            queue: VecDeque::new(),
            current: None,
            free_at: 0,
            reads: Reads::default(),
        }
    }

    /// Requests a file ahead, at this time of the trace.
    pub(super) fn fetch(&mut self, symbol: Symbol, time: u64) {
        if self.queue.len() == self.most {
            self.queue.pop_front();
        }
        self.queue.push_back((symbol, self.now(time)));
    }

    /// A program uses a file at this time of the trace. `is_cached`: the cache has the file or is waiting for it.
    pub(super) fn read(&mut self, symbol: Symbol, is_cached: bool, time: u64) {
        let now = self.now(time);
        self.advance(now);
        let waiting = self.queue.iter().position(|(one, _)| *one == symbol);
        let is_arriving = self.current == Some(symbol) && self.free_at > now;
        if is_arriving {
            self.reads.partial += 1;
            self.reads.waited_ns += self.free_at - now;
        } else if is_cached && waiting.is_none() {
            self.reads.hits += 1;
        } else {
            waiting.map(|place| self.queue.remove(place));
            self.reads.misses += 1;
            self.free_at = self.free_at.max(now) + self.read_ns;
            self.current = None;
            self.reads.waited_ns += self.free_at - now;
        }
    }

    fn now(&self, time: u64) -> u64 {
        time + self.reads.waited_ns
    }

    /// Prefetches until `now`.
    fn advance(&mut self, now: u64) {
        while let Some((symbol, asked)) = self.queue.front().copied() {
            let begins = self.free_at.max(asked);
            if begins > now {
                break;
            }
            self.queue.pop_front();
            self.free_at = begins + self.read_ns;
            self.current = Some(symbol);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_or_on_its_way_or_read_for_the_program() {
        let (a, b, c) = (Symbol(1), Symbol(2), Symbol(3));
        let mut device = Device::new(10, 100);
        device.read(a, false, 0);
        // It is 10: the program has waited. Both are asked for, b is read first.
        device.fetch(b, 0);
        device.fetch(c, 0);
        device.read(a, true, 4);
        device.read(b, true, 4);
        assert_eq!((device.reads.hits, device.reads.partial), (1, 1));
        assert_eq!(device.reads.waited_ns, 16);
        // It is 21, and c is on its way since 20.
        device.read(c, true, 5);
        assert_eq!((device.reads.partial, device.reads.waited_ns), (2, 25));
        device.read(c, true, 6);
        let Reads { hits, misses, .. } = device.reads;
        assert_eq!((hits, misses), (2, 1));
    }

    #[test]
    fn what_a_program_waits_for_goes_before_what_is_fetched_ahead() {
        let mut device = Device::new(10, 100);
        (0..5).for_each(|symbol| device.fetch(Symbol(symbol), 0));
        // The first is being read, the last has not begun: 10 for the one, 10 for the other.
        device.read(Symbol(4), true, 0);
        assert_eq!((device.reads.misses, device.reads.waited_ns), (1, 20));
        // The others are there 30 later, and the last is not read twice.
        device.read(Symbol(3), true, 30);
        assert_eq!((device.reads.hits, device.reads.waited_ns), (1, 20));
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut device = Device::new(10, 16);
        (0..1000).for_each(|symbol| device.fetch(Symbol(symbol), 0));
        assert_eq!(device.queue.len(), 16);
    }
}
