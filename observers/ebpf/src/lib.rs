//! Observes what the processes of one program do with files, from inside the kernel.
//!
//! It needs nothing of the program: not its C library, not its loader, not the word size, not even that it makes system
//! calls for its reads. It needs root, or the capabilities `CAP_BPF` and `CAP_PERFMON`, and a kernel that describes itself (BTF).
//!
//! | part | what it is |
//! | --- | --- |
//! | `module/bpf/record.h` | the one definition of what is reported; bindgen makes the Rust types of it |
//! | `module/bpf/observe.bpf.c` | the kernel's side |
//! | [`facts`] | what this host allows, as found by looking |
//! | [`decide`] | pure: what follows from the facts, and the sentences on it |
//! | `calls` | pure: which system calls are looked at, and how |
//! | `decode` | pure: the kernel's bytes as events |
//! | `module` | loads the kernel's side by a library of its own, libforeread_ebpf.so (`module/`), which holds libbpf |
//! | `kernel` | what is observed of one program |
//! | [`system`] | the same of the whole machine: which files are opened, and what is not in memory (`module/bpf/system.bpf.c`) |
//!
//! That library is built where there is clang, and by itself: nothing else is compiled anew for it. Without it [`observe`] says so.
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

/// How much memory the kernel has for events that are not taken yet, in bytes: at a million events of 48 bytes a second, the
/// events of 170 ms, where the supervisor takes them each 4 ms.
pub const RING: u32 = 8 << 20;

/// Begin to observe what is started by the process `parent`. `ring` is the memory for events, in bytes, a power of two: [`RING`].
/// Events' times count from `origin`, in ns of `CLOCK_MONOTONIC`.
///
/// # Errors
/// In one sentence, why this host does not allow it.
pub fn observe(parent: u32, ring: u32, origin: u64) -> Result<Observation, String> {
    decide::allowed(&facts::HostFacts::of_host()).map_err(|refused| refused.to_string())?;
    Observation::begin(parent, ring, origin)
}

/// See whether this host allows it, by trying. In words, what would be seen.
///
/// # Errors
/// In one sentence, why not.
pub fn probe() -> Result<String, String> {
    observe(std::process::id(), 1 << 12, 0).map(|observation| observation.seen().words())
}
