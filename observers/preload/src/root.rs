//! Another root directory, other mounts, another user, less access, less memory: where this library cannot be loaded any more, no loader
//! is asked for it.
//!
//! A loader says on the program's own standard error what it cannot preload, for each program started there. So the
//! library's path is taken out of `LD_PRELOAD`, where foreread has put it, and the user's own are left. The variable is
//! changed where the kernel has put it when the program began, and where the program has it now: many copy their environment,
//! and write their title over what the kernel has put there. That copy, and any other that is handed to a program from then on, is
//! looked at and changed by the kernel, which knows what is there; under a filter, where it cannot be asked, the copy stays as it is.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::area::area;
use crate::memory::MEMORY;
use crate::process;
use crate::symbols;
use crate::sys::{self, Allowed};

const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// How this library's path ends.
const LIBRARY: &[u8] = b"/libforeread_preload.so";
/// From here on each loader sees another path: to the library, or to one of its own kind.
const BY_LOADER: &[u8] = b"/$LIB/";

/// The variable, as the kernel has put it there; null if there is none.
static GIVEN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// How long this library's path in the variable is; 0 until that is known.
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Whether the library was taken out of the environment.
static WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// The longest value of the variable that is changed in the program's own copy of its environment, with its name.
const ROOM: usize = 1024;
/// Descriptors that a process may have, below which its children do without the library: the standard ones, and some that it may have
/// inherited.
const DESCRIPTORS: u64 = 8;
/// So many variables of that copy are looked at, and so many at a time.
const MOST: usize = 4096;
const AT_A_TIME: usize = 32;

/// A list of strings, terminated by a null.
pub type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// Notes where the variable is, when the program begins, and where it says that this library is.
pub fn note() {
    let Some(value) = variable(VARIABLE) else {
        return;
    };
    let given = value.as_ptr().wrapping_sub(VARIABLE.len());
    GIVEN.store(given.cast_mut(), Ordering::Relaxed);
    let Some(path) = paths(value.to_bytes()).find(|path| path.ends_with(LIBRARY)) else {
        return;
    };
    // SAFETY: nobody reads it before its length is told, and nobody else writes it.
    if let Some(room) = unsafe { (*MEMORY.library.0.get()).get_mut(..path.len()) } {
        room.copy_from_slice(path);
        LEN.store(path.len(), Ordering::Release);
    }
}

/// The value of the variable that begins so (`NAME=`), as the program was given it. Only while the program starts, before it can
/// change its environment.
pub fn variable(begins: &[u8]) -> Option<&'static CStr> {
    // SAFETY: the C library's list of terminated strings, which a null ends.
    unsafe {
        let mut at = environ;
        while let Some(&string) = at.as_ref().filter(|string| !string.is_null()) {
            if symbols::begins(string, begins) {
                return Some(CStr::from_ptr(string.add(begins.len())));
            }
            at = at.add(1);
        }
    }
    None
}

/// The paths in the variable's value.
fn paths(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| matches!(byte, b':' | b' '))
}

