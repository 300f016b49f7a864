//! Chooses the observer of a program.
//!
//! Data flow: the option and the program → [`Observing`], with remarks for the user.

use std::path::{Path, PathBuf};
use std::time::Duration;

use foreread_ebpf::Observation;
use foreread_observe::{Budget, Event, Observer, Progress};
use foreread_plan::Summary;
use foreread_ring::Ring;

use super::ebpf;
use super::ring::Preload;
use super::unobserved::of_program as why_hidden;

/// The requested observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The observer that sees more: eBPF for programs that the preload library cannot see, if eBPF is available; otherwise the library.
    #[default]
    Auto,
    /// The preload library.
    Preload,
    /// The kernel, by eBPF.
    Ebpf,
}

impl Choice {
    /// True if the kernel may observe programs of which the preload library sees too little.
    pub(crate) fn may_be_kernel(self) -> bool {
        self == Self::Auto && rustix::process::geteuid().is_root()
    }
}

/// Why the preload library sees too little of the program.
fn why_kernel(exe: &Path, recorded: Option<&Summary>) -> Option<String> {
    if let Some(why) = why_hidden(exe) {
        return Some(format!("the program is {why}"));
    }
    let recorded = recorded?;
    let is_half = recorded.is_half_unseen() || recorded.by_kernel;
    is_half.then(|| "the preload library sees less than half of what the program reads".to_owned())
}

/// The observer of the program.
pub(crate) enum Observing {
    /// The preload library, with the libraries to preload.
    Library(Preload, Vec<PathBuf>),
    /// The kernel.
    Kernel(Observation),
}

impl Observing {
    /// Chooses the observer of the program at `exe`, which the process `front` is about to start, in a run that began so long ago.
    /// `recorded` is the foot of its record. `say` gets a sentence if the chosen observer is missing or blind for something; `remark`
    /// gets hints.
    pub(crate) fn choose(
        choice: Choice,
        exe: &Path,
        recorded: Option<&Summary>,
        (front, elapsed): (u32, Duration),
        library: impl FnOnce(&mut dyn FnMut(String)) -> Option<(Ring, Vec<PathBuf>)>,
        say: &mut dyn FnMut(String),
        remark: &mut dyn FnMut(String),
    ) -> Option<Self> {
        let hidden = match choice {
            Choice::Preload => None,
            Choice::Ebpf => Some(None),
            Choice::Auto if choice.may_be_kernel() => why_kernel(exe, recorded).map(Some),
            Choice::Auto => None,
        };
        if let Some(why) = hidden {
            match ebpf::observe(front, elapsed) {
                Ok(kernel) => {
                    if let Some(why) = why {
                        remark(format!("observed by eBPF: {why}"));
                    }
                    if let Some(missing) = kernel.seen().missing() {
                        remark(format!("eBPF does not see here: {missing}"));
                    }
                    return Some(Self::Kernel(kernel));
                }
                Err(refused) if choice == Choice::Ebpf => {
                    say(format!(
                        "eBPF cannot observe this run: {refused}. The preload library observes it instead."
                    ));
                }
                // Programs that the library cannot see are reported at the end of the run.
                Err(refused) => remark(format!("eBPF cannot observe this run: {refused}")),
            }
        }
        let (ring, paths) = library(say)?;
        Some(Self::Library(Preload::new(ring), paths))
    }

    /// The observer in use.
    pub(crate) fn observer(&self) -> &dyn Observer {
        match self {
            Self::Library(preload, _) => &preload.reports,
            Self::Kernel(kernel) => kernel,
        }
    }

    /// The same.
    pub(crate) fn observer_mut(&mut self) -> &mut dyn Observer {
        match self {
            Self::Library(preload, _) => &mut preload.reports,
            Self::Kernel(kernel) => kernel,
        }
    }

    /// Passes on reported events in the order of their starts, within the budget.
    pub(crate) fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        match self {
            Self::Library(preload, _) => preload.poll(budget, out),
            Self::Kernel(kernel) => kernel.poll(budget, out),
        }
    }

    /// Announces whether the program's next reads are foreseen. Where the kernel was advised not to read ahead, it reads ahead again when
    /// nobody else does.
    pub(crate) fn foresee(&self, foreseen: bool) {
        if let Self::Library(preload, _) = self {
            preload.reports.ring().give_up(!foreseen);
        }
    }

    /// Waits by `wait`, which does nothing else: a chance to see how this kernel treats a thread that sleeps.
    pub(crate) fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        match self {
            Self::Library(preload, _) => preload.reports.ring().waiting(wait),
            Self::Kernel(_) => wait(),
        }
    }

    /// True if touches of mapped pages are reported at once. Otherwise they are found by sampling.
    pub(crate) fn sees_touches(&self) -> bool {
        match self {
            Self::Library(..) => false,
            Self::Kernel(kernel) => kernel.seen().faults,
        }
    }

    /// Events that were dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.observer().lost();
        lost.into_iter().map(|(_, count)| count).sum()
    }

    /// Sentences on the processes that are not observed, or not in full.
    pub(crate) fn unobserved(&self) -> Vec<String> {
        match self {
            Self::Library(preload, _) => preload.unobserved(),
            Self::Kernel(kernel) => ebpf::unobserved(kernel),
        }
    }

    /// The reason why the program at this path cannot be observed, as a phrase after "it is"; `None` if none is known.
    pub(crate) fn why_hidden(&self, exe: &Path) -> Option<&'static str> {
        match self {
            Self::Library(..) => why_hidden(exe),
            Self::Kernel(_) => None,
        }
    }

    /// The libraries that are put into the program; none where the kernel observes.
    pub(crate) fn libraries(&self) -> &[PathBuf] {
        match self {
            Self::Library(_, paths) => paths,
            Self::Kernel(_) => &[],
        }
    }
}
