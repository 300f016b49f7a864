//! Loads the kernel's side, and takes what it reports.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, RawFd};
use std::rc::Rc;

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};

use super::Event;
use super::decode::{Decoder, record};

/// The kernel's side, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/system.bpf.o"));

/// What may lose events, in the order of `enum system_probe`.
const PROBE_NAMES: [&str; record::SYSTEM_PROBES as usize] =
    ["processes", "opens", "fetches", "floods", "names"];

/// Events that one poll takes: as many as fit into the ring would keep whoever asks waiting.
const AT_ONCE: usize = 4096;

/// The two ways of seeing opens: where the kernel asks its security modules, and at the end of system calls.
const FUNCTION: &str = "file_opens";
const CALLS: &str = "call_ended";

/// A number of no system call.
#[cfg(not(target_arch = "x86_64"))]
const NONE: u32 = u32::MAX;

/// The constants of the kernel's side, in their order: the observing process, and the system calls that open.
fn constants_of(own: u32) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    let (opens, compat) = (
        [
            libc::SYS_open as u32,
            libc::SYS_creat as u32,
            libc::SYS_openat as u32,
            libc::SYS_openat2 as u32,
        ],
        // arch/x86/entry/syscalls/syscall_32.tbl: open, creat, openat, openat2.
        [5, 8, 295, 437],
    );
    #[cfg(not(target_arch = "x86_64"))]
    let (opens, compat) = (
        [
            libc::SYS_openat as u32,
            libc::SYS_openat2 as u32,
            NONE,
            NONE,
        ],
        [NONE; 4],
    );
    let words = [own].into_iter().chain(opens).chain(compat);
    words.flat_map(u32::to_ne_bytes).collect()
}

/// An observation of the machine that has begun. The kernel's side goes with it.
pub struct System {
    ring: RingBuffer<'static>,
    alarms: RingBuffer<'static>,
    taken: Rc<RefCell<Taken>>,
    way: &'static str,
    object: Object,
    /// Held for what they do when they go.
    _links: Vec<Link>,
}

#[derive(Default)]
struct Taken {
    decoder: Decoder,
    events: VecDeque<Event>,
    /// How many of one poll.
    count: usize,
}

impl System {
    pub(crate) fn begin() -> Result<Self, String> {
        libbpf_rs::set_print(None);
        // Some kernels allow no probes of functions.
        Self::load(FUNCTION, CALLS).or_else(|_| Self::load(CALLS, FUNCTION))
    }

    /// With one way of seeing opens, and without the other.
    fn load(way: &'static str, other: &str) -> Result<Self, String> {
        let refused = |what: &str| {
            let what = what.to_owned();
            move |why: libbpf_rs::Error| format!("{what}: {why}")
        };
        let mut object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(refused("the kernel's side"))?;
        for mut program in object.progs_mut() {
            if program.name() == other {
                program.set_autoload(false);
            }
        }
        for mut map in object.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata") {
                let constants = map.initial_value_mut().unwrap_or_default();
                let own = constants_of(std::process::id());
                let begins = constants.get_mut(..own.len());
                begins
                    .ok_or("the kernel's side has no place for its constants")?
                    .copy_from_slice(&own);
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
        let taken = Rc::new(RefCell::new(Taken::default()));
        let taker = Rc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        let mut maps = object.maps();
        let map = maps.find(|map| map.name() == "ring");
        let map = map.ok_or("the kernel's side has no ring")?;
        builder
            .add(&map, move |bytes| {
                let taken = &mut *taker.borrow_mut();
                taken.events.extend(taken.decoder.take(bytes));
                taken.count += 1;
                // Anything but 0 ends the round.
                i32::from(taken.count == AT_ONCE)
            })
            .map_err(refused("the ring"))?;
        let ring = builder.build().map_err(refused("the ring"))?;
        let mut builder = RingBufferBuilder::new();
        let map = maps.find(|map| map.name() == "alarms");
        let map = map.ok_or("the kernel's side has no alarms")?;
        let taker = Rc::clone(&taken);
        builder
            .add(&map, move |bytes| {
                if let Some(at) = bytes.first_chunk() {
                    let at = u64::from_ne_bytes(*at);
                    taker.borrow_mut().events.push_back(Event::Waits { at });
                }
                0
            })
            .map_err(refused("the alarms"))?;
        let alarms = builder.build().map_err(refused("the alarms"))?;
        drop(maps);
        Ok(Self {
            ring,
            alarms,
            taken,
            way,
            object,
            _links: links,
        })
    }

    /// Which probe sees opens: `file_opens`, at no cost to other system calls, or `call_ended`.
    pub fn way(&self) -> &'static str {
        self.way
    }

    /// Readable when there are events.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        let fd: RawFd = self.ring.epoll_fd();
        // SAFETY: the ring has it open for as long as it lives, and so longer than what is returned.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    /// Readable when a process is about to wait for a device, from which on [`System::poll`] is worth its while.
    pub fn alarm_fd(&self) -> BorrowedFd<'_> {
        let fd: RawFd = self.alarms.epoll_fd();
        // SAFETY: as above.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    /// Hand out some of what has been reported, in the order in which it was; whether there may be more.
    pub fn poll(&mut self, each: &mut dyn FnMut(Event)) -> bool {
        self.taken.borrow_mut().count = 0;
        self.alarms.consume_raw();
        self.ring.consume_raw();
        let (events, count) = {
            let mut taken = self.taken.borrow_mut();
            (std::mem::take(&mut taken.events), taken.count)
        };
        events.into_iter().for_each(each);
        count >= AT_ONCE
    }

    /// How many events each probe has lost, of those that have.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let mut maps = self.object.maps();
        let Some(lost) = maps.find(|map| map.name() == "lost") else {
            return Vec::new();
        };
        let of = |probe: usize| {
            let key = (probe as u32).to_ne_bytes();
            let counts = lost.lookup_percpu(&key, MapFlags::ANY).ok().flatten();
            let number = |bytes: &Vec<u8>| {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                u64::from_ne_bytes(bytes)
            };
            counts.unwrap_or_default().iter().map(number).sum::<u64>()
        };
        let each = PROBE_NAMES.iter().enumerate();
        let nameless = ("nameless", self.taken.borrow().decoder.nameless);
        each.map(|(probe, &name)| (name, of(probe)))
            .chain([nameless])
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}
