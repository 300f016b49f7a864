//! foreread's calls to libforeread_ebpf.so, in the C ABI. Both compile this file.
//!
//! The library has libbpf and the compiled programs of the kernel's side, without interpreting their reports. Only the few runs that use it
//! load it.

use std::ffi::{CStr, c_char, c_int, c_void};

/// The library's name.
pub const LIBRARY: &str = "libforeread_ebpf.so";
/// The symbol of its [`Functions`].
pub const SYMBOL: &CStr = c"foreread_ebpf_functions";
/// To be raised with every change of this file or of the records: a library of another version is not used.
pub const VERSION: u32 = 2;

/// The programs that follow one program's processes, or that observe the whole machine.
pub const OBSERVE: u32 = 0;
/// See [`OBSERVE`].
pub const SYSTEM: u32 = 1;

/// The ring for events, and the ring whose reader is woken at once.
pub const RING: u32 = 0;
/// See [`RING`].
pub const ALARMS: u32 = 1;

/// Receives a record: the context given to `poll`, its bytes and their number. Any result but 0 ends the poll.
pub type Taker = unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int;

/// Bytes by C's rules.
#[repr(C)]
pub struct Bytes {
    /// The first, if there are any.
    pub first: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Bytes {
    /// These bytes, with their lifetime.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            first: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// # Safety
    /// The bytes are valid for `'a`.
    pub unsafe fn get<'a>(&self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// The library's functions. The result of `load` is passed to the others, by one thread at a time, until `unload`.
#[repr(C)]
pub struct Functions {
    /// [`VERSION`]; the other fields exist only if both sides have the same.
    pub version: u32,
    /// Loads and attaches programs: which ones, the names of those left out (separated by newlines), bytes of the ring (0: the default),
    /// and the first bytes of their constants. Null on failure, with the reason in the buffer at the end, terminated by a 0.
    pub load: unsafe extern "C" fn(u32, Bytes, u32, Bytes, *mut c_char, usize) -> *mut c_void,
    /// Hands the records of a ring to a taker, with this context.
    pub poll: unsafe extern "C" fn(*mut c_void, u32, Taker, *mut c_void),
    /// A descriptor that is readable while the ring has records; -1 if there is no such ring.
    pub wait_fd: unsafe extern "C" fn(*mut c_void, u32) -> c_int,
    /// Sets a key of a map to a value. True if that was done.
    pub update: unsafe extern "C" fn(*mut c_void, Bytes, Bytes, Bytes) -> bool,
    /// True if a map has a key.
    pub has: unsafe extern "C" fn(*mut c_void, Bytes, Bytes) -> bool,
    /// Removes a key from a map.
    pub delete: unsafe extern "C" fn(*mut c_void, Bytes, Bytes),
    /// The sum of all processors' numbers of 64 bits under a key.
    pub sum: unsafe extern "C" fn(*mut c_void, Bytes, Bytes) -> u64,
    /// Ends it.
    pub unload: unsafe extern "C" fn(*mut c_void),
}
