//! A program that knows the order of its reads: the reader of the curves.
//!
//! `foreread-bench read-file` reads blocks of a file in a given order: alone, through the library, or with an engine whose device
//! profile is given. It prints a checksum, so that runs can be compared. Every run is a process of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::Hasher;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use foreread_backend::PageCache;
use foreread_client::{Client, Entry, Extent, FileId, Options};
use foreread_engine::{Config, Engine, Profile, Session};
use foreread_plan::{Access, Advice, FileMeta, Kind, PAGE, Seen, ThreadId};
use foreread_sources::Replay;

use crate::cases::Random;

/// The order in which the blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// From the first on.
    Forward,
    /// Each block once, shuffled.
    Random,
    /// As `random`, of blocks that lie a little apart: between two blocks from none to as many as fit into 256 KiB are left out.
    Gaps,
    /// Each block lies [`Reading::distance`] from the one before, plus or minus a turn of the platter: upward to the end of the
    /// file, then downward, and so on.
    Apart,
}

/// The part that prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ahead {
    /// Only the kernel.
    None,
    /// The library.
    Library,
    /// An engine with the profile of a rotating disk and the given changes.
    Engine,
}

/// The blocks to read and the way to read them.
#[derive(Args, Clone, Debug)]
pub struct Reading {
    /// The file.
    #[arg(long)]
    pub file: PathBuf,
    /// The order of the blocks.
    #[arg(long, value_enum)]
    pub order: Order,
    /// Bytes in a block.
    #[arg(long)]
    pub block: u64,
    /// Blocks to read.
    #[arg(long)]
    pub count: u64,
    /// Bytes between two blocks of the order `apart`.
    #[arg(long)]
    pub distance: Option<u64>,
    /// Read only this eighth of the file, so that several readers have no block in common.
    #[arg(long)]
    pub part: Option<u64>,
    /// The part that prefetches.
    #[arg(long, value_enum, default_value = "none")]
    pub ahead: Ahead,
    /// Memory for pages that are prefetched and not yet read, in bytes.
    #[arg(long)]
    pub budget: Option<u64>,
    /// Keep the engine's memory target at `budget`, without AIMD.
    #[arg(long)]
    pub fixed: bool,
    /// The engine's largest request, in pages.
    #[arg(long)]
    pub request_pages: Option<u64>,
    /// The largest gap that the engine reads through, in pages.
    #[arg(long)]
    pub infill_pages: Option<u64>,
}

/// Number of parts of a file for several readers.
const PARTS: u64 = 8;
/// The largest gap of [`Order::Gaps`], in bytes.
const LARGEST_GAP: u64 = 256 << 10;
/// The longest stretch of [`Order::Apart`], in bytes: more than a track.
const TURN: u64 = 1 << 20;
/// How often the engine is woken to see the finished reads.
const TOLD: Duration = Duration::from_micros(250);
const SEED: u64 = 21;
const FILE: FileId = FileId(0);

/// Reads the blocks and prints their checksum.
pub fn read(reading: &Reading) -> Result<()> {
    let path = &reading.file;
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let size = file
        .metadata()
        .with_context(|| format!("looking at {}", path.display()))?
        .len();
    let offsets = offsets(reading, size)?;
    let mut helper = Helper::new(reading, &offsets)?;
    let mut hash = std::hash::DefaultHasher::new();
    let mut buffer = vec![0; usize::try_from(reading.block)?];
    for &offset in &offsets {
        let extent = Extent::new(offset, reading.block);
        helper.before(extent)?;
        let began = Instant::now();
        file.read_exact_at(&mut buffer, offset)
            .with_context(|| format!("reading {}", path.display()))?;
        helper.after(extent, began, began.elapsed());
        hash.write(&buffer[..8]);
    }
    drop(helper);
    println!("{} blocks, checksum {:016x}", offsets.len(), hash.finish());
    Ok(())
}

