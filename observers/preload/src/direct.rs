//! Reads whose system call is made here and not by the C library.
//!
//! A processor comes back from the kernel without the return addresses it had foreseen, and guesses wrong at each return
//! that follows: one more of them, from the C library to here, is half of what watching a read costs. In a process of
//! one thread the C library's function does nothing but the call, and so nothing is missed.
//!
//! Not so where the function that comes after ours is another library's, and once somebody is cancelled: these calls are
//! where that takes effect.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::{real, sys, threads};

/// Whether the functions are the C library's own, and nobody was cancelled.
static ITS_OWN: AtomicBool = AtomicBool::new(false);
/// Whether that was asked.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The C library's function that tells which object an address is in (since glibc 2.35). `dladdr` would look for a name,
/// too, which takes 20 us.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The functions that are passed by.
const FUNCTIONS: [&CStr; 3] = [c"read", c"pread", c"pread64"];

/// Finds out, when the program begins, whether it can be found out if the C library may be passed by.
pub fn ready() {
    FIND_OBJECT.store(next(c"_dl_find_object"), Ordering::Relaxed);
}

/// Finds out whether the C library may be passed by: for a thread that makes many reads, it takes as long as some.
#[inline(always)]
pub fn ask() {
    if !ASKED.load(Ordering::Relaxed) {
        ask_once();
    }
}

#[cold]
fn ask_once() {
    ASKED.store(true, Ordering::Relaxed);
    if FIND_OBJECT.load(Ordering::Relaxed).is_null() {
        return;
    }
    // Nobody but the C library defines it.
    let library = object_of(next(c"gnu_get_libc_version"));
    let is_its_own = |name: &&CStr| library.contains(&(next(name) as usize));
    ITS_OWN.store(FUNCTIONS.iter().all(is_its_own), Ordering::Relaxed);
}

/// The next definition of a function after ours.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// From now on the C library makes all calls. Not every version's tells by `__libc_single_threaded` that a process's only
/// thread was cancelled, by itself.
pub fn end() {
    ASKED.store(true, Ordering::Relaxed);
    ITS_OWN.store(false, Ordering::Relaxed);
}

/// Whether a call may be made by [`call`].
#[inline(always)]
pub fn is_possible() -> bool {
    ITS_OWN.load(Ordering::Relaxed) && threads::is_alone()
}

/// The system call, with the result and errno of the C library's function.
///
/// # Safety
/// As of the function.
#[inline(always)]
pub unsafe fn call<const N: usize>(number: c_long, given: [usize; N]) -> isize {
    let mut args = [0; 6];
    args[..N].copy_from_slice(&given);
    // SAFETY: as the caller says.
    let result = unsafe { sys::call(number, args) };
    if result < 0 { failed(result) } else { result }
}

#[cold]
#[inline(never)]
fn failed(result: isize) -> isize {
    real::set_errno(-result as c_int);
    -1
}

/// The addresses of the object that a function is in.
fn object_of(function: *mut c_void) -> Range<usize> {
    type FindObject = unsafe extern "C" fn(*mut c_void, *mut [usize; 16]) -> c_int;
    // Flags, where it begins, where it ends, and more, twelve words at the most.
    let mut found = [0; 16];
    // SAFETY: the C library's function, which takes any address and a structure to be filled.
    let result = unsafe {
        let find = FIND_OBJECT.load(Ordering::Relaxed);
        let find = core::mem::transmute::<*mut c_void, FindObject>(find);
        find(function, &mut found)
    };
    if result == 0 {
        found[1]..found[2]
    } else {
        0..0
    }
}
