//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::case::Group;
use crate::disk::DiskKind;
use crate::files::Variant;
use crate::reader;

/// Times whole programs: plain, under foreread, with a hot cache, and the limit.
///
/// Cold runs are proved cold; the read-ahead of the disk under test is set to Linux's default of 128 KiB for the run and restored
/// afterwards. Needs root.
#[derive(Parser)]
#[command(version)]
pub struct Cli {
    /// A subset with smaller data, in under 10 minutes.
    #[arg(long)]
    pub quick: bool,
    /// Only these cases (see --list).
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Only the cases of this group.
    #[arg(long, value_name = "NAME", value_enum)]
    pub group: Option<Group>,
    /// Only these disks.
    #[arg(long = "disk", value_name = "NAME", value_enum)]
    pub disks: Vec<DiskKind>,
    /// Rounds per case [default: 3 quick, 5 otherwise; short cases run more, long ones fewer]; of the group files, measured
    /// runs of each variant [default: 4 quick, 20 otherwise].
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Only these variants of the group files.
    #[arg(long = "variant", value_name = "NAME", value_enum)]
    variants: Vec<Variant>,
    /// For the group files, run the paper's sweep: models by the nodes and the order of their partitions.
    #[arg(long, conflicts_with = "variants")]
    sweep: bool,
    /// For the group files, skip the runs under strace, and with them the times of reads.
    #[arg(long)]
    pub no_strace: bool,
    /// After this many minutes, skip the cases that have not begun [default: 9 quick, none otherwise].
    #[arg(long, value_name = "N")]
    pub minutes: Option<u64>,
    /// Leave foreread out: plain, hot and limit only.
    #[arg(long)]
    pub no_foreread: bool,
    /// The foreread binary [default: beside this program].
    #[arg(long, value_name = "FILE")]
    pub foreread: Option<PathBuf>,
    /// The directory in which the data is kept between runs.
    #[arg(
        long,
        value_name = "DIR",
        env = "FOREREAD_BENCH_DIR",
        default_value = "target/bench-data"
    )]
    pub data_dir: PathBuf,
    /// The checkout, which has sqlite/foreread.so, python/wheels and examples.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub checkout: PathBuf,
    /// The directory for the results.
    #[arg(long, value_name = "DIR", default_value = "bench/out")]
    pub out: PathBuf,
    /// List the cases and what they need.
    #[arg(long)]
    pub list: bool,
    /// Install the Debian packages the cases need, then stop.
    #[arg(long)]
    pub install: bool,
    /// Measure only the processor time per want, from the record to the account.
    #[arg(long)]
    pub cost: bool,
    /// Measure only the added time per hot read.
    #[arg(long)]
    pub pread_cost: bool,
    /// Measure only the cost of recording.
    #[arg(long)]
    pub record_cost: bool,
    /// Measure only the cost of a list handed over.
    #[arg(long)]
    pub list_cost: bool,
    /// Entries of that list.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000_000,
        requires = "list_cost"
    )]
    pub entries: u64,
    #[command(subcommand)]
    pub command: Option<Task>,
}

impl Cli {
    /// The variants of the group files to measure.
    pub fn variants(&self) -> &[Variant] {
        match self.variants.as_slice() {
            [] if self.sweep => &Variant::SWEEP,
            [] => &Variant::USUAL,
            named => named,
        }
    }
}

#[derive(Subcommand)]
pub enum Task {
    /// Generate a case's data in a folder.
    Data {
        #[command(subcommand)]
        what: Data,
    },
    /// Reads a file in a known order; the reader of the curves.
    #[command(hide = true)]
    ReadFile(reader::Reading),
    /// Serves a slow disk for the benchmark that started it.
    #[command(hide = true)]
    ServeDisk {
        #[arg(long)]
        model: String,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        size: u64,
        /// First byte on the model's disk.
        #[arg(long, default_value_t = 0)]
        begins: u64,
        /// Serve only the image, without ext4.
        #[arg(long)]
        image: bool,
    },
}

#[derive(Subcommand)]
pub enum Data {
    /// A made-up trace of a build without end, as strace writes it, to standard output.
    Trace {
        /// Number of events.
        #[arg(long, default_value_t = 10_000_000)]
        events: u64,
    },
    /// The sqlite3 database `tpch.db`, with its secondary indexes.
    Sqlite {
        /// The folder; it is created if it does not exist.
        #[arg(long)]
        dir: PathBuf,
        /// Rows, about 136 bytes each with the indexes.
        #[arg(long, default_value_t = 1_500_000)]
        rows: u64,
        /// Size in MiB, in place of the number of rows.
        #[arg(long, conflicts_with = "rows")]
        size_mib: Option<u64>,
    },
}
