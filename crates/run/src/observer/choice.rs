//! Which observer a program gets.
//!
//! Data flow: what was asked for, and what the program is → [`Observing`], and the sentences on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use foreread_plan::Summary;
use foreread_ring::Ring;

use super::{Ebpf, Observer, Preload, why_hidden};

/// Which observer is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one that sees more of the program: eBPF for what the preload library does not see, where eBPF is to be had, else
    /// the library.
    #[default]
    Auto,
    /// The preload library.
    Preload,
    /// The kernel, by eBPF.
    Ebpf,
}

impl Choice {
    /// Whether the kernel observes programs that the preload library sees too little of.
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

/// What observes the program.
pub(crate) enum Observing {
    /// The preload library, and what it is to be put into the program with: these libraries.
    Library(Preload, Vec<PathBuf>),
    /// The kernel.
    Kernel(Ebpf),
}

impl Observing {
    /// What observes the program at `exe`, which the process `front` is about to start, in a run that began so long ago.
    /// `recorded` is the foot of its record. What cannot be had, or cannot see something that was asked for, is said by `say`; `remark`
    /// is told what is well to know.
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
            match Ebpf::new(front, elapsed) {
                Ok(kernel) => {
                    if let Some(why) = why {
                        remark(format!("observed by eBPF: {why}"));
                    }
                    if let Some(missing) = kernel.misses() {
                        remark(format!("eBPF does not see here: {missing}"));
                    }
                    return Some(Self::Kernel(kernel));
                }
                Err(refused) if choice == Choice::Ebpf => {
                    say(format!(
                        "eBPF cannot observe this run: {refused}. The preload library observes it instead."
                    ));
                }
                // What the library cannot see is said at the end, as ever.
                Err(refused) => remark(format!("eBPF cannot observe this run: {refused}")),
            }
        }
        let (ring, paths) = library(say)?;
        Some(Self::Library(Preload::new(ring), paths))
    }

    /// What it is to the supervisor.
    pub(crate) fn observer(&mut self) -> &mut dyn Observer {
        match self {
            Self::Library(preload, _) => preload,
            Self::Kernel(kernel) => kernel,
        }
    }

    /// The same, and the libraries in the program.
    pub(crate) fn parts(self) -> (Box<dyn Observer>, Vec<PathBuf>) {
        match self {
            Self::Library(preload, paths) => (Box::new(preload), paths),
            Self::Kernel(kernel) => (Box::new(kernel), Vec::new()),
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
