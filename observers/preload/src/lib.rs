//! The preload observer: tells the supervising foreread what this program reads.
//!
//! Loaded through `LD_PRELOAD`, it interposes the C library's file calls. Every hook
//! makes the real call first and then, if anything was read, writes one event into this
//! thread's ring ([`report`]). Data flows one way, from the program to the supervisor;
//! what comes back is the mode, which can silence the library, and the advice to turn
//! the kernel's read-ahead off on planned files ([`files`]).
//!
//! Invariants: the program's results, errno, output and order of calls are its own.
//! Nothing allocates, no lock is waited for without bound, no call of the library can
//! come back into a hook (its own system calls are made directly, [`sys`]), and when the
//! supervisor is missing, stopped or killed the hooks are plain pass-throughs.
//!
//! Variadic C functions (open, fcntl, syscall ...) are defined with fixed arguments: both
//! the System V ABI on x86-64 and AAPCS64 pass the integer arguments of a variadic call
//! where a call with a prototype would, and an argument that was not passed is merely a
//! meaningless register or stack word, handed on unread.

#![no_std]

mod direct;
mod exec;
mod files;
mod heartbeat;
mod hooks;
mod maps;
mod open;
mod pace;
mod paths;
mod real;
mod report;
mod root;
mod seats;
mod stdio;
mod streak;
mod sys;
mod threads;
mod watch;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Nothing here is meant to panic; if it does, ending this process is all that is left.
    sys::exit_group(134)
}

extern "C" fn start() {
    if report::attach() {
        stdio::hook();
        direct::ready();
        maps::report_objects();
    }
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
