//! fanotify: who opens which file, on whole file systems.
//!
//! Purpose: [`Group`] is a fanotify group of one of two kinds. *By name*: an event has the handle of the directory and the name in it. The
//! kernel opens nothing, and one lookup of a handle ([`open_by_handle`]) serves all files of a directory. *By descriptor*: an event has a
//! descriptor of the file, for file systems without handles. The kernel's queue is bounded (16384 events by default); one event reports an
//! overflow ([`Event::overflow`]).
//!
//! Invariants: no process is delayed (no permission events); a descriptor in an event is always closed; data from the kernel is checked
//! like any other input.
//!
//! Data flow: [`Group::mark`] a file system → [`Group::read`] → [`Events`].

use std::ffi::{CStr, OsStr, c_int, c_long};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use crate::checked;

/// Bytes of an event's fixed part, `struct fanotify_event_metadata`.
const EVENT: usize = 24;
/// Bytes of the head of a part with a handle: `struct fanotify_event_info_header`, the number of the file system, and the head of
/// `struct file_handle`.
const PART: usize = 4 + 8 + 8;
/// The longest handle that the kernel makes, in bytes.
const MOST_HANDLE: usize = 128;

/// A fanotify group.
#[derive(Debug)]
pub struct Group(OwnedFd);

impl Group {
    /// A group whose events name the files.
    ///
    /// # Errors
    /// `EPERM` without CAP_SYS_ADMIN, `EINVAL` before Linux 5.9, `ENOSYS` without fanotify, `EMFILE` if the user has too many.
    pub fn by_name() -> io::Result<Self> {
        Self::new(libc::FAN_REPORT_DFID_NAME)
    }

    /// A group whose events have descriptors of the files.
    ///
    /// # Errors
    /// As of [`Group::by_name`].
    pub fn by_descriptor() -> io::Result<Self> {
        Self::new(0)
    }

    fn new(reports: u32) -> io::Result<Self> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | reports;
        let opened = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC | libc::O_NOATIME;
        // SAFETY: two numbers, and no memory.
        let fd = checked(unsafe { libc::fanotify_init(flags, opened as u32) })?;
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches the file system of a directory: all opens on it, through any mount.
    ///
    /// # Errors
    /// `ENODEV`, `EOPNOTSUPP` or `EXDEV` if a group by name cannot watch the file system, `ENOSPC` if the user has too many marks.
    pub fn mark(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        let how = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        let what = libc::FAN_OPEN | libc::FAN_OPEN_EXEC;
        // SAFETY: both descriptors are open, and the path is a string of C.
        checked(unsafe {
            libc::fanotify_mark(
                self.0.as_raw_fd(),
                how,
                what,
                directory.as_raw_fd(),
                c".".as_ptr(),
            )
        })?;
        Ok(())
    }

    /// Takes events from the queue, as many as fit; none if there are none.
    ///
    /// # Errors
    /// For a group by descriptor, the error of opening a file (`EMFILE`): the event is lost.
    pub fn read<'a>(&self, room: &'a mut [u8]) -> io::Result<Events<'a>> {
        match rustix::io::read(&self.0, &mut *room) {
            Ok(len) => Ok(Events {
                rest: &room[..len.min(room.len())],
            }),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Events { rest: &[] }),
            Err(why) => Err(why.into()),
        }
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Events as the kernel wrote them, in order.
#[derive(Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
}

/// An event.
#[derive(Debug)]
pub struct Event<'a> {
    /// The process; 0 if it is in another PID namespace.
    pub pid: u32,
    /// True if the file was opened to be executed.
    pub executed: bool,
    /// True if this reports lost events.
    pub overflow: bool,
    /// The place of the file, unless it was lost.
    pub place: Option<EventFile<'a>>,
}

/// The place of a file.
#[derive(Debug)]
pub enum EventFile<'a> {
    /// In a directory.
    Entry {
        /// The file system's number, as `statfs` says.
        system: [u8; 8],
        /// The directory.
        directory: Handle<'a>,
        /// The file's name.
        name: &'a OsStr,
    },
    /// This file.
    File(OwnedFd),
}

/// A file handle: which file of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle<'a> {
    kind: i32,
    bytes: &'a [u8],
}

impl Handle<'_> {
    /// Bytes that no other file of the file system has.
    pub fn key(&self) -> Vec<u8> {
        [&self.kind.to_ne_bytes(), self.bytes].concat()
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let raw = take(&mut self.rest)?;
        let place = if raw.fd >= 0 {
            // SAFETY: the kernel made this descriptor for this event, which is looked at once.
            Some(EventFile::File(unsafe { OwnedFd::from_raw_fd(raw.fd) }))
        } else {
            entry(raw.parts)
        };
        Some(Event {
            pid: raw.pid.try_into().unwrap_or(0),
            executed: raw.mask & libc::FAN_OPEN_EXEC != 0,
            overflow: raw.mask & libc::FAN_Q_OVERFLOW != 0,
            place,
        })
    }
}

