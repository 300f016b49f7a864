//! A word for each thread, stored under a `pthread` key.
//!
//! The C library's functions for keys are looked up like all others ([`mod@real`]), and this library is not linked to them. If it were, it
//! would need their version of glibc 2.34, and no program with an older glibc could start. An older glibc has these functions in
//! libpthread. A program that is started without libpthread is not observed.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::real::{self, real};

/// glibc stores the values of keys below this in its description of a thread, so that setting one allocates nothing.
const INSIDE: u32 = 32;

/// The key; [`NONE`] before it is created.
static KEY: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = u32::MAX;

/// Called with a thread's word when the thread ends, unless the word is null.
type Ends = unsafe extern "C" fn(*mut c_void);
type Create = unsafe extern "C" fn(*mut c_uint, Option<Ends>) -> c_int;
type Get = unsafe extern "C" fn(c_uint) -> *mut c_void;
type Set = unsafe extern "C" fn(c_uint, *const c_void) -> c_int;

/// Creates the key. True if threads have such a word now.
pub fn create(ends: Ends) -> bool {
    let needed = [
        real::of::pthread_key_create,
        real::of::pthread_getspecific,
        real::of::pthread_setspecific,
    ];
    if needed.iter().any(|function| function.found().is_none()) {
        return false;
    }
    let create = real!(pthread_key_create as Create);
    let mut key = NONE;
    // SAFETY: the C library's function; `key` is writable.
    let failed = unsafe { create(&mut key, Some(ends)) };
    if failed != 0 || key >= INSIDE {
        return false;
    }
    KEY.store(key, Ordering::Relaxed);
    true
}

/// This thread's word; null if it has none.
pub fn get() -> *mut c_void {
    let key = KEY.load(Ordering::Relaxed);
    if key == NONE {
        return ptr::null_mut();
    }
    let get = real!(pthread_getspecific as Get);
    // SAFETY: the C library's function, and this library's key.
    unsafe { get(key) }
}

/// Sets this thread's word. False if that fails.
pub fn set(word: *const c_void) -> bool {
    let key = KEY.load(Ordering::Relaxed);
    let set = real!(pthread_setspecific as Set);
    // SAFETY: as above. The word is one that the function given to [`create`] accepts.
    key != NONE && unsafe { set(key, word) == 0 }
}
