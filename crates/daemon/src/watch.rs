//! Who reports what processes do: those of the whole machine, or, without privileges, those of one user that are asked to.

mod allowance;
mod ebpf;
mod fanotify;
mod look;
mod mounts;
mod preload;

use std::os::fd::BorrowedFd;

pub use ebpf::Ebpf;
pub use fanotify::Fanotify;
pub use foreread_ebpf::system::{Event as Happened, File};
pub use preload::Preload;

use crate::{ObserverChoice, Options};

/// An observer. The daemon's own process is not reported.
pub trait Watch {
    /// What `status` calls it: `ebpf`, `fanotify` or `preload`.
    fn name(&self) -> &'static str;

    /// Becomes readable when there is something to take. `None`: [`Watch::poll`] has to be called now and then.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Becomes readable when a process is about to wait for a device. `None` where nobody tells.
    fn alarm_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Hands out what has happened, at most a bounded number of events, in the order in which it happened; whether there is
    /// more at once. Never waits.
    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool;

    /// How many events were lost so far, by probe: a full ring, a full queue. Empty where none was.
    fn lost(&self) -> Vec<(&'static str, u64)>;

    /// The variable, and its value, by which programs find this observer; `None` where they need none.
    fn environment(&self) -> Option<(&'static str, String)> {
        None
    }
}

/// The observer that the options ask for. What else is to be known of the choice is handed to `say`, in a sentence.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn open(options: &Options, say: &mut dyn FnMut(String)) -> Result<Box<dyn Watch>, String> {
    let fanotify = || match Fanotify::new(options.fuse) {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no fanotify: {why}")),
    };
    let ebpf = || match Ebpf::begin() {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no eBPF: {why}")),
    };
    let preload = || match Preload::begin(options.fuse) {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no preload library: {why}")),
    };
    let kernel = || ebpf().or_else(|why| fanotify().map_err(|other| format!("{why}, and {other}")));
    match options.observer {
        ObserverChoice::Ebpf => ebpf(),
        ObserverChoice::Fanotify => fanotify(),
        ObserverChoice::Preload => preload(),
        // Root's daemon is there for everybody's programs, which cannot report to it by the library.
        ObserverChoice::Auto if rustix::process::geteuid().is_root() => kernel(),
        ObserverChoice::Auto => kernel().or_else(|why| {
            say(format!(
                "{why}; the preload library observes this user's programs that have the environment of `foreread daemon env`"
            ));
            preload()
        }),
    }
}
