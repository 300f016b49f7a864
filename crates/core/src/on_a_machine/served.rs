//! A program served on a model of a machine: the real [`Fetching`], [`Worker`], [`Wants`], [`ReadsSeen`] and [`Look`], driven by tasks in
//! place of threads.
//!
//! Data flow: record → [`Wants`] → [`Fetching`] → [`Worker`] → the machine; reports of the program → [`ReadsSeen`] → [`Fetching`].

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use foreread_machine::{Fd, Gate, Machine, PAGE, Process, Program, Tap};
use foreread_plan::{Access, FileId, FileMeta, Kind};
use foreread_sys::file::FileFacts;

use super::record::{self, Record};
use crate::account::{Account, ReadsSeen};
use crate::cold::{Look, Memory};
use crate::fetch::{Fetching, Next, PARTING};
use crate::pages::Planned;
use crate::price::Sight;
use crate::system::{Kept, System};
use crate::wants::{JOINED, Trace, Wants};
use crate::worker::{Done, Worker};

/// Processor time of an observed run's start, in ns on a processor of speed 1: half before the program starts, half at its end.
pub(super) const START: u64 = 4_000_000;
/// The same for a run that is left alone.
const START_ALONE: u64 = 300_000;
/// Processor time of foreread's own, in ns: for each access of a record, each report, each look at mapped pages, each thread that is
/// started, and each file that is opened beyond the opening itself.
const ACCESS: u64 = 150;
const REPORT: u64 = 300;
const SAMPLE: u64 = 10_000;
const THREAD: u64 = 20_000;
const OPEN: u64 = 4_000;

/// Settings of a served run.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    /// Delay of reports, in ns.
    pub(super) delay: u64,
    /// Room for reports; more are lost.
    pub(super) room: usize,
    /// Files that foreread may have open.
    pub(super) descriptors: u64,
    /// Free memory as foreread counts it, in pages.
    pub(super) memory: u64,
    /// True if the record is another command's.
    pub(super) on_trial: bool,
}

/// Results of a served run.
#[derive(Debug)]
pub(super) struct Served {
    /// From start to end, in ns.
    pub(super) took: u64,
    /// `None` where the program was left alone.
    pub(super) account: Option<Account>,
}

/// Serves a program by a record.
pub(super) fn serve(
    machine: &Machine,
    program: &Program,
    record: &Record,
    how: &Serving,
) -> Served {
    let (main, program, record) = (machine.clone(), program.clone(), record.clone());
    let how = how.clone();
    machine.run(async move {
        let looked = Look::by(&record.sample, &*record.files, &mut &main);
        if !how.on_trial && !looked.pays(&record.summary, main.spec().processors.count) {
            main.compute(START_ALONE).await;
            let took = program.run(&main, &Process::new(u64::MAX), None).await;
            return Served {
                took,
                account: None,
            };
        }
        main.compute(START / 2).await;
        let session = Session::start(&main, &record, &how);
        let tap = Tap::new(how.room, record.random());
        let process = Process::new(u64::MAX);
        session.observe(Rc::clone(&tap), Rc::clone(&process), how.delay);
        program.run(&main, &process, Some(Rc::clone(&tap))).await;
        session.see(&tap, &process).await;
        if tap.lost() > 0 {
            session.seen.borrow_mut().is_unobserved = true;
        }
        let account = session.finish().await;
        main.compute(START / 2).await;
        Served {
            took: main.now(),
            account: Some(account),
        }
    })
}

/// State shared by the tasks.
#[derive(Clone)]
struct Session {
    machine: Machine,
    files: Arc<record::Files>,
    process: Rc<Process>,
    state: Rc<RefCell<Fetching>>,
    planned: Rc<Mutex<Planned>>,
    seen: Rc<RefCell<ReadsSeen>>,
    /// Opens when there are wants, room for wants, room for pages, or an end.
    more: Gate,
    room: Gate,
}

