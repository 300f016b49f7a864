//! Facts about this host, found by looking. [`decide`](crate::decide) draws the conclusions.

use std::fs;
use std::path::Path;

use foreread_sys::procfs::{self, Status};

use crate::module;

/// The kernel's description of its own types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The state of the kernel's lockdown.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// The inode of the first PID namespace.
const FIRST_PIDS: &str = "pid:[4026531836]";

/// The facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// True if the kernel's side was built: its library is in its place.
    pub is_built: bool,
    /// The process's effective capabilities, one bit each.
    pub capabilities: u64,
    /// True if the kernel describes its types.
    pub has_btf: bool,
    /// The kernel's lockdown: `none`, `integrity` or `confidentiality`; empty if it is unknown.
    pub lockdown: String,
    /// True if process ids here are the kernel's own.
    pub in_first_pids: bool,
}

impl HostFacts {
    /// Look.
    pub fn of_host() -> Self {
        let status = procfs::own_status().unwrap_or_default();
        let pids = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            is_built: module::library().is_ok(),
            capabilities: capabilities_in(Status(&status)),
            has_btf: Path::new(BTF).exists(),
            lockdown: chosen_in(&fs::read_to_string(LOCKDOWN).unwrap_or_default()).to_owned(),
            in_first_pids: pids == Path::new(FIRST_PIDS),
        }
    }
}

fn capabilities_in(status: Status<'_>) -> u64 {
    let bits = status.words("CapEff").next().unwrap_or_default();
    let bits = std::str::from_utf8(bits).unwrap_or_default();
    u64::from_str_radix(bits, 16).unwrap_or(0)
}

/// The word in brackets.
fn chosen_in(list: &str) -> &str {
    let rest = list.split_once('[').map_or("", |(_, rest)| rest);
    rest.split_once(']').map_or("", |(chosen, _)| chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        let status = b"Name:\tx\nCapPrm:\t0000000000000001\nCapEff:\t000001ffffffffff\n";
        assert_eq!(capabilities_in(Status(status)), 0x1ff_ffff_ffff);
        assert_eq!(capabilities_in(Status(b"")), 0);
        assert_eq!(chosen_in("none [integrity] confidentiality\n"), "integrity");
        assert_eq!(chosen_in(""), "");
    }
}
