//! The C library's own functions, found behind ours.

use core::ffi::{CStr, c_int, c_long};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of one function, looked up at its first use.
pub struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    /// The function of this name, which a zero ends.
    pub const fn new(name: &'static str) -> Self {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
            panic!("a name ends with its only zero");
        };
        Self {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// Its address, once it has been looked up.
    #[inline(always)]
    pub fn known(&self) -> Option<usize> {
        Some(self.address.load(Ordering::Relaxed)).filter(|&address| address != 0)
    }

    /// The address of the function's next definition after ours.
    #[inline(always)]
    pub fn address(&self) -> usize {
        self.known().unwrap_or_else(|| self.look_up())
    }

    #[cold]
    fn look_up(&self) -> usize {
        // SAFETY: a terminated name; RTLD_NEXT searches the objects after this library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        let address = if found == 0 {
            missing as *const () as usize
        } else {
            found
        };
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// Stands in for a function that this C library does not have.
extern "C" fn missing() -> c_long {
    set_errno(libc::ENOSYS);
    -1
}

pub fn set_errno(errno: c_int) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// The real function of a name, as a callable of the given type.
macro_rules! real {
    ($name:ident as $type:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(concat!(stringify!($name), "\0"));
        // SAFETY: the address is that of the C library's function of this name, whose
        // type is the one given.
        unsafe { ::core::mem::transmute::<usize, $type>(REAL.address()) }
    }};
}
pub(crate) use real;
