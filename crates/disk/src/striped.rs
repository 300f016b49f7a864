//! `striped` and `striped-2008`: a parallel file system. Files are on eight servers in stripes of 64 KiB, one server after the other. A
//! request goes to all servers that have a part of it, and is complete when the last of them has answered.
//!
//! ```text
//! request ─┬─> half a round trip ─> a server's queue ─> (its disk) ─> its link ─> half a round trip ─┬─> done
//!          └─> the same, at another server                                                          ┘
//! ```
//!
//! Each server has a queue, a disk and a link to itself, so that requests to
//! different servers overlap and those to one server wait for each other. Clients
//! have no link of their own here: the ranks of a parallel program stand for
//! processes on hosts of their own.
//!
//! `striped` is of today: a server spends 0.4 ms on a request and sends 110 MB/s,
//! which is its share on a system that others use, too; its store is flash.
//! `striped-2008` is the cluster of the paper on I/O signatures (section VI): PVFS2
//! on eight hosts with a 7200 rpm disk each ([`crate::hdd`]) and Fast Ethernet. Of
//! its servers' memory nothing is modelled: a run is as slow the second time as the
//! first. `nfs-2008`, the other file system of that section, is one such server.
//! Invariant: a server's disk is given its requests in order of time, and is
//! never asked about a time at which another may still arrive.

use std::collections::HashMap;

use crate::agenda::Agenda;
use crate::{Completion, Device, Disk, Layout, Model, Request};

/// Servers of the parallel file systems.
pub const SERVERS: u64 = 8;
/// Bytes on one server before the next one follows.
pub const STRIPE_BYTES: u64 = 64 << 10;

/// Figures of a server and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Servers.
    pub servers: u64,
    /// There and back without any work, ns.
    pub round_trip_ns: u64,
    /// Time of the server per request, besides its disk, ns.
    pub service_ns: u64,
    /// Bytes a second on the server's link, each way.
    pub link_bytes_per_s: u64,
    /// True if its store is a rotating disk.
    pub rotating: bool,
}

/// `striped`.
pub const TODAY: Figures = Figures {
    servers: SERVERS,
    round_trip_ns: 200_000,
    service_ns: 400_000,
    link_bytes_per_s: 110_000_000,
    rotating: false,
};

/// `striped-2008`.
pub const OF_2008: Figures = Figures {
    servers: SERVERS,
    round_trip_ns: 300_000,
    service_ns: 200_000,
    link_bytes_per_s: 11_800_000,
    rotating: true,
};

/// `nfs-2008`.
pub const NFS_OF_2008: Figures = Figures {
    servers: 1,
    ..OF_2008
};

struct Server {
    /// Time at which it is free for the next request, ns.
    free: u64,
    /// Time at which the link to it, and the link back, is free, ns.
    uplink: u64,
    downlink: u64,
    /// Its disk, in the server's time: half a round trip later than the client's.
    disk: Option<Disk>,
    /// For when the agenda has the disk's next step, ns.
    expected: Option<u64>,
}

/// A request of which some servers have not answered.
struct Open {
    write: bool,
    /// The parts of those servers.
    left: Vec<ServerPart>,
    /// The latest answer, ns.
    done: u64,
}

pub(crate) struct Striped {
    figures: Figures,
    servers: Vec<Server>,
    open: HashMap<u64, Open>,
}

/// A server's part of a request.
#[derive(Clone, Copy)]
struct ServerPart {
    server: usize,
    offset: u64,
    len: u32,
}

impl Striped {
    pub(crate) fn new(figures: Figures, layout: Layout) -> Striped {
        let share = Layout {
            size: layout.size / figures.servers,
            ..layout
        };
        let server = || Server {
            free: 0,
            uplink: 0,
            downlink: 0,
            disk: figures.rotating.then(|| Disk::new(Model::Hdd7200, share)),
            expected: None,
        };
        Striped {
            figures,
            servers: (0..figures.servers).map(|_| server()).collect(),
            open: HashMap::new(),
        }
    }

    fn half(&self) -> u64 {
        self.figures.round_trip_ns / 2
    }

