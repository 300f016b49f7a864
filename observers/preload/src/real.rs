//! The C library's functions behind the hooks, and other facts about the C library.
//!
//! Invariant: all are looked up at once, when the library is initialised, or earlier by the first hook that is called: another library's
//! constructor may run before ours. No hook looks anything up later. That would take the loader's lock, which another thread may hold while
//! it loads a library, and a thread for which it waits may be in a hook.

use core::ffi::{c_int, c_long};
use core::sync::atomic::Ordering;

pub use crate::functions::of;
use crate::functions::{COUNT, NAMES, Real};
use crate::memory::MEMORY;
use crate::symbols::{self, SymbolNames};

impl Real {
    /// Its address, if it has been looked up.
    #[inline(always)]
    pub fn known(self) -> Option<usize> {
        Some(MEMORY.addresses[self.0].load(Ordering::Relaxed)).filter(|&address| address != 0)
    }

    /// The address of its next definition after this library's.
    #[inline(always)]
    pub fn address(self) -> usize {
        self.known().unwrap_or_else(|| self.look_up())
    }

    /// Its address, if it is defined.
    pub fn found(self) -> Option<usize> {
        Some(self.address()).filter(|&address| address != missing as *const () as usize)
    }

    #[cold]
    fn look_up(self) -> usize {
        look_up_all();
        MEMORY.addresses[self.0].load(Ordering::Relaxed)
    }
}

/// Looks all functions up.
pub fn look_up_all() {
    // A page that is read before it is written costs two page faults.
    MEMORY.addresses[0].store(0, Ordering::Relaxed);
    symbols::find_all(&WANTED, &MEMORY.addresses);
    for address in &MEMORY.addresses {
        if address.load(Ordering::Relaxed) == 0 {
            address.store(missing as *const () as usize, Ordering::Relaxed);
        }
    }
}

/// The names and their hashes, by number.
static WANTED: SymbolNames<COUNT> = SymbolNames::new(NAMES);

/// Stands in for a function that this C library does not have.
extern "C" fn missing() -> c_long {
    set_errno(libc::ENOSYS);
    -1
}

pub fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(errno: c_int) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// The real function of a name, as a callable of the given type.
macro_rules! real {
    ($name:ident as $type:ty) => {
        // SAFETY: the address is that of the C library's function of this name, whose
        // type is the one given.
        unsafe { ::core::mem::transmute::<usize, $type>($crate::real::of::$name.address()) }
    };
}
pub(crate) use real;
