//! The FUSE file system of models that are block devices: a directory with `disk.img` (the image, timed by the model), `stats.json` (served
//! requests) and `forget` (writing to it empties the disk's own cache).
//!
//! The image lives in memory (a sparse memfd), so serving it costs only a copy. Data flow: kernel → this file system → backing
//! memory → [`Server`], which answers at the model's time.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::FallocateFlags;

use crate::server::{Answer, Server};

pub(crate) const IMAGE: &str = "disk.img";
pub(crate) const STATS: &str = "stats.json";
pub(crate) const FORGET: &str = "forget";

/// Largest request in bytes (the kernel's own limit is 256 pages).
pub(crate) const MAX_REQUEST: u32 = 1 << 20;
/// Requests that the kernel may have in progress: more than a loop device sends (128).
pub(crate) const MAX_BACKGROUND: u16 = 512;
/// Linux's default, for programs that read the image without a loop device.
const READ_AHEAD: u32 = 128 << 10;
/// Attributes stay valid this long, because only this process changes files.
pub(crate) const TTL: Duration = Duration::from_secs(3600);

const IMAGE_INO: INodeNo = INodeNo(2);
const STATS_INO: INodeNo = INodeNo(3);
const FORGET_INO: INodeNo = INodeNo(4);
const FILES: [(&str, INodeNo); 3] = [(IMAGE, IMAGE_INO), (STATS, STATS_INO), (FORGET, FORGET_INO)];

pub(crate) struct SlowFs {
    pub(crate) image: File,
    pub(crate) size: u64,
    pub(crate) server: Arc<Server>,
    /// True if writes take the model's time as well.
    pub(crate) slow_writes: bool,
}

impl SlowFs {
    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o755, 0),
            IMAGE_INO => (FileType::RegularFile, 0o600, self.size),
            STATS_INO => (FileType::RegularFile, 0o444, 0),
            FORGET_INO => (FileType::RegularFile, 0o200, 0),
            _ => return None,
        };
        Some(FileAttr {
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
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Length of the part of `[offset, offset + len)` within the image.
    fn clip(&self, offset: u64, len: u32) -> u32 {
        u64::from(len).min(self.size.saturating_sub(offset)) as u32
    }

    fn load(&self, offset: u64, len: u32) -> io::Result<Vec<u8>> {
        let mut data = vec![0; len as usize];
        self.image.read_exact_at(&mut data, offset)?;
        Ok(data)
    }
}

impl Filesystem for SlowFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each setter returns the nearest value it accepts and keeps the kernel's value otherwise. A smaller value is slower, not
        // wrong.
        let _ = config.set_max_write(MAX_REQUEST);
        let _ = config.set_max_readahead(READ_AHEAD);
        let _ = config.set_max_background(MAX_BACKGROUND);
        let _ = config.set_congestion_threshold(MAX_BACKGROUND);
        for capability in [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS] {
            let _ = config.add_capabilities(capability);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = FILES
            .iter()
            .find(|(file, _)| parent == INodeNo::ROOT && name == *file)
            .and_then(|(_, ino)| self.attr(*ino));
        match found {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attr(ino) {
            // A shell's `>` truncates before it writes.
            Some(attr) if size.is_none_or(|size| size == attr.size) => reply.attr(&TTL, &attr),
            Some(_) => reply.error(Errno::EPERM),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = if ino == IMAGE_INO {
            FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        } else {
            FopenFlags::FOPEN_DIRECT_IO
        };
        reply.opened(FileHandle(0), flags);
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
        match ino {
            IMAGE_INO => {
                let len = self.clip(offset, size);
                match self.load(offset, len) {
                    Ok(data) => {
                        let answer = Answer::Read(reply, data);
                        self.server.submit(arrived, &[(offset, len)], answer);
                    }
                    Err(error) => reply.error(Errno::from(error)),
                }
            }
            STATS_INO => self.server.tell(offset, size, reply),
            _ => reply.error(Errno::EIO),
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
        match ino {
            IMAGE_INO if self.clip(offset, len) < len => reply.error(Errno::ENOSPC),
            IMAGE_INO => match self.image.write_all_at(data, offset) {
                Ok(()) if self.slow_writes => {
                    let answer = Answer::Write(reply, len);
                    self.server.submit(arrived, &[(offset, len)], answer);
                }
                Ok(()) => {
                    self.server.count(len, true);
                    reply.written(len);
                }
                Err(error) => reply.error(Errno::from(error)),
            },
            FORGET_INO => {
                self.server.forget();
                reply.written(len);
            }
            _ => reply.error(Errno::EPERM),
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

    /// Frees the memory of discarded blocks.
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
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let inside = offset
            .checked_add(length)
            .is_some_and(|end| end <= self.size);
        if ino != IMAGE_INO || mode as u32 != punch.bits() || !inside {
            reply.error(Errno::EOPNOTSUPP);
            return;
        }
        match rustix::fs::fallocate(&self.image, punch, offset, length) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(Errno::from(io::Error::from(error))),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if ino != INodeNo::ROOT {
            reply.error(Errno::ENOTDIR);
            return;
        }
        let dots = [".", ".."].map(|name| (name, INodeNo::ROOT, FileType::Directory));
        let files = FILES.map(|(name, ino)| (name, ino, FileType::RegularFile));
        let entries = dots.into_iter().chain(files).zip(1..);
        for ((name, ino, kind), next) in entries.skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
