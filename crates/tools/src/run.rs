//! The declarations of `foreread run` and `foreread record`. `foreread` parses plain command lines itself ([`foreread::words`]). Help,
//! errors and unusual command lines come from these declarations.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use foreread::words;
use foreread_plan::PathMap;
use foreread_run::{Choice, Limits, RunArgs, parse_cache};
use foreread_words::units;

/// The observer of the program
#[derive(Debug, clap::Args)]
struct Observed {
    /// Observer of the command's reads
    #[arg(long, value_name = "WHO", default_value = "auto")]
    observer: Who,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Who {
    /// As root, eBPF for programs that the preload library cannot observe; else the preload library
    Auto,
    /// A library loaded into the program
    Preload,
    /// Tracepoints in the kernel; needs root
    Ebpf,
}

impl From<Who> for Choice {
    fn from(who: Who) -> Self {
        match who {
            Who::Auto => Self::Auto,
            Who::Preload => Self::Preload,
            Who::Ebpf => Self::Ebpf,
        }
    }
}

/// Paths that have moved
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Mapped {
    /// Replace the path prefix OLD by NEW; may be repeated
    ///
    /// The first OLD that matches is used. Both are absolute: --map /=/mnt/image, --map /data/v1=/data/v2.
    #[arg(long, value_name = "OLD=NEW", value_parser = OsStringValueParser::new().try_map(|text| PathMap::parse(&text)))]
    map: Vec<PathMap>,
}

impl Mapped {
    /// The map made of all of them.
    pub(crate) fn all(&self) -> PathMap {
        let mut all = PathMap::default();
        self.map.iter().for_each(|one| all.extend(one.clone()));
        all
    }
}

/// Limits of a record
#[derive(Debug, Default, clap::Args)]
struct Limited {
    /// Record at most SIZE, such as 1M: the reads that waited longest
    ///
    /// Parts of files (2 MiB each) are kept in the order of the time that the command waited for them. The line after the run says how much
    /// was left out.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    max_size: Option<u64>,
    /// Record at most N files: those with most waiting
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_files: Option<u64>,
}

impl From<Limited> for Limits {
    fn from(limited: Limited) -> Self {
        Self {
            size: limited.max_size,
            files: limited.max_files,
        }
    }
}

/// Run a command and prefetch the files it reads
///
/// The first run is recorded, and reads that form a pattern are prefetched: strides, files read backward, several
/// positions of a file in turn. Later runs are prefetched from the record. The command's input, output, signals and exit
/// status do not change; foreread prints one line on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Print nothing on standard error
    #[arg(short, long)]
    quiet: bool,
    /// Write the run's account to FILE as JSON
    #[arg(long = "json-out", alias = "json", value_name = "FILE")]
    json: Option<PathBuf>,
    /// Do not prefetch
    #[arg(long)]
    no_prefetch: bool,
    /// Do not record
    #[arg(long)]
    no_record: bool,
    /// Print the full account, with reasons
    #[arg(long, conflicts_with = "quiet")]
    explain: bool,
    #[command(flatten)]
    observed: Observed,
    /// Record a keyed hash in place of each argument
    ///
    /// A record holds the command line, including passwords in it. With this option, or FOREREAD_REDACT=1 in the
    /// environment, each argument is replaced by a keyed hash; the command is still recognised. Names of files that the
    /// program reads are kept. Earlier records are not changed; foreread forget deletes them.
    #[arg(long)]
    redact: bool,
    /// Size of the collective cache per MPI rank, such as 64M [default: FOREREAD_CACHE_SIZE, or 32M]
    ///
    /// Used on file systems without a shared page cache. The least size is 1M.
    #[arg(long, value_name = "SIZE", value_parser = parse_cache)]
    cache: Option<u64>,
    #[command(flatten)]
    mapped: Mapped,
    #[command(flatten)]
    limited: Limited,
    /// Command and its arguments; -- may stand before them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl From<Run> for RunArgs {
    fn from(run: Run) -> Self {
        Self {
            command: run.command,
            quiet: run.quiet,
            explain: run.explain,
            json: run.json,
            prefetch: !run.no_prefetch,
            observer: run.observed.observer.into(),
            record: !run.no_record,
            output: None,
            redact: run.redact || words::redacts(),
            cache: run.cache,
            map: run.mapped.all(),
            limits: run.limited.into(),
        }
    }
}

/// Run a command and record its reads, without prefetching
///
/// Replaces the command's record. Nothing is prefetched, not even reads that form a pattern, so the recorded times are
/// those of the command alone.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Print nothing on standard error
    #[arg(short, long)]
    quiet: bool,
    /// Write the record to FILE instead of the store
    ///
    /// A symbolic link is followed. If FILE exists and is not a regular file, nothing is recorded.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    observed: Observed,
    /// Keep no word of the command line but the program's name
    ///
    /// The same as in foreread run. FOREREAD_REDACT=1 in the environment has the same effect.
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    limited: Limited,
    /// Command and its arguments; -- may stand before them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl From<Record> for RunArgs {
    fn from(record: Record) -> Self {
        Self {
            command: record.command,
            quiet: record.quiet,
            explain: false,
            json: None,
            prefetch: false,
            observer: record.observed.observer.into(),
            record: true,
            output: record.output,
            redact: record.redact || words::redacts(),
            cache: None,
            map: PathMap::default(),
            limits: record.limited.into(),
        }
    }
}
