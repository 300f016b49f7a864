//! The only parsers of a process's `stat`, `status`, `cgroup` and `maps` in `/proc` ([`mounts`](crate::mounts) has that of `mountinfo`).
//!
//! Invariant: names are bytes. A process chooses its name, and a container those of its groups: whatever they hold, the fields after
//! them are found, and nothing here panics or allocates but for a whole file.

use std::io;
use std::path::Path;

use crate::text;

/// The fields of `/proc/PID/stat`, numbered from 1 as in proc_pid_stat(5).
#[derive(Clone, Copy, Debug)]
pub struct Stat<'a> {
    /// From the end of the name on: field 3 and those after it.
    after_name: &'a [u8],
}

impl<'a> Stat<'a> {
    /// The process's state: one letter.
    pub const STATE: usize = 3;
    /// Its parent.
    pub const PARENT: usize = 4;
    /// Its own processor time in user mode, in ticks; then that in kernel mode, and both of its children.
    pub const TIMES: std::ops::RangeInclusive<usize> = 14..=17;
    /// When it was started, in ticks since the machine was.
    pub const STARTED: usize = 22;
    /// The present or last processor.
    pub const PROCESSOR: usize = 39;
    /// Start and end of its arguments in memory.
    pub const ARGUMENTS: [usize; 2] = [48, 49];

    /// The fields of a `stat` file; `None` if it is malformed.
    pub fn of(stat: &'a [u8]) -> Option<Self> {
        // The name stands in parentheses, and may hold anything, parentheses too.
        let named = stat.iter().rposition(|&byte| byte == b')')?;
        Some(Self {
            after_name: &stat[named + 1..],
        })
    }

    /// A field after the name, from [`Stat::STATE`] on.
    pub fn field(self, number: usize) -> Option<&'a [u8]> {
        words(self.after_name).nth(number.checked_sub(Self::STATE)?)
    }

    /// A field that is a number.
    pub fn number<N: std::str::FromStr>(self, number: usize) -> Option<N> {
        parsed(self.field(number)?)
    }
}

/// The text of a process's `stat`.
///
/// # Errors
/// When it cannot be read.
pub fn stat(pid: u32) -> io::Result<Vec<u8>> {
    text::bytes(format!("/proc/{pid}/stat"))
}

/// The same of one of its threads.
///
/// # Errors
/// When it cannot be read.
pub fn stat_of_thread(pid: u32, tid: u32) -> io::Result<Vec<u8>> {
    text::bytes(format!("/proc/{pid}/task/{tid}/stat"))
}

/// The fields of `/proc/PID/status`.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a>(pub &'a [u8]);

impl<'a> Status<'a> {
    /// The words of a field; none if the field is missing. A newline in a process's name is escaped.
    pub fn words(self, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut lines = self.0.split(|&byte| byte == b'\n');
        let found = lines.find_map(|line| {
            let rest = line.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b":")
        });
        words(found.unwrap_or_default())
    }

    /// The first word of a field, if it is a number.
    pub fn number<N: std::str::FromStr>(self, name: &str) -> Option<N> {
        parsed(self.words(name).next()?)
    }
}

/// The text of a process's `status`.
///
/// # Errors
/// When it cannot be read.
pub fn status(pid: u32) -> io::Result<Vec<u8>> {
    text::bytes(format!("/proc/{pid}/status"))
}

/// The same of this process.
///
/// # Errors
/// When it cannot be read.
pub fn own_status() -> io::Result<Vec<u8>> {
    text::bytes("/proc/self/status")
}

/// A control group that a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// True for the second version, where one hierarchy has all controllers.
    pub is_unified: bool,
    controllers: &'a [u8],
    /// Its path from the root of its hierarchy, which may be outside the mounted part.
    pub path: &'a Path,
}

impl<'a> Group<'a> {
    /// The groups in the text of a `/proc/PID/cgroup`. A malformed line is skipped.
    pub fn all_in(membership: &'a [u8]) -> impl Iterator<Item = Self> {
        use std::os::unix::ffi::OsStrExt;

        let lines = membership.split(|&byte| byte == b'\n');
        lines.filter_map(|line| {
            let mut fields = line.splitn(3, |&byte| byte == b':');
            let (hierarchy, controllers) = (fields.next()?, fields.next()?);
            Some(Self {
                is_unified: hierarchy == b"0" && controllers.is_empty(),
                controllers,
                path: Path::new(std::ffi::OsStr::from_bytes(fields.next()?)),
            })
        })
    }

    /// True if the hierarchy has this controller by name, as in the first version.
    pub fn has(&self, controller: &str) -> bool {
        let mut all = self.controllers.split(|&byte| byte == b',');
        all.any(|one| one == controller.as_bytes())
    }
}

