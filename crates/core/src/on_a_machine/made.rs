//! Random programs and machines.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use foreread_machine::{Costs, DeviceSpec, FileSpec, Op, ProcessorSpec, Program, Spec};
use proptest::prelude::*;

use super::served::Serving;

/// Large files, and pages of each.
const LARGE: u32 = 2;
const LARGE_PAGES: u64 = 1 << 15;
/// Small files, and how many there are in a folder.
const SMALL: u32 = 2000;
const IN_FOLDER: u32 = 60;
/// First page of the files on the device, behind inodes and folders.
const FILES_AT: u64 = 1 << 21;

/// In which way a part of a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    InOrder,
    Backward,
    Scattered,
    Strided,
    Nested,
    SmallFiles,
    Heads,
    Names,
    MapInOrder,
    MapScattered,
}

/// A part of a program.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) way: Way,
    pub(super) count: u64,
    /// Pages of one read.
    pub(super) pages: u64,
    /// Computing before each access, in ns.
    pub(super) compute: u64,
    pub(super) seed: u64,
}

/// A generated program.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) phases: Vec<Phase>,
    pub(super) threads: usize,
    pub(super) maps_at_random: bool,
}

impl Made {
    pub(super) fn program(&self) -> Program {
        let mut threads = vec![Vec::new(); self.threads];
        for phase in &self.phases {
            for (number, op) in phase.ops().into_iter().enumerate() {
                let thread = &mut threads[number % self.threads];
                if phase.compute > 0 {
                    thread.push(Op::Compute(phase.compute));
                }
                thread.push(op);
            }
        }
        Program {
            threads,
            maps_at_random: self.maps_at_random,
        }
    }

    /// Another program: one access in this many is elsewhere.
    pub(super) fn other(&self, one_in: u64) -> Program {
        let mut program = self.program();
        let mut noise = 1;
        for op in program.threads.iter_mut().flatten() {
            noise = mixed(noise);
            if noise.is_multiple_of(one_in) {
                op.goes_elsewhere(mixed(noise));
            }
        }
        program
    }
}

trait Elsewhere {
    fn goes_elsewhere(&mut self, noise: u64);
}

impl Elsewhere for Op {
    fn goes_elsewhere(&mut self, noise: u64) {
        match self {
            Op::Compute(_) => {}
            Op::Stat(file) | Op::Small(file, _) => *file = LARGE + noise as u32 % SMALL,
            Op::Read(_, pages) => {
                let len = pages.end - pages.start;
                let start = noise % (LARGE_PAGES - len);
                *pages = start..start + len;
            }
            Op::Touch(_, page) => *page = noise % LARGE_PAGES,
        }
        if let Op::Small(file, pages) = self {
            *pages = small_pages(*file).min(*pages);
        }
    }
}

impl Phase {
    fn ops(&self) -> Vec<Op> {
        (0..self.count).map(|n| self.op(n)).collect()
    }

    fn op(&self, n: u64) -> Op {
        let noise = mixed(self.seed.wrapping_mul(1 << 20).wrapping_add(n));
        let large = (self.seed % u64::from(LARGE)) as u32;
        let room = LARGE_PAGES - self.pages;
        let first = self.seed % (LARGE_PAGES / 4);
        let read = |page: u64| {
            let page = page % room;
            Op::Read(large, page..page + self.pages)
        };
        let file = |n: u64| LARGE + (n % u64::from(SMALL)) as u32;
        match self.way {
            Way::InOrder => read(first + n * self.pages),
            Way::Backward => read(first + (self.count - n) * self.pages),
            Way::Scattered => read(noise),
            Way::Strided => read(first + n * (self.pages + 1 + self.seed % 13)),
            Way::Nested => read(first + n / 8 * 96 + n % 8 * 5),
            Way::SmallFiles => {
                let file = file(self.seed + n);
                Op::Small(file, small_pages(file))
            }
            Way::Heads => Op::Small(file(noise), 1),
            Way::Names => Op::Stat(file(self.seed + n)),
            Way::MapInOrder => Op::Touch(large, (first + n) % LARGE_PAGES),
            Way::MapScattered => Op::Touch(large, noise % LARGE_PAGES),
        }
    }
}

/// Pages of a small file.
fn small_pages(file: u32) -> u64 {
    if file.is_multiple_of(29) {
        20
    } else {
        1 + mixed(u64::from(file)) % 3
    }
}

pub(super) fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 27)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ (n >> 31)) >> 8
}

/// The device's files.
pub(super) fn files() -> Arc<[FileSpec]> {
    static FILES: LazyLock<Arc<[FileSpec]>> = LazyLock::new(|| laid_out().into());
    Arc::clone(&FILES)
}

fn laid_out() -> Vec<FileSpec> {
    let mut at = FILES_AT;
    let mut files = Vec::new();
    for file in 0..LARGE + SMALL {
        let pages = if file < LARGE {
            LARGE_PAGES
        } else {
            small_pages(file)
        };
        files.push(FileSpec {
            ino: u64::from(file) + 12,
            folder: u64::from(file / IN_FOLDER),
            pages,
            at,
        });
        at += pages;
    }
    files
}

