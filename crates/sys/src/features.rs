//! Features of this machine, found by trying them and not by version numbers.
//!
//! Invariant: a probe changes nothing and leaves nothing open.
//!
//! Data flow: [`Features::probe`] tries each; `foreread doctor` prints the results and the cost of missing ones.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::Resource;

use crate::memory::{Version, memory_cgroups};
use crate::{cache, checked, page_size, pagemap};

/// Open files a prefetched program may need: its own, and as many again in foreread.
static ENOUGH_FILES: u64 = 4096;

/// Availability of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It works, with a remark or an empty text.
    Available(String),
    /// It does not work.
    Missing {
        /// The kernel's error.
        why: String,
        /// The loss for foreread.
        cost: &'static str,
    },
}

/// A feature of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// Its purpose.
    pub purpose: &'static str,
    /// Its availability.
    pub state: Availability,
}

/// All features, in the order of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features(pub Vec<Feature>);

impl Features {
    /// Tries everything.
    pub fn probe() -> Self {
        Self(vec![
            feature(
                "cachestat",
                "counts cached and evicted pages",
                try_cachestat(),
                "arrivals are seen by mincore only, evictions not at all: the memory budget cannot shrink by them",
            ),
            feature(
                "memfd",
                "shares the ring with the program",
                try_memfd().map(|_| String::new()),
                "programs cannot report their reads: nothing is recorded or prefetched",
            ),
            feature(
                "open files",
                "keeps files under a plan open",
                try_files(),
                "records with more files than this are prefetched in part",
            ),
            feature(
                "pagemap scan",
                "finds the pages a program touched",
                try_pagemap_scan(),
                "touched pages are found by reading the page map, some ten times slower",
            ),
            feature(
                "memory limit",
                "bounds prefetched pages by the control group",
                try_cgroup(),
                "only the machine's free memory bounds prefetching",
            ),
            feature(
                "BPF tracepoints",
                "observe programs that the preload library cannot, and the whole machine for the daemon",
                try_bpf(),
                "statically linked, 32-bit and set-user-ID programs run unobserved",
            ),
            feature(
                "fanotify",
                "observes the whole machine for the daemon without BPF",
                try_fanotify(),
                "the daemon needs BPF or the preload library",
            ),
            feature(
                "FUSE",
                "serves the modelled slow disks",
                try_device("/dev/fuse"),
                "slow disks cannot be modelled; prefetching is not affected",
            ),
            feature(
                "loop devices",
                "put a real file system on a slow disk",
                try_device("/dev/loop-control"),
                "slow disks are modelled as a FUSE file only; prefetching is not affected",
            ),
        ])
    }

    /// The state of the feature called `name`.
    pub fn get(&self, name: &str) -> Option<&Availability> {
        self.0
            .iter()
            .find(|feature| feature.name == name)
            .map(|feature| &feature.state)
    }
}

fn feature(
    name: &'static str,
    purpose: &'static str,
    tried: io::Result<String>,
    cost: &'static str,
) -> Feature {
    let state = match tried {
        Ok(how) => Availability::Available(how),
        Err(error) => Availability::Missing {
            why: error.to_string(),
            cost,
        },
    };
    Feature {
        name,
        purpose,
        state,
    }
}

fn try_memfd() -> io::Result<OwnedFd> {
    const NAME: &CStr = c"foreread-probe";
    Ok(rustix::fs::memfd_create(
        NAME,
        rustix::fs::MemfdFlags::CLOEXEC,
    )?)
}

fn try_cachestat() -> io::Result<String> {
    cache::stat(try_memfd()?, 0..page_size())?;
    Ok(String::new())
}

fn try_pagemap_scan() -> io::Result<String> {
    let here = &raw const ENOUGH_FILES as u64 / page_size() * page_size();
    pagemap::scan(&File::open("/proc/self/pagemap")?, here..here + page_size())?;
    Ok(String::new())
}

fn try_files() -> io::Result<String> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if hard < ENOUGH_FILES {
        return Err(io::Error::other(format!("at most {hard}")));
    }
    Ok(files_allowed(limit.current, limit.maximum))
}

/// The limit of open files in words, with the maximum if that is higher.
fn files_allowed(current: Option<u64>, maximum: Option<u64>) -> String {
    let show =
        |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |count| count.to_string());
    if current == maximum {
        return show(current);
    }
    format!("{}, can be raised to {}", show(current), show(maximum))
}

fn try_cgroup() -> io::Result<String> {
    let groups = memory_cgroups();
    if groups.is_empty() {
        return Err(io::Error::other("no memory control group"));
    }
    let versions: Vec<&str> = groups
        .iter()
        .map(|group| match group.version {
            Version::One => "v1",
            Version::Two => "v2",
        })
        .collect();
    Ok(format!("control groups {}", versions.join(" and ")))
}

/// The part of `union bpf_attr` that loading a program needs.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
}

fn try_bpf() -> io::Result<String> {
    const BPF_PROG_LOAD: libc::c_int = 5;
    const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
    /// `r0 = 0; exit`, the smallest program.
    const PROGRAM: [u64; 2] = [0xb7, 0x95];
    let attr = ProgLoad {
        prog_type: BPF_PROG_TYPE_RAW_TRACEPOINT,
        insn_cnt: PROGRAM.len() as u32,
        insns: PROGRAM.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
    };
    // SAFETY: the structure is a prefix of `union bpf_attr`, its size is given along, and what
    // it points at outlives the call.
    let fd = checked(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attr,
            size_of::<ProgLoad>(),
        )
    })?;
    // SAFETY: the descriptor is new and owned by nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(String::new())
}

fn try_fanotify() -> io::Result<String> {
    // SAFETY: the call takes no memory.
    let fd = checked(unsafe {
        libc::fanotify_init(
            libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC,
            libc::O_RDONLY as u32,
        )
    })?;
    // SAFETY: the descriptor is new and owned by nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(String::new())
}

fn try_device(path: &str) -> io::Result<String> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map(|_| String::new())
        .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_raised_is_not_said_to_be() {
        assert_eq!(
            files_allowed(Some(1024), Some(20_000)),
            "1024, can be raised to 20000"
        );
        assert_eq!(files_allowed(Some(20_000), Some(20_000)), "20000");
        assert_eq!(files_allowed(None, None), "no limit");
    }
}
