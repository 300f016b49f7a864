//! The threads of a backend: for each device some that give hints, one that answers questions, and some that look names up.
//!
//! Invariants: a region of a file always goes to the same thread, which keeps its jobs in order. No thread works for two devices while
//! there are few of them, so that a device that does not answer delays no other. A thread is started by its first job, because a program
//! that finds everything in memory needs none.
//!
//! Data flow: [`PageCache`](super::PageCache) → a lane's channel → [`Worker`] or [`Asker`].

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::{FileId, Kind};

use super::ask::Asker;
use super::context::Context;
use super::names::{self, Lookers, Name};
use super::worker::{Job, Worker};
use crate::Question;

/// Threads that give hints, for each device. Mostly they wait for it to open a file, so there are more than
/// processors, and few enough to stay out of the program's way: 3,000 hints took two threads 36 ms of processor time,
/// four 48 ms, eight 60 ms.
const WORKERS: usize = 4;
/// Number of devices with threads of their own; further devices share theirs. A program that reads from more at the same time was not met.
const CREWS: usize = 8;
/// Pages of a file per worker (1 MiB, the largest request). So a small file is opened once, and several threads make the requests for a
/// large one, which take 8 µs each on a virtual disk. One thread made at most 100,000 requests a second.
pub(super) const REGION: u64 = 256;
/// Time for which the end of a backend waits for its threads, at most: within the 50 ms after which the end of a run becomes noticeable.
const PARTING: Duration = Duration::from_millis(20);

/// The channels to the started workers, for other senders of jobs: without a thread, no job would be received.
#[derive(Clone, Debug, Default)]
pub(super) struct Started(Arc<Mutex<Vec<Sender<Job>>>>);

impl Started {
    fn lock(&self) -> MutexGuard<'_, Vec<Sender<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all workers close a file and forget it.
    pub(super) fn forget(&self, file: FileId) {
        for jobs in &*self.lock() {
            // A worker that has ended has closed the file.
            let _ = jobs.send(Job::Forget(file));
        }
    }
}

/// The way to one thread.
struct Lane<T> {
    jobs: Sender<T>,
    state: LaneThread<T>,
}

enum LaneThread<T> {
    Unstarted(Receiver<T>),
    Running(JoinHandle<()>),
    /// No thread could be had. Its jobs are lost, and nothing else.
    Failed,
}

impl<T: Send + 'static> Lane<T> {
    fn new() -> Self {
        let (jobs, inbox) = channel();
        Self {
            jobs,
            state: LaneThread::Unstarted(inbox),
        }
    }

    /// Passes a job on, and starts the thread if necessary. True if it was started now.
    fn tell(
        &mut self,
        job: T,
        name: &str,
        work: impl FnOnce(Receiver<T>) + Send + 'static,
    ) -> bool {
        // A thread that is gone takes its jobs with it, and nothing else.
        let _ = self.jobs.send(job);
        if !matches!(self.state, LaneThread::Unstarted(_)) {
            return false;
        }
        if let LaneThread::Unstarted(inbox) = std::mem::replace(&mut self.state, LaneThread::Failed)
            && let Ok(thread) = foreread_sys::thread::builder(name).spawn(move || work(inbox))
        {
            self.state = LaneThread::Running(thread);
        }
        true
    }

    fn thread(self) -> Option<JoinHandle<()>> {
        match self.state {
            LaneThread::Running(thread) => Some(thread),
            LaneThread::Unstarted(_) | LaneThread::Failed => None,
        }
    }
}

/// The threads of one device.
struct Crew {
    workers: Vec<Lane<Job>>,
    asker: Lane<Question>,
    lookers: Lookers,
}

/// All threads.
pub(super) struct Lanes {
    crews: Vec<Crew>,
    /// By device number, as files are known to have it.
    of: HashMap<u64, usize>,
    started: Started,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            crews: Vec::new(),
            of: HashMap::new(),
            started: Started::default(),
        }
    }

    pub(super) fn started(&self) -> Started {
        self.started.clone()
    }

    fn crew(&mut self, dev: u64) -> (usize, &mut Crew) {
        let n = *self.of.entry(dev).or_insert_with(|| {
            if self.crews.len() == CREWS {
                return (dev % CREWS as u64) as usize;
            }
            self.crews.push(Crew {
                workers: (0..WORKERS).map(|_| Lane::new()).collect(),
                asker: Lane::new(),
                lookers: Lookers::default(),
            });
            self.crews.len() - 1
        });
        (n, &mut self.crews[n])
    }

    /// Give the worker who has this page of a file a job.
    pub(super) fn tell(&mut self, context: &Context, file: FileId, page: u64, job: Job) {
        let (dev, ino) = context.files.place(file);
        let (number, crew) = self.crew(dev);
        // Small files that are kin have one worker.
        let kin = names::block(ino).unwrap_or(u64::from(file.0));
        let n = (kin.wrapping_add(page / REGION) % WORKERS as u64) as usize;
        let name = format!("foreread-hint-{}", number * WORKERS + n);
        let lane = &mut crew.workers[n];
        let new = matches!(lane.state, LaneThread::Unstarted(_)).then(|| Worker::new(context));
        let work = move |inbox| {
            if let Some(worker) = new {
                worker.run(&inbox);
            }
        };
        if lane.tell(job, &name, work) {
            let jobs = lane.jobs.clone();
            self.started.lock().push(jobs);
        }
    }

    /// Have names looked up.
    pub(super) fn look(&mut self, context: &Context, names: &[(FileId, Kind)]) {
        let mut by_crew: HashMap<usize, Vec<Name>> = HashMap::new();
        for &(file, kind) in names {
            let (dev, ino) = context.files.place(file);
            let (number, _) = self.crew(dev);
            let name = Name { file, kind, ino };
            by_crew.entry(number).or_default().push(name);
        }
        for (number, names) in by_crew {
            let name = format!("foreread-look-{number}");
            self.crews[number].lookers.add(context, names, &name);
        }
    }

    /// Ask.
    pub(super) fn ask(&mut self, context: &Context, question: Question) {
        let (number, crew) = self.crew(context.files.place(question.file).0);
        let lane = &mut crew.asker;
        let new = matches!(lane.state, LaneThread::Unstarted(_)).then(|| Asker::new(context));
        let work = move |inbox| {
            if let Some(asker) = new {
                asker.run(&inbox);
            }
        };
        lane.tell(question, &format!("foreread-ask-{number}"), work);
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.started.lock().clear();
        let crews = self.crews.drain(..);
        let threads: Vec<_> = crews
            .flat_map(|crew| {
                let workers = crew.workers.into_iter().filter_map(Lane::thread);
                let lookers = crew.lookers.end();
                let all = workers.chain(crew.asker.thread()).chain(lookers);
                all.collect::<Vec<_>>()
            })
            .collect();
        // A thread that has ended has closed its files, so a caller that waits for that need not check twice. A thread may be inside a call
        // on a blocked device; the process need not wait for it.
        let until = Instant::now() + PARTING;
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(50));
        }
        for thread in threads {
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}
