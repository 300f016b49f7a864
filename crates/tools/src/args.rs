//! The command line.
//!
//! Invariant: everything a user can type is declared here, so that help, completions and
//! man pages, which are made from these types, are complete.

pub(crate) mod daemon;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use foreread_daemon::cli::share;
use foreread_slowdisk::cli::SlowdiskArgs;
use foreread_traces::Format;
use foreread_words::units;

use crate::calibrate::LEAST;
use crate::run::{Record, Run};
use crate::sim::{Asked, Sequences, parameter};

/// Knows what a program is about to read and has it in memory first
///
/// The first run of a command is recorded, and prefetched as far as its reads form a pattern; later runs are prefetched by what is known. The
/// program, its output and its exit status stay as they are.
#[derive(Debug, Parser)]
#[command(name = "foreread", version, max_term_width = 80)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Record(Record),
    List(List),
    Show(Show),
    Forget(Forget),
    Prune(Prune),
    Analyze(Analyze),
    Sim(Sim),
    #[command(subcommand)]
    Daemon(daemon::Daemon),
    Predict(daemon::Predict),
    Doctor(Doctor),
    Calibrate(Calibrate),
    /// Compile C programs that have a prefetch thread of their own
    ///
    /// Takes the arguments of the C compiler and is used in its place: CC="foreread cc" make. The system's compiler
    /// (cc, or what FOREREAD_CC names) does all that it would do by itself. When a program is linked, its source is
    /// sliced for what decides which files it reads where, and the program is linked again with that slice, which
    /// runs ahead of it. What cannot be sliced is left as the compiler made it. Its own option
    /// --explain, or FOREREAD_CC_EXPLAIN=1, says on standard error what was done and why; FOREREAD_CC_EXPLAIN=FILE
    /// appends that to a file, as JSON if its name ends in .jsonl. Where the translator is missing, each link says so in a
    /// line on standard error, unless FOREREAD_CC_EXPLAIN=0 or -w is given.
    #[command(disable_help_flag = true)]
    Cc(PassedOn),
    /// Compile C++ programs that have a prefetch thread of their own
    ///
    /// Takes the arguments of the C++ compiler and is used in its place, beside foreread cc:
    /// CC="foreread cc" CXX="foreread c++" make. The system's compiler is c++, or what FOREREAD_CXX names; all else is
    /// as with foreread cc.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(PassedOn),
    /// Write C and C++ programs out with their prefetch threads
    ///
    /// Runs foreread-slice, whose --help says more: foreread slice prog.c -o prog.pf.c
    #[command(disable_help_flag = true)]
    Slice(PassedOn),
    /// Mount a file system as slow as a disk of old, a cloud volume or NFS
    Slowdisk(SlowdiskArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages
    ///
    /// Without --out, foreread(1) alone goes to standard output.
    Man {
        /// Folder for a page of each command
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// What is handed on as it stands
#[derive(Debug, clap::Args)]
pub(crate) struct PassedOn {
    /// Its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARG"
    )]
    pub(crate) args: Vec<OsString>,
}

/// List the records, the last used first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a record says: files, reads, patterns, order
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The record: the start of its id, a program's name, or the path of a file, with a slash or .fr; without, the last used
    pub(crate) record: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List all files, not only the ones read most
    #[arg(long)]
    pub(crate) all: bool,
    /// The record of this command
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "record")]
    pub(crate) command: Vec<OsString>,
}

/// Show the I/O signatures of a trace that another tool has made
///
/// Reads the output of strace -f -ttt (best with -y and -T), fio iologs, Darshan logs with DXT records or the text of
/// darshan-dxt-parser, and the text of recorder2text; compressed with xz, gzip or zstd, too. For each process and file
/// the reads and writes are written down as a trace signature, and described by a pattern signature. Signatures that
/// differ in a few numbers only are one, with $1, $2 in their places.
#[derive(Debug, clap::Args)]
pub(crate) struct Analyze {
    /// The traces: files, or folders with a file a rank or process
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Take the traces to be of FORMAT: strace, fio, darshan, dxt or recorder [default: by their content]
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    pub(crate) format: Option<Format>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all signatures in full, not only the largest
    #[arg(long)]
    pub(crate) all: bool,
}

