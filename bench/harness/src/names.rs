//! The names a command asks the kernel about, and the fastest way to bring them into memory.
//!
//! strace runs the command once and shows the names: files that are opened, looked up or executed, directories that are listed,
//! and names that do not exist, whose lookup reads their directory as well. The limit of a case includes the time to list each
//! directory and then to look up each name once, in the order of inodes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::parallel::spread;
use crate::process::{self, Invocation};
use crate::tools::in_path;

/// The program that shows the names, and the Debian package of the same name.
const STRACE: &str = "strace";
/// File systems in memory.
const IN_MEMORY: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Names, each one once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names that are looked up, including those that do not exist.
    pub looked: Vec<PathBuf>,
    /// Directories that are listed.
    pub listed: Vec<PathBuf>,
    /// Regular files that are opened or executed.
    pub opened: Vec<PathBuf>,
}

impl Names {
    /// The names that `command` asks about. Runs it once under strace, with the trace in `scratch`.
    pub fn of(command: &Invocation, scratch: &Path) -> Result<Self> {
        if !in_path(STRACE) {
            bail!("{STRACE} is missing: install the package {STRACE} (or run --install)");
        }
        let folder = scratch.join("strace");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let mut leading: Vec<OsString> = [
            "-ff",
            "-qq",
            "-y",
            "--seccomp-bpf",
            "-s",
            "0",
            "-e",
            "trace=file,getdents,getdents64",
            "-e",
            "signal=none",
            "-o",
        ]
        .map(Into::into)
        .to_vec();
        // One file per process, so that no call is cut in two by another process's call.
        leading.push(folder.join("trace").into());
        let run = process::run(&command.under(Path::new(STRACE), leading), scratch, &[])?;
        let mut found = Found::default();
        let traces =
            fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        for trace in traces {
            let path = trace
                .with_context(|| format!("listing {}", folder.display()))?
                .path();
            let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let mut cwd = command.cwd.clone();
            for line in text.split(|&byte| byte == b'\n') {
                found.add(line, &mut cwd);
            }
        }
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        if found.looked.is_empty() {
            bail!("{STRACE} saw no name: {}", run.stderr);
        }
        Ok(found.names(scratch))
    }

    /// The same names on the disk under test; `moved` maps a path to the path there.
    pub fn moved(self, moved: impl Fn(&Path) -> Result<PathBuf>) -> Result<Self> {
        let all = |paths: Vec<PathBuf>| -> Result<Vec<PathBuf>> {
            paths.iter().map(|path| moved(path)).collect()
        };
        Ok(Self {
            looked: all(self.looked)?,
            listed: all(self.listed)?,
            opened: all(self.opened)?,
        })
    }

    /// Orders the names by inode; a name that does not exist is placed with its nearest existing directory.
    pub fn order_by_inode(&mut self) {
        fn place(path: &Path) -> (u64, u64) {
            let found = path
                .ancestors()
                .find_map(|path| path.symlink_metadata().ok());
            found.map_or((0, 0), |metadata| (metadata.dev(), metadata.ino()))
        }
        self.looked.sort_by_cached_key(|path| place(path));
        self.listed.sort_by_cached_key(|path| place(path));
    }

    /// The number of lookups and listings.
    pub fn count(&self) -> usize {
        self.looked.len() + self.listed.len()
    }

    /// Lists the directories and then looks up the names, `depth` at once.
    pub fn bring(&self, depth: usize) -> Result<()> {
        // A name that is gone or may not be read costs the program a lookup as well.
        spread(
            depth,
            &self.listed,
            || (),
            |path, ()| {
                if let Ok(entries) = fs::read_dir(path) {
                    entries.for_each(drop);
                }
                Ok(())
            },
        )?;
        spread(
            depth,
            &self.looked,
            || (),
            |path, ()| {
                path.symlink_metadata().ok();
                Ok(())
            },
        )
    }
}

/// The names found in the trace lines so far.
#[derive(Default)]
struct Found {
    looked: BTreeSet<PathBuf>,
    listed: BTreeSet<PathBuf>,
    opened: BTreeSet<PathBuf>,
}

