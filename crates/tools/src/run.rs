//! The declarations of `foreread run` and `foreread record`. `foreread` itself reads plain command lines of them
//! ([`foreread::words`]); help, errors and unusual command lines are these declarations'.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use foreread::words;
use foreread_run::{Choice, RunArgs, parse_cache};

/// Who observes the program
#[derive(Debug, clap::Args)]
struct Observed {
    /// Who observes what the command reads
    #[arg(long, value_name = "WHO", default_value = "auto")]
    observer: Who,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Who {
    /// eBPF, as root, for programs that the library does not see; else the library
    Auto,
    /// A library that is put into the program
    Preload,
    /// The kernel; takes root
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

/// Run a command, prefetched by what is known of it
///
/// The first time, what it reads is recorded, and patterns in its reads are kept ahead of as they show: strides, files
/// read backward, several places of a file in turn. The command's input, output, exit status and
/// signals are its own; foreread adds one line on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Add nothing to standard error
    #[arg(short, long)]
    quiet: bool,
    /// Write the account of the run to PATH as JSON
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Do not prefetch
    #[arg(long)]
    no_prefetch: bool,
    /// Do not record
    #[arg(long)]
    no_record: bool,
    /// Say in full what was done, and why
    #[arg(long, conflicts_with = "quiet")]
    explain: bool,
    #[command(flatten)]
    observed: Observed,
    /// Keep no word of the command line but the program's name
    ///
    /// A record holds the command line it is of, and what is in that: passwords, too. With this option, or
    /// FOREREAD_REDACT=1 in the environment, a keyed hash stands for each argument, so that the same command is known
    /// again. Names of files that the program reads are kept all the same. Records made without it keep their words until
    /// they are forgotten.
    #[arg(long)]
    redact: bool,
    /// Bytes of the collective cache for each MPI rank, such as 64M [default: FOREREAD_CACHE_SIZE, or 32M]
    ///
    /// For file systems without a page cache that ranks share. At least a page of 64 KiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_cache)]
    cache: Option<u64>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
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
        }
    }
}

/// Run a command and record what it reads, without prefetching
///
/// Replaces what was known of the command. Nothing is fetched ahead, not even where the reads form a pattern: the record
/// has the times of the command alone.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Add nothing to standard error
    #[arg(short, long)]
    quiet: bool,
    /// Write the record to FILE, and leave what is known as it is
    ///
    /// A link is followed. Where FILE is no regular file, nothing is recorded.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    observed: Observed,
    /// Keep no word of the command line but the program's name
    ///
    /// As with foreread run; FOREREAD_REDACT=1 in the environment does the same.
    #[arg(long)]
    redact: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
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
        }
    }
}