impl Session {
    fn start(machine: &Machine, record: &Record, how: &Serving) -> Self {
        let trial = how.on_trial.then_some(JOINED);
        let session = Self {
            machine: machine.clone(),
            files: Arc::clone(&record.files),
            process: Process::new(how.descriptors),
            state: Rc::new(RefCell::new(Fetching::new(how.memory, trial))),
            planned: Rc::default(),
            seen: Rc::default(),
            more: Gate::default(),
            room: Gate::default(),
        };
        machine.spawn(session.clone().want(record.accesses.clone()));
        session
    }

    fn state(&self) -> RefMut<'_, Fetching> {
        self.state.borrow_mut()
    }

    /// Makes wants of the record.
    async fn want(self, accesses: Rc<[Access]>) {
        let taken = Rc::new(Cell::new(0));
        let list = List {
            accesses,
            taken: Rc::clone(&taken),
        };
        let mut wants = Wants::new(list, &*self.files);
        let (mut batch, mut known) = (Vec::new(), 0);
        while wants.next(&self.planned, &mut batch) {
            let count = taken.get() - known;
            known = taken.get();
            self.machine.compute(ACCESS * count as u64).await;
            while !self.state().has_room() {
                self.machine.wait(&self.room).await;
            }
            if self.state().is_done() {
                return;
            }
            self.state().add(&mut batch, &*self.files);
            self.start_one();
            self.machine.open_gate(&self.more);
        }
        self.state().complete();
        self.machine.open_gate(&self.more);
    }

    /// Starts one more thread if it has something to do.
    fn start_one(&self) {
        if self.state().wants_thread() {
            self.state().has_started();
            self.machine.spawn(self.clone().work());
        }
    }

    /// A thread, to its end.
    async fn work(self) {
        self.machine.compute(THREAD).await;
        let system = Modelled {
            machine: self.machine.clone(),
            process: Rc::clone(&self.process),
        };
        let mut worker = Worker::new(Arc::clone(&self.files) as _, system);
        let mut done: Option<Done> = None;
        loop {
            if let Some(done) = done.take()
                && self.state().enter(done)
            {
                self.machine.open_gate(&self.more);
                break;
            }
            let next = self.state().next();
            let gate = match next {
                Next::End => break,
                Next::Work(task) => {
                    self.machine.open_gate(&self.room);
                    self.start_one();
                    done = Some(worker.serve(task).await);
                    continue;
                }
                Next::AwaitRoom => &self.room,
                Next::AwaitWants => &self.more,
            };
            worker.let_go();
            self.machine.wait(gate).await;
        }
        worker.let_go();
    }

    /// Takes reports until the program has ended or nothing is left to observe.
    fn observe(&self, tap: Rc<Tap>, process: Rc<Process>, delay: u64) {
        let session = self.clone();
        self.machine.spawn(async move {
            loop {
                session.machine.sleep(delay).await;
                session.see(&tap, &process).await;
                let (is_idle, has_left) = {
                    let seen = session.seen.borrow();
                    (seen.is_idle(), seen.has_left)
                };
                if has_left {
                    tap.forget_advice();
                } else if is_idle && session.state().is_done() {
                    session.seen.borrow_mut().is_unobserved = true;
                    tap.mute();
                    return;
                }
            }
        });
    }

    /// Takes the available reports.
    async fn see(&self, tap: &Tap, process: &Process) {
        let events = tap.take();
        self.machine
            .compute(SAMPLE + REPORT * events.len() as u64)
            .await;
        let mut accesses: Vec<_> = events.iter().flat_map(record::accesses).collect();
        accesses.extend(record::touches(process.touched(), self.machine.now()));
        for access in accesses {
            if access.kind.names() {
                // The others are not reported.
                if !access.waited() {
                    continue;
                }
                self.seen.borrow_mut().named(access.file);
            } else {
                self.read(&access);
            }
        }
    }

    fn read(&self, access: &Access) {
        let (file, pages) = (access.file, access.extent.pages());
        let planned = self.planned.lock().unwrap();
        let how = (access.waited(), 1);
        let mut new = Vec::new();
        self.state().read.fresh(file, pages.clone(), &mut new);
        let is_complete = self.state().is_complete();
        let mut seen = self.seen.borrow_mut();
        let news = seen.read(file, (pages, &new), how, &planned, is_complete);
        if news.passed > 0 && self.state().passed(news.passed) {
            self.machine.open_gate(&self.room);
        }
        match news.holds {
            Some(true) if self.state().trust() => self.machine.open_gate(&self.room),
            Some(false) => self.stop(),
            _ => {}
        }
    }

    fn stop(&self) {
        self.state().stop();
        self.machine.open_gate(&self.more);
        self.machine.open_gate(&self.room);
    }

    async fn finish(&self) -> Account {
        self.stop();
        let begun = self.machine.now();
        let parting = PARTING.as_nanos() as u64;
        while !self.state().is_settled() && self.machine.now() - begun < parting {
            self.machine.sleep(parting / 50).await;
        }
        self.state().part();
        let seen = self.seen.borrow();
        seen.account(&mut self.state(), &self.planned.lock().unwrap())
    }
}

