//! Names that a program looks up without opening a file.
//!
//! If a call returns the inode of the name itself, the inode is reported as well, so that the supervisor need not ask the kernel.
//!
//! Only found names are reported: the kernel has read the path then, so it can be read here. If the opening of the path's directory was
//! seen, no system call is added; if nothing is reported, only the real call is made. A name that cannot be resolved, such as one in an
//! unknown directory under a filter, stays unseen.

use core::ffi::{c_char, c_int};

use foreread_ring::{
    Inode, Mode, NAME_FOLLOWED, NAME_LISTED, PATH_MAX, Shared, Slot, Switches, encode,
};

use crate::{paths, report, seats, threads};

/// The use of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Its target's inode is looked up, through symbolic links.
    Through,
    /// The inode of the name itself.
    At,
    /// The entries of the directory are read.
    In,
    /// As [`Through`](Self::Through) (true) or [`At`](Self::At) (false), unless the path is empty: then the call is about an open file, not
    /// a name.
    MaybeOpen(bool),
}

impl Look {
    /// The use requested by flags (`AT_*`).
    #[inline(always)]
    pub fn by(flags: c_int) -> Self {
        let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
        if flags & libc::AT_EMPTY_PATH != 0 {
            Self::MaybeOpen(follows)
        } else if follows {
            Self::Through
        } else {
            Self::At
        }
    }

    fn flags(self) -> u8 {
        match self {
            Self::Through | Self::MaybeOpen(true) => NAME_FOLLOWED,
            Self::At | Self::MaybeOpen(false) => 0,
            Self::In => NAME_FOLLOWED | NAME_LISTED,
        }
    }
}

/// The memory to which a call has written its answer. The call's path may be in the same memory, because some programs resolve a link in
/// place.
#[derive(Clone, Copy)]
pub struct Answer {
    from: usize,
    /// In bytes.
    len: usize,
}

impl Answer {
    /// The answer of a call that writes nothing.
    const NONE: Self = Self {
        from: usize::MAX,
        len: 0,
    };

    /// An answer of this type.
    #[inline(always)]
    pub fn of<T>(into: *const T) -> Self {
        Self::up_to(into, size_of::<T>())
    }

    /// An answer of at most this many bytes.
    #[inline(always)]
    pub fn up_to<T>(into: *const T, len: usize) -> Self {
        let from = into as usize;
        Self { from, len }
    }

    /// The call's path; `None` if the answer was written over it, and an empty path for null.
    ///
    /// # Safety
    /// `path` must be null, or a string that the kernel has read during the call.
    unsafe fn leaves<'a>(self, path: *const c_char) -> Option<&'a [u8]> {
        if path.is_null() {
            return Some(&[]);
        }
        let at = path as usize;
        if (self.from..self.from.saturating_add(self.len)).contains(&at) {
            return None;
        }
        // Bytes before the answer are unchanged: the end of the string, or bytes of it.
        let unwritten = match self.from.checked_sub(at) {
            Some(before) => before.min(PATH_LEN),
            None => PATH_LEN,
        };
        // SAFETY: reads no byte after the string's end, and none that the answer has changed.
        let len = unsafe { libc::strnlen(path, unwritten) };
        // SAFETY: as above.
        (len < unwritten).then(|| unsafe { core::slice::from_raw_parts(path.cast(), len) })
    }
}

/// The longest path that the kernel accepts, with its end, in bytes.
const PATH_LEN: usize = libc::PATH_MAX as usize;

/// A call's result, which shows whether the name was found.
pub trait Outcome: Copy {
    fn found(self) -> bool;
}

impl Outcome for c_int {
    fn found(self) -> bool {
        self >= 0
    }
}

impl Outcome for isize {
    fn found(self) -> bool {
        self >= 0
    }
}

impl Outcome for i64 {
    fn found(self) -> bool {
        self >= 0
    }
}

impl<T> Outcome for *mut T {
    fn found(self) -> bool {
        !self.is_null()
    }
}

/// A call that looks a name up.
#[inline(always)]
pub fn looking<T: Outcome>(
    base: c_int,
    path: *const c_char,
    look: Look,
    call: impl FnOnce() -> T,
) -> T {
    looking_at((base, path), look, Answer::NONE, || None, call)
}

/// The same for a call that writes an answer.
#[inline(always)]
pub fn answering<T: Outcome>(
    base: c_int,
    path: *const c_char,
    look: Look,
    answer: Answer,
    call: impl FnOnce() -> T,
) -> T {
    looking_at((base, path), look, answer, || None, call)
}

/// The same for a call that writes the inode to `into`.
#[inline(always)]
pub fn stating<T: Outcome>(
    base: c_int,
    path: *const c_char,
    look: Look,
    into: *const libc::stat,
    call: impl FnOnce() -> T,
) -> T {
    // SAFETY: read after the call, which has filled it. It may be unaligned.
    let inode = || Some(by_stat(&unsafe { into.read_unaligned() }));
    looking_at((base, path), look, Answer::of(into), inode, call)
}

