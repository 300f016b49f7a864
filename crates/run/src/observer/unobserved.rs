//! Why processes of the program are not observed.
//!
//! A process that is about to execute another program reports that, and the library in the new program reports its presence. A process that
//! is missing in between is examined from outside while it lives: its program and its environment.
//!
//! Data flow: [`Ring::gone`] → [`Missing::look`], now and then → [`Missing::sentences`], at the end.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_ring::{ENV, Ring, Unobserved};
use foreread_sys::{process, text};
use foreread_words::counted;
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// Interval from the first examination of a process to the next; each later interval is twice as long.
const FIRST: Duration = Duration::from_millis(5);
/// Number of processes remembered, and examined in one poll.
const REMEMBERED: usize = 4096;
const AT_ONCE: usize = 16;
/// Bytes read of an executable and of an environment, at most: both are untrusted.
const EXECUTABLE: u64 = 4096;
const ENVIRONMENT: u64 = 4 << 20;
/// Bytes of most environments, at most. Without room for them the standard library begins to read with 32 bytes.
const MOST: usize = 16 << 10;

/// Why a process is not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Why {
    Static,
    ThirtyTwoBit,
    OtherLoader,
    Privileged,
    OtherUser,
    OtherRoot,
    Cleared,
    Limited,
    Filtered,
}

impl Why {
    /// After "one process was not observed:".
    fn words(self) -> &'static str {
        match self {
            Why::Static => "statically linked",
            Why::ThirtyTwoBit => "a 32-bit program",
            Why::OtherLoader => "linked with another C library than glibc",
            Why::Privileged => {
                "started with other privileges (set-user-ID, set-group-ID or capabilities)"
            }
            Why::OtherUser => "another user's",
            Why::OtherRoot => "under another root directory",
            Why::Cleared => "given an environment without foreread's variables",
            Why::Limited => "limited in its address space or data",
            Why::Filtered => "under a system-call filter from its start",
        }
    }
}

/// A missing process, as last examined.
#[derive(Debug)]
struct Look {
    why: Option<Why>,
    next: Instant,
    pause: Duration,
}

/// The processes that were found missing.
#[derive(Debug, Default)]
pub(super) struct Missing(HashMap<u32, Look>);

impl Missing {
    /// Look at the processes that are missing now.
    pub(super) fn look(&mut self, ring: &Ring) {
        let now = Instant::now();
        let mut left = AT_ONCE;
        for pid in ring.gone() {
            let due = self.0.get(&pid).is_none_or(|look| look.next <= now);
            if !due || left == 0 || self.0.len() >= REMEMBERED {
                continue;
            }
            left -= 1;
            // The process may not have executed the new program yet.
            let found = why(pid);
            let look = self.0.entry(pid).or_insert(Look {
                why: None,
                next: now,
                pause: FIRST / 2,
            });
            look.pause *= 2;
            look.next = now + look.pause;
            if let Ok(found) = found {
                look.why = found;
            }
        }
    }

    /// Sentences on programs missing at the end, and on those observed in part.
    pub(super) fn sentences(&self, ring: &Ring) -> Vec<String> {
        let why = ring
            .gone()
            .map(|pid| self.0.get(&pid).and_then(|look| look.why));
        sentences(ring.unobserved(), why)
    }
}

/// The sentences, given why each process that is missing still is.
fn sentences(count: Unobserved, why: impl Iterator<Item = Option<Why>>) -> Vec<String> {
    let mut reasons: Vec<Why> = why.flatten().collect();
    reasons.sort_unstable();
    let told = reasons.len() as u64;
    let mut parts: Vec<(u64, &str)> = reasons
        .chunk_by(|a, b| a == b)
        .map(|same| (same.len() as u64, same[0].words()))
        .collect();
    parts.push((
        count.apart.into(),
        "in another PID namespace, or without foreread's /proc",
    ));
    parts.push((
        u64::from(count.gone).saturating_sub(told),
        "ended or started before foreread could see why",
    ));
    parts.retain(|(count, _)| *count > 0);
    let total: u64 = parts.iter().map(|(count, _)| count).sum();
    let mut said = Vec::new();
    if total > 0 {
        let were = counted(total, "process was", "processes were");
        let list = match parts[..] {
            [(_, only)] => only.to_owned(),
            _ => {
                let list = parts.iter().map(|(count, why)| format!("{count} {why}"));
                list.collect::<Vec<_>>().join("; ")
            }
        };
        said.push(format!("{were} not observed: {list}"));
    }
    if count.filtered > 0 {
        let were = counted(count.filtered.into(), "process was", "processes were");
        said.push(format!(
            "{were} observed only as far as a system-call filter allows"
        ));
    }
    said
}

/// Why a process is not observed; `None` if nothing stands in the way, an error if it has ended.
fn why(pid: u32) -> io::Result<Option<Why>> {
    let at = |name: &str| format!("/proc/{pid}/{name}");
    let folder = fs::metadata(at(""))?;
    let mut exe = match File::open(at("exe")) {
        Ok(exe) => exe,
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Some(Why::OtherUser));
        }
        Err(why) => return Err(why),
    };
    if let Some(why) = of_executable(&mut exe)? {
        return Ok(Some(why));
    }
    if is_privileged(&exe, Path::new(&at("exe"))) {
        return Ok(Some(Why::Privileged));
    }
    let own = rustix::process::geteuid().as_raw();
    if folder.uid() != own {
        return Ok(Some(Why::OtherUser));
    }
    if fs::read_link(at("root"))? != Path::new("/") {
        return Ok(Some(Why::OtherRoot));
    }
    // Checked before the environment, from which the library is removed because of the limit.
    if is_limited(&text::read(at("limits"))?) {
        return Ok(Some(Why::Limited));
    }
    let mut environment = Vec::with_capacity(MOST);
    File::open(at("environ"))?
        .take(ENVIRONMENT)
        .read_to_end(&mut environment)?;
    let has = |name: &str| {
        environment.split(|&byte| byte == 0).any(|variable| {
            variable
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        })
    };
    if !has(ENV) || !has("LD_PRELOAD") {
        return Ok(Some(Why::Cleared));
    }
    let is_filtered = process::filters_of(pid) > Some(process::filters());
    Ok(is_filtered.then_some(Why::Filtered))
}

