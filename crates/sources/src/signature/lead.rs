//! Number of a pattern's reads disclosed ahead of the program, and their likelihood.
//!
//! A pattern begins with a lead of [`FIRST`] reads, the paper's distance (section V.E). Later its lead is half the number of
//! reads that it predicted correctly, so that at least two thirds of the reads fetched for a pattern that breaks were made.
//! Simulated devices (`crates/engine/tests/sim/signatures.rs`) gained nearly most with half: of the gain of following the
//! record, the first run of eight cursors gained 92 % with a lead as long as their success, 96 % with half, 96 % with a
//! quarter; two cursors 95, 99 and 99.6 %; backward reads on a disk took 333, 385 and 464 ms, and 4 KiB at 2 MiB 3.99, 3.99
//! and 4.02 s.
//!
//! If a pattern has been right `n` times, its next `k` reads have a probability of `n / (n + k)`, Laplace's rule of succession; [`FIRST`]
//! successes are assumed.
//!
//! A pattern counts as broken when it was not used for much longer than usual, measured in reads of its file. If the program reads nothing
//! in between, it is broken at the second read elsewhere.

use foreread_plan::Odds;

/// Reads disclosed ahead of a pattern that was just found: the paper's prefetch distance.
pub(super) const FIRST: u64 = 8;
/// Reads disclosed ahead, at most. 4,096 reads of 4 KiB are 16 MiB, as many as the queue of a plan matches out of order. At
/// 10 µs a read and 128 under way, that covers the latency of any device measured here.
pub(super) const MOST: u64 = 4096;

/// A pattern is given up after a pause of this many times its usual pause.
const GONE: f32 = 64.0;

/// Frequency of an event, in counts of a clock that other events advance as well.
#[derive(Clone, Copy, Debug, Default)]
struct Tempo {
    at: u64,
    period: f32,
    deviation: f32,
}

impl Tempo {
    fn beat(&mut self, now: u64) {
        let gap = now.saturating_sub(self.at) as f32;
        self.at = now;
        if self.period == 0.0 {
            self.period = gap;
            return;
        }
        let error = gap - self.period;
        self.period += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
    }
}

/// A pattern's successes, and the reads disclosed ahead of the program.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    /// Reads predicted correctly since it was found or last broke.
    right: u64,
    /// Reads ahead of the program that were disclosed.
    disclosed: u64,
    /// The lead is extended when no more than this many of its reads are left.
    due_at: u64,
    /// By the reads of its file, and by those of all files.
    own: Tempo,
    all: Tempo,
    broken: bool,
}

impl Lead {
    /// The lead of a pattern found at this read of its file and of all files.
    pub(super) fn new(reads: u64, now: u64) -> Self {
        Self {
            right: 0,
            disclosed: 0,
            due_at: 0,
            own: Tempo {
                at: reads,
                ..Tempo::default()
            },
            all: Tempo {
                at: now,
                ..Tempo::default()
            },
            broken: false,
        }
    }

    /// The program made the predicted read.
    pub(super) fn hit(&mut self, reads: u64, now: u64) {
        self.own.beat(reads);
        self.all.beat(now);
        self.right += 1;
        self.disclosed = self.disclosed.saturating_sub(1);
        self.broken = false;
    }

    /// Reads predicted correctly in a row.
    pub(super) fn right(&self) -> u64 {
        self.right
    }

    /// Reads disclosed and not yet made.
    pub(super) fn disclosed(&self) -> u64 {
        self.disclosed
    }

    /// When it was read last, in reads of its file.
    pub(super) fn last(&self) -> u64 {
        self.own.at
    }

    /// The number of reads that may be disclosed ahead now.
    pub(super) fn reach(&self) -> u64 {
        if self.broken {
            0
        } else {
            (self.right / 2).clamp(FIRST, MOST)
        }
    }

    /// True if half of the disclosed reads were made and the lead is to be extended.
    pub(super) fn is_due(&self) -> bool {
        !self.broken && self.disclosed <= self.due_at && self.disclosed < self.reach()
    }

    /// The number of reads disclosed ahead is this from now on.
    pub(super) fn disclosed_to(&mut self, disclosed: u64) {
        self.disclosed = disclosed;
        self.due_at = disclosed / 2;
    }

