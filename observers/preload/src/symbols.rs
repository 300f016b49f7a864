//! Finds the next definitions of functions and variables after this library, in the objects that the program was started with.
//!
//! `dlsym(RTLD_NEXT, …)` finds the same functions. But it takes a lock and about 0.5 µs per function, and the library needs about eighty of
//! them in each process: more than all other costs of a start. Here each takes about 50 ns: the objects are searched in the loader's order,
//! by their own hash tables (the GNU extension to the ELF format). Objects without such a table, and functions that are chosen at run time,
//! are left to `dlsym`.
//!
//! The list of objects is the one that the loader keeps for debuggers (`_r_debug`). It only grows at its end while the program is being
//! started, and is not read later.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// `struct link_map` of link.h, its public part.
#[repr(C)]
struct Object {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const Object,
    previous: *const Object,
}

/// `struct r_debug` of link.h, the needed part.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const Object,
}

/// `Elf64_Dyn`.
#[repr(C)]
pub struct Dynamic {
    tag: i64,
    value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
pub struct Symbol {
    pub name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

const NULL: i64 = 0;
const STRTAB: i64 = 5;
const SYMTAB: i64 = 6;
const GNU_HASH: i64 = 0x6fff_fef5;
const VERSYM: i64 = 0x6fff_fff0;

const OBJECT: u8 = 1;
const FUNC: u8 = 2;
/// Marks a version that a name without a version does not match.
const HIDDEN: u16 = 0x8000;
const UNDEFINED: u16 = 0;

unsafe extern "C" {
    static _r_debug: Debug;
    /// This library's own.
    #[link_name = "_DYNAMIC"]
    static OWN: Dynamic;
}

/// An object's tables.
struct Tables {
    base: usize,
    strings: *const u8,
    symbols: *const Symbol,
    versions: *const u16,
    /// `nbuckets, symoffset, bloom_size, bloom_shift`, then the bloom filter, the buckets and the chains.
    hashes: *const u32,
}

/// Iterates over the objects after this library; `None` if this library is not in the loader's list.
fn objects() -> Option<impl Iterator<Item = &'static Object>> {
    // SAFETY: the loader's list, whose objects stay as long as the program is being started.
    let (first, next) = unsafe {
        let next = |object: &&'static Object| object.next.as_ref();
        (_r_debug.first.as_ref()?, next)
    };
    let mut all = core::iter::successors(Some(first), next);
    all.find(|object| ptr::eq(object.dynamic, &raw const OWN))?;
    Some(all)
}

impl Tables {
    /// The hash table of an object; `None` if it has none.
    fn of(object: &Object) -> Option<Self> {
        let base = object.base;
        let (mut strings, mut symbols, mut versions, mut hashes) = (0, 0, 0, 0);
        let mut at = object.dynamic;
        // SAFETY: an object's dynamic section ends with a null entry.
        while let Some(entry) = unsafe { at.as_ref() }.filter(|entry| entry.tag != NULL) {
            // The loader has added the base, except in an object that it has not mapped (the kernel's).
            let address = if entry.value < base {
                entry.value + base
            } else {
                entry.value
            };
            match entry.tag {
                STRTAB => strings = address,
                SYMTAB => symbols = address,
                VERSYM => versions = address,
                GNU_HASH => hashes = address,
                _ => {}
            }
            at = at.wrapping_add(1);
        }
        (strings != 0 && symbols != 0 && hashes != 0).then_some(Self {
            base,
            strings: strings as *const u8,
            symbols: symbols as *const Symbol,
            versions: versions as *const u16,
            hashes: hashes as *const u32,
        })
    }

