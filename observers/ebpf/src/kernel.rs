//! The observation of one program's processes, and its reports.

use std::fs;
use std::path::PathBuf;

use foreread_observe::{Budget, Event, Observer, Progress, Wanted};

use crate::abi::{OBSERVE, RING};
use crate::calls;
use crate::decide::Features;
use crate::decode::Decoder;
use crate::decode::record::{FOLLOWED, FOLLOWED_PARENT, PROBES, call};
use crate::module::Module;

/// The programs that not every kernel has tracepoints for: those that see mapped pages touched, and io_uring.
const FAULTS: &[&str] = &[
    "user_fault",
    "kernel_fault",
    "mapped_along",
    "page_wanted",
    "page_added",
];
const URING: &[&str] = &["request_begins", "request_ends"];

/// Probes that may lose events, in the order of `enum probe`.
const PROBE_NAMES: [&str; PROBES as usize] = [
    "processes",
    "files",
    "opens",
    "looks",
    "directory reads",
    "reads",
    "page faults",
];

/// An observation that has begun. The kernel's side goes with it.
pub struct Observation {
    decoder: Decoder,
    seen: Features,
    parent: u32,
    /// Origin of event times, in ns of `CLOCK_MONOTONIC`.
    origin: u64,
    wanted: Wanted,
    module: Module,
}

impl Observation {
    pub(crate) fn begin(parent: u32, ring: u32, origin: u64) -> Result<Self, String> {
        let all = Features {
            faults: true,
            uring: true,
        };
        // A kernel refuses to load or attach programs for features that it lacks.
        let tries = [
            all,
            Features {
                uring: false,
                ..all
            },
            Features {
                faults: false,
                ..all
            },
            Features::default(),
        ];
        let mut refused = String::new();
        for seen in tries {
            match Self::load(parent, ring, origin, seen) {
                Ok(observation) => return Ok(observation),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn load(parent: u32, size: u32, origin: u64, seen: Features) -> Result<Self, String> {
        let groups = [(FAULTS, seen.faults), (URING, seen.uring)];
        let skipped = groups.iter().filter(|(_, is_seen)| !is_seen);
        let skipped: Vec<&str> = skipped
            .flat_map(|(names, _)| names.iter().copied())
            .collect();
        let module = Module::load(OBSERVE, &skipped, size, &[])?;
        for (number, call, _) in calls::table() {
            if !module.update("calls", number, &bytes_of(call)) {
                return Err("the table of system calls cannot be filled in".to_owned());
            }
        }
        let observation = Self {
            decoder: Decoder::default(),
            seen,
            parent,
            origin,
            wanted: Wanted::Nothing,
            module,
        };
        if !observation.follow_as(parent, FOLLOWED_PARENT) {
            return Err("the table of processes cannot be filled in".to_owned());
        }
        Ok(observation)
    }

    /// The visible parts on this kernel.
    pub fn seen(&self) -> Features {
        self.seen
    }

    /// The program runs as process `pid`: later children of its parent do not belong to it. If it was started before it could be observed,
    /// it is observed from now on.
    pub fn follow(&mut self, pid: u32) {
        if !self.module.has("processes", pid) {
            self.follow_as(pid, FOLLOWED);
        }
        self.module.delete("processes", self.parent);
    }

    fn follow_as(&self, pid: u32, how: u32) -> bool {
        self.module.update("processes", pid, &how.to_ne_bytes())
    }

    /// Files that are not seen, because the supervisor could not find them: under another root directory, or in other mounts.
    pub fn elsewhere(&self) -> u64 {
        self.decoder.elsewhere()
    }
}

impl Observer for Observation {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        let wanted = u32::from(wanted != Wanted::Nothing).to_ne_bytes();
        self.module.update(".data.wanted", 0, &wanted);
    }

    fn wanted(&self) -> Wanted {
        self.wanted
    }

    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let Self {
            module,
            decoder,
            origin,
            ..
        } = self;
        if !budget.is_spent() {
            module.poll(RING, |bytes| {
                decoder.take(bytes);
                budget.spend()
            });
        }
        let program = |pid| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let program: &dyn Fn(u32) -> PathBuf = &program;
        let events = decoder.drain(program, &mut |mut event| {
            event.at = event.at.saturating_sub(*origin);
            out(event);
        });
        Progress {
            events,
            more: budget.is_spent(),
        }
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        self.module.lost(&PROBE_NAMES)
    }
}

/// A row as the kernel's side has it.
fn bytes_of(row: call) -> [u8; size_of::<call>()] {
    let [low, high] = row.flags_value.to_ne_bytes();
    [
        row.what, row.fd, row.path, row.at, row.place, row.flags, low, high,
    ]
}
