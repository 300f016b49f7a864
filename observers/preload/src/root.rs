//! Another root directory, other mounts, another user, less access: where this library cannot be loaded any more, no loader
//! is asked for it.
//!
//! A loader says on the program's own standard error what it cannot preload, for each program started there. So the
//! library's path is taken out of `LD_PRELOAD`, where foreread has put it, and the user's own are left. The variable is
//! changed where the kernel has put it when the program began; one that the program has moved is its own.

use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::report;
use crate::sys::{self, Allowed};

const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// How this library's path ends.
const LIBRARY: &[u8] = b"/libforeread_preload.so";
/// From here on each loader sees another path: to the library, or to one of its own kind.
const BY_LOADER: &[u8] = b"/$LIB/";

/// The variable, as the kernel has put it there; null if there is none.
static GIVEN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Notes where the variable is, when the program begins.
pub fn note() {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    // SAFETY: the C library's list of strings, terminated by a null, before the program can change it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if CStr::from_ptr(*at).to_bytes().starts_with(VARIABLE) {
                return GIVEN.store(*at, Ordering::Relaxed);
            }
            at = at.add(1);
        }
    }
}

/// `call` changes the root directory, the mounts or the user.
pub fn changing<T: Copy + Into<i64>>(call: impl FnOnce() -> T) -> T {
    let result = call();
    // A child that only borrows the memory would change its parent's environment.
    if result.into() == 0 && report::area().is_some() && report::at_home() {
        withdraw(is_loadable);
    }
    result
}

/// `call` takes access to files away from this process and its children (Landlock). What is left could be seen only by
/// opening the library, for which a descriptor would be needed.
pub fn restricting<T: Copy + Into<i64>>(call: impl FnOnce() -> T) -> T {
    let result = call();
    if result.into() == 0 {
        leave_out();
    }
    result
}

/// No loader is asked for the library any more.
pub fn leave_out() {
    if report::area().is_some() && report::at_home() {
        withdraw(|_| false);
    }
}

/// Takes the library out of the environment unless it `stays`, by its path there.
fn withdraw(stays: impl Fn(&[u8]) -> bool) {
    let given = GIVEN.load(Ordering::Relaxed);
    if given.is_null() {
        return;
    }
    // SAFETY: a string that the kernel has put above the stack, where memory stays mapped and writable. Whoever changes
    // what is there leaves a terminated string, which the length of what the kernel has put there bounds.
    let Some(value) = unsafe { CStr::from_ptr(given) }
        .to_bytes()
        .strip_prefix(VARIABLE)
    else {
        return;
    };
    for path in value.split(|byte| matches!(byte, b':' | b' ')) {
        if !path.ends_with(LIBRARY) || stays(path) {
            continue;
        }
        let from = path.as_ptr().cast::<c_char>().cast_mut();
        // SAFETY: within the string, which grows shorter.
        unsafe {
            // And what separates it from the next, if there is one.
            let next = from.add(path.len());
            let next = next.add(usize::from(*next != 0));
            let rest = CStr::from_ptr(next).to_bytes_with_nul().len();
            ptr::copy(next, from, rest);
        }
        return;
    }
}

/// Whether the loader can open the library and run it, as far as the kernel may be asked.
fn is_loadable(path: &[u8]) -> bool {
    let by_loader = path
        .windows(BY_LOADER.len())
        .position(|part| part == BY_LOADER);
    let path = path.get(..by_loader.unwrap_or(path.len())).unwrap_or(path);
    let mut terminated = [0; 512];
    let Some(room) = terminated.get_mut(..path.len()) else {
        return true;
    };
    room.copy_from_slice(path);
    let Some(allowed) = Allowed::now() else {
        return false;
    };
    CStr::from_bytes_until_nul(&terminated).is_ok_and(|path| {
        sys::may_read(allowed, path) != Some(false) && sys::may_hold_programs(allowed, path)
    })
}
