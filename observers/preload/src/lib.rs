//! The preload observer: reports this program's reads and lookups to the supervising foreread.
//!
//! It is loaded through `LD_PRELOAD` and interposes the C library's file calls. Every hook makes the real call first, and then writes one
//! event into this thread's ring ([`report`]) if anything was read or found. Data flow one way, from the program to the supervisor. Only
//! the supervisor's wishes flow back: the mode, which can silence the library, and advice on the kernel's read-ahead for planned files
//! ([`files`]).
//!
//! Invariants:
//! - The program's results, errno, output and order of calls are its own. The real call comes first, with the program's arguments.
//!   Memory that they point to is not read before the kernel has accepted it. Before the call, a hook changes only the library's own memory
//!   and its ring, except that it withdraws the library's own advice on read-ahead, and removes this library, if it cannot be loaded any
//!   more, from an environment that is passed to another program ([`root`]).
//! - No hook allocates, waits for a lock, or looks up a function: all functions are found when the program starts ([`mod@real`]).
//! - After the start the library opens and closes no descriptor. Its system calls then need an [`sys::Allowed`], which does not exist while
//!   the process is under a filter ([`confined`]). It makes these: for a descriptor whose opening was not seen, `fcntl`, `fstat` and
//!   `readlink`; for the working directory, `getcwd`; for a shared cursor, `lseek`; for advice on a planned file, `fadvise`; for the ring
//!   of another thread, `mremap` and `munmap`; to recognise borrowed memory and the library's threads, `getpid`, `gettid` and `prctl`;
//!   after a change of root, mounts or user, to check whether the loader can still load the library, `faccessat2` and `statfs`; for memory
//!   of the program that may be invalid, `process_vm_readv` and `process_vm_writev`; and to wait for room in a full ring while recording,
//!   `nanosleep`.
//! - No call of the library enters a hook again: it makes its system calls directly ([`sys`]).
//! - If the supervisor is missing, stopped or killed, the hooks only pass calls on.
//!
//! Variadic C functions (open, fcntl, syscall ...) are defined with fixed arguments. Both the System V ABI on x86-64 and AAPCS64 pass
//! the integer arguments of a variadic call in the same places as those of a call with a prototype. If the program did not pass an
//! argument, its value is that of some register or stack word, and is passed on unused.

#![no_std]

#[cfg(panic = "unwind")]
compile_error!(
    "the preload library does not unwind: run `make build`, or `cargo build --profile preload -p foreread-preload`"
);

mod area;
mod attach;
mod called;
mod confined;
mod descriptor;
mod direct;
mod exec;
mod files;
mod functions;
mod heartbeat;
mod home;
mod hooks;
mod key;
mod memory;
mod names;
mod open;
mod pace;
mod paths;
mod process;
mod real;
mod report;
mod root;
mod seat;
mod seats;
mod stdio;
mod streak;
mod symbols;
mod sys;
mod table;
mod threads;
mod uring;
mod watch;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // No code of the library should panic. If it does, the process can only be ended.
    sys::exit_group(134)
}

extern "C" fn start() {
    // The program's errno is unchanged at its start.
    let errno = real::errno();
    attach::start(sys::Allowed::at_start());
    real::set_errno(errno);
}

extern "C" fn end() {
    exec::ending();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
