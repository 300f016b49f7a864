//! The thread that writes a record, and statistics that it collects meanwhile.
//!
//! Data flow: a bounded number of batches → [`Writing`] → [`RecordFile`]; every file's [`ReadingOrder`] and the [`Waits`] go along.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::format::{Place, RecordFile, WriteError};
use foreread_plan::{Advice, FileId, FileMeta, Meta, Role, Sequence, ThreadId, ThreadMeta};
use foreread_sources::signature::Roles;
use foreread_sys::processor::Aside;

use super::lessons::Lessons;
use super::orders::{ReadingOrder, Waits};
use super::sample;

/// Batches the writer may be behind; with [`BATCH`](super::BATCH) bounds them to about 14 MiB.
const BATCHES: usize = 64;
/// Interval at which written accesses are made to survive a kill.
pub(super) const FLUSH: Duration = Duration::from_millis(250);

/// Rare variants are boxed: an item is no larger than a sequence.
pub(crate) enum Item {
    File(FileId, Box<FileMeta>),
    Thread(ThreadId, Box<ThreadMeta>),
    Accesses(Sequence),
}

/// The thread that writes.
pub(super) enum Writer {
    /// There has been no need for it.
    Unstarted,
    Running(Running),
    /// The thread could not be started.
    Failed(anyhow::Error),
}

pub(super) struct Running {
    batches: SyncSender<Vec<Item>>,
    /// Number of batches not yet written.
    behind: Arc<AtomicUsize>,
    pub(super) written: Arc<Mutex<Option<Written>>>,
    thread: JoinHandle<()>,
}

/// The record so far, until it is taken, or the reason for having none.
pub(super) type Written = Result<Writing, WriteError>;

impl Writer {
    pub(super) fn start(place: &Place, meta: &Meta, limit: u64, aside: Aside) -> Self {
        let started = || -> anyhow::Result<_> {
            let writing = Writing::new(RecordFile::create_at(place, meta, limit)?);
            let written = Arc::new(Mutex::new(Some(Ok(writing))));
            let behind = Arc::new(AtomicUsize::new(0));
            let (sender, batches) = sync_channel(BATCHES);
            let shared = (Arc::clone(&written), Arc::clone(&behind));
            let thread = std::thread::Builder::new()
                .name("foreread-record".into())
                .spawn(move || write(&batches, &shared.0, &shared.1, aside))?;
            Ok(Running {
                batches: sender,
                behind,
                written,
                thread,
            })
        };
        match started() {
            Ok(running) => Self::Running(running),
            Err(why) => Self::Failed(why),
        }
    }
}

impl Running {
    pub(super) fn send(&self, batch: Vec<Item>) {
        self.behind.fetch_add(1, Ordering::Relaxed);
        // A writer that has failed reports why at the end.
        let _ = self.batches.send(batch);
    }

    /// Ends the thread and returns the record; `None` if the thread panicked.
    pub(super) fn end(self) -> Option<Written> {
        if self.behind.load(Ordering::Acquire) == 0 {
            // The thread waits for more, and is left waiting: ending it would delay the program's caller by two changes of
            // thread and the return of its memory.
            std::mem::forget(self.batches);
        } else {
            drop(self.batches);
            self.thread.join().ok()?;
        }
        self.written.lock().ok()?.take()
    }
}

