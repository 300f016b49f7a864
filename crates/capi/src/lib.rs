//! libforeread: application-directed prefetching for C and C++, with libprefetch's interface
//! (VanDeBogart, Frost and Kohler, USENIX 2009) on an unpatched kernel.
//!
//! The library is entered through the calls of `foreread.h` ([`calls`], [`abi`]) and through the interposers of the
//! program's reads ([`intercept`]). Behind both are the registrations of the process ([`process`], [`descriptors`],
//! [`regions`]) and its clients ([`handle`]), each with a [`foreread_client::Client`].
//!
//! Invariants:
//! - The C library makes each read exactly once, with the program's arguments, result and errno.
//! - No panic leaves the library.
//! - A read of a descriptor without a region costs one load.
//! - A signal handler never waits for a lock that its thread holds ([`inside`]). The library has an allocator of its
//!   own, so that a handler does not wait for the `malloc` that it interrupted either.
//! - In a child made by `fork`, the parent's registrations are not touched.
//!
//! Data flow: read → [`intercept`] → [`descriptors`] → [`handle`] → client, callback → the C library's read → client.
//! Calls: [`calls`] → [`process`] → [`handle`].

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
    process::own_memory();
    inside::watch_forks();
    real::resolve();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
