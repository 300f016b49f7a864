//! Loaders that are asked to tell what they load (`ldd`, `LD_DEBUG`): they would tell of this library as well, so they are not given it.
//!
//! Only the environment that the C library has is looked at (`environ`), as `getenv` does: no system call is made, which a process under
//! a filter might be killed for, and no list is believed that the kernel has not checked. Most programs start others with that
//! environment, shells too.
//!
//! Invariant: the program's environment stays as it is. A new program gets a list of its own, on the stack of whoever starts it, in which
//! `LD_PRELOAD` is without this library.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use crate::exec::Strings;
use crate::root;

/// Variables by which the loader of the C library says, or lets others see, what it loads; the first has no need of a value.
const TOLD: [&[u8]; 5] = [
    b"LD_TRACE_LOADED_OBJECTS=",
    b"LD_DEBUG=",
    b"LD_BIND_NOT=",
    b"LD_PROFILE=",
    b"LD_AUDIT=",
];

/// Variables of an environment that is made anew, at most.
const MOST: usize = 512;

/// Becomes or starts a program: `call` with the program's own arguments, `other` with this environment in place of its own.
pub fn starting(
    environment: Strings,
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    if root::is_noted() && ptr::eq(environment, root::environment()) && is_traced(environment) {
        untold(environment, call, other)
    } else {
        call()
    }
}

/// The same with the environment that the process has.
pub fn starting_by_own(
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    starting(root::environment(), call, other)
}

/// The variables of the C library's list.
fn variables(environment: Strings) -> impl Iterator<Item = *const c_char> {
    // SAFETY: the C library's own list, terminated by a null.
    let at = move |place| unsafe { environment.wrapping_add(place).read() };
    let count = if environment.is_null() { 0 } else { usize::MAX };
    (0..count).map(at).take_while(|string| !string.is_null())
}

/// Whether a loader with this environment tells of what it loads.
fn is_traced(environment: Strings) -> bool {
    variables(environment).any(|string| {
        // SAFETY: a string of the C library's list, which is terminated.
        let variable = || unsafe { CStr::from_ptr(string) }.to_bytes();
        // SAFETY: as above; a terminated string has a first byte, and a second one if the first is not its end.
        let is_loaders = unsafe { *string == b'L' as c_char && *string.add(1) == b'D' as c_char };
        is_loaders
            && TOLD.iter().enumerate().any(|(place, name)| {
                let value = variable().strip_prefix(*name);
                value.is_some_and(|value| place == 0 || !value.is_empty())
            })
    })
}

/// Calls `other` with the environment less this library; or `call`, where that cannot be made.
#[inline(never)]
fn untold(
    environment: Strings,
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    let mut list = [ptr::null::<c_char>(); MOST];
    let mut variable = [0_u8; root::ROOM];
    let mut is_changed = false;
    let mut room = list.iter_mut();
    for string in variables(environment) {
        // SAFETY: a string of the C library's list, which is terminated.
        let text = unsafe { CStr::from_ptr(string) };
        // The last place stays null.
        let Some(place) = room.next().filter(|_| room.len() > 0) else {
            return call();
        };
        *place = string;
        if !is_changed && root::without_library(text, &mut variable) {
            is_changed = true;
            *place = variable.as_ptr().cast();
        }
    }
    if is_changed {
        other(list.as_ptr())
    } else {
        call()
    }
}
