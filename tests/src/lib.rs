//! A lab for whole-program tests: a directory of its own with data files, programs and a store of records, in which `foreread run` runs
//! and its outcome is examined.
//!
//! Invariant: a [`Lab`] is on a real file system, so that its files can be cold, and shares no store with any other. The ledger of every
//! run that has an account must be closed.
//!
//! Data flow: [`Lab::data`] and [`Lab::program`] → [`Lab::cold`] → [`Lab::run`] → [`Outcome`].

#![forbid(unsafe_code)]

mod automount;
mod built;
mod memory;
mod outcome;
pub mod silent;
mod slow;
pub mod suite;
pub mod symbols;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use automount::AutomountPoint;
pub use built::{compiled, copy, try_compiled};
use foreread_plan::PAGE;
use foreread_plan::format::Reader;
pub use foreread_steady::{attempt, check, rounds};
use foreread_sys::device::Device;
pub use memory::MemoryGroup;
pub use outcome::Outcome;
pub use slow::Slow;

/// A run that takes longer than this counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// The unprivileged user and group.
const NOBODY: u32 = 65534;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace member")
        .to_path_buf()
}

/// The program under test, as built by `make build`.
pub fn foreread() -> PathBuf {
    let folder = root().join("target/release");
    for name in [
        "foreread",
        "foreread-tools",
        "forereadd",
        "libforeread_preload.so",
    ] {
        let path = folder.join(name);
        assert!(
            path.exists(),
            "{} is missing: run make build first",
            path.display()
        );
    }
    folder.join("foreread")
}

/// A requirement of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// A command.
    Command(&'static str),
    /// Root.
    Root,
    /// Root, and a build directory that an unprivileged user can reach.
    Nobody,
    /// A C library for static linking.
    StaticC,
    /// A C library for 32-bit programs.
    Narrow,
    /// A memory cgroup that programs can be put into.
    MemoryGroup,
    /// File systems in user space.
    Fuse,
    /// Automount points.
    Automount,
    /// PID namespaces that this process may create.
    PidNamespace,
    /// Root, and the ability to mount a file as a file system.
    Loop,
    /// A processor whose breakpoints and registers the test supports.
    X86,
    /// The eBPF observer.
    Ebpf,
    /// The eBPF observer of the whole machine, as the daemon uses it.
    EbpfSystem,
    /// Root, and a kernel whose fanotify reports names.
    Fanotify,
    /// The translator of `foreread cc`, with its runtime.
    Slicer,
    /// A kernel that reads ahead on the disk of the build directory.
    ReadAhead,
}

