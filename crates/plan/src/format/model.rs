//! Predicts an access from the previous ones.
//!
//! Encoder and decoder run the same model over the same accesses, so the encoder stores only deviations from the prediction. The model is
//! reset at each block, and has at most one entry per access of the block.
//!
//! The offset is predicted by that one of four rules which has recently cost the fewest bits in this stream (a stream is one thread reading
//! one file): the last stride again, the end of the stream's previous access, the end of any thread's previous access to the file, or no
//! prediction, which suits random access best.

use rustc_hash::FxHashMap;

/// A rule's running cost forgets one part in `1 << DECAY` at each access.
const DECAY: u32 = 3;

/// Bits are counted in units of 1/16 so that the running cost decays smoothly.
const BIT: u32 = 16;

/// Expecting nothing is given up only for a rule that saves three bits an access.
///
/// Random offsets are closer to each other than to zero, but a distance's sign costs a
/// bit, and changing between rules costs more: without this, chance picks the rule.
const MARGIN: u32 = (3 * BIT) << DECAY;

/// The rule that expects nothing.
const NOTHING: usize = 3;

#[derive(Default)]
pub(super) struct Model {
    threads: Vec<Thread>,
    streams: Vec<Stream>,
    /// The end of the latest access to each file.
    file_ends: Vec<u64>,
    thread_slots: FxHashMap<u32, usize>,
    stream_slots: FxHashMap<(u32, u32), usize>,
    file_slots: FxHashMap<u32, usize>,
    /// The latest access's thread, its slot, its file, and its start in µs.
    pub(super) last_thread: u32,
    last_slot: Option<usize>,
    last_file: u32,
    last_start: u64,
}

/// A thread within the block.
pub(super) struct Thread {
    /// The file of its latest access.
    pub(super) file: u32,
    /// The end of its latest access, in µs.
    pub(super) end: u64,
    stream: Option<usize>,
}

/// One thread reading one file.
struct Stream {
    offset: u64,
    stride: u64,
    end: u64,
    len: u64,
    file_slot: usize,
    costs: [u32; 4],
}

impl Stream {
    fn candidates(&self, file_end: u64) -> [u64; 4] {
        [self.offset.wrapping_add(self.stride), self.end, file_end, 0]
    }

    fn best(&self) -> usize {
        let mut best = 0;
        for rule in 1..NOTHING {
            if self.costs[rule] < self.costs[best] {
                best = rule;
            }
        }
        if self.costs[NOTHING] < self.costs[best] + MARGIN {
            best = NOTHING;
        }
        best
    }
}