/// The record's accesses, and the number of those taken.
struct List {
    accesses: Rc<[Access]>,
    taken: Rc<Cell<usize>>,
}

impl Trace for List {
    fn next(&mut self) -> Option<Access> {
        let next = self.accesses.get(self.taken.get()).copied();
        self.taken
            .set(self.taken.get() + usize::from(next.is_some()));
        next
    }
}

/// The machine as a thread of foreread's uses it.
struct Modelled {
    machine: Machine,
    process: Rc<Process>,
}

/// The machine's number of a file.
fn number(path: &Path) -> u32 {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap()
}

impl System for Modelled {
    type File = Fd;

    async fn open(&mut self, path: &Path) -> io::Result<(Fd, FileFacts)> {
        self.machine.compute(OPEN).await;
        let file = number(path);
        let fd = self.machine.open(&self.process, file).await;
        let fd = fd.ok_or(io::Error::from_raw_os_error(24))?;
        let meta = record::meta(&self.machine.spec().files[file as usize], file);
        let facts = FileFacts {
            dev: meta.dev,
            ino: meta.ino,
            size: meta.size,
            allocated: meta.size,
            mtime_ns: meta.mtime_ns,
            ctime_ns: meta.mtime_ns,
            uid: 0,
        };
        Ok((fd, facts))
    }

    async fn missing(&mut self, file: &Fd, _: &FileFacts, pages: Range<u64>) -> Vec<Range<u64>> {
        file.missing(pages).await
    }

    async fn will_need(&mut self, file: &Fd, bytes: Range<u64>) -> io::Result<()> {
        file.hint(pages(&bytes)).await;
        Ok(())
    }

    async fn arrived(&mut self, file: &Fd, page: u64) {
        file.read(page..page + 1).await;
    }

    async fn will_need_together(&mut self, parts: &[(&Fd, Range<u64>)]) -> bool {
        let parts = parts.iter().map(|(fd, bytes)| (*fd, pages(bytes)));
        self.machine.hint_together(&parts.collect::<Vec<_>>()).await;
        true
    }

    async fn keeps(&mut self, _: &Fd, _: &FileFacts, _: u64) -> Kept {
        Kept::Yes
    }

    async fn look_up(&mut self, path: &Path, _: Kind) -> Option<bool> {
        Some(self.machine.stat(number(path)).await)
    }

    async fn sight(&mut self, _: u64) -> Option<Sight> {
        let done = self.machine.done();
        Some(Sight {
            at: self.machine.now(),
            requests: done.requests,
            pages: done.pages,
            waiting: done.waiting,
        })
    }

    fn let_go(&mut self) {}
}

impl Memory for &Machine {
    fn has(&mut self, file: FileId, meta: &FileMeta, pages: &Range<u64>) -> bool {
        let mut all = pages.clone();
        self.knows(meta) && all.all(|page| Machine::has(self, file.0, page))
    }

    fn knows(&mut self, meta: &FileMeta) -> bool {
        Machine::knows(self, number(&meta.path))
    }
}

fn pages(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE..bytes.end.div_ceil(PAGE)
}
