//! The observer that takes no privileges: the preload library in the user's own programs, which report by one ring of shared
//! memory that the daemon has made. Programs find the ring by their environment ([`Watch::environment`]), which their children
//! inherit: one ring serves any number of process trees, and 112 threads at once.
//!
//! It sees opens and program starts, as fanotify does, and not what is read of a file: a read of a program's does not say whether
//! memory held it. What the dynamic linker opens comes before the library is there.
//!
//! Invariants: whatever the ring holds, what is kept is bounded, and so is the work ([`Allowance`]); a process of another user is
//! not believed in; paths are looked up in the kernel's cache of names alone, so that no server can hold the daemon up; a file counts
//! if its file system lies on a device.
//!
//! Data flow: ring → [`Allowance`] → the process ([`Preload::meet`]) and the file ([`Devices`]) → [`Happened`].

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use foreread_ring::{Clock, Mode, OPEN_DIRECTORY, OPEN_FOUND, OPEN_WRITTEN, RawEvent, Ring, What};
use foreread_sys::way::{self, Links};
use lru::LruCache;
use rustc_hash::FxHashMap;

use super::allowance::{ALL, Allowance, ONE};
use super::look::{Found, about, has_ended, look, program};
use super::mounts::{self, Kinds};
use super::{File, Happened, Watch};
use crate::clock;

/// Processes known at once.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// How often is looked which processes have ended without a word, in ns: 0.2 µs for each that is known.
const SWEEP: u64 = 1_000_000_000;
/// Processes that have said that they end, whose end is looked for at each poll. Those beyond it are found by the sweep.
const LEAVING: usize = 64;
/// How often the table of mounts is read again at most, in ns.
const MOUNTS: u64 = 1_000_000_000;

/// A process that reports.
#[derive(Debug)]
struct Process {
    /// What it runs, as it says.
    program: PathBuf,
    /// Whether it is of the daemon's user.
    is_own: bool,
    /// Whether it has said that it ends or becomes another program.
    leaves: bool,
    allowance: Allowance,
}

/// The observer.
pub struct Preload {
    ring: Ring,
    /// When the ring was made, in ns of `CLOCK_MONOTONIC`.
    began: u64,
    eyes: Eyes,
    /// What the ring held at the last poll.
    taken: Vec<RawEvent>,
}

/// What makes sense of events.
struct Eyes {
    uid: u32,
    known: LruCache<u32, Process>,
    leaving: Vec<u32>,
    swept: u64,
    all: Allowance,
    devices: Devices,
    beyond: u64,
    unknown: u64,
    others: u64,
}

impl Preload {
    /// Makes a ring, and asks programs that find it for all that they open.
    ///
    /// # Errors
    /// In one sentence, why this host does not allow it.
    pub fn begin(fuse: bool) -> Result<Self, String> {
        if way::in_memory(Path::new("/"), Links::Followed).is_none() {
            return Err("paths cannot be looked up in memory alone (Linux 5.12)".to_owned());
        }
        let began = clock::now();
        let ring = Ring::create(Clock::detect()).map_err(|why| why.to_string())?;
        let kinds = Kinds::known(fuse).map_err(|why| format!("/proc/filesystems: {why}"))?;
        // An event that finds its ring full is dropped: the daemon holds no program up.
        ring.set_mode(Mode::Progress);
        Ok(Self {
            ring,
            began,
            eyes: Eyes {
                uid: rustix::process::geteuid().as_raw(),
                known: LruCache::new(KEPT),
                leaving: Vec::new(),
                swept: began,
                all: Allowance::new(ALL, began),
                devices: Devices::new(kinds),
                beyond: 0,
                unknown: 0,
                others: 0,
            },
            taken: Vec::new(),
        })
    }
}

impl Drop for Preload {
    /// Programs go on without reporting.
    fn drop(&mut self) {
        self.ring.set_mode(Mode::Mute);
    }
}