impl Found {
    /// Adds the names of one line such as `openat(AT_FDCWD</tmp>, "a/b", O_RDONLY) = 3</tmp/a/b>`. `cwd` is the working directory
    /// of the process as far as it is known.
    fn add(&mut self, line: &[u8], cwd: &mut PathBuf) {
        let Some(call) = Call::parse(line) else {
            return;
        };
        if let Some(folder) = &call.working_directory {
            cwd.clone_from(folder);
        }
        if call.name.starts_with("getdents") {
            self.listed.extend(call.folder);
            return;
        }
        for path in &call.paths {
            let base = call.folder.as_ref().unwrap_or(cwd);
            let path = plain(&base.join(path));
            match call.name.as_str() {
                "chdir" if call.done => cwd.clone_from(&path),
                "open" | "openat" | "openat2" => self.opened.extend(call.result.clone()),
                "execve" | "execveat" if call.done => {
                    self.opened.insert(path.clone());
                }
                _ => {}
            }
            self.looked.insert(path);
        }
    }

    /// The names that are on a disk, without those in `scratch`, which is in memory.
    fn names(self, scratch: &Path) -> Names {
        let on_disk = |path: &PathBuf| {
            let memory = IN_MEMORY.iter().map(Path::new).chain([scratch]);
            path.is_absolute() && !memory.into_iter().any(|folder| path.starts_with(folder))
        };
        let only = |paths: BTreeSet<PathBuf>| paths.into_iter().filter(on_disk).collect();
        Names {
            looked: only(self.looked),
            listed: only(self.listed),
            opened: self
                .opened
                .into_iter()
                .filter(on_disk)
                .filter(|path| path.metadata().is_ok_and(|metadata| metadata.is_file()))
                .collect(),
        }
    }
}

/// A call as strace prints it with `-y`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Call {
    name: String,
    /// The names among its arguments.
    paths: Vec<PathBuf>,
    /// The folder of the first argument, if that is a descriptor.
    folder: Option<PathBuf>,
    /// The working directory, if the first argument stands for it.
    working_directory: Option<PathBuf>,
    /// True if the call succeeded.
    done: bool,
    /// The file of the returned descriptor.
    result: Option<PathBuf>,
}

impl Call {
    fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let name = String::from_utf8(line[..open].to_vec()).ok()?;
        let mut call = Self {
            name,
            ..Self::default()
        };
        let arguments = &line[open + 1..];
        let mut rest = arguments;
        if let Some((folder, behind)) = descriptor(arguments) {
            if arguments.starts_with(b"AT_FDCWD") {
                call.working_directory = Some(folder.clone());
            }
            call.folder = Some(folder);
            rest = behind;
        }
        // Further strings are the content of a link or the words of a command line.
        let most = match call.name.as_str() {
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => 2,
            _ => 1,
        };
        while call.paths.len() < most
            && let Some(quote) = rest.iter().position(|&byte| byte == b'"')
        {
            let (path, behind) = quoted(&rest[quote + 1..])?;
            call.paths.push(path);
            rest = behind;
        }
        let end = rest.windows(4).position(|four| four == b") = ")?;
        let result = &rest[end + 4..];
        call.done = result.first().is_some_and(u8::is_ascii_digit);
        call.result = descriptor(result).map(|(path, _)| path);
        Some(call)
    }
}

/// The path behind a descriptor such as `3</tmp>` at the beginning of `text`, and the text after it.
fn descriptor(text: &[u8]) -> Option<(PathBuf, &[u8])> {
    let name = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
    (name > 0 && text[name] == b'<')
        .then(|| bracketed(&text[name + 1..]))
        .flatten()
}

/// A C string up to its closing quote, and the text after it.
fn quoted(text: &[u8]) -> Option<(PathBuf, &[u8])> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let (&byte, tail) = rest.split_first()?;
        match byte {
            b'"' => return Some((OsString::from_vec(bytes).into(), tail)),
            b'\\' => {
                let (byte, tail) = escaped(tail)?;
                bytes.push(byte);
                rest = tail;
            }
            byte => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
}

/// The path of a descriptor up to its `>`, and the text after it.
fn bracketed(text: &[u8]) -> Option<(PathBuf, &[u8])> {
    let end = text.iter().position(|&byte| byte == b'>')?;
    let mut bytes = Vec::new();
    let mut rest = &text[..end];
    while let Some((&byte, tail)) = rest.split_first() {
        (bytes, rest) = if byte == b'\\' {
            let (byte, tail) = escaped(tail)?;
            bytes.push(byte);
            (bytes, tail)
        } else {
            bytes.push(byte);
            (bytes, tail)
        };
    }
    Some((OsString::from_vec(bytes).into(), &text[end + 1..]))
}

