//! The course of a run: the waiting of its reads over time, and samples of the progress of foreread and the devices.
//!
//! The program is not touched. Waiting reads are counted from reports that are made anyway. Samples are taken during polls that are made
//! anyway, each after a fixed part of the run's age, so their number grows with the logarithm of the time: 64 samples while the age grows
//! 2.7 times.
//!
//! Invariant: at most [`BINS`] bins and [`SAMPLES`] samples, however long the run.
//!
//! Data flow: accesses and looks → [`Timeline`] → [`Went`], in the account of the run ([`crate::Told`]).

use foreread_plan::{FileId, FileMeta, Sequence};
use foreread_sys::device::{Counters, Done};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

/// Bins of waits.
const BINS: usize = 1024;
/// The initial width of a bin, in ns. It doubles when the bins are full.
const WIDTH: u64 = 1 << 17;
/// Samples, at most.
const SAMPLES: usize = 2000;
/// A sample is taken when the run's age has grown by one part in this many since the last sample.
const AGE: u64 = 64;
/// Number of devices whose counters are read.
const DEVICES: usize = 4;
/// Files of which the waits are counted one by one, and of these, files that are named at the end.
const FILES: usize = 1 << 16;
const WORST: usize = 32;

/// Reads that waited, by the time at which they began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Length of a bin in ns.
    pub bin_ns: u64,
    /// Waiting of reads in each bin, summed over threads, in ns.
    pub waited_ns: Vec<u64>,
    /// Number of reads that waited, in each bin.
    pub reads: Vec<u64>,
}

/// State of a run at one moment. Counts are since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// ns into the run.
    pub at_ns: u64,
    /// Bytes of the plan requested, or found in memory.
    pub ahead_bytes: u64,
    /// Bytes of these that the program has read.
    pub passed_bytes: u64,
    /// Bytes that the devices have read, for anyone.
    pub device_bytes: u64,
    /// Requests that the devices had at that moment, of anyone.
    pub queue: u64,
}

/// A file and how long the program waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// Its path.
    pub path: String,
    /// Reads that waited.
    pub reads: u64,
    /// Their waiting, in ns.
    pub waited_ns: u64,
}

/// The course of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Went {
    /// Reads that waited.
    pub waits: Waits,
    /// Samples, in order of time.
    pub samples: Vec<Sample>,
    /// The devices of the program's files whose counters were read.
    pub devices: Vec<String>,
    /// The files that the program waited for longest.
    pub worst: Vec<Waited>,
}

/// The course of a run in progress.
#[derive(Default)]
pub(crate) struct Timeline {
    waits: Waits,
    samples: Vec<Sample>,
    devices: Vec<(u64, Counters, Done)>,
    known: FxHashSet<u64>,
    files: FxHashMap<FileId, Of>,
    /// Time of reads that waited and went on where the last read of their file ended, and of all.
    onward_ns: u64,
    waited_ns: u64,
}

/// How a file was read so far.
#[derive(Default)]
struct Of {
    end: u64,
    reads: u64,
    waited_ns: u64,
}

impl Timeline {
    /// A file was met: its device is the program's, too.
    pub(crate) fn file(&mut self, meta: &FileMeta) {
        if meta.size == 0 || self.devices.len() == DEVICES || !self.known.insert(meta.dev) {
            return;
        }
        if let Some(counters) = Counters::open(meta.dev)
            && let Some(done) = counters.read()
        {
            self.devices.push((meta.dev, counters, done));
        }
    }

    /// Reads were reported.
    pub(crate) fn accesses(&mut self, sequence: &Sequence) {
        let first = &sequence.first;
        if !first.kind.reads() {
            return;
        }
        let extent = sequence.extent();
        let waited_ns = match first.waited() {
            true => first.took.saturating_mul(sequence.count()),
            false => 0,
        };
        if self.files.len() < FILES || self.files.contains_key(&first.file) {
            let of = self.files.entry(first.file).or_default();
            if of.end == extent.offset {
                self.onward_ns = self.onward_ns.saturating_add(waited_ns);
            }
            of.end = extent.end();
            if waited_ns > 0 {
                of.reads += sequence.count();
                of.waited_ns = of.waited_ns.saturating_add(waited_ns);
            }
        }
        if waited_ns > 0 {
            self.waited_ns = self.waited_ns.saturating_add(waited_ns);
            self.waits.add(first.start, sequence.count(), waited_ns);
        }
    }

    /// Takes a sample, if one is due at this age of the run. `progress` returns the bytes requested and passed.
    pub(crate) fn look(&mut self, at_ns: u64, progress: impl FnOnce() -> Option<(u64, u64)>) {
        let last = self.samples.last().map_or(0, |sample| sample.at_ns);
        if self.samples.len() < SAMPLES && at_ns > last.saturating_add(at_ns / AGE) {
            self.sample(at_ns, progress());
        }
    }

