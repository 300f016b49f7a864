//! Writing down what a run reads.
//!
//! The record is written by a thread of its own, so that a slow disk holds up neither the
//! watcher nor, through a full ring, the program. Thread and file are made once there is enough to
//! write: a short program is over before, and one that is followed mostly needs no record at all.
//!
//! Data flow: watcher → [`Recorder`] (a batch at a time, a bounded number of batches) → writer thread →
//! [`RecordFile`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::format::{Place, RecordFile, WriteError};
use foreread_plan::{
    Advice, FileId, FileMeta, Kind, Meta, PAGE, Sequence, Summary, ThreadId, ThreadMeta,
};
use foreread_sys::processor::Aside;
use rustc_hash::FxHashMap;

use super::watch::Sink;

/// Batches the writer may be behind; with [`BATCH`] bounds them to about 14 MiB.
const BATCHES: usize = 64;
/// Accesses and definitions handed over at a time, or a few more: those of a sequence go together.
const BATCH: usize = 4096;
/// So many (1.75 MiB at most) make it worth starting the writer, before it is time for that anyway.
const ENOUGH: usize = 8 * BATCH;
/// How long a batch that is not full waits to be handed over.
const SOON: Duration = Duration::from_millis(250);
/// How often what was handed over is made to survive a kill.
const FLUSH: Duration = SOON;
/// Reads that show how a file is read.
const ENOUGH_READS: u64 = 64;
/// A step forward that read-ahead still serves, in bytes.
const SKIP: u64 = 12 * 1024;
/// Longer reads take their time in transfer, not in waiting; bytes.
const SMALL: u64 = 64 * 1024;
/// Waits kept at a time.
const SAMPLE: usize = 1 << 14;
/// Waits that tell something.
const ENOUGH_WAITS: usize = 16;
/// A file is read in no order if less than one in this many reads goes on from the last; from front to back, if all
/// but one in this many times as many do.
const SHARE: u64 = 10;
/// Bytes that are worth a longer read-ahead: what that fetches in vain, at the most, is a small part of them.
const ENOUGH_BYTES: u64 = 2 << 20;

/// Boxed what is rare: an item is no larger than a sequence.
enum Item {
    File(FileId, Box<FileMeta>),
    Thread(ThreadId, Box<ThreadMeta>),
    Accesses(Sequence),
}

/// A record being written. The first error ends the recording and is kept; the program goes on.
pub(super) struct Recorder {
    place: Place,
    meta: Meta,
    limit: u64,
    /// When a batch was handed over last, or the recording began.
    handed_over: Instant,
    batch: Vec<Item>,
    /// The record's numbers of the session's files: in the order they are met, without gaps.
    numbers: FxHashMap<FileId, FileId>,
    /// The last access's file, which mostly is the next one's too, and its number.
    last: Option<(FileId, FileId)>,
    /// Accesses and definitions in it.
    gathered: usize,
    writer: Writer,
    /// For the writer.
    aside: Aside,
    read_ns: u64,
    reads: u64,
    accesses: u64,
}

/// The thread that writes.
enum Writer {
    /// There has been no need for it.
    Unstarted,
    Running(Running),
    /// It could not be started.
    Failed(anyhow::Error),
}

struct Running {
    batches: SyncSender<Vec<Item>>,
    /// How many of them are not written.
    behind: Arc<AtomicUsize>,
    written: Arc<Mutex<Option<Written>>>,
    thread: JoinHandle<()>,
}

/// What there is of the record, until somebody takes it, or why there is none.
type Written = Result<Writing, WriteError>;

