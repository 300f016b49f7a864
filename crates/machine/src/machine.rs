//! Virtual time: tasks, events, and gates that tasks wait at.
//!
//! One task runs at a time, until it waits. Then the next ready one runs; if there is none, time advances to the next event.
//!
//! Invariant: a task is polled only after the event that it waits for.

use std::cell::{Cell, RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::Spec;
use crate::cache::Cache;
use crate::device::Device;
use crate::processors::{Processors, TaskId};

/// A machine. Clones are the same one.
#[derive(Clone)]
pub struct Machine {
    pub(crate) spec: Rc<Spec>,
    world: Rc<RefCell<World>>,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Wake(TaskId),
    /// The processors have something to do, unless that was said again since.
    Processors(u64),
    /// A request is done.
    Arrived(u64),
    /// The disk model has something to do.
    Disk,
    /// Others take memory.
    Pressure(usize),
}

/// All mutable state.
pub(crate) struct World {
    pub(crate) now: u64,
    /// Events so far: those of one time come in the order in which they were entered.
    entered: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    tasks: Vec<Option<Task>>,
    ready: VecDeque<TaskId>,
    current: TaskId,
    pub(crate) processors: Processors,
    pub(crate) device: Device,
    pub(crate) cache: Cache,
}

/// Tasks wait here until another task opens it, which releases all of them.
#[derive(Clone, Default)]
pub struct Gate(Rc<RefCell<Vec<TaskId>>>);

impl Machine {
    /// A machine with nothing in memory.
    pub fn new(spec: Spec) -> Self {
        let mut world = World {
            now: 0,
            entered: 0,
            events: BinaryHeap::new(),
            tasks: Vec::new(),
            ready: VecDeque::new(),
            current: 0,
            processors: Processors::new(&spec.processors),
            device: Device::new(&spec.device),
            cache: Cache::new(spec.memory),
        };
        for (number, (at, _)) in spec.pressure.iter().enumerate() {
            world.at(*at, Event::Pressure(number));
        }
        Self {
            spec: Rc::new(spec),
            world: Rc::new(RefCell::new(world)),
        }
    }

    pub(crate) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    /// The machine's specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Virtual time, in ns since the machine was made.
    pub fn now(&self) -> u64 {
        self.world().now
    }

    /// Processor time used so far, in ns.
    pub fn spent(&self) -> u64 {
        self.world().processors.spent()
    }

    /// The device's counts so far.
    pub fn done(&self) -> crate::device::Done {
        self.world().device.done()
    }

    /// Bytes that the device was asked for so far.
    pub fn device_bytes(&self) -> u64 {
        self.world().device.bytes()
    }

    /// Runs a task, and all tasks that it starts, until it ends; returns its result. Then all other tasks are dropped.
    ///
    /// # Panics
    /// When nothing can happen any more.
    pub fn run<T: 'static>(&self, main: impl Future<Output = T> + 'static) -> T {
        let result = Rc::new(Cell::new(None));
        let returned = Rc::clone(&result);
        self.spawn(async move { returned.set(Some(main.await)) });
        loop {
            self.poll_ready();
            if let Some(result) = result.take() {
                // Each has the machine.
                let tasks = std::mem::take(&mut self.world().tasks);
                drop(tasks);
                return result;
            }
            assert!(self.step(), "every task waits for another");
        }
    }

    fn poll_ready(&self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let (id, task) = {
                let mut world = self.world();
                let Some(id) = world.ready.pop_front() else {
                    return;
                };
                world.current = id;
                let task = world.tasks.get_mut(id).and_then(Option::take);
                (id, task)
            };
            if let Some(mut task) = task
                && task.as_mut().poll(&mut context).is_pending()
            {
                self.world().tasks[id] = Some(task);
            }
        }
    }

    /// Advances time to the next event; false if there is none.
    fn step(&self) -> bool {
        let mut world = self.world();
        let Some(Reverse((at, _, event))) = world.events.pop() else {
            return false;
        };
        world.now = at;
        match event {
            Event::Wake(task) => world.ready.push_back(task),
            Event::Processors(said) => world.processed(Some(said)),
            Event::Arrived(request) => world.arrived(request),
            Event::Disk => {
                for request in world.device.advance(at) {
                    world.arrived(request);
                }
                world.await_disk();
            }
            Event::Pressure(number) => {
                let share = self.spec.pressure[number].1;
                world.cache.press(share);
            }
        }
        true
    }

    /// Starts a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut world = self.world();
        world.tasks.push(Some(Box::pin(task)));
        let id = world.tasks.len() - 1;
        world.ready.push_back(id);
    }

    /// Sleeps for this many ns.
    pub async fn sleep(&self, ns: u64) {
        {
            let mut world = self.world();
            let (at, task) = (world.now + ns, world.current);
            world.at(at, Event::Wake(task));
        }
        park().await;
    }

    /// Uses a processor for this many ns of one with speed 1.
    pub async fn compute(&self, ns: u64) {
        if ns == 0 {
            return;
        }
        {
            let mut world = self.world();
            let (now, task) = (world.now, world.current);
            // No other task can run meanwhile.
            if world.ready.is_empty()
                && let Some(took) = world.processors.alone(now, ns)
                && world.next_event().is_none_or(|next| now + took < next)
            {
                world.processors.took(ns, took);
                world.now += took;
                return;
            }
            world.processors.start(now, task, ns);
            world.processed(None);
        }
        park().await;
    }

    /// Waits until a gate is opened.
    pub async fn wait(&self, gate: &Gate) {
        let task = self.world().current;
        gate.0.borrow_mut().push(task);
        park().await;
    }

    /// Opens a gate: all who wait there go on.
    pub fn open_gate(&self, gate: &Gate) {
        let mut world = self.world();
        world.ready.extend(gate.0.borrow_mut().drain(..));
    }

    /// The task that runs.
    pub(crate) fn current(&self) -> TaskId {
        self.world().current
    }
}

impl World {
    /// Enters an event.
    pub(crate) fn at(&mut self, at: u64, event: Event) {
        self.entered += 1;
        self.events.push(Reverse((at, self.entered, event)));
    }

    fn next_event(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Continues the tasks whose processor time is over.
    fn processed(&mut self, said: Option<u64>) {
        if said.is_some_and(|said| said != self.processors.said()) {
            return;
        }
        self.processors.advance(self.now, &mut self.ready);
        if let Some((at, said)) = self.processors.next(self.now) {
            self.at(at, Event::Processors(said));
        }
    }

    /// A request is done: its pages are in memory, and those who waited go on.
    fn arrived(&mut self, request: u64) {
        let done = self.device.arrived(request);
        for (file, pages) in done.parts {
            self.cache.arrived(file, pages);
        }
        self.ready.extend(done.waiters);
    }

    /// Sends a request for these pages, `at` this page of the device. Its number.
    pub(crate) fn send(&mut self, at: u64, parts: Vec<crate::device::Part>) -> u64 {
        let request = self.device.send(self.now, at, parts);
        match self.device.due(request) {
            Some(due) => self.at(due, Event::Arrived(request)),
            None => self.await_disk(),
        }
        request
    }

    fn await_disk(&mut self) {
        if let Some(at) = self.device.next_event() {
            self.at(at.max(self.now), Event::Disk);
        }
    }
}

/// Waits until the task is made ready.
pub(crate) fn park() -> impl Future<Output = ()> {
    let mut is_parked = false;
    std::future::poll_fn(move |_| {
        if is_parked {
            return Poll::Ready(());
        }
        is_parked = true;
        Poll::Pending
    })
}
