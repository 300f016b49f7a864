//! Writing down what a run reads.
//!
//! The record is written by a thread of its own, so that a slow disk holds up neither the
//! watcher nor, through a full ring, the program. Thread and file are made once there is enough to
//! write: a short program is over before, and one that is followed mostly needs no record at all.
//!
//! Data flow: watcher → [`Recorder`] (a batch at a time, a bounded number of batches) → writer thread →
//! [`RecordFile`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use foreread_plan::format::{RecordFile, WriteError};
use foreread_plan::{
    Advice, FileId, FileMeta, Kind, Meta, PAGE, Sequence, Summary, ThreadId, ThreadMeta,
};
use foreread_sys::processor::Aside;

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
/// As many links as the kernel follows.
const LINKS: usize = 40;
/// A file is read in no order if less than one in this many reads goes on from the last; from front to back, if all
/// but one in this many times as many do.
const SHARE: u64 = 10;
/// Bytes that are worth a longer read-ahead: what that fetches in vain, at the most, is a small part of them.
const ENOUGH_BYTES: u64 = 2 << 20;

/// Where a record goes that is to be at the user's `path`: there, or where the link there leads. Nothing is opened.
///
/// # Errors
/// When something is there that is no regular file, or cannot be looked at: it is not to be replaced.
pub(super) fn destination(path: &Path) -> anyhow::Result<PathBuf> {
    match path.metadata() {
        Ok(meta) if !meta.is_file() => bail!("{} is not a regular file", path.display()),
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            return Err(why).with_context(|| path.display().to_string());
        }
        _ => {}
    }
    let mut place = path.to_owned();
    // Each leads on, to a file or to where there is none yet: a circle has been refused.
    for _ in 0..LINKS {
        let Ok(target) = place.read_link() else {
            break;
        };
        place = place.with_file_name("").join(target);
    }
    Ok(place)
}

/// Boxed what is rare: an item is no larger than a sequence.
enum Item {
    File(FileId, Box<FileMeta>),
    Thread(ThreadId, Box<ThreadMeta>),
    Accesses(Sequence),
}

/// What the writer thread ends with: the open record, unless it failed, and how long reads waited.
type Written = Result<(RecordFile, Waits), WriteError>;

/// A record being written. The first error ends the recording and is kept; the program goes on.
pub(super) struct Recorder {
    path: PathBuf,
    meta: Meta,
    limit: u64,
    /// When a batch was handed over last, or the recording began.
    handed_over: Instant,
    batch: Vec<Item>,
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
    Running(SyncSender<Vec<Item>>, JoinHandle<Written>),
    /// It could not be started.
    Failed(anyhow::Error),
}

impl Writer {
    fn start(path: &Path, meta: &Meta, limit: u64, aside: Aside) -> Self {
        let started = || -> anyhow::Result<_> {
            let file = RecordFile::create(path, meta, limit)?;
            let (sender, batches) = sync_channel(BATCHES);
            let thread = std::thread::Builder::new()
                .name("foreread-record".into())
                .spawn(move || write(file, batches, aside))?;
            Ok((sender, thread))
        };
        match started() {
            Ok((sender, thread)) => Self::Running(sender, thread),
            Err(why) => Self::Failed(why),
        }
    }
}

