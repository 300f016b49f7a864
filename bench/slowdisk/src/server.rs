//! The model in real time: a request enters the model when the kernel sends it, and its answer is sent when the model completes
//! it.
//!
//! A request is executed on the backing memory at once (the data is copied while the "disk" works), entered into the model, and stored. One
//! thread sleeps until the model's next completion and sends due answers. A request whose bytes are in several places is entered once for
//! each place, and answered after the last.
//!
//! The path to the server and back (block layer, FUSE, wake-ups) takes 50 to 200 µs of its own. So that a program sees the model's time, a
//! server first measures this path: it serves with a fixed time, and the interval between the due time of an answer and the next request of
//! a reader that only reads is the path's time, both directions and the timer's lateness together. Answers are then sent earlier by that
//! time, though never before the request has arrived.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_disk::{Completion, Disk, Layout, Model, Request, network};
use fuser::{Errno, ReplyData, ReplyWrite};
use serde::{Deserialize, Serialize};

/// The longest lead, in ns: a longer path is caused by a busy machine and not typical.
const MOST_LEAD_NS: u64 = 250_000;

/// Counts of a slow disk since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads that reached the disk.
    pub reads: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Writes that reached the disk.
    pub writes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
}

/// Bits of a model's request number that number the places of one request.
const PLACE_BITS: u32 = 16;

/// The answer to a completed request.
pub(crate) enum Answer {
    Read(ReplyData, Vec<u8>),
    Write(ReplyWrite, u32),
}

impl Answer {
    fn send(self) {
        match self {
            Answer::Read(reply, data) => reply.data(&data),
            Answer::Write(reply, len) => reply.written(len),
        }
    }
}

/// A model in real time. Dropping it sends pending answers and ends its thread.
pub(crate) struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    origin: Instant,
    state: Mutex<Service>,
    wake: Condvar,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
}

struct Service {
    disk: Disk,
    /// Pending answers, with the number of unfinished places of each request.
    answers: HashMap<u64, (Answer, usize)>,
    next: u64,
    /// How much earlier than due an answer is sent, ns.
    lead: u64,
    /// Arrival times of requests, while the path is being measured.
    arrivals: Option<Vec<u64>>,
    /// Wake-up time of the thread; None while it is awake.
    asleep_until: Option<u64>,
    stop: bool,
}

impl Service {
    /// Marks one place of a request as completed; returns the answer after the last one.
    fn finish(&mut self, number: u64) -> Option<Answer> {
        let (_, left) = self.answers.get_mut(&number)?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.answers.remove(&number).map(|(answer, _)| answer)
    }
}

impl Server {
    /// A server that measures the path until it is given a model.
    pub(crate) fn start() -> std::io::Result<Server> {
        let shared = Arc::new(Shared {
            origin: Instant::now(),
            state: Mutex::new(Service {
                disk: Disk::new(Model::NetworkSsd, Layout::new(0)),
                answers: HashMap::new(),
                next: 0,
                lead: 0,
                arrivals: Some(Vec::new()),
                asleep_until: None,
                stop: false,
            }),
            wake: Condvar::new(),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        });
        let thread = std::thread::Builder::new()
            .name("slowdisk-timer".into())
            .spawn({
                let shared = shared.clone();
                move || shared.answer_in_time()
            })?;
        Ok(Server {
            shared,
            thread: Some(thread),
        })
    }

