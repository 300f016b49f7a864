//! The talk's other figures: how fast a known order is read, plotted against the distance between two reads, the place on the
//! platter, the memory for reordering, the largest request, the infill, and the memory target with and without AIMD; and the
//! speed of several programs under one memory limit.
//!
//! This program itself is the reader of each curve ([`crate::reader`]), timed by [`measure`]: one plain run where no changing
//! option affects the plain reader, then a run with foresight at every point. Readers that contend run differently each time, so
//! they run [`ROUNDS`] times.

mod run;

use serde::Serialize;

use crate::disk::DiskKind;
use crate::stats::Spread;

pub use run::measure;

/// A curve: the quantity that changes, and the disks and reads it is measured with.
pub struct Curve {
    /// Name, as in `--case`.
    pub name: &'static str,
    /// One line about the curve.
    pub about: &'static str,
    /// The disks it is drawn for.
    pub disks: &'static [DiskKind],
    /// The changing quantity, as the axis is labelled.
    unit: &'static str,
    kind: Kind,
}

enum Kind {
    /// One reader; one option of `read-file` changes.
    Option(Changing),
    /// One reader of all of the disk; the distance between two reads changes.
    Seek(Changing),
    /// One reader; the place on the disk where its data begins changes.
    Platter(Changing),
    /// As `Option`, with a second run at each point whose memory target stays at its first value; all runs have this many bytes
    /// of memory.
    Adapt(Changing, u64),
    /// Several readers at once, each of its own part of the data, under one memory limit.
    Contend { processes: &'static [u64] },
}

/// The changing quantity, its values, and the options of `read-file` that stay the same.
struct Changing {
    /// The option's name; for `Platter`, only a label.
    option: &'static str,
    /// In the curve's unit.
    values: &'static [u64],
    /// Factor (numerator, denominator) from the curve's unit to the option's.
    scale: (u64, u64),
    order: &'static str,
    /// Bytes in a block.
    block: u64,
    /// Blocks read.
    count: u64,
    /// The value of `--ahead` in the runs with foresight.
    ahead: &'static str,
}

impl Changing {
    /// A value in the option's unit.
    fn value(&self, x: u64) -> u64 {
        x * self.scale.0 / self.scale.1
    }
}

const HDD: &[DiskKind] = &[DiskKind::Hdd7200];
const SLOW: &[DiskKind] = &[DiskKind::Hdd7200, DiskKind::NetworkSsd];

/// Memory for all contending processes together, in bytes.
const SHARED_MEMORY: u64 = 64 << 20;
/// Blocks that each contending process reads; their size in bytes is below.
const CONTEND_BLOCKS: u64 = 500;
const CONTEND_BLOCK: u64 = 32 << 10;
/// Rounds of contending processes, each without foresight and then with it: the median counts.
const ROUNDS: usize = 3;
/// Memory of the program of `adapt`, in bytes.
const ADAPT_MEMORY: u64 = 16 << 20;

/// All curves, one row each.
#[rustfmt::skip]
pub const ALL: &[Curve] = &[
    Curve { name: "seek", about: "256 reads of 4 KiB against the distance from one to the next", disks: HDD, unit: "MiB from the read before",
        kind: Kind::Seek(Changing { option: "--distance", values: &[1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144],
            scale: (1 << 20, 1), order: "apart", block: 4096, count: 256, ahead: "engine" }) },
    Curve { name: "platter", about: "96 random 1 MiB reads against where on the disk they lie", disks: HDD, unit: "GB from the outermost track",
        kind: Kind::Platter(Changing { option: "begins", values: &[0, 100, 200, 300, 400, 498], scale: (1_000_000_000, 1), order: "random",
            block: 1 << 20, count: 96, ahead: "engine" }) },
    Curve { name: "buffer", about: "3,000 random 4 KiB reads against the memory for reordering", disks: HDD, unit: "MiB for reordering",
        kind: Kind::Option(Changing { option: "--budget", values: &[1, 2, 4, 8, 16], scale: (1 << 20, 1), order: "random",
            block: 4096, count: 3000, ahead: "library" }) },
    Curve { name: "request", about: "96 random 1 MiB reads against the largest request", disks: SLOW, unit: "KiB a request",
        kind: Kind::Option(Changing { option: "--request-pages", values: &[4, 16, 64, 256, 1024], scale: (1, 4), order: "random",
            block: 1 << 20, count: 96, ahead: "engine" }) },
    Curve { name: "infill", about: "3,000 shuffled 4 KiB reads, gaps up to 256 KiB, against the infill", disks: SLOW, unit: "KiB of infill",
        kind: Kind::Option(Changing { option: "--infill-pages", values: &[0, 16, 64, 128, 256], scale: (1, 4), order: "gaps",
            block: 4096, count: 3000, ahead: "engine" }) },
    Curve { name: "adapt", about: "1,500 random 32 KiB reads with 16 MiB of memory, against the first target", disks: HDD,
        unit: "MiB aimed at first",
        kind: Kind::Adapt(Changing { option: "--budget", values: &[1, 4, 8, 16, 32, 64], scale: (1 << 20, 1), order: "random",
            block: 32 << 10, count: 1500, ahead: "engine" }, ADAPT_MEMORY) },
    Curve { name: "contend", about: "1 to 8 programs, 500 random 32 KiB reads each, 64 MiB of memory", disks: SLOW, unit: "programs",
        kind: Kind::Contend { processes: &[1, 2, 4, 8] } },
];

/// A measured curve.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub curve: String,
    /// About the curve, in one line.
    pub about: String,
    /// The changing quantity, as the axis is labelled.
    pub unit: String,
    /// The disk.
    pub disk: String,
    /// True if the figure is the time of a single read, not the speed.
    pub single: bool,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The changing quantity, in its unit.
    pub x: u64,
    /// Readers at once.
    pub readers: u64,
    /// Bytes that all readers together ask for, each byte once.
    pub needed_bytes: u64,
    /// Blocks that all readers together read.
    pub reads: u64,
    /// Without foresight.
    pub plain: Run,
    /// With it.
    pub foreread: Run,
    /// With foresight and a memory target that does not adapt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Run>,
}

