//! Mapped files, and which of their pages were touched.
//!
//! A mapping is reported when it is made, and its present pages when it goes away: at
//! munmap, exit and exec. The executable and its shared objects are mapped by the
//! loader, unseen; they are reported when the program starts and after it has loaded more. The supervisor samples the same pages
//! from outside as the program runs, so a range may be reported more than once.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use foreread_ring::{Mode, OPEN_FOUND, Shared, encode, kind};

use crate::{files, paths, report, seats, sys};

/// How many mappings are kept; of further ones the touched pages are not reported here.
const MAPPINGS: usize = 1024;

/// How often the lock is tried before giving up: its holder may be the code that a
/// signal handler has interrupted.
const TRIES: u32 = 1000;

const PAGE: u64 = 4096;

/// The longest range one event reports, in bytes.
const LONGEST: u64 = 1 << 30;

/// The protection and flags reported for what the loader mapped.
const LOADED: (u32, u32) = (
    (libc::PROT_READ | libc::PROT_EXEC) as u32,
    libc::MAP_PRIVATE as u32,
);

/// The protection and flags reported for a mapping that was moved: those of the old one
/// are not kept.
const REMAPPED: (u32, u32) = (libc::PROT_READ as u32, libc::MAP_SHARED as u32);

/// How many opens after a dlopen look for newly loaded objects: the first may come while
/// another thread is still loading.
const LOOKS: u32 = 32;

/// Part of a file's description, at an address.
#[derive(Clone, Copy)]
struct Mapping {
    addr: u64,
    len: u64,
    offset: u64,
    inst: u32,
}

impl Mapping {
    const NONE: Self = Self {
        addr: 0,
        len: 0,
        offset: 0,
        inst: 0,
    };

    fn end(&self) -> u64 {
        self.addr + self.len
    }

    /// The part within a range of addresses; empty if there is none.
    fn within(&self, from: u64, to: u64) -> Self {
        let (from, to) = (self.addr.max(from), self.end().min(to));
        if from >= to {
            return Self::NONE;
        }
        Self {
            addr: from,
            len: to - from,
            offset: self.offset + (from - self.addr),
            ..*self
        }
    }
}

struct Table {
    locked: AtomicBool,
    /// Entries from here on have never been used.
    end: AtomicUsize,
    entries: UnsafeCell<[Mapping; MAPPINGS]>,
}

// SAFETY: `entries` is only touched by the holder of `locked`.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    locked: AtomicBool::new(false),
    end: AtomicUsize::new(0),
    entries: UnsafeCell::new([Mapping::NONE; MAPPINGS]),
};

/// Whether the program has mapped files itself.
static MAPS: AtomicBool = AtomicBool::new(false);

/// How often to look for newly loaded objects.
static LOOK: AtomicU32 = AtomicU32::new(0);

fn with_lock<T>(work: impl FnOnce(&mut [Mapping; MAPPINGS]) -> T) -> Option<T> {
    for _ in 0..TRIES {
        if !TABLE.locked.swap(true, Ordering::Acquire) {
            // SAFETY: this thread holds the lock.
            let result = work(unsafe { &mut *TABLE.entries.get() });
            TABLE.locked.store(false, Ordering::Release);
            return Some(result);
        }
        core::hint::spin_loop();
    }
    None
}

/// In a forked child: whoever held the lock is not here.
pub fn unlock() {
    TABLE.locked.store(false, Ordering::Relaxed);
}

/// A mapping: `call` returns its address.
#[inline(always)]
pub fn mapping(
    (addr, len): (*mut c_void, usize),
    (prot, flags): (c_int, c_int),
    (fd, offset): (c_int, i64),
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if report::area().is_none() {
        return call();
    }
    if flags & libc::MAP_FIXED != 0 {
        unmapped(addr as u64, len as u64);
    }
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
        return call();
    }
    let start = report::stamp();
    let at = call();
    if at != libc::MAP_FAILED {
        let place = Mapping {
            addr: at as u64,
            len: len as u64,
            offset: offset as u64,
            inst: 0,
        };
        mapped(place, (prot, flags), fd, start);
    }
    at
}

#[cold]
fn mapped(mut mapping: Mapping, (prot, flags): (c_int, c_int), fd: c_int, start: u64) {
    let took = report::stamp().wrapping_sub(start);
    if !report::at_home() || seats::in_helper() {
        return;
    }
    let Some(area) = report::active() else { return };
    let Some(entry) = files::tracked(area, fd) else {
        return;
    };
    mapping.inst = entry.inst();
    MAPS.store(true, Ordering::Relaxed);
    announce(area, mapping, (prot as u32, flags as u32), (start, took));
}

fn announce(area: &Shared, mapping: Mapping, bits: (u32, u32), times: (u64, u64)) {
    let Mapping {
        addr,
        len,
        offset,
        inst,
    } = mapping;
    let pair = encode::map(inst, times, (addr, len, offset), bits);
    if report::emit(area, |writer| writer.push_pair(area, &pair)) {
        with_lock(|entries| insert(entries, mapping));
    }
}

