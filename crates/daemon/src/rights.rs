//! Privileges of a daemon started by root: only those that it needs.
//!
//! The unit file allows as much (`packaging/forereadd.service.in`); a daemon that is started otherwise gives the rest up by itself.

use std::io;

use rustix::thread::{
    CapabilitySet as Right, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// For fetching any program's files, finding directories by handle, and finding out what a user may see.
const ALWAYS: Right = Right::DAC_READ_SEARCH
    .union(Right::SETUID)
    .union(Right::SETGID);
/// For reading the reports of the kernel's side.
const EBPF: Right = Right::BPF.union(Right::PERFMON);
/// To watch file systems that are mounted later, and to see which program a process of another user runs.
const FANOTIFY: Right = Right::SYS_ADMIN.union(Right::SYS_PTRACE);

/// Drops, for this thread and those that it starts from now on, all privileges that an observer of this name does not need. There are no
/// other threads yet, and the observer has started: privileges needed only for its start are dropped, too.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn keep(observer: &str) -> io::Result<()> {
    set_no_new_privs(true)?;
    let has = capabilities(None)?.permitted;
    let kept = has & needed(observer, has);
    for right in has.difference(kept).iter() {
        // Needs CAP_SETPCAP. Without it no new privileges can be gained either.
        let _ = remove_capability_from_bounding_set(right);
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: Right::empty(),
        },
    )?;
    Ok(())
}

/// Privileges needed by an observer of this name, among those of the process.
fn needed(observer: &str, has: Right) -> Right {
    ALWAYS
        | match observer {
            "fanotify" => FANOTIFY,
            // Before Linux 5.8 there was CAP_SYS_ADMIN for this.
            "ebpf" if !has.contains(EBPF) => Right::SYS_ADMIN,
            "ebpf" => EBPF,
            _ => Right::empty(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_observer_keeps_what_it_needs_and_nothing_lets_files_be_written() {
        let all = Right::all();
        assert!(needed("ebpf", all).contains(EBPF));
        assert!(!needed("ebpf", all).contains(Right::SYS_ADMIN));
        assert!(needed("ebpf", all - Right::BPF).contains(Right::SYS_ADMIN));
        assert!(needed("fanotify", all).contains(Right::SYS_ADMIN));
        for observer in ["ebpf", "fanotify", "preload"] {
            assert!(!needed(observer, all).intersects(Right::DAC_OVERRIDE | Right::FOWNER));
        }
    }
}
