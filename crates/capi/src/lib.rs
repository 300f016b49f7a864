//! libforeread: application-directed prefetching for C and C++, with libprefetch's interface
//! (VanDeBogart, Frost and Kohler, USENIX 2009) on an unpatched kernel.
//!
//! Two doors into one house: the calls of `foreread.h` ([`calls`], [`abi`]) and the interposers
//! that see the program's reads ([`intercept`]). Behind them, what the process has registered
//! ([`process`], [`descriptors`], [`regions`]) and its clients ([`handle`]), each of them a
//! [`foreread_client::Client`].
//!
//! Invariants: a read is always made, once, by the C library, with the program's arguments, result
//! and errno; no panic leaves the library; a read of a descriptor in no region costs one load; a
//! thread that may hold a lock never waits for one in a signal handler ([`inside`]), and the
//! library's memory comes from an allocator of its own, so that such a handler does not wait
//! for the `malloc` it interrupted either; in a child made by `fork` nothing is touched.
//!
//! Data flow: read → [`intercept`] → [`descriptors`] (whose?) → [`handle`] → client, callback →
//! the C library's read → client. Calls: [`calls`] → [`process`] (which client?) → [`handle`].

#[cfg(not(target_pointer_width = "64"))]
compile_error!("off_t and off64_t are taken to be one type");

mod abi;
mod calls;
mod descriptors;
mod errors;
mod handle;
mod inside;
mod intercept;
mod process;
mod real;
mod regions;

#[global_allocator]
static MEMORY: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Runs when the library is loaded, before the program's `main`.
extern "C" fn start() {
    // SAFETY: this library's allocator has not been used yet.
    unsafe { dlmalloc::enable_alloc_after_fork() };
    inside::watch_forks();
    real::resolve();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