fn insert(entries: &mut [Mapping; MAPPINGS], mapping: Mapping) {
    if let Some(place) = entries.iter().position(|entry| entry.len == 0) {
        entries[place] = mapping;
        TABLE.end.fetch_max(place + 1, Ordering::Relaxed);
    }
}

/// A range of addresses is about to be mapped no more, or to something else.
pub fn unmapped(addr: u64, len: u64) {
    // Most programs map no files of their own; their unmaps must cost nothing.
    if TABLE.end.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(end) = addr.checked_add(len.next_multiple_of(PAGE)) else {
        return;
    };
    if first_within(addr, end).len == 0 || !report::at_home() {
        return;
    }
    with_pagemap(|area, pagemap| {
        for place in 0..TABLE.end.load(Ordering::Relaxed) {
            let part = with_lock(|entries| entries[place].within(addr, end));
            if let Some(part) = part.filter(|part| part.len != 0) {
                touched(area, pagemap, &[part]);
            }
        }
    });
    with_lock(|entries| {
        for place in 0..TABLE.end.load(Ordering::Relaxed) {
            cut(entries, place, addr, end);
        }
    });
    if let Some(area) = report::active() {
        report::emit_slot(area, &encode::unmap(report::stamp(), addr, end - addr));
    }
}

/// The part of the first known mapping that lies in a range of addresses.
fn first_within(from: u64, to: u64) -> Mapping {
    let part = with_lock(|entries| {
        let used = &entries[..TABLE.end.load(Ordering::Relaxed)];
        used.iter()
            .map(|entry| entry.within(from, to))
            .find(|part| part.len != 0)
    });
    part.flatten().unwrap_or(Mapping::NONE)
}

/// A mapping changes its place or size: `call` returns its new address.
pub fn remapping(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if TABLE.end.load(Ordering::Relaxed) == 0 || !report::at_home() {
        return call();
    }
    let start = report::stamp();
    let part = first_within(old as u64, (old as u64).saturating_add(old_len as u64));
    unmapped(old as u64, old_len as u64);
    let new = call();
    if let (Some(area), true) = (report::active(), part.len != 0) {
        let (addr, len) = if new == libc::MAP_FAILED {
            (part.addr, part.len)
        } else {
            (new as u64, new_len as u64)
        };
        announce(area, Mapping { addr, len, ..part }, REMAPPED, (start, 0));
    }
    new
}

/// Takes a range of addresses out of one entry.
fn cut(entries: &mut [Mapping; MAPPINGS], place: usize, from: u64, to: u64) {
    let whole = entries[place];
    if whole.within(from, to).len != 0 {
        entries[place] = whole.within(0, from);
        let rest = whole.within(to, u64::MAX);
        if rest.len != 0 {
            insert(entries, rest);
        }
    }
}

/// Reports the touched pages of all mappings: the process is about to end. Of those of objects it may be known that they
/// are no others than other processes have touched.
pub fn report_all_touched() {
    let nothing_new = report::area().is_some_and(seats::is_familiar);
    if nothing_new && !MAPS.load(Ordering::Relaxed) {
        return;
    }
    with_pagemap(|area, fd| {
        let mut place = 0;
        while place < TABLE.end.load(Ordering::Relaxed) {
            let group = with_lock(|entries| neighbours(entries, place)).unwrap_or(Group::NONE);
            touched(area, fd, &group.entries[..group.len]);
            place += group.len.max(1);
        }
    });
}

/// Mappings that follow each other in the table and in memory, as an object's do: they
/// are scanned in one go.
struct Group {
    entries: [Mapping; 8],
    len: usize,
}

impl Group {
    const NONE: Self = Self {
        entries: [Mapping::NONE; 8],
        len: 0,
    };
}

fn neighbours(entries: &[Mapping; MAPPINGS], place: usize) -> Group {
    let mut group = Group::NONE;
    for entry in entries.iter().skip(place).take(group.entries.len()) {
        let follows = group.len == 0 || group.entries[group.len - 1].end() == entry.addr;
        if entry.len == 0 || !follows {
            break;
        }
        group.entries[group.len] = *entry;
        group.len += 1;
    }
    group
}

/// Does the work with the table of this process's pages.
fn with_pagemap(work: impl FnOnce(&Shared, c_int)) {
    let Some(area) = report::active() else { return };
    let fd = sys::open(c"/proc/self/pagemap", libc::O_RDONLY) as c_int;
    if fd >= 0 {
        work(area, fd);
        sys::close(fd);
    }
}

/// Reports the present pages of mappings that follow each other in memory.
fn touched(area: &Shared, pagemap: c_int, group: &[Mapping]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let (from, to) = (first.addr, last.end().next_multiple_of(PAGE));
    let mut run = |from: u64, to: u64| {
        for mapping in group {
            tell(area, mapping.within(from, to));
        }
    };
    if !scan(pagemap, from, to, &mut run) {
        walk(pagemap, from, to, &mut run);
    }
}