/// The prediction of a stream's next access.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Model {
    pub(super) fn clear(&mut self) {
        self.threads.clear();
        self.streams.clear();
        self.file_ends.clear();
        self.thread_slots.clear();
        self.stream_slots.clear();
        self.file_slots.clear();
        self.last_thread = 0;
        self.last_slot = None;
        self.last_file = 0;
        self.last_start = 0;
    }

    /// The slot of `thread`. A new thread is expected to go on where the latest access was.
    pub(super) fn thread(&mut self, thread: u32) -> usize {
        if let Some(slot) = self.last_slot
            && thread == self.last_thread
        {
            return slot;
        }
        *self.thread_slots.entry(thread).or_insert_with(|| {
            self.threads.push(Thread {
                file: self.last_file,
                end: self.last_start,
                stream: None,
            });
            self.threads.len() - 1
        })
    }

    pub(super) fn of(&self, thread_slot: usize) -> &Thread {
        &self.threads[thread_slot]
    }

    /// The slot of the stream of `thread` reading `file`.
    pub(super) fn stream(&mut self, thread_slot: usize, thread: u32, file: u32) -> usize {
        let known = &self.threads[thread_slot];
        if let Some(slot) = known.stream
            && known.file == file
        {
            return slot;
        }
        *self.stream_slots.entry((thread, file)).or_insert_with(|| {
            let file_slot = *self.file_slots.entry(file).or_insert_with(|| {
                self.file_ends.push(0);
                self.file_ends.len() - 1
            });
            self.streams.push(Stream {
                offset: 0,
                stride: 0,
                end: 0,
                len: 0,
                file_slot,
                // A new stream is expected to be regular.
                costs: [0, 0, 0, MARGIN],
            });
            self.streams.len() - 1
        })
    }

    pub(super) fn expected(&self, stream_slot: usize) -> Expected {
        let stream = &self.streams[stream_slot];
        Expected {
            offset: stream.candidates(self.file_ends[stream.file_slot])[stream.best()],
            len: stream.len,
        }
    }

    /// Notes an access at `offset` by the thread of the latest one, in the same file and of the same length, and returns the latest one's
    /// end in µs. `None` if more than its time has to be stored: then it must be learnt.
    #[inline]
    pub(super) fn go_on(&mut self, offset: u64, start: u64, took: u64) -> Option<u64> {
        let thread = self.threads.get_mut(self.last_slot?)?;
        let stream = self.streams.get_mut(thread.stream?)?;
        let file_end = self.file_ends.get_mut(stream.file_slot)?;
        // One by one: comparing arrays would build them in memory first, which takes longer than everything else.
        let [stride, end, anyones, _] = stream.candidates(*file_end);
        let agree = stride == offset && end == offset && anyones == offset;
        let [costs @ .., nothing] = stream.costs;
        let [first, second, third] = costs;
        if !agree || nothing < first.min(second).min(third) + MARGIN {
            return None;
        }
        let [first, second, third] = costs.map(|cost| charged(cost, 0));
        let nothing = charged(nothing, residual(offset, 0).1);
        stream.costs = [first, second, third, nothing];
        stream.offset = offset;
        stream.end = offset.wrapping_add(stream.len);
        *file_end = stream.end;
        self.last_start = start;
        Some(std::mem::replace(&mut thread.end, start.wrapping_add(took)))
    }

    /// Notes an access: `start` and `took` in µs.
    pub(super) fn learn(&mut self, thread_slot: usize, stream_slot: usize, access: &Seen) {
        let stream = &mut self.streams[stream_slot];
        let file_end = &mut self.file_ends[stream.file_slot];
        let candidates = stream.candidates(*file_end);
        for (cost, candidate) in stream.costs.iter_mut().zip(candidates) {
            *cost = charged(*cost, residual(access.offset, candidate).1);
        }
        stream.stride = access.offset.wrapping_sub(stream.offset);
        stream.offset = access.offset;
        stream.len = access.len;
        stream.end = access.offset.wrapping_add(access.len);
        *file_end = stream.end;

        let thread = &mut self.threads[thread_slot];
        thread.file = access.file;
        thread.end = access.start.wrapping_add(access.took);
        thread.stream = Some(stream_slot);
        self.last_thread = access.thread;
        self.last_slot = Some(thread_slot);
        self.last_file = access.file;
        self.last_start = access.start;
    }
}

/// A rule's running cost, after it was `distance` off.
fn charged(cost: u32, distance: u64) -> u32 {
    let bits = u64::BITS - distance.leading_zeros();
    cost - (cost >> DECAY) + bits * BIT
}

/// An access as the format keeps it: times in µs.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) thread: u32,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) start: u64,
    pub(super) took: u64,
}

/// The distance of `offset` from `expected`: true if it is in bytes and not in pages, and the zigzagged distance.
pub(super) fn residual(offset: u64, expected: u64) -> (bool, u64) {
    const PAGE: i64 = crate::PAGE as i64;
    let distance = offset.wrapping_sub(expected) as i64;
    if distance % PAGE == 0 {
        (false, zigzag(distance / PAGE))
    } else {
        (true, zigzag(distance))
    }
}

/// The offset that is `distance` (as [`residual`] gives it) from `expected`.
pub(super) fn apply(expected: u64, bytes: bool, distance: u64) -> u64 {
    let unit = if bytes { 1 } else { crate::PAGE };
    expected.wrapping_add((unzigzag(distance) as u64).wrapping_mul(unit))
}

/// Signed numbers as unsigned ones, the small in magnitude first.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
