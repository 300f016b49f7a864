//! Loaders that are asked to tell what they load (`ldd`, `LD_DEBUG`): they would tell of this library as well, so they are not given it.
//!
//! Invariant: the program's environment stays as it is. A new program gets a list of its own, on the stack of whoever starts it, in which
//! `LD_PRELOAD` is without this library. What the list holds the kernel reads, which knows what is there.

use core::ffi::{c_char, c_int};

use crate::exec::Strings;
use crate::root;
use crate::sys::{self, Allowed};

/// Variables by which the loader of the C library says, or lets others see, what it loads; the first has no need of a value.
const TOLD: [&[u8]; 5] = [
    b"LD_TRACE_LOA",
    b"LD_DEBUG=",
    b"LD_BIND_NOT=",
    b"LD_PROFILE=",
    b"LD_AUDIT=",
];
/// As much of a variable as tells whether it is one of these, and has a value.
const HEAD: usize = 13;
type Head = [u8; HEAD];

/// So many variables are looked at in one system call, and of so many the list is made anew.
const AT_A_TIME: usize = 32;
const MOST: usize = 512;

/// Becomes or starts a program: `call` with the program's own arguments, `other` with this environment in place of its own.
pub fn starting(
    environment: Strings,
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    match Allowed::now() {
        Some(allowed) if root::is_noted() && is_traced(allowed, environment) => {
            untold(allowed, environment, call, other)
        }
        _ => call(),
    }
}

/// The same with the environment that the process has.
pub fn starting_by_own(
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    starting(root::environment(), call, other)
}

/// Whether a loader with this environment tells of what it loads.
#[inline(never)]
fn is_traced(allowed: Allowed, environment: Strings) -> bool {
    let mut seen = 0;
    while seen < MOST {
        let mut strings = [0_usize; AT_A_TIME];
        let got = some_of(allowed, environment, seen, &mut strings);
        let mut heads = [[0; HEAD]; AT_A_TIME];
        let strings = strings.get(..got).unwrap_or(&[]);
        let count = sys::peek_heads(allowed, strings, &mut heads);
        if heads.iter().take(count).any(is_asked) {
            return true;
        }
        if got < AT_A_TIME {
            return false;
        }
        seen += got;
    }
    false
}

fn is_asked(head: &Head) -> bool {
    let is_it = |name: &&[u8]| {
        let value = head.get(name.len()).copied().unwrap_or(b'1');
        head.starts_with(name) && value != 0
    };
    TOLD.iter().any(is_it)
}

/// Some of the list's strings from one on, up to its end; how many.
fn some_of(allowed: Allowed, list: Strings, from: usize, into: &mut [usize]) -> usize {
    let at = (list as usize).wrapping_add(from * size_of::<usize>());
    let got = sys::peek(allowed, at, into) / size_of::<usize>();
    let ends = into.iter().take(got).position(|&string| string == 0);
    ends.unwrap_or(got)
}

/// Calls `other` with the environment less this library; or `call`, where that cannot be made.
#[inline(never)]
fn untold(
    allowed: Allowed,
    environment: Strings,
    call: impl FnOnce() -> c_int,
    other: impl FnOnce(Strings) -> c_int,
) -> c_int {
    let mut list = [0_usize; MOST];
    let mut variable = [0_u8; root::ROOM];
    let mut count = 0;
    while let Some(room) = list.get_mut(count..count + AT_A_TIME) {
        let got = some_of(allowed, environment, count, room);
        count += got;
        if got < AT_A_TIME {
            break;
        }
    }
    // The end of the list is a null that is there.
    let strings = list.get_mut(..count).filter(|strings| strings.len() < MOST);
    let changed = strings.and_then(|strings| {
        let mut all = strings.iter_mut();
        let own = all.find(|string| root::is_preload(allowed, **string))?;
        root::without_library(allowed, *own, &mut variable)?;
        *own = variable.as_ptr() as usize;
        Some(())
    });
    match changed {
        Some(()) => other(list.as_ptr().cast::<*const c_char>()),
        None => call(),
    }
}
