//! The receivers of observed accesses: the recorder, the session of a record, the engine, the timeline.
//!
//! Data flow: [`Watch`](super::watch::Watch) → [`Sinks`] → each of them.

use std::time::Duration;

use foreread_core::SoFar;
use foreread_plan::{FileId, FileMeta, Sequence, ThreadId, ThreadMeta};

use super::follow::Follower;
use super::live::{How, Live};
use super::record::Recorder;
use super::served::Served;
use super::timeline::Timeline;
use super::unseen::Explained;
use super::watch::Sink;

/// The receivers of this run.
pub(super) struct Sinks {
    pub(super) recorder: Option<Recorder>,
    pub(super) follower: Option<Follower>,
    pub(super) served: Option<Served>,
    pub(super) explained: Explained,
    pub(super) timeline: Timeline,
    /// Bytes that the program read past the page cache.
    pub(super) direct_bytes: u64,
    /// True if the program has the collective cache, which serves reads that pass the page cache by as well.
    has_collective: bool,
}

impl Sinks {
    pub(super) fn new(
        recorder: Option<Recorder>,
        served: Option<Served>,
        has_collective: bool,
    ) -> Self {
        Self {
            recorder,
            follower: None,
            served,
            explained: Explained::default(),
            timeline: Timeline::default(),
            direct_bytes: 0,
            has_collective,
        }
    }

    /// Samples the progress of the device and of fetching, at this age of the run.
    pub(super) fn sample(&mut self, age: Duration) {
        let (served, follower) = (&self.served, &self.follower);
        let progress = || progress(served.as_ref(), follower.as_ref());
        self.timeline.look(age.as_nanos() as u64, progress);
    }

    /// The progress of the run, for `foreread top`.
    pub(super) fn live(&self, age: Duration, is_observed: bool) -> Live {
        let (served, follower) = (self.served.as_ref(), self.follower.as_ref());
        let progress = progress(served, follower);
        let (sample, reads, waited_ns) = self.timeline.now(age.as_nanos() as u64, progress);
        let how = match (served, follower) {
            (Some(served), _) if served.has_left() => How::Strayed,
            (Some(_), _) => How::Served,
            (None, Some(_)) => How::Guessed,
            (None, None) if is_observed => How::Observed,
            (None, None) => How::Alone,
        };
        let so_far = [served.map(Served::so_far), follower.map(Follower::so_far)];
        let so_far = so_far.into_iter().flatten();
        let so_far = so_far.reduce(|one, other| SoFar {
            useful: one.useful + other.useful,
            late: one.late + other.late,
            wasted: one.wasted.and_then(|wasted| Some(wasted + other.wasted?)),
            // Both were shown these reads.
            missed: one.missed,
        });
        let so_far = so_far.unwrap_or_default();
        Live {
            how,
            is_observed,
            at_ns: sample.at_ns,
            ahead_bytes: sample.ahead_bytes,
            passed_bytes: sample.passed_bytes,
            device_bytes: sample.device_bytes,
            queue: sample.queue,
            reads,
            waited_ns,
            useful_bytes: so_far.useful,
            late_bytes: so_far.late,
            wasted_bytes: so_far.wasted,
            missed_bytes: so_far.missed,
        }
    }

    /// The program is not observed from now on, or was not all the time.
    pub(super) fn look_away(&mut self) {
        self.follower.iter().for_each(Follower::look_away);
        self.served.iter_mut().for_each(Served::look_away);
    }
}

/// Bytes fetched, or found in memory, and of these, bytes that the program has read.
fn progress(served: Option<&Served>, follower: Option<&Follower>) -> Option<(u64, u64)> {
    match (served, follower) {
        (Some(served), _) => Some(served.progress()),
        (None, Some(follower)) => Some(follower.progress()),
        (None, None) => None,
    }
}

impl Sink for Sinks {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        self.timeline.file(meta);
        if let Some(recorder) = &mut self.recorder {
            recorder.file(id, meta);
        }
        if let Some(follower) = &mut self.follower {
            follower.file(id, meta);
        }
        if let Some(served) = &mut self.served {
            served.file(id, meta);
        }
    }

    fn named(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        if let Some(recorder) = &mut self.recorder {
            recorder.file(id, meta);
        }
        if let Some(follower) = &mut self.follower {
            follower.named(id, meta);
        }
        if let Some(served) = &mut self.served {
            served.named(id, meta);
        }
    }

    fn trusts(&self, id: FileId) -> bool {
        self.served.as_ref().is_some_and(|one| one.trusts(id))
    }

    fn opened(&mut self, id: FileId, meta: &FileMeta) {
        if let Some(follower) = &mut self.follower {
            follower.opened(id, meta);
        }
    }

    fn grown(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        if let Some(follower) = &mut self.follower {
            follower.grown(id, meta);
        }
    }

    fn doubted(&mut self, id: FileId) {
        if let Some(follower) = &mut self.follower {
            follower.doubted(id);
        }
        if let Some(served) = &mut self.served {
            served.doubted(id);
        }
    }

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        if let Some(recorder) = &mut self.recorder {
            recorder.thread(id, meta);
        }
    }

    fn accesses(&mut self, sequence: Sequence) {
        self.explained.accesses(&sequence);
        self.timeline.accesses(&sequence);
        if let Some(recorder) = &mut self.recorder {
            recorder.accesses(sequence);
        }
        let file = sequence.first.file;
        let is_served = self.served.as_ref().is_some_and(|one| one.has(file));
        if let Some(follower) = self.follower.as_mut().filter(|_| !is_served) {
            follower.accesses(sequence);
        }
        if let Some(served) = &mut self.served {
            served.accesses(sequence);
        }
    }

    fn passes_cache_by(&mut self, sequence: Sequence) {
        if self.has_collective {
            self.accesses(sequence);
        } else {
            self.direct_bytes += sequence.extent().len;
        }
    }
}
