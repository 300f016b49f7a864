//! Starts a program as if this process's caller had started it.
//!
//! Invariant: the program is given the signal mask, the dispositions of signals, the standard descriptors and, but
//! for the variables named, the environment that this process was given. The Rust runtime changes some of these before
//! `main`; they are looked up before it runs.
//!
//! Data flow: [`note`] at the process's start → [`keep_children`] → [`spawn`], or [`replace`] where nothing can be watched.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::checked;
use crate::signals::Signals;

/// Names the process that inherited sockets are meant for (sd_listen_fds(3)). A program started in the place of this process is that
/// process.
const LISTENER: &[u8] = b"LISTEN_PID=";
/// Digits of a process number, at most.
const DIGITS: usize = 10;
/// Runs files that the kernel cannot run.
const SHELL: &CStr = c"/bin/sh";
/// The search path where none is set, as the C library has it.
const PATH: &str = "/bin:/usr/bin";

/// True if this process was started with `SIGPIPE` ignored: the runtime ignores it in any case.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// True if it was started with `SIGCHLD` ignored: the status of its children would be lost.
static CHILD_IGNORED: AtomicBool = AtomicBool::new(false);

/// The signals that the C library reserves: for `pthread_cancel` and for `setuid` in all threads. It handles them once a process has
/// threads, and `posix_spawn` then starts programs with them ignored.
const RESERVED: [c_int; 2] = [32, 33];
/// Whether this process was started with each of them ignored.
static RESERVED_IGNORED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Standard descriptors that were closed at the start, one bit each: the runtime opens them.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// Notes the settings that the Rust runtime and the C library are about to change.
extern "C" fn note() {
    PIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    CHILD_IGNORED.store(is_ignored(libc::SIGCHLD), Ordering::Relaxed);
    for (ignored, signal) in RESERVED_IGNORED.iter().zip(RESERVED) {
        ignored.store(is_ignored(signal), Ordering::Relaxed);
    }
    let closed = (0..3_u8).fold(0, |closed, fd| {
        // SAFETY: no memory is involved.
        let flags = unsafe { libc::fcntl(c_int::from(fd), libc::F_GETFD) };
        closed | u8::from(flags < 0) << fd
    });
    CLOSED.store(closed, Ordering::Relaxed);
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = Action::default();
    // SAFETY: asks for the disposition alone, into a structure that is large enough.
    unsafe { disposition(signal, ptr::null(), &mut action) };
    action[0] == libc::SIG_IGN
}

/// A disposition in the kernel's layout: the action comes first, and zeros suffice for the rest.
type Action = [usize; 6];

/// `sigaction`, including signals that the C library reserves and hides.
///
/// # Safety
///
/// As `sigaction`'s.
unsafe fn disposition(signal: c_int, new: *const Action, old: *mut Action) {
    // SAFETY: the kernel's structure has at most three words and a mask of 64 bits, here as there.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, size_of::<u64>()) };
}

