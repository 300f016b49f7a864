//! The preload library as an observer: processes report through a ring of shared memory.
//!
//! The helper takes the [`Reports`]. The front, which starts the program, has the ring's [`Seat`]: the program's means to find the library
//! and the ring.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use foreread_observe::{Budget, Event, Observer, Progress, Reports};
use foreread_ring::{self as ring, Advice, Mode, Ring};
use foreread_segment::Segment;
use foreread_sys::process;

use super::preload;
use super::unobserved::Missing;

/// The helper's side.
pub(crate) struct Preload {
    pub(super) reports: Reports,
    missing: Missing,
}

impl Preload {
    /// Observe by the library that fills this ring, which is as old as the run.
    pub(super) fn new(ring: Ring) -> Self {
        Self {
            reports: Reports::new(ring, 0),
            missing: Missing::default(),
        }
    }

    /// Advice that programs give the kernel on the files at these absolute paths; set before the program starts.
    pub(crate) fn advise<'a>(&self, files: impl Iterator<Item = (&'a Path, Advice)>) {
        self.reports.ring().set_advice(files);
    }

    pub(super) fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let progress = self.reports.poll(budget, out);
        self.missing.look(self.reports.ring());
        progress
    }

    /// Sentences on the processes that are not observed, or not in full.
    pub(super) fn unobserved(&self) -> Vec<String> {
        self.missing.sentences(self.reports.ring())
    }
}

/// The front's side of the ring.
pub(crate) struct Seat {
    ring: Ring,
    segment: Option<Segment>,
    libraries: Vec<PathBuf>,
}

impl Seat {
    pub(crate) fn new(ring: Ring, segment: Option<Segment>, libraries: Vec<PathBuf>) -> Self {
        Self {
            ring,
            segment,
            libraries,
        }
    }

    /// The helper is late: until it is ready, the program does not wait for room in the ring.
    pub(crate) fn go_on_alone(&self) {
        self.ring.set_mode(Mode::Progress);
    }

    /// The variables that the program is to find in its environment; the process `owner` keeps the ring for it.
    pub(crate) fn variables(&self, owner: u32) -> Vec<(&'static str, OsString)> {
        let mut variables = Vec::from(preload::variables(&self.libraries));
        variables.push((
            ring::ENV,
            self.ring.env_value_under(process::filters(), owner).into(),
        ));
        if let Some(segment) = &self.segment {
            variables.push((foreread_segment::ENV, segment.env_value().into()));
        }
        variables
    }

    /// The program has been started as this process.
    pub(crate) fn started(&self, pid: u32) {
        self.ring.started(pid);
    }
}
