//! The table of mounts that the kernel keeps for this process's mount namespace, and its only parser.
//!
//! Invariant: paths are bytes. For any name of a mount, its line is one mount; a malformed line is left out, and hides no other.
//!
//! Data flow: `/proc/self/mountinfo` → [`Mount::table`] → [`Mount::all_in`].

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The table.
pub const TABLE: &str = "/proc/self/mountinfo";
/// Bytes of most tables, at most.
const MOST: usize = 16 << 10;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The mount's number, as `statx` has it.
    pub id: u64,
    /// Device number of the files on it.
    pub dev: u64,
    /// The folder of the file system that is mounted.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// The file system's type.
    pub fs_type: String,
    /// The mounted source: a device, a server's export, a name.
    pub source: OsString,
    /// The options of the file system itself.
    pub super_options: OsString,
}

impl Mount {
    /// All mounts this process sees, later ones over earlier ones.
    ///
    /// # Errors
    ///
    /// As [`Mount::table`].
    pub fn all() -> io::Result<Vec<Self>> {
        Ok(Self::all_in(&Self::table()?).collect())
    }

    /// The table as the kernel writes it.
    ///
    /// # Errors
    ///
    /// When it cannot be read; the error names it.
    pub fn table() -> io::Result<Vec<u8>> {
        let mut table = Vec::with_capacity(MOST);
        File::open(TABLE)
            .and_then(|mut file| file.read_to_end(&mut table))
            .map_err(|why| crate::refused(TABLE, &why))?;
        Ok(table)
    }

    /// The mounts of a table.
    pub fn all_in(table: &[u8]) -> impl Iterator<Item = Self> + '_ {
        table.split(|byte| *byte == b'\n').filter_map(Self::parse)
    }

    /// True if a process serves the file system (FUSE).
    pub fn is_in_user_space(&self) -> bool {
        is_in_user_space(&self.fs_type)
    }

    /// True if the whole file system is mounted, and not a folder of it.
    pub fn is_whole(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Parses a line; `None` if it is malformed.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = number(fields.next()?)?;
        let mut device = fields.nth(1)?.split(|byte| *byte == b':');
        let (major, minor) = (number(device.next()?)?, number(device.next()?)?);
        let dev = rustix::fs::makedev(major.try_into().ok()?, minor.try_into().ok()?);
        let root = PathBuf::from(unescape(fields.next()?));
        let point = PathBuf::from(unescape(fields.next()?));
        // Optional fields end with a dash.
        fields.find(|field| *field == b"-")?;
        let fs_type = String::from_utf8_lossy(fields.next()?).into_owned();
        let source = unescape(fields.next()?);
        // The kernel escapes blanks here as well; a file system in user space may not.
        let options: Vec<&[u8]> = fields.collect();
        point.is_absolute().then(|| Self {
            id,
            dev,
            root,
            point,
            fs_type,
            source,
            super_options: OsString::from_vec(options.join(&b' ')),
        })
    }
}

/// True if processes serve file systems of this type (FUSE).
pub fn is_in_user_space(fs_type: &str) -> bool {
    matches!(fs_type, "fuse" | "fuseblk") || fs_type.starts_with("fuse.")
}

fn number(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Undoes the escapes of mount tables, where blanks, tabs, newlines and backslashes are three octal digits.
pub(crate) fn unescape(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_line_is_a_mount_whatever_bytes_are_in_its_paths() {
        let line = b"36 35 98:0 /mnt\xfe /a\\040b\\134c\\012\xff rw,noatime master:1 shared:2 - ext3 /dev/r\xfdot rw,errors=continue";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!(mount.point.as_os_str(), OsStr::from_bytes(b"/a b\\c\n\xff"));
        assert_eq!(mount.root.as_os_str(), OsStr::from_bytes(b"/mnt\xfe"));
        assert_eq!(mount.source, OsStr::from_bytes(b"/dev/r\xfdot"));
        assert_eq!(mount.super_options, "rw,errors=continue");
        assert_eq!((mount.id, mount.dev), (36, rustix::fs::makedev(98, 0)));
        assert!(mount.fs_type == "ext3" && !mount.is_whole());
        let before_source = line.len() - b" /dev/r\xfdot rw,errors=continue".len();
        for cut in 0..before_source {
            assert_eq!(Mount::parse(&line[..cut]), None, "{cut}");
        }
        for odd in [&b"\\"[..], b"\\9zz", b"\\04", b"\\777", b"a\\b"] {
            assert_eq!(unescape(odd), OsStr::from_bytes(odd));
        }
    }

    #[test]
    fn a_line_that_is_none_hides_no_other() {
        let table = b"nonsense \xff\n1 1 8:1 / /data rw - xfs /dev/sda1 rw\n\xff\xfe\n2 1 0:9 / /\xff rw - tmpfs none rw\n";
        let mounts: Vec<_> = Mount::all_in(table).collect();
        assert_eq!(mounts.len(), 2);
        assert!(mounts[0].is_whole() && mounts[0].fs_type == "xfs");
    }

    #[test]
    fn this_machine_has_a_root() {
        let mounts = Mount::all().unwrap();
        assert!(mounts.iter().any(|mount| mount.point == Path::new("/")));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(table in proptest::collection::vec(any::<u8>(), 0..400)) {
            let lines = table.split(|byte| *byte == b'\n').count();
            prop_assert!(Mount::all_in(&table).count() <= lines);
        }

        #[test]
        fn what_the_kernel_escapes_is_read_back(path in proptest::collection::vec(1_u8.., 0..60)) {
            let escape = |byte: &u8| match byte {
                b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
                _ => vec![*byte],
            };
            let escaped: Vec<u8> = path.iter().flat_map(escape).collect();
            let line = [b"7 1 8:2 / /", &escaped[..], b" rw - ext4 /dev/sda2 rw"].concat();
            let point = Mount::parse(&line).expect("a mount").point;
            prop_assert_eq!(&point.as_os_str().as_bytes()[1..], &path[..]);
        }
    }
}