impl Writer {
    fn start(place: &Place, meta: &Meta, limit: u64, aside: Aside) -> Self {
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
    fn send(&self, batch: Vec<Item>) {
        self.behind.fetch_add(1, Ordering::Relaxed);
        // A writer that has failed tells why at the end.
        let _ = self.batches.send(batch);
    }

    /// What has been written when all is that was sent; `None` if the thread died of it.
    fn end(self) -> Option<Written> {
        if self.behind.load(Ordering::Acquire) == 0 {
            // It waits for more, and is left to: to have it end first would hold up whoever runs the program by two
            // changes of thread and the return of its memory.
            std::mem::forget(self.batches);
        } else {
            drop(self.batches);
            self.thread.join().ok()?;
        }
        self.written.lock().ok()?.take()
    }
}

/// The writer thread: writes what comes until no more does.
fn write(
    batches: &Receiver<Vec<Item>>,
    written: &Mutex<Option<Written>>,
    behind: &AtomicUsize,
    mut aside: Aside,
) {
    for batch in batches {
        aside.keep();
        // Poisoned by nobody but this thread.
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Ok(writing)) = &mut *written else {
            return;
        };
        if let Err(why) = writing.write(&batch) {
            *written = Some(Err(why));
        }
        behind.fetch_sub(1, Ordering::Release);
    }
}

impl Recorder {
    /// Begin a record that will be at `place`, of at most `limit` bytes.
    pub(super) fn new(place: &Place, meta: Meta, limit: u64) -> Self {
        Self {
            place: place.clone(),
            meta,
            limit,
            handed_over: Instant::now(),
            batch: Vec::new(),
            numbers: FxHashMap::default(),
            last: None,
            gathered: 0,
            writer: Writer::Unstarted,
            aside: Aside::new(),
            read_ns: 0,
            reads: 0,
            accesses: 0,
        }
    }

    /// Hand what was watched to the writer, if it is time for that.
    pub(super) fn flush(&mut self) {
        if !self.batch.is_empty() && self.handed_over.elapsed() >= SOON {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.handed_over = Instant::now();
        self.gathered = 0;
        let room = self.batch.len().min(BATCH);
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(room));
        if let Writer::Unstarted = self.writer {
            self.writer = Writer::start(&self.place, &self.meta, self.limit, self.aside.clone());
        }
        if let Writer::Running(writer) = &self.writer {
            writer.send(batch);
        }
    }

    /// Where the record will be.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Time the program spent in reads, in ns, over all threads.
    pub(super) fn read_ns(&self) -> u64 {
        self.read_ns
    }

    /// Accesses recorded, opens and maps included.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Reads recorded.
    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    /// Put the record in its place, replacing an earlier one.
    ///
    /// # Errors
    /// When something could not be written; an earlier record is then as it was.
    pub(super) fn commit(self, summary: Summary) -> anyhow::Result<()> {
        let mut writing = match self.writer {
            Writer::Unstarted => {
                Writing::new(RecordFile::create_at(&self.place, &self.meta, self.limit)?)
            }
            Writer::Running(writer) => {
                let died = || anyhow::anyhow!("{}: the writer died", self.place.path().display());
                writer.end().ok_or_else(died)??
            }
            Writer::Failed(why) => return Err(why),
        };
        writing.write(&self.batch)?;
        let (file, waits) = writing.end()?;
        file.commit(Summary {
            wait_ns: waits.scattered.ninth_tenth(),
            onward_wait_ns: waits.onward.ninth_tenth(),
            ..summary
        })?;
        Ok(())
    }

    /// Leave nothing behind of what was recorded.
    pub(super) fn discard(self) {
        if let Writer::Running(writer) = self.writer {
            // The unfinished file goes with it.
            drop(writer.end());
        }
    }

    /// The record's number of a file.
    fn number_of(&mut self, file: FileId) -> Option<FileId> {
        if let Some((last, number)) = self.last
            && last == file
        {
            return Some(number);
        }
        let number = *self.numbers.get(&file)?;
        self.last = Some((file, number));
        Some(number)
    }

    fn push(&mut self, item: Item, count: usize) {
        self.batch.push(item);
        self.gathered += count;
        let enough = match self.writer {
            Writer::Unstarted => ENOUGH,
            Writer::Running(_) | Writer::Failed(_) => BATCH,
        };
        if self.gathered >= enough {
            self.hand_over();
        }
    }
}

/// How one file is read, to tell whether the kernel's read-ahead serves it.
struct Order {
    meta: FileMeta,
    reads: u64,
    /// In bytes, by those.
    bytes: u64,
    /// Reads that go on from the last, and those of them that leave out no page.
    onward: u64,
    whole: u64,
    end: u64,
}

impl Order {
    fn of(meta: FileMeta) -> Self {
        Self {
            meta,
            reads: 0,
            bytes: 0,
            onward: 0,
            whole: 0,
            end: 0,
        }
    }