    /// Sends a part to its server: everything before the disk is first come, first served.
    fn send(&mut self, now: u64, request: &Request, part: ServerPart, agenda: &mut Agenda) {
        let (half, wire) = (self.half(), wire(self.figures, part.len));
        let server = &mut self.servers[part.server];
        let sent = if request.write {
            carry(&mut server.uplink, now, wire)
        } else {
            now
        };
        let worked = carry(&mut server.free, sent + half, self.figures.service_ns);
        let Some(disk) = &mut server.disk else {
            self.answer(part.server, request.id, worked, agenda);
            return;
        };
        disk.submit(
            worked,
            Request {
                offset: part.offset,
                len: part.len,
                ..*request
            },
        );
        self.expect(part.server, now, agenda);
    }

    /// A server has its part of a request at `ready`, and sends it.
    fn answer(&mut self, server: usize, id: u64, ready: u64, agenda: &mut Agenda) {
        let half = self.half();
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let Some(index) = open.left.iter().position(|part| part.server == server) else {
            return;
        };
        let part = open.left.swap_remove(index);
        let sent = if open.write {
            ready
        } else {
            let wire = wire(self.figures, part.len);
            carry(&mut self.servers[server].downlink, ready, wire)
        };
        open.done = open.done.max(sent + half);
        if open.left.is_empty() {
            agenda.put(open.done, id);
            self.open.remove(&id);
        }
    }

    /// Puts the time at which the server's disk continues on the agenda. Requests sent before then arrive after it.
    fn expect(&mut self, server: usize, now: u64, agenda: &mut Agenda) {
        let half = self.half();
        let server = &mut self.servers[server];
        let next = server.disk.as_ref().and_then(Disk::next_event);
        if next != server.expected {
            server.expected = next;
            if let Some(at) = next {
                agenda.wake(at.saturating_sub(half).max(now));
            }
        }
    }
}

/// Occupies a resource that is free from `free` on, no earlier than `from`, for `time`; returns the end.
fn carry(free: &mut u64, from: u64, time: u64) -> u64 {
    *free = (*free).max(from) + time;
    *free
}

/// Time of `bytes` on a link, ns.
fn wire(figures: Figures, bytes: u32) -> u64 {
    u64::from(bytes) * 1_000_000_000 / figures.link_bytes_per_s
}

/// The servers' parts of `[offset, offset + len)`: one server's stripes of it are adjacent there.
fn parts(servers: u64, offset: u64, len: u32) -> Vec<ServerPart> {
    let mut parts: Vec<ServerPart> = Vec::new();
    let (mut at, mut left) = (offset, u64::from(len));
    loop {
        let stripe = at / STRIPE_BYTES;
        let inside = at % STRIPE_BYTES;
        let piece = left.min(STRIPE_BYTES - inside);
        let server = (stripe % servers) as usize;
        match parts.iter_mut().find(|part| part.server == server) {
            Some(part) => part.len += piece as u32,
            None => parts.push(ServerPart {
                server,
                offset: stripe / servers * STRIPE_BYTES + inside,
                len: piece as u32,
            }),
        }
        left -= piece;
        if left == 0 {
            return parts;
        }
        at = at.saturating_add(piece);
    }
}

impl Device for Striped {
    fn accept(&mut self, now: u64, request: Request, agenda: &mut Agenda) {
        let parts = parts(self.figures.servers, request.offset, request.len);
        self.open.insert(
            request.id,
            Open {
                write: request.write,
                left: parts.clone(),
                done: now,
            },
        );
        for part in parts {
            self.send(now, &request, part, agenda);
        }
    }

    fn completed(&mut self, now: u64, agenda: &mut Agenda) {
        let half = self.half();
        for index in 0..self.servers.len() {
            let done = match &mut self.servers[index].disk {
                Some(disk) => disk.advance(now + half),
                None => continue,
            };
            for Completion { id, at_ns } in done {
                self.answer(index, id, at_ns, agenda);
            }
            self.expect(index, now, agenda);
        }
    }

    fn forget(&mut self, now: u64) {
        let half = self.half();
        for disk in self
            .servers
            .iter_mut()
            .filter_map(|server| server.disk.as_mut())
        {
            disk.forget(now + half);
        }
    }
}
