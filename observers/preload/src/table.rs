//! The table of descriptors.
//!
//! A descriptor is unknown, ignored (not a regular file, or not readable) or tracked. A tracked one has the instance number of its file
//! description and, while no other process or descriptor can move it, the description's offset. A description that was inherited, opened
//! also for writing, or shared with a child is marked as shared. A duplicated one is marked as duplicated until one descriptor of it is
//! left. For both kinds the kernel is asked for the offset at each read, if that is permitted.
//!
//! Invariant: an entry is cleared before the real close, while the number cannot be another thread's new file yet, and set after the real
//! open. Only the program's threads in the process that owns the table change it. Descriptors beyond the table are not watched.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use foreread_ring::Shared;

use crate::area::area;
use crate::descriptor::{Descriptor, Entry};
use crate::sys::{self, Allowed};
use crate::{seat, threads};

/// Number of watched descriptors: as many as the process may open at its start, within these bounds. A program that raises its limit later
/// has at least the smallest table.
const FEWEST: u64 = 4096;
const MOST: u64 = 65536;

/// The table and its length. The memory is the library's own, and not the program's data, which may be limited.
static TABLE: AtomicPtr<Descriptor> = AtomicPtr::new(ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

/// One more than the highest descriptor with an entry.
static END: AtomicUsize = AtomicUsize::new(0);

/// True if the kernel's read-ahead is off for any descriptor.
static ADVISED: AtomicBool = AtomicBool::new(false);

/// Creates the table. False if there is no memory for it.
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
    // SAFETY: the table has that many entries, and is never unmapped.
    (place < LEN.load(Ordering::Relaxed))
        .then(|| unsafe { &*TABLE.load(Ordering::Relaxed).add(place) })
}

#[inline(always)]
pub fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    Some(&descriptor(fd)?.entry)
}

/// The entry of a descriptor that is known to be tracked and needs no other action.
#[inline(always)]
pub fn known(area: &Shared, fd: c_int) -> Option<Entry> {
    let entry = Entry(cell(fd)?.load(Ordering::Relaxed));
    (entry.is_tracked() && !entry.is_to_restore(area)).then_some(entry)
}

/// True if a descriptor's opening was seen, and its closing was not.
pub fn is_tracked(fd: c_int) -> bool {
    cell(fd).is_some_and(|cell| Entry(cell.load(Ordering::Relaxed)).is_tracked())
}

/// A descriptor that is known to be tracked, and whose cursor only it can move.
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

/// Adds to a cursor. Returns its former offset.
#[inline(always)]
fn advance(cursor: &AtomicU64, by: u64) -> u64 {
    if threads::is_alone() {
        return threads::add_alone(cursor, by);
    }
    // In a helper's own table the number means another file, so the cursor stays.
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

/// Forgets the descriptors from `first` up to `end`, which is excluded.
pub fn forget(first: usize, end: usize) {
    for cell in used().take(end).skip(first) {
        let entry = Entry(cell.swap(Entry::UNKNOWN.0, Ordering::Relaxed));
        if entry.0 & Entry::DUPLICATED != 0 {
            left_alone(entry.inst());
        }
    }
}

/// True if nothing is known about this descriptor and all higher ones.
pub fn is_beyond(fd: usize) -> bool {
    fd >= END.load(Ordering::Relaxed)
}

/// A duplicated description has one descriptor less. If only one is left, it owns the cursor again, after the kernel was asked for the
/// offset once.
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

/// A descriptor was duplicated: from now on neither of the two owns the cursor.
pub fn duplicated(old: c_int, new: c_int) {
    let Some(from) = cell(old) else {
        return set(new, Entry::UNKNOWN);
    };
    let mut entry = Entry(from.load(Ordering::Relaxed));
    if entry.is_tracked() {
        // The closing of a descriptor beyond the table is never seen.
        entry.0 |= match cell(new) {
            Some(_) => Entry::DUPLICATED,
            None => Entry::SHARED,
        };
        from.store(entry.0, Ordering::Relaxed);
    }
    set(new, entry);
}

/// The entries in use, by descriptor.
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

/// From now on only the kernel knows the cursor of this descriptor.
pub fn unowned(fd: c_int) {
    if let Some(cell) = cell(fd).filter(|cell| Entry(cell.load(Ordering::Relaxed)).is_tracked()) {
        cell.fetch_or(Entry::SHARED, Ordering::Relaxed);
        seat::streak().pause();
    }
}

/// Makes all descriptors unknown.
pub fn forget_all() {
    for cell in used() {
        cell.store(Entry::UNKNOWN.0, Ordering::Relaxed);
    }
}

/// Turns the kernel's read-ahead off for a descriptor. False under a filter.
pub fn advise_random(fd: c_int) -> bool {
    let Some(allowed) = Allowed::now() else {
        return false;
    };
    sys::fadvise(allowed, fd, libc::POSIX_FADV_RANDOM);
    ADVISED.store(true, Ordering::Relaxed);
    true
}

/// Doubles the kernel's read-ahead for a descriptor while it is open.
pub fn advise_sequential(fd: c_int) {
    if let Some(allowed) = Allowed::now() {
        sys::fadvise(allowed, fd, libc::POSIX_FADV_SEQUENTIAL);
    }
}

/// The program has advised the kernel on the order of its reads. That applies to all descriptors of the description, and is never
/// withdrawn.
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

/// Restores the kernel's read-ahead for all descriptors for which it is off.
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

/// True if the kernel's read-ahead is off for any descriptor.
#[inline(always)]
pub fn is_advised() -> bool {
    ADVISED.load(Ordering::Relaxed)
}

/// True if the advice is to be withdrawn from every descriptor: the only action that a read without a report may need.
pub fn is_advice_over() -> bool {
    is_advised() && area().is_none_or(|area| area.wanted().is_given_up())
}
