//! `nfs`: a file server across a local network.
//!
//! A request waits for one of the client's slots, travels half a round trip,
//! waits for one of the server's threads, is worked on, and its data crosses a
//! wire that carries one answer (or one written request) at a time. The figures
//! are those of a small office server: gigabit Ethernet carrying 110 MB/s of
//! data, a round trip of 0.5 ms through a switch and two kernels, the Linux
//! server's customary eight threads, and the client's 64-entry slot table. The
//! store behind the server is flash: its share of the service time is the same
//! everywhere, so a run is as slow the second time as the first.

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::{Device, Request};

/// There and back without any work, ns.
pub const ROUND_TRIP_NS: u64 = 500_000;
/// Time of a server thread per request, ns.
pub const SERVICE_NS: u64 = 700_000;
/// Threads of the server.
pub const WORKERS: usize = 8;
/// Bytes a second on the wire, each way.
pub const WIRE_BYTES_PER_S: u64 = 110_000_000;
/// Limit of the client's requests in flight.
pub const SLOTS: usize = 64;

pub(crate) struct Nfs {
    waiting: VecDeque<Request>,
    under_way: usize,
    /// When each thread is free, ns.
    workers: [u64; WORKERS],
    /// Time at which the wire to the server, and the wire back, is free, ns.
    uplink: u64,
    downlink: u64,
}

impl Nfs {
    pub(crate) fn new() -> Nfs {
        Nfs {
            waiting: VecDeque::new(),
            under_way: 0,
            workers: [0; WORKERS],
            uplink: 0,
            downlink: 0,
        }
    }

    /// Sends as many requests as the slots permit. Requests leave in order of arrival and each step is first come, first served, so the
    /// whole journey is known.
    fn send(&mut self, now: u64, agenda: &mut Agenda) {
        while self.under_way < SLOTS
            && let Some(request) = self.waiting.pop_front()
        {
            self.under_way += 1;
            let wire = u64::from(request.len) * 1_000_000_000 / WIRE_BYTES_PER_S;
            let sent = if request.write {
                carry(&mut self.uplink, now, wire)
            } else {
                now
            };
            let arrived = sent + ROUND_TRIP_NS / 2;
            let worked = match self.workers.iter_mut().min() {
                Some(free) => carry(free, arrived, SERVICE_NS),
                None => arrived + SERVICE_NS,
            };
            let answered = if request.write {
                worked
            } else {
                carry(&mut self.downlink, worked, wire)
            };
            agenda.put(answered + ROUND_TRIP_NS / 2, request.id);
        }
    }
}

/// Occupies a resource that is free from `free` on, no earlier than `from`, for `time`; returns the end.
fn carry(free: &mut u64, from: u64, time: u64) -> u64 {
    *free = (*free).max(from) + time;
    *free
}

impl Device for Nfs {
    fn accept(&mut self, now: u64, request: Request, agenda: &mut Agenda) {
        self.waiting.push_back(request);
        self.send(now, agenda);
    }

    fn completed(&mut self, now: u64, agenda: &mut Agenda) {
        self.under_way -= 1;
        self.send(now, agenda);
    }
}
