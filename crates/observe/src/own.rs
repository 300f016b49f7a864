//! An observer of the machine without privileges: the preload library in the user's own programs, which report by one ring of shared
//! memory. Programs find the ring by their environment ([`Observer::environment`]), which their children inherit: one ring serves any
//! number of process trees, and 112 threads at once.
//!
//! It sees opens and program starts, like fanotify, and no reads: a program's read does not show whether its pages were in memory. Opens of
//! the dynamic linker come before the library is loaded.
//!
//! Invariants: for any content of the ring, memory and work are bounded ([`Processes`]); reports of another user's process are ignored;
//! paths are looked up in the kernel's cache of names only, so no server can block the observer; a file counts if its file system is on a
//! device.
//!
//! Data flow: ring → the process ([`Processes`]) and the file ([`Devices`]) → [`Event`].

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use foreread_ring::{Clock, Ring};
use foreread_sys::lease;
use foreread_sys::way::{self, Links};
use rustc_hash::FxHashMap;

use crate::look::{Found, about, has_ended, look, program};
use crate::mounts::{self, Kinds};
use crate::{
    Budget, Event, File, How, Observer, Processes, Progress, Reports, Wanted, What, Who, now,
};

/// Processes that have announced their end, which is checked at each poll. Further ones are found by the sweep.
const LEAVING: usize = 64;
/// Least time between two readings of the table of mounts, in ns.
const MOUNTS: u64 = 1_000_000_000;

/// A process that reports.
#[derive(Debug)]
struct Process {
    /// Its program, as reported.
    program: PathBuf,
    /// True if it belongs to this user.
    is_own: bool,
    /// True if it has announced its end or another program.
    leaves: bool,
}

/// The observer.
pub struct OwnPrograms {
    reports: Reports,
    eyes: Eyes,
    /// Content of the ring at the last poll.
    taken: Vec<Event>,
}

/// Interprets events.
struct Eyes {
    uid: u32,
    known: Processes<Process>,
    leaving: Vec<u32>,
    devices: Devices,
    unknown: u64,
    others: u64,
}

impl OwnPrograms {
    /// Makes a ring, and asks programs that find it for all that they open.
    ///
    /// # Errors
    /// In one sentence, why this host does not allow it.
    pub fn begin(fuse: bool) -> Result<Self, String> {
        if way::in_memory(Path::new("/"), Links::Followed).is_none() {
            return Err("paths cannot be looked up in memory alone (Linux 5.12)".to_owned());
        }
        let began = now();
        let ring = Ring::create(Clock::detect()).map_err(|why| why.to_string())?;
        lease::watch(ring.leases());
        let kinds = Kinds::known(fuse).map_err(|why| format!("/proc/filesystems: {why}"))?;
        let mut reports = Reports::new(ring, began);
        // An event that finds its ring full is dropped: the daemon holds no program up.
        reports.want(Wanted::Progress);
        Ok(Self {
            reports,
            eyes: Eyes {
                uid: rustix::process::geteuid().as_raw(),
                known: Processes::new(began),
                leaving: Vec::new(),
                devices: Devices::new(kinds),
                unknown: 0,
                others: 0,
            },
            taken: Vec::new(),
        })
    }
}

impl Drop for OwnPrograms {
    /// Programs go on without reporting.
    fn drop(&mut self) {
        self.reports.want(Wanted::Nothing);
    }
}

impl Observer for OwnPrograms {
    fn name(&self) -> &'static str {
        self.reports.name()
    }

    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let taken = &mut self.taken;
        let progress = self.reports.poll(budget, &mut |event| {
            if matches!(
                event.what,
                What::Begin { .. } | What::Open { .. } | What::Exit
            ) {
                taken.push(event);
            }
        });
        let now = now();
        for event in self.taken.drain(..) {
            self.eyes.tell(event, now, out);
        }
        self.eyes.settle(now, out);
        Progress {
            // Reports made during the poll are taken by the next one.
            more: budget.is_spent(),
            ..progress
        }
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let looked_at = [
            ("beyond the allowance", self.eyes.known.beyond()),
            ("gone before they were looked at", self.eyes.unknown),
            ("of other users", self.eyes.others),
        ];
        let looked_at = looked_at.into_iter().filter(|(_, count)| *count > 0);
        self.reports.lost().into_iter().chain(looked_at).collect()
    }

    fn environment(&self) -> Option<(&'static str, String)> {
        self.reports.environment()
    }
}

impl Eyes {
    /// Interprets an event, examined at `now`.
    fn tell(&mut self, event: Event, now: u64, out: &mut dyn FnMut(Event)) {
        let (pid, at) = (event.who.pid, event.at.min(now));
        // 0: no thread has introduced itself in this ring.
        if pid == 0 || pid == std::process::id() {
            return;
        }
        let (parent, exe) = match &event.what {
            What::Begin {
                parent, program, ..
            } => (*parent, Some(program.path.as_path())),
            _ => (0, None),
        };
        if exe.is_some() || self.known.get(pid).is_none() {
            self.meet(pid, parent, exe, (at, now), out);
        }
        let Some(process) = self.known.get_mut(pid) else {
            return;
        };
        if !process.is_own {
            self.others += 1;
            return;
        }
        match event.what {
            What::Open { file, how, .. } if !how.directory && !how.found => {
                if !self.known.admits(pid, now) {
                    return;
                }
                if let Some(file) = self.find(&file.path, now) {
                    let what = What::Open {
                        handle: 0,
                        file,
                        took: 0,
                        how: How {
                            writes: how.writes,
                            ..How::default()
                        },
                    };
                    out(self.event(pid, at, what));
                }
            }
            What::Exit => {
                process.leaves = true;
                if self.leaving.len() < LEAVING && !self.leaving.contains(&pid) {
                    self.leaving.push(pid);
                }
            }
            _ => {}
        }
    }

