//! Selects the mounted file systems to be watched.
//!
//! Invariant: each file system has one mount.
//!
//! Data flow: the table of mounts ([`foreread_sys::mounts`]) → [`by_device`], [`Kinds`].

use std::io;

use foreread_sys::mounts::{Mount, is_in_user_space};

/// Types of file systems that have no block device of their own and files on a device all the same.
const DEVICELESS: [&str; 3] = ["overlay", "zfs", "virtiofs"];

/// The mounts, one per file system: a whole one is preferred to one of a folder. Also returns a number that changes with the table.
///
/// # Errors
/// When the table cannot be read.
pub fn by_device() -> io::Result<(Vec<Mount>, u64)> {
    use std::hash::{Hash, Hasher};

    let table = Mount::table()?;
    let mut hasher = rustc_hash::FxHasher::default();
    table.hash(&mut hasher);
    let mut found: Vec<Mount> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for mount in Mount::all_in(&table) {
        let place = *places.entry(mount.dev).or_insert_with(|| found.len());
        match found.get_mut(place) {
            None => found.push(mount),
            Some(known) if !known.is_whole() && mount.is_whole() => *known = mount,
            Some(_) => {}
        }
    }
    Ok((found, hasher.finish()))
}

/// Types of file systems with files on a device. Files without a device need no prefetching, and network file systems may never answer.
#[derive(Debug)]
pub struct Kinds {
    without_device: Vec<String>,
    /// True if file systems in user space are watched.
    fuse: bool,
}

impl Kinds {
    /// As this kernel says. File systems in user space are watched if `fuse` says so.
    ///
    /// # Errors
    /// When the kernel's list cannot be read.
    pub fn known(fuse: bool) -> io::Result<Self> {
        let list = std::fs::read_to_string("/proc/filesystems")?;
        let without = list.lines().filter_map(|line| line.strip_prefix("nodev\t"));
        Ok(Self {
            without_device: without.map(str::to_owned).collect(),
            fuse,
        })
    }

    /// True if files on this type are watched.
    pub fn has(&self, kind: &str) -> bool {
        if is_in_user_space(kind) {
            return self.fuse;
        }
        DEVICELESS.contains(&kind) || !self.without_device.iter().any(|known| known == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_on_devices_are_watched_and_others_not() {
        let kinds = Kinds {
            without_device: ["proc", "tmpfs", "overlay", "nfs4"]
                .map(str::to_owned)
                .into(),
            fuse: false,
        };
        for kind in ["ext4", "btrfs", "overlay", "zfs"] {
            assert!(kinds.has(kind), "{kind}");
        }
        for kind in ["proc", "tmpfs", "nfs4", "fuse", "fuse.sshfs", "fuseblk"] {
            assert!(!kinds.has(kind), "{kind}");
        }
        let kinds = Kinds {
            fuse: true,
            ..kinds
        };
        assert!(kinds.has("fuse.sshfs") && kinds.has("fuse"));
    }
}
