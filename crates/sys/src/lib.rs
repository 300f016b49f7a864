//! foreread's calls to the kernel, as small typed functions.
//!
//! Purpose: page-cache hints and residency, files and where they lie on the device,
//! device and memory facts, other processes. Everything `rustix` lacks is called here
//! through `libc`, so that this crate and the observers are the only ones with `unsafe`.
//!
//! Invariant: no call here reads file contents for their own sake, writes to a file, or
//! opens anything but a regular file on the program's behalf. Every failure is an
//! [`std::io::Error`]; the callers treat it as "no help here", never as the program's.
//!
//! Data flow: a descriptor and a byte range in, facts out. Nothing is stored.

pub mod cache;
pub mod device;
pub mod environment;
pub mod fanotify;
pub mod features;
pub mod file;
pub mod group;
pub mod helper;
pub mod latency;
pub mod lease;
pub mod memory;
pub mod mounts;
pub mod name;
pub mod own;
pub mod pagemap;
pub mod pressure;
pub mod priority;
pub mod process;
pub mod processor;
pub mod procfs;
pub mod ready;
pub mod replace;
pub mod residency;
pub mod signals;
pub mod spawn;
pub mod text;
pub mod thread;
pub mod together;
pub mod usage;
pub mod user;
pub mod way;

/// The kernel's page size in bytes.
pub fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Turns the result of a raw call that answers -1 on failure into an [`std::io::Result`].
fn checked<T: PartialOrd + Default>(result: T) -> std::io::Result<T> {
    if result < T::default() {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// An error of the same kind that begins with the failed action.
fn refused(what: &str, why: &std::io::Error) -> std::io::Error {
    std::io::Error::new(why.kind(), format!("{what}: {why}"))
}