    fn event(&self, pid: u32, at: u64, what: What) -> Event {
        let who = Who {
            pid,
            tid: 0,
            uid: Some(self.uid),
        };
        Event { who, at, what }
    }

    /// A process introduces itself: a new one, one that runs another program now, or one more thread of a known one.
    fn meet(
        &mut self,
        pid: u32,
        parent: u32,
        exe: Option<&Path>,
        (at, now): (u64, u64),
        out: &mut dyn FnMut(Event),
    ) {
        if let (Some(process), Some(exe)) = (self.known.get_mut(pid), exe) {
            if process.program == exe && !process.leaves {
                return;
            }
            process.program = exe.to_path_buf();
            process.leaves = false;
            if process.is_own {
                self.start(pid, parent, at, now, out);
            }
            return;
        }
        // A child of the same parent may have ended before this one was made: then both go on with one sequence.
        self.end_of_leaving(now, out);
        let told = about(pid);
        let parent = told.map_or(parent, |(parent, _)| parent);
        let running = || program(pid).map(|file| file.path.to_path_buf());
        let name = exe.map(Path::to_path_buf).or_else(running);
        let process = Process {
            program: name.unwrap_or_default(),
            is_own: told.is_none_or(|(_, uid)| uid == self.uid),
            leaves: false,
        };
        if !process.is_own {
            self.known.put(pid, process, now);
            return;
        }
        self.meet_parent(parent, now);
        let made = self.known.get(parent).filter(|one| one.is_own);
        let is_copy = made.is_some_and(|one| one.program == process.program);
        if made.is_some() {
            out(self.event(pid, at, What::Forked { parent }));
        }
        self.known.put(pid, process, now);
        if !is_copy {
            self.start(pid, parent, at, now, out);
        }
    }

    /// The parent of a reporting process need not report, for example a shell that was started before its environment was set. Its children
    /// still form one sequence.
    fn meet_parent(&mut self, parent: u32, now: u64) {
        if parent <= 1 || parent == std::process::id() || self.known.get(parent).is_some() {
            return;
        }
        let (Some((_, uid)), Some(program)) = (about(parent), program(parent)) else {
            return;
        };
        if uid == self.uid {
            let process = Process {
                program: program.path.to_path_buf(),
                is_own: true,
                leaves: false,
            };
            self.known.put(parent, process, now);
        }
    }

    /// A process has started its program.
    fn start(&mut self, pid: u32, parent: u32, at: u64, now: u64, out: &mut dyn FnMut(Event)) {
        let Some(process) = self.known.get(pid) else {
            return;
        };
        let path = process.program.clone();
        if !self.known.admits_start(now) {
            return;
        }
        if let Some(program) = self.find(&path, now) {
            let what = What::Begin {
                parent,
                program,
                stdio: true,
            };
            out(self.event(pid, at, what));
        }
    }

    /// The file that a path leads to, under the name without links that the kernel has for it, if it lies on a device.
    fn find(&mut self, path: &Path, now: u64) -> Option<File> {
        let found = way::in_memory(path, Links::Followed).and_then(Result::ok);
        let found = found.and_then(|there| {
            let name = std::fs::read_link(format!("/proc/self/fd/{}", there.as_raw_fd())).ok()?;
            Some(look(there.as_fd(), &name))
        });
        match found {
            Some(Found::Regular(file)) => {
                let device = file.node.map(|node| node.device)?;
                self.devices.has(device, now).then_some(file)
            }
            Some(Found::Other) => None,
            Some(Found::Nothing) | None => {
                self.unknown += 1;
                None
            }
        }
    }

    /// Tells which of those that said so have ended, and now and then which others.
    fn settle(&mut self, now: u64, out: &mut dyn FnMut(Event)) {
        self.end_of_leaving(now, out);
        for (pid, process) in self.known.ended(now) {
            if process.is_own {
                out(self.event(pid, now, What::Ended));
            }
        }
    }

    fn end_of_leaving(&mut self, now: u64, out: &mut dyn FnMut(Event)) {
        for pid in std::mem::take(&mut self.leaving) {
            match self.known.get(pid) {
                Some(_) if has_ended(pid) => self.end(pid, now, out),
                Some(process) if process.leaves => self.leaving.push(pid),
                // It executes another program.
                _ => {}
            }
        }
    }

    fn end(&mut self, pid: u32, at: u64, out: &mut dyn FnMut(Event)) {
        if self.known.forget(pid).is_some_and(|process| process.is_own) {
            out(self.event(pid, at, What::Ended));
        }
    }
}

/// The devices whose files count, from the table of mounts.
struct Devices {
    kinds: Kinds,
    known: FxHashMap<u64, bool>,
    read: Option<u64>,
}

impl Devices {
    fn new(kinds: Kinds) -> Self {
        Self {
            kinds,
            known: FxHashMap::default(),
            read: None,
        }
    }

    fn has(&mut self, device: u64, now: u64) -> bool {
        let is_due = self
            .read
            .is_none_or(|read| now.saturating_sub(read) >= MOUNTS);
        if is_due && !self.known.contains_key(&device) {
            self.read = Some(now);
            // Without the table, nothing is known to lie on a device.
            let (found, _) = mounts::by_device().unwrap_or_default();
            let kinds = &self.kinds;
            let devices = found.iter();
            self.known = devices
                .map(|mount| (mount.dev, kinds.has(&mount.fs_type)))
                .collect();
        }
        self.known.get(&device).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
