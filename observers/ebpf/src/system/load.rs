//! The observation of the whole machine, and what it reports.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use super::Event;
use super::decode::{Decoder, record};
use crate::abi::{ALARMS, RING, SYSTEM};
use crate::module::Module;

/// What may lose events, in the order of `enum system_probe`.
const PROBE_NAMES: [&str; record::SYSTEM_PROBES as usize] =
    ["processes", "opens", "fetches", "floods", "names"];

/// Events that one poll takes: as many as fit into the ring would keep whoever asks waiting.
const AT_ONCE: usize = 4096;

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

    /// Which probe sees opens: `file_opens`, at no cost to other system calls, or `call_ended`.
    pub fn way(&self) -> &'static str {
        self.way
    }

    /// Readable when there are events.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.module.wait_fd(RING).expect("seen when it was loaded")
    }

    /// Readable when a process is about to wait for a device, from which on [`System::poll`] is worth its while.
    pub fn alarm_fd(&self) -> BorrowedFd<'_> {
        self.module
            .wait_fd(ALARMS)
            .expect("seen when it was loaded")
    }

    /// Hand out some of what has been reported, in the order in which it was; whether there may be more.
    pub fn poll(&mut self, each: &mut dyn FnMut(Event)) -> bool {
        let Self {
            module, decoder, ..
        } = self;
        let mut events = VecDeque::new();
        module.poll(ALARMS, |bytes| {
            if let Some(at) = bytes.first_chunk() {
                let at = u64::from_ne_bytes(*at);
                events.push_back(Event::Waits { at });
            }
            true
        });
        let mut count = 0;
        module.poll(RING, |bytes| {
            events.extend(decoder.take(bytes));
            count += 1;
            count < AT_ONCE
        });
        events.into_iter().for_each(each);
        count >= AT_ONCE
    }

    /// How many events each probe has lost, of those that have.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let mut lost = self.module.lost(&PROBE_NAMES);
        if self.decoder.nameless > 0 {
            lost.push(("nameless", self.decoder.nameless));
        }
        lost
    }
}
