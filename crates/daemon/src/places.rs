//! The file systems from which files are fetched: those on a device or a server, among this process's mounts.
//!
//! Invariant: a path is fetched only if the file system mounted there, in the daemon's own mount namespace, is the one on which the file
//! was seen. Paths of another namespace, untriggered automount points, and places mounted over since are refused. Names and links are
//! refused when the file is opened ([`open_exactly`](foreread_sys::file::open_exactly)).

use std::path::Path;

use foreread_sys::mounts::Mount;

/// File systems whose files are generated on reading or are in memory, and automount points.
const REFUSED: [&str; 22] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "tmpfs",
    "ramfs",
    "cgroup",
    "cgroup2",
    "pstore",
    "bpf",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "fusectl",
    "mqueue",
    "hugetlbfs",
    "autofs",
    "efivarfs",
    "binfmt_misc",
    "rpc_pipefs",
    "nsfs",
];
/// Time for which the table of mounts is valid, in ns.
const FRESH: u64 = 10_000_000_000;

/// The mounts.
#[derive(Debug)]
pub(crate) struct Places {
    mounts: Vec<Mount>,
    read: Option<u64>,
    fuse: bool,
    /// Why the table could not be read, the last time.
    unreadable: Option<String>,
}

impl Places {
    /// With FUSE file systems, or without.
    pub(crate) fn new(fuse: bool) -> Self {
        Self {
            mounts: Vec::new(),
            read: None,
            fuse,
            unreadable: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn of(lines: &str, fuse: bool) -> Self {
        let mounts = tests::parse(lines);
        Self {
            mounts,
            read: Some(u64::MAX),
            fuse,
            unreadable: None,
        }
    }

    /// Why nothing is fetched, where the table of mounts cannot be read.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// True if a file of this device, seen under this path, may be fetched.
    pub(crate) fn allow(&mut self, path: &Path, device: u64, now: u64) -> bool {
        if self
            .read
            .is_none_or(|read| now.saturating_sub(read) > FRESH)
        {
            // Without the table, nothing is fetched from.
            let mounts = Mount::all();
            self.unreadable = mounts.as_ref().err().map(|why| {
                format!("nothing is fetched: the table of mounts cannot be read: {why}")
            });
            self.mounts = mounts.unwrap_or_default();
            self.read = Some(now);
        }
        // If two mounts have the same point, the later one hides the earlier.
        let under = self
            .mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len());
        under.is_some_and(|mount| {
            let kind = mount.fs_type.as_str();
            let is_served = self.fuse || !mount.is_in_user_space();
            mount.dev == device && !REFUSED.contains(&kind) && is_served
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    const TABLE: &str = "\
/ 8:1 ext4
/proc 0:4 proc
/dev/shm 0:5 tmpfs
/data 8:2 xfs
/data 8:3 xfs
/net 0:6 autofs
/mnt/remote 0:7 fuse.sshfs
";

    /// A table of mounts: point, device, type.
    pub(super) fn parse(lines: &str) -> Vec<Mount> {
        let mount = |line: &str| {
            let mut words = line.split(' ');
            let point = words.next()?.into();
            let (major, minor) = words.next()?.split_once(':')?;
            Some(Mount {
                id: 0,
                dev: makedev(major.parse().ok()?, minor.parse().ok()?),
                root: "/".into(),
                point,
                fs_type: words.next()?.into(),
                source: "none".into(),
                super_options: "rw".into(),
            })
        };
        lines.lines().filter_map(mount).collect()
    }

    #[test]
    fn only_files_of_what_is_mounted_there_are_fetched() {
        let mut places = Places::of(TABLE, false);
        let mut allow = |path: &str, device| places.allow(Path::new(path), device, 0);
        assert!(allow("/usr/bin/cc", makedev(8, 1)));
        assert!(!allow("/usr/bin/cc", makedev(8, 2)), "another namespace's");
        assert!(allow("/data/a", makedev(8, 3)));
        assert!(!allow("/data/a", makedev(8, 2)), "hidden by a later mount");
        assert!(!allow("/proc/1/maps", makedev(0, 4)));
        assert!(!allow("/dev/shm/a", makedev(0, 5)));
        assert!(!allow("/net/host/a", makedev(8, 1)), "an automount point");
        assert!(!allow("/mnt/remote/a", makedev(0, 7)));
        assert!(Places::of(TABLE, true).allow(Path::new("/mnt/remote/a"), makedev(0, 7), 0));
    }
}