/// Compare models that predict files, on traces
///
/// Reads traces of which process opened which file: the output of strace -f -ttt, other traces that foreread analyze
/// reads, and foreread's own records (.fr); /dev/stdin is a trace, too. Each model learns from the traces given with --train,
/// and is then measured on the others, going on to learn. Options with LIST take several values with commas between
/// them, and all of their combinations are compared in one pass. docs/models.md says what the models are and how each
/// figure is defined.
#[derive(Debug, clap::Args)]
pub(crate) struct Sim {
    /// The traces to measure on
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Learn from TRACE first; may be given several times
    #[arg(long, value_name = "TRACE")]
    pub(crate) train: Vec<PathBuf>,
    /// Models: last, trie:ORDER, pcm:SIZE/ORDER, epcm:SIZE/ORDER+JUMP, or ahead:SIZE/ORDER+JUMP, which is EPCM as the daemon has
    /// it; what is left open is taken from --size and --order
    #[arg(long = "model", value_name = "LIST", value_delimiter = ',')]
    pub(crate) models: Vec<Asked>,
    /// Nodes of a partition [default: 64]
    #[arg(long = "size", value_name = "LIST", value_delimiter = ',', value_parser = parameter)]
    pub(crate) sizes: Vec<usize>,
    /// Events of a pattern [default: 8; with epcm 80 % of the size]; of orders above a size there is none
    #[arg(long = "order", value_name = "LIST", value_delimiter = ',', value_parser = parameter)]
    pub(crate) orders: Vec<usize>,
    /// Likelihoods from which on a file is fetched: above 0.5, so that a sequence is predicted
    #[arg(long = "threshold", value_name = "LIST", value_delimiter = ',', default_value = "0.55", value_parser = share)]
    pub(crate) thresholds: Vec<f64>,
    /// Memory of the cache, such as 16M,64M,256M
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "256M", value_parser = units::parse_size)]
    pub(crate) memory: Vec<u64>,
    /// Whose events follow one another
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = Sequences::Both)]
    pub(crate) sequences: Sequences,
    /// Do not learn from the traces measured on
    #[arg(long)]
    pub(crate) frozen: bool,
    /// Files that each model and each cache knows, at most: a partition of 64 nodes takes 1.3 KiB
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = limit)]
    pub(crate) max_files: usize,
    /// Processes that are followed at once, at most
    #[arg(long, value_name = "N", default_value_t = 1 << 12, value_parser = limit)]
    pub(crate) max_contexts: usize,
    /// Nodes of a trie, at most: about 40 bytes each
    #[arg(long, value_name = "N", default_value_t = 1 << 23, value_parser = limit)]
    pub(crate) max_nodes: usize,
    /// Draw the comparison into the folder DIR: figures.png, lead.png, memory.png, threshold.png
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The size of a file to measure on.
fn measurable(text: &str) -> Result<u64, String> {
    let size = units::parse_size(text)?;
    if size < LEAST {
        let least = units::bytes(LEAST);
        return Err(format!(
            "a file of less than {least} tells nothing about a device"
        ));
    }
    Ok(size)
}

/// A limit: no less than a handful, no more than a symbol's number can say.
fn limit(text: &str) -> Result<usize, String> {
    let limit: Option<usize> = text.parse().ok();
    let limit = limit.filter(|limit| (16..=1 << 30).contains(limit));
    limit.ok_or_else(|| "not a number from 16 to 1073741824".to_owned())
}

fn format_named(name: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(Format::name).join(", ");
    Format::named(name).ok_or_else(|| format!("not a format of traces ({})", known()))
}

/// Delete records
#[derive(Debug, clap::Args)]
pub(crate) struct Forget {
    /// Starts of the records' ids
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// Delete all records
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
}

/// Delete the records least recently used
#[derive(Debug, clap::Args)]
pub(crate) struct Prune {
    /// Keep at most SIZE of records, such as 500M [default: FOREREAD_STORE_LIMIT, or 1G]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) max_size: Option<u64>,
    /// Delete the ones not used for AGE, such as 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = units::parse_age)]
    pub(crate) older_than: Option<Duration>,
}

/// Say what this machine offers, what is missing, and what that costs
///
/// Exit status: 0 if prefetching works here, 1 if it cannot.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure the device a folder is on, so that runs are prefetched by its own figures
///
/// Writes a file there, reads it in many ways, each time from the device, and removes it. What
/// was found is kept, and used by every run that reads from the device.
#[derive(Debug, clap::Args)]
pub(crate) struct Calibrate {
    /// A folder on the device, in which a file can be made
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Seconds to measure for, at least about; slow disks need the 20
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=600))]
    pub(crate) seconds: u16,
    /// Measure on a file of SIZE, at least 16M, such as 64M [default: 256M, or a quarter of what is free]
    #[arg(long, value_name = "SIZE", value_parser = measurable)]
    pub(crate) size: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use foreread_run::RunArgs;

    use super::*;

    #[test]
    fn the_declarations_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_belongs_to_the_command() {
        let args = Args::parse_from(["foreread", "run", "--quiet", "--", "ls", "--json", "-q"]);
        let Command::Run(run) = args.command else {
            panic!("{args:?}");
        };
        let run = RunArgs::from(run);
        assert_eq!(run.command, ["ls", "--json", "-q"]);
        assert!(run.quiet && run.json.is_none() && run.prefetch && run.record);
    }

    #[test]
    fn recording_neither_prefetches_nor_touches_the_store_when_given_a_file() {
        let args = Args::parse_from(["foreread", "record", "-o", "x.fr", "--", "true"]);
        let Command::Record(record) = args.command else {
            panic!("{args:?}");
        };
        let run = RunArgs::from(record);
        assert!(!run.prefetch && run.record);
        assert_eq!(run.output.as_deref(), Some("x.fr".as_ref()));
    }

    /// What `foreread` reads by itself means the same here.
    #[test]
    fn plain_command_lines_mean_the_same_to_both_programs() {
        for line in [
            "run -- ls --json -q",
            "run -q --json=a.json --observer=ebpf -- ls",
            "run --quiet --no-record --redact --cache 64M -- ls -- x",
            "run --explain --no-prefetch --observer preload -- ls",
            "record --output x.fr --quiet -- ls",
            "record --redact --observer auto -- ls",
        ] {
            let words = || line.split(' ').map(OsString::from);
            let here =
                match Args::parse_from(["foreread".into()].into_iter().chain(words())).command {
                    Command::Run(run) => RunArgs::from(run),
                    Command::Record(record) => RunArgs::from(record),
                    other => panic!("{other:?}"),
                };
            let there = foreread::words::run(words()).expect("a plain line");
            assert_eq!(format!("{here:?}"), format!("{there:?}"), "{line}");
        }
    }

    #[test]
    fn forgetting_needs_to_be_told_what() {
        assert!(Args::try_parse_from(["foreread", "forget"]).is_err());
        assert!(Args::try_parse_from(["foreread", "forget", "--all", "ab"]).is_err());
        assert!(Args::try_parse_from(["foreread", "forget", "--all"]).is_ok());
    }
}
