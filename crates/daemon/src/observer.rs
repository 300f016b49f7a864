//! Who reports what processes do: those of the whole machine, or, without privileges, those of one user that are asked to.

#[cfg(test)]
pub(crate) mod made;

use foreread_ebpf::system;
use foreread_fanotify::Fanotify;
use foreread_observe::{Observer, OwnPrograms};

use crate::{ObserverChoice, Options};

/// The observer that the options ask for. What else is to be known of the choice is handed to `say`, in a sentence.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn open(options: &Options, say: &mut dyn FnMut(String)) -> Result<Box<dyn Observer>, String> {
    let fanotify = || match Fanotify::new(options.fuse) {
        Ok(observer) => Ok(Box::new(observer) as Box<dyn Observer>),
        Err(why) => Err(format!("no fanotify: {why}")),
    };
    let ebpf = || match system::observe() {
        Ok(observer) => Ok(Box::new(observer) as Box<dyn Observer>),
        Err(why) => Err(format!("no eBPF: {why}")),
    };
    let preload = || match OwnPrograms::begin(options.fuse) {
        Ok(observer) => Ok(Box::new(observer) as Box<dyn Observer>),
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
