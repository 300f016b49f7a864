//! The order of reads of each file, and the waiting of small reads, kept for the next run.

use foreread_plan::{Access, Advice, FileMeta, Kind, PAGE, Sequence};
use foreread_sources::{goes_on, is_front_to_back};

/// Number of reads that show the order of a file. If one read in a hundred is sequential by chance, a tenth of 64 are sequential in fewer
/// than one of 100,000 files (binomial), of 32 in one of 3,500.
pub(super) const ENOUGH_READS: u64 = 64;
/// Larger reads, in bytes, spend their time in transfer and not in waiting: 64 KiB take 0.5 ms on a network volume, beside 0.7 ms of
/// waiting.
const SMALL: u64 = 64 * 1024;
/// Waits kept at a time, a bound on memory.
pub(super) const SAMPLE: usize = 1 << 14;
/// Waits needed for a quantile: with fewer, the 90th percentile would be the longest wait.
const ENOUGH_WAITS: usize = 16;
/// A file is read in no order if fewer than one in this many reads is sequential: the kernel's read-ahead would serve only these.
const SHARE: u64 = 10;

/// The order of one file's reads, which shows whether the kernel's read-ahead serves the file.
pub(super) struct ReadingOrder {
    pub(super) meta: FileMeta,
    /// Waiting of its reads, in ns.
    waited: u64,
    reads: u64,
    /// In bytes, by those.
    bytes: u64,
    /// Reads that go on from the last, and those of them that leave out no page.
    onward: u64,
    whole: u64,
    end: u64,
}

impl ReadingOrder {
    pub(super) fn of(meta: FileMeta) -> Self {
        Self {
            meta,
            waited: 0,
            reads: 0,
            bytes: 0,
            onward: 0,
            whole: 0,
            end: 0,
        }
    }

    /// Adds a read. True if it is sequential.
    pub(super) fn read(&mut self, sequence: &Sequence) -> bool {
        let first = &sequence.first;
        // Touches of a mapping do not use the descriptor that advice is given on.
        if !first.kind.reads() || first.kind == Kind::Touch {
            return false;
        }
        let begun = self.reads > 0;
        if first.waited() {
            let waited = first.took.saturating_mul(sequence.count());
            self.waited = self.waited.saturating_add(waited);
        }
        self.reads += sequence.count();
        self.bytes += sequence.extent().len;
        let offset = first.extent.offset;
        let onward = goes_on(self.end, offset);
        self.onward += u64::from(onward) + u64::from(sequence.more);
        let whole = onward && offset / PAGE <= self.end.div_ceil(PAGE);
        self.whole += u64::from(whole) + u64::from(sequence.more);
        self.end = sequence.extent().end();
        onward && begun
    }

    /// Waiting in the file if the program wrote it itself, in ns.
    pub(super) fn rewritten_ns(&self) -> u64 {
        match self.meta.written && self.meta.advice != Advice::Dropped {
            true => self.waited,
            false => 0,
        }
    }

    pub(super) fn advice(&self) -> Advice {
        let elsewhere = self.reads - self.whole;
        if self.meta.advice == Advice::Dropped {
            Advice::Dropped
        } else if self.reads >= ENOUGH_READS && self.onward * SHARE < self.reads {
            Advice::Random
        } else if is_front_to_back(self.bytes, self.reads, elsewhere) {
            Advice::Sequential
        } else {
            Advice::Normal
        }
    }
}

/// The waiting of small reads and names for a device.
#[derive(Default)]
pub(crate) struct Waits {
    /// Reads elsewhere in the file, or of another file.
    pub(super) scattered: Sample,
    /// Sequential reads, which need no movement of a disk's head.
    pub(super) onward: Sample,
    /// Uses of names: each waits for one read or several.
    pub(super) names: Sample,
    /// Of reads of files that the program wrote itself, in ns.
    pub(super) rewritten_ns: u64,
}

impl Waits {
    pub(super) fn read(&mut self, sequence: &Sequence, onward: bool) {
        let first = &sequence.first;
        if first.kind.names() {
            let waited = sequence.accesses().filter(Access::waited);
            waited.for_each(|access| self.names.add(access.took));
            return;
        }
        if !first.kind.reads() || !first.waited() || first.extent.len > SMALL {
            return;
        }
        let first = if onward {
            &mut self.onward
        } else {
            &mut self.scattered
        };
        first.add(sequence.first.took);
        for access in sequence.accesses().skip(1) {
            self.onward.add(access.took);
        }
    }
}

/// A sample of bounded size.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) kept: Vec<u64>,
    /// One in this many is kept, as a power of two.
    thinned: u32,
    pub(super) seen: u64,
}

impl Sample {
    fn add(&mut self, value: u64) {
        self.seen += 1;
        if self.seen.trailing_zeros() < self.thinned {
            return;
        }
        self.kept.push(value);
        if self.kept.len() > SAMPLE {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinned += 1;
        }
    }

    pub(super) fn ninth_tenth(self) -> Option<u64> {
        self.tenths(9)
    }

    pub(super) fn median(self) -> Option<u64> {
        self.tenths(5)
    }

    /// The value below which this many tenths of the sample are.
    fn tenths(mut self, tenths: usize) -> Option<u64> {
        if self.kept.len() < ENOUGH_WAITS {
            return None;
        }
        self.kept.sort_unstable();
        self.kept.get(self.kept.len() * tenths / 10).copied()
    }
}
