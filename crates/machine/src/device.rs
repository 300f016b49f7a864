//! A device: when does a request complete?
//!
//! Requests start in the order of sending, with a limit of requests in flight; each takes the latency, and then its turn in the transfer.
//! While the device stalls nothing completes. A model of `foreread-disk` can replace it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use foreread_disk::{Disk, Layout, Model, Request};
use rustc_hash::FxHashMap;

use crate::PAGE;
use crate::processors::TaskId;

/// Bytes of a modelled disk.
const DISK: u64 = 64 << 30;

/// A device. Times are in ns.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// Time of one request, without its transfer.
    pub latency: u64,
    /// Requests served at the same time.
    pub depth: usize,
    /// Bytes a second.
    pub bandwidth: u64,
    /// Requests in flight that the kernel permits; further senders wait.
    pub queue: usize,
    /// When nothing completes.
    pub stall: Range<u64>,
    /// A model that completes requests, in place of latency, depth, bandwidth and stall.
    pub model: Option<Model>,
}

/// Pages of a file.
pub(crate) type Part = (u32, Range<u64>);

pub(crate) struct Device {
    spec: DeviceSpec,
    disk: Option<Disk>,
    /// When each of the requests that it works on ends.
    working: BinaryHeap<Reverse<u64>>,
    /// Until when data is transferred.
    transfer: u64,
    sent: u64,
    done: Done,
    bytes: u64,
    under_way: FxHashMap<u64, UnderWay>,
    /// Tasks that wait for room in the queue.
    waiting: Vec<TaskId>,
}

struct UnderWay {
    parts: Vec<Part>,
    /// `None` where the disk model says when it completes.
    due: Option<u64>,
    waiters: Vec<TaskId>,
}

/// Counts of a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests completed.
    pub requests: u64,
    /// Pages of them.
    pub pages: u64,
    /// Requests that it has.
    pub waiting: u64,
}

/// Result of a request.
pub(crate) struct Arrived {
    pub(crate) parts: Vec<Part>,
    pub(crate) waiters: Vec<TaskId>,
}

impl Device {
    pub(crate) fn new(spec: &DeviceSpec) -> Self {
        Self {
            spec: spec.clone(),
            disk: spec.model.map(|model| Disk::new(model, Layout::new(DISK))),
            working: BinaryHeap::new(),
            transfer: 0,
            sent: 0,
            done: Done::default(),
            bytes: 0,
            under_way: FxHashMap::default(),
            waiting: Vec::new(),
        }
    }

    pub(crate) fn done(&self) -> Done {
        Done {
            waiting: self.under_way.len() as u64,
            ..self.done
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if the kernel accepts another request.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.len() < self.spec.queue
    }

    /// The task waits for room.
    pub(crate) fn await_room(&mut self, task: TaskId) {
        self.waiting.push(task);
    }

    /// The task waits for a request; false if that is done.
    pub(crate) fn await_request(&mut self, request: u64, task: TaskId) -> bool {
        let request = self.under_way.get_mut(&request);
        request.is_some_and(|request| {
            request.waiters.push(task);
            true
        })
    }

    /// Sends a request, at this page of the device.
    pub(crate) fn send(&mut self, now: u64, at: u64, parts: Vec<Part>) -> u64 {
        let pages: u64 = parts.iter().map(|(_, pages)| pages.end - pages.start).sum();
        let len = pages * PAGE;
        self.bytes += len;
        self.sent += 1;
        let id = self.sent;
        let due = match &mut self.disk {
            Some(disk) => {
                let request = Request {
                    id,
                    offset: at * PAGE % DISK,
                    len: len as u32,
                    write: false,
                };
                disk.submit(now, request);
                None
            }
            None => Some(self.complete(now, len)),
        };
        let under_way = UnderWay {
            parts,
            due,
            waiters: Vec::new(),
        };
        self.under_way.insert(id, under_way);
        id
    }

    /// Completion time of a request with this many bytes.
    fn complete(&mut self, now: u64, len: u64) -> u64 {
        let mut start = now;
        while self.working.len() >= self.spec.depth {
            let Some(Reverse(end)) = self.working.pop() else {
                break;
            };
            start = start.max(end);
        }
        let found = start + self.spec.latency;
        let took = len * 1_000_000_000 / self.spec.bandwidth;
        let mut end = found.max(self.transfer) + took;
        if self.spec.stall.contains(&end) {
            end = self.spec.stall.end + self.spec.latency;
        }
        self.transfer = end;
        self.working.push(Reverse(end));
        end
    }

    /// When a request completes, unless the disk model says that.
    pub(crate) fn due(&self, request: u64) -> Option<u64> {
        self.under_way.get(&request)?.due
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.disk.as_ref()?.next_event()
    }

    /// Lets the disk model go on; the requests that are done.
    pub(crate) fn advance(&mut self, now: u64) -> Vec<u64> {
        let done = self.disk.as_mut().map(|disk| disk.advance(now));
        let done = done.unwrap_or_default().into_iter();
        done.map(|one| one.id).collect()
    }

    /// A request is done.
    pub(crate) fn arrived(&mut self, request: u64) -> Arrived {
        let done = self.under_way.remove(&request);
        let (parts, mut waiters) =
            done.map_or_else(Default::default, |one| (one.parts, one.waiters));
        waiters.append(&mut self.waiting);
        self.done.requests += 1;
        self.done.pages += parts
            .iter()
            .map(|(_, pages)| pages.end - pages.start)
            .sum::<u64>();
        Arrived { parts, waiters }
    }
}