impl Point {
    /// Milliseconds of the run per read.
    pub fn read_ms(&self, run: &Run) -> f64 {
        run.seconds * 1e3 / self.reads as f64
    }

    /// Bytes read from the device per byte needed. Bytes beyond 1 were fetched in vain, were fetched again after they had left
    /// memory (thrashing), or lay in a gap.
    pub fn traffic(&self, run: &Run) -> Option<f64> {
        Some(run.device_bytes? as f64 / self.needed_bytes as f64)
    }
}

/// One run of all processes of a point, or the median of each figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Run {
    /// From the first start to the last end, in seconds.
    pub seconds: f64,
    /// Bytes read from the device.
    pub device_bytes: Option<u64>,
    /// Jain's fairness of the processes' speeds; 1 is equal.
    pub fairness: f64,
}

impl Run {
    /// The median of each figure by itself; `None` without runs.
    fn median(runs: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| Some(Spread::of(runs.iter().map(figure))?.median);
        let bytes = runs.iter().filter_map(|run| run.device_bytes);
        Some(Self {
            seconds: of(|run| run.seconds)?,
            device_bytes: Spread::of(bytes.map(|bytes| bytes as f64))
                .map(|spread| spread.median as u64),
            fairness: of(|run| run.fairness)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_each_figure_is_the_median_of_its_own() {
        let run = |seconds, device_bytes, fairness| Run {
            seconds,
            device_bytes,
            fairness,
        };
        let runs = [
            run(3.0, Some(10), 0.9),
            run(1.0, Some(30), 0.7),
            run(9.0, Some(20), 0.8),
        ];
        assert_eq!(Run::median(&runs), Some(run(3.0, Some(20), 0.8)));
        assert_eq!(
            Run::median(&[run(1.0, None, 1.0)]),
            Some(run(1.0, None, 1.0))
        );
        assert_eq!(Run::median(&[]), None);
    }

    #[test]
    fn traffic_is_what_the_device_read_for_each_byte_needed() {
        let run = |device_bytes| Run {
            seconds: 1.0,
            device_bytes,
            fairness: 1.0,
        };
        let point = Point {
            x: 1,
            readers: 1,
            needed_bytes: 1000,
            reads: 1,
            plain: run(None),
            foreread: run(Some(1500)),
            fixed: None,
        };
        assert_eq!(point.traffic(&point.foreread), Some(1.5));
        assert_eq!(point.traffic(&point.plain), None);
    }
}
