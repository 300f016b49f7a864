//! Changes of descriptors while the program runs: examined, closed and duplicated.

use core::ffi::c_int;
use core::sync::atomic::Ordering;

use foreread_ring::{OPEN_DIRECT, OPEN_FOUND, OPEN_WRITTEN, Shared, encode};

pub use crate::descriptor::Entry;
use crate::sys::{self, Allowed};
pub use crate::table::{
    advise_random, advise_sequential, known, moved, read_from, set, share_all, unowned,
};
use crate::{paths, report, seats, table};

/// The entry of a tracked descriptor. An unknown one is examined first.
#[inline(always)]
pub fn tracked(area: &Shared, fd: c_int) -> Option<Entry> {
    let entry = Entry(table::cell(fd)?.load(Ordering::Relaxed));
    if entry.is_tracked() {
        if entry.is_to_restore(area) {
            table::restore_all();
        }
        return Some(entry);
    }
    if entry == Entry::IGNORED {
        None
    } else {
        find_out(area, fd)
    }
}

/// Forgets descriptors that are about to be closed.
pub fn closing(first: c_int, last: c_int) {
    let none = usize::try_from(first).is_ok_and(table::is_beyond);
    if report::area().is_none()
        || (none && paths::is_empty())
        || !report::at_home()
        || seats::in_helper()
    {
        return;
    }
    let end = usize::try_from(last).map_or(0, |last| last + 1);
    table::forget(usize::try_from(first).unwrap_or(0), end);
    paths::forget(first, last);
}

/// A descriptor was duplicated: from now on neither of the two owns the cursor.
pub fn duplicated(old: c_int, new: c_int) {
    if report::area().is_none() || old == new || new < 0 || !report::at_home() || seats::in_helper()
    {
        return;
    }
    paths::duplicated(old, new);
    table::duplicated(old, new);
}

/// From now on reads of an open descriptor pass the page cache by. Its next read examines it again.
pub fn passes_cache_by(fd: c_int) {
    if report::at_home() && !seats::in_helper() {
        let first = usize::try_from(fd).unwrap_or(0);
        table::forget(first, first + 1);
    }
}

/// The program has given the kernel its own advice on a file.
pub fn advised(fd: c_int, advice: c_int) {
    let is_of_order = matches!(
        advice,
        libc::POSIX_FADV_NORMAL | libc::POSIX_FADV_RANDOM | libc::POSIX_FADV_SEQUENTIAL
    );
    if is_of_order && report::at_home() && !seats::in_helper() {
        table::is_told_order(fd);
    }
}

/// Examines a descriptor whose opening was not seen.
#[cold]
fn find_out(area: &Shared, fd: c_int) -> Option<Entry> {
    let allowed = Allowed::now()?;
    if seats::in_helper() {
        return None;
    }
    // Before the paths are locked, because claiming a seat locks them, too.
    seats::sit(area);
    let start = report::stamp();
    let status = sys::status_flags(allowed, fd);
    let mode = status & libc::O_ACCMODE;
    let is_file = status >= 0 && mode != libc::O_WRONLY && sys::regular(allowed, fd).is_some();
    let said = is_file
        .then(|| {
            paths::of_descriptor(allowed, fd, |path| {
                paths::is_watched(&[path]).then(|| say_found(area, path, status, start))
            })
        })
        .flatten();
    let entry = match said {
        Some(inst) => Entry::tracked(inst?, true, false),
        None => Entry::IGNORED,
    };
    if report::at_home() {
        table::set(fd, entry);
    }
    (entry != Entry::IGNORED).then_some(entry)
}

/// Reports a file found open. Returns its instance, unless the report was lost.
fn say_found(area: &Shared, path: &[u8], status: c_int, start: u64) -> Option<u32> {
    let inst = area.next_instance();
    let mut said = OPEN_FOUND;
    if status & libc::O_ACCMODE == libc::O_RDWR {
        said |= OPEN_WRITTEN;
    }
    if status & libc::O_DIRECT != 0 {
        said |= OPEN_DIRECT;
    }
    let first = encode::open(inst, said, start, 0, path.len());
    report::emit(area, |writer| writer.push_path(area, &first, &[path])).then_some(inst)
}
