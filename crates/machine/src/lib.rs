//! A model of a machine in virtual time, for tests of policies: the gain and the cost of a prefetcher for a program.
//!
//! Programs and prefetchers are tasks: straight-line `async` code, whose calls take virtual time.
//!
//! - [`machine`]: virtual time, tasks and the gates they wait at.
//! - [`processors`]: one or two, of some speed, shared fairly, with a quota or with others' work beside.
//! - [`device`]: latency, depth, bandwidth, a stall; or one of the models of `foreread-disk`.
//! - [`cache`]: which pages are in memory, which leave it when it is full.
//! - [`kernel`]: calls: read-ahead, fault-around, hints, names, descriptors.
//! - [`program`]: a program as lists of accesses, and the reports of it.
//! - [`bulk`]: the simplest prefetcher there can be, to be compared with.
//!
//! Data flow: task → [`kernel`] → [`cache`] → [`device`]; completions → [`machine`] → tasks.
//!
//! Invariant: the same tasks on the same [`Spec`] take the same time to the nanosecond. Nothing here depends on foreread.
//!
//! Not modelled: writes, file systems' own metadata beyond inodes and folders, processors' caches, more than one device.

#![forbid(unsafe_code)]

pub mod bulk;
pub mod cache;
pub mod device;
pub mod kernel;
pub mod machine;
pub mod processors;
pub mod program;

pub use device::DeviceSpec;
pub use kernel::{Fd, FileSpec, Process};
pub use machine::{Gate, Machine};
pub use processors::ProcessorSpec;
pub use program::{Event, Op, Program, Tap};

use std::sync::Arc;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A machine. Times are in ns.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its processors.
    pub processors: ProcessorSpec,
    /// Its device.
    pub device: DeviceSpec,
    /// The device's files. A file's number is its place here.
    pub files: Arc<[FileSpec]>,
    /// Pages of memory for file data.
    pub memory: u64,
    /// Pages of the kernel's read-ahead window: 32 by default.
    pub read_ahead: u64,
    /// Memory taken by others: time, and percentage of the resident pages that are evicted.
    pub pressure: Vec<(u64, u64)>,
    /// Costs of calls.
    pub costs: Costs,
}

/// Processor time of calls, in ns, on a processor of speed 1.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// A read, without the copying.
    pub read: u64,
    /// Copying one page to the program.
    pub copy: u64,
    /// Giving memory to one page that is to be read, and entering it.
    pub page: u64,
    /// Sending one request to the device, and its interrupt.
    pub request: u64,
    /// Going to sleep and waking up.
    pub switch: u64,
    /// Opening and closing a file whose name is in memory.
    pub open: u64,
    /// Looking a name up that is in memory.
    pub stat: u64,
    /// A hint, without its pages and requests.
    pub hint: u64,
    /// Asking for residency.
    pub ask: u64,
    /// A fault at a page of a mapping that is in memory.
    pub fault: u64,
}

impl Default for Costs {
    /// As on Linux 6.18 on a virtual machine: a hot read of 4 KiB takes 1.5 µs, a hint 4 to 8 µs with its page, asking 0.5 µs.
    fn default() -> Self {
        Self {
            read: 600,
            copy: 900,
            page: 400,
            request: 2_500,
            switch: 3_000,
            open: 3_000,
            stat: 1_500,
            hint: 1_000,
            ask: 500,
            fault: 700,
        }
    }
}
