//! What each descriptor is.
//!
//! A descriptor is unknown, ignored (not a regular file, or not readable) or tracked: it
//! then has the instance number of its file description and, as long as nobody else can
//! move it, the description's offset. A description that was inherited, opened for writing
//! too or shared with a child is marked shared, one that was duplicated is marked so until
//! one descriptor of it is left; the offset of either is asked of the kernel at each read.
//!
//! Invariant: an entry is cleared before the real close and set after the real open, and
//! only by the process the table belongs to, and its own threads. Descriptors beyond the table are not watched.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use foreread_ring::{OPEN_FOUND, OPEN_WRITTEN, Shared, encode};

use crate::{paths, report, seats, sys, threads};

/// How many descriptors can be watched; the table's pages are touched only where used.
const DESCRIPTORS: usize = 65536;

/// What a read looks up, side by side: a program that reads much leaves little in the processor's nearest cache.
#[repr(C, align(16))]
pub struct Descriptor {
    /// As [`Entry`].
    pub entry: AtomicU64,
    /// Of the cursor, in bytes.
    pub offset: AtomicU64,
}

static TABLE: [Descriptor; DESCRIPTORS] = [const {
    Descriptor {
        entry: AtomicU64::new(0),
        offset: AtomicU64::new(0),
    }
}; DESCRIPTORS];

/// One more than the highest descriptor the table has an entry for.
static END: AtomicUsize = AtomicUsize::new(0);

/// Whether any descriptor has the kernel's read-ahead off.
static ADVISED: AtomicBool = AtomicBool::new(false);

/// A table entry: 0 unknown, 1 ignored, else the instance in the upper half and flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    pub const UNKNOWN: Self = Self(0);
    pub const IGNORED: Self = Self(1);
    const SHARED: u64 = 4;
    const ADVISED: u64 = 8;
    const DUPLICATED: u64 = 16;

    pub fn tracked(inst: u32, shared: bool, advised: bool) -> Self {
        let flags = if shared { Self::SHARED } else { 0 } | if advised { Self::ADVISED } else { 0 };
        Self(u64::from(inst) << 32 | flags)
    }

    #[inline(always)]
    pub fn inst(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn is_tracked(self) -> bool {
        self.inst() != 0
    }

    /// Whether the kernel's read-ahead is off on it, and the plan has been given up.
    fn is_to_restore(self, area: &Shared) -> bool {
        self.0 & Self::ADVISED != 0 && area.wanted().is_given_up()
    }
}

#[inline(always)]
fn descriptor(fd: c_int) -> Option<&'static Descriptor> {
    TABLE.get(usize::try_from(fd).ok()?)
}

#[inline(always)]
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
    Some(&descriptor(fd)?.entry)
}

/// The entry of a descriptor that is known to be tracked, with which there is nothing else to do.
#[inline(always)]
pub fn known(area: &Shared, fd: c_int) -> Option<Entry> {
    let entry = Entry(cell(fd)?.load(Ordering::Relaxed));
    (entry.is_tracked() && !entry.is_to_restore(area)).then_some(entry)
}

/// A descriptor that is known to be tracked, and that nobody else can move.
pub fn plain(fd: c_int) -> Option<&'static Descriptor> {
    let entry = |one: &Descriptor| Entry(one.entry.load(Ordering::Relaxed));
    descriptor(fd).filter(|one| entry(one).is_tracked() && entry(one).0 as u32 == 0)
}

/// The entry of a tracked descriptor; an unknown one is looked into first.
#[inline(always)]
pub fn tracked(area: &Shared, fd: c_int) -> Option<Entry> {
    let entry = Entry(cell(fd)?.load(Ordering::Relaxed));
    if entry.is_tracked() {
        if entry.is_to_restore(area) {
            restore_all();
        }
        return Some(entry);
    }
    if entry == Entry::IGNORED {
        None
    } else {
        find_out(area, fd)
    }
}