/// `call` changes the root directory, the mounts or the user.
pub fn changing<T: Copy + Into<i64>>(call: impl FnOnce() -> T) -> T {
    let result = call();
    if result.into() == 0 && has_own_environment() {
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

/// `call` limits a resource of a process, 0 for this one, to what `limits` points to, the soft limit first. Of memory that is limited
/// nothing is taken for the library; where hardly any descriptor is left, a loader might not be able to open it, and would say so.
pub fn limiting<T: Copy + Into<i64>>(
    process: c_int,
    resource: c_int,
    limits: *const u64,
    call: impl FnOnce() -> T,
) -> T {
    let result = call();
    if result.into() != 0 || !is_own(process) {
        return result;
    }
    // SAFETY: null, or two words that the kernel has just read.
    let soft = unsafe { limits.as_ref() }.copied().unwrap_or(u64::MAX);
    let is_scarce = match resource as u32 {
        libc::RLIMIT_AS | libc::RLIMIT_DATA => soft != u64::MAX,
        libc::RLIMIT_NOFILE => soft < DESCRIPTORS,
        _ => false,
    };
    if is_scarce {
        leave_out();
    }
    result
}

/// Whether a number that a call was given for a process stands for this one.
fn is_own(process: c_int) -> bool {
    let own = || Allowed::now().map(sys::getpid);
    process == 0 || u32::try_from(process).ok() == own()
}

/// No loader is asked for the library any more.
pub fn leave_out() {
    if has_own_environment() {
        withdraw(|_| false);
    }
}

/// Whether the library is in this process's environment, as far as is known, and the environment is its own: a child that only borrows the
/// memory would change its parent's. A process that reports nothing, as in another PID namespace, may start programs all the same.
fn has_own_environment() -> bool {
    is_noted() && (process::at_home() || area().is_none())
}

/// This library's path, as the environment has it; empty until it is known.
fn library() -> &'static [u8] {
    // SAFETY: as long as it is told to be, it is written no more.
    let all = unsafe { &*MEMORY.library.0.get() };
    all.get(..LEN.load(Ordering::Acquire)).unwrap_or(&[])
}

/// Takes the library out of the environment unless it `stays`, by its path there.
fn withdraw(stays: impl Fn(&[u8]) -> bool) {
    let path = library();
    if path.is_empty() || stays(path) {
        return;
    }
    let given = GIVEN.load(Ordering::Relaxed);
    // SAFETY: a string that the kernel has put above the stack, where memory stays mapped and writable. Whoever changes
    // what is there leaves a terminated string, which the length of what the kernel has put there bounds; and a string of
    // which some part is taken out grows shorter.
    unsafe {
        let len = CStr::from_ptr(given).count_bytes();
        let value = core::slice::from_raw_parts_mut(given.cast::<u8>(), len + 1);
        take_out(value, path);
    }
    WITHDRAWN.store(true, Ordering::Relaxed);
    // SAFETY: the C library's variable. What it points to is the program's, and is left to the kernel to read.
    handing_on(unsafe { environ }.cast());
}

/// The program hands this list of variables, or none, to another program. Shells keep their environment in memory of their own, and make
/// such a list of it.
pub fn handing_on(list: Strings) {
    if WITHDRAWN.load(Ordering::Relaxed)
        && let Some(allowed) = Allowed::now()
    {
        take_out_of_list(allowed, list as usize, library());
    }
}

/// Takes a path, and what separates it from the next, out of the variable, with its name and terminated; its length then
/// with its end. `None` if the path is not in it.
fn take_out(variable: &mut [u8], path: &[u8]) -> Option<usize> {
    let len = variable.iter().position(|&byte| byte == 0)?;
    let mut from = VARIABLE.len();
    let is_it = |one: &&[u8]| {
        let found = *one == path;
        from += if found { 0 } else { one.len() + 1 };
        found
    };
    paths(variable.get(..len)?.strip_prefix(VARIABLE)?).find(is_it)?;
    let next = (from + path.len() + 1).min(len);
    variable.copy_within(next..=len, from);
    Some(len + 1 - (next - from))
}

/// Whether the library was in the environment when the program began, and the kernel may be asked what becomes of it.
fn is_noted() -> bool {
    LEN.load(Ordering::Relaxed) != 0
}

/// The same in a list of variables, such as the one that the program has its environment in now.
fn take_out_of_list(allowed: Allowed, list: usize, path: &[u8]) {
    let mut seen = 0;
    while seen < MOST {
        let mut strings = [0_usize; AT_A_TIME];
        let got = sys::peek(allowed, list.wrapping_add(seen * 8), &mut strings) / 8;
        let some = strings.get(..got).unwrap_or(&[]);
        let ends = some.iter().position(|&string| string == 0);
        for &string in some.iter().take(ends.unwrap_or(got)) {
            let mut name = [0_u8; VARIABLE.len()];
            if sys::peek(allowed, string, &mut name) < name.len() || name != VARIABLE {
                continue;
            }
            let mut room = [0_u8; ROOM];
            let got = sys::peek(allowed, string, &mut room);
            if let Some(variable) = room.get_mut(..got)
                && let Some(len) = take_out(variable, path)
            {
                sys::poke(allowed, string, variable.get(..len).unwrap_or(&[]));
            }
            return;
        }
        if ends.is_some() || got < AT_A_TIME {
            return;
        }
        seen += got;
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
