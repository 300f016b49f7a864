//! The kernel's side, as libforeread_ebpf.so loads it.
//!
//! Data flow: programs → kernel → ring → bytes, for `decode`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use foreread_sys::own;
use libloading::Library;

use crate::abi::{Bytes, Functions, LIBRARY, SYMBOL, VERSION};

/// Bytes of a reason, at most.
const REASON: usize = 512;

/// The path of the library.
///
/// # Errors
/// When it is neither in the build's nor in the installation's place.
pub(crate) fn library() -> io::Result<PathBuf> {
    own::part(LIBRARY, "../lib/foreread")
}

/// The library's functions; once loaded it stays.
fn functions() -> Result<&'static Functions, String> {
    static LOADED: OnceLock<Result<&'static Functions, String>> = OnceLock::new();
    let load = || {
        let path = library().map_err(|why| why.to_string())?;
        // SAFETY: foreread's own library, whose initialization does nothing.
        let library = unsafe { Library::new(&path) }.map_err(|why| why.to_string())?;
        // It is never unloaded.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the symbol is of that type in every version, whose first word says which one it is.
        let found = unsafe { library.get::<*const Functions>(SYMBOL.to_bytes_with_nul()) };
        let found = found.map_err(|why| why.to_string())?;
        // SAFETY: as above.
        let version = unsafe { found.cast::<u32>().read() };
        if version != VERSION {
            let path = path.display();
            return Err(format!(
                "{path} is of another foreread: version {version}, not {VERSION}"
            ));
        }
        // SAFETY: of this version, it is all there.
        Ok(unsafe { &**found })
    };
    LOADED.get_or_init(load).clone()
}

/// Programs that are loaded and attached, until this goes.
pub(crate) struct Module {
    functions: &'static Functions,
    loaded: *mut c_void,
}

impl Module {
    /// Loads programs except those with these names, with a ring of this many bytes (0: the default), and the first bytes of their
    /// constants.
    pub(crate) fn load(
        which: u32,
        skipped: &[&str],
        ring: u32,
        constants: &[u8],
    ) -> Result<Self, String> {
        let functions = functions()?;
        let skipped = skipped.join("\n");
        let mut why = [0 as c_char; REASON];
        // SAFETY: all bytes live longer than the call.
        let loaded = unsafe {
            let skipped = Bytes::of(skipped.as_bytes());
            let constants = Bytes::of(constants);
            (functions.load)(which, skipped, ring, constants, why.as_mut_ptr(), REASON)
        };
        if loaded.is_null() {
            // SAFETY: ended by a 0 where nothing was loaded, and all zeros before.
            let why = unsafe { CStr::from_ptr(why.as_ptr()) };
            return Err(why.to_string_lossy().into_owned());
        }
        Ok(Self { functions, loaded })
    }

    /// Passes on the records of a ring, until `each` returns false.
    pub(crate) fn poll<F: FnMut(&[u8]) -> bool>(&mut self, ring: u32, mut each: F) {
        unsafe extern "C" fn take<F: FnMut(&[u8]) -> bool>(
            each: *mut c_void,
            first: *const u8,
            len: usize,
        ) -> c_int {
            // SAFETY: the closure of the call below, and bytes that are there as long as this call.
            let (each, bytes) = unsafe { (&mut *each.cast::<F>(), Bytes { first, len }.get()) };
            c_int::from(!each(bytes))
        }
        // SAFETY: the taker is the closure's.
        unsafe { (self.functions.poll)(self.loaded, ring, take::<F>, (&raw mut each).cast()) };
    }

    /// Readable when the ring has something.
    pub(crate) fn wait_fd(&self, ring: u32) -> Option<BorrowedFd<'_>> {
        // SAFETY: loaded.
        let fd: RawFd = unsafe { (self.functions.wait_fd)(self.loaded, ring) };
        // SAFETY: the ring has it open for as long as this lives, and so longer than what is returned.
        (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Sets a key of a map. True if that was done.
    pub(crate) fn update(&self, map: &str, key: u32, value: &[u8]) -> bool {
        let (map, key, value) = (map.as_bytes(), key.to_ne_bytes(), Bytes::of(value));
        // SAFETY: loaded, and the bytes live longer than the call.
        unsafe { (self.functions.update)(self.loaded, Bytes::of(map), Bytes::of(&key), value) }
    }

    /// True if a map has a key.
    pub(crate) fn has(&self, map: &str, key: u32) -> bool {
        let (map, key) = (map.as_bytes(), key.to_ne_bytes());
        // SAFETY: as above.
        unsafe { (self.functions.has)(self.loaded, Bytes::of(map), Bytes::of(&key)) }
    }

    /// Removes a key from a map.
    pub(crate) fn delete(&self, map: &str, key: u32) {
        let (map, key) = (map.as_bytes(), key.to_ne_bytes());
        // SAFETY: as above.
        unsafe { (self.functions.delete)(self.loaded, Bytes::of(map), Bytes::of(&key)) }
    }

    /// Lost events by probe, for probes that lost any; by the probes' names, in the order of their numbers.
    pub(crate) fn lost(&self, names: &[&'static str]) -> Vec<(&'static str, u64)> {
        let of = |probe: u32| {
            let key = probe.to_ne_bytes();
            // SAFETY: as above.
            unsafe { (self.functions.sum)(self.loaded, Bytes::of(b"lost"), Bytes::of(&key)) }
        };
        let each = (0_u32..).zip(names);
        each.map(|(probe, &name)| (name, of(probe)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded, and for the last time.
        unsafe { (self.functions.unload)(self.loaded) };
    }
}