impl Watch for Preload {
    fn name(&self) -> &'static str {
        "preload"
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool {
        let taken = &mut self.taken;
        self.ring.poll(&mut |event| {
            if !matches!(event.what, What::Access { .. } | What::Name { .. }) {
                taken.push(event);
            }
        });
        let now = clock::now();
        for event in self.taken.drain(..) {
            let at = self.began.saturating_add(event.start).min(now);
            self.eyes.tell(event, (at, now), out);
        }
        self.eyes.settle(now, out);
        // All that had been reported when the poll began was taken.
        false
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let lost = [
            ("full ring", self.ring.lost()),
            ("beyond the allowance", self.eyes.beyond),
            ("gone before they were looked at", self.eyes.unknown),
            ("of other users", self.eyes.others),
        ];
        lost.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    fn environment(&self) -> Option<(&'static str, String)> {
        Some((foreread_ring::ENV, self.ring.env_value()))
    }
}

impl Eyes {
    /// Tells what an event is: it began `at`, and is looked at `now`.
    fn tell(&mut self, event: RawEvent, (at, now): (u64, u64), out: &mut dyn FnMut(Happened)) {
        let pid = event.pid;
        // 0: nobody has introduced itself in this ring.
        if pid == 0 || pid == std::process::id() {
            return;
        }
        let (parent, exe) = match &event.what {
            What::Thread { ppid, exe, .. } => (*ppid, Some(exe.as_path())),
            _ => (0, None),
        };
        if exe.is_some() || !self.known.contains(&pid) {
            self.meet(pid, parent, exe, (at, now), out);
        }
        let Some(process) = self.known.get_mut(&pid) else {
            return;
        };
        if !process.is_own {
            self.others += 1;
            return;
        }
        match event.what {
            What::Open { flags, path, .. } if flags & (OPEN_DIRECTORY | OPEN_FOUND) == 0 => {
                if !process.allowance.take(now) || !self.all.take(now) {
                    self.beyond += 1;
                    return;
                }
                if let Some(file) = self.find(&path, now) {
                    let (uid, writes) = (self.uid, flags & OPEN_WRITTEN != 0);
                    out(Happened::Opened {
                        pid,
                        uid,
                        file,
                        writes,
                        at,
                    });
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

    /// A process introduces itself: a new one, one that runs another program now, or one more thread of a known one.
    fn meet(
        &mut self,
        pid: u32,
        parent: u32,
        exe: Option<&Path>,
        (at, now): (u64, u64),
        out: &mut dyn FnMut(Happened),
    ) {
        if let (Some(process), Some(exe)) = (self.known.get_mut(&pid), exe) {
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
            allowance: Allowance::new(ONE, now),
        };
        if !process.is_own {
            self.known.put(pid, process);
            return;
        }
        let made = self.known.peek(&parent).filter(|one| one.is_own);
        let is_copy = made.is_some_and(|one| one.program == process.program);
        if made.is_some() {
            out(Happened::Forked { pid, parent, at });
        }
        self.known.put(pid, process);
        if !is_copy {
            self.start(pid, parent, at, now, out);
        }
    }

    /// A process has started its program.
    fn start(&mut self, pid: u32, parent: u32, at: u64, now: u64, out: &mut dyn FnMut(Happened)) {
        let Some(process) = self.known.peek(&pid) else {
            return;
        };
        let path = process.program.clone();
        if !self.all.take(now) {
            self.beyond += 1;
            return;
        }
        if let Some(program) = self.find(&path, now) {
            let uid = self.uid;
            out(Happened::Started {
                pid,
                parent,
                uid,
                program,
                at,
            });
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
            Some(Found::Regular(file)) => self.devices.has(file.device, now).then_some(file),
            Some(Found::Other) => None,
            Some(Found::Nothing) | None => {
                self.unknown += 1;
                None
            }
        }
    }

    /// Tells which of those that said so have ended, and now and then which others.
    fn settle(&mut self, now: u64, out: &mut dyn FnMut(Happened)) {
        self.end_of_leaving(now, out);
        if now.saturating_sub(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let known: Vec<u32> = self.known.iter().map(|(pid, _)| *pid).collect();
        known
            .into_iter()
            .filter(|pid| has_ended(*pid))
            .for_each(|pid| self.end(pid, now, out));
    }

    fn end_of_leaving(&mut self, now: u64, out: &mut dyn FnMut(Happened)) {
        for pid in std::mem::take(&mut self.leaving) {
            match self.known.peek(&pid) {
                Some(_) if has_ended(pid) => self.end(pid, now, out),
                Some(process) if process.leaves => self.leaving.push(pid),
                // It runs another program.
                _ => {}
            }
        }
    }

    fn end(&mut self, pid: u32, at: u64, out: &mut dyn FnMut(Happened)) {
        if self.known.pop(&pid).is_some_and(|process| process.is_own) {
            out(Happened::Ended { pid, at });
        }
    }
}

/// Which devices have files that are worth a look, as the table of mounts has them.
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
            let devices = found.iter().filter_map(|mount| {
                let (major, minor) = mount.device.split_once(':')?;
                let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
                Some((device, kinds.has(&mount.kind)))
            });
            self.known = devices.collect();
        }
        self.known.get(&device).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Child, Command};

    use foreread_ring::{Writer, encode};

    use super::*;

    /// The observer, where there can be one.
    fn observer() -> Option<Preload> {
        let begun = Preload::begin(false);
        begun.inspect_err(|why| eprintln!("skipped: {why}")).ok()
    }

    /// A process to report as.
    fn process() -> Child {
        Command::new("sleep").arg("100").spawn().expect("a process")
    }

    /// What is told of an event of a process.
    fn told(watch: &mut Preload, pid: u32, what: What<PathBuf>) -> Vec<String> {
        let mut told = Vec::new();
        let event = RawEvent {
            pid,
            tid: pid,
            start: 0,
            what,
            more: 0,
        };
        let now = clock::now();
        watch.eyes.tell(event, (now, now), &mut |happened| {
            told.push(match happened {
                Happened::Forked { parent, .. } => format!("made by {parent}"),
                Happened::Started { program, .. } => format!("runs {}", program.path.display()),
                Happened::Opened { file, writes, .. } => {
                    format!("opens {} {writes}", file.path.display())
                }
                Happened::Ended { pid, .. } => format!("{pid} ends"),
                Happened::Fetched { .. } => "fetches".to_owned(),
            });
        });
        told
    }

    fn thread(pid: u32, ppid: u32, exe: &Path) -> What<PathBuf> {
        What::Thread {
            pid,
            tid: pid,
            ppid,
            stdio: true,
            exe: exe.to_path_buf(),
        }
    }

    fn open(path: &Path, flags: u8) -> What<PathBuf> {
        What::Open {
            inst: 1,
            flags,
            took: 0,
            path: path.to_path_buf(),
        }
    }

    /// A folder on a device, with the names of two programs in it.
    fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().canonicalize().expect("it is there");
        let names = ["one", "two"].map(|name| path.join(name));
        for name in &names {
            std::fs::write(name, "program").expect("a file");
        }
        let [one, two] = names;
        (folder, one, two)
    }

    #[test]
    fn starts_copies_opens_and_ends_are_told_apart() {
        let (Some(mut watch), (folder, one, two)) = (observer(), folder()) else {
            return;
        };
        let (mut shell, mut child) = (process(), process());
        let own = std::process::id();
        let pid = shell.id();
        let runs = |path: &Path| format!("runs {}", path.display());
        let first = told(&mut watch, pid, thread(pid, own, &one));
        assert_eq!(first, [runs(&one)]);
        assert!(
            told(&mut watch, pid, thread(pid, own, &one)).is_empty(),
            "a second thread"
        );
        // The kernel says that this process made it, which does not report.
        let other = told(&mut watch, child.id(), thread(child.id(), pid, &two));
        assert_eq!(other, [runs(&two)]);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&one, &link).expect("a link");
        let opened = told(&mut watch, pid, open(&link, 0));
        assert_eq!(opened, [format!("opens {} false", one.display())]);
        let written = told(&mut watch, pid, open(&one, OPEN_WRITTEN));
        assert_eq!(written, [format!("opens {} true", one.display())]);
        for flags in [OPEN_FOUND, OPEN_DIRECTORY] {
            assert!(told(&mut watch, pid, open(&one, flags)).is_empty());
        }
        // Said to end, and run by the same number again: another program, though of the same name.
        assert!(told(&mut watch, pid, What::Exit).is_empty());
        let again = told(&mut watch, pid, thread(pid, own, &one));
        assert_eq!(again, [runs(&one)]);
        // Ended by a word, and without one.
        told(&mut watch, pid, What::Exit);
        for process in [&mut shell, &mut child] {
            process.kill().expect("it runs");
            process.wait().expect("our child");
        }
        let mut ended = Vec::new();
        let mut end = |happened| match happened {
            Happened::Ended { pid, .. } => ended.push(pid),
            other => panic!("{other:?}"),
        };
        let swept = watch.eyes.swept;
        watch.eyes.settle(swept, &mut end);
        watch.eyes.settle(swept + SWEEP, &mut end);
        assert_eq!(ended, [pid, child.id()]);
    }

