//! Selects the observer: one of the whole machine, or, without privileges, one of a user's own programs.

#[cfg(test)]
pub(crate) mod made;

use foreread_ebpf::system;
use foreread_fanotify::Fanotify;
use foreread_observe::{Observer, OwnPrograms};

use crate::{ObserverChoice, Options};

/// Opens the observer of the options. Remarks on the choice are passed to `say`, as sentences.
///
/// # Errors
/// The reason for having none, in a sentence.
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
        // Root's daemon serves everybody's programs, which cannot report to it through the library.
        ObserverChoice::Auto if rustix::process::geteuid().is_root() => kernel(),
        ObserverChoice::Auto => kernel().or_else(|why| {
            say(format!(
                "{why}; the preload library observes this user's programs that have the environment of `foreread daemon env`"
            ));
            preload()
        }),
    }
}