/// The text of this process's `cgroup`.
///
/// # Errors
/// When it cannot be read.
pub fn own_groups() -> io::Result<Vec<u8>> {
    text::bytes("/proc/self/cgroup")
}

/// The text of a process's `maps`.
///
/// # Errors
/// When it cannot be read.
pub fn maps(pid: u32) -> io::Result<Vec<u8>> {
    text::bytes(format!("/proc/{pid}/maps"))
}

/// The names of files in the text of a `/proc/PID/maps`, for each mapping. A newline in a name stands there as `\\012`.
pub fn mapped(maps: &[u8]) -> impl Iterator<Item = &Path> {
    use std::os::unix::ffi::OsStrExt;

    let lines = maps.split(|&byte| byte == b'\n');
    lines.filter_map(|line| {
        // Addresses, rights, offset, device and inode have no slash.
        let name = line.iter().position(|&byte| byte == b'/')?;
        Some(Path::new(std::ffi::OsStr::from_bytes(&line[name..])))
    })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(|byte| byte.is_ascii_whitespace());
    words.filter(|word| !word.is_empty())
}

fn parsed<N: std::str::FromStr>(word: &[u8]) -> Option<N> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_process_is_what_the_kernel_says() {
        let own = std::process::id();
        let text = stat(own).unwrap();
        let fields = Stat::of(&text).unwrap();
        let parent = std::os::unix::process::parent_id();
        assert_eq!(fields.number(Stat::PARENT), Some(parent));
        assert!(fields.number::<u64>(Stat::STARTED).is_some_and(|at| at > 0));
        assert!(
            fields
                .field(Stat::STATE)
                .is_some_and(|state| state.len() == 1)
        );
        let text = status(own).unwrap();
        let fields = Status(&text);
        assert_eq!(fields.number("Pid"), Some(own));
        assert_eq!(fields.number("PPid"), Some(parent));
        assert_eq!(fields.words("Uid").count(), 4);
        assert_eq!(fields.words("Pi").count(), 0);
        assert_eq!(Status(&own_status().unwrap()).number("Pid"), Some(own));
        assert!(Group::all_in(&own_groups().unwrap()).count() > 0);
    }

    #[test]
    fn a_field_is_known_by_its_whole_name() {
        let status = Status(b"VmPeak:\t 9 kB\nVmHWM:\t   2048 kB\n");
        assert_eq!(status.number("VmHWM"), Some(2048));
        assert_eq!(status.number::<u64>("Vm"), None);
        assert_eq!(Status(b"State:\tZ (zombie)\n").number::<u64>("VmHWM"), None);
    }

    #[test]
    fn groups_of_both_versions_are_told_apart() {
        let text = b"4:cpu,memory:/a:b\n1:name=x:/\n0::/c \xff\nnonsense\n";
        let groups: Vec<_> = Group::all_in(text).collect();
        assert_eq!(groups.len(), 3);
        assert!(groups[0].has("memory") && !groups[0].has("mem") && !groups[0].is_unified);
        assert_eq!(groups[0].path, Path::new("/a:b"));
        assert!(groups[2].is_unified && !groups[2].has("memory"));
    }

    #[test]
    fn mapped_files_are_named_whatever_their_names() {
        let text = b"00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/a b (c)\n\
            7ffc0000-7ffd0000 rw-p 00000000 00:00 0           [stack]\n\
            35b1800000-35b1820000 r-xp 00001000 08:02 1 /d/\xff.so\n\n";
        let names: Vec<_> = mapped(text)
            .map(|name| name.as_os_str().as_encoded_bytes())
            .collect();
        assert_eq!(names, [&b"/usr/bin/a b (c)"[..], b"/d/\xff.so"]);
        let own = maps(std::process::id()).unwrap();
        let own_program = std::env::current_exe().unwrap();
        assert!(mapped(&own).any(|name| name == own_program));
    }

    proptest! {
        #[test]
        fn a_process_may_have_any_name(name in proptest::collection::vec(any::<u8>(), 0..20)) {
            let stat = [&b"7 ("[..], &name, b") S 3 5 5 0"].concat();
            let fields = Stat::of(&stat).expect("a stat");
            prop_assert_eq!(fields.field(Stat::STATE), Some(&b"S"[..]));
            prop_assert_eq!(fields.number(Stat::PARENT), Some(3));
            prop_assert_eq!(fields.field(8), None);
        }

        #[test]
        fn no_bytes_are_too_odd(text in proptest::collection::vec(any::<u8>(), 0..300), number in 0_usize..60) {
            if let Some(fields) = Stat::of(&text) {
                let _ = (fields.field(number), fields.number::<u64>(number));
            }
            let _ = Status(&text).number::<u64>("PPid");
            let lines = text.split(|&byte| byte == b'\n').count();
            prop_assert!(Group::all_in(&text).count() <= lines);
        }
    }
}