    #[test]
    fn a_child_goes_on_as_its_parent_until_it_runs_another_program() {
        let (Some(mut watch), (_folder, one, two)) = (observer(), folder()) else {
            return;
        };
        // As a shell's subshell: its parent is a process that has introduced itself.
        let script = "sleep 100 & echo $!; wait";
        let mut parent = Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let output = parent.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line)
            .expect("a number");
        let (pid, child) = (parent.id(), line.trim().parse().expect("a number"));
        told(&mut watch, pid, thread(pid, 1, &one));
        let made = told(&mut watch, child, thread(child, 1, &one));
        assert_eq!(made, [format!("made by {pid}")]);
        told(&mut watch, child, What::Exit);
        let runs = told(&mut watch, child, thread(child, 1, &two));
        assert_eq!(runs, [format!("runs {}", two.display())]);
        let end = rustix::process::Pid::from_raw(child as i32).expect("a number");
        rustix::process::kill_process(end, rustix::process::Signal::KILL).expect("it runs");
        parent.wait().expect("our child");
    }

    #[test]
    fn nothing_is_believed_of_other_users_of_itself_or_of_places_without_a_device() {
        let (Some(mut watch), (_folder, one, _)) = (observer(), folder()) else {
            return;
        };
        for pid in [0, std::process::id()] {
            assert!(told(&mut watch, pid, thread(pid, 1, &one)).is_empty());
            assert!(told(&mut watch, pid, open(&one, 0)).is_empty());
        }
        let mut process = process();
        let pid = process.id();
        told(&mut watch, pid, thread(pid, 1, &one));
        for path in [
            "/proc/self/maps",
            "/dev/null",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ] {
            assert!(
                told(&mut watch, pid, open(Path::new(path), 0)).is_empty(),
                "{path}"
            );
        }
        assert!(told(&mut watch, pid, open(Path::new("/nothing/there"), 0)).is_empty());
        watch.eyes.uid += 1;
        watch.eyes.known.clear();
        assert!(told(&mut watch, pid, thread(pid, 1, &one)).is_empty());
        assert!(told(&mut watch, pid, open(&one, 0)).is_empty());
        let lost = watch.lost();
        let of = |name| lost.iter().find(|(probe, _)| *probe == name);
        assert!(of("gone before they were looked at").is_some(), "{lost:?}");
        assert_eq!(of("of other users"), Some(&("of other users", 2)));
        process.kill().expect("it runs");
        process.wait().expect("our child");
    }

