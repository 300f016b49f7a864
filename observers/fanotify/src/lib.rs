//! The observer of the machine for kernels without BPF: fanotify marks on file systems with files on a device.
//!
//! It sees opens and program starts, and neither reads nor whether a file is opened for writing. File systems with handles are watched by
//! name: the kernel opens nothing for an event. The others (overlay) are watched by descriptor.
//!
//! Invariants: memory and work are bounded ([`foreread_observe::Processes`]); the kernel's own queue is bounded, and its overflows are
//! counted; no descriptor is kept on a watched file system, so it can be unmounted.
//!
//! Data flow: fanotify's queue → the process ([`Starts`]) and the directory's path ([`Directories`]) → [`Event`].

#![forbid(unsafe_code)]

mod directories;
mod starts;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_observe::look::{Found, look};
use foreread_observe::mounts::{self, Kinds};
use foreread_observe::{Budget, Event, Observer, Progress, now};
use foreread_sys::fanotify::{self as kernel, EventFile, Group, has_handles, system_of};
use foreread_sys::mounts::{Mount, TABLE};
use foreread_sys::way::{self, Links};
use rustix::event::epoll;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use directories::Directories;
use starts::Starts;

/// Bytes of events per call: about 800 of them.
const ROOM: usize = 64 << 10;
/// Interval at which a busy watch searches for new mounts; an idle one is woken by them.
const MOUNTS: Duration = Duration::from_secs(1);

/// The observer.
pub struct Fanotify {
    /// By name, and once a file system without handles is met another one by descriptor.
    groups: Vec<Group>,
    ready: OwnedFd,
    /// The kernel's table of mounts; changes wake a waiting reader.
    _table: std::fs::File,
    kinds: Kinds,
    /// Changes with the table of mounts.
    sum: u64,
    /// File systems that are watched.
    marked: Vec<Mount>,
    checked: Instant,
    room: Vec<u8>,
    eyes: Eyes,
}

impl Fanotify {
    /// Watches present and future mounts.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN in the first user namespace, and before Linux 5.9.
    pub fn new(fuse: bool) -> io::Result<Self> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let table = std::fs::File::open(TABLE)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&ready, &table, data, epoll::EventFlags::PRI)?;
        let mut watch = Self {
            groups: Vec::new(),
            ready,
            _table: table,
            kinds: Kinds::known(fuse)?,
            sum: 0,
            marked: Vec::new(),
            checked: Instant::now(),
            room: vec![0; ROOM],
            eyes: Eyes {
                directories: Directories::default(),
                starts: Starts::new(now()),
                overflows: 0,
                unknown: 0,
            },
        };
        watch.add(Group::by_name()?)?;
        // Linux lets everybody have a group since 5.13, and nobody without rights mark a file system.
        match watch.look_for_mounts()? {
            Some(why) if why.kind() == io::ErrorKind::PermissionDenied => Err(why),
            _ => Ok(watch),
        }
    }

    fn add(&mut self, group: Group) -> io::Result<()> {
        let data = epoll::EventData::new_u64(0);
        epoll::add(&self.ready, &group, data, epoll::EventFlags::IN)?;
        self.groups.push(group);
        Ok(())
    }

    /// Marks the file systems that were mounted since the last call. If none is watched, returns why: a missing permission before any
    /// other reason.
    fn look_for_mounts(&mut self) -> io::Result<Option<io::Error>> {
        self.checked = Instant::now();
        let (mut found, sum) = mounts::by_device()?;
        if sum == self.sum {
            return Ok(None);
        }
        self.sum = sum;
        found.retain(|mount| self.kinds.has(&mount.fs_type));
        self.eyes.directories.forget(&found);
        self.marked.retain(|mount| found.contains(mount));
        found.retain(|mount| !self.marked.contains(mount));
        let mut failed = None::<io::Error>;
        let denied = |why: &io::Error| why.kind() == io::ErrorKind::PermissionDenied;
        for mount in found {
            // A file system that is gone again, or has no such events, is not watched.
            match self.mark(&mount) {
                Ok(()) => self.marked.push(mount),
                Err(why) if failed.as_ref().is_some_and(denied) => drop(why),
                Err(why) => failed = Some(why),
            }
        }
        Ok(failed.filter(|_| self.marked.is_empty()))
    }

    fn mark(&mut self, mount: &Mount) -> io::Result<()> {
        let directory = open(&mount.point)?;
        if has_handles(directory.as_fd()) && self.groups[0].mark(directory.as_fd()).is_ok() {
            let system = system_of(directory.as_fd())?;
            self.eyes.directories.mounted(system, &mount.point);
            return Ok(());
        }
        if self.groups.len() == 1 {
            self.add(Group::by_descriptor()?)?;
        }
        self.groups[1].mark(directory.as_fd())
    }
}