    /// True if the lead is extended along with others that are due: a quarter of its disclosed reads were made.
    pub(super) fn joins(&self) -> bool {
        !self.broken
            && self.disclosed <= self.due_at + self.due_at / 2
            && self.disclosed < self.reach()
    }

    /// All its disclosed reads are void.
    pub(super) fn void(&mut self) {
        self.disclosed_to(0);
    }

    /// True if the program seems to have left the pattern, judged at this read of its file.
    pub(super) fn is_overdue(&self, reads: u64) -> bool {
        let usual = self.own.period.max(1.0) + 4.0 * self.own.deviation;
        !self.broken && reads.saturating_sub(self.own.at) as f32 > usual + 1.0
    }

    /// The program has left the pattern: none of its reads are disclosed until one is made. Returns the number of reads disclosed in vain.
    pub(super) fn breaks(&mut self) -> u64 {
        let vain = self.disclosed;
        self.void();
        self.broken = true;
        self.right = 0;
        self.own.deviation *= 2.0;
        vain
    }

    /// True if the program has made so many other reads since then that it is not expected to return.
    pub(super) fn is_gone(&self, now: u64) -> bool {
        now.saturating_sub(self.all.at) as f32 > GONE * self.pace()
    }

    /// Another pattern of the same reads has replaced it.
    pub(super) fn renews(&mut self) {
        self.broken = false;
    }

    /// When the read is to be expected that is `ahead` reads further on (0: the next), in reads of all files from `now`.
    pub(super) fn when(&self, ahead: u64, now: u64) -> f32 {
        self.pace() * (ahead + 1) as f32 - now.saturating_sub(self.all.at) as f32
    }

    /// Reads of all files from one of its reads to the next.
    pub(super) fn pace(&self) -> f32 {
        self.all.period.max(1.0)
    }

    /// The chance that the read comes that is `ahead` reads from now, in 255ths.
    pub(super) fn odds(&self, ahead: u64) -> Odds {
        let right = self.right.saturating_add(FIRST);
        Odds::of(right, right.saturating_add(ahead))
    }
}

/// Reads that a new pattern must predict correctly before it is disclosed: none at first. The number grows with each pattern that breaks
/// early, because random reads form a pattern every now and then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caution(u64);

/// Reads that a new pattern must predict correctly before it is disclosed, at most.
const CAUTION: u64 = 63;

impl Caution {
    /// True if this pattern has proved itself.
    pub(super) fn allows(self, lead: &Lead) -> bool {
        lead.right >= self.0
    }

    /// A pattern was right once more.
    pub(super) fn paid(&mut self, lead: &Lead) {
        if lead.right == FIRST.max(2 * self.0) {
            self.0 /= 2;
        }
    }

    /// A pattern broke after this many correct predictions, with this many reads disclosed in vain.
    pub(super) fn broke(&mut self, right: u64, vain: u64) {
        if vain > 0 && right < FIRST {
            self.0 = (2 * self.0 + 1).min(CAUTION);
        }
    }
}

/// Decides when to search for a pattern if none has been found for long: ever less often, so that random reads cost next to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    fruitless: u32,
    pause: u32,
    left: u32,
}

/// Reads examined in a row before a pause, and reads in the first pause.
const TRY: u32 = 256;
/// Reads in the longest pause. A pattern that begins in it is found after 0.3 s of reads that take 80 µs each.
const LONGEST: u32 = 4096;

impl Pause {
    /// True if this read is to be examined.
    pub(super) fn looks(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Notes whether the examined read was predicted. True if a pause begins.
    pub(super) fn note(&mut self, predicted: bool) -> bool {
        if predicted {
            self.fruitless = self.fruitless.saturating_sub(2);
            self.pause -= u32::from(self.fruitless == 0) * (self.pause / 2);
            return false;
        }
        self.fruitless += 1;
        if self.fruitless < TRY {
            return false;
        }
        self.pause = (2 * self.pause).clamp(TRY, LONGEST);
        *self = Self {
            fruitless: 0,
            left: self.pause,
            pause: self.pause,
        };
        true
    }
}
