//! Compares a mounted slow disk with its model's specification.
//!
//! The device is read without the page cache (O_DIRECT), in requests as programs and the kernel send them: single 4 KiB reads
//! spread over the whole device, 32 of them at once, and in order. The offsets are the same in every run. The serving process
//! never does the reading, because it could not end if it were killed.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{At, Error};
use crate::{Mounted, Options, server};
use foreread_disk::Model;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The model.
    pub model: &'static str,
    /// The figure's name.
    pub figure: &'static str,
    /// Unit of both values.
    pub unit: &'static str,
    /// The specified value.
    pub specified: f64,
    /// The measured value.
    pub realised: f64,
    /// Deviation in percent of the specification.
    pub off_percent: f64,
    /// Permitted deviation in percent.
    pub tolerance_percent: f64,
    /// True if the deviation is permitted.
    pub holds: bool,
}

impl Row {
    fn new(
        model: Model,
        (figure, unit): (&'static str, &'static str),
        specified: f64,
        realised: f64,
        tolerance_percent: f64,
    ) -> Row {
        let off_percent = (realised / specified - 1.0) * 100.0;
        Row {
            model: model.name(),
            figure,
            unit,
            specified,
            realised,
            off_percent,
            tolerance_percent,
            holds: off_percent.abs() <= tolerance_percent,
        }
    }
}

const BLOCK: u64 = 4096;
/// Request size of sequential reading: that of a loop device.
const CHUNK: u64 = 256 << 10;
const DEPTH: u64 = 32;

/// The disk that the specification's figures apply to: an image spread over the whole stroke.
pub fn options(model: Model, dir: impl Into<PathBuf>) -> Options {
    Options {
        size: 4 << 30,
        stretch: true,
        ..Options::new(model, dir)
    }
}

/// Number of figures of a disk.
pub const FIGURES: usize = 3;

/// Measures a disk created with [`options`] for some seconds; calls `measured` after each of the [`FIGURES`].
pub fn measure(mounted: &Mounted, measured: impl Fn()) -> Result<Vec<Row>, Error> {
    let spec = mounted.model.spec();
    let path = mounted.device();
    let device = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&path)
        .at("open", &path)?;
    let blocks = mounted.size / BLOCK;
    let read = |reads, depth, block: &(dyn Fn(u64) -> u64 + Sync), len| {
        mounted.forget()?;
        let times = time(&device, reads, depth, len, block).at("read", &path);
        measured();
        times
    };
    let reads = (5e6 / spec.random_us) as u64;
    let mut alone = read(reads, 1, &|i| scatter(i) % blocks * BLOCK, BLOCK)?.each;
    alone.sort_unstable();
    let random = Row::new(
        mounted.model,
        ("random 4 KiB read", "µs"),
        spec.random_us,
        // The median, because other processes delay some reads. On every model the median equals the mean within 2 %.
        alone[alone.len() / 2].as_secs_f64() * 1e6,
        8.0,
    );
    // Some four seconds.
    let reads = (4.0 * spec.deep_iops) as u64 + DEPTH;
    let together = read(reads, DEPTH, &|i| scatter(!i) % blocks * BLOCK, BLOCK)?.all;
    let deep = Row::new(
        mounted.model,
        ("random 4 KiB, 32 at once", "reads/s"),
        spec.deep_iops,
        reads as f64 / together.as_secs_f64(),
        10.0,
    );
    let reads = (4e6 * spec.sequential_mb_s) as u64 / CHUNK;
    let in_order = read(reads, spec.streams, &|i| i * CHUNK % mounted.size, CHUNK)?.all;
    let sequential = Row::new(
        mounted.model,
        ("sequential", "MB/s"),
        spec.sequential_mb_s,
        (reads * CHUNK) as f64 / in_order.as_secs_f64() / 1e6,
        5.0,
    );
    Ok(vec![random, deep, sequential])
}

/// Durations of reads.
struct Times {
    /// From the first read's beginning to the last read's end.
    all: Duration,
    /// The duration of each read.
    each: Vec<Duration>,
}

/// Makes `reads` reads of `len` bytes, `depth` at once, at the given offsets.
fn time(
    device: &File,
    reads: u64,
    depth: u64,
    len: u64,
    offset: &(dyn Fn(u64) -> u64 + Sync),
) -> std::io::Result<Times> {
    let next = AtomicU64::new(0);
    let reader = || -> std::io::Result<Vec<Duration>> {
        server::hurry();
        // O_DIRECT needs aligned memory.
        let mut memory = vec![0; (len + BLOCK) as usize];
        let start = memory.as_ptr().align_offset(BLOCK as usize);
        let buffer = &mut memory[start..start + len as usize];
        let mut times = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= reads {
                return Ok(times);
            }
            let start = Instant::now();
            device.read_exact_at(buffer, offset(i))?;
            times.push(start.elapsed());
        }
    };
    let start = Instant::now();
    let mut each = Vec::new();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..depth).map(|_| scope.spawn(reader)).collect();
        readers.into_iter().try_for_each(|reader| {
            match reader.join() {
                Ok(times) => each.extend(times?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            std::io::Result::Ok(())
        })
    })?;
    Ok(Times {
        all: start.elapsed(),
        each,
    })
}

/// A fixed number that looks random for each `i`.
fn scatter(i: u64) -> u64 {
    fastrand::Rng::with_seed(i).u64(..)
}