impl Recorder {
    /// Begin a record that will be at `path`, of at most `limit` bytes.
    pub(super) fn new(path: &Path, meta: Meta, limit: u64) -> Self {
        Self {
            path: path.to_owned(),
            meta,
            limit,
            handed_over: Instant::now(),
            batch: Vec::new(),
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
            self.writer = Writer::start(&self.path, &self.meta, self.limit, self.aside.clone());
        }
        if let Writer::Running(sender, _) = &self.writer {
            // A writer that has failed tells why at the end.
            let _ = sender.send(batch);
        }
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
    pub(super) fn commit(self, summary: Summary) -> anyhow::Result<PathBuf> {
        let (file, waits) = match self.writer {
            Writer::Unstarted => {
                let file = RecordFile::create(&self.path, &self.meta, self.limit)?;
                write(file, [self.batch], self.aside)?
            }
            Writer::Running(sender, thread) => {
                let _ = sender.send(self.batch);
                drop(sender);
                let died = |_| anyhow::anyhow!("{}: the writer died", self.path.display());
                thread.join().map_err(died)??
            }
            Writer::Failed(why) => return Err(why),
        };
        file.commit(Summary {
            wait_ns: waits.scattered.ninth_tenth(),
            onward_wait_ns: waits.onward.ninth_tenth(),
            ..summary
        })?;
        Ok(self.path)
    }

    /// Leave nothing behind of what was recorded.
    pub(super) fn discard(self) {
        if let Writer::Running(sender, thread) = self.writer {
            drop(sender);
            // The unfinished file goes with the writer that held it, however that ended.
            let _ = thread.join();
        }
    }

    fn push(&mut self, item: Item, count: usize) {
        self.batch.push(item);
        self.gathered += count;
        let enough = match self.writer {
            Writer::Unstarted => ENOUGH,
            Writer::Running(..) | Writer::Failed(_) => BATCH,
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

fn write(
    mut file: RecordFile,
    batches: impl IntoIterator<Item = Vec<Item>>,
    mut aside: Aside,
) -> Written {
    let mut flushed: Option<Instant> = None;
    // By number: files are numbered in the order they are met.
    let mut orders: Vec<Order> = Vec::new();
    let mut waits = Waits::default();
    for batch in batches {
        aside.keep();
        for item in &batch {
            match item {
                Item::File(id, meta) => {
                    let meta = FileMeta::clone(meta);
                    file.file(*id, meta.clone())?;
                    match orders.get_mut(id.0 as usize) {
                        Some(known) => known.meta = meta,
                        None => orders.push(Order::of(meta)),
                    }
                }
                Item::Thread(id, meta) => file.thread(*id, ThreadMeta::clone(meta))?,
                Item::Accesses(sequence) => {
                    let order = orders.get_mut(sequence.first.file.0 as usize);
                    let onward = order.is_some_and(|order| order.read(sequence));
                    waits.read(sequence, onward);
                    file.sequence(*sequence)?;
                }
            }
        }
        if flushed.is_none_or(|at| at.elapsed() >= FLUSH) {
            file.flush()?;
            flushed = Some(Instant::now());
        }
    }
    for (id, order) in (0..).zip(orders) {
        let advice = order.advice();
        if advice != Advice::Normal {
            let meta = FileMeta {
                advice,
                ..order.meta
            };
            file.file(FileId(id), meta)?;
        }
    }
    Ok((file, waits))
}

impl Sink for Recorder {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.push(Item::File(id, Box::new(meta.clone())), 1);
    }

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        self.push(Item::Thread(id, Box::new(meta.clone())), 1);
    }

    fn accesses(&mut self, sequence: Sequence) {
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
    fn a_record_goes_where_links_lead_and_replaces_nothing_but_a_regular_file() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("dir")).unwrap();
        std::fs::write(at("dir/file"), "").unwrap();
        symlink("dir/file", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("dir/new", at("dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (given, place) in [
            ("dir/file", "dir/file"),
            ("none", "none"),
            ("link", "dir/file"),
            ("second", "dir/file"),
            ("dangling", "dir/new"),
        ] {
            assert_eq!(destination(&at(given)).unwrap(), at(place));
        }
        for refused in ["dir", "dir/.", "circle", "null", "socket", "dir/file/x"] {
            let why = destination(&at(refused)).unwrap_err();
            assert!(format!("{why:#}").contains(at(refused).to_str().unwrap()));
        }
        // As it was given.
        assert_eq!(destination(Path::new("x.fr")).unwrap(), Path::new("x.fr"));
        drop(socket);
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
