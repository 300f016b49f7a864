//! Slow disks: a file system on a block device with the timing of a disk model.
//!
//! ```text
//! programs ─> ext4 ─> page cache ─> mq-deadline ─> loop device ─> FUSE: disk.img ─> model ─> memory
//! ```
//!
//! Models of parallel file systems are file systems themselves, without a page cache:
//!
//! ```text
//! programs ─> FUSE: files, direct I/O ─> model ─> memory
//! ```
//!
//! All layers above the disk are the kernel's own (page cache, read-ahead, block scheduler). Only the disk's time is modelled, by
//! `foreread-disk` in real time, and the data lies in memory. [`mount`] creates such a disk, served by threads of this process;
//! dropping the [`SlowDisk`] removes all of it. Each disk is first entered in a state file ([`Mounted`]), so that any process can
//! find it, and can clean up after a killed server ([`unmount`]).
//!
//! The serving threads must never use the disk, and the serving process had better not use it at all: a server that waits for its
//! own disk waits for ever. The command ([`cli`]) serves from a process of its own.

#![forbid(unsafe_code)]

mod block;
pub mod cli;
mod error;
mod fs;
mod place;
pub mod selftest;
mod server;
mod size;
mod state;
mod tree;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_disk::{Layout, Model, hdd};
use fuser::{Filesystem, MountOption, Session, SessionACL};

use error::At;
pub use error::Error;
use fs::SlowFs;
pub use place::unmount;
pub use server::Counters;
use server::Server;
pub use size::parse_size;
pub use state::Mounted;
use tree::TreeFs;

/// Reads that measure the path to the server and back: some 0.25 s, so that a short load does not distort the result.
const CALIBRATION_READS: usize = 300;

/// Specification of a disk, with its mount point.
#[derive(Clone, Debug)]
pub struct Options {
    /// The model.
    pub model: Model,
    /// Mount point; created if it does not exist, and then removed at the end.
    pub dir: PathBuf,
    /// The disk's size in bytes: a multiple of 4096, at least 16 MiB. Only written data takes memory.
    pub size: u64,
    /// True to spread the image over the model's whole stroke ([`Layout::stretch`]).
    pub stretch: bool,
    /// The byte of the model's disk at which the image begins ([`Layout::begins`]).
    pub begins: u64,
    /// True if writes take the model's time. Otherwise they are immediate, so that data is prepared quickly.
    pub slow_writes: bool,
    /// True for only the FUSE file: `dir` holds `disk.img`, without a loop device and ext4.
    pub file_only: bool,
}

impl Options {
    /// An 8 GiB disk with fast writes.
    pub fn new(model: Model, dir: impl Into<PathBuf>) -> Options {
        Options {
            model,
            dir: dir.into(),
            size: 8 << 30,
            stretch: false,
            begins: 0,
            slow_writes: false,
            file_only: false,
        }
    }
}

/// A mounted slow disk, served by this process until it is dropped.
pub struct SlowDisk {
    mounted: Mounted,
    server: Arc<Server>,
    session: Option<JoinHandle<()>>,
}

/// Creates a slow disk and mounts it. Needs root and FUSE. Without loop devices the result is that of `file_only`, and
/// [`Mounted::notes`] says so.
pub fn mount(options: &Options) -> Result<SlowDisk, Error> {
    if options.begins.saturating_add(options.size) > hdd::CAPACITY {
        return Err(Error::Size {
            value: options.begins.to_string(),
            why: "an image that begins there does not end on the disk of 500 GB",
        });
    }
    let mounted = place::claim(options)?;
    let started = Server::start()
        .at("start serving", &options.dir)
        .and_then(|server| {
            let server = Arc::new(server);
            let session = serve(options, &mounted.backing, server.clone())?;
            Ok((server, session))
        });
    let (server, session) = match started {
        Ok(started) => started,
        Err(error) => {
            // This error is returned, not that of the clean-up.
            let _ = place::release(&mounted, true);
            return Err(error);
        }
    };
    // From here on, dropping `disk` undoes all steps.
    let mut disk = SlowDisk {
        mounted,
        server,
        session: Some(session),
    };
    disk.build(Layout {
        size: options.size,
        stretch: options.stretch,
        begins: options.begins,
    })?;
    Ok(disk)
}

