//! libforeread_ebpf.so: loads foreread's programs into the kernel, and passes on their reports.
//!
//! The choice of programs and the meaning of the reports are in `../src`. The interface is that of `abi.rs`.
//!
//! Invariant: nothing unwinds across the interface; a missing map or ring gives an answer, never a panic.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use std::str;

use libbpf_rs::{
    Link, Map, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};

#[path = "../../src/abi.rs"]
#[allow(dead_code, reason = "parts of it are the other side's")]
mod abi;

use abi::{ALARMS, Bytes, Functions, OBSERVE, SYSTEM, Taker, VERSION};

/// The kernel's side, compiled.
static OBSERVE_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o"));
static SYSTEM_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/system.bpf.o"));

/// The rings, by their numbers.
const RINGS: [&str; 2] = ["ring", "alarms"];

/// The receiver of records in the current poll.
type Now = Rc<Cell<Option<(Taker, *mut c_void)>>>;

/// Programs that are loaded and attached.
struct Loaded {
    rings: [Option<RingBuffer<'static>>; 2],
    now: Now,
    object: Object,
    /// Kept because dropping them detaches the programs.
    _links: Vec<Link>,
}

impl Loaded {
    fn load(which: u32, skipped: &str, ring: u32, constants: &[u8]) -> Result<Self, String> {
        libbpf_rs::set_print(None);
        let refused = |what: &str| {
            let what = what.to_owned();
            move |why: libbpf_rs::Error| format!("{what}: {why}")
        };
        let bytes = match which {
            OBSERVE => OBSERVE_OBJECT,
            SYSTEM => SYSTEM_OBJECT,
            _ => return Err(format!("no programs of number {which}")),
        };
        let mut object = ObjectBuilder::default()
            .open_memory(bytes)
            .map_err(refused("the kernel's side"))?;
        for mut program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if skipped.lines().any(|one| one == name) {
                program.set_autoload(false);
            }
        }
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "ring" && ring > 0 {
                map.set_max_entries(ring).map_err(refused("the ring"))?;
            }
            if name.ends_with(".rodata") && !constants.is_empty() {
                let all = map.initial_value_mut().unwrap_or_default();
                all.get_mut(..constants.len())
                    .ok_or("the kernel's side has no place for its constants")?
                    .copy_from_slice(constants);
            }
        }
        let object = object
            .load()
            .map_err(refused("the kernel refuses the eBPF programs"))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if program.autoload() {
                links.push(program.attach().map_err(refused(&name))?);
            }
        }
        let now = Now::default();
        let mut rings = [None, None];
        for (place, name) in rings.iter_mut().zip(RINGS) {
            let Some(map) = map(&object, name.as_bytes()) else {
                continue;
            };
            let now = Rc::clone(&now);
            let mut builder = RingBufferBuilder::new();
            builder
                .add(&map, move |bytes| match now.get() {
                    // SAFETY: whoever polls says that this taker takes such bytes.
                    Some((taker, context)) => unsafe {
                        taker(context, bytes.as_ptr(), bytes.len())
                    },
                    None => 1,
                })
                .map_err(refused(name))?;
            *place = Some(builder.build().map_err(refused(name))?);
        }
        Ok(Self {
            rings,
            now,
            object,
            _links: links,
        })
    }
}

fn map<'object>(object: &'object Object, name: &[u8]) -> Option<Map<'object>> {
    object
        .maps()
        .find(|map| map.name().as_encoded_bytes() == name)
}

/// The interface of this library.
#[unsafe(no_mangle)]
pub static foreread_ebpf_functions: Functions = Functions {
    version: VERSION,
    load,
    poll,
    wait_fd,
    update,
    has,
    delete,
    sum,
    unload,
};

/// # Safety
/// As for all functions here: bytes are valid, and the result of `load` is used by one thread at a time until `unload`.
unsafe extern "C" fn load(
    which: u32,
    skipped: Bytes,
    ring: u32,
    constants: Bytes,
    why: *mut c_char,
    why_len: usize,
) -> *mut c_void {
    // SAFETY: the caller's bytes.
    let (skipped, constants) = unsafe { (skipped.get(), constants.get()) };
    let skipped = str::from_utf8(skipped).unwrap_or_default();
    match Loaded::load(which, skipped, ring, constants) {
        Ok(loaded) => Box::into_raw(Box::new(loaded)).cast(),
        Err(reason) => {
            let len = reason.len().min(why_len.saturating_sub(1));
            if why_len > 0 {
                // SAFETY: the caller's buffer is of that length.
                unsafe {
                    why.cast::<u8>().copy_from(reason.as_ptr(), len);
                    why.add(len).write(0);
                }
            }
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn poll(loaded: *mut c_void, ring: u32, taker: Taker, context: *mut c_void) {
    // SAFETY: what `load` returned.
    let loaded = unsafe { &*loaded.cast::<Loaded>() };
    if let Some(Some(ring)) = loaded.rings.get(ring as usize) {
        loaded.now.set(Some((taker, context)));
        ring.consume_raw();
        loaded.now.set(None);
    }
}

unsafe extern "C" fn wait_fd(loaded: *mut c_void, ring: u32) -> c_int {
    // SAFETY: what `load` returned.
    let loaded = unsafe { &*loaded.cast::<Loaded>() };
    let ring = loaded.rings.get(ring.min(ALARMS) as usize);
    ring.and_then(Option::as_ref)
        .map_or(-1, RingBuffer::epoll_fd)
}

unsafe extern "C" fn update(loaded: *mut c_void, name: Bytes, key: Bytes, value: Bytes) -> bool {
    // SAFETY: what `load` returned, and the caller's bytes.
    let (loaded, name, key, value) = unsafe {
        let loaded = &*loaded.cast::<Loaded>();
        (loaded, name.get(), key.get(), value.get())
    };
    map(&loaded.object, name).is_some_and(|map| map.update(key, value, MapFlags::ANY).is_ok())
}

unsafe extern "C" fn has(loaded: *mut c_void, name: Bytes, key: Bytes) -> bool {
    // SAFETY: as above.
    let (loaded, name, key) = unsafe { (&*loaded.cast::<Loaded>(), name.get(), key.get()) };
    map(&loaded.object, name)
        .is_some_and(|map| matches!(map.lookup(key, MapFlags::ANY), Ok(Some(_))))
}

unsafe extern "C" fn delete(loaded: *mut c_void, name: Bytes, key: Bytes) {
    // SAFETY: as above.
    let (loaded, name, key) = unsafe { (&*loaded.cast::<Loaded>(), name.get(), key.get()) };
    if let Some(map) = map(&loaded.object, name) {
        let _ = map.delete(key);
    }
}

unsafe extern "C" fn sum(loaded: *mut c_void, name: Bytes, key: Bytes) -> u64 {
    // SAFETY: as above.
    let (loaded, name, key) = unsafe { (&*loaded.cast::<Loaded>(), name.get(), key.get()) };
    let map = map(&loaded.object, name);
    let counts = map.and_then(|map| map.lookup_percpu(key, MapFlags::ANY).ok().flatten());
    let number =
        |bytes: &Vec<u8>| u64::from_ne_bytes(bytes.first_chunk().copied().unwrap_or_default());
    counts.unwrap_or_default().iter().map(number).sum()
}

unsafe extern "C" fn unload(loaded: *mut c_void) {
    // SAFETY: what `load` returned, for the last time.
    drop(unsafe { Box::from_raw(loaded.cast::<Loaded>()) });
}