/// A machine, and how a program is served on it.
#[derive(Clone, Debug)]
pub(super) struct Where {
    /// The machine, but for its files: they are always the same ([`files`]).
    pub(super) spec: Spec,
    pub(super) serving: Serving,
    /// Share of the program's reads that is in memory at the start, in percent.
    pub(super) warm: u64,
}

impl Where {
    /// Two idle processors, an SSD and much memory.
    pub(super) fn steady() -> Self {
        let memory = 1 << 20;
        Self {
            spec: Spec {
                processors: ProcessorSpec {
                    count: 2,
                    speed: 1.0,
                    quota: None,
                    others: 0,
                },
                device: DeviceSpec {
                    latency: 80_000,
                    depth: 64,
                    bandwidth: 1_000_000_000,
                    queue: 256,
                    stall: 0..0,
                    model: None,
                },
                files: Arc::default(),
                memory,
                read_ahead: 32,
                pressure: Vec::new(),
                costs: Costs::default(),
            },
            serving: Serving {
                delay: 1_000_000,
                room: 16_384,
                descriptors: 1024,
                memory,
                on_trial: false,
            },
            warm: 0,
        }
    }
}

/// Any program.
pub(super) fn programs() -> impl Strategy<Value = Made> {
    const WAYS: [Way; 10] = [
        Way::InOrder,
        Way::Backward,
        Way::Scattered,
        Way::Strided,
        Way::Nested,
        Way::SmallFiles,
        Way::Heads,
        Way::Names,
        Way::MapInOrder,
        Way::MapScattered,
    ];
    let compute = prop_oneof![Just(0), 1_000..100_000u64];
    let pages = prop_oneof![3 => Just(1), 1 => 1..16u64];
    let phase = (
        prop::sample::select(&WAYS[..]),
        20..1200u64,
        pages,
        compute,
        0..1000u64,
    );
    let phase = phase.prop_map(|(way, count, pages, compute, seed)| Phase {
        way,
        count,
        pages,
        compute,
        seed,
    });
    let threads = prop_oneof![3 => Just(1), 1 => 2..8usize];
    let phases = prop::collection::vec(phase, 1..3);
    (phases, threads, any::<bool>()).prop_map(|(phases, threads, maps_at_random)| Made {
        phases,
        threads,
        maps_at_random,
    })
}

fn processors() -> impl Strategy<Value = ProcessorSpec> {
    let quota = prop_oneof![3 => Just(None), 1 => (0.4..1.5f64).prop_map(Some)];
    let others = prop_oneof![3 => Just(0), 1 => 1..3u64];
    (1..3u64, 0.4..2.0f64, quota, others).prop_map(|(count, speed, quota, others)| ProcessorSpec {
        count,
        speed,
        quota,
        others,
    })
}

fn devices() -> impl Strategy<Value = DeviceSpec> {
    let latency = prop::sample::select(vec![30_000, 60_000, 80_000, 150_000, 300_000, 700_000]);
    let depth = prop::sample::select(vec![4, 16, 64, 256]);
    let bandwidth = prop::sample::select(vec![125_000_000, 500_000_000, 2_000_000_000]);
    let stall = prop_oneof![4 => Just(0..0), 1 => stalls()];
    let queue = prop::sample::select(vec![64, 128, 256]);
    (latency, depth, bandwidth, queue, stall).prop_map(
        |(latency, depth, bandwidth, queue, stall)| DeviceSpec {
            latency,
            depth,
            bandwidth,
            queue,
            stall,
            model: None,
        },
    )
}

fn stalls() -> impl Strategy<Value = Range<u64>> {
    (0..50_000_000u64, 1_000_000..100_000_000u64).prop_map(|(from, long)| from..from + long)
}

/// Any machine.
pub(super) fn machines() -> impl Strategy<Value = Where> {
    let pressure = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec((0..100_000_000u64, 1..60u64), 1..4),
    ];
    let memory = prop_oneof![4 => Just(1 << 30), 1 => 600..6000u64];
    let read_ahead = prop_oneof![4 => Just(32), 1 => Just(2048u64)];
    let warm = prop_oneof![4 => Just(0), 1 => 0..101u64];
    let descriptors = prop_oneof![4 => Just(1024), 1 => 4..40u64];
    let room = prop_oneof![4 => Just(16_384), 1 => 16..512usize];
    let delay = 250_000..4_000_000u64;
    let spec = (processors(), devices(), memory, read_ahead, pressure);
    (spec, warm, descriptors, room, delay).prop_map(
        |((processors, device, memory, read_ahead, pressure), warm, descriptors, room, delay)| {
            Where {
                spec: Spec {
                    processors,
                    device,
                    files: Arc::default(),
                    memory,
                    read_ahead,
                    pressure,
                    costs: Costs::default(),
                },
                serving: Serving {
                    delay,
                    room,
                    descriptors,
                    memory,
                    on_trial: false,
                },
                warm,
            }
        },
    )
}
