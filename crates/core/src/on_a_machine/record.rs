//! Makes records of programs on a model of a machine, as an observed first run does.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use foreread_machine::{Event, FileSpec, Machine, Op, PAGE, Process, Program, Tap};
use foreread_plan::format::{PartSample, Sample};
use foreread_plan::{
    Access, Advice, Expected, Extent, FileId, FileMeta, Kind, Name, Odds, Pattern, Summary,
    ThreadId,
};
use foreread_sources::goes_on;
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) type Files = BTreeMap<FileId, FileMeta>;

/// Interval at which a recorded program is polled, in ns.
const LOOK: u64 = 4_000_000;
/// Number of reads after which a file counts as read in no order, if less than one in this many continues the previous one; as in
/// `crates/run/src/record/orders.rs`.
const ENOUGH: u64 = 64;
const SHARE: u64 = 10;
/// Places of the sample.
const PLACES: usize = 256;

/// A record.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) accesses: Rc<[Access]>,
    pub(super) files: Arc<Files>,
    pub(super) summary: Summary,
    pub(super) sample: Sample,
}

impl Record {
    /// The record of a run of this program on this machine.
    pub(super) fn of(machine: &Machine, program: &Program) -> Self {
        let (main, program) = (machine.clone(), program.clone());
        let accesses = machine.run(async move {
            let process = Process::new(u64::MAX);
            let tap = Tap::new(usize::MAX, FxHashSet::default());
            let looks = Looks::default();
            main.spawn(looks.clone().look(main.clone(), Rc::clone(&process)));
            program.run(&main, &process, Some(Rc::clone(&tap))).await;
            let mut all: Vec<_> = tap.take().iter().flat_map(accesses).collect();
            all.extend(looks.0.take());
            all.extend(touches(process.touched(), main.now()));
            all.sort_by_key(|access| access.start);
            all
        });
        let summary = Summary {
            accesses: accesses.len() as u64,
            wall_ns: machine.now(),
            read_ns: accesses.iter().map(|access| access.took).sum(),
            cpu_ns: Some(machine.spent()),
            device_bytes: Some(machine.device_bytes()),
            ..Summary::default()
        };
        let files = &machine.spec().files;
        let files = files.iter().zip(0..);
        let mut files: Files = files
            .map(|(spec, number)| (FileId(number), meta(spec, number)))
            .collect();
        for file in at_random(&accesses) {
            files
                .entry(file)
                .and_modify(|meta| meta.advice = Advice::Random);
        }
        Self {
            sample: sample(&accesses),
            accesses: accesses.into(),
            files: Arc::new(files),
            summary,
        }
    }

    /// Files that were read in no order.
    pub(super) fn random(&self) -> FxHashSet<u32> {
        let random = self.files.iter();
        let random = random.filter(|(_, meta)| meta.advice == Advice::Random);
        random.map(|(file, _)| file.0).collect()
    }
}

/// Touches of mapped pages, as looks find them.
#[derive(Clone, Default)]
struct Looks(Rc<std::cell::RefCell<Vec<Access>>>);

impl Looks {
    async fn look(self, machine: Machine, process: Rc<Process>) {
        loop {
            machine.sleep(LOOK).await;
            let found = touches(process.touched(), machine.now());
            self.0.borrow_mut().extend(found);
        }
    }
}

/// A file as a record has it.
pub(super) fn meta(spec: &FileSpec, number: u32) -> FileMeta {
    FileMeta::regular(
        format!("/{}/{number}", spec.folder),
        (0x801, spec.ino),
        spec.pages * PAGE,
        0,
    )
}

/// A report as accesses.
pub(super) fn accesses(event: &Event) -> Vec<Access> {
    let one = |file: u32, kind, pages: Range<u64>| Access {
        file: FileId(file),
        extent: Extent::new(pages.start * PAGE, (pages.end - pages.start) * PAGE),
        thread: ThreadId(event.thread),
        kind,
        start: event.start,
        took: event.took,
    };
    match &event.op {
        Op::Compute(_) => Vec::new(),
        Op::Stat(file) => vec![one(*file, Kind::Stat, 0..0)],
        Op::Small(file, pages) => vec![
            Access {
                took: 0,
                ..one(*file, Kind::Open, 0..0)
            },
            one(*file, Kind::Read, 0..*pages),
        ],
        Op::Read(file, pages) => vec![one(*file, Kind::Pread, pages.clone())],
        Op::Touch(file, page) => vec![one(*file, Kind::Touch, *page..page + 1)],
    }
}

/// Pages that a look finds mapped: in no order but that of their numbers, and with those that were mapped around them.
pub(super) fn touches(mut found: Vec<(u32, u64)>, now: u64) -> Vec<Access> {
    found.sort_unstable();
    let mut out: Vec<Access> = Vec::new();
    for (file, page) in found {
        match out.last_mut() {
            Some(last) if last.file.0 == file && last.extent.end() == page * PAGE => {
                last.extent.len += PAGE;
            }
            _ => out.push(Access {
                file: FileId(file),
                extent: Extent::new(page * PAGE, PAGE),
                thread: ThreadId(0),
                kind: Kind::Touch,
                start: now,
                took: 0,
            }),
        }
    }
    out
}

fn at_random(accesses: &[Access]) -> Vec<FileId> {
    // By file: reads, those that go on from the last, and where that ended.
    let mut orders: FxHashMap<FileId, (u64, u64, u64)> = FxHashMap::default();
    let reads = accesses.iter();
    let reads = reads.filter(|one| one.kind.reads() && one.kind != Kind::Touch);
    for access in reads {
        let order = orders.entry(access.file).or_default();
        order.0 += 1;
        order.1 += u64::from(goes_on(order.2, access.extent.offset));
        order.2 = access.extent.end();
    }
    let random = orders.into_iter();
    let random =
        random.filter(|(_, (reads, onward, _))| *reads >= ENOUGH && onward * SHARE < *reads);
    random.map(|(file, _)| file).collect()
}

fn sample(accesses: &[Access]) -> Sample {
    let mut part = PartSample::default();
    for access in accesses
        .iter()
        .step_by(accesses.len().div_ceil(PLACES).max(1))
    {
        let (file, thread) = (access.file, access.thread);
        if access.kind.names() {
            part.names.push(Name {
                file,
                kind: access.kind,
                before: 0,
            });
        } else {
            part.expected.push(Expected {
                file,
                pages: access.extent.pages(),
                thread,
                pattern: Pattern::Scattered,
                odds: Odds::SURE,
            });
        }
    }
    Sample { parts: vec![part] }
}