/// An event's fixed part, and the bytes of the others.
struct Raw<'a> {
    mask: u64,
    fd: c_int,
    pid: c_int,
    parts: &'a [u8],
}

/// Removes the next event from the front.
fn take<'a>(rest: &mut &'a [u8]) -> Option<Raw<'a>> {
    let bytes = std::mem::take(rest);
    let head = bytes.first_chunk::<EVENT>()?;
    let len = u32::from_ne_bytes(*head.first_chunk()?) as usize;
    let fixed = usize::from(u16::from_ne_bytes(*head[6..].first_chunk()?));
    // Of another version, or cut off: the start of the next event is unknown.
    if head[4] != libc::FANOTIFY_METADATA_VERSION || len < EVENT {
        return None;
    }
    let (event, others) = bytes.split_at_checked(len)?;
    *rest = others;
    Some(Raw {
        mask: u64::from_ne_bytes(*event[8..].first_chunk()?),
        fd: c_int::from_ne_bytes(*event[16..].first_chunk()?),
        pid: c_int::from_ne_bytes(*event[20..].first_chunk()?),
        parts: event.get(fixed.max(EVENT)..).unwrap_or_default(),
    })
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

/// The directory and name among the parts of an event.
fn entry(mut parts: &[u8]) -> Option<EventFile<'_>> {
    loop {
        let head = parts.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([head[2], head[3]]));
        let part = parts.get(..len).filter(|part| part.len() >= 4)?;
        parts = &parts[len..];
        if part[0] != libc::FAN_EVENT_INFO_TYPE_DFID_NAME {
            continue;
        }
        let head = part.first_chunk::<PART>()?;
        let system = *head[4..].first_chunk()?;
        let size = u32::from_ne_bytes(*head[12..].first_chunk()?) as usize;
        let kind = i32::from_ne_bytes(*head[16..].first_chunk()?);
        let (bytes, name) = part[PART..].split_at_checked(size)?;
        let name = CStr::from_bytes_until_nul(name).ok()?;
        return Some(EventFile::Entry {
            system,
            directory: Handle { kind, bytes },
            name: OsStr::from_bytes(name.to_bytes()),
        });
    }
}

/// The number of a directory's file system, as events have it.
///
/// # Errors
/// None that are known of an open directory.
pub fn system_of(directory: BorrowedFd<'_>) -> io::Result<[u8; 8]> {
    let mut about = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: an open descriptor, and room for what is written; the number's two parts are private, and plain numbers.
    unsafe {
        checked(libc::fstatfs(directory.as_raw_fd(), about.as_mut_ptr()))?;
        let about = about.assume_init();
        Ok((&raw const about.f_fsid).cast::<[u8; 8]>().read_unaligned())
    }
}

/// True if the files of a directory's file system can be found by handles.
pub fn has_handles(directory: BorrowedFd<'_>) -> bool {
    let mut handle = FileHandle::new();
    handle.size = MOST_HANDLE as u32;
    let mut mount: c_int = 0;
    // SAFETY: an open descriptor, a string of C, and room for a handle of the size that it states, which is the most.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            c_long::from(directory.as_raw_fd()),
            c".".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0 as c_long,
        )
    };
    result == 0
}

/// The directory of a handle, on the file system of `mount`, a descriptor of any directory on it. The descriptor can only be used for
/// lookups.
///
/// # Errors
/// `ESTALE` if the directory is gone, `EPERM` without CAP_DAC_READ_SEARCH, `EOPNOTSUPP` if the file system has no handles.
pub fn open_by_handle(mount: BorrowedFd<'_>, handle: &Handle<'_>) -> io::Result<OwnedFd> {
    let mut room = FileHandle::new();
    let Some(bytes) = room.bytes.get_mut(..handle.bytes.len()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    bytes.copy_from_slice(handle.bytes);
    room.size = handle.bytes.len() as u32;
    room.kind = handle.kind;
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: an open descriptor, and a handle of the size that it states, which fits.
    let fd = checked(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            c_long::from(mount.as_raw_fd()),
            &raw mut room,
            c_long::from(flags),
        )
    })?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// `struct file_handle`, with room for any.
#[repr(C)]
struct FileHandle {
    size: u32,
    kind: c_int,
    bytes: [u8; MOST_HANDLE],
}