    /// Add a read; whether it goes on from another.
    fn read(&mut self, sequence: &Sequence) -> bool {
        let first = &sequence.first;
        // What is touched in a mapping does not go by the descriptor that advice is given on.
        if !first.kind.reads() || first.kind == Kind::Touch {
            return false;
        }
        let begun = self.reads > 0;
        self.reads += sequence.count();
        self.bytes += sequence.extent().len;
        let offset = first.extent.offset;
        let onward = offset / PAGE == self.end / PAGE
            || (self.end..=self.end.saturating_add(SKIP)).contains(&offset);
        self.onward += u64::from(onward) + u64::from(sequence.more);
        let whole = onward && offset / PAGE <= self.end.div_ceil(PAGE);
        self.whole += u64::from(whole) + u64::from(sequence.more);
        self.end = sequence.extent().end();
        onward && begun
    }

    fn advice(&self) -> Advice {
        let elsewhere = self.reads - self.whole;
        if self.reads >= ENOUGH_READS && self.onward * SHARE < self.reads {
            Advice::Random
        } else if self.bytes >= ENOUGH_BYTES && elsewhere * SHARE * SHARE < self.reads {
            Advice::Sequential
        } else {
            Advice::Normal
        }
    }
}

/// How long small reads waited for a device.
#[derive(Default)]
struct Waits {
    /// Those that went elsewhere in their file, or to another.
    scattered: Sample,
    /// Those that went on from the last, for which no head moves.
    onward: Sample,
}

impl Waits {
    fn read(&mut self, sequence: &Sequence, onward: bool) {
        if !sequence.first.waited() || sequence.first.extent.len > SMALL {
            return;
        }
        let first = if onward {
            &mut self.onward
        } else {
            &mut self.scattered
        };
        first.add(sequence.first.took);
        for access in sequence.accesses().skip(1) {
            self.onward.add(access.took);
        }
    }
}

/// A sample of bounded size.
#[derive(Default)]
struct Sample {
    kept: Vec<u64>,
    /// Every so many are kept, as a power of two.
    thinned: u32,
    seen: u64,
}

impl Sample {
    fn add(&mut self, value: u64) {
        self.seen += 1;
        if self.seen.trailing_zeros() < self.thinned {
            return;
        }
        self.kept.push(value);
        if self.kept.len() > SAMPLE {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinned += 1;
        }
    }

    fn ninth_tenth(mut self) -> Option<u64> {
        if self.kept.len() < ENOUGH_WAITS {
            return None;
        }
        self.kept.sort_unstable();
        self.kept.get(self.kept.len() * 9 / 10).copied()
    }
}

/// The record as far as it is written, and what was seen in it on the way.
struct Writing {
    file: RecordFile,
    flushed: Option<Instant>,
    /// By number: files are numbered in the order they are met.
    orders: Vec<Order>,
    waits: Waits,
}

impl Writing {
    fn new(file: RecordFile) -> Self {
        Self {
            file,
            flushed: None,
            orders: Vec::new(),
            waits: Waits::default(),
        }
    }

    fn write(&mut self, batch: &[Item]) -> Result<(), WriteError> {
        for item in batch {
            match item {
                Item::File(id, meta) => {
                    let meta = FileMeta::clone(meta);
                    self.file.file(*id, meta.clone())?;
                    match self.orders.get_mut(id.0 as usize) {
                        Some(known) => known.meta = meta,
                        None => self.orders.push(Order::of(meta)),
                    }
                }
                Item::Thread(id, meta) => self.file.thread(*id, ThreadMeta::clone(meta))?,
                Item::Accesses(sequence) => {
                    let order = self.orders.get_mut(sequence.first.file.0 as usize);
                    let onward = order.is_some_and(|order| order.read(sequence));
                    self.waits.read(sequence, onward);
                    self.file.sequence(*sequence)?;
                }
            }
        }
        if self.flushed.is_none_or(|at| at.elapsed() >= FLUSH) {
            self.file.flush()?;
            self.flushed = Some(Instant::now());
        }
        Ok(())
    }