/// The byte of an escape sequence after its backslash, and the text after it.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let octal = text
        .iter()
        .take(3)
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    if octal > 0 {
        let digits = std::str::from_utf8(&text[..octal]).ok()?;
        let value = u16::from_str_radix(digits, 8).ok()?;
        return Some((u8::try_from(value).ok()?, &text[octal..]));
    }
    let (&byte, tail) = text.split_first()?;
    let meant = match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        other => other,
    };
    Some((meant, tail))
}

/// A path without `.` and without `..`, as far as the names alone allow; links are not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&str]) -> Names {
        let mut found = Found::default();
        let mut cwd = PathBuf::from("/work");
        for line in lines {
            found.add(line.as_bytes(), &mut cwd);
        }
        Names {
            looked: found.looked.into_iter().collect(),
            listed: found.listed.into_iter().collect(),
            opened: found.opened.into_iter().collect(),
        }
    }

    #[test]
    fn opened_missing_and_listed_names_are_told_with_their_folders() {
        let names = found(&[
            r#"execve("/usr/bin/grep", ["grep", "a) = 3"], 0x7ffe /* 35 vars */) = 0"#,
            r#"access("rel", R_OK) = -1 ENOENT (No such file or directory)"#,
            r#"openat(AT_FDCWD</data>, "./d/../a\40b", O_RDONLY) = 3</data/a\40b>"#,
            r#"newfstatat(3</data/sub>, "x", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0"#,
            "getdents64(4</data/sub>, 0x55e2 /* 12 entries */, 32768) = 400",
            r#"readlink("/proc/self/exe", ""..., 4096) = 13"#,
            r#"access("later", R_OK) = 0"#,
            "+++ exited with 0 +++",
        ]);
        let paths = |words: &[&str]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            names.looked,
            paths(&[
                "/data/a b",
                "/data/later",
                "/data/sub/x",
                "/proc/self/exe",
                "/usr/bin/grep",
                "/work/rel"
            ])
        );
        assert_eq!(names.listed, paths(&["/data/sub"]));
        assert_eq!(names.opened, paths(&["/data/a b", "/usr/bin/grep"]));
    }

    #[test]
    fn a_commands_names_are_those_of_all_its_processes_on_a_disk() {
        if !in_path(STRACE) {
            println!("skipped: no {STRACE}");
            return;
        }
        let dir = tempfile::tempdir_in(crate::cache::build_dir()).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir(dir.join("sub")).unwrap();
        fs::write(dir.join("sub/file"), "text").unwrap();
        let command = Invocation {
            program: "/bin/sh".into(),
            args: vec![
                "-c".into(),
                "ls sub; cat sub/file sub/none; cat /proc/version".into(),
            ],
            cwd: dir.clone(),
            env: Vec::new(),
        };
        let names = Names::of(&command, scratch.path()).unwrap();
        assert!(names.listed.contains(&dir.join("sub")), "{names:?}");
        assert!(names.opened.contains(&dir.join("sub/file")), "{names:?}");
        assert!(names.looked.contains(&dir.join("sub/none")), "{names:?}");
        let programs = |name| names.opened.iter().any(|path| path.ends_with(name));
        assert!(programs("cat") && programs("ls"), "{names:?}");
        assert!(!names.looked.iter().any(|path| path.starts_with("/proc")));
    }

    #[test]
    fn names_come_in_the_order_of_their_inodes_and_what_is_gone_hurts_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["c", "a", "b"] {
            fs::write(path(name), "").unwrap();
        }
        let mut names = Names {
            looked: ["a", "b", "c", "none"].map(path).to_vec(),
            listed: vec![dir.path().to_owned(), path("gone")],
            opened: Vec::new(),
        };
        names.order_by_inode();
        let inode = |path: &PathBuf| path.symlink_metadata().map(|metadata| metadata.ino()).ok();
        let inodes: Vec<u64> = names.looked.iter().filter_map(inode).collect();
        assert!(inodes.is_sorted() && inodes.len() == 3, "{names:?}");
        names.bring(4).unwrap();
    }
}
