//! Reads by io_uring of programs that are linked with liburing.
//!
//! liburing makes its system calls itself, so its submitting functions are watched. They cannot be defined here like the C library's: a
//! program may load liburing later, with local names, and would find a function here with nothing behind it. So if the program is started
//! with liburing, the addresses through which its objects call these functions are changed. Objects that are loaded later, or linked with
//! liburing statically, call the original functions and are not seen.
//!
//! After a submission the entries are still in the ring, unchanged: the submitting thread fills in the next ones only afterwards. Results
//! arrive later, and not through this library. So a read's length is the requested one, up to the end of the file. The first read of a
//! submission gets the duration of the call, which waits only in `io_uring_submit_and_wait` and its variant with a timeout; the others get
//! none.
//!
//! Not seen: reads of registered files, reads at the cursor, and the calls `io_uring_enter` and `io_uring_setup`, whose rings only the
//! program knows. After a read at the cursor the kernel is asked for the offset at each later read of its descriptor.

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use foreread_ring::Shared;
use libc::{Elf64_Phdr, dl_phdr_info, iovec};

use crate::symbols::{self, Dynamic, Symbol};
use crate::sys::{self, Allowed};
use crate::{files, report, watch};

/// Part of the library's file name.
const LIBRARY: &[u8] = b"/liburing.so";

/// The functions that submit entries.
const NAMES: [&CStr; 4] = [
    c"io_uring_submit",
    c"io_uring_submit_and_get_events",
    c"io_uring_submit_and_wait",
    c"io_uring_submit_and_wait_timeout",
];
static REALS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// liburing's `struct io_uring`, the needed part, unchanged since 2.0.
#[repr(C)]
struct Ring {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const c_uint,
    entries: *const c_uint,
    kernels: [usize; 2],
    /// The index of each entry; null if the index is the place itself.
    array: *const u32,
    sqes: *const Entry,
    submitted: [c_uint; 2],
    sizes: [usize; 2],
    more: [u32; 4],
    completions: [usize; 11],
    flags: c_uint,
}
const _: () = assert!(offset_of!(Ring, flags) == 192);

/// `struct io_uring_sqe`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: c_int,
    offset: u64,
    address: u64,
    len: u32,
    more: [u32; 7],
    last: [u64; 1],
}
const _: () = assert!(size_of::<Entry>() == 64);

/// A thread of the kernel takes the entries.
const SETUP_SQPOLL: c_uint = 1 << 1;
/// Entries are twice as long.
const SETUP_SQE128: c_uint = 1 << 10;
/// The descriptor is the number of a registered file.
const FIXED_FILE: u8 = 1;
const READV: u8 = 1;
const READ_FIXED: u8 = 4;
const READ: u8 = 22;
/// Parts of a vectored read examined at once.
const PARTS: usize = 16;

/// A relocation, `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

const PLTRELSZ: i64 = 2;
const STRTAB: i64 = 5;
const SYMTAB: i64 = 6;
const RELA: i64 = 7;
const RELASZ: i64 = 8;
const JMPREL: i64 = 23;
/// The kinds of relocation that hold a function's address: `GLOB_DAT` and `JUMP_SLOT`.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 2] = [1025, 1026];

/// Installs the hooks, if the program is started with liburing.
pub fn hook(mut allowed: Allowed) {
    if !symbols::is_loaded(LIBRARY) {
        return;
    }
    for (real, name) in REALS.iter().zip(NAMES) {
        real.store(symbols::next(name), Ordering::Relaxed);
    }
    // SAFETY: called with each object, while the program starts.
    unsafe { libc::dl_iterate_phdr(Some(change), (&raw mut allowed).cast()) };
}

/// Changes the addresses in one object.
unsafe extern "C" fn change(object: *mut dl_phdr_info, _: usize, allowed: *mut c_void) -> c_int {
    // SAFETY: valid pointers from `hook` and the C library.
    let (object, allowed) = unsafe { (&*object, *allowed.cast::<Allowed>()) };
    let base = object.dlpi_addr as usize;
    // SAFETY: the object's own program headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let of = |kind: u32| headers.iter().find(|header| header.p_type == kind);
    if let Some(dynamic) = of(libc::PT_DYNAMIC) {
        let dynamic = (base + dynamic.p_vaddr as usize) as *const Dynamic;
        change_all(allowed, base, dynamic, of(libc::PT_GNU_RELRO));
    }
    0
}

fn change_all(
    allowed: Allowed,
    base: usize,
    dynamic: *const Dynamic,
    read_only: Option<&Elf64_Phdr>,
) {
    let value = |tag| symbols::value_of(dynamic, tag);
    let address = |tag| value(tag).map(|at| if at < base { at + base } else { at });
    let (Some(strings), Some(names)) = (address(STRTAB), address(SYMTAB)) else {
        return;
    };
    for (table, size) in [(RELA, RELASZ), (JMPREL, PLTRELSZ)] {
        let (Some(table), Some(size)) = (address(table), value(size)) else {
            continue;
        };
        // SAFETY: the object's own table, of the size that it states.
        let table = unsafe {
            core::slice::from_raw_parts(table as *const Relocation, size / size_of::<Relocation>())
        };
        for relocation in table {
            if !ADDRESSES.contains(&(relocation.info as u32)) {
                continue;
            }
            // SAFETY: a symbol of the object, whose name is in its table and terminated.
            let name = unsafe {
                let symbol = &*(names as *const Symbol).add((relocation.info >> 32) as usize);
                CStr::from_ptr((strings as *const libc::c_char).add(symbol.name as usize))
            };
            let hooked = NAMES.iter().position(|one| *one == name);
            if let Some(hooked) = hooked.filter(|&one| REALS[one].load(Ordering::Relaxed) != 0) {
                put(allowed, base, base + relocation.offset, hooked, read_only);
            }
        }
    }
}

