//! Names: what a program looks up without opening it.
//!
//! Only what was found is said: the kernel has read the path then, so that it can be looked at. No system call is added for a
//! path whose directory was seen to be opened; where nothing is reported, the call is all that is made. What cannot be told, as
//! the directory of a process under a filter, stays unseen.

use core::ffi::{c_char, c_int};

use foreread_ring::{NAME_FOLLOWED, NAME_LISTED, Shared, encode};

use crate::{paths, report, seats};

/// How a name is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The inode it leads to is looked at, through symbolic links.
    Through,
    /// The inode of the name itself.
    At,
    /// The entries of the directory are read.
    In,
    /// What a descriptor has open is looked at, if the path is empty: that is no name.
    MaybeOpen(bool),
}

impl Look {
    /// What the flags of a call that takes some (`AT_*`) ask for.
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

/// What a call returns, and whether that says that the name was found.
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
    let Some(area) = report::active() else {
        return call();
    };
    let start = report::stamp();
    let outcome = call();
    if outcome.found() {
        found(area, base, path, look, start);
    }
    outcome
}

/// A name was found by a call that began at `start`.
pub fn found(area: &Shared, base: c_int, path: *const c_char, look: Look, start: u64) {
    let took = report::stamp().wrapping_sub(start);
    if let Look::MaybeOpen(_) = look {
        // SAFETY: null, or the kernel has just read it.
        if path.is_null() || unsafe { *path } == 0 {
            return;
        }
    }
    if !report::at_home() || seats::in_helper() {
        return;
    }
    // Before a path is held: a seat takes one, too.
    seats::sit(area);
    // SAFETY: the kernel has just read the path.
    unsafe { paths::absolute(base, path, |path| say(area, path, look, (start, took))) };
}

/// A call that reads the entries of the directory that is open as `fd`.
#[inline(always)]
pub fn listing_open<T: Outcome>(fd: c_int, call: impl FnOnce() -> T) -> T {
    let Some(area) = report::active() else {
        return call();
    };
    let start = report::stamp();
    let outcome = call();
    if outcome.found() {
        listed(area, fd, start);
    }
    outcome
}

fn listed(area: &Shared, fd: c_int, start: u64) {
    let took = report::stamp().wrapping_sub(start);
    if !report::at_home() || seats::in_helper() {
        return;
    }
    seats::sit(area);
    paths::of_directory(fd, |path| say(area, &[path], Look::In, (start, took)));
}

/// Says that a name was used.
pub fn say(area: &Shared, path: paths::Parts<'_>, look: Look, (start, took): (u64, u64)) {
    if !paths::is_watched(path) {
        return;
    }
    let len = path.iter().map(|part| part.len()).sum();
    let first = encode::name(look.flags(), start, took, len);
    // What there was no room for is counted.
    report::emit(area, |writer| writer.push_path(area, &first, path));
}