impl Observer for Fanotify {
    fn name(&self) -> &'static str {
        "fanotify"
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ready.as_fd())
    }

    /// One read of each queue is processed as a whole, about 800 events, whatever the rest of the budget: so a flood in one queue does not
    /// block the others.
    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress {
        let at = now();
        let mut events = 0;
        for group in &self.groups {
            // An event whose file could not be opened is lost; later ones are not.
            let Ok(taken) = group.read(&mut self.room) else {
                self.eyes.unknown += 1;
                events += 1;
                continue;
            };
            for event in taken {
                events += 1;
                budget.spend();
                self.eyes.tell(event, at, out);
            }
        }
        // A wake-up without an event comes from the table of mounts.
        if events == 0 || self.checked.elapsed() >= MOUNTS {
            // Without the table, watched file systems stay watched.
            let _ = self.look_for_mounts();
        }
        self.eyes.starts.sweep(at, out);
        Progress {
            events,
            more: events > 0,
        }
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let lost = [
            ("queue overflows", self.eyes.overflows),
            ("beyond the allowance", self.eyes.starts.beyond()),
            ("gone before they were looked at", self.eyes.unknown),
        ];
        lost.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// Interprets events.
struct Eyes {
    directories: Directories,
    starts: Starts,
    overflows: u64,
    unknown: u64,
}

impl Eyes {
    fn tell(&mut self, event: kernel::Event<'_>, at: u64, out: &mut dyn FnMut(Event)) {
        if event.overflow {
            self.overflows += 1;
            return;
        }
        // 0: of a PID namespace that is not within this one.
        if event.pid == std::process::id() || event.pid == 0 {
            return;
        }
        if !self.starts.admits(event.pid, at) {
            return;
        }
        match self.find(event.place) {
            Found::Regular(file) => self.starts.tell(event.pid, event.executed, file, at, out),
            Found::Other => {}
            Found::Nothing => self.unknown += 1,
        }
    }

    fn find(&mut self, place: Option<EventFile<'_>>) -> Found {
        match place {
            Some(EventFile::Entry {
                system,
                directory,
                name,
            }) => {
                // Before the directory's path was looked up anew, it may have been renamed.
                for _ in 0..2 {
                    let Some((folder, fresh)) = self.directories.path(system, &directory) else {
                        return Found::Nothing;
                    };
                    let path = folder.join(name);
                    let found = way::find(&path, Links::Refused)
                        .map_or(Found::Nothing, |there| look(there.as_fd(), &path));
                    if fresh || !matches!(found, Found::Nothing) {
                        return found;
                    }
                    self.directories.drop_path(system, &directory);
                }
                Found::Nothing
            }
            Some(EventFile::File(file)) => {
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                match std::fs::read_link(link) {
                    Ok(path) => look(file.as_fd(), &path),
                    Err(_) => Found::Nothing,
                }
            }
            None => Found::Nothing,
        }
    }
}

/// Opens a mount point, if no file system has to be asked for it: one that does not answer would hold everything up.
fn open(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let by = |resolve| openat2(CWD, directory, flags, Mode::empty(), resolve);
    match by(ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED) {
        // Before Linux 5.12.
        Err(Errno::INVAL) => Ok(by(ResolveFlags::NO_SYMLINKS)?),
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use foreread_observe::What;
    use foreread_steady::{check, rounds};

    use super::*;

    /// One test at a time: a flood fills all queues.
    static TURN: Mutex<()> = Mutex::new(());

    /// The watch, if fanotify is available.
    fn watch() -> Option<(Fanotify, MutexGuard<'static, ()>)> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = Fanotify::new(false);
        let watch = watch.inspect_err(|why| eprintln!("skipped: no fanotify: {why}"));
        watch.ok().map(|watch| (watch, turn))
    }

    /// Takes events until there are none.
    fn take_all(watch: &mut Fanotify, out: &mut dyn FnMut(Event)) {
        let time = Duration::from_secs(3600);
        while watch.poll(&mut Budget::new(1, time), out).more {}
    }

    /// The events of a shell script's process, run to its end, for files below `folder`.
    fn seen(watch: &mut Fanotify, folder: &Path, script: &str) -> Vec<String> {
        let done = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder)
            .status();
        assert!(done.expect("a shell").success(), "{script}");
        let mut told = Vec::new();
        take_all(watch, &mut |event| match event.what {
            What::Begin { program, .. } if program.path.starts_with(folder) => {
                told.push(format!("{} starts", program.path.display()));
            }
            What::Open { file, .. } if file.path.starts_with(folder) => {
                let size = file.node.expect("it was looked at").size;
                told.push(format!("{} of {size}", file.path.display()));
            }
            _ => {}
        });
        told
    }

    /// A folder on a file system that is watched.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().canonicalize().expect("it is there");
        (folder, path)
    }

    #[test]
    fn opens_and_starts_are_told_by_path_also_after_a_rename() {
        // A daemon of this machine may open these files as well, to fetch them.
        rounds(opens_and_starts);
    }

    fn opens_and_starts() {
        let (Some((mut watch, _turn)), (_folder, path)) = (watch(), folder()) else {
            return;
        };
        let script = "mkdir a && printf 12345 >a/five && mkfifo pipe && cp /bin/true program";
        seen(&mut watch, &path, script);
        let at = path.display();
        let told = seen(&mut watch, &path, "read x <a/five; ./program; : <>pipe");
        let expected = [format!("{at}/a/five of 5"), format!("{at}/program starts")];
        check!(told == expected, "{told:?}");
        let renamed = seen(&mut watch, &path, "mv a b; read x <b/five; exit 0");
        check!(renamed == [format!("{at}/b/five of 5")], "{renamed:?}");
        // A file that is gone before it is examined is ignored.
        let gone = seen(&mut watch, &path, "read x <b/five; rm -r b");
        check!(gone.is_empty(), "{gone:?}");
        assert!(!watch.lost().is_empty());
    }

    #[test]
    fn a_file_system_mounted_later_or_again_is_watched_and_the_others_still_are() {
        let (Some((mut watch, _turn)), (_folder, path)) = (watch(), folder()) else {
            return;
        };
        let at = path.display();
        let mounts = [
            (
                "truncate -s 8M disk && mkfs.ext4 -q -F disk && mkdir -p ext4 && mount -o loop disk ext4",
                "ext4",
            ),
            (
                "mkdir -p low up work over && mount -t overlay -o lowerdir=low,upperdir=up,workdir=work overlay over",
                "over",
            ),
        ];
        for (mount, name) in [mounts, mounts].concat() {
            let mounted = Command::new("sh")
                .args(["-c", mount])
                .current_dir(&path)
                .output()
                .expect("a shell");
            if !mounted.status.success() {
                let why = String::from_utf8_lossy(&mounted.stderr);
                eprintln!("skipped: {name}: {why}");
                continue;
            }
            // Whoever waits is woken by the mount.
            let ready = rustix::event::PollFd::from_borrowed_fd(
                watch.wake_fd().expect("a descriptor"),
                rustix::event::PollFlags::IN,
            );
            rustix::event::poll(&mut [ready], None).expect("it comes");
            take_all(&mut watch, &mut |_| {});
            let read = |file: String| format!("printf 123 >{file}; read x <{file};");
            let script = read(format!("{name}/file")) + &read("near".into()) + "exit 0";
            let told = seen(&mut watch, &path, &script);
            // No descriptor is kept, so it can be unmounted.
            let unmounted = Command::new("umount").arg(path.join(name)).status();
            assert!(unmounted.expect("umount").success(), "{name}");
            for file in [format!("{at}/{name}/file of 3"), format!("{at}/near of 3")] {
                assert!(told.contains(&file), "{name}: {told:?}");
            }
        }
    }

    #[test]
    fn a_flood_is_counted_and_what_comes_after_is_seen() {
        let (Some((mut watch, _turn)), (_folder, path)) = (watch(), folder()) else {
            return;
        };
        fs::write(path.join("first"), "1").expect("a file");
        let of = |watch: &Fanotify, probe| {
            let lost = watch.lost();
            let of = lost.iter().find(|(name, _)| *name == probe);
            of.map_or(0, |(_, count)| *count)
        };
        // One after the other, each with another name, so that none is merged with the previous one. This process is not watched.
        let python = "import os; [(os.link('first', str(i)), os.close(os.open(str(i), os.O_RDONLY))) for i in range(17000)]";
        let told = seen(&mut watch, &path, &format!("python3 -c \"{python}\""));
        // The allowed burst, and the events admitted while the others are examined.
        assert!(told.len() < 6000, "{}", told.len());
        // The number of further events in the queue depends on other processes' opens.
        assert!(of(&watch, "beyond the allowance") > 0);
        assert!(of(&watch, "queue overflows") > 0);
        let after = seen(&mut watch, &path, "read x <first; exit 0");
        assert_eq!(after, [format!("{}/first of 1", path.display())]);
    }
}