impl Need {
    /// The reason why the requirement is not met here; `None` if it is.
    pub fn missing(self) -> Option<String> {
        match self {
            Need::Command(name) => {
                let found = std::env::split_paths(&std::env::var_os("PATH")?)
                    .any(|folder| folder.join(name).is_file());
                (!found).then(|| format!("no {name}"))
            }
            Need::Root => (!rustix::process::getuid().is_root()).then(|| "not root".to_owned()),
            Need::Nobody => Need::Root.missing().or_else(|| {
                let reached = as_nobody(Path::new("test"))
                    .arg("-x")
                    .arg(foreread())
                    .status();
                (!reached.is_ok_and(|status| status.success()))
                    .then(|| "the build directory is closed to others".to_owned())
            }),
            Need::MemoryGroup => MemoryGroup::make(1 << 30).err(),
            Need::Loop => Need::Root
                .missing()
                .or_else(|| Need::Command("mkfs.ext4").missing())
                .or_else(|| {
                    let free = Command::new("losetup").arg("-f").output();
                    (!free.is_ok_and(|output| output.status.success()))
                        .then(|| "no loop device".to_owned())
                }),
            Need::Fuse => {
                let lab = Lab::new();
                silent::Silent::mount(&lab.path("mnt"))
                    .err()
                    .map(|why| format!("no FUSE: {why}"))
            }
            Need::Automount => {
                let lab = Lab::new();
                fs::create_dir(lab.path("point")).expect("a folder");
                AutomountPoint::make("direct", lab.path("point"))
                    .err()
                    .map(|why| format!("no automount point: {why}"))
            }
            Need::PidNamespace => {
                let made = Command::new("unshare")
                    .args(["-p", "-f", "--mount-proc", "true"])
                    .stderr(Stdio::null())
                    .status();
                (!made.is_ok_and(|status| status.success()))
                    .then(|| "no PID namespace of one's own".to_owned())
            }
            Need::StaticC => {
                (!can_build("-static")).then(|| "no C library to link statically".to_owned())
            }
            Need::X86 => {
                (!cfg!(target_arch = "x86_64")).then(|| "not an x86-64 processor".to_owned())
            }
            Need::Ebpf => foreread_ebpf::probe().err().map(|why| why.to_string()),
            Need::EbpfSystem => foreread_ebpf::system::observe()
                .err()
                .map(|why| why.to_string()),
            Need::Fanotify => Need::Root.missing().or_else(|| {
                let made = foreread_sys::fanotify::Group::by_name();
                made.err().map(|why| format!("no fanotify: {why}"))
            }),
            Need::Slicer => {
                let tools = ["foreread-slice", "libforeread_preexec.a"];
                tools
                    .into_iter()
                    .find(|tool| !foreread().with_file_name(tool).exists())
                    .map(|tool| format!("no {tool}: make slicer builds it"))
            }
            Need::ReadAhead => {
                let lab = Lab::new();
                let dev = fs::metadata(lab.dir.path()).expect("a folder").dev();
                (Device::of(dev).read_ahead == 0)
                    .then(|| "the kernel does not read ahead on this disk".to_owned())
            }
            Need::Narrow => {
                (!can_build("-m32")).then(|| "no C library for 32-bit programs".to_owned())
            }
        }
    }
}

/// True if a C program can be built with this option.
fn can_build(option: &str) -> bool {
    let lab = Lab::new();
    fs::write(lab.path("empty.c"), "int main(void) { return 0; }\n").expect("a file");
    let built = Command::new("cc")
        .args([option, "-o", "empty", "empty.c"])
        .current_dir(lab.dir.path())
        .stderr(Stdio::null())
        .status();
    built.is_ok_and(|status| status.success())
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={NOBODY}"))
        .arg(format!("--regid={NOBODY}"))
        .args(["--clear-groups", "--"])
        .arg(program);
    command
}

/// A directory with data files, programs and a store of records.
#[derive(Debug)]
pub struct Lab {
    dir: tempfile::TempDir,
    home: PathBuf,
    variables: Vec<(&'static str, OsString)>,
    accounts: AtomicU32,
    nobody: bool,
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

impl Lab {
    /// An empty lab.
    pub fn new() -> Self {
        // Not in /dev/shm or on another tmpfs: the build directory is on a real file system.
        let target = root().join("target/tmp");
        fs::create_dir_all(&target).expect("the build directory");
        let dir = tempfile::tempdir_in(target).expect("a directory");
        let home = dir.path().join("home");
        Self {
            dir,
            home,
            variables: Vec::new(),
            accounts: AtomicU32::new(0),
            nobody: false,
        }
    }

    /// A lab whose programs run as an unprivileged user, who owns its files.
    pub fn of_nobody() -> Self {
        let lab = Self {
            nobody: true,
            ..Self::new()
        };
        fs::create_dir(&lab.home).expect("a data directory");
        for folder in [lab.dir.path(), &lab.home] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("our directory");
        }
        lab
    }

    /// The same lab with another data directory.
    pub fn with_home(mut self, home: &Path) -> Self {
        self.home = self.path("").join(home);
        self
    }

    /// The same lab with a variable in the environment of all its programs.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// A path in the lab, in the kernel's form.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir
            .path()
            .canonicalize()
            .expect("our own directory")
            .join(name)
    }

    /// Writes a file with this content. [`Lab::cold`] writes it back to the device.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let mut file = File::create(&path).expect("a file");
        file.write_all(content.as_ref()).expect("a file's content");
        if self.nobody {
            std::os::unix::fs::fchown(&file, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        path
    }

    /// A data file of `mib` MiB in which all pages differ.
    pub fn data(&self, name: &str, mib: u64) -> PathBuf {
        let seed = name.bytes().fold(mib, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(byte.into())
        });
        let mut bytes = vec![0; (mib << 20) as usize];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        self.write(name, bytes)
    }

