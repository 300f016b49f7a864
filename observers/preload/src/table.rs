//! The table of descriptors.
//!
//! A descriptor is unknown, ignored (not a regular file, or not readable) or tracked: it
//! then has the instance number of its file description and, as long as nobody else can
//! move it, the description's offset. A description that was inherited, opened for writing
//! too or shared with a child is marked shared, one that was duplicated is marked so until
//! one descriptor of it is left; the offset of either is asked of the kernel at each read, if it may be asked.
//!
//! Invariant: an entry is cleared before the real close, when the number cannot be another thread's new file yet, and set
//! after the real open, and only by the process the table belongs to, and its own threads. Descriptors beyond the table
//! are not watched.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use foreread_ring::Shared;

use crate::area::area;
use crate::descriptor::{Descriptor, Entry};
use crate::sys::{self, Allowed};
use crate::{seat, threads};

/// How many descriptors are watched: as many as the process may open when it begins, within these bounds. A program that
/// raises its limit later has a table of the lower one's size at least.
const FEWEST: u64 = 4096;
const MOST: u64 = 65536;

/// The table, and how long it is. Memory of the library's own, not the program's data, which may be limited.
static TABLE: AtomicPtr<Descriptor> = AtomicPtr::new(ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

/// One more than the highest descriptor the table has an entry for.
static END: AtomicUsize = AtomicUsize::new(0);

/// Whether any descriptor has the kernel's read-ahead off.
static ADVISED: AtomicBool = AtomicBool::new(false);

/// Makes the table. Returns whether there was room for it.
pub fn ready(allowed: Allowed) -> bool {
    let open = sys::limit(allowed, libc::RLIMIT_NOFILE).clamp(FEWEST, MOST) as usize;
    let Some(table) = sys::map_private(allowed, open * size_of::<Descriptor>()) else {
        return false;
    };
    TABLE.store(table.cast(), Ordering::Relaxed);
    LEN.store(open, Ordering::Relaxed);
    true
}

#[inline(always)]
fn descriptor(fd: c_int) -> Option<&'static Descriptor> {
    let place = usize::try_from(fd).ok()?;
    // SAFETY: the table has that many entries, and is never taken away.
    (place < LEN.load(Ordering::Relaxed))
        .then(|| unsafe { &*TABLE.load(Ordering::Relaxed).add(place) })
}

#[inline(always)]
pub fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    Some(&descriptor(fd)?.entry)
}

/// The entry of a descriptor that is known to be tracked, with which there is nothing else to do.
#[inline(always)]
pub fn known(area: &Shared, fd: c_int) -> Option<Entry> {
    let entry = Entry(cell(fd)?.load(Ordering::Relaxed));
    (entry.is_tracked() && !entry.is_to_restore(area)).then_some(entry)
}

/// Whether a descriptor was seen to be opened, and not to be closed.
pub fn is_tracked(fd: c_int) -> bool {
    cell(fd).is_some_and(|cell| Entry(cell.load(Ordering::Relaxed)).is_tracked())
}

/// A descriptor that is known to be tracked, and that nobody else can move.
pub fn plain(fd: c_int) -> Option<&'static Descriptor> {
    let entry = |one: &Descriptor| Entry(one.entry.load(Ordering::Relaxed));
    descriptor(fd).filter(|one| entry(one).is_tracked() && entry(one).0 as u32 == 0)
}

/// The offset at which the `got` bytes just read at the descriptor's cursor began.
#[inline(always)]
pub fn read_from(fd: c_int, entry: Entry, got: u64) -> Option<u64> {
    if entry.0 & (Entry::SHARED | Entry::DUPLICATED | Entry::LEFT) != 0 {
        let at = sys::tell(Allowed::now()?, fd)?;
        if entry.0 & (Entry::SHARED | Entry::DUPLICATED) == 0 {
            moved(fd, at);
            cell(fd)?.fetch_and(!Entry::LEFT, Ordering::Relaxed);
        }
        return at.checked_sub(got);
    }
    Some(advance(&descriptor(fd)?.offset, got))
}

/// Adds to a cursor, and returns where it was.
#[inline(always)]
fn advance(cursor: &AtomicU64, by: u64) -> u64 {
    if threads::is_alone() {
        return threads::add_alone(cursor, by);
    }
    // Whose number means another file moves nothing.
    let by = if seat::in_helper() { 0 } else { by };
    cursor.fetch_add(by, Ordering::Relaxed)
}

/// The program has moved the cursor.
pub fn moved(fd: c_int, offset: u64) {
    seat::streak().pause();
    if let Some(descriptor) = descriptor(fd) {
        descriptor.offset.store(offset, Ordering::Relaxed);
    }
}

/// Gives a newly opened descriptor its entry, with the cursor at 0.
pub fn set(fd: c_int, entry: Entry) {
    let Some(cell) = cell(fd) else { return };
    moved(fd, 0);
    cell.store(entry.0, Ordering::Relaxed);
    let end = fd as usize + 1;
    if END.load(Ordering::Relaxed) < end {
        END.fetch_max(end, Ordering::Relaxed);
    }
}