/// The offsets of the blocks, in the order of reading.
fn offsets(reading: &Reading, size: u64) -> Result<Vec<u64>> {
    if reading.order == Order::Apart {
        return apart(reading, size);
    }
    let all = size / reading.block.max(1);
    let (blocks, first) = match reading.part {
        Some(part) => (all / PARTS, part * (all / PARTS)),
        None => (all, 0),
    };
    let mut random = Random(SEED);
    let mut chosen: Vec<u64> = match reading.order {
        Order::Gaps => {
            let most = LARGEST_GAP / reading.block;
            let mut next = 0;
            std::iter::from_fn(|| {
                let block = next;
                next += 1 + random.below(most + 1);
                Some(block)
            })
            .take_while(|&block| block < blocks)
            .take(usize::try_from(reading.count)?)
            .collect()
        }
        _ => (0..blocks).collect(),
    };
    if reading.order != Order::Forward {
        for i in (1..chosen.len()).rev() {
            chosen.swap(i, random.below(i as u64 + 1) as usize);
        }
    }
    chosen.truncate(usize::try_from(reading.count)?);
    if chosen.len() as u64 != reading.count {
        bail!(
            "{} has only {} such blocks, not {}",
            reading.file.display(),
            chosen.len(),
            reading.count
        );
    }
    Ok(chosen
        .into_iter()
        .map(|block| (first + block) * reading.block)
        .collect())
}

/// The offsets of [`Order::Apart`]. Each block lies at random in a stretch as long as a turn of the platter; at fixed offsets all
/// blocks would be at one angle. On each pass through the file the stretches lie before those of the last pass, so that no block
/// was already read ahead by the disk.
fn apart(reading: &Reading, size: u64) -> Result<Vec<u64>> {
    let distance = reading.distance.context("no distance is given")?;
    let stretch = TURN.min(distance / 2).max(reading.block);
    let room = size.saturating_sub((reading.count + 1) * stretch);
    let hops = (room / distance.max(1)).min(reading.count.saturating_sub(1));
    if hops == 0 {
        bail!("{} is shorter than the distance", reading.file.display());
    }
    let mut random = Random(SEED);
    Ok((0..reading.count)
        .map(|i| {
            let (pass, within) = (i / hops, i % hops);
            let place = if pass % 2 == 0 { within } else { hops - within };
            let within = random.below(stretch / reading.block) * reading.block;
            place * distance + (reading.count - pass) * stretch + within
        })
        .collect())
}

/// The helper that is informed of each read.
enum Helper {
    None,
    Library {
        client: Box<Client>,
        file: FileId,
    },
    Engine {
        session: Option<Session>,
        start: Instant,
        told: Instant,
    },
}

impl Helper {
    fn new(reading: &Reading, offsets: &[u64]) -> Result<Self> {
        match reading.ahead {
            Ahead::None => Ok(Self::None),
            Ahead::Library => {
                let mut options = Options::default();
                options.budget = reading.budget;
                let client = Client::new(options)?;
                let file = client.add_path(&reading.file)?;
                client.region(file, 0..u64::MAX)?;
                let block = reading.block;
                let entries: Vec<Entry> = offsets
                    .iter()
                    .map(|&offset| Entry {
                        file,
                        extent: Extent::new(offset, block),
                        marked: false,
                    })
                    .collect();
                client.stream(entries.into_iter())?;
                Ok(Self::Library {
                    client: Box::new(client),
                    file,
                })
            }
            Ahead::Engine => {
                let start = Instant::now();
                Ok(Self::Engine {
                    session: Some(session(reading, offsets, start)?),
                    start,
                    told: start,
                })
            }
        }
    }

    /// Informs the library that the program is about to read.
    fn before(&mut self, extent: Extent) -> Result<()> {
        if let Self::Library { client, file } = self {
            client.reading(*file, extent)?;
        }
        Ok(())
    }