/// The writer thread: writes items until the channel is closed.
fn write(
    batches: &Receiver<Vec<Item>>,
    written: &Mutex<Option<Written>>,
    behind: &AtomicUsize,
    mut aside: Aside,
) {
    let mut flush_in = None;
    loop {
        let batch = match flush_in {
            None => batches.recv().map_err(RecvTimeoutError::from),
            Some(wait) => batches.recv_timeout(wait),
        };
        if matches!(batch, Err(RecvTimeoutError::Disconnected)) {
            return;
        }
        aside.keep();
        // Poisoned by nobody but this thread.
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Ok(writing)) = &mut *written else {
            return;
        };
        let wrote = batch.as_ref().map_or(Ok(()), |batch| writing.write(batch));
        match wrote.and_then(|()| writing.flush_in()) {
            Ok(wait) => flush_in = wait,
            Err(why) => *written = Some(Err(why)),
        }
        if batch.is_ok() {
            behind.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The record so far, with statistics gathered on the way.
pub(crate) struct Writing {
    pub(super) file: RecordFile,
    /// When the file was flushed last, and whether nothing was written since.
    flushed_at: Option<Instant>,
    is_flushed: bool,
    /// By number: files are numbered in the order they are met.
    orders: Vec<ReadingOrder>,
    waits: Waits,
    lessons: Lessons,
    /// True if files keep the advice of their definitions.
    keeps_advice: bool,
}

impl Writing {
    pub(crate) fn new(file: RecordFile) -> Self {
        Self {
            file,
            flushed_at: None,
            is_flushed: true,
            orders: Vec::new(),
            waits: Waits::default(),
            lessons: Lessons::default(),
            keeps_advice: false,
        }
    }

    /// The same, but the order of the accesses gives no advice on the files.
    pub(crate) fn with_given_advice(self) -> Self {
        Self {
            keeps_advice: true,
            ..self
        }
    }

    pub(crate) fn write(&mut self, batch: &[Item]) -> Result<(), WriteError> {
        for item in batch {
            match item {
                Item::File(id, meta) => {
                    let meta = FileMeta::clone(meta);
                    self.file.file(*id, meta.clone())?;
                    match self.orders.get_mut(id.0 as usize) {
                        Some(known) => known.meta = meta,
                        None => self.orders.push(ReadingOrder::of(meta)),
                    }
                }
                Item::Thread(id, meta) => self.file.thread(*id, ThreadMeta::clone(meta))?,
                Item::Accesses(sequence) => {
                    let order = self.orders.get_mut(sequence.first.file.0 as usize);
                    let onward = order.is_some_and(|order| order.read(sequence));
                    self.waits.read(sequence, onward);
                    self.lessons.read(sequence);
                    self.file.sequence(*sequence)?;
                }
            }
        }
        self.is_flushed = false;
        Ok(())
    }

    /// Makes the record survive a kill, if that is due. Otherwise returns the time until then.
    fn flush_in(&mut self) -> Result<Option<Duration>, WriteError> {
        if self.is_flushed {
            return Ok(None);
        }
        let since = self.flushed_at.map_or(FLUSH, |at| at.elapsed());
        if since < FLUSH {
            return Ok(Some(FLUSH - since));
        }
        self.file.flush()?;
        self.flushed_at = Some(Instant::now());
        self.is_flushed = true;
        Ok(None)
    }

    /// Removes the written record. Its memory is not freed, because this process is about to end.
    pub(super) fn leave(self) {
        let Self {
            file,
            orders,
            waits,
            lessons,
            ..
        } = self;
        file.leave();
        std::mem::forget((orders, waits, lessons));
    }

    /// Ends the record, with advice derived from the order of reads and with the patterns.
    pub(crate) fn end(mut self, mut roles: Roles) -> Result<(RecordFile, Waits), WriteError> {
        if !self.lessons.is_empty() {
            // By turn a file is known only among all that were met before it.
            let files = self.orders.iter().map(|order| &order.meta);
            let known: Vec<_> = files
                .map(|meta| match meta.directory {
                    true => [Role::default(); 2],
                    false => [roles.of(&meta.path), roles.turn(&meta.path)],
                })
                .collect();
            let roles = |file: FileId| known.get(file.0 as usize).copied().unwrap_or_default();
            self.file.signatures(self.lessons.signatures(roles))?;
        }
        for (id, order) in (0..).zip(self.orders) {
            let rewritten = &mut self.waits.rewritten_ns;
            *rewritten = rewritten.saturating_add(order.rewritten_ns());
            let advice = order.advice();
            if advice != Advice::Normal && !self.keeps_advice {
                let meta = FileMeta {
                    advice,
                    ..order.meta
                };
                self.file.file(FileId(id), meta)?;
            }
        }
        let reader = self.file.review()?;
        self.file.sample(sample::of(reader))?;
        Ok((self.file, self.waits))
    }
}
