//! Disk models as discrete-event simulations: given requests and the time of
//! their arrival, when does each complete?
//!
//! Pure: no I/O, no clock, no randomness. The caller owns time, in nanoseconds
//! from any origin, and may be a simulation that jumps from event to event or a
//! server that sleeps until the next one:
//!
//! ```
//! use foreread_disk::{Disk, Layout, Model, Request};
//!
//! let mut disk = Disk::new(Model::NetworkSsd, Layout::new(4 << 30));
//! disk.submit(0, Request { id: 7, offset: 0, len: 4096, write: false });
//! let at = disk.next_event().expect("a request is under way");
//! assert_eq!(at, 700_000);
//! assert_eq!(disk.advance(at)[0].id, 7);
//! assert_eq!(disk.next_event(), None);
//! ```
//!
//! Requests go in by [`Disk::submit`], to one device ([`hdd`], [`network`], [`nfs`]
//! or [`striped`]); the device puts the times of completion on the agenda; time passes by
//! [`Disk::advance`], which hands the completions out in order. Invariants: every
//! request completes exactly once, never before it arrived; time never goes
//! back; the same calls give the same answers.

#![forbid(unsafe_code)]

mod agenda;
pub mod hdd;
mod model;
pub mod network;
pub mod nfs;
pub mod striped;

use agenda::Agenda;
use hdd::Hdd;
pub use model::{Model, Spec, UnknownModel};
use network::NetworkSsd;
use nfs::Nfs;
use striped::Striped;

/// A read or a write, as the host sends it to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it, given back in its [`Completion`].
    pub id: u64,
    /// Start, bytes.
    pub offset: u64,
    /// Length, bytes.
    pub len: u32,
    /// A write, not a read.
    pub write: bool,
}

impl Request {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// A request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's id.
    pub id: u64,
    /// When, in the caller's nanoseconds.
    pub at_ns: u64,
}

/// The layout of the image on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The image's size, bytes.
    pub size: u64,
    /// True if the image's tracks are spread over the disk's whole stroke, so that seeks cost the same as on a full disk. Otherwise the
    /// image is the first `size` bytes of a 500 GB disk, among which seeks are short. Only the disk with a moving head depends on it.
    pub stretch: bool,
    /// The disk's byte at which the image begins. Further in, a track holds less:
    /// the same bytes take more turns. Only the disk with a moving head cares.
    pub begins: u64,
}

impl Layout {
    /// The first `size` bytes of the disk.
    pub fn new(size: u64) -> Layout {
        Layout {
            size,
            stretch: false,
            begins: 0,
        }
    }

    /// `size` bytes from the disk's byte `begins` on.
    pub fn beginning(begins: u64, size: u64) -> Layout {
        Layout {
            begins,
            ..Layout::new(size)
        }
    }

    /// `size` bytes spread over the disk's whole stroke.
    pub fn stretched(size: u64) -> Layout {
        Layout {
            stretch: true,
            ..Layout::new(size)
        }
    }
}

/// A model: it decides when requests complete.
trait Device {
    /// Accepts a request at `now`; adds the resulting events to the agenda.
    fn accept(&mut self, now: u64, request: Request, agenda: &mut Agenda);

    /// An event of the agenda happened at `now`: starts requests that waited for it.
    fn completed(&mut self, now: u64, agenda: &mut Agenda);

    /// Empties the device's own cache, if it has one.
    fn forget(&mut self, _now: u64) {}
}

/// A disk with requests under way. See the [crate] documentation.
pub struct Disk {
    model: Model,
    device: Box<dyn Device + Send>,
    agenda: Agenda,
    /// The latest time given; earlier times are replaced by it.
    now: u64,
    /// Completed by `now`, not yet handed out.
    done: Vec<Completion>,
    queued: usize,
}

impl Disk {
    /// An idle disk holding an image laid out as `layout` says.
    pub fn new(model: Model, layout: Layout) -> Disk {
        let device: Box<dyn Device + Send> = match model {
            Model::Hdd7200 => Box::new(Hdd::new(layout)),
            Model::NetworkSsd => Box::new(NetworkSsd::new()),
            Model::Nfs => Box::new(Nfs::new()),
            Model::Striped => Box::new(Striped::new(striped::TODAY, layout)),
            Model::Nfs2008 => Box::new(Striped::new(striped::NFS_OF_2008, layout)),
            Model::Striped2008 => Box::new(Striped::new(striped::OF_2008, layout)),
        };
        Disk {
            model,
            device,
            agenda: Agenda::default(),
            now: 0,
            done: Vec::new(),
            queued: 0,
        }
    }

    /// The model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// A request arrives at `now_ns`.
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        self.run(now_ns);
        self.queued += 1;
        self.device.accept(self.now, request, &mut self.agenda);
    }

    /// The time of the next completion, or of a step on the way to one, ns; it may
    /// move forward or back when a request is submitted. None when the disk is idle.
    pub fn next_event(&self) -> Option<u64> {
        match self.done.first() {
            Some(done) => Some(done.at_ns),
            None => self.agenda.next(),
        }
    }

    /// Advances time to `now_ns`; returns the completions since the last call, in order of time.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Completion> {
        self.run(now_ns);
        self.queued -= self.done.len();
        std::mem::take(&mut self.done)
    }

    /// Empties the disk's own cache at `now_ns`, like a power cycle, so that a run finds nothing of the previous one. Requests in flight
    /// stay.
    pub fn forget(&mut self, now_ns: u64) {
        self.run(now_ns);
        self.device.forget(self.now);
    }

    /// Requests submitted and not yet handed out as completed.
    pub fn queued(&self) -> usize {
        self.queued
    }

    fn run(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns);
        while let Some((at_ns, id)) = self.agenda.pop_until(self.now) {
            self.done.extend(id.map(|id| Completion { id, at_ns }));
            self.device.completed(at_ns, &mut self.agenda);
        }
    }
}