/// The same for `statx`, which writes the fields that it knows.
#[inline(always)]
pub fn stating_more<T: Outcome>(
    base: c_int,
    path: *const c_char,
    look: Look,
    into: *const libc::statx,
    call: impl FnOnce() -> T,
) -> T {
    // SAFETY: as above.
    let inode = || by_statx(&unsafe { into.read_unaligned() });
    looking_at((base, path), look, Answer::of(into), inode, call)
}

#[inline(always)]
fn looking_at<T: Outcome>(
    (base, path): (c_int, *const c_char),
    look: Look,
    answer: Answer,
    inode: impl FnOnce() -> Option<Inode>,
    call: impl FnOnce() -> T,
) -> T {
    let Some(area) = report::active() else {
        return call();
    };
    let switches = threads::switches(area);
    let start = report::stamp();
    switches.mark();
    let outcome = call();
    if outcome.found() && is_news(area, switches) {
        // The target of a link shows nothing about the link.
        let is_its_own = matches!(look, Look::At | Look::MaybeOpen(false));
        let inode = if is_its_own { inode() } else { None };
        // SAFETY: null, or the kernel has just read it.
        if let Some(path) = unsafe { answer.leaves(path) } {
            found(area, (base, path), look, (start, switches), inode);
        }
    }
    outcome
}

/// True if a found name is to be reported: while a plan is followed, only a name for which the thread may have waited.
#[inline(always)]
fn is_news(area: &Shared, switches: Switches) -> bool {
    !switches.is_marked() || area.mode() == Mode::Record
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

fn by_stat(stat: &libc::stat) -> Inode {
    Inode {
        // The kernel's numbers have 32 bits.
        dev: stat.st_dev as u32,
        ino: stat.st_ino,
        kind: (stat.st_mode >> 12) as u8,
        size: stat.st_size as u64,
        mtime_ns: nanos(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: nanos(stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn by_statx(found: &libc::statx) -> Option<Inode> {
    let needed = libc::STATX_TYPE
        | libc::STATX_INO
        | libc::STATX_SIZE
        | libc::STATX_MTIME
        | libc::STATX_CTIME;
    (found.stx_mask & needed == needed).then(|| Inode {
        dev: libc::makedev(found.stx_dev_major, found.stx_dev_minor) as u32,
        ino: found.stx_ino,
        kind: (found.stx_mode >> 12) as u8,
        size: found.stx_size,
        mtime_ns: nanos(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec.into()),
        ctime_ns: nanos(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec.into()),
    })
}

/// A name was found by a call that began at `start`, when these switches were marked.
fn found(
    area: &Shared,
    (base, path): (c_int, &[u8]),
    look: Look,
    (start, switches): (u64, Switches),
    inode: Option<Inode>,
) {
    let took = report::spent(start, switches);
    if matches!(look, Look::MaybeOpen(_)) && path.is_empty() {
        return;
    }
    if !report::at_home() || seats::in_helper() {
        return;
    }
    // Before the paths are locked, because claiming a seat locks them, too.
    seats::sit(area);
    paths::absolute(base, path, |path| {
        say(area, path, look, (start, took), inode)
    });
}

/// A call that reads the entries of the directory that is open as `fd`.
#[inline(always)]
pub fn listing_open<T: Outcome>(fd: c_int, call: impl FnOnce() -> T) -> T {
    let Some(area) = report::active() else {
        return call();
    };
    let switches = threads::switches(area);
    let start = report::stamp();
    switches.mark();
    let outcome = call();
    if outcome.found() && is_news(area, switches) {
        listed(area, fd, (start, switches));
    }
    outcome
}

fn listed(area: &Shared, fd: c_int, (start, switches): (u64, Switches)) {
    let took = report::spent(start, switches);
    if !report::at_home() || seats::in_helper() {
        return;
    }
    seats::sit(area);
    paths::of_directory(fd, |path| say(area, &[path], Look::In, (start, took), None));
}

/// Reports the use of a name.
pub fn say(
    area: &Shared,
    path: paths::Parts<'_>,
    look: Look,
    (start, took): (u64, u64),
    inode: Option<Inode>,
) {
    if !paths::is_watched(path) {
        return;
    }
    let len = path.iter().map(|part| part.len()).sum();
    // The longest paths leave no room for the inode.
    let inode = inode.filter(|_| len <= PATH_MAX - size_of::<Slot>());
    let first = encode::name(look.flags(), start, took, len, inode.as_ref());
    // Lost events are counted.
    report::emit(area, |writer| match &inode {
        Some(inode) => writer.push_name(area, &first, inode, path),
        None => writer.push_path(area, &first, path),
    });
}
