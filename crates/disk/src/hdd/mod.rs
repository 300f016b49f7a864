//! `hdd-7200`: a disk with one arm, spinning platters and a queue.
//!
//! The cost of a request follows from the positions of arm and platter ([`geometry`]): a seek by the published curve, a wait until the
//! sector arrives, and the transfer. While idle the drive continues to read the track into a cache of segments ([`cache`]); requests found
//! there cost only the interface. Of the first 32 waiting requests it serves the one whose data reaches the head soonest, unless one has
//! waited too long.
//!
//! Simplifications, each on purpose: exact positioning, no write cache, no
//! defects. The image is the first bytes of the disk, where tracks are longest
//! and seeks among them short. `Layout::begins` moves it inward, where a track
//! holds less; `Layout::stretch` spreads its cylinders over the stroke for seeks
//! only, so that sequential reading is the same.

mod cache;
mod geometry;

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::{Device, Layout, Request};
use cache::Cache;
use geometry::Geometry;
pub use geometry::{
    CAPACITY, FULL_STROKE_NS, HEADS, REVOLUTION_NS, TRACK_SWITCH_NS, ZONES, seek_ns, track_bytes,
};

/// Requests among which the drive chooses (native command queuing).
pub const QUEUE: usize = 32;
/// A request that has waited this long goes first, ns.
pub const PATIENCE_NS: u64 = 500_000_000;
/// Time of the drive's electronics per request, ns.
pub const OVERHEAD_NS: u64 = 50_000;
/// Additional seek time before a write may begin, ns.
pub const WRITE_SETTLE_NS: u64 = 1_000_000;
/// Bytes a second of the interface (SATA, 3 Gbit/s).
pub const INTERFACE_BYTES_PER_S: u64 = 300_000_000;

#[derive(Clone, Copy)]
struct Waiting {
    request: Request,
    arrived: u64,
    /// When the drive took it into its queue; `arrived` until then.
    taken: u64,
}

pub(crate) struct Hdd {
    geometry: Geometry,
    /// The disk's byte that is the image's first.
    begins: u64,
    cache: Cache,
    /// The requests from which the drive chooses, at most `QUEUE`, in order of arrival.
    queue: Vec<Waiting>,
    /// Requests that the host holds back while the queue is full, in order of arrival.
    held_back: VecDeque<Waiting>,
    /// When the arm's request is done; its completion is on the agenda.
    busy_until: Option<u64>,
    /// When the interface is free.
    interface: u64,
}

/// The arm's movement for a request.
struct ArmMove {
    /// When the first byte wanted passes under the head, ns.
    begins: u64,
    /// When the last one has, ns.
    ends: u64,
    /// True if the current stream continues.
    streams: bool,
}

impl Hdd {
    pub(crate) fn new(layout: Layout) -> Hdd {
        Hdd {
            geometry: Geometry::new(layout),
            begins: layout.begins,
            cache: Cache::new(),
            queue: Vec::with_capacity(QUEUE),
            held_back: VecDeque::new(),
            busy_until: None,
            interface: 0,
        }
    }

    /// Serves a request from the cache, if all of it is there.
    fn hit(&mut self, now: u64, waiting: &Waiting, agenda: &mut Agenda) -> bool {
        let request = &waiting.request;
        let head_is_free = self.busy_until.is_none();
        if request.write || !self.cache.serve(&self.geometry, now, request, head_is_free) {
            return false;
        }
        let transfer = u64::from(request.len) * 1_000_000_000 / INTERFACE_BYTES_PER_S;
        let ready = now.max(waiting.arrived + OVERHEAD_NS);
        self.interface = self.interface.max(ready) + transfer;
        agenda.put(self.interface, request.id);
        true
    }

    /// Serves from the cache or queues for the arm.
    fn take(&mut self, now: u64, waiting: Waiting, agenda: &mut Agenda) {
        if !self.hit(now, &waiting, agenda) {
            self.queue.push(waiting);
        }
    }

    /// Gives the free arm its next request.
    fn dispatch(&mut self, now: u64, agenda: &mut Agenda) {
        // Data read by the head meanwhile need no arm.
        let waiting = std::mem::take(&mut self.queue);
        for waiting in waiting {
            self.take(now, waiting, agenda);
        }
        while self.queue.len() < QUEUE
            && let Some(waiting) = self.held_back.pop_front()
        {
            self.take(
                now,
                Waiting {
                    taken: now,
                    ..waiting
                },
                agenda,
            );
        }
        let Some((index, plan)) = self.choose(now) else {
            return;
        };
        let Waiting { request, .. } = self.queue.remove(index);
        if request.write {
            self.cache.written(&self.geometry, now, &request, plan.ends);
        } else if plan.streams {
            self.cache.streamed(&self.geometry, now, &request);
        } else {
            self.cache.read(&self.geometry, now, &request, plan.begins);
        }
        self.busy_until = Some(plan.ends);
        agenda.put(plan.ends, request.id);
    }

    /// The oldest if it has waited too long, else the soonest under the head.
    fn choose(&self, now: u64) -> Option<(usize, ArmMove)> {
        let oldest = self.queue.first()?;
        if now.saturating_sub(oldest.taken) > PATIENCE_NS {
            return Some((0, self.plan(now, oldest)));
        }
        self.queue
            .iter()
            .map(|waiting| self.plan(now, waiting))
            .enumerate()
            .min_by_key(|(index, plan)| (plan.begins, *index))
    }

    fn plan(&self, now: u64, waiting: &Waiting) -> ArmMove {
        let Waiting {
            request, arrived, ..
        } = waiting;
        let ready = now.max(arrived + OVERHEAD_NS);
        let from = self.cache.head(&self.geometry, now);
        let settle = if request.write { WRITE_SETTLE_NS } else { 0 };
        let begins = self.geometry.position(ready, from, request.offset, settle);
        let moved = ArmMove {
            begins,
            ends: begins + self.geometry.media_ns(request.offset, request.end()),
            streams: false,
        };
        match self.cache.stream_ns(&self.geometry, now, request) {
            Some((begins, ends)) if !request.write && ends.max(ready) <= moved.ends => ArmMove {
                begins: begins.max(ready),
                ends: ends.max(ready),
                streams: true,
            },
            _ => moved,
        }
    }
}

impl Device for Hdd {
    fn accept(&mut self, now: u64, mut request: Request, agenda: &mut Agenda) {
        let last = CAPACITY - u64::from(request.len);
        request.offset = request.offset.saturating_add(self.begins).min(last);
        let waiting = Waiting {
            request,
            arrived: now,
            taken: now,
        };
        if self.queue.len() == QUEUE {
            self.held_back.push_back(waiting);
        } else {
            self.take(now, waiting, agenda);
        }
        if self.busy_until.is_none() && !self.queue.is_empty() {
            self.dispatch(now, agenda);
        }
    }

    fn completed(&mut self, now: u64, agenda: &mut Agenda) {
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
            self.dispatch(now, agenda);
        }
    }

    fn forget(&mut self, now: u64) {
        self.cache.forget(&self.geometry, now);
    }
}
