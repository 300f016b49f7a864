//! The files behind the parallel file system: a tmpfs that is mounted nowhere, known
//! by descriptors alone.
//!
//! Names, rights, links and times are the kernel's own work. A node is a descriptor
//! (`O_PATH`) under the inode's number, kept as long as FUSE knows the inode; a file
//! that is deleted while it is open lives as long.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use foreread_disk::striped::STRIPE_BYTES;
use fuser::{FileAttr, FileType, INodeNo};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Stat, Uid};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

/// An entry of a directory: inode, kind and name.
pub(super) type Entry = (INodeNo, FileType, Vec<u8>);

struct Node {
    handle: Arc<OwnedFd>,
    /// As often as FUSE was told of it.
    lookups: u64,
    /// Open for reading and writing, once it has been.
    data: Option<Arc<File>>,
}

pub(super) struct Store {
    root: Arc<OwnedFd>,
    nodes: Mutex<HashMap<INodeNo, Node>>,
}

impl Store {
    /// An empty one of `size` bytes.
    pub(super) fn new(size: u64) -> io::Result<Store> {
        let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(&context, "size", size.to_string())?;
        rustix::mount::fsconfig_set_string(&context, "mode", "0755")?;
        // Inode numbers are then counted from 1, the root's, and never given again.
        rustix::mount::fsconfig_set_flag(&context, "inode64")?;
        rustix::mount::fsconfig_create(&context)?;
        let root = rustix::mount::fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOATIME,
        )?;
        Ok(Store {
            root: Arc::new(root),
            nodes: Mutex::new(HashMap::new()),
        })
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<INodeNo, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn handle(&self, ino: INodeNo) -> io::Result<Arc<OwnedFd>> {
        if ino == INodeNo::ROOT {
            return Ok(self.root.clone());
        }
        let nodes = self.nodes();
        let node = nodes.get(&ino).ok_or(rustix::io::Errno::STALE)?;
        Ok(node.handle.clone())
    }

    /// A path that leads to an inode, for any name of it: for calls that accept no `O_PATH` descriptor.
    pub(super) fn path(handle: &OwnedFd) -> PathBuf {
        Path::new("/proc/self/fd").join(handle.as_raw_fd().to_string())
    }

    /// FUSE is told of a name.
    pub(super) fn tell(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&*self.handle(parent)?, name, flags, Mode::empty())?;
        let attr = attr(&rustix::fs::fstat(&handle)?);
        let mut nodes = self.nodes();
        let node = nodes.entry(attr.ino).or_insert_with(|| Node {
            handle: Arc::new(handle),
            lookups: 0,
            data: None,
        });
        node.lookups += 1;
        Ok(attr)
    }

    /// FUSE has forgotten an inode `lookups` times. True if the inode is gone.
    pub(super) fn forget(&self, ino: INodeNo, lookups: u64) -> bool {
        let mut nodes = self.nodes();
        let Some(node) = nodes.get_mut(&ino) else {
            return false;
        };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups > 0 {
            return false;
        }
        let gone = rustix::fs::fstat(&*node.handle).is_ok_and(|stat| stat.st_nlink == 0);
        nodes.remove(&ino);
        gone
    }

    pub(super) fn attr(&self, ino: INodeNo) -> io::Result<FileAttr> {
        Ok(attr(&rustix::fs::fstat(&*self.handle(ino)?)?))
    }

    /// A file's content.
    pub(super) fn data(&self, ino: INodeNo) -> io::Result<Arc<File>> {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(&ino).ok_or(rustix::io::Errno::STALE)?;
        if let Some(data) = &node.data {
            return Ok(data.clone());
        }
        let file = File::options()
            .read(true)
            .write(true)
            .open(Store::path(&node.handle))?;
        Ok(node.data.insert(Arc::new(file)).clone())
    }

    /// The new inode belongs to `owner`, with exactly the requested rights.
    pub(super) fn own(
        &self,
        parent: INodeNo,
        name: &OsStr,
        owner: (u32, u32),
        mode: Option<u32>,
    ) -> io::Result<()> {
        let parent = self.handle(parent)?;
        let stat = rustix::fs::fstat(&*parent)?;
        let inherits = Mode::from_raw_mode(stat.st_mode).contains(Mode::SGID);
        let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
        let gid = (!inherits).then_some(gid);
        rustix::fs::chownat(&*parent, name, Some(uid), gid, AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(mode) = mode {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::chmodat(&*parent, name, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    /// The entries of a directory.
    pub(super) fn list(&self, ino: INodeNo) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&*self.handle(ino)?, ".", flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(directory)? {
            let entry = entry?;
            let kind = kind(entry.file_type());
            entries.push((
                INodeNo(entry.ino()),
                kind,
                entry.file_name().to_bytes().to_vec(),
            ));
        }
        Ok(entries)
    }

    /// Sets those of an inode's times that are given.
    pub(super) fn set_times(&self, ino: INodeNo, times: &rustix::fs::Timestamps) -> io::Result<()> {
        let path = Store::path(&*self.handle(ino)?);
        Ok(rustix::fs::utimensat(CWD, path, times, AtFlags::empty())?)
    }
}

fn kind(kind: rustix::fs::FileType) -> FileType {
    use rustix::fs::FileType as Found;
    match kind {
        Found::Directory => FileType::Directory,
        Found::Symlink => FileType::Symlink,
        Found::Fifo => FileType::NamedPipe,
        Found::Socket => FileType::Socket,
        Found::CharacterDevice => FileType::CharDevice,
        Found::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn attr(stat: &Stat) -> FileAttr {
    let time = |s: i64, ns: u64| UNIX_EPOCH + Duration::new(s.max(0) as u64, ns as u32);
    FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: STRIPE_BYTES as u32,
        flags: 0,
    }
}
