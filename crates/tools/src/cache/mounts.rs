//! The file systems whose files are examined: those on devices of this machine. A network server may never answer, and a process that
//! serves a file system (FUSE) may compute each block. The others (proc, tmpfs) are in memory or have no pages.
//!
//! Data flow: table of mounts and the kernel's list of file systems → [`Mounts`].

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use foreread_sys::mounts::{Mount, is_in_user_space};

/// File systems that the kernel lists without a block device, though their files are on devices.
const DEVICELESS: [&str; 3] = ["overlay", "zfs", "virtiofs"];

/// The mounted file systems.
#[derive(Debug)]
pub(super) struct Mounts {
    /// The type of the uppermost file system at each mount point.
    points: HashMap<PathBuf, String>,
    /// Types without a block device.
    without_device: Vec<String>,
}

impl Mounts {
    /// Reads the mounts of this process's namespace.
    pub(super) fn now() -> io::Result<Self> {
        let named =
            |why: io::Error| io::Error::new(why.kind(), format!("/proc/filesystems: {why}"));
        let types = std::fs::read_to_string("/proc/filesystems").map_err(named)?;
        Ok(Self::of(Mount::all()?, &types))
    }

    fn of(mounts: Vec<Mount>, types: &str) -> Self {
        let without = types
            .lines()
            .filter_map(|line| line.strip_prefix("nodev\t"));
        let each = mounts.into_iter().map(|mount| (mount.point, mount.fs_type));
        Self {
            // A later mount hides an earlier one.
            points: each.collect(),
            without_device: without.map(str::to_owned).collect(),
        }
    }

    /// The type of the file system mounted exactly at this path, if its files are left out.
    pub(super) fn refused_at(&self, point: &Path) -> Option<&str> {
        let kind = self.points.get(point)?;
        (!self.is_local(kind)).then_some(kind)
    }

    /// The type of the file system of this path, if its files are left out. The path must not lead through a link.
    pub(super) fn refused(&self, path: &Path) -> Option<&str> {
        let point = path.ancestors().find(|at| self.points.contains_key(*at));
        point.and_then(|point| self.refused_at(point))
    }

    fn is_local(&self, kind: &str) -> bool {
        let has_device = !self.without_device.iter().any(|known| known == kind);
        !is_in_user_space(kind) && (has_device || DEVICELESS.contains(&kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
1 1 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:5 / /proc rw - proc proc rw
3 1 0:6 / /home rw - autofs auto rw
4 3 8:2 / /home rw - xfs /dev/sdb1 rw
5 1 0:7 / /net rw - nfs4 server:/ rw
6 1 0:8 / /image rw - fuse.squashfuse image rw
7 1 0:9 / /layers rw - overlay overlay rw
8 1 0:10 / /auto rw - autofs auto rw
9 1 8:3 / /ntfs rw - fuseblk /dev/sdc1 rw
";

    #[test]
    fn local_file_systems_are_looked_at_and_what_is_uppermost_counts() {
        let types =
            "nodev\tproc\nnodev\tautofs\nnodev\tnfs4\nnodev\toverlay\n\text4\n\txfs\n\tfuseblk\n";
        let mounts = Mounts::of(Mount::all_in(TABLE).collect(), types);
        for (path, refused) in [
            ("/", None),
            ("/home/me/file", None),
            ("/layers/a", None),
            ("/proc/1", Some("proc")),
            ("/net", Some("nfs4")),
            ("/image/a/b", Some("fuse.squashfuse")),
            ("/auto", Some("autofs")),
            ("/ntfs/a", Some("fuseblk")),
            ("/network", None),
        ] {
            assert_eq!(mounts.refused(Path::new(path)), refused, "{path}");
        }
        assert_eq!(mounts.refused_at(Path::new("/net")), Some("nfs4"));
        assert_eq!(mounts.refused_at(Path::new("/net/a")), None);
    }
}
