//! The FUSE file system of the models that are file systems themselves: files of
//! which no client keeps pages, timed by the model.
//!
//! ```text
//! programs ─> FUSE, direct I/O ─> here ─> rows: place on the servers ─> Server ─> model
//!                                   └───> store: a tmpfs ─> the data
//! ```
//!
//! Every read and, if asked for, every write takes the model's time; names and inodes
//! take none. In the root are three files that no listing shows: what has been
//! served, one that empties the servers' caches when it is written, and the disks of
//! all servers as one, which reads as zeros and is there to be measured.

mod rows;
mod store;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::{
    AtFlags, FallocateFlags, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};

use crate::fs::{FORGET, IMAGE, MAX_BACKGROUND, MAX_REQUEST, STATS, TTL};
use crate::server::{Answer, Server};
use rows::{Places, Rows};
use store::{Entry, Store};

/// Before the names that no listing shows.
pub(crate) const HIDDEN: &str = ".slowdisk-";
const IMAGE_INO: INodeNo = INodeNo(u64::MAX - 2);
const STATS_INO: INodeNo = INodeNo(u64::MAX - 3);
const FORGET_INO: INodeNo = INodeNo(u64::MAX - 4);

pub(crate) struct TreeFs {
    store: Store,
    rows: Mutex<Rows>,
    /// What directories that are open hold, as of then.
    listings: Mutex<HashMap<u64, Vec<Entry>>>,
    size: u64,
    server: Arc<Server>,
    /// True if writes take the model's time, too.
    slow_writes: bool,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TreeFs {
    /// An empty file system of `size` bytes.
    pub(crate) fn new(size: u64, slow_writes: bool, server: Arc<Server>) -> io::Result<TreeFs> {
        Ok(TreeFs {
            store: Store::new(size)?,
            rows: Mutex::new(Rows::new(size)),
            listings: Mutex::new(HashMap::new()),
            size,
            server,
            slow_writes,
        })
    }

    /// A file that no listing shows.
    fn hidden(&self, ino: INodeNo) -> Option<FileAttr> {
        let (perm, size) = match ino {
            IMAGE_INO => (0o400, self.size),
            STATS_INO => (0o444, 0),
            FORGET_INO => (0o200, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn attr(&self, ino: INodeNo) -> io::Result<FileAttr> {
        self.hidden(ino).map_or_else(|| self.store.attr(ino), Ok)
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let hidden = name.to_str().and_then(|name| name.strip_prefix(HIDDEN));
        let ino = match hidden.filter(|_| parent == INodeNo::ROOT) {
            Some(IMAGE) => IMAGE_INO,
            Some(STATS) => STATS_INO,
            Some(FORGET) => FORGET_INO,
            _ => return self.store.tell(parent, name),
        };
        self.attr(ino)
    }

    /// Makes something by `make`, which is given the parent; it belongs to who asks.
    fn make(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        mode: Option<u32>,
        make: impl FnOnce(&std::os::fd::OwnedFd) -> rustix::io::Result<()>,
    ) -> io::Result<FileAttr> {
        make(&*self.store.handle(parent)?)?;
        let owner = (request.uid(), request.gid());
        self.store.own(parent, name, owner, mode)?;
        self.store.tell(parent, name)
    }

    fn node(
        &self,
        request: &Request,
        at: (INodeNo, &OsStr),
        mode: u32,
        rdev: u32,
    ) -> io::Result<FileAttr> {
        self.make(request, at, Some(mode & 0o7777), |parent| {
            let kind = rustix::fs::FileType::from_raw_mode(mode);
            rustix::fs::mknodat(parent, at.1, kind, Mode::RWXU, rdev.into())
        })
    }

    fn cut(&self, ino: INodeNo, size: u64) -> io::Result<()> {
        self.store.data(ino)?.set_len(size)?;
        lock(&self.rows).cut(ino.0, size);
        Ok(())
    }

    fn load(&self, ino: INodeNo, offset: u64, len: u32) -> io::Result<(Vec<u8>, Places)> {
        if ino == IMAGE_INO {
            let len = u64::from(len).min(self.size.saturating_sub(offset)) as u32;
            return Ok((vec![0; len as usize], vec![(offset, len)]));
        }
        let file = self.store.data(ino)?;
        let mut data = vec![0; len as usize];
        let mut got = 0;
        while got < data.len() {
            match file.read_at(&mut data[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        data.truncate(got);
        let places = lock(&self.rows).find(ino.0, offset, got as u32);
        Ok((data, places))
    }

    fn reserve(&self, ino: INodeNo, offset: u64, length: u64, mode: i32) -> io::Result<()> {
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        if !(FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE).contains(flags) {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
        Ok(rustix::fs::fallocate(
            &*self.store.data(ino)?,
            flags,
            offset,
            length,
        )?)
    }
}

fn entry(made: io::Result<FileAttr>, reply: ReplyEntry) {
    match made {
        Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
        Err(error) => reply.error(Errno::from(error)),
    }
}

fn empty(done: io::Result<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(Errno::from(error)),
    }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            Timespec {
                tv_sec: since.as_secs() as i64,
                tv_nsec: since.subsec_nanos().into(),
            }
        }
    }
}

impl Filesystem for TreeFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A feature that the kernel lacks makes it slower, or prevents mapping of files: no error.
        let _ = config.set_max_write(MAX_REQUEST);
        let _ = config.set_max_background(MAX_BACKGROUND);
        let _ = config.set_congestion_threshold(MAX_BACKGROUND);
        for capability in [
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            let _ = config.add_capabilities(capability);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.find(parent, name), reply);
    }

    fn forget(&self, _request: &Request, ino: INodeNo, lookups: u64) {
        if self.store.forget(ino, lookups) {
            lock(&self.rows).cut(ino.0, 0);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || -> io::Result<FileAttr> {
            if let Some(attr) = self.hidden(ino) {
                // A shell's `>` truncates before it writes.
                let allowed = size.is_none_or(|size| size == attr.size);
                return if allowed {
                    Ok(attr)
                } else {
                    Err(rustix::io::Errno::PERM.into())
                };
            }
            let handle = self.store.handle(ino)?;
            if let Some(size) = size {
                self.cut(ino, size)?;
            }
            if uid.is_some() || gid.is_some() {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                rustix::fs::chownat(&*handle, "", uid, gid, AtFlags::EMPTY_PATH)?;
            }
            if let Some(mode) = mode {
                rustix::fs::chmod(Store::path(&handle), Mode::from_raw_mode(mode & 0o7777))?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = Timestamps {
                    last_access: timespec(atime),
                    last_modification: timespec(mtime),
                };
                self.store.set_times(ino, &times)?;
            }
            self.store.attr(ino)
        };
        match set() {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let target = self
            .store
            .handle(ino)
            .and_then(|handle| Ok(rustix::fs::readlinkat(&*handle, "", Vec::new())?));
        match target {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        entry(self.node(request, (parent, name), mode, rdev), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.make(request, (parent, name), Some(mode & 0o7777), |parent| {
            rustix::fs::mkdirat(parent, name, Mode::RWXU)
        });
        entry(made, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = self.make(request, (parent, link_name), None, |parent| {
            rustix::fs::symlinkat(target, parent, link_name)
        });
        entry(made, reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let unlink = || {
            let parent = self.store.handle(parent)?;
            Ok(rustix::fs::unlinkat(&*parent, name, AtFlags::empty())?)
        };
        empty(unlink(), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || {
            let parent = self.store.handle(parent)?;
            Ok(rustix::fs::unlinkat(&*parent, name, AtFlags::REMOVEDIR)?)
        };
        empty(remove(), reply);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let rename = || {
            let (from, to) = (self.store.handle(parent)?, self.store.handle(newparent)?);
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            Ok(rustix::fs::renameat_with(
                &*from, name, &*to, newname, flags,
            )?)
        };
        empty(rename(), reply);
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let link = || {
            let (file, parent) = (self.store.handle(ino)?, self.store.handle(newparent)?);
            rustix::fs::linkat(&*file, "", &*parent, newname, AtFlags::EMPTY_PATH)?;
            self.store.tell(newparent, newname)
        };
        entry(link(), reply);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), OPENED);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mode = mode & 0o7777 | rustix::fs::FileType::RegularFile.as_raw_mode();
        match self.node(request, (parent, name), mode, 0) {
            Ok(attr) => reply.created(&TTL, &attr, Generation(0), FileHandle(0), OPENED),
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrived = self.server.now();
        if ino == STATS_INO {
            return self.server.tell(offset, size, reply);
        }
        match self.load(ino, offset, size) {
            // At the end of a file, as the client knows it.
            Ok((data, _)) if data.is_empty() => reply.data(&data),
            Ok((data, places)) => {
                let answer = Answer::Read(reply, data);
                self.server.submit(arrived, &places, answer);
            }
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrived = self.server.now();
        let len = data.len() as u32;
        if ino == FORGET_INO {
            self.server.forget();
            return reply.written(len);
        }
        let written = self
            .store
            .data(ino)
            .and_then(|file| file.write_all_at(data, offset));
        if let Err(error) = written {
            return reply.error(Errno::from(error));
        }
        let places = lock(&self.rows).find(ino.0, offset, len);
        if self.slow_writes && len > 0 {
            let answer = Answer::Write(reply, len);
            self.server.submit(arrived, &places, answer);
        } else {
            self.server.count(len, true);
            reply.written(len);
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(self.reserve(ino, offset, length, mode), reply);
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.store.list(ino) {
            Ok(entries) => {
                let handle: u64 = request.unique().into();
                lock(&self.listings).insert(handle, entries);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(Errno::from(error)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listings = lock(&self.listings);
        let entries = listings.get(&fh.0).map(Vec::as_slice).unwrap_or_default();
        for ((ino, kind, name), next) in entries.iter().zip(1..).skip(offset as usize) {
            if reply.add(*ino, next, *kind, OsString::from_vec(name.clone())) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.listings).remove(&fh.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let stat = self
            .store
            .handle(INodeNo::ROOT)
            .and_then(|root| Ok(rustix::fs::fstatvfs(&*root)?));
        match stat {
            Ok(stat) => reply.statfs(
                stat.f_blocks,
                stat.f_bfree,
                stat.f_bavail,
                stat.f_files,
                stat.f_ffree,
                stat.f_bsize as u32,
                stat.f_namemax as u32,
                stat.f_frsize as u32,
            ),
            Err(error) => reply.error(Errno::from(error)),
        }
    }
}

/// No page of a file is kept, and writers do not wait for each other.
const OPENED: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
