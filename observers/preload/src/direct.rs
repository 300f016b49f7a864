//! Reads whose system call is made here and not by the C library.
//!
//! A processor comes back from the kernel without the return addresses it had foreseen, and guesses wrong at each return
//! that follows: one more of them, from the C library to here, is half of what watching a read costs. In a process of
//! one thread the C library's function does nothing but the call, and so nothing is missed.
//!
//! Not so where the function that comes after ours is another library's, and once somebody is cancelled: these calls are
//! where that takes effect.

use core::ffi::{CStr, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::{real, sys};

/// Where it says whether the process has one thread alone: the C library's word, once it is known to count.
static ALONE: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const NEVER).cast_mut());
static NEVER: AtomicU8 = AtomicU8::new(0);

/// The functions that are passed by.
const FUNCTIONS: [&CStr; 3] = [c"read", c"pread", c"pread64"];
/// One that nobody but the C library defines.
const OF_LIBRARY: &CStr = c"gnu_get_libc_version";

/// Finds out whether the C library may be passed by.
pub fn ready() {
    // SAFETY: a terminated name.
    let alone = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    let library = object_of(OF_LIBRARY);
    let all_its_own = || FUNCTIONS.iter().all(|name| object_of(name) == library);
    if !alone.is_null() && library.is_some() && all_its_own() {
        ALONE.store(alone.cast(), Ordering::Relaxed);
    }
}

/// From now on the C library makes all calls.
pub fn end() {
    ALONE.store((&raw const NEVER).cast_mut(), Ordering::Relaxed);
}

/// Whether a call may be made by [`call`].
#[inline(always)]
pub fn is_possible() -> bool {
    // SAFETY: a static, or the C library's `char`, which stays as long as the process.
    unsafe { (*ALONE.load(Ordering::Relaxed)).load(Ordering::Relaxed) != 0 }
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
    if result < 0 {
        real::set_errno(-result as i32);
        return -1;
    }
    result
}

/// Where the object begins that defines the next function of this name.
fn object_of(name: &CStr) -> Option<*mut c_void> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a terminated name; `found` is writable, and all zeros are valid.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        let known = function != ptr::null_mut() && libc::dladdr(function, found.as_mut_ptr()) != 0;
        known.then(|| found.assume_init().dli_fbase)
    }
}