impl FileHandle {
    fn new() -> Self {
        Self {
            size: 0,
            kind: 0,
            bytes: [0; MOST_HANDLE],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// An event as the kernel writes it, without a descriptor.
    fn event(mask: u64, pid: i32, parts: &[u8]) -> Vec<u8> {
        let mut bytes = ((EVENT + parts.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend([libc::FANOTIFY_METADATA_VERSION, 0]);
        bytes.extend((EVENT as u16).to_ne_bytes());
        bytes.extend(mask.to_ne_bytes());
        bytes.extend((-1_i32).to_ne_bytes());
        bytes.extend(pid.to_ne_bytes());
        bytes.extend(parts);
        bytes
    }

    fn part(kind: u8, handle: &[u8], name: &[u8]) -> Vec<u8> {
        let len = PART + handle.len() + name.len() + 1;
        let padded = len.next_multiple_of(4);
        let mut bytes = vec![kind, 0];
        bytes.extend((padded as u16).to_ne_bytes());
        bytes.extend([7; 8]);
        bytes.extend((handle.len() as u32).to_ne_bytes());
        bytes.extend(1_i32.to_ne_bytes());
        bytes.extend(handle);
        bytes.extend(name);
        bytes.resize(padded, 0);
        bytes
    }

    #[test]
    fn events_are_read_as_the_kernel_writes_them() {
        let mut bytes = event(libc::FAN_OPEN, 12, &part(2, b"12345678", b"file"));
        bytes.extend(event(libc::FAN_Q_OVERFLOW, 0, b""));
        let both = [part(1, b"abcd", b""), part(2, b"abcd", b"program")].concat();
        bytes.extend(event(libc::FAN_OPEN | libc::FAN_OPEN_EXEC, 13, &both));
        let events: Vec<_> = Events { rest: &bytes }.collect();
        let told: Vec<_> = events
            .iter()
            .map(|event| (event.pid, event.executed, event.overflow))
            .collect();
        assert_eq!(
            told,
            [(12, false, false), (0, false, true), (13, true, false)]
        );
        let names: Vec<_> = events
            .iter()
            .filter_map(|event| match event.place.as_ref()? {
                EventFile::Entry { name, .. } => name.to_str(),
                EventFile::File(_) => None,
            })
            .collect();
        assert_eq!(names, ["file", "program"]);
    }

    #[test]
    fn damaged_events_end_and_are_never_read_beyond() {
        let mut bytes = event(libc::FAN_OPEN, 12, &part(2, b"12345678", b"file"));
        bytes.extend(event(libc::FAN_OPEN, 12, &part(2, b"1234", b"other")));
        let most = bytes.len() / EVENT;
        let cut = (0..bytes.len()).map(|len| bytes[..len].to_vec());
        let changed = (0..bytes.len()).flat_map(|at| {
            [0, 1, 0x7f, 0xff].map(|value| {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                damaged
            })
        });
        for damaged in cut.chain(changed) {
            let mut rest = &damaged[..];
            let mut count = 0;
            while let Some(raw) = take(&mut rest) {
                entry(raw.parts);
                count += 1;
            }
            assert!(rest.is_empty() && count <= most);
        }
    }

    #[test]
    fn what_is_opened_is_seen_by_name_and_by_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seen");
        std::fs::write(&path, "x").unwrap();
        let here = File::open(dir.path()).unwrap();
        for make in [Group::by_name, Group::by_descriptor] {
            let group = match make() {
                Ok(group) => group,
                Err(why) => {
                    eprintln!("skipped: no fanotify: {why}");
                    return;
                }
            };
            if let Err(why) = group.mark(here.as_fd()) {
                eprintln!("skipped: this file system: {why}");
                continue;
            }
            File::open(&path).unwrap();
            let mut seen = false;
            let mut room = vec![0; 4096];
            loop {
                let events = group.read(&mut room).unwrap();
                if events.rest.is_empty() {
                    break;
                }
                for event in events.filter(|event| event.pid == std::process::id()) {
                    let found = match event.place {
                        Some(EventFile::Entry {
                            system,
                            directory,
                            name,
                        }) if has_handles(here.as_fd()) => {
                            assert_eq!(system, system_of(here.as_fd()).unwrap());
                            // Another test's folder may be gone by now.
                            let Ok(folder) = open_by_handle(here.as_fd(), &directory) else {
                                continue;
                            };
                            let folder =
                                std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
                            folder.unwrap().join(name)
                        }
                        Some(EventFile::File(file)) => {
                            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
                                .unwrap()
                        }
                        _ => continue,
                    };
                    seen |= found == path.canonicalize().unwrap();
                }
            }
            assert!(seen);
        }
    }
}
