//! Builds the observed programs, runs them under the preload library, and sorts their reports by file.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foreread_plan::Kind;
use foreread_ring::{Clock, ENV, Mode, RawEvent, Ring, What};
use foreread_tests::{check, compiled};

/// The data file: 2500 lines of 8 bytes, "0000000\n" to "0002499\n".
pub const DATA_LEN: usize = 20_000;

/// A run that takes longer than this counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// One read of one file.
pub type Read = (Kind, u64, u64);

/// The preload library, as built by `make build`.
pub fn library() -> PathBuf {
    let path = root().join("target/release/libforeread_preload.so");
    assert!(
        path.exists(),
        "{} is missing: run make build first",
        path.display()
    );
    path
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace member")
        .to_path_buf()
}

/// The source of an observed program.
pub fn source(name: &str) -> PathBuf {
    root().join("tests/observe").join(name)
}

/// True if a command can be started.
pub fn exists(command: &str) -> bool {
    let status = Command::new(command)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// A directory with the data file, another file and the built program.
pub struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> Self {
        // Not in /dev/shm or on another tmpfs: the build directory is on a real file system.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let stage = Self { dir };
        let mut lines = String::new();
        for i in 0..DATA_LEN / 8 {
            writeln!(lines, "{i:07}").expect("writing to a string");
        }
        std::fs::write(stage.data(), &lines).expect("the data file");
        std::fs::write(stage.other(), &lines[..9000]).expect("the other file");
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        // Canonical, because programs report paths from the kernel.
        self.dir
            .path()
            .canonicalize()
            .expect("our own directory")
            .join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn other(&self) -> PathBuf {
        self.path("other")
    }

    /// Runs a build command in the stage.
    pub fn build(&self, command: &mut Command) {
        let output = command
            .current_dir(self.dir.path())
            .output()
            .expect("a compiler");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {errors}");
    }

    /// Builds a C program.
    pub fn cc(&self, name: &str, flags: &[&str]) -> PathBuf {
        let program = self.path(name);
        let warnings = ["-O1", "-Wall", "-Wno-unused-result"];
        let options = [&warnings, flags, &["-pthread"]].concat();
        compiled("cc", &options, &source(&format!("{name}.c")), &program);
        program
    }
}

/// The reports of a program, and its output.
#[derive(Debug)]
pub struct Seen {
    pub events: Vec<RawEvent>,
    pub lost: u64,
    /// True if the kernel shows a thread that it was switched out.
    pub tells_switches: bool,
    pub output: Output,
    files: HashMap<u32, PathBuf>,
}

impl Seen {
    /// The reads of a file, in the order in which they began.
    pub fn reads(&self, path: &Path) -> Vec<Read> {
        self.reads_by(path)
            .into_iter()
            .map(|(_, read)| read)
            .collect()
    }

    /// The reads of a file, with the process of each.
    pub fn reads_by(&self, path: &Path) -> Vec<(u32, Read)> {
        let mut reads = Vec::new();
        for event in &self.events {
            if let What::Access {
                inst,
                kind,
                offset,
                len,
                ..
            } = event.what
                && self.files.get(&inst).is_some_and(|file| file == path)
            {
                let kind = Kind::from_code(kind).expect("a known kind");
                reads.push((event.pid, (kind, offset, u64::from(len))));
            }
        }
        reads
    }

    /// The reads of a file in their order: offset, begin and duration, in ns.
    pub fn times(&self, path: &Path) -> Vec<(u64, u64, u64)> {
        let reads = self.events.iter().filter_map(|event| match event.what {
            What::Access {
                inst, offset, took, ..
            } if self.files.get(&inst)? == path => Some((offset, event.start, took)),
            _ => None,
        });
        reads.collect()
    }

    /// The flags of the opens of a file.
    pub fn opens(&self, path: &Path) -> Vec<u8> {
        let opens = self.events.iter().filter_map(|event| match &event.what {
            What::Open { inst, flags, .. } if self.files[inst] == path => Some(*flags),
            _ => None,
        });
        opens.collect()
    }

    /// The executables that have reported.
    pub fn programs(&self) -> Vec<String> {
        let names = self.events.iter().filter_map(|event| match &event.what {
            What::Thread { exe, .. } => Some(exe.file_name()?.to_string_lossy().into_owned()),
            _ => None,
        });
        names.collect()
    }
}

/// A command that is observed.
pub fn preloaded(ring: &Ring, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command
        .env("LD_PRELOAD", library())
        .env(ENV, ring.env_value());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a program that reports everything, and collects its reports.
pub fn observe(program: impl AsRef<Path>, prepare: impl FnOnce(&mut Command)) -> Seen {
    observe_in(Mode::Record, program, prepare)
}

/// Runs a program in a mode, and collects its reports.
pub fn observe_in(
    mode: Mode,
    program: impl AsRef<Path>,
    prepare: impl FnOnce(&mut Command),
) -> Seen {
    let ring = Ring::create(Clock::detect()).expect("a ring");
    ring.set_mode(mode);
    observe_by(ring, program, prepare)
}

/// Runs a program that reports through a ring, and collects its reports.
pub fn observe_by(
    mut ring: Ring,
    program: impl AsRef<Path>,
    prepare: impl FnOnce(&mut Command),
) -> Seen {
    let mut command = preloaded(&ring, program);
    prepare(&mut command);
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut events = Vec::new();
    let done = AtomicBool::new(false);
    let began = Instant::now();
    let output = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let output = child.wait_with_output();
            done.store(true, Ordering::Release);
            output
        });
        while !done.load(Ordering::Acquire) {
            ring.poll(&mut |event| {
                events.extend(event.singly());
                true
            });
            ring.waiting(|| std::thread::sleep(Duration::from_millis(1)));
            assert!(began.elapsed() < PATIENCE, "{command:?} hangs");
        }
        waiter
            .join()
            .expect("the waiting thread")
            .expect("the program's output")
    });
    ring.poll(&mut |event| {
        events.extend(event.singly());
        true
    });
    let lost = ring.lost();
    let tells_switches = ring.shared().tells_switches();
    let mut files = HashMap::new();
    for event in &events {
        if let What::Open { inst, path, .. } = &event.what {
            files.insert(*inst, path.clone());
        }
    }
    Seen {
        events,
        lost,
        tells_switches,
        output,
        files,
    }
}

/// Checks that a program ended with this status and no event was lost.
pub fn check_end(seen: &Seen, status: i32) {
    let errors = String::from_utf8_lossy(&seen.output.stderr);
    assert_eq!(
        seen.output.status.code(),
        Some(status),
        "{:?} {errors}",
        seen.output.status
    );
    assert_eq!(errors, "");
    // The reader of the ring may not get the processor in time.
    check!(seen.lost == 0, "{} lost events", seen.lost);
}
