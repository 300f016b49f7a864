//! Another root directory: where this library is not to be found, no loader is asked for it.
//!
//! A loader says on the program's own standard error what it cannot preload, for each program started there. So the
//! library's path is taken out of `LD_PRELOAD`, where foreread has put it, and the user's own are left.

use core::ffi::{CStr, c_char, c_int};

use crate::{exec, report, sys};

const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// How this library's path ends.
const LIBRARY: &[u8] = b"/libforeread_preload.so";

/// `call` changes the root directory.
pub fn changing(call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    // A child that only borrows the memory would change its parent's environment.
    if result == 0 && report::area().is_some() && report::at_home() {
        withdraw();
    }
    result
}

/// Take the library out of the environment if it is not there under this root.
fn withdraw() {
    let mut at = exec::own_environment();
    // SAFETY: the C library's list of strings, terminated by a null. The one changed holds a path that foreread has put
    // there, so it lies where the kernel or the C library has copied it, and grows shorter.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let string = CStr::from_ptr(*at);
            if let Some(value) = string.to_bytes().strip_prefix(VARIABLE) {
                for path in value.split(|byte| matches!(byte, b':' | b' ')) {
                    if path.ends_with(LIBRARY) && !exists(path) {
                        let from = path.as_ptr().cast::<c_char>().cast_mut();
                        // And what separates it from the next, if there is one.
                        let next = from.add(path.len());
                        let next = next.add(usize::from(*next != 0));
                        let rest = CStr::from_ptr(next).to_bytes_with_nul().len();
                        core::ptr::copy(next, from, rest);
                        return;
                    }
                }
            }
            at = at.add(1);
        }
    }
}

/// Whether there is a file of this name that can be opened, or that cannot for another reason than its absence.
fn exists(path: &[u8]) -> bool {
    let mut terminated = [0; libc::PATH_MAX as usize];
    let Some(room) = terminated.get_mut(..path.len()) else {
        return true;
    };
    room.copy_from_slice(path);
    CStr::from_bytes_until_nul(&terminated).is_ok_and(|path| {
        let fd = sys::open(path, libc::O_PATH);
        if let Ok(fd) = c_int::try_from(fd)
            && fd >= 0
        {
            sys::close(fd);
        }
        fd != -(libc::ENOENT as isize) && fd != -(libc::ENOTDIR as isize)
    })
}
