//! A file on the device to be measured, read cold through the page cache.
//!
//! It is read in the same ways as by programs and by foreread: by `pread` without the kernel's read-ahead, by hints of the page-cache
//! backend, and by a program with the engine ahead of it. The file has no name, so it disappears however this process ends.
//!
//! Invariant: before each experiment no page of the file is in memory, as reported by the kernel. After all of them the device's counters
//! must include the fetched bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use foreread_backend::{Backend, Event, PageCache};
use foreread_engine::calibrate::{Probe, Trial};
use foreread_engine::{Config, Engine, Profile, Session};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, PAGE, Request, RequestId, Seen, ThreadId,
};
use foreread_sources::Replay;
use foreread_sys::file::FileFacts;
use foreread_sys::{cache, device, memory};
use indicatif::ProgressBar;

use foreread_words::counted;
use foreread_words::units::bytes;

/// Default size of the file, in bytes: several times the cache of a disk.
const SIZE: u64 = 256 << 20;
/// Least size with a meaningful result, in bytes.
pub(crate) const LEAST: u64 = 16 << 20;
/// Largest share of the free space, and of the free memory, for the file.
const SHARE: u64 = 4;
/// Bytes per write.
const CHUNK: usize = 1 << 20;
/// Interval of polling, the same as the engine's.
const LOOK: Duration = Duration::from_micros(200);
/// Interval at which `run` reports the program's reads to the engine.
const TOLD: Duration = Duration::from_micros(250);
/// Time for which pages that are on their way, or being written back, may keep the file in memory.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which a file that is still wholly in memory is on a file system without a device.
const HOPELESS: Duration = Duration::from_secs(1);
/// Time after which a device counts as hung: well beyond the four seconds after which the backend gives up a hint.
const HUNG: Duration = Duration::from_secs(30);

const FILE: FileId = FileId(0);

/// The file, with its reader and its hints.
pub(super) struct ColdFile {
    file: File,
    facts: FileFacts,
    files: Arc<BTreeMap<FileId, FileMeta>>,
    hints: PageCache,
    next: u64,
    /// Bytes fetched in experiments so far, and the device's counter before them.
    fetched: u64,
    served: Option<u64>,
}

impl ColdFile {
    /// Creates the file in `dir`, with `size` bytes or a size that suits the device.
    pub(super) fn create(dir: &Path, size: Option<u64>, progress: &ProgressBar) -> Result<Self> {
        let size = match size {
            Some(size) => size,
            None => sensible_size(dir)?,
        };
        let file = tempfile::tempfile_in(dir).context("cannot make a file there")?;
        progress.set_message("writing");
        fill(&file, size).with_context(|| format!("cannot write a file of {}", bytes(size)))?;
        cache::advise_random(&file)?;
        let facts = FileFacts::of(&file)?;
        let meta = FileMeta {
            advice: Advice::Random,
            ..FileMeta::regular(
                format!("/proc/self/fd/{}", file.as_raw_fd()),
                (facts.dev, facts.ino),
                facts.size,
                facts.mtime_ns,
            )
        };
        let files = Arc::new(BTreeMap::from([(FILE, meta)]));
        let mut made = Self {
            hints: PageCache::new(&files),
            file,
            facts,
            files,
            next: 0,
            fetched: 0,
            served: None,
        };
        made.cool()?;
        made.served = device::bytes_read(facts.dev).ok();
        Ok(made)
    }

    /// The device of the file (`st_dev`).
    pub(super) fn device(&self) -> u64 {
        self.facts.dev
    }