/// The offset at which the `got` bytes just read at the descriptor's cursor began.
#[inline(always)]
pub fn read_from(fd: c_int, entry: Entry, got: u64) -> Option<u64> {
    if entry.0 & (Entry::SHARED | Entry::DUPLICATED) != 0 {
        return sys::tell(fd)?.checked_sub(got);
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
    let by = if seats::in_helper() { 0 } else { by };
    cursor.fetch_add(by, Ordering::Relaxed)
}

/// The program has moved the cursor.
pub fn moved(fd: c_int, offset: u64) {
    seats::streak().pause();
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

/// Forgets descriptors that are about to be closed.
pub fn closing(first: c_int, last: c_int) {
    let none = usize::try_from(first).is_ok_and(|first| first >= END.load(Ordering::Relaxed));
    if report::area().is_none()
        || (none && paths::is_empty())
        || !report::at_home()
        || seats::in_helper()
    {
        return;
    }
    let end = usize::try_from(last).map_or(0, |last| last + 1);
    for cell in used().take(end).skip(usize::try_from(first).unwrap_or(0)) {
        let entry = Entry(cell.swap(Entry::UNKNOWN.0, Ordering::Relaxed));
        if entry.0 & Entry::DUPLICATED != 0 {
            left_alone(entry.inst());
        }
    }
    paths::forget(first, last);
}

/// One descriptor fewer of a description: the last one owns its cursor again.
#[cold]
fn left_alone(inst: u32) {
    let mut left = used()
        .enumerate()
        .filter(|(_, cell)| Entry(cell.load(Ordering::Relaxed)).inst() == inst);
    if let (Some((fd, cell)), None) = (left.next(), left.next())
        && let Some(offset) = sys::tell(fd as c_int)
    {
        moved(fd as c_int, offset);
        cell.fetch_and(!Entry::DUPLICATED, Ordering::Relaxed);
    }
}

/// One more descriptor for a file description: from now on neither owns the cursor.
pub fn duplicated(old: c_int, new: c_int) {
    if report::area().is_none() || old == new || new < 0 || !report::at_home() || seats::in_helper()
    {
        return;
    }
    paths::forget(new, new);
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
    let end = END.load(Ordering::Relaxed);
    TABLE.iter().take(end).map(|descriptor| &descriptor.entry)
}

/// A child is about to share every description.
pub fn share_all() {
    for cell in used() {
        if Entry(cell.load(Ordering::Relaxed)).is_tracked() {
            cell.fetch_or(Entry::SHARED, Ordering::Relaxed);
        }
    }
}

/// Everything is to be found out anew.
pub fn forget_all() {
    for cell in used() {
        cell.store(Entry::UNKNOWN.0, Ordering::Relaxed);
    }
}

/// Turns the kernel's read-ahead off for a descriptor.
pub fn advise_random(fd: c_int) {
    sys::fadvise(fd, libc::POSIX_FADV_RANDOM);
    ADVISED.store(true, Ordering::Relaxed);
}

/// Makes the kernel's read-ahead twice as long for a descriptor, as long as it is open.
pub fn advise_sequential(fd: c_int) {
    sys::fadvise(fd, libc::POSIX_FADV_SEQUENTIAL);
}

/// The program has told the kernel itself how it reads a file: that stands, and is never taken back.
pub fn advised(fd: c_int, advice: c_int) {
    let is_of_order = matches!(
        advice,
        libc::POSIX_FADV_NORMAL | libc::POSIX_FADV_RANDOM | libc::POSIX_FADV_SEQUENTIAL
    );
    let is_known = is_of_order && report::at_home() && !seats::in_helper();
    let Some(entry) = cell(fd).filter(|_| is_known) else {
        return;
    };
    let entry = Entry(entry.load(Ordering::Relaxed));
    if entry.0 & Entry::ADVISED == 0 || !entry.is_tracked() {
        return;
    }
    // It holds for all descriptors of the description.
    for cell in used() {
        if Entry(cell.load(Ordering::Relaxed)).inst() == entry.inst() {
            cell.fetch_and(!Entry::ADVISED, Ordering::Relaxed);
        }
    }
}

/// Gives every descriptor the kernel's read-ahead back.
#[cold]
pub fn restore_all() {
    ADVISED.store(false, Ordering::Relaxed);
    for (fd, cell) in used().enumerate() {
        let entry = cell.load(Ordering::Relaxed);
        if entry & Entry::ADVISED != 0 && Entry(entry).is_tracked() {
            cell.fetch_and(!Entry::ADVISED, Ordering::Relaxed);
            sys::fadvise(fd as c_int, libc::POSIX_FADV_NORMAL);
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
    is_advised() && report::area().is_none_or(|area| area.wanted().is_given_up())
}

/// Finds out what a descriptor is that was not seen being opened.
#[cold]
fn find_out(area: &Shared, fd: c_int) -> Option<Entry> {
    if seats::in_helper() {
        return None;
    }
    let start = report::stamp();
    let status = sys::status_flags(fd);
    let mode = status & libc::O_ACCMODE;
    let mut buffer = paths::Buffer::new();
    let path = if status < 0 || mode == libc::O_WRONLY || sys::regular_size(fd).is_none() {
        None
    } else {
        paths::of_descriptor(fd, &mut buffer).filter(|path| paths::is_watched(path))
    };
    let Some(path) = path else {
        if report::at_home() {
            set(fd, Entry::IGNORED);
        }
        return None;
    };
    let inst = area.next_instance();
    let flags = OPEN_FOUND
        | if mode == libc::O_RDWR {
            OPEN_WRITTEN
        } else {
            0
        };
    let first = encode::open(inst, flags, start, 0, path.len());
    if !report::emit(area, |writer| writer.push_path(area, &first, path)) {
        return None;
    }
    let entry = Entry::tracked(inst, true, false);
    if report::at_home() {
        set(fd, entry);
    }
    Some(entry)
}
