//! A program: threads, each a list of accesses with computing between them, and the reports while it runs.
//!
//! Data flow: [`Program`] → tasks → the kernel's calls; each call → [`Tap`] → the observer.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Fd, Gate, Machine, Process};

/// Processor time of one report, in ns.
const REPORT: u64 = 120;

/// A step of a thread. Files and pages are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computing, in ns on a processor of speed 1.
    Compute(u64),
    /// Looking a name up.
    Stat(u32),
    /// Opening a file, reading its first pages with one call, and closing it.
    Small(u32, u64),
    /// Reading pages of a file that stays open.
    Read(u32, Range<u64>),
    /// Touching a page of a mapping.
    Touch(u32, u64),
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its threads.
    pub threads: Vec<Vec<Op>>,
    /// True if it uses `MADV_RANDOM` for its mappings.
    pub maps_at_random: bool,
}

/// Report of a call.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread, by number.
    pub thread: u32,
    /// The operation. Computing and touches of mappings are not reported.
    pub op: Op,
    /// When, in ns.
    pub start: u64,
    /// Duration in ns.
    pub took: u64,
}

/// Reports of a program, with a limit of waiting ones: more are lost.
pub struct Tap {
    room: usize,
    events: RefCell<VecDeque<Event>>,
    lost: Cell<u64>,
    is_muted: Cell<bool>,
    /// Files whose read-ahead is switched off.
    random: RefCell<FxHashSet<u32>>,
}

impl Tap {
    /// A tap with room for this many reports.
    pub fn new(room: usize, random: FxHashSet<u32>) -> Rc<Self> {
        Rc::new(Self {
            room,
            events: RefCell::default(),
            lost: Cell::new(0),
            is_muted: Cell::new(false),
            random: RefCell::new(random),
        })
    }

    /// The reports since the last call.
    pub fn take(&self) -> Vec<Event> {
        self.events.borrow_mut().drain(..).collect()
    }

    /// Reports that were lost.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Ends reporting.
    pub fn mute(&self) {
        self.is_muted.set(true);
    }

    /// The kernel is to read ahead for all files again.
    pub fn forget_advice(&self) {
        self.random.borrow_mut().clear();
    }

    fn report(&self, event: Event) {
        let mut events = self.events.borrow_mut();
        if events.len() < self.room {
            events.push_back(event);
        } else {
            self.lost.set(self.lost.get() + 1);
        }
    }
}

impl Program {
    /// Runs it to its end; when that is, in ns since the machine was made.
    pub async fn run(&self, machine: &Machine, process: &Rc<Process>, tap: Option<Rc<Tap>>) -> u64 {
        let (gate, left) = (Gate::default(), Rc::new(Cell::new(self.threads.len())));
        for (number, ops) in self.threads.iter().enumerate() {
            let thread = Thread {
                number: number as u32,
                machine: machine.clone(),
                process: Rc::clone(process),
                tap: tap.clone(),
                open: FxHashMap::default(),
                maps_at_random: self.maps_at_random,
            };
            let (ops, gate, left) = (ops.clone(), gate.clone(), Rc::clone(&left));
            machine.spawn(async move {
                let machine = thread.machine.clone();
                thread.run(ops).await;
                left.set(left.get() - 1);
                machine.open_gate(&gate);
            });
        }
        while left.get() > 0 {
            machine.wait(&gate).await;
        }
        machine.now()
    }
}

struct Thread {
    number: u32,
    machine: Machine,
    process: Rc<Process>,
    tap: Option<Rc<Tap>>,
    open: FxHashMap<u32, Rc<Fd>>,
    maps_at_random: bool,
}

impl Thread {
    async fn run(mut self, ops: Vec<Op>) {
        for op in ops {
            if let Op::Compute(ns) = op {
                self.machine.compute(ns).await;
                continue;
            }
            let tap = self.tap.clone().filter(|tap| !tap.is_muted.get());
            let start = self.machine.now();
            self.call(&op).await;
            // Touches of mappings are not reported.
            if let Some(tap) = tap
                && !matches!(op, Op::Touch(..))
            {
                let took = self.machine.now() - start;
                self.machine.compute(REPORT).await;
                tap.report(Event {
                    thread: self.number,
                    op,
                    start,
                    took,
                });
            }
        }
    }

    async fn call(&mut self, op: &Op) {
        match op {
            Op::Compute(_) => {}
            Op::Stat(file) => {
                self.machine.stat(*file).await;
            }
            Op::Small(file, pages) => {
                let fd = self.machine.open(&self.process, *file).await;
                if let Some(fd) = fd {
                    fd.read(0..*pages).await;
                }
            }
            Op::Read(file, pages) => {
                if let Some(fd) = self.open(*file).await {
                    let tap = self.tap.as_ref();
                    fd.advise_random(tap.is_some_and(|tap| tap.random.borrow().contains(file)));
                    fd.read(pages.clone()).await;
                }
            }
            Op::Touch(file, page) => {
                if let Some(fd) = self.open(*file).await {
                    fd.touch(*page, self.maps_at_random).await;
                }
            }
        }
    }

    async fn open(&mut self, file: u32) -> Option<Rc<Fd>> {
        if let Some(fd) = self.open.get(&file) {
            return Some(Rc::clone(fd));
        }
        let fd = Rc::new(self.machine.open(&self.process, file).await?);
        self.open.insert(file, Rc::clone(&fd));
        Some(fd)
    }
}
