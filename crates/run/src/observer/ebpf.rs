//! The kernel as an observer: eBPF programs report what the processes of the program do.
//!
//! Nothing is put into the program, so nothing can be told to it either: the kernel's own read-ahead stays as it is.

use std::time::Duration;

use foreread_ebpf::{self as ebpf, Observation};
use foreread_words::counted;
use rustix::time::{ClockId, clock_gettime};

use super::{Event, How, Observer, Wanted, What};

/// Sets the size of the ring for events, in bytes: for tests of a full one.
const RING: &str = "FOREREAD_EBPF_RING";

/// The helper's side. The front has nothing to do.
pub(crate) struct Ebpf {
    observation: Observation,
    wanted: Wanted,
    /// When the run began, in ns of `CLOCK_MONOTONIC`.
    began: u64,
}

impl Ebpf {
    /// Observe what the process `front` starts, in a run that began so long ago.
    pub(crate) fn new(front: u32, elapsed: Duration) -> Result<Self, String> {
        let ring = std::env::var(RING).ok().and_then(|size| size.parse().ok());
        let observation = ebpf::observe(front, ring.unwrap_or(ebpf::RING))?;
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        Ok(Self {
            observation,
            wanted: Wanted::Nothing,
            began: now.saturating_sub(elapsed).as_nanos() as u64,
        })
    }

    /// In words, what is not seen on this kernel; `None` where all is.
    pub(crate) fn misses(&self) -> Option<String> {
        self.observation.seen().missing()
    }

    /// The program was started, as this process.
    pub(crate) fn started(&mut self, pid: u32) {
        self.observation.follow(pid);
    }
}

impl Observer for Ebpf {
    fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.observation.want(wanted != Wanted::Nothing);
    }

    fn wanted(&self) -> Wanted {
        self.wanted
    }

    fn poll(&mut self, each: &mut dyn FnMut(Event)) -> usize {
        let began = self.began;
        self.observation
            .poll(&mut |event| each(as_event(event, began)))
    }

    fn is_drained(&self) -> bool {
        // A look takes all that is there.
        true
    }

    fn sees_touches(&self) -> bool {
        self.observation.seen().faults
    }

    fn lost(&self) -> u64 {
        let lost = self.observation.lost();
        lost.into_iter().map(|(_, count)| count).sum()
    }

    fn unobserved(&self) -> Vec<String> {
        let mut said = Vec::new();
        let lost = self.observation.lost();
        if !lost.is_empty() {
            let parts: Vec<_> = lost
                .iter()
                .map(|(probe, count)| format!("{count} of {probe}"))
                .collect();
            said.push(format!(
                "events lost by the kernel's side: {}",
                parts.join(", ")
            ));
        }
        let elsewhere = self.observation.elsewhere();
        if elsewhere > 0 {
            let files = counted(elsewhere, "file was", "files were");
            said.push(format!(
                "{files} not observed: under another root directory, or in other mounts"
            ));
        }
        said
    }
}

/// An event in the supervisor's terms.
fn as_event(event: ebpf::Event, began: u64) -> Event {
    let what = match event.what {
        // What a stream of the C library reads is seen as the reads that it makes.
        ebpf::What::Begin { ppid, exe } => What::Begin {
            ppid,
            exe,
            stdio: true,
        },
        ebpf::What::Open {
            handle,
            path,
            took,
            directory,
            writes,
            truncates,
        } => What::Open {
            handle,
            path,
            took,
            how: How {
                directory,
                writes,
                truncates,
            },
        },
        ebpf::What::Named {
            path,
            kind,
            took,
            follows,
        } => What::Named {
            path,
            kind,
            took,
            follows,
            inode: None,
        },
        ebpf::What::Read {
            handle,
            kind,
            extent,
            took,
        } => What::Read {
            handle,
            kind,
            extent,
            took,
            more: 0,
        },
        ebpf::What::Touched {
            handle,
            extent,
            took,
        } => What::Touched {
            handle,
            extent,
            took,
        },
        ebpf::What::Exit => What::Exit,
    };
    Event {
        pid: event.pid,
        tid: event.tid,
        start: event.start.saturating_sub(began),
        what,
    }
}