    /// The file's size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.facts.size
    }

    /// Checks that the device's counters include the fetched bytes, if the kernel has counters. If not, a cache in between was measured.
    pub(super) fn prove(&self) -> Result<()> {
        let (Some(before), Ok(after)) = (self.served, device::bytes_read(self.facts.dev)) else {
            return Ok(());
        };
        let served = after.saturating_sub(before);
        if served < self.fetched / 10 * 9 {
            bail!(
                "the device served {} of the {} that were read",
                bytes(served),
                bytes(self.fetched)
            );
        }
        Ok(())
    }

    /// Drops the file from memory, after all its pages are written.
    fn cool(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let left = cache::evict(&self.file)?;
            if left == 0 {
                return Ok(());
            }
            let hopeless = left >= self.facts.size / PAGE && begun.elapsed() > HOPELESS;
            if hopeless || begun.elapsed() > PATIENCE {
                bail!(
                    "{left} pages of the file stay in memory: no cold reading can be measured on this file system"
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn submit(&mut self, pages: Range<u64>) {
        self.hints.submit(Request {
            id: RequestId(self.next),
            file: FILE,
            pages,
        });
        self.next += 1;
    }
}

impl Probe for ColdFile {
    type Error = anyhow::Error;

    fn pages(&self) -> u64 {
        self.facts.size / PAGE
    }

    fn single(&mut self, pages: &[u64], limit: Duration) -> Result<Vec<u64>> {
        self.cool()?;
        let begun = Instant::now();
        let mut buffer = [0; PAGE as usize];
        let mut times = Vec::new();
        for &page in pages {
            let before = Instant::now();
            self.file.read_exact_at(&mut buffer, page * PAGE)?;
            times.push(before.elapsed().as_nanos() as u64);
            self.fetched += PAGE;
            if begun.elapsed() > limit {
                break;
            }
        }
        Ok(times)
    }

    fn fetch(&mut self, runs: &[Range<u64>], depth: usize, limit: Duration) -> Result<Trial> {
        self.cool()?;
        let begun = Instant::now();
        let mut waiting = runs.iter();
        let mut under_way = 0;
        let mut events = Vec::new();
        let (mut count, mut warm) = (0, 0);
        loop {
            while under_way < depth
                && (count == 0 || begun.elapsed() < limit)
                && let Some(run) = waiting.next()
            {
                self.submit(run.clone());
                under_way += 1;
            }
            if under_way == 0 {
                break;
            }
            std::thread::sleep(LOOK);
            self.hints.poll(&mut events);
            for event in events.drain(..) {
                match event {
                    Event::Issued { pages, .. } => self.fetched += (pages.end - pages.start) * PAGE,
                    Event::Done { fetched: false, .. } => {
                        (under_way, warm) = (under_way - 1, warm + 1)
                    }
                    Event::Done { .. } => (under_way, count) = (under_way - 1, count + 1),
                    Event::Gone { why, .. } => bail!("the file cannot be read: {why}"),
                    Event::Opened { .. }
                    | Event::Unaided { .. }
                    | Event::Changed { .. }
                    | Event::Short { .. }
                    | Event::Answered { .. }
                    | Event::Looked { .. } => {}
                }
            }
            if begun.elapsed() > limit + HUNG {
                bail!(
                    "{} did not come back in {} s",
                    counted(under_way as u64, "read", "reads"),
                    HUNG.as_secs()
                );
            }
        }
        let took = begun.elapsed();
        if warm > count / 20 {
            bail!("{warm} of {} runs were in memory already", warm + count);
        }
        Ok(Trial { count, took })
    }

    fn follow(&mut self, pages: &[u64], profile: &Profile, limit: Duration) -> Result<Trial> {
        self.cool()?;
        let planned = pages.to_vec();
        let source = Box::new(Replay::new(planned.into_iter().map(read)));
        let profile = profile.clone();
        let engine = Engine::new(PageCache::new(&self.files), Config::default())
            .with_strand("replay", source)
            .with_profiles(move |_, _| Some(profile.clone()));
        let mut buffer = [0; PAGE as usize];
        let start = Instant::now();
        let session = Session::start(move || engine, start)?;
        let mut told = start;
        let mut count = 0;
        for &page in pages {
            let before = Instant::now();
            self.file.read_exact_at(&mut buffer, page * PAGE)?;
            let after = Instant::now();
            count += 1;
            session.see(Seen::Read(
                Access {
                    start: (before - start).as_nanos() as u64,
                    took: (after - before).as_nanos() as u64,
                    ..read(page)
                }
                .into(),
            ));
            if after - told >= TOLD {
                session.wake();
                told = after;
            }
            if after - start > limit {
                break;
            }
        }
        let took = start.elapsed();
        let Some(report) = session.finish_in_any_time() else {
            bail!("the prefetch engine died");
        };
        self.fetched += report.ledger.issued + report.ledger.missed;
        Ok(Trial { count, took })
    }
}

fn read(page: u64) -> Access {
    Access {
        file: FILE,
        extent: Extent::new(page * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }
}

/// The default size, or a share of the free space or memory if that is less.
fn sensible_size(dir: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    let room = stat.f_bavail.saturating_mul(stat.f_frsize) / SHARE;
    let memory = memory::available().map_or(SIZE, |free| free / SHARE);
    let size = SIZE.min(room).min(memory) / PAGE * PAGE;
    if size < LEAST {
        bail!(
            "a file of {} is needed, and at most a quarter of what is free is used",
            bytes(LEAST)
        );
    }
    Ok(size)
}

/// Fills a file with bytes that cannot be compressed.
fn fill(mut file: &File, size: u64) -> std::io::Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut chunk = vec![0; CHUNK];
    let mut left = size;
    while left > 0 {
        random.fill(&mut chunk);
        let now = left.min(CHUNK as u64);
        file.write_all(&chunk[..now as usize])?;
        left -= now;
    }
    file.sync_all()
}
