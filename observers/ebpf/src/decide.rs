//! Conclusions from the facts: whether the observer can work, and what it cannot see here.

use std::fmt;

use crate::facts::HostFacts;

/// Bits of capabilities.
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// The reason for having no observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was excluded when foreread was built.
    NotBuilt,
    /// The process may not.
    NoRights,
    /// The kernel permits no process to read its memory.
    LockedDown,
    /// The kernel does not describe its types.
    NoBtf,
    /// The kernel counts processes otherwise than this container does.
    OtherPids,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotBuilt => {
                "this foreread was built without it (clang-19 or libelf-dev was missing)"
            }
            Self::NoRights => "it takes root, or the capabilities CAP_BPF and CAP_PERFMON",
            Self::LockedDown => "the kernel is locked down for confidentiality",
            Self::NoBtf => "the kernel has no description of its types (/sys/kernel/btf/vmlinux)",
            Self::OtherPids => "foreread runs in a PID namespace of its own",
        })
    }
}

/// Decides whether to try.
///
/// # Errors
/// The reason why an attempt would fail.
pub fn allowed(facts: &HostFacts) -> Result<(), Refused> {
    let has = |bits| facts.capabilities & bits == bits;
    let refused = [
        (!facts.is_built, Refused::NotBuilt),
        (!has(SYS_ADMIN) && !has(BPF | PERFMON), Refused::NoRights),
        (facts.lockdown == "confidentiality", Refused::LockedDown),
        (!facts.has_btf, Refused::NoBtf),
        (!facts.in_first_pids, Refused::OtherPids),
    ];
    refused
        .into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
        .map_or(Ok(()), Err)
}

/// Observations beyond opens, names, reads by system calls, and processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Touches of mapped pages, at once.
    pub faults: bool,
    /// Reads by io_uring.
    pub uring: bool,
}

impl Features {
    /// The visible and the invisible parts, in words.
    pub fn words(self) -> String {
        let mut words = "opens, names and reads of any program".to_owned();
        if self.uring {
            words.push_str(", io_uring");
        }
        if self.faults {
            words.push_str(", mapped pages one by one");
        }
        if let Some(missing) = self.missing() {
            words.push_str("; not here: ");
            words.push_str(&missing);
        }
        words
    }

    /// The parts that are invisible on this kernel, in words; `None` if there are none.
    pub fn missing(self) -> Option<String> {
        let parts = [
            (self.uring, "reads by io_uring"),
            (self.faults, "touches of mapped pages, which are sampled"),
        ];
        let missing = parts.into_iter().filter(|(is_seen, _)| !is_seen);
        let missing: Vec<_> = missing.map(|(_, what)| what).collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> HostFacts {
        HostFacts {
            is_built: true,
            capabilities: BPF | PERFMON,
            has_btf: true,
            lockdown: "integrity".to_owned(),
            in_first_pids: true,
        }
    }

    #[test]
    fn each_obstacle_is_named() {
        assert_eq!(allowed(&facts()), Ok(()));
        let changed = |change: fn(&mut HostFacts)| {
            let mut facts = facts();
            change(&mut facts);
            allowed(&facts)
        };
        assert_eq!(changed(|one| one.capabilities = SYS_ADMIN), Ok(()));
        assert_eq!(
            changed(|one| one.capabilities = BPF),
            Err(Refused::NoRights)
        );
        assert_eq!(changed(|one| one.is_built = false), Err(Refused::NotBuilt));
        assert_eq!(changed(|one| one.has_btf = false), Err(Refused::NoBtf));
        assert_eq!(
            changed(|one| one.lockdown = "confidentiality".to_owned()),
            Err(Refused::LockedDown)
        );
        assert_eq!(
            changed(|one| one.in_first_pids = false),
            Err(Refused::OtherPids)
        );
    }

    #[test]
    fn what_is_not_seen_is_said() {
        let all = Features {
            faults: true,
            uring: true,
        };
        assert!(!all.words().contains("not here"));
        assert_eq!(all.missing(), None);
        assert!(
            Features::default()
                .words()
                .contains("not here: reads by io_uring")
        );
        assert!(
            Features::default()
                .words()
                .contains("mapped pages, which are sampled")
        );
    }
}