/// From now on the status of an ended child is kept until it is reaped, and its stops are reported, even if this process was started with
/// `SIGCHLD` ignored.
pub fn keep_children() {
    if CHILD_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: the default disposition runs no code of ours.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Starts `command`, found as `execvp` finds it, with `variables` added to or replaced in the
/// environment, as long as the kernel takes that much. Returns its process number; the caller is to reap it.
///
/// # Errors
///
/// The system's error if the program cannot be found or started, or `EINVAL` for a word with a zero byte.
pub fn spawn(
    command: &[OsString],
    variables: &[(&str, OsString)],
    signals: &Signals,
) -> io::Result<u32> {
    let words: Vec<CString> = command
        .iter()
        .map(|word| terminated(word.as_bytes().to_vec()))
        .collect::<io::Result<_>>()?;
    let program = words
        .first()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
    let own = assignments(variables)?;
    let mut environment = environment(variables, &own);
    let mut listener = listener(&mut environment);
    let attributes = Attributes::new(signals)?;
    let actions = Actions::new()?;
    let mut start = |program: &CStr, words: &[&CStr]| {
        let words: Vec<_> = pointers(words.iter().copied());
        if CHILD_IGNORED.load(Ordering::Relaxed) || listener.is_some() {
            let number = listener.as_deref_mut();
            let number = number.and_then(|variable| variable.get_mut(LISTENER.len()..));
            return fork(program, &words, &environment, number, signals);
        }
        let mut pid = 0;
        // SAFETY: the strings and both lists of them are terminated and outlive the call, as do
        // attributes and actions, which are initialised.
        let error = unsafe {
            libc::posix_spawnp(
                &mut pid,
                program.as_ptr(),
                actions.0.as_ptr(),
                attributes.0.as_ptr(),
                words.as_ptr(),
                environment.as_ptr(),
            )
        };
        if error == 0 {
            Ok(pid.unsigned_abs())
        } else {
            Err(io::Error::from_raw_os_error(error))
        }
    };
    let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    match start(program, &words) {
        // The variables are one too many where arguments and environment fill the kernel's limit.
        Err(error) if is_too_long(&error) && !variables.is_empty() => spawn(command, &[], signals),
        // A script without a first line that names its interpreter.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let file = terminated(found(&command[0]).into_os_string().into_vec())?;
            let script = [&[SHELL, &file], &words[1..]].concat();
            start(SHELL, &script)
        }
        result => result,
    }
}

/// Starts a program that is to find `SIGCHLD` ignored, or its own number in the environment, which `posix_spawn` has no means for. Both
/// lists end with a null; `number` is where the environment has room for it.
fn fork(
    program: &CStr,
    words: &[*mut c_char],
    environment: &[*mut c_char],
    number: Option<&mut [u8]>,
    signals: &Signals,
) -> io::Result<u32> {
    let failed = Shared::new()?;
    // The same as `fork`, but this thread waits until the program has been started, or could not be: there may be no descriptors left for a
    // pipe.
    let flags = libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child, on a copy of this process's memory, makes async-signal-safe calls only, on strings and lists
    // that are terminated, and never returns.
    let pid = unsafe {
        let pid = checked(libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0))?;
        if pid == 0 {
            if let Some(number) = number {
                // Digits are formatted in place: nothing is allocated. There is room for them.
                let _ = write!(&mut *number, "{}", std::process::id());
            }
            turn_into(program, words, environment, signals.before());
            failed
                .get()
                .store(*libc::__errno_location(), Ordering::Relaxed);
            libc::_exit(127)
        }
        pid as libc::pid_t
    };
    match failed.get().load(Ordering::Relaxed) {
        0 => Ok(pid.unsigned_abs()),
        errno => {
            // SAFETY: our own child, not reaped before; no memory is involved.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// If inherited sockets are intended for this process, replaces the variable that says so by one with room for the program's process id,
/// which only the program's own process knows.
fn listener(environment: &mut [*mut c_char]) -> Option<Vec<u8>> {
    let own = [LISTENER, std::process::id().to_string().as_bytes()].concat();
    let is_own = |string: &&mut *mut c_char| {
        // SAFETY: a list of terminated strings that ends with a null.
        !string.is_null() && unsafe { CStr::from_ptr(**string) }.to_bytes() == own
    };
    let place = environment.iter_mut().find(is_own)?;
    let mut variable = LISTENER.to_vec();
    variable.resize(LISTENER.len() + DIGITS + 1, 0);
    *place = variable.as_mut_ptr().cast();
    Some(variable)
}

/// Replaces this process, which must have no children left, by `program`, found as `execvp` finds it. `words` are its arguments, its name
/// first. `variables` are added to the environment or replaced, as long as the kernel takes that much. `signals` are those that this process
/// blocks; the program gets its original mask.
///
/// Returns only an error: the system's if the program cannot be found or started, or `EINVAL` for a word with a zero byte.
pub fn replace(
    program: &Path,
    words: &[OsString],
    variables: &[(&str, OsString)],
    signals: Option<&Signals>,
) -> io::Error {
    let own = match assignments(variables) {
        Ok(own) => own,
        Err(error) => return error,
    };
    let words = words.iter().map(OsString::as_os_str);
    let strings = std::iter::once(program.as_os_str()).chain(words);
    let strings = strings.map(|string| terminated(string.as_bytes().to_vec()));
    let strings: Vec<CString> = match strings.collect() {
        Ok(strings) => strings,
        Err(error) => return error,
    };
    let list = pointers(strings[1..].iter().map(CString::as_c_str));
    let mask = signals.map_or(ptr::null(), |signals| ptr::from_ref(signals.before()));
    // SAFETY: the strings and both lists of them are terminated.
    unsafe { turn_into(&strings[0], &list, &environment(variables, &own), mask) };
    let error = io::Error::last_os_error();
    if is_too_long(&error) && !own.is_empty() {
        // SAFETY: as above.
        unsafe { turn_into(&strings[0], &list, &environment(&[], &[]), mask) };
        return io::Error::last_os_error();
    }
    error
}

/// True if arguments and environment are longer than the kernel takes.
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::E2BIG)
}

