//! The kernel as observer: eBPF programs report the calls of the program's processes.
//!
//! Nothing is loaded into the program, so no advice can be given: the kernel's own read-ahead is unchanged.

use std::time::Duration;

use foreread_ebpf::{self as ebpf, Observation};
use foreread_observe::{Observer, now};
use foreread_words::counted;

/// Sets the size of the ring for events, in bytes: for tests of a full one.
const RING: &str = "FOREREAD_EBPF_RING";

/// Observes the processes that `front` starts. The run began this long ago.
pub(super) fn observe(front: u32, elapsed: Duration) -> Result<Observation, String> {
    let ring = std::env::var(RING).ok().and_then(|size| size.parse().ok());
    let began = now().saturating_sub(elapsed.as_nanos() as u64);
    ebpf::observe(front, ring.unwrap_or(ebpf::RING), began)
}

/// Parts that the kernel's side did not observe, in sentences.
pub(super) fn unobserved(observation: &Observation) -> Vec<String> {
    let mut said = Vec::new();
    let lost = observation.lost();
    if !lost.is_empty() {
        let parts: Vec<_> = lost
            .iter()
            .map(|(probe, count)| format!("{count} of {probe}"))
            .collect();
        said.push(format!(
            "events lost by the kernel's side: {}",
            parts.join(", ")
        ));
    }
    let elsewhere = observation.elsewhere();
    if elsewhere > 0 {
        let files = counted(elsewhere, "file was", "files were");
        said.push(format!(
            "{files} not observed: under another root directory, or in other mounts"
        ));
    }
    said
}