    /// The address of a function or variable; `Err` if it is chosen at run time.
    fn find(&self, name: *const u8, hash: u32) -> Option<Result<usize, ()>> {
        // SAFETY: the tables of a loaded object, laid out as the format says.
        unsafe {
            let header = |at: usize| *self.hashes.add(at) as usize;
            let (buckets, first, words, shift) = (header(0), header(1), header(2), header(3));
            let filter = self.hashes.add(4).cast::<u64>();
            let word = *filter.add((hash as usize / 64) % words);
            let wanted = 1 << (hash % 64) | 1 << ((hash >> shift) % 64);
            if word & wanted != wanted {
                return None;
            }
            let table = filter.add(words).cast::<u32>();
            let mut index = *table.add(hash as usize % buckets) as usize;
            if index < first {
                return None;
            }
            let chains = table.add(buckets);
            loop {
                let chain = *chains.add(index - first);
                if (chain | 1) == (hash | 1)
                    && let Some(found) = self.fits(index, name)
                {
                    return Some(found);
                }
                if chain & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// The address of the symbol with this number, if it is the default definition of the name.
    ///
    /// # Safety
    /// The object must have that many symbols.
    unsafe fn fits(&self, index: usize, name: *const u8) -> Option<Result<usize, ()>> {
        // SAFETY: the caller vouches for the number.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let is_default = self.versions.is_null() || *self.versions.add(index) & HIDDEN == 0;
            if symbol.section == UNDEFINED
                || !is_default
                || !is_same(self.strings.add(symbol.name as usize), name)
            {
                return None;
            }
            Some(if matches!(symbol.info & 0xf, OBJECT | FUNC) {
                Ok(symbol.value + self.base)
            } else {
                Err(())
            })
        }
    }
}

/// Names to be searched, each ended by a zero, with their hashes. All is computed when the library is compiled, and contains no pointer for
/// each name, which the loader would have to relocate.
pub struct SymbolNames<const COUNT: usize> {
    names: &'static [u8],
    each: [(u32, u16); COUNT],
}

impl<const COUNT: usize> SymbolNames<COUNT> {
    pub const fn new(names: &'static [u8]) -> Self {
        let mut each = [(0, 0); COUNT];
        let (mut number, mut at) = (0, 0);
        while number < COUNT {
            let (begin, mut hash) = (at, 5381_u32);
            while names[at] != 0 {
                hash = hash.wrapping_mul(33).wrapping_add(names[at] as u32);
                at += 1;
            }
            each[number] = (hash, begin as u16);
            at += 1;
            number += 1;
        }
        assert!(at == names.len(), "as many names as are counted");
        Self { names, each }
    }

    /// The name at a place.
    fn name(&self, at: u16) -> &CStr {
        // SAFETY: every name ends with a zero.
        unsafe { CStr::from_ptr(self.names.as_ptr().add(at.into()).cast()) }
    }
}

/// True if the program was started with an object whose name contains `part`.
pub fn is_loaded(part: &[u8]) -> bool {
    let Some(mut objects) = objects() else {
        return false;
    };
    objects.any(|object| {
        let mut at = object.name;
        // SAFETY: the loader's names are terminated.
        unsafe {
            while *at != 0 {
                if begins(at, part) {
                    return true;
                }
                at = at.add(1);
            }
        }
        false
    })
}

/// True if a terminated string begins with these bytes. The C library's string functions are on pages that a short program does not use
/// otherwise.
///
/// # Safety
/// The string must be terminated.
pub unsafe fn begins(string: *const c_char, with: &[u8]) -> bool {
    let mut rest = string.cast::<u8>();
    for &byte in with {
        // SAFETY: all bytes before were like those, so none was the end.
        unsafe {
            if *rest != byte {
                return false;
            }
            rest = rest.add(1);
        }
    }
    true
}

/// The value of an entry of a dynamic section, if it exists.
pub fn value_of(mut dynamic: *const Dynamic, tag: i64) -> Option<usize> {
    // SAFETY: an object's dynamic section ends with a null entry.
    while let Some(entry) = unsafe { dynamic.as_ref() }.filter(|entry| entry.tag != NULL) {
        if entry.tag == tag {
            return Some(entry.value);
        }
        dynamic = dynamic.wrapping_add(1);
    }
    None
}

/// True for the kernel's object, which defines none of the names.
fn is_kernels(object: &Object) -> bool {
    // SAFETY: the loader's names are terminated.
    unsafe { begins(object.name, b"linux-") }
}

/// Puts the address of the next definition of each name into the place with the same number, which must be 0 before, and stays so without a
/// definition.
pub fn find_all<const COUNT: usize>(wanted: &SymbolNames<COUNT>, places: &[AtomicUsize; COUNT]) {
    let missing = || {
        let pairs = wanted.each.iter().zip(places);
        pairs.filter(|(_, place)| place.load(Ordering::Relaxed) == 0)
    };
    let by_loader = |at: u16, place: &AtomicUsize| {
        place.store(next(wanted.name(at)), Ordering::Relaxed);
    };
    let all_by_loader = || missing().for_each(|(&(_, at), place)| by_loader(at, place));
    let Some(objects) = objects() else {
        return all_by_loader();
    };
    for object in objects.filter(|object| !is_kernels(object)) {
        let Some(tables) = Tables::of(object) else {
            return all_by_loader();
        };
        for (&(hash, at), place) in missing() {
            match tables.find(wanted.names[at.into()..].as_ptr(), hash) {
                Some(Ok(address)) => place.store(address, Ordering::Relaxed),
                Some(Err(())) => by_loader(at, place),
                None => {}
            }
        }
        if missing().next().is_none() {
            return;
        }
    }
}

/// True if two terminated strings are equal.
///
/// # Safety
/// Both must be terminated.
unsafe fn is_same(mut one: *const u8, mut other: *const u8) -> bool {
    // SAFETY: the caller vouches for the ends; names are short.
    unsafe {
        while *one == *other {
            if *one == 0 {
                return true;
            }
            (one, other) = (one.add(1), other.add(1));
        }
    }
    false
}

/// The next definition of a symbol after this library, as found by `dlsym`; 0 if there is none, or no `dlsym`, which is in libdl for an
/// older glibc.
pub fn next(name: &CStr) -> usize {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    type Dlerror = unsafe extern "C" fn() -> *mut c_char;
    static NAMES: SymbolNames<2> = SymbolNames::new(b"dlsym\0dlerror\0");
    let [Some(dlsym), Some(dlerror)] = NAMES.each.map(|each| in_tables(&NAMES, each)) else {
        return 0;
    };
    // SAFETY: the C library's functions of these types; a terminated name; RTLD_NEXT searches the objects after this library.
    unsafe {
        let dlsym = core::mem::transmute::<usize, Dlsym>(dlsym);
        let found = dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize;
        if found == 0 {
            // Clears the error, which is not meant for the program.
            core::mem::transmute::<usize, Dlerror>(dlerror)();
        }
        found
    }
}

/// The address of one of the `wanted` names, from the first object whose table has it.
fn in_tables<const COUNT: usize>(
    wanted: &SymbolNames<COUNT>,
    (hash, at): (u32, u16),
) -> Option<usize> {
    let name = wanted.names[at.into()..].as_ptr();
    let mut objects = objects()?.filter(|object| !is_kernels(object));
    objects.find_map(|object| Tables::of(object)?.find(name, hash)?.ok())
}