/// Becomes a program that finds everything as this process found it; comes back, with `errno` set, if that fails.
/// Allocates nothing and takes no lock.
///
/// # Safety
///
/// `words` and `environment` end with a null and hold terminated strings; `mask` is null or a set of signals.
unsafe fn turn_into(
    program: &CStr,
    words: &[*mut c_char],
    environment: &[*mut c_char],
    mask: *const libc::sigset_t,
) {
    // SAFETY: async-signal-safe calls only, with dispositions that run no code of ours; the rest is the caller's.
    unsafe {
        let pipe = PIPE_IGNORED.load(Ordering::Relaxed);
        libc::signal(
            libc::SIGPIPE,
            if pipe { libc::SIG_IGN } else { libc::SIG_DFL },
        );
        if CHILD_IGNORED.load(Ordering::Relaxed) {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        for (was_ignored, signal) in RESERVED_IGNORED.iter().zip(RESERVED) {
            if was_ignored.load(Ordering::Relaxed) {
                let mut ignored = Action::default();
                ignored[0] = libc::SIG_IGN;
                disposition(signal, &ignored, ptr::null_mut());
            }
        }
        for fd in opened() {
            libc::close(fd);
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut());
        libc::execvpe(
            program.as_ptr(),
            words.as_ptr().cast(),
            environment.as_ptr().cast(),
        );
    }
}

/// A number that a child has in common with this process.
struct Shared(NonNull<AtomicI32>);

impl Shared {
    fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let size = size_of::<AtomicI32>();
        // SAFETY: a fresh page at an address of the kernel's choosing, zeroed, known to nobody else.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), size, access, MapFlags::SHARED)? };
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self(page))
    }

    fn get(&self) -> &AtomicI32 {
        // SAFETY: the page lives as long as the value, and only an atomic on it is used.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; no reference outlives the value.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<AtomicI32>()) };
    }
}

/// The standard descriptors that the runtime opened: they were closed.
fn opened() -> impl Iterator<Item = c_int> {
    let closed = CLOSED.load(Ordering::Relaxed);
    (0..3).filter(move |fd| closed & 1 << fd != 0)
}

