//! What each descriptor is.
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

use foreread_ring::{OPEN_FOUND, OPEN_WRITTEN, Shared, encode};

use crate::sys::{self, Allowed};
use crate::{paths, report, seats, threads, watch};

/// How many descriptors are watched: as many as the process may open when it begins, within these bounds. A program that
/// raises its limit later has a table of the lower one's size at least.
const FEWEST: u64 = 4096;
const MOST: u64 = 65536;

/// What a read looks up, side by side: a program that reads much leaves little in the processor's nearest cache.
#[repr(C, align(16))]
pub struct Descriptor {
    /// As [`Entry`].
    pub entry: AtomicU64,
    /// Of the cursor, in bytes.
    pub offset: AtomicU64,
}

/// The table, and how long it is. Memory of the library's own, not the program's data, which may be limited.
static TABLE: AtomicPtr<Descriptor> = AtomicPtr::new(ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

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
    /// It was duplicated, and is the last one left: where the cursor is has to be asked once.
    const LEFT: u64 = 32;

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
fn cell(fd: c_int) -> Option<&'static AtomicU64> {
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
    if report::area().is_none() || old == new || new < 0 || !report::at_home() || seats::in_helper()
    {
        return;
    }
    paths::duplicated(old, new);
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
        seats::streak().pause();
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

/// The program has told the kernel itself how it reads a file: that stands, and is never taken back.
pub fn advised(fd: c_int, advice: c_int) {
    if matches!(advice, libc::POSIX_FADV_DONTNEED | libc::POSIX_FADV_NOREUSE) {
        watch::dropped(fd);
    }
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
    is_advised() && report::area().is_none_or(|area| area.wanted().is_given_up())
}

/// Finds out what a descriptor is that was not seen being opened.
#[cold]
fn find_out(area: &Shared, fd: c_int) -> Option<Entry> {
    let allowed = Allowed::now()?;
    if seats::in_helper() {
        return None;
    }
    // Before a path is held: a seat takes one, too.
    seats::sit(area);
    let start = report::stamp();
    let status = sys::status_flags(allowed, fd);
    let mode = status & libc::O_ACCMODE;
    let is_file = status >= 0 && mode != libc::O_WRONLY && sys::regular(allowed, fd).is_some();
    let said = is_file
        .then(|| {
            paths::of_descriptor(allowed, fd, |path| {
                paths::is_watched(&[path]).then(|| say_found(area, path, mode, start))
            })
        })
        .flatten();
    let entry = match said {
        Some(inst) => Entry::tracked(inst?, true, false),
        None => Entry::IGNORED,
    };
    if report::at_home() {
        set(fd, entry);
    }
    (entry != Entry::IGNORED).then_some(entry)
}

/// Says that a file was found open; its instance, unless the supervisor has not heard of it.
fn say_found(area: &Shared, path: &[u8], mode: c_int, start: u64) -> Option<u32> {
    let inst = area.next_instance();
    let written = if mode == libc::O_RDWR {
        OPEN_WRITTEN
    } else {
        0
    };
    let first = encode::open(inst, OPEN_FOUND | written, start, 0, path.len());
    report::emit(area, |writer| writer.push_path(area, &first, &[path])).then_some(inst)
}