    /// Serves `model` from now on; returns the measured time of the path, in ns.
    pub(crate) fn become_disk(&self, model: Model, layout: Layout) -> u64 {
        let mut state = self.shared.lock();
        let arrivals = state.arrivals.take().unwrap_or_default();
        let mut ways: Vec<u64> = arrivals
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).saturating_sub(network::LATENCY_NS))
            .collect();
        ways.sort_unstable();
        let median = ways.get(ways.len() / 2).copied().unwrap_or(0);
        state.lead = median.min(MOST_LEAD_NS);
        state.disk = Disk::new(model, layout);
        state.lead
    }

    /// The server's clock, in ns.
    pub(crate) fn now(&self) -> u64 {
        self.shared.now()
    }

    /// Submits a request for `places` (offset, length in bytes) that arrived at `arrived`. `answer` is sent when the model has
    /// completed all of them.
    pub(crate) fn submit(&self, arrived: u64, places: &[(u64, u32)], answer: Answer) {
        let write = matches!(answer, Answer::Write(..));
        self.count(places.iter().map(|(_, len)| len).sum(), write);
        let mut state = self.shared.lock();
        if let Some(arrivals) = &mut state.arrivals {
            arrivals.push(arrived);
        }
        let number = state.next;
        state.next += 1;
        state.answers.insert(number, (answer, places.len()));
        for (place, &(offset, len)) in (0..).zip(places) {
            let request = Request {
                id: number << PLACE_BITS | place,
                offset,
                len,
                write,
            };
            state.disk.submit(arrived, request);
        }
        let sooner = match (state.disk.next_event(), state.asleep_until) {
            (Some(event), Some(until)) => event < until,
            _ => false,
        };
        if sooner {
            state.asleep_until = None;
            self.shared.wake.notify_one();
        }
    }

    /// Counts a request that does not enter the model.
    pub(crate) fn count(&self, len: u32, write: bool) {
        let (requests, bytes) = if write {
            (&self.shared.writes, &self.shared.written_bytes)
        } else {
            (&self.shared.reads, &self.shared.read_bytes)
        };
        requests.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(u64::from(len), Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            reads: get(&self.shared.reads),
            read_bytes: get(&self.shared.read_bytes),
            writes: get(&self.shared.writes),
            written_bytes: get(&self.shared.written_bytes),
        }
    }

    /// Answers a read of the counts, as JSON.
    pub(crate) fn tell(&self, offset: u64, size: u32, reply: ReplyData) {
        match serde_json::to_vec(&self.counters()) {
            Ok(mut text) => {
                text.push(b'\n');
                let start = text.len().min(offset as usize);
                let end = text.len().min(start + size as usize);
                reply.data(&text[start..end]);
            }
            Err(_) => reply.error(Errno::EIO),
        }
    }

    /// Empties the disk's own cache.
    pub(crate) fn forget(&self) {
        let now = self.now();
        self.shared.lock().disk.forget(now);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("foreread slowdisk: the timer thread panicked");
        }
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Service> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer_in_time(&self) {
        hurry();
        let mut state = self.lock();
        loop {
            let now = self.now() + state.lead;
            let done = due(&mut state.disk, now);
            if !done.is_empty() {
                let due: Vec<Answer> = done
                    .iter()
                    .filter_map(|completion| state.finish(completion.id >> PLACE_BITS))
                    .collect();
                drop(state);
                due.into_iter().for_each(Answer::send);
                state = self.lock();
                continue;
            }
            let next = state.disk.next_event();
            if state.stop && next.is_none() {
                return;
            }
            state.asleep_until = Some(next.unwrap_or(u64::MAX));
            state = match next {
                Some(at) => {
                    let left = Duration::from_nanos(at.saturating_sub(now));
                    let (state, _) = self
                        .wake
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner);
                    state
                }
                None => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
            state.asleep_until = None;
        }
    }
}

/// The disk's completions until `now`, which is ahead of real time. The disk's own clock advances only to the last of these
/// completions: otherwise a request that arrives in between would count as arriving at `now`, and the lead would be lost.
fn due(disk: &mut Disk, now: u64) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(event) = disk.next_event().filter(|&event| event <= now) {
        done.extend(disk.advance(event));
    }
    done
}

/// Requests exact timers and a high priority, because a disk does not wait for the processor. Without the privilege the thread is
/// only later when the machine is loaded.
pub(crate) fn hurry() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If an answer is sent 100 µs early and 10 µs late, the next request arrives before the previous one's due time. The next
    /// request must start at that due time, and not at the time when the thread searched for other due answers.
    #[test]
    fn a_request_that_follows_an_early_answer_is_not_put_off() {
        let mut disk = Disk::new(Model::NetworkSsd, Layout::new(1 << 30));
        let request = |id| Request {
            id,
            offset: 0,
            len: 4096,
            write: false,
        };
        disk.submit(0, request(1));
        let lead = 100_000;
        let woken = network::LATENCY_NS - lead + 10_000;
        assert_eq!(due(&mut disk, woken + lead).len(), 1);
        assert!(due(&mut disk, woken + 20_000 + lead).is_empty());
        disk.submit(woken + 60_000, request(2));
        assert_eq!(disk.next_event(), Some(2 * network::LATENCY_NS));
    }

    #[test]
    fn nothing_is_done_before_it_is_due() {
        let mut disk = Disk::new(Model::NetworkSsd, Layout::new(1 << 30));
        for id in 0..3 {
            let request = Request {
                id,
                offset: 0,
                len: 4096,
                write: false,
            };
            disk.submit(id * 1000, request);
        }
        let done = |disk: &mut Disk, now| -> Vec<u64> {
            due(disk, now).iter().map(|done| done.id).collect()
        };
        assert!(done(&mut disk, network::LATENCY_NS - 1).is_empty());
        assert_eq!(done(&mut disk, network::LATENCY_NS + 1000), [0, 1]);
        assert_eq!(done(&mut disk, u64::MAX), [2]);
    }
}