/// Mounts the FUSE file system at `at` and serves it on a thread of its own.
fn serve(options: &Options, at: &Path, server: Arc<Server>) -> Result<JoinHandle<()>, Error> {
    if options.model.spec().file_system {
        let tree = TreeFs::new(options.size, options.slow_writes, server);
        return spawn(
            tree.at("get memory for the files of", &options.dir)?,
            at,
            SessionACL::All,
        );
    }
    let memory = rustix::fs::memfd_create("slowdisk", rustix::fs::MemfdFlags::CLOEXEC);
    let image = File::from(memory.at("get memory for the image of", &options.dir)?);
    image
        .set_len(options.size)
        .at("size the image of", &options.dir)?;
    let filesystem = SlowFs {
        image,
        size: options.size,
        server,
        slow_writes: options.slow_writes,
    };
    spawn(filesystem, at, SessionACL::Owner)
}

fn spawn(
    filesystem: impl Filesystem,
    at: &Path,
    users: SessionACL,
) -> Result<JoinHandle<()>, Error> {
    let mut config = fuser::Config::default();
    config.acl = users;
    config.mount_options = vec![
        MountOption::FSName("foreread-slowdisk".into()),
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    let session = Session::new(filesystem, at, &config).at("mount FUSE on", at)?;
    std::thread::Builder::new()
        .name("slowdisk".into())
        .spawn(move || {
            server::hurry();
            if let Err(error) = session.run() {
                eprintln!("foreread slowdisk: serving ended: {error}");
            }
        })
        .at("start serving", at)
}

impl SlowDisk {
    /// Creates the layers above the served image, and then the model below it.
    fn build(&mut self, layout: Layout) -> Result<(), Error> {
        let has_device = self.mounted.backing != self.mounted.dir;
        if has_device {
            block::attach(&mut self.mounted)?;
        }
        block::read_blocks(&self.mounted, CALIBRATION_READS)?;
        self.mounted.path_ns = self.server.become_disk(self.mounted.model, layout);
        if has_device {
            block::format(&mut self.mounted)?;
        }
        state::write(&self.mounted)
    }

    /// The disk's description.
    pub fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    /// The mount point.
    pub fn dir(&self) -> &Path {
        &self.mounted.dir
    }

    /// Counts of served requests.
    pub fn counters(&self) -> Counters {
        self.server.counters()
    }

    /// Empties the disk's own cache (not the kernel's).
    pub fn forget(&self) {
        self.server.forget();
    }

    /// True while the disk is served; false after another process has unmounted it.
    pub fn is_served(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| !session.is_finished())
    }

    /// Unmounts the disk. Fails without any change while programs use the disk.
    pub fn unmount(mut self) -> Result<(), Error> {
        place::release(&self.mounted, false)?;
        self.join();
        Ok(())
    }

    /// Waits for the serving thread, which ends when its file system is unmounted.
    fn join(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        // A file system that is unmounted while in use is served until its last use ends; the thread is left running for that.
        let deadline = Instant::now() + Duration::from_secs(5);
        while !session.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if session.is_finished() && session.join().is_err() {
            eprintln!("foreread slowdisk: the serving thread panicked");
        }
    }
}

impl Drop for SlowDisk {
    /// Unmounts the disk even if it is in use. Programs with open files get EIO after this process has ended.
    fn drop(&mut self) {
        if self.session.is_none() {
            return;
        }
        if let Err(error) = place::release(&self.mounted, true) {
            eprintln!("foreread slowdisk: {}", error.in_full());
        }
        self.join();
    }
}
