//! The declarations of `foreread export`, `import` and `merge`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use foreread_lists as lists;
use foreread_traces as traces;

use crate::run::Mapped;
use crate::travel::From;

/// Write a record as a list for another tool
///
/// csv and jsonl have every access with its call, times and thread; foreread import reads them back. fio has the reads, for fio
/// --read_iolog. vmtouch (vmtouch -t -b), soci (soci convert --prefetch-files-json) and estargz (ctr-remote image convert
/// --estargz-record-in) list whole files, in the order of their first reads. Files that a format cannot hold are named and left out.
/// docs/records.md has the formats.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  foreread export sqlite3 --to csv > reads.csv
  foreread export --last --to vmtouch -o files && vmtouch -t -b files
  foreread export --to soci --map /mnt/image=/ -o prefetch.json -- ./app")]
pub(crate) struct Export {
    /// Start of a record's id, a program's name, or a path (with a slash or .fr) [default: the last used]
    pub(crate) record: Option<String>,
    /// Export the record of the last run, of whichever command
    #[arg(long, conflicts_with_all = ["record", "command"])]
    pub(crate) last: bool,
    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_parser = to())]
    pub(crate) to: lists::Format,
    /// Write to FILE, replaced as a whole at the end [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mapped: Mapped,
    /// Export the record of COMMAND
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "record")]
    pub(crate) command: Vec<OsString>,
}

/// Import a list, a trace or a record as the record of a command
///
/// From then on foreread run -- COMMAND follows the imported record. FILE is a record (.fr), a list that foreread export writes, or a trace
/// that foreread analyze reads (strace, fio, Darshan, Recorder). Each file is looked up on this machine. A file that is missing, may not be
/// read, or has another size than in the list is named and left out. Files with the same size and another modification time are followed,
/// and counted separately.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  foreread import files.txt -- ./app --serve
  foreread import app.fr --map /=/mnt/image -- /mnt/image/usr/bin/app
  strace -f -ttt -y -T -o trace ./app; foreread import trace -- ./app")]
pub(crate) struct Import {
    /// The list, record or trace; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format of FILE [default: detected from the content]
    #[arg(long, value_name = "FORMAT", value_parser = from())]
    pub(crate) from: Option<From>,
    /// Write the record to RECORD instead of the store
    #[arg(short, long, value_name = "RECORD")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mapped: Mapped,
    /// The command that follows the record [default: the command in the record]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Merge records of several runs of a command, or of a job's commands
///
/// For runs of one command, the merged record has the reads of most of them, in their order. For different commands, it has all their
/// reads, one command after the other: the record of the job that starts these commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  foreread record -o 1.fr ./app; foreread record -o 2.fr ./app
  foreread merge 1.fr 2.fr
  foreread merge unpack train pack -- sh job.sh")]
pub(crate) struct Merge {
    /// Records: starts of ids, programs' names, or paths (with a slash or .fr)
    #[arg(value_name = "RECORD", required = true, num_args = 2..)]
    pub(crate) records: Vec<String>,
    /// Write the record to FILE instead of the store
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The command that follows the record [default: the command of the runs]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn to() -> impl TypedValueParser<Value = lists::Format> {
    let names = lists::Format::ALL.map(lists::Format::name);
    PossibleValuesParser::new(names).try_map(|name| lists::Format::named(&name).ok_or("no format"))
}

fn from() -> impl TypedValueParser<Value = From> {
    let lists = lists::Format::ALL.map(lists::Format::name).into_iter();
    let traces = traces::Format::ALL.map(traces::Format::name).into_iter();
    let traces = traces.filter(|name| lists::Format::named(name).is_none());
    let names: Vec<_> = lists.chain(traces).collect();
    PossibleValuesParser::new(names).try_map(|name| From::named(&name).ok_or("no format"))
}