    fn sample(&mut self, at_ns: u64, progress: Option<(u64, u64)>) {
        let sample = self.take(at_ns, progress);
        self.samples.push(sample);
    }

    fn take(&self, at_ns: u64, progress: Option<(u64, u64)>) -> Sample {
        let (ahead_bytes, passed_bytes) = progress.unwrap_or_default();
        let mut sample = Sample {
            at_ns,
            ahead_bytes,
            passed_bytes,
            ..Sample::default()
        };
        for (_, counters, before) in &self.devices {
            if let Some(now) = counters.read() {
                sample.device_bytes += now.bytes.saturating_sub(before.bytes);
                sample.queue += now.waiting;
            }
        }
        sample
    }

    /// The state at present: a sample, the number of reads that waited, and their waiting in ns. It costs one read of the devices'
    /// counters.
    pub(crate) fn now(&self, at_ns: u64, progress: Option<(u64, u64)>) -> (Sample, u64, u64) {
        let reads = self.waits.reads.iter().sum();
        (self.take(at_ns, progress), reads, self.waited_ns)
    }

    /// True if the program waited mostly for reads that began where the previous read of their file ended.
    pub(crate) fn is_onward(&self) -> bool {
        self.waited_ns > 0 && self.onward_ns >= self.waited_ns / 2
    }

    /// The finished course; `path` returns the paths of known files.
    pub(crate) fn finish(self, path: impl Fn(FileId) -> Option<String>) -> Went {
        let mut files: Vec<_> = self.files.into_iter().collect();
        files.retain(|(_, of)| of.waited_ns > 0);
        files.sort_by_key(|(file, of)| (std::cmp::Reverse(of.waited_ns), *file));
        let files = files.into_iter().take(WORST).filter_map(|(file, of)| {
            Some(Waited {
                path: path(file)?,
                reads: of.reads,
                waited_ns: of.waited_ns,
            })
        });
        let worst = files.collect();
        let devices = self
            .devices
            .iter()
            .filter_map(|(dev, ..)| Counters::name(*dev));
        Went {
            waits: self.waits,
            samples: self.samples,
            devices: devices.collect(),
            worst,
        }
    }
}

impl Waits {
    /// Reads that began at `start` and waited so long in all.
    pub fn add(&mut self, start: u64, reads: u64, waited_ns: u64) {
        self.bin_ns = self.bin_ns.max(WIDTH);
        while start / self.bin_ns >= BINS as u64 {
            self.bin_ns = self.bin_ns.saturating_mul(2);
            for counts in [&mut self.waited_ns, &mut self.reads] {
                *counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        let bin = (start / self.bin_ns) as usize;
        for (counts, more) in [(&mut self.waited_ns, waited_ns), (&mut self.reads, reads)] {
            if counts.len() <= bin {
                counts.resize(bin + 1, 0);
            }
            counts[bin] = counts[bin].saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, Extent, Kind, ThreadId};

    fn read(start: u64, offset: u64, took: u64) -> Sequence {
        Sequence::from(Access {
            file: FileId(0),
            extent: Extent::new(offset, 4096),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start,
            took,
        })
    }

    #[test]
    fn bins_and_samples_are_bounded_however_long_the_run_and_no_wait_is_lost() {
        let mut timeline = Timeline::default();
        let year = 365 * 86_400 * 1_000_000_000_u64;
        let mut at = 1_000_000;
        let mut reads = 0;
        while at < year {
            timeline.accesses(&read(at, at, 1_000_000));
            timeline.look(at, || Some((2, 1)));
            reads += 1;
            at += at / 100 + 1;
        }
        let total: u64 = timeline.waits.reads.iter().sum();
        assert_eq!(total, reads);
        assert!(timeline.waits.reads.len() <= BINS && timeline.waits.waited_ns.len() <= BINS);
        let samples = timeline.samples.len();
        assert!(samples > 500 && samples <= SAMPLES, "{samples}");
    }

    #[test]
    fn reads_that_go_on_are_told_from_scattered_ones_and_those_from_memory_do_not_count() {
        let mut onward = Timeline::default();
        let mut scattered = Timeline::default();
        for n in 0..10 {
            onward.accesses(&read(n, n * 4096, 1_000_000));
            scattered.accesses(&read(n, (10 - n) * 81_920, 1_000_000));
            scattered.accesses(&read(n, (10 - n) * 81_920 + 4096, 1_000));
        }
        assert!(onward.is_onward() && !scattered.is_onward());
        assert!(!Timeline::default().is_onward());
        let files = scattered.finish(|_| Some("/f".into())).worst;
        let all = Waited {
            path: "/f".into(),
            reads: 10,
            waited_ns: 10_000_000,
        };
        assert_eq!(files, [all]);
    }
}
