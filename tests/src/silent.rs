//! A file system that stops answering: it receives the kernel's requests and holds them. Or one whose reads compute or wait.
//!
//! Silence is the worst case: a process that has made such a request cannot be killed until the request is answered.
//!
//! Invariant: on drop it answers all held requests and is unmounted.
//!
//! Data flow: kernel → [`Silent`]. A lookup of the name `stop` in its folder silences it.

use std::any::Any;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEntry, ReplyOpen,
    Request, Session, SessionACL,
};
use rustix::mount::{MountFlags, UnmountFlags};

/// The file system's only file; its size in bytes is below.
pub const FILE: &str = "data";
const SIZE: u64 = 4 << 20;
const STOP: &str = "stop";
const FILE_INO: INodeNo = INodeNo(2);

/// Held requests.
type Held = Arc<Mutex<Vec<Box<dyn Any + Send>>>>;

/// The file system, mounted.
pub struct Silent {
    session: Option<BackgroundSession>,
    silent: Arc<AtomicBool>,
    pace: Arc<AtomicU8>,
    held: Held,
    /// The mount point.
    pub folder: PathBuf,
}

impl Silent {
    /// Mounts one that answers until it is silenced.
    ///
    /// # Errors
    /// The system's error if it cannot be mounted.
    pub fn mount(folder: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Self::serve(folder, |server| {
            Session::new(server, folder, &fuser::Config::default())
        })
    }

    /// Mounts one that answers until it is silenced, and that for the kernel lies on a block device (type `fuseblk`).
    ///
    /// # Errors
    /// As [`Silent::mount`].
    pub fn mount_on(device: &Path, folder: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let kernel = File::options().read(true).write(true).open("/dev/fuse")?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,blksize=4096",
            kernel.as_raw_fd()
        );
        let options = CString::new(options)?;
        let flags = MountFlags::empty();
        rustix::mount::mount(device, folder, "fuseblk", flags, Some(options.as_c_str()))?;
        let config = fuser::Config::default();
        Self::serve(folder, |server| {
            Session::from_fd(server, kernel.into(), SessionACL::Owner, config)
        })
    }

    fn serve(
        folder: &Path,
        session: impl FnOnce(Server) -> std::io::Result<Session<Server>>,
    ) -> std::io::Result<Self> {
        let server = Server::default();
        let (silent, pace, held) = (&server.silent, &server.pace, &server.held);
        let (silent, pace, held) = (Arc::clone(silent), Arc::clone(pace), Arc::clone(held));
        Ok(Self {
            session: Some(session(server)?.spawn()?),
            silent,
            pace,
            held,
            folder: folder.to_owned(),
        })
    }

    /// From now on each read waits without computing.
    pub fn wait(&self) {
        self.pace.store(WAITING, Ordering::SeqCst);
    }

    /// From now on each read takes processor time.
    pub fn compute(&self) {
        self.pace.store(COMPUTING, Ordering::SeqCst);
    }

    /// From now on no request is answered.
    pub fn fall_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// From now on every request is answered; held ones get an error.
    pub fn answer(&self) {
        self.silent.store(false, Ordering::SeqCst);
        if let Ok(mut held) = self.held.lock() {
            held.clear();
        }
    }

    /// Number of held requests.
    pub fn held(&self) -> usize {
        self.held.lock().map_or(0, |held| held.len())
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.answer();
        // Another process may still have a file open, so the unmount is forced: unanswered requests fail now.
        let flags = UnmountFlags::FORCE | UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(&self.folder, flags);
        drop(self.session.take());
    }
}

/// The paces of reads that are not answered at once.
const COMPUTING: u8 = 1;
const WAITING: u8 = 2;

/// Processor time of one read, in ns.
const COMPUTED: i64 = 2_000_000;
/// Waiting time of one read.
const WAITED: Duration = Duration::from_millis(2);

/// Uses processor time.
fn compute() {
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let begun = used();
    while used() - begun < COMPUTED {}
}

#[derive(Default)]
struct Server {
    silent: Arc<AtomicBool>,
    pace: Arc<AtomicU8>,
    held: Held,
}

impl Server {
    /// Holds a request if the file system is silent; otherwise returns it.
    fn taken<R: Send + 'static>(&self, reply: R) -> Option<R> {
        if !self.silent.load(Ordering::SeqCst) {
            return Some(reply);
        }
        if let Ok(mut held) = self.held.lock() {
            held.push(Box::new(reply));
        }
        None
    }
}

fn attr(ino: INodeNo) -> FileAttr {
    let (kind, perm, size) = match ino {
        FILE_INO => (FileType::RegularFile, 0o644, SIZE),
        _ => (FileType::Directory, 0o755, 0),
    };
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Some(reply) = self.taken(reply) else {
            return;
        };
        if name == STOP {
            self.silent.store(true, Ordering::SeqCst);
        }
        // The kernel caches no name, so each lookup arrives here.
        match name == FILE {
            true => reply.entry(&Duration::ZERO, &attr(FILE_INO), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        if let Some(reply) = self.taken(reply) {
            reply.attr(&Duration::ZERO, &attr(ino));
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if let Some(reply) = self.taken(reply) {
            // Without this flag each open would evict the file's pages from memory.
            let flags = match self.pace.load(Ordering::SeqCst) {
                WAITING => FopenFlags::FOPEN_KEEP_CACHE,
                _ => FopenFlags::empty(),
            };
            reply.opened(FileHandle(0), flags);
        }
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if let Some(reply) = self.taken(reply) {
            reply.opened(FileHandle(0), FopenFlags::empty());
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Some(reply) = self.taken(reply) {
            match self.pace.load(Ordering::SeqCst) {
                COMPUTING => compute(),
                WAITING => std::thread::sleep(WAITED),
                _ => {}
            }
            let len = u64::from(size).min(SIZE.saturating_sub(offset));
            reply.data(&vec![b'x'; len as usize]);
        }
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        if let Some(reply) = self.taken(reply) {
            reply.error(Errno::EROFS);
        }
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        if let Some(reply) = self.taken(reply) {
            reply.error(Errno::EROFS);
        }
    }
}
