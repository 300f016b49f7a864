//! All memory that the library writes when a program starts, side by side.
//!
//! The first write to a page costs a page fault in each process: a large part of the library's cost in a short one. So everything larger
//! than a word is here, in the order in which it fits on one page, except for data that a fork must not copy ([`seat`](crate::seat)).

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use foreread_ring::{PATH_MAX, RINGS, Slots};

use crate::functions;

/// Number of stored directories, including the working directory. After them is a place for the last answer of the kernel.
pub const DIRECTORIES: usize = 17;

/// Limit of stored paths of the program and of this library, in bytes. If the program's is longer, each thread asks the kernel for it. If
/// this library's is longer, it is not removed from the environment.
const LONGEST: usize = 512;

#[repr(C)]
pub struct Memory {
    /// Addresses of the C library's functions; 0 before they are looked up.
    pub addresses: [AtomicUsize; functions::COUNT],
    /// The mapped rings; null for one that is not mapped. A ring stays mapped for the next thread that claims it.
    pub mapped: [AtomicPtr<Slots>; RINGS],
    pub library: Library,
    pub program: Program,
    /// Begins with the working directory.
    pub paths: Paths,
}

pub static MEMORY: Memory = Memory {
    addresses: [const { AtomicUsize::new(0) }; functions::COUNT],
    mapped: [const { AtomicPtr::new(ptr::null_mut()) }; RINGS],
    library: Library::new(),
    program: Program::new(),
    paths: Paths::new(),
};

/// The cached paths. They are separate from the other fields of the cache, whose initial values are not all zeros, so that these bytes take
/// no room in the library's file.
pub struct Paths(pub UnsafeCell<Kept>);

pub type Kept = [[u8; PATH_MAX]; DIRECTORIES + 1];

impl Paths {
    const fn new() -> Self {
        Self(UnsafeCell::new([[0; PATH_MAX]; DIRECTORIES + 1]))
    }
}

/// The program's own path, which does not change.
pub struct Program(pub UnsafeCell<[u8; LONGEST]>);

impl Program {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; LONGEST]))
    }
}

// SAFETY: only used by a thread that holds the cache's lock alone.
unsafe impl Sync for Program {}

// SAFETY: only changed by a thread that holds the cache's lock alone, and only read by threads that share it.
unsafe impl Sync for Paths {}

/// This library's path in the variable.
pub struct Library(pub UnsafeCell<[u8; LONGEST]>);
// SAFETY: written once, at the program's start, before its length is stored.
unsafe impl Sync for Library {}

impl Library {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; LONGEST]))
    }
}