/// True if the kernel's list of limits limits the process's memory.
fn is_limited(limits: &str) -> bool {
    let of_memory = ["Max address space", "Max data size"];
    limits.lines().any(|line| {
        let soft = of_memory.iter().find_map(|name| line.strip_prefix(name));
        soft.is_some_and(|soft| !soft.trim_start().starts_with("unlimited"))
    })
}

/// The reason why the processes of the program at this path are not observed, as a phrase after "it is"; `None` if none is known.
pub(crate) fn of_program(path: &Path) -> Option<&'static str> {
    // The file of a program that has just been started is a regular file.
    let mut exe = File::open(path).ok()?;
    let why = match of_executable(&mut exe).ok()? {
        Some(why) => Some(why),
        None => is_privileged(&exe, path).then_some(Why::Privileged),
    };
    why.map(Why::words)
}

/// True if the program runs with other privileges than its caller.
fn is_privileged(exe: &File, path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let by_mode = exe.metadata().is_ok_and(|meta| {
        meta.mode() & 0o4000 != 0 && meta.uid() != own || meta.mode() & 0o2000 != 0
    });
    by_mode || has_capabilities(path)
}

/// True if the program's file has capabilities.
fn has_capabilities(path: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(path, c"security.capability", &mut value).is_ok_and(|len| len > 0)
}

/// Why no process of this executable is observed.
fn of_executable(exe: &mut File) -> io::Result<Option<Why>> {
    let mut start = Vec::with_capacity(EXECUTABLE as usize);
    exe.seek(SeekFrom::Start(0))?;
    exe.take(EXECUTABLE).read_to_end(&mut start)?;
    let class = start.get(4).copied();
    if start.starts_with(&elf::ELFMAG) && class == Some(elf::ELFCLASS32.0) {
        return Ok(Some(Why::ThirtyTwoBit));
    }
    let Ok(header) = FileHeader64::<Endianness>::parse(start.as_slice()) else {
        return Ok(None);
    };
    let Ok(endian) = header.endian() else {
        return Ok(None);
    };
    let Ok(segments) = header.program_headers(endian, start.as_slice()) else {
        return Ok(None);
    };
    let interpreter = segments
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_INTERP);
    let Some(interpreter) = interpreter else {
        return Ok(Some(Why::Static));
    };
    let Ok(path) = interpreter.data(endian, start.as_slice()) else {
        return Ok(None);
    };
    let name = Path::new(std::ffi::OsStr::from_bytes(path.trim_ascii_end()))
        .file_name()
        .unwrap_or_default();
    let is_glibc =
        name.as_bytes().starts_with(b"ld-linux") || name.as_bytes().starts_with(b"ld.so");
    Ok((!is_glibc).then_some(Why::OtherLoader))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(gone: u32, apart: u32, filtered: u32, why: &[Option<Why>]) -> Vec<String> {
        let count = Unobserved {
            gone,
            apart,
            filtered,
        };
        sentences(count, why.iter().copied())
    }

    #[test]
    fn why_processes_were_not_observed_is_told_as_far_as_it_is_known() {
        assert!(said(0, 0, 0, &[]).is_empty());
        assert_eq!(
            said(1, 0, 0, &[Some(Why::Static)]),
            ["1 process was not observed: statically linked"]
        );
        assert_eq!(
            said(3, 1, 0, &[Some(Why::Cleared), Some(Why::Static), None]),
            ["4 processes were not observed: 1 statically linked; \
              1 given an environment without foreread's variables; \
              1 in another PID namespace, or without foreread's /proc; \
              1 ended or started before foreread could see why"]
        );
        assert_eq!(
            said(0, 0, 2, &[]),
            ["2 processes were observed only as far as a system-call filter allows"]
        );
    }

    #[test]
    fn an_executable_that_nobody_can_observe_is_known_by_its_first_page() {
        let check = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, bytes).unwrap();
            of_executable(&mut file).unwrap()
        };
        let own = fs::read("/proc/self/exe").unwrap();
        assert_eq!(check(&own), None, "linked with glibc");
        let mut narrow = own.clone();
        narrow[4] = elf::ELFCLASS32.0;
        assert_eq!(check(&narrow), Some(Why::ThirtyTwoBit));
        let at = own
            .windows(9)
            .position(|part| part == b"/ld-linux")
            .expect("the loader's name");
        let mut other = own.clone();
        other[at..at + 9].copy_from_slice(b"/ld-musl-");
        assert_eq!(check(&other), Some(Why::OtherLoader));
        for broken in [&b""[..], b"#!/bin/sh\n", &own[..40], &own[..100]] {
            assert_eq!(check(broken), None);
        }
    }

    #[test]
    fn a_live_process_is_looked_at() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env_remove(ENV)
            .spawn()
            .unwrap();
        // The process has this program until it executes the other.
        let began = Instant::now();
        let mut found = Ok(None);
        while !matches!(found, Ok(Some(_))) && began.elapsed() < Duration::from_secs(10) {
            found = why(child.id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.unwrap(), Some(Why::Cleared));
        assert!(why(child.id()).is_err(), "it has ended");
    }
}
