//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::case::Group;
use crate::disk::DiskKind;
use crate::files::Variant;
use crate::reader;

/// Times whole programs: plain, under foreread, with a hot cache, and the limit.
///
/// Cold runs are proved cold; the read-ahead of the disk under test is set to Linux's
/// default 128 KiB for the run and put back afterwards. Needs root.
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
    /// Of the group files the paper's sweep: models by the nodes and the order of their partitions.
    #[arg(long, conflicts_with = "variants")]
    sweep: bool,
    /// After so many minutes, leave out what was not begun [default: 9 quick, none otherwise].
    #[arg(long, value_name = "N")]
    pub minutes: Option<u64>,
    /// Leave foreread out: plain, hot and limit only.
    #[arg(long)]
    pub no_foreread: bool,
    /// The foreread binary [default: beside this program].
    #[arg(long, value_name = "FILE")]
    pub foreread: Option<PathBuf>,
    /// Where the data is kept between runs.
    #[arg(
        long,
        value_name = "DIR",
        env = "FOREREAD_BENCH_DIR",
        default_value = "target/bench-data"
    )]
    pub data_dir: PathBuf,
    /// The checkout, with sqlite/foreread.so, python/wheels and examples.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub checkout: PathBuf,
    /// Where the results go.
    #[arg(long, value_name = "DIR", default_value = "bench/out")]
    pub out: PathBuf,
    /// List the cases and what they need.
    #[arg(long)]
    pub list: bool,
    /// Install the Debian packages the cases need, then stop.
    #[arg(long)]
    pub install: bool,
    /// Measure the processor time that a want costs, from the record to the account.
    #[arg(long)]
    pub cost: bool,
    /// Measure the added time per hot read, and that alone.
    #[arg(long)]
    pub pread_cost: bool,
    /// Measure the price of recording, and that alone.
    #[arg(long)]
    pub record_cost: bool,
    /// Measure what a list handed over costs instead.
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
    /// The variants of the group files.
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
    /// Generate a case's data in a folder of your own.
    Data {
        #[command(subcommand)]
        what: Data,
    },
    /// Reads a file in a known order: what the curves measure.
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
        /// Where on the model's disk it begins.
        #[arg(long, default_value_t = 0)]
        begins: u64,
        /// Only the image, without ext4.
        #[arg(long)]
        image: bool,
    },
}

#[derive(Subcommand)]
pub enum Data {
    /// A made-up trace of a build without end, as strace writes it, to standard output.
    Trace {
        /// Events in it.
        #[arg(long, default_value_t = 10_000_000)]
        events: u64,
    },
    /// The sqlite3 database `tpch.db`, with its secondary indexes.
    Sqlite {
        /// The folder, made if need be.
        #[arg(long)]
        dir: PathBuf,
        /// Rows, about 136 bytes each with the indexes.
        #[arg(long, default_value_t = 1_500_000)]
        rows: u64,
        /// The size instead, in MiB.
        #[arg(long, conflicts_with = "rows")]
        size_mib: Option<u64>,
    },
}