    #[test]
    fn a_full_ring_and_a_flood_are_counted_and_bounded() {
        let (Some(mut watch), (_folder, one, _)) = (observer(), folder()) else {
            return;
        };
        let mut process = process();
        let pid = process.id();
        let ring = &watch.ring;
        let slots = |number: usize| ring.slots(number);
        let shared = ring.shared();
        // As the library does in a program.
        let claimed = Writer::claim(shared, (pid, pid), |_| None, |number| Some(slots(number)));
        let mut writer = claimed.expect("a free ring");
        let exe = one.as_os_str().as_bytes();
        let first = encode::thread(pid, pid, 1, 0, 0, exe.len());
        writer.push_path(shared, &first, &[exe]).expect("room");
        let mut full = 0;
        for _ in 0..20_000 {
            let slot = encode::open(1, 0, 0, 0, exe.len());
            if writer.push_path(shared, &slot, &[exe]).is_err() {
                shared.add_lost(1);
                full += 1;
            }
        }
        let mut seen = 0;
        assert!(!watch.poll(&mut |_| seen += 1), "all of it was taken");
        assert!(seen > 1 && seen <= ONE.at_once + 10, "{seen}");
        let lost = watch.lost();
        assert!(full > 0 && lost.contains(&("full ring", full)), "{lost:?}");
        for pid in 1..10_000 {
            told(&mut watch, pid + 1_000_000_000, open(&one, 0));
        }
        assert!(watch.eyes.known.len() <= KEPT.get());
        assert!(watch.eyes.leaving.len() <= LEAVING);
        process.kill().expect("it runs");
        process.wait().expect("our child");
    }
}