    /// Reports a finished read.
    fn after(&mut self, extent: Extent, began: Instant, took: Duration) {
        match self {
            Self::None => {}
            Self::Library { client, file } => client.read_done(*file, extent, began, took),
            Self::Engine {
                session,
                start,
                told,
            } => {
                let Some(session) = session else { return };
                let read = Access {
                    start: (began - *start).as_nanos() as u64,
                    took: took.as_nanos() as u64,
                    ..access(extent)
                };
                session.see(Seen::Read(read.into()));
                if told.elapsed() > TOLD {
                    session.wake();
                    *told = Instant::now();
                }
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Self::Engine { session, .. } = self {
            session.take().map(Session::finish);
        }
    }
}

/// An engine that knows the offsets, with a changed profile.
fn session(reading: &Reading, offsets: &[u64], start: Instant) -> Result<Session> {
    let path = &reading.file;
    let (_, facts) = foreread_sys::file::open_regular(path)
        .with_context(|| format!("opening {}", path.display()))?;
    let meta = FileMeta {
        advice: Advice::Random,
        ..FileMeta::regular(
            path.clone(),
            (facts.dev, facts.ino),
            facts.size,
            facts.mtime_ns,
        )
    };
    let files = Arc::new(BTreeMap::from([(FILE, meta)]));
    let block = reading.block;
    let list: Vec<_> = offsets
        .iter()
        .map(|&offset| access(Extent::new(offset, block)))
        .collect();
    let mut profile = Profile::rotational();
    profile.request_pages = reading.request_pages.unwrap_or(profile.request_pages);
    profile.infill_pages = reading.infill_pages.unwrap_or(profile.infill_pages);
    let default = Config::default();
    let config = Config {
        budget_pages: reading
            .budget
            .map_or(default.budget_pages, |bytes| bytes / PAGE),
        evict_behind: true,
        adapt: !reading.fixed,
        ..default
    };
    let source = Box::new(Replay::new(list));
    let engine = Engine::new(PageCache::new(&files), config)
        .with_strand("replay", source)
        .with_profiles(move |_, _| Some(profile.clone()));
    Session::start(move || engine, start).context("starting the engine's thread")
}

fn access(extent: Extent) -> Access {
    Access {
        file: FILE,
        extent,
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(order: Order, count: u64) -> Reading {
        Reading {
            file: "f".into(),
            order,
            block: 4096,
            count,
            distance: None,
            part: None,
            ahead: Ahead::None,
            budget: None,
            fixed: false,
            request_pages: None,
            infill_pages: None,
        }
    }

    #[test]
    fn blocks_apart_are_read_once_and_lie_the_distance_from_each_other_within_two_turns() {
        let size = 8 << 30;
        for distance in [64 << 10, 16 << 20, 7 << 30] {
            let reading = Reading {
                distance: Some(distance),
                ..reading(Order::Apart, 200)
            };
            let found = offsets(&reading, size).unwrap();
            let mut sorted = found.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 200);
            assert!(sorted.last().is_some_and(|last| last + 4096 <= size));
            for two in found.windows(2) {
                let off = two[0].abs_diff(two[1]).abs_diff(distance);
                assert!(off <= 2 * TURN.min(distance / 2), "{distance}: {two:?}");
            }
        }
    }

    #[test]
    fn every_block_is_read_at_most_once_and_in_the_order_asked_for() {
        let size = 64 << 20;
        for order in [Order::Forward, Order::Random, Order::Gaps] {
            let found = offsets(&reading(order, 400), size).unwrap();
            let mut sorted = found.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 400, "{order:?}");
            assert_eq!(sorted == found, order == Order::Forward, "{order:?}");
        }
    }

    #[test]
    fn gaps_are_no_larger_than_they_may_be() {
        let mut found = offsets(&reading(Order::Gaps, 400), 64 << 20).unwrap();
        found.sort_unstable();
        let largest = found.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(largest.unwrap() <= LARGEST_GAP + 4096);
    }

    #[test]
    fn more_blocks_than_the_file_has_are_refused() {
        let error = offsets(&reading(Order::Forward, 3), 8192).unwrap_err();
        assert!(error.to_string().contains("only 2"), "{error}");
    }
}