    /// An executable shell script.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        built::script(&path, text);
        if self.nobody {
            std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        path
    }

    /// Builds one of the tests' C programs as `./NAME`.
    pub fn program(&self, name: &str, flags: &[&str]) {
        let source = root()
            .join("tests/tests/run/programs")
            .join(name)
            .with_extension("c");
        let warnings = ["-O1", "-Wall", "-Wextra", "-Werror"];
        compiled(
            "cc",
            &[&warnings, flags].concat(),
            &source,
            &self.path(name),
        );
    }

    /// The folder `root`, with copies of programs and of their libraries at the same paths, as a root directory.
    pub fn root_with(&self, programs: &[&str]) -> PathBuf {
        let root = self.path("root");
        for program in programs {
            let listed = text(&self.plain(&["ldd", program]).stdout);
            let words = listed.split_whitespace();
            let libraries = words.filter(|word| word.starts_with('/'));
            for file in libraries.chain([*program]) {
                let to = root.join(&file[1..]);
                fs::create_dir_all(to.parent().expect("a folder")).expect("our own folder");
                copy(file.as_ref(), &to);
            }
        }
        root
    }

    /// Evicts files from memory, and checks that they are gone.
    pub fn cold(&self, names: &[&str]) {
        for name in names {
            let path = self.path(name);
            let deadline = Instant::now() + PATIENCE;
            // A process that has just closed the file may hold some of its pages for a moment, and pages on their way arrive later.
            while foreread_sys::cache::evict_path(&path).expect("eviction") > 0
                || self.cached(name) > 0
            {
                assert!(Instant::now() < deadline, "{}: stays", path.display());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Brings files into memory and keeps them there until the returned value is dropped, even if the page cache is emptied.
    pub fn held(&self, names: &[&str]) -> Held {
        self.program("hold", &[]);
        let mut child = start(
            self.command(self.path("hold"))
                .args(names)
                .stdin(Stdio::piped()),
        );
        let mut said = [0; 5];
        let output = child.stdout.as_mut().expect("a pipe");
        output
            .read_exact(&mut said)
            .expect("the files can be mapped");
        assert_eq!(&said, b"held\n");
        Held(child)
    }

    /// Bytes of a file in memory.
    pub fn cached(&self, name: &str) -> u64 {
        let file = File::open(self.path(name)).expect("our own file");
        let len = file.metadata().expect("our own file").len();
        foreread_sys::cache::stat(&file, 0..len)
            .expect("cachestat")
            .cached
            * PAGE
    }

    /// A command in the lab.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = if self.nobody {
            as_nobody(program.as_ref())
        } else {
            Command::new(program.as_ref())
        };
        command
            .current_dir(self.dir.path())
            .env("XDG_DATA_HOME", &self.home)
            .env("LC_ALL", "C")
            .env_remove("FOREREAD_PRELOAD")
            .env_remove("FOREREAD_STORE_LIMIT")
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The outcome of a command without foreread.
    pub fn plain(&self, args: &[&str]) -> Output {
        finish(start(self.command(args[0]).args(&args[1..])))
    }

    /// `foreread` with these arguments.
    pub fn foreread(&self, args: &[&str]) -> Output {
        let output = finish(start(self.command(foreread()).args(args)));
        check_not_held_up(&output);
        output
    }

    /// `foreread run` of a command, not started yet; its account will be in [`Lab::account`].
    pub fn running(&self, options: &[&str], args: &[&str]) -> (Command, Account) {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        let account = Account(self.path(&format!("account-{number}.json")));
        let mut command = self.command(foreread());
        command
            .arg("run")
            .args(options)
            .arg("--json")
            .arg(&account.0)
            .arg("--")
            .args(args);
        (command, account)
    }

    /// Runs a command under `foreread run` to its end.
    pub fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(&[], args)
    }

    /// Runs a command under `foreread run` with options to its end.
    pub fn run_with(&self, options: &[&str], args: &[&str]) -> Outcome {
        let (mut command, account) = self.running(options, args);
        let output = finish(start(&mut command));
        account.of(output)
    }

    /// The first run of a command, observed by eBPF from its start. Loading the observer takes tens of milliseconds, occasionally longer
    /// than foreread lets a program wait; such a run is forgotten and repeated.
    pub fn first_by_kernel(&self, args: &[&str]) -> Outcome {
        let mut first = None;
        eventually("a run that the kernel observes from its start", || {
            let forgotten = finish(start(self.command(foreread()).args(["forget", "--all"])));
            assert!(forgotten.status.success(), "{forgotten:?}");
            first = attempt(|| self.run(args)).ok();
            first.is_some()
        });
        first.expect("it was waited for")
    }

    /// The folder of the store's records.
    pub fn records_folder(&self) -> PathBuf {
        self.home.join("foreread/records")
    }

    /// The records in the store, by name.
    pub fn records(&self) -> Vec<PathBuf> {
        let Ok(listed) = fs::read_dir(self.records_folder()) else {
            return Vec::new();
        };
        let mut records: Vec<_> = listed
            .map(|file| file.expect("our own store").path())
            .collect();
        records.sort();
        records
    }

    /// Waits until the growing record of the only run has a file of this name: all earlier reports of the thread that used it are taken.
    pub fn await_recorded(&self, name: &str) {
        let has = |path: &PathBuf| {
            path.to_string_lossy().contains(".partial-")
                && Reader::open(path).is_ok_and(|record| {
                    let mut files = record.files().values();
                    files.any(|meta| meta.path.ends_with(name))
                })
        };
        eventually(&format!("{name} is recorded"), || {
            self.records().iter().any(has)
        });
    }

    /// The only record in the store.
    pub fn record(&self) -> PathBuf {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

/// Files that stay in memory.
#[derive(Debug)]
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // The end of its input ends the process.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The file with the account of a run.
#[derive(Debug)]
pub struct Account(PathBuf);

impl Account {
    /// The outcome of the run that ended with `output`.
    pub fn of(&self, output: Output) -> Outcome {
        check_not_held_up(&output);
        // If the disk is busy, the account may come a moment later.
        let deadline = Instant::now() + PATIENCE;
        let account = loop {
            let written = fs::read_to_string(&self.0).unwrap_or_default();
            match serde_json::from_str(&written) {
                Ok(account) => break account,
                Err(why) if Instant::now() > deadline => {
                    let said = text(&output.stderr);
                    panic!("{}: {why}: {written}: {said}", self.0.display());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let outcome = Outcome { output, account };
        outcome.hold_to_account();
        outcome
    }
}

/// Starts a command.
#[track_caller]
pub fn start(command: &mut Command) -> Child {
    command
        .spawn()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"))
}

/// The output and status of a started command, which is killed if it hangs.
#[track_caller]
pub fn finish(child: Child) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(output) => output.expect("a command's output"),
        Err(_) => {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("no end after {PATIENCE:?}");
        }
    }
}

/// Checks that no file system held the run up. A disk that is busy with the writes of other processes occasionally does, and foreread
/// then reports only that. The tests that hold a run up on purpose do not call this function.
pub fn check_not_held_up(output: &Output) {
    let said = text(&output.stderr);
    check!(!said.contains("not waited for"), "held up: {said}");
}

/// Waits until `condition` holds; panics with `what` if it never does.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Lets systemd verify these units, the last one by name, with `program` of the build installed at the path they expect. Returns
/// systemd's messages.
pub fn verified(lab: &Lab, program: &str, units: &[(&str, &str)]) -> String {
    let at = lab.path(program);
    fs::create_dir(at.parent().expect("a folder")).expect("a folder");
    let built = foreread().with_file_name(at.file_name().expect("a name"));
    std::os::unix::fs::symlink(built, &at).expect("a link");
    let prefix = lab.path("").display().to_string();
    let prefix = prefix.trim_end_matches('/');
    let mut last = PathBuf::new();
    for (name, unit) in units {
        last = lab.write(name, unit.replace("@PREFIX@", prefix));
    }
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(last)
        .output()
        .expect("systemd-analyze");
    let said = text(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    said
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