/// Variables as an environment holds them.
fn assignments(variables: &[(&str, OsString)]) -> io::Result<Vec<CString>> {
    let assigned = |(name, value): &(&str, OsString)| {
        terminated([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    variables.iter().map(assigned).collect()
}

fn terminated(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A list of strings as the kernel takes them.
fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*mut c_char> {
    strings
        .map(|string| string.as_ptr().cast_mut())
        .chain([ptr::null_mut()])
        .collect()
}

/// This process's environment in its order, with variables replaced where they stand and added at
/// the end where they do not; `own` holds them as `NAME=value`.
fn environment(variables: &[(&str, OsString)], own: &[CString]) -> Vec<*mut c_char> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut given = Vec::new();
    // SAFETY: the C library's list, terminated by a null, of terminated strings. Nothing in this
    // process changes its environment.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            given.push(CStr::from_ptr(*at));
            at = at.add(1);
        }
    }
    let mut added: Vec<Option<&CStr>> = own.iter().map(|own| Some(own.as_c_str())).collect();
    let mut kept = Vec::with_capacity(given.len() + own.len());
    for string in given {
        let named = variables.iter().position(|(name, _)| {
            let rest = string.to_bytes().strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&b'='))
        });
        match named {
            Some(index) => kept.extend(added[index].take()),
            None => kept.push(string),
        }
    }
    kept.extend(added.into_iter().flatten());
    pointers(kept.into_iter())
}

/// The path of a command's file, as `execvp` searches for it.
fn found(name: &OsStr) -> PathBuf {
    if name.as_bytes().contains(&b'/') {
        return PathBuf::from(name);
    }
    let path = env::var_os("PATH").unwrap_or_else(|| PATH.into());
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
        .unwrap_or_else(|| PathBuf::from(name))
}

fn is_executable(path: &Path) -> bool {
    let access = rustix::fs::access(path, rustix::fs::Access::EXEC_OK);
    access.is_ok() && path.is_file()
}

/// The signal state of the program.
struct Attributes(Box<MaybeUninit<libc::posix_spawnattr_t>>);

impl Attributes {
    fn new(signals: &Signals) -> io::Result<Self> {
        let mut new = Self(Box::new(MaybeUninit::uninit()));
        let attributes = new.0.as_mut_ptr();
        let mut defaults = MaybeUninit::<libc::sigset_t>::uninit();
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        // SAFETY: both structures are initialised before anything else uses them; the mask was.
        unsafe {
            numbered(libc::posix_spawnattr_init(attributes))?;
            numbered(libc::posix_spawnattr_setsigmask(
                attributes,
                signals.before(),
            ))?;
            libc::sigemptyset(defaults.as_mut_ptr());
            if !PIPE_IGNORED.load(Ordering::Relaxed) {
                libc::sigaddset(defaults.as_mut_ptr(), libc::SIGPIPE);
            }
            for (was_ignored, signal) in RESERVED_IGNORED.iter().zip(RESERVED) {
                if !was_ignored.load(Ordering::Relaxed) {
                    // `sigaddset` refuses these signals. The set is an array of words, one bit per signal from the first one on.
                    *defaults.as_mut_ptr().cast::<u64>() |= 1 << (signal - 1);
                }
            }
            numbered(libc::posix_spawnattr_setsigdefault(
                attributes,
                defaults.as_ptr(),
            ))?;
            numbered(libc::posix_spawnattr_setflags(attributes, flags as i16))?;
        }
        Ok(new)
    }
}

/// Actions on descriptors at the start of a program: those opened by the runtime are closed again.
struct Actions(Box<MaybeUninit<libc::posix_spawn_file_actions_t>>);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut new = Self(Box::new(MaybeUninit::uninit()));
        let actions = new.0.as_mut_ptr();
        // SAFETY: initialised by the first call.
        unsafe { numbered(libc::posix_spawn_file_actions_init(actions))? };
        for fd in opened() {
            // SAFETY: initialised above.
            unsafe { numbered(libc::posix_spawn_file_actions_addclose(actions, fd))? };
        }
        Ok(new)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, or all that the failed initialisation left to free is
        // nothing; used no more. The attributes own no memory.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

/// Turns the result of a call that answers with an error number into an [`io::Result`].
fn numbered(error: c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