/// Forgets descriptors, up to but without `end`.
pub fn forget(first: usize, end: usize) {
    for cell in used().take(end).skip(first) {
        let entry = Entry(cell.swap(Entry::UNKNOWN.0, Ordering::Relaxed));
        if entry.0 & Entry::DUPLICATED != 0 {
            left_alone(entry.inst());
        }
    }
}

/// Whether nothing is known of a descriptor and those above it.
pub fn is_beyond(fd: usize) -> bool {
    fd >= END.load(Ordering::Relaxed)
}

/// One descriptor fewer of a description: the last one owns its cursor again, once that is found out.
#[cold]
fn left_alone(inst: u32) {
    let mut left = used()
        .enumerate()
        .filter(|(_, cell)| Entry(cell.load(Ordering::Relaxed)).inst() == inst);
    if let (Some((_, cell)), None) = (left.next(), left.next()) {
        cell.fetch_or(Entry::LEFT, Ordering::Relaxed);
        cell.fetch_and(!Entry::DUPLICATED, Ordering::Relaxed);
    }
}

/// One more descriptor for a file description: from now on neither owns the cursor.
pub fn duplicated(old: c_int, new: c_int) {
    let Some(from) = cell(old) else {
        return set(new, Entry::UNKNOWN);
    };
    let mut entry = Entry(from.load(Ordering::Relaxed));
    if entry.is_tracked() {
        // One that the table has no room for is never seen to be closed.
        entry.0 |= match cell(new) {
            Some(_) => Entry::DUPLICATED,
            None => Entry::SHARED,
        };
        from.store(entry.0, Ordering::Relaxed);
    }
    set(new, entry);
}

/// The entries there are, by descriptor.
fn used() -> impl Iterator<Item = &'static AtomicU64> {
    let end = END.load(Ordering::Relaxed) as c_int;
    (0..end).filter_map(cell)
}

/// A child is about to share every description.
pub fn share_all() {
    for cell in used() {
        if Entry(cell.load(Ordering::Relaxed)).is_tracked() {
            cell.fetch_or(Entry::SHARED, Ordering::Relaxed);
        }
    }
}

/// Where the cursor of a descriptor is only the kernel knows from now on.
pub fn unowned(fd: c_int) {
    if let Some(cell) = cell(fd).filter(|cell| Entry(cell.load(Ordering::Relaxed)).is_tracked()) {
        cell.fetch_or(Entry::SHARED, Ordering::Relaxed);
        seat::streak().pause();
    }
}

/// Everything is to be found out anew.
pub fn forget_all() {
    for cell in used() {
        cell.store(Entry::UNKNOWN.0, Ordering::Relaxed);
    }
}

/// Turns the kernel's read-ahead off for a descriptor. Returns whether it did.
pub fn advise_random(fd: c_int) -> bool {
    let Some(allowed) = Allowed::now() else {
        return false;
    };
    sys::fadvise(allowed, fd, libc::POSIX_FADV_RANDOM);
    ADVISED.store(true, Ordering::Relaxed);
    true
}

/// Makes the kernel's read-ahead twice as long for a descriptor, as long as it is open.
pub fn advise_sequential(fd: c_int) {
    if let Some(allowed) = Allowed::now() {
        sys::fadvise(allowed, fd, libc::POSIX_FADV_SEQUENTIAL);
    }
}

/// The program has told the kernel itself in which order it reads a file. That holds for all descriptors of the description, and is
/// never taken back.
pub fn is_told_order(fd: c_int) {
    let Some(entry) = cell(fd) else {
        return;
    };
    let entry = Entry(entry.load(Ordering::Relaxed));
    if entry.0 & Entry::ADVISED == 0 || !entry.is_tracked() {
        return;
    }
    for cell in used() {
        if Entry(cell.load(Ordering::Relaxed)).inst() == entry.inst() {
            cell.fetch_and(!Entry::ADVISED, Ordering::Relaxed);
        }
    }
}

/// Gives every descriptor the kernel's read-ahead back.
#[cold]
pub fn restore_all() {
    let Some(allowed) = Allowed::now() else {
        return;
    };
    if !ADVISED.swap(false, Ordering::Relaxed) {
        return;
    }
    for (fd, cell) in used().enumerate() {
        let entry = cell.load(Ordering::Relaxed);
        if entry & Entry::ADVISED != 0 && Entry(entry).is_tracked() {
            cell.fetch_and(!Entry::ADVISED, Ordering::Relaxed);
            sys::fadvise(allowed, fd as c_int, libc::POSIX_FADV_NORMAL);
        }
    }
}

/// Whether the kernel's read-ahead is off on any descriptor.
#[inline(always)]
pub fn is_advised() -> bool {
    ADVISED.load(Ordering::Relaxed)
}

/// Whether the advice is to be taken back from every descriptor: all there may be to do at a read that is not reported.
pub fn is_advice_over() -> bool {
    is_advised() && area().is_none_or(|area| area.wanted().is_given_up())
}
