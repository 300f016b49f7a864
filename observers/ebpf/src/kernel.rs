//! Loads the kernel's side, and takes what it reports.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};

use crate::Event;
use crate::calls;
use crate::decide::Seen;
use crate::decode::Decoder;
use crate::decode::record::{FOLLOWED, FOLLOWED_PARENT, PROBES, call};

/// The kernel's side, compiled.
static OBJECT: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o")).len()] =
    *include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o"));

/// The programs that not every kernel has tracepoints for: those that see mapped pages touched, and io_uring.
const FAULTS: &[&str] = &[
    "user_fault",
    "kernel_fault",
    "mapped_along",
    "page_wanted",
    "page_added",
];
const URING: &[&str] = &["request_begins", "request_ends"];

/// What may lose events, in the order of `enum probe`.
const PROBE_NAMES: [&str; PROBES as usize] = [
    "processes",
    "files",
    "opens",
    "looks",
    "directory reads",
    "reads",
    "page faults",
];

/// An observation that has begun. The kernel's side goes with it.
pub struct Observation {
    ring: RingBuffer<'static>,
    decoder: Rc<RefCell<Decoder>>,
    seen: Seen,
    parent: u32,
    object: Object,
    /// Held for what they do when they go.
    _links: Vec<Link>,
}

impl Observation {
    pub(crate) fn begin(parent: u32, ring: u32) -> Result<Self, String> {
        libbpf_rs::set_print(None);
        let all = Seen {
            faults: true,
            uring: true,
        };
        // What a kernel does not have, it refuses to load, or to attach.
        let tries = [
            all,
            Seen {
                uring: false,
                ..all
            },
            Seen {
                faults: false,
                ..all
            },
            Seen::default(),
        ];
        let mut refused = String::new();
        for seen in tries {
            match Self::load(parent, ring, seen) {
                Ok(observation) => return Ok(observation),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn load(parent: u32, size: u32, seen: Seen) -> Result<Self, String> {
        let refused = |what: &str| {
            let what = what.to_owned();
            move |why: libbpf_rs::Error| format!("{what}: {why}")
        };
        let mut object = ObjectBuilder::default()
            .open_memory(&OBJECT)
            .map_err(refused("the kernel's side"))?;
        for mut program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let is_in = |group: &[&str]| group.contains(&name.as_str());
            if is_in(FAULTS) && !seen.faults || is_in(URING) && !seen.uring {
                program.set_autoload(false);
            }
        }
        for mut map in object.maps_mut() {
            if map.name() == "ring" {
                map.set_max_entries(size).map_err(refused("the ring"))?;
            }
        }
        let object = object
            .load()
            .map_err(refused("the kernel refuses the eBPF programs"))?;
        tell_calls(&object).map_err(refused("the table of system calls"))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if program.autoload() {
                let link = program.attach().map_err(refused(&name))?;
                links.push(link);
            }
        }
        let decoder = Rc::new(RefCell::new(Decoder::default()));
        let taker = Rc::clone(&decoder);
        let mut builder = RingBufferBuilder::new();
        let map = map(&object, "ring")?;
        builder
            .add(&map, move |bytes| {
                taker.borrow_mut().take(bytes);
                0
            })
            .map_err(refused("the ring"))?;
        let ring = builder.build().map_err(refused("the ring"))?;
        let observation = Self {
            ring,
            decoder,
            seen,
            parent,
            object,
            _links: links,
        };
        observation
            .follow_as(parent, FOLLOWED_PARENT)
            .map_err(refused("the table of processes"))?;
        Ok(observation)
    }

    /// What is seen on this kernel.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// The program is there, as process `pid`: whatever its parent starts from now on is not the program's. Where it was
    /// started before it could be observed, it is from now on.
    pub fn follow(&mut self, pid: u32) {
        let Ok(processes) = map(&self.object, "processes") else {
            return;
        };
        let known = processes.lookup(&pid.to_ne_bytes(), MapFlags::ANY);
        if !matches!(known, Ok(Some(_))) {
            let _ = self.follow_as(pid, FOLLOWED);
        }
        let _ = processes.delete(&self.parent.to_ne_bytes());
    }

    fn follow_as(&self, pid: u32, how: u32) -> libbpf_rs::Result<()> {
        let Ok(processes) = map(&self.object, "processes") else {
            return Ok(());
        };
        processes.update(&pid.to_ne_bytes(), &how.to_ne_bytes(), MapFlags::ANY)
    }

    /// Whether events are wanted.
    pub fn want(&mut self, wanted: bool) {
        if let Ok(word) = map(&self.object, ".data.wanted") {
            let wanted = u32::from(wanted).to_ne_bytes();
            let _ = word.update(&0_u32.to_ne_bytes(), &wanted, MapFlags::ANY);
        }
    }

    /// Hand out what has been reported, in order of start; how many events that were.
    pub fn poll(&mut self, each: &mut dyn FnMut(Event)) -> usize {
        self.ring.consume_raw();
        let program = |pid| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let program: &dyn Fn(u32) -> PathBuf = &program;
        self.decoder.borrow_mut().drain(program, each)
    }

    /// How many events each probe has lost, of those that have.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let Ok(lost) = map(&self.object, "lost") else {
            return Vec::new();
        };
        let of = |probe: usize| {
            let key = (probe as u32).to_ne_bytes();
            let counts = lost.lookup_percpu(&key, MapFlags::ANY).ok().flatten();
            let counts = counts.unwrap_or_default();
            let number = |bytes: &Vec<u8>| {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                u64::from_ne_bytes(bytes)
            };
            counts.iter().map(number).sum::<u64>()
        };
        let each = PROBE_NAMES.iter().enumerate();
        each.map(|(probe, &name)| (name, of(probe)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Files that are not seen, because the supervisor could not find them: under another root directory, or in other mounts.
    pub fn elsewhere(&self) -> u64 {
        self.decoder.borrow().elsewhere()
    }
}

/// Fills in which system calls are looked at.
fn tell_calls(object: &Object) -> libbpf_rs::Result<()> {
    let Ok(table) = map(object, "calls") else {
        return Ok(());
    };
    for (number, call, _) in calls::table() {
        table.update(&number.to_ne_bytes(), &bytes_of(call), MapFlags::ANY)?;
    }
    Ok(())
}

/// A row as the kernel's side has it.
fn bytes_of(row: call) -> [u8; size_of::<call>()] {
    let [low, high] = row.flags_value.to_ne_bytes();
    [
        row.what, row.fd, row.path, row.at, row.place, row.flags, low, high,
    ]
}

fn map<'object>(object: &'object Object, name: &str) -> Result<libbpf_rs::Map<'object>, String> {
    let mut maps = object.maps();
    maps.find(|map| map.name() == name)
        .ok_or_else(|| format!("the kernel's side has no {name}"))
}