    /// Adds what advice the files' order speaks for.
    fn end(mut self) -> Result<(RecordFile, Waits), WriteError> {
        for (id, order) in (0..).zip(self.orders) {
            let advice = order.advice();
            if advice != Advice::Normal {
                let meta = FileMeta {
                    advice,
                    ..order.meta
                };
                self.file.file(FileId(id), meta)?;
            }
        }
        Ok((self.file, self.waits))
    }
}

impl Sink for Recorder {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        let next = FileId(self.numbers.len() as u32);
        let number = *self.numbers.entry(id).or_insert(next);
        self.push(Item::File(number, Box::new(meta.clone())), 1);
    }

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        self.push(Item::Thread(id, Box::new(meta.clone())), 1);
    }

    fn accesses(&mut self, mut sequence: Sequence) {
        let Some(number) = self.number_of(sequence.first.file) else {
            return;
        };
        sequence.first.file = number;
        self.accesses += sequence.count();
        if sequence.first.kind.reads() {
            self.read_ns += sequence.first.took * sequence.count();
            self.reads += sequence.count();
        }
        self.push(Item::Accesses(sequence), sequence.count() as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, Extent};

    fn order(kind: Kind, offsets: impl Iterator<Item = u64>) -> Order {
        let mut order = Order::of(FileMeta {
            path: "/f".into(),
            dev: 0,
            ino: 0,
            size: 0,
            mtime_ns: 0,
            written: false,
            advice: Advice::Normal,
        });
        for offset in offsets {
            order.read(&Sequence::from(Access {
                file: FileId(0),
                extent: Extent::new(offset, 4096),
                thread: ThreadId(0),
                kind,
                start: 0,
                took: 0,
            }));
        }
        order
    }

    #[test]
    fn a_few_slow_reads_among_many_do_not_make_a_slow_device() {
        let mut waits = Waits::default();
        for n in 0..200_000u64 {
            let took = if n % 50 == 0 { 9_000_000 } else { 90_000 };
            let read = Sequence::from(Access {
                file: FileId(0),
                extent: Extent::new(0, 4096),
                thread: ThreadId(0),
                kind: Kind::Pread,
                start: 0,
                took,
            });
            waits.read(&read, n % 4 == 0);
        }
        assert!(waits.scattered.kept.len() <= SAMPLE);
        assert_eq!(waits.scattered.seen, 150_000);
        assert_eq!(waits.scattered.ninth_tenth(), Some(90_000));
        assert_eq!(waits.onward.seen, 50_000);
        assert_eq!(Sample::default().ninth_tenth(), None);
    }

    #[test]
    fn only_a_file_read_in_no_order_is_called_random() {
        let scattered = || (0..100).map(|n| n * 7919 % 1000 * 4096);
        let random = |kind, offsets: &mut dyn Iterator<Item = u64>| {
            order(kind, offsets).advice() == Advice::Random
        };
        assert!(random(Kind::Pread, &mut scattered()));
        assert!(!random(Kind::Touch, &mut scattered()));
        assert!(!random(Kind::Pread, &mut scattered().take(60)));
        assert!(!random(Kind::Read, &mut (0..1000).map(|n| n * 4096)));
        assert!(!random(Kind::Read, &mut (0..1000).map(|n| n * 8192)));
        assert!(random(Kind::Read, &mut (0..1000).rev().map(|n| n * 4096)));
    }

    #[test]
    fn only_a_long_file_read_from_front_to_back_is_called_sequential() {
        let sequential = |kind, offsets: &mut dyn Iterator<Item = u64>| {
            order(kind, offsets).advice() == Advice::Sequential
        };
        let onward = || (0..1000).map(|n| n * 4096);
        assert!(sequential(Kind::Read, &mut onward()));
        assert!(
            !sequential(Kind::Read, &mut (0..1000).map(|n| n * 8192)),
            "pages left out"
        );
        // Its head once more.
        assert!(sequential(Kind::Read, &mut [0].into_iter().chain(onward())));
        assert!(!sequential(Kind::Read, &mut onward().take(500)), "short");
        assert!(!sequential(Kind::Touch, &mut onward()));
        let leaps = (0..1000).map(|n| (n + n / 50 * 100) * 4096);
        assert!(!sequential(Kind::Read, &mut leaps.into_iter()), "it leaps");
    }
}
