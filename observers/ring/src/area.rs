//! The shared area, mapped by its owner.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::Whole;

/// The mapped area; unmapped when dropped.
#[derive(Debug)]
pub struct Area(NonNull<Whole>);

impl Area {
    /// Maps a memfd as long as [`Whole`] that can be neither shrunk nor grown.
    pub fn map(memfd: &OwnedFd) -> rustix::io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else in
        // this process refers to it.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                size_of::<Whole>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                memfd,
                0,
            )?
        };
        NonNull::new(at.cast()).map(Self).ok_or(Errno::NOMEM)
    }

    /// The area itself.
    pub fn get(&self) -> &Whole {
        // SAFETY: the mapping is readable, writable, page-aligned and as long as
        // `Whole`, which consists of atomics only; it lives as long as `self`, and the
        // seals keep anybody from shrinking the file beneath it.
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: the area is plain memory, not bound to a thread, and all of it is atomics.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and no reference outlives `self`.
        // A failure leaves the mapping in place, which harms nobody.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<Whole>()) };
    }
}
