//! The preload observer: reports this program's reads and lookups to the supervising foreread.
//!
//! It is loaded through `LD_PRELOAD` and interposes the C library's file calls. Every hook makes the real call first, and then writes one
//! event into this thread's ring ([`report`]) if anything was read or found. Data flow one way, from the program to the supervisor. Only
//! the mode, which can silence the library, and the advice to turn the kernel's read-ahead off on planned files ([`files`]) flow back.
//!
//! Invariants:
//! - The program's results, errno, output and order of calls are its own. The real call comes first, with the arguments as
//!   given; nothing that they point to is looked at before the kernel has accepted it. What a hook does earlier is to
//!   note in the library's own memory what is about to happen.
//! - No hook allocates, waits for a lock, or looks up a function: all that is needed is found when the program starts.
//! - After the start no descriptor is opened or closed. The only system calls made then need an [`sys::Allowed`], which
//!   there is none of once the process is under a filter ([`confined`]): to ask what a descriptor is that nobody
//!   was seen to open (`fcntl`, `fstat`, `readlink`), where the cursor of a shared one is (`lseek`), to advise the
//!   kernel of a planned file (`fadvise`), to map the ring of another thread (`mremap`, `munmap`), to tell a borrower of
//!   the memory from its owner (`getpid`), to see whether the loader can still load the library after a
//!   change of root, mounts or user (`faccessat2`, `statfs`), and to wait for room in a full ring while recording (`nanosleep`).
//! - No call of the library can come back into a hook: its own system calls are made directly ([`sys`]).
//! - When the supervisor is missing, stopped or killed the hooks are plain pass-throughs.
//!
//! Variadic C functions (open, fcntl, syscall ...) are defined with fixed arguments: both
//! the System V ABI on x86-64 and AAPCS64 pass the integer arguments of a variadic call
//! where a call with a prototype would, and an argument that was not passed is merely a
//! meaningless register or stack word, handed on unread.

#![no_std]

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
    // Nothing here is meant to panic; if it happens, the process can only be ended.
    sys::exit_group(134)
}

extern "C" fn start() {
    // A program begins with none.
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
