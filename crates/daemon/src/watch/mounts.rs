//! Which file systems are mounted: the table that the kernel keeps for this process's mount namespace.
//!
//! Invariant: whatever a mount point is called, one line of the table is one mount; what is no such line is left out.
//!
//! Data flow: `/proc/self/mountinfo` → [`Mount`]s.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The table.
pub(super) const TABLE: &str = "/proc/self/mountinfo";
/// Types of file systems that have no block device of their own and files on a device all the same.
const DEVICELESS: [&str; 3] = ["overlay", "zfs", "virtiofs"];

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Device number as the table has it, `major:minor`.
    pub(super) device: String,
    /// Whether the whole file system is mounted, not a folder of it.
    pub(super) whole: bool,
    /// Where.
    pub(super) point: PathBuf,
    /// The type, `ext4`.
    pub(super) kind: String,
}

impl Mount {
    /// The mount that a line of the table tells of.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let text = |word: &[u8]| String::from_utf8(word.to_vec()).ok();
        let device = text(words.nth(2)?)?;
        let whole = words.next()? == b"/";
        let point = PathBuf::from(OsString::from_vec(unescaped(words.next()?)));
        // Optional fields end with a dash.
        words.find(|word| *word == b"-")?;
        let kind = text(words.next()?)?;
        point.is_absolute().then_some(Self {
            device,
            whole,
            point,
            kind,
        })
    }
}

/// The mounts there are, for each file system the one best suited to find its files: a whole one before one of a folder.
pub(super) fn by_device() -> io::Result<(Vec<Mount>, u64)> {
    use std::hash::{Hash, Hasher};

    let table = std::fs::read(TABLE)?;
    let mut hasher = rustc_hash::FxHasher::default();
    table.hash(&mut hasher);
    let mut found: Vec<Mount> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for line in table.split(|byte| *byte == b'\n') {
        let Some(mount) = Mount::parse(line) else {
            continue;
        };
        let place = *places
            .entry(mount.device.clone())
            .or_insert_with(|| found.len());
        match found.get_mut(place) {
            None => found.push(mount),
            Some(known) if !known.whole && mount.whole => *known = mount,
            Some(_) => {}
        }
    }
    Ok((found, hasher.finish()))
}

/// Types of file systems whose files lie on a device: what the kernel asks no device for is not worth a look, and network file
/// systems may never answer.
#[derive(Debug)]
pub(super) struct Kinds {
    without_device: Vec<String>,
    /// Whether file systems in user space are watched.
    fuse: bool,
}

impl Kinds {
    /// As this kernel says.
    pub(super) fn known(fuse: bool) -> io::Result<Self> {
        let list = std::fs::read_to_string("/proc/filesystems")?;
        let without = list.lines().filter_map(|line| line.strip_prefix("nodev\t"));
        Ok(Self {
            without_device: without.map(str::to_owned).collect(),
            fuse,
        })
    }

    /// Whether files of this type are watched.
    pub(super) fn has(&self, kind: &str) -> bool {
        if kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.") {
            return self.fuse;
        }
        DEVICELESS.contains(&kind) || !self.without_device.iter().any(|known| known == kind)
    }
}

/// A path as it is: the table writes spaces, tabs, newlines and backslashes as three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let code = after.first_chunk::<3>().filter(|_| *byte == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                out.push(code);
                rest = &after[3..];
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn mounts_are_read_whatever_their_names() {
        let line = b"36 35 98:0 /mnt1 /a\\040b\\134c\\012d rw,noatime master:1 shared:2 - ext3 /dev/root rw";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!(mount.point, Path::new("/a b\\c\nd"));
        assert_eq!(
            (mount.device.as_str(), mount.kind.as_str(), mount.whole),
            ("98:0", "ext3", false)
        );
        let whole = Mount::parse(b"1 1 8:1 / /data rw - xfs /dev/sda1 rw").expect("a mount");
        assert!(whole.whole && whole.kind == "xfs");
        for cut in 0..line.len() - 18 {
            assert_eq!(Mount::parse(&line[..cut]), None, "{cut}");
        }
        for odd in [&b"\\"[..], b"\\9zz", b"\\04", b"\\777"] {
            assert_eq!(unescaped(odd), odd);
        }
    }

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
