//! Limits of the memory for prefetched pages.
//!
//! Invariant: the answer never exceeds the kernel's own estimate of memory usable without swapping (`MemAvailable`), nor the room left in
//! any control group of the process. Unreadable limits count as absent.
//!
//! Data flow: [`available`] reads the files; the functions below it turn their text into
//! bytes and are pure.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::mounts::Mount;
use crate::procfs::{self, Group};
use crate::text;

/// Budget if the free memory is unknown: small enough for any machine.
const UNKNOWN: u64 = 256 << 20;

/// The kernel's read-ahead is lengthened if this many times its size has room in memory: twice as much, for several streams at a time.
const STREAMS: u64 = 32;

/// True if a read-ahead of this many bytes may be doubled for a session with this much memory.
pub fn has_room_for_streams(memory: u64, read_ahead: u64) -> bool {
    read_ahead <= memory / STREAMS
}

/// Initial budget of a session in bytes: three quarters of the free memory, because the program needs memory, too.
pub fn budget() -> u64 {
    share(available())
}

/// Free memory in bytes, as far as it is known.
pub fn free() -> u64 {
    available().unwrap_or(UNKNOWN)
}

fn share(available: io::Result<u64>) -> u64 {
    available.map_or(UNKNOWN, |bytes| bytes / 4 * 3)
}

/// Bytes that can be put into the page cache without pushing anything else out.
pub fn available() -> io::Result<u64> {
    let meminfo = text::read("/proc/meminfo")?;
    let free = mem_available(&meminfo).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "/proc/meminfo has no MemAvailable",
        )
    })?;
    Ok(cgroup_room().map_or(free, |room| free.min(room)))
}

/// Bytes left under the tightest control group limit on this process; `None` without a limit.
pub fn cgroup_room() -> Option<u64> {
    memory_cgroups()
        .into_iter()
        .flat_map(|group| {
            let version = group.version;
            group
                .folders()
                .into_iter()
                .filter_map(move |folder| match version {
                    Version::One => room_v1(&folder),
                    Version::Two => room_v2(&folder),
                })
        })
        .min()
}

/// The control-group interface that limits memory here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The memory controller's own hierarchy.
    One,
    /// The unified hierarchy.
    Two,
}

/// A control group of this process whose hierarchy can limit memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCgroup {
    /// Its interface.
    pub version: Version,
    /// Mount point of the hierarchy.
    pub mount: PathBuf,
    /// The group, below the mount.
    pub path: PathBuf,
}

impl MemoryCgroup {
    /// The group's folder and those above it, up to the mount: each may set a limit.
    fn folders(&self) -> Vec<PathBuf> {
        self.path
            .ancestors()
            .map(|group| self.mount.join(group))
            .collect()
    }
}

/// The control groups of this process that can limit its memory.
pub fn memory_cgroups() -> Vec<MemoryCgroup> {
    let membership = procfs::own_groups().unwrap_or_default();
    let mounts = Mount::table().unwrap_or_default();
    locate(&membership, &mounts)
}

/// Finds the memory hierarchies in the text of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn locate(membership: &[u8], mounts: &[u8]) -> Vec<MemoryCgroup> {
    let has_memory = |list: &[u8]| list.split(|byte| *byte == b',').any(|one| one == b"memory");
    let group_of = |version| {
        let mut groups = Group::all_in(membership);
        let found = groups.find(|group| match version {
            Version::One => group.has("memory"),
            Version::Two => group.is_unified,
        });
        found.map(|group| group.path)
    };
    Mount::all_in(mounts)
        .filter_map(|mount| {
            let version = match mount.fs_type.as_str() {
                "cgroup" if has_memory(mount.super_options.as_bytes()) => Version::One,
                "cgroup2" => Version::Two,
                _ => return None,
            };
            let group = group_of(version)?;
            // In a container the mount shows only part of the hierarchy, its root included.
            let below = group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
            Some(MemoryCgroup {
                version,
                path: below.strip_prefix("/").unwrap_or(below).to_path_buf(),
                mount: mount.point,
            })
        })
        .collect()
}

