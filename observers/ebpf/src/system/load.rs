//! The observation of the whole machine, and its reports.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use foreread_observe::{Budget, Event, Observer, Progress, What, Who};

use super::decode::{Decoder, record};
use crate::abi::{ALARMS, RING, SYSTEM};
use crate::module::Module;

/// Probes that may lose events, in the order of `enum system_probe`.
const PROBE_NAMES: [&str; record::SYSTEM_PROBES as usize] =
    ["processes", "opens", "fetches", "floods", "names"];

/// The two ways of seeing opens: where the kernel asks its security modules, and at the end of system calls.
const FUNCTION: &str = "file_opens";
const CALLS: &str = "call_ended";

/// A number of no system call.
#[cfg(not(target_arch = "x86_64"))]
const NONE: u32 = u32::MAX;

/// The constants of the kernel's side, in their order: the observing process, and the system calls that open.
fn constants_of(own: u32) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    let (opens, compat) = (
        [
            libc::SYS_open as u32,
            libc::SYS_creat as u32,
            libc::SYS_openat as u32,
            libc::SYS_openat2 as u32,
        ],
        // arch/x86/entry/syscalls/syscall_32.tbl: open, creat, openat, openat2.
        [5, 8, 295, 437],
    );
    #[cfg(not(target_arch = "x86_64"))]
    let (opens, compat) = (
        [
            libc::SYS_openat as u32,
            libc::SYS_openat2 as u32,
            NONE,
            NONE,
        ],
        [NONE; 4],
    );
    let words = [own].into_iter().chain(opens).chain(compat);
    words.flat_map(u32::to_ne_bytes).collect()
}

/// An observation of the machine that has begun. The kernel's side goes with it.
pub struct System {
    decoder: Decoder,
    way: &'static str,
    module: Module,
}

impl System {
    pub(crate) fn begin() -> Result<Self, String> {
        // Some kernels allow no probes of functions.
        Self::load(FUNCTION, CALLS).or_else(|_| Self::load(CALLS, FUNCTION))
    }

    /// With one way of seeing opens, and without the other.
    fn load(way: &'static str, other: &str) -> Result<Self, String> {
        let constants = constants_of(std::process::id());
        let module = Module::load(SYSTEM, &[other], 0, &constants)?;
        let has_rings = [RING, ALARMS]
            .iter()
            .all(|ring| module.wait_fd(*ring).is_some());
        if !has_rings {
            return Err("the kernel's side has no rings".to_owned());
        }
        Ok(Self {
            decoder: Decoder::default(),
            way,
            module,
        })
    }

    /// The probe that sees opens: `file_opens`, without a cost for other system calls, or `call_ended`.
    pub fn way(&self) -> &'static str {
        self.way
    }
}

impl Observer for System {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.module.wait_fd(RING)
    }

    fn alarm_fd(&self) -> Option<BorrowedFd<'_>> {
        self.module.wait_fd(ALARMS)
    }

    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let Self {
            module, decoder, ..
        } = self;
        let mut taken = VecDeque::new();
        // Alarms are no more than one each few ms, and none of the budget.
        module.poll(ALARMS, |bytes| {
            if let Some(at) = bytes.first_chunk() {
                taken.push_back(Event {
                    who: Who::default(),
                    at: u64::from_ne_bytes(*at),
                    what: What::Waits,
                });
            }
            true
        });
        let mut events = taken.len();
        if !budget.is_spent() {
            module.poll(RING, |bytes| {
                taken.extend(decoder.take(bytes));
                events += 1;
                budget.spend()
            });
        }
        taken.into_iter().for_each(out);
        Progress {
            events,
            more: budget.is_spent(),
        }
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let mut lost = self.module.lost(&PROBE_NAMES);
        if self.decoder.nameless > 0 {
            lost.push(("nameless", self.decoder.nameless));
        }
        lost
    }
}
