//! Observes the file activity of one program's processes from inside the kernel.
//!
//! It does not depend on the program's C library, loader or word size, nor on system calls for its reads. It needs root, or the
//! capabilities `CAP_BPF` and `CAP_PERFMON`, and a kernel that describes itself (BTF).
//!
//! | part | purpose |
//! | --- | --- |
//! | `module/bpf/record.h` | the one definition of reports; bindgen makes the Rust types of it |
//! | `module/bpf/observe.bpf.c` | the kernel's side |
//! | [`facts`] | facts about this host, found by looking |
//! | [`decide`] | pure: conclusions from the facts, with their sentences |
//! | `calls` | pure: the observed system calls |
//! | `decode` | pure: the kernel's bytes as events |
//! | `module` | loads the kernel's side by a library of its own, libforeread_ebpf.so (`module/`), which holds libbpf |
//! | `kernel` | the observation of one program |
//! | [`system`] | the observation of the whole machine: opened files, and pages that were not in memory (`module/bpf/system.bpf.c`) |
//!
//! The library is built separately, if clang is available: nothing else is recompiled for it. Without it [`observe`] returns an error.
//!
//! Data flow: the kernel's side → ring → `decode` → [`foreread_observe::Event`].

mod abi;
mod calls;
pub mod decide;
mod decode;
pub mod facts;
mod kernel;
mod module;
pub mod system;

pub use kernel::Observation;

/// Kernel memory for waiting events, in bytes: at a million events of 48 bytes a second it lasts for 170 ms, and the supervisor takes them
/// every 4 ms.
pub const RING: u32 = 8 << 20;

/// Begins to observe programs started by the process `parent`. `ring` is the memory for events, in bytes, a power of two: [`RING`]. Event
/// times count from `origin`, in ns of `CLOCK_MONOTONIC`.
///
/// # Errors
/// In one sentence, why this host does not allow it.
pub fn observe(parent: u32, ring: u32, origin: u64) -> Result<Observation, String> {
    decide::allowed(&facts::HostFacts::of_host()).map_err(|refused| refused.to_string())?;
    Observation::begin(parent, ring, origin)
}

/// Tries whether this host permits the observation. Returns the visible parts, in words.
///
/// # Errors
/// In one sentence, why not.
pub fn probe() -> Result<String, String> {
    observe(std::process::id(), 1 << 12, 0).map(|observation| observation.seen().words())
}