/// Writes the address of the hook with this number to a place.
fn put(allowed: Allowed, base: usize, place: usize, number: usize, read_only: Option<&Elf64_Phdr>) {
    const PAGE: usize = 4096;
    let hooks = [
        submit as *const () as usize,
        submit_and_get_events as *const () as usize,
        submit_and_wait as *const () as usize,
        submit_and_wait_timeout as *const () as usize,
    ];
    let page = place & !(PAGE - 1);
    // The loader protects whole pages, from the page of the beginning to the last one that is complete.
    let is_read_only = read_only.is_some_and(|part| {
        let from = (base + part.p_vaddr as usize) & !(PAGE - 1);
        let to = (base + (part.p_vaddr + part.p_memsz) as usize) & !(PAGE - 1);
        (from..to).contains(&page)
    });
    let protect = |protection| {
        // SAFETY: a page of relocated data, whose protection is restored below.
        !is_read_only || unsafe { sys::protect(allowed, page, PAGE, protection) }
    };
    if protect(libc::PROT_READ | libc::PROT_WRITE) {
        // SAFETY: the place of a function's address, writable, and a function of its type.
        unsafe { (*(place as *const AtomicUsize)).store(hooks[number], Ordering::Release) };
        protect(libc::PROT_READ);
    }
}

/// The real function behind the hook with this number, of this type.
macro_rules! real {
    ($number:literal as $type:ty) => {
        // SAFETY: stored before the hook was installed, and of this type.
        unsafe { core::mem::transmute::<usize, $type>(REALS[$number].load(Ordering::Relaxed)) }
    };
}

unsafe extern "C" fn submit(ring: *const Ring) -> c_int {
    let real = real!(0 as unsafe extern "C" fn(*const Ring) -> c_int);
    // SAFETY: the program's own call.
    submitting(ring, || unsafe { real(ring) })
}

unsafe extern "C" fn submit_and_get_events(ring: *const Ring) -> c_int {
    let real = real!(1 as unsafe extern "C" fn(*const Ring) -> c_int);
    // SAFETY: the program's own call.
    submitting(ring, || unsafe { real(ring) })
}

unsafe extern "C" fn submit_and_wait(ring: *const Ring, count: c_uint) -> c_int {
    let real = real!(2 as unsafe extern "C" fn(*const Ring, c_uint) -> c_int);
    // SAFETY: the program's own call.
    submitting(ring, || unsafe { real(ring, count) })
}

unsafe extern "C" fn submit_and_wait_timeout(
    ring: *const Ring,
    first: *mut c_void,
    count: c_uint,
    time: *const c_void,
    signals: *const c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(
        *const Ring,
        *mut c_void,
        c_uint,
        *const c_void,
        *const c_void,
    ) -> c_int;
    let real = real!(3 as Function);
    // SAFETY: the program's own call.
    submitting(ring, || unsafe { real(ring, first, count, time, signals) })
}

/// A call that submits entries of a ring, and returns their number.
fn submitting(ring: *const Ring, call: impl FnOnce() -> c_int) -> c_int {
    let Some(area) = report::active() else {
        report::settle();
        return call();
    };
    let start = report::stamp();
    let count = call();
    if count > 0 {
        // SAFETY: a ring that liburing has just submitted from.
        submitted(area, unsafe { &*ring }, count as u32, start);
    }
    count
}

/// The last `count` entries were submitted by a call that began at `start`.
fn submitted(area: &Shared, ring: &Ring, count: u32, start: u64) {
    let polled = ring.flags & SETUP_SQPOLL != 0;
    let end = if polled { ring.tail } else { ring.head };
    // SAFETY: the ring's own words, mapped as long as the ring exists.
    let (end, mask) = unsafe { ((*end).load(Ordering::Acquire), *ring.mask) };
    let shift = u32::from(ring.flags & SETUP_SQE128 != 0);
    // The thread waits once for all reads, so only the first one gets the call's duration.
    let mut times = Some((start, report::stamp()));
    let count = count.min(mask + 1);
    for number in 0..count {
        let place = (end.wrapping_sub(count - number) & mask) as usize;
        // SAFETY: indices within the ring's own arrays. An index that the program has written is masked first.
        let entry = unsafe {
            let index = if ring.array.is_null() {
                place as u32
            } else {
                *ring.array.add(place) & mask
            };
            ring.sqes.add((index << shift) as usize).read_volatile()
        };
        if !matches!(entry.opcode, READ | READV | READ_FIXED) || entry.flags & FIXED_FILE != 0 {
            continue;
        }
        if entry.offset == u64::MAX {
            files::unowned(entry.fd);
        } else if let Some(len) = length(&entry) {
            let now = report::stamp();
            watch::asked(
                area,
                entry.fd,
                (entry.offset, len),
                times.take().unwrap_or((now, now)),
            );
        }
    }
}

/// Length requested by an entry, in bytes.
fn length(entry: &Entry) -> Option<u64> {
    if entry.opcode != READV {
        return Some(entry.len.into());
    }
    let allowed = Allowed::now()?;
    let mut sum = 0_u64;
    let mut parts = [iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }; PARTS];
    let mut at = 0;
    while at < entry.len as usize {
        let wanted = PARTS.min(entry.len as usize - at);
        let from = entry.address as usize + at * size_of::<iovec>();
        // A thread that has received the result may have freed this memory.
        if !sys::copy_parts(allowed, from, &mut parts[..wanted]) {
            return None;
        }
        sum += parts[..wanted]
            .iter()
            .map(|part| part.iov_len as u64)
            .sum::<u64>();
        at += wanted;
    }
    Some(sum)
}
