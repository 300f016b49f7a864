//! What the library writes to when a program starts, side by side.
//!
//! The first write to a page costs a page fault, in each process: a good part of what the library costs a short one. So all that is
//! larger than a word lies here, in the order in which it fits on one page, except what a fork must not copy ([`seats`](crate::seats)).

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use foreread_ring::{RINGS, Slots};

use crate::paths::{Paths, Program};
use crate::real;
use crate::root::Library;

#[repr(C)]
pub struct Memory {
    /// Of the C library's functions; 0 before all are looked up.
    pub addresses: [AtomicUsize; real::COUNT],
    /// The rings that are mapped here, null where one is not. They stay so for the next thread that claims one.
    pub mapped: [AtomicPtr<Slots>; RINGS],
    pub library: Library,
    pub program: Program,
    /// Begins with the working directory.
    pub paths: Paths,
}

pub static MEMORY: Memory = Memory {
    addresses: [const { AtomicUsize::new(0) }; real::COUNT],
    mapped: [const { AtomicPtr::new(ptr::null_mut()) }; RINGS],
    library: Library::new(),
    program: Program::new(),
    paths: Paths::new(),
};