fn tell(area: &Shared, mut part: Mapping) {
    while part.len != 0 {
        let len = part.len.min(LONGEST);
        let start = report::stamp();
        let slot = encode::access(part.inst, kind::TOUCH, start, 0, part.offset, len as u32);
        report::emit_slot(area, &slot);
        part = part.within(part.addr + len, u64::MAX);
    }
}

/// `struct pm_scan_arg` of `linux/fs.h`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of `linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// Finds the present pages by the `PAGEMAP_SCAN` ioctl (Linux 6.7); false without it.
fn scan(fd: c_int, from: u64, end: u64, run: &mut impl FnMut(u64, u64)) -> bool {
    const PAGEMAP_SCAN: usize = 0xc060_6610;
    const PAGE_IS_PRESENT: u64 = 1 << 3;
    let mut regions = [Region {
        start: 0,
        end: 0,
        categories: 0,
    }; 128];
    let mut start = from;
    while start < end {
        let mut argument = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end,
            walk_end: 0,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: PAGE_IS_PRESENT,
            category_anyof_mask: 0,
            return_mask: PAGE_IS_PRESENT,
        };
        // SAFETY: the argument the request expects, whose vector is writable.
        let found = unsafe { sys::ioctl(fd, PAGEMAP_SCAN, &mut argument) };
        let Ok(found) = usize::try_from(found) else {
            return start != from;
        };
        for region in regions.iter().take(found) {
            run(region.start, region.end);
        }
        if argument.walk_end <= start {
            break;
        }
        start = argument.walk_end;
    }
    true
}

/// Finds the present pages by reading their entries one by one.
fn walk(fd: c_int, from: u64, to: u64, run: &mut impl FnMut(u64, u64)) {
    const PRESENT: u64 = 1 << 63;
    let mut entries = [0_u64; 128];
    let (mut page, end) = (from / PAGE, to / PAGE);
    while page < end {
        let want = entries.len().min((end - page) as usize);
        let got = sys::pread(fd, &mut entries[..want], page * 8) / 8;
        if got <= 0 {
            return;
        }
        for group in entries[..got as usize].chunk_by(|a, b| a & PRESENT == b & PRESENT) {
            let next = page + group.len() as u64;
            if group[0] & PRESENT != 0 {
                run(page * PAGE, next * PAGE);
            }
            page = next;
        }
    }
}

/// A dlopen is about to load objects.
pub fn loading() {
    LOOK.store(LOOKS, Ordering::Relaxed);
}

/// Reports objects loaded since this was last asked, if there may be any.
#[inline(always)]
pub fn report_new_objects(area: &Shared) {
    if LOOK.load(Ordering::Relaxed) != 0 && area.mode() != Mode::Mute {
        LOOK.fetch_sub(1, Ordering::Relaxed);
        report_objects();
    }
}

/// Reports the executable and the shared objects that are loaded and were not reported
/// before: a follower, too, has to know which of their pages were used.
pub fn report_objects() {
    if report::active().is_some() {
        // SAFETY: `object` has the type of a callback and takes no argument.
        unsafe { libc::dl_iterate_phdr(Some(object), core::ptr::null_mut()) };
    }
}

unsafe extern "C" fn object(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _argument: *mut c_void,
) -> c_int {
    // SAFETY: the loader's description of an object, valid during the callback.
    let info = unsafe { &*info };
    // SAFETY: as above; the name is terminated.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    // SAFETY: as above.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let Some(area) = report::active() else {
        return 1;
    };
    let mut segments = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_filesz != 0)
        .map(|header| {
            let low = header.p_vaddr % PAGE;
            Mapping {
                addr: (info.dlpi_addr.wrapping_add(header.p_vaddr)).wrapping_sub(low),
                len: (header.p_filesz + low).next_multiple_of(PAGE),
                offset: header.p_offset.saturating_sub(low),
                inst: 0,
            }
        })
        .peekable();
    let Some(first) = segments.peek().map(|segment| segment.addr) else {
        return 0;
    };
    let known = with_lock(|entries| {
        let used = TABLE.end.load(Ordering::Relaxed);
        entries[..used]
            .iter()
            .any(|entry| entry.len != 0 && entry.addr == first)
    });
    if known != Some(false) {
        return 0;
    }
    let mut buffer = paths::Buffer::new();
    let path = if name.is_empty() {
        sys::readlink(c"/proc/self/exe", &mut buffer.0)
    } else if name.to_bytes().contains(&b'/') {
        // SAFETY: terminated, as above.
        unsafe { paths::absolute(libc::AT_FDCWD, name.as_ptr(), &mut buffer) }
    } else {
        // The kernel's own object, which is no file.
        None
    };
    let Some(path) = path else { return 0 };
    let inst = area.next_instance();
    let start = report::stamp();
    let open = encode::open(inst, OPEN_FOUND, start, 0, path.len());
    if !report::emit(area, |writer| writer.push_path(area, &open, path)) {
        return 0;
    }
    for segment in segments {
        announce(area, Mapping { inst, ..segment }, LOADED, (start, 0));
    }
    0
}
