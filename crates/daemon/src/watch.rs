//! Who reports what the processes of the machine do.

mod ebpf;
mod fanotify;
mod mounts;

use std::os::fd::BorrowedFd;

pub use ebpf::Ebpf;
pub use fanotify::Fanotify;
pub use foreread_ebpf::system::{Event as Happened, File};

use crate::{ObserverChoice, Options};

/// An observer of the whole machine. The daemon's own process is not reported.
pub trait Watch {
    /// What `status` calls it: `ebpf` or `fanotify`.
    fn name(&self) -> &'static str;

    /// Becomes readable when there is something to take. `None`: [`Watch::poll`] has to be called now and then.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Hands out what has happened, at most a bounded number of events, in the order in which it happened; whether there is
    /// more at once. Never waits.
    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool;

    /// How many events were lost so far, by probe: a full ring, a full queue. Empty where none was.
    fn lost(&self) -> Vec<(&'static str, u64)>;
}

/// The observer that the options ask for.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn open(options: &Options) -> Result<Box<dyn Watch>, String> {
    let fanotify = || match Fanotify::new(options.fuse) {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no fanotify: {why}")),
    };
    let ebpf = || match Ebpf::begin() {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no eBPF: {why}")),
    };
    match options.observer {
        ObserverChoice::Ebpf => ebpf(),
        ObserverChoice::Fanotify => fanotify(),
        ObserverChoice::Auto => {
            ebpf().or_else(|why| fanotify().map_err(|other| format!("{why}, and {other}")))
        }
    }
}
