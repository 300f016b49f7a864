//! Writing down what a run reads.
//!
//! The record is written by a thread of its own, so that a slow disk holds up neither the
//! watcher nor, through a full ring, the program. Thread and file are made once there is enough to
//! write: a short program is over before, and one that is followed mostly needs no record at all.
//!
//! Data flow: watcher → [`Recorder`] (a batch at a time, a bounded number of batches) → writer thread →
//! [`RecordFile`].

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::format::{Place, RecordFile, WriteError};
use foreread_plan::{
    Advice, FileId, FileMeta, Identity, Kind, Meta, PAGE, Role, Sequence, Summary, ThreadId,
    ThreadMeta,
};
use foreread_sources::goes_on;
use foreread_sources::signature::Roles;
use foreread_sys::processor::Aside;
use rustc_hash::FxHashMap;

use super::lessons::Lessons;
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
        let Identity { argv, cwd, .. } = &self.meta.identity;
        let roles = Roles::new(argv.iter().map(String::as_str), Path::new(cwd));
        let (file, waits) = writing.end(&roles)?;
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
        let onward = goes_on(self.end, offset);
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
    /// When the file was flushed last, and whether nothing was written since.
    flushed_at: Option<Instant>,
    is_flushed: bool,
    /// By number: files are numbered in the order they are met.
    orders: Vec<Order>,
    waits: Waits,
    lessons: Lessons,
}

impl Writing {
    fn new(file: RecordFile) -> Self {
        Self {
            file,
            flushed_at: None,
            is_flushed: true,
            orders: Vec::new(),
            waits: Waits::default(),
            lessons: Lessons::default(),
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
                    self.lessons.read(sequence);
                    self.file.sequence(*sequence)?;
                }
            }
        }
        self.is_flushed = false;
        Ok(())
    }

    /// Make what is written survive a kill if it is time for that; in how long it will be, if not.
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

    /// Adds what advice the files' order speaks for, and the patterns of reads.
    fn end(mut self, roles: &Roles) -> Result<(RecordFile, Waits), WriteError> {
        let orders = &self.orders;
        let role = |file: FileId| {
            let order = orders.get(file.0 as usize);
            order.map_or_else(Role::default, |order| roles.of(&order.meta.path))
        };
        self.file.signatures(self.lessons.signatures(role))?;
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
    use foreread_plan::format::Reader;
    use foreread_plan::{Access, Extent, Identity};

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
    fn what_was_written_soon_after_a_flush_survives_a_kill_though_nothing_follows_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(&folder.path().join("record.fr")).unwrap();
        let identity = Identity {
            exe: "/bin/true".into(),
            argv: Vec::new(),
            cwd: "/".into(),
        };
        let meta = Meta {
            identity,
            recorded_at: 1,
            writer: "test".into(),
        };
        let mut recorder = Recorder::new(&place, meta, u64::MAX);
        recorder.file(FileId(0), &order(Kind::Read, 0..0).meta);
        for start in 0..2 {
            Sink::accesses(
                &mut recorder,
                Sequence::from(Access {
                    file: FileId(0),
                    extent: Extent::new(0, 4096),
                    thread: ThreadId(0),
                    kind: Kind::Pread,
                    start,
                    took: 0,
                }),
            );
            recorder.hand_over();
        }
        let Writer::Running(writer) = &recorder.writer else {
            panic!("a writer");
        };
        let path = match &*writer.written.lock().unwrap() {
            Some(Ok(writing)) => writing.file.partial_path(),
            _ => panic!("a file"),
        };
        let survives = || {
            let mut reader = Reader::open(&path).ok()?;
            Some(reader.accesses().filter(Result::is_ok).count())
        };
        let until = Instant::now() + Duration::from_secs(30);
        while survives() != Some(2) {
            assert!(Instant::now() < until, "{:?} of 2 reads", survives());
            std::thread::sleep(FLUSH / 10);
        }
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
