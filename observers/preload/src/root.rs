//! Changes of the root directory, mounts, user, access or resource limits: if this library cannot be loaded any more, loaders are no longer
//! asked for it.
//!
//! A loader prints an error on the program's own standard error for each library that it cannot preload, in each program started there. So
//! the library's path is removed from `LD_PRELOAD`, where foreread has put it, and the user's own entries stay. The variable is changed
//! where the kernel put it at the program's start, and where the program has it now: many programs copy their environment and overwrite the
//! original with their title. That copy, and any other passed to a program from then on, is read and changed by the kernel, which knows
//! which addresses are valid. Under a filter the kernel cannot be asked, and the copy stays unchanged.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::area::area;
use crate::memory::MEMORY;
use crate::process;
use crate::symbols;
use crate::sys::{self, Allowed};

const VARIABLE: &[u8] = b"LD_PRELOAD=";
/// The end of this library's path.
const LIBRARY: &[u8] = b"/libforeread_preload.so";
/// From here on the path is different for each loader.
const BY_LOADER: &[u8] = b"/$LIB/";

/// The variable where the kernel put it; null if there is none.
static GIVEN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Length of this library's path in the variable; 0 until it is known.
static LEN: AtomicUsize = AtomicUsize::new(0);

/// True if the library was removed from the environment.
static WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// The longest value of the variable that is changed in the program's own copy of its environment, with its name.
const ROOM: usize = 1024;
/// Descriptors that a process may have, below which its children do without the library: the standard ones, and some that it may have
/// inherited.
const DESCRIPTORS: u64 = 8;
/// Number of variables of that copy that are examined, and of those examined at once.
const MOST: usize = 4096;
const AT_A_TIME: usize = 32;

/// A list of strings, terminated by a null.
pub type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// Notes, at the program's start, the place of the variable, and this library's path in it.
pub fn note() {
    let Some(value) = variable(VARIABLE) else {
        return;
    };
    let given = value.as_ptr().wrapping_sub(VARIABLE.len());
    GIVEN.store(given.cast_mut(), Ordering::Relaxed);
    let Some(path) = paths(value.to_bytes()).find(|path| path.ends_with(LIBRARY)) else {
        return;
    };
    // SAFETY: no thread reads it before its length is stored, and none writes it later.
    if let Some(room) = unsafe { (*MEMORY.library.0.get()).get_mut(..path.len()) } {
        room.copy_from_slice(path);
        LEN.store(path.len(), Ordering::Release);
    }
}

/// The original value of the variable that begins like this (`NAME=`). Only for the program's start, before it can change its environment.
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

/// `call` removes access to files from this process and its children (Landlock). The remaining access could be tested only by opening the
/// library, which needs a descriptor.
pub fn restricting<T: Copy + Into<i64>>(call: impl FnOnce() -> T) -> T {
    let result = call();
    if result.into() == 0 {
        leave_out();
    }
    result
}

/// `call` limits a resource of a process (0 for this one) to the value at `limits`, the soft limit first. A program with limited memory
/// needs all of it itself. With few descriptors a loader might be unable to open the library, and would print an error.
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

/// True if a process id given to a call is this process's; 0 means this process.
fn is_own(process: c_int) -> bool {
    let own = || Allowed::now().map(sys::getpid);
    process == 0 || u32::try_from(process).ok() == own()
}

/// Removes the library from the environment, so that no loader is asked for it any more.
pub fn leave_out() {
    if has_own_environment() {
        withdraw(|_| false);
    }
}

/// True if the library is in this process's environment, as far as is known, and the environment is its own: a child that borrows the
/// memory would change its parent's. A process that reports nothing, as in another PID namespace, may still start programs.
fn has_own_environment() -> bool {
    is_noted() && (process::at_home() || area().is_none())
}

/// This library's path in the environment; empty if it is unknown.
fn library() -> &'static [u8] {
    // SAFETY: the first `LEN` bytes are not written any more.
    let all = unsafe { &*MEMORY.library.0.get() };
    all.get(..LEN.load(Ordering::Acquire)).unwrap_or(&[])
}

/// Removes the library from the environment, unless `stays` accepts its path there.
fn withdraw(stays: impl Fn(&[u8]) -> bool) {
    let path = library();
    if path.is_empty() || stays(path) {
        return;
    }
    let given = GIVEN.load(Ordering::Relaxed);
    // SAFETY: a string that the kernel has placed above the stack, in memory that stays mapped and writable. If the program has changed it,
    // it is still terminated within the original length. Removing a part makes it shorter.
    unsafe {
        let len = CStr::from_ptr(given).count_bytes();
        let value = core::slice::from_raw_parts_mut(given.cast::<u8>(), len + 1);
        take_out(value, path);
    }
    WITHDRAWN.store(true, Ordering::Relaxed);
    // SAFETY: the C library's variable. It may point anywhere, and only the kernel reads what is there.
    handing_on(unsafe { environ }.cast());
}

/// The program passes this list of variables, or none, to another program. Shells keep their environment in memory of their own, and build
/// such a list from it.
pub fn handing_on(list: Strings) {
    if WITHDRAWN.load(Ordering::Relaxed)
        && let Some(allowed) = Allowed::now()
    {
        take_out_of_list(allowed, list as usize, library());
    }
}

/// Removes a path and its separator from the terminated variable, which begins with its name. Returns its new length including the end;
/// `None` if the path is not in it.
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

/// True if the library was in the environment at the program's start, and the kernel may be asked.
fn is_noted() -> bool {
    LEN.load(Ordering::Relaxed) != 0
}

/// Removes a path from the variable in a list of variables, such as the program's present environment.
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

/// True if the loader can open and map the library, as far as the kernel may be asked.
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