fn room_v1(folder: &Path) -> Option<u64> {
    let read = |name: &str| text::read(folder.join(name)).ok();
    room(
        limit(&read("memory.limit_in_bytes")?)?,
        number(&read("memory.usage_in_bytes")?)?,
        field(&read("memory.stat")?, "total_inactive_file").unwrap_or(0),
    )
}

fn room_v2(folder: &Path) -> Option<u64> {
    let read = |name: &str| text::read(folder.join(name)).ok();
    let max = read("memory.max").as_deref().and_then(limit);
    let high = read("memory.high").as_deref().and_then(limit);
    room(
        [max, high].into_iter().flatten().min()?,
        number(&read("memory.current")?)?,
        field(&read("memory.stat")?, "inactive_file").unwrap_or(0),
    )
}

/// Room left in a group: its limit minus its use, where inactive file pages count as free.
fn room(limit: u64, used: u64, inactive_file: u64) -> Option<u64> {
    Some(limit.saturating_sub(used.saturating_sub(inactive_file)))
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

/// A limit in bytes; `max`, and the huge number version 1 writes for it, are none.
fn limit(text: &str) -> Option<u64> {
    // Version 1 writes i64::MAX rounded down to a page.
    number(text).filter(|&bytes| bytes < i64::MAX as u64 / 2)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The value of `key` in `memory.stat`.
fn field(stat: &str, key: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| number(value)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn the_budget_leaves_a_quarter_of_free_memory_to_the_program() {
        assert_eq!(share(Ok(1 << 30)), 3 << 28);
        assert_eq!(share(Err(io::Error::other("no"))), UNKNOWN);
    }

    #[test]
    fn mem_available_is_in_bytes() {
        let text = "MemTotal:  100 kB\nMemFree:  50 kB\nMemAvailable:   24336032 kB\n";
        assert_eq!(mem_available(text), Some(24_336_032 * 1024));
        assert_eq!(mem_available("MemFree: 50 kB\n"), None);
    }

    #[test]
    fn an_unlimited_group_sets_no_limit() {
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("9223372036854771712\n"), None);
        assert_eq!(limit("1073741824\n"), Some(1 << 30));
    }

    #[test]
    fn inactive_file_pages_count_as_room() {
        assert_eq!(room(1000, 900, 300), Some(400));
        assert_eq!(room(1000, 5000, 300), Some(0));
        assert_eq!(room(1000, 100, 300), Some(1000));
    }

    #[test]
    fn stat_fields_are_matched_whole() {
        let stat = "inactive_file 1\ntotal_inactive_file 4096\n";
        assert_eq!(field(stat, "total_inactive_file"), Some(4096));
        assert_eq!(field(stat, "inactive_file"), Some(1));
        assert_eq!(field(stat, "file"), None);
    }

    #[test]
    fn both_hierarchies_are_found_with_every_level_above_the_group() {
        let membership = b"9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/\n0::/c\n";
        let groups = locate(membership, MOUNTS);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].version, Version::One);
        assert_eq!(
            groups[0].folders(),
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory/"
            ]
            .map(PathBuf::from)
        );
        assert_eq!(groups[1].version, Version::Two);
        assert_eq!(groups[1].path, Path::new("c"));
    }

    #[test]
    fn a_container_that_sees_part_of_the_hierarchy_is_located_in_it() {
        let mounts = b"35 31 0:32 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        let groups = locate(b"0::/docker/x/job\n", mounts);
        assert_eq!(groups[0].path, Path::new("job"));
        let outside = locate(b"0::/../other\n", mounts);
        assert_eq!(outside[0].path, Path::new(""));
    }

    #[test]
    fn this_machine_has_some_memory_and_no_more_than_the_kernel_says() {
        let text = text::read("/proc/meminfo").unwrap();
        let total: u64 = text
            .lines()
            .find_map(|l| l.strip_prefix("MemTotal:"))
            .and_then(|l| l.trim().strip_suffix("kB"))
            .and_then(number)
            .unwrap();
        let available = available().unwrap();
        assert!(available > 0 && available <= total * 1024, "{available}");
    }
}
