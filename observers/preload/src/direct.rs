//! Reads whose system call is made here and not in the C library.
//!
//! A processor returns from the kernel without its predicted return addresses, and mispredicts each following return: one more of them,
//! from the C library to here, is half of the cost of watching a read. In a process with one thread the C library's function only makes the
//! call, so nothing is lost.
//!
//! This does not apply if the function after ours is another library's, nor after a thread was cancelled: cancellation takes effect in
//! these calls.

use core::ffi::{c_int, c_long};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{real, sys, threads};

/// True if the functions are the C library's own, and no thread was cancelled.
static ITS_OWN: AtomicBool = AtomicBool::new(false);

/// Determines at the program's start whether calls may be made without the C library.
pub fn ready() {
    // Only the C library defines it.
    let library = object_of(real::of::gnu_get_libc_version.address());
    let functions = [real::of::read, real::of::pread, real::of::pread64];
    let its_own = functions
        .iter()
        .all(|function| library.contains(&function.address()));
    ITS_OWN.store(its_own, Ordering::Relaxed);
}

/// From now on the C library makes all calls. In some versions `__libc_single_threaded` does not show that a process's only thread
/// cancelled itself.
pub fn end() {
    ITS_OWN.store(false, Ordering::Relaxed);
}

/// True if [`call`] may make a call.
#[inline(always)]
pub fn is_possible() -> bool {
    ITS_OWN.load(Ordering::Relaxed) && threads::is_alone()
}

/// The system call, with the result and errno of the C library's function.
///
/// # Safety
/// As for the function.
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

/// The addresses of the object that contains a function, by a function of glibc (since 2.35); empty without it. `dladdr` would also search
/// a name, which takes 20 µs.
fn object_of(function: usize) -> Range<usize> {
    type FindObject = unsafe extern "C" fn(usize, *mut [usize; 16]) -> c_int;
    let Some(find) = real::of::_dl_find_object.found() else {
        return 0..0;
    };
    // Flags, the start, the end, and more: at most twelve words.
    let mut found = [0; 16];
    // SAFETY: the C library's function, which takes any address and a structure to be filled.
    let result = unsafe {
        let find = core::mem::transmute::<usize, FindObject>(find);
        find(function, &mut found)
    };
    if result == 0 {
        found[1]..found[2]
    } else {
        0..0
    }
}
