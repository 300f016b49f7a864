//! The mapping of a segment.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::atomic::AtomicU32;
use crate::layout::{Header, PAGE, Places, Set, sets};
use crate::slot::Slot;

/// The mapping; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Map {
    at: NonNull<u8>,
    slots: u32,
    places: Places,
}

impl Map {
    /// Maps a memory file with the size of a segment of this many slots, which can be neither shrunk nor grown.
    pub(crate) fn new(file: impl AsFd, slots: u32) -> rustix::io::Result<Self> {
        let places = Places::of(slots);
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let size = usize::try_from(places.size).map_err(|_| Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else in this process refers to it.
        let at = unsafe { mmap(std::ptr::null_mut(), size, flags, MapFlags::SHARED, file, 0)? };
        Ok(Self {
            at: NonNull::new(at.cast()).ok_or(Errno::NOMEM)?,
            slots,
            places,
        })
    }

    fn area<T>(&self, at: u64, count: usize) -> &[T] {
        // SAFETY: the areas lie in the mapping by `Places`, one behind the other and at multiples of 4096 bytes; they are
        // made of atomics, for which any bytes will do; the mapping lives as long as `self`, and its file cannot be shrunk.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(at as usize).cast(), count) }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.area(0, 1)[0]
    }

    pub(crate) fn sets(&self) -> &[Set] {
        self.area(self.places.sets, sets(self.slots) as usize)
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        self.area(self.places.slots, self.slots as usize)
    }

    pub(crate) fn log(&self) -> &[AtomicU32] {
        self.area(self.places.log, self.slots as usize)
    }

    /// The page of a slot. Other processes may read and write it at any time, so it is only for system calls and for copies that are
    /// checked afterwards.
    pub(crate) fn page(&self, slot: u32) -> *mut u8 {
        assert!(slot < self.slots);
        let at = self.places.pages + u64::from(slot) * PAGE;
        // SAFETY: within the mapping, for the slot is one of its slots.
        unsafe { self.at.as_ptr().add(at as usize) }
    }
}

// SAFETY: the mapping is plain memory, not bound to a thread; references go to atomics alone.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and no reference outlives `self`. A failure leaves the mapping in place,
        // which harms nobody.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.places.size as usize) };
    }
}
