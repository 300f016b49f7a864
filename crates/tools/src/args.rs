//! The command line.
//!
//! Invariant: everything that a user can type is declared here. Help, completions and man pages are made from these types, so they are
//! complete.

pub(crate) mod cache;
pub(crate) mod daemon;
pub(crate) mod travel;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use foreread_daemon::cli::share;
use foreread_slowdisk::cli::SlowdiskArgs;
use foreread_traces::Format;
use foreread_words::units;

use crate::calibrate::probe::LEAST;
use crate::run::{Record, Run};
use crate::sim::models::{ModelChoice, Sequences, parameter};

/// The version, with the commit if the sources were a git checkout.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("FOREREAD_COMMIT"));

/// Prefetch the files that a program will read
///
/// foreread run records the reads of a command's first run and prefetches them on later runs. Reads that form a pattern
/// are prefetched on the first run, too. The command's output and exit status do not change.
#[derive(Debug, Parser)]
#[command(name = "foreread", version = VERSION, max_term_width = 80)]
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
    Explain(Explain),
    Report(Report),
    Export(travel::Export),
    Import(travel::Import),
    Merge(travel::Merge),
    Forget(Forget),
    Prune(Prune),
    Analyze(Analyze),
    Sim(Sim),
    #[command(subcommand)]
    Cache(cache::Cache),
    #[command(subcommand)]
    Daemon(daemon::Daemon),
    Predict(daemon::Predict),
    #[command(subcommand)]
    Service(Service),
    Top(daemon::Top),
    Doctor(Doctor),
    Calibrate(Calibrate),
    /// Compile a C program together with its prefetch thread
    ///
    /// A replacement for the C compiler, with the same arguments: CC="foreread cc" make. The system's compiler (cc, or
    /// FOREREAD_CC) compiles as usual. At link time the code that decides which files are read, and where, is sliced out
    /// of the source. The program is linked with that slice, which runs ahead of it as its prefetch thread. Code that
    /// cannot be sliced stays as compiled.
    ///
    /// --explain, or FOREREAD_CC_EXPLAIN=1, prints what was sliced and the reason for each refusal on standard error.
    /// FOREREAD_CC_EXPLAIN=FILE appends that to FILE, as JSON if the name ends in .jsonl. If the translator is missing,
    /// each link prints one line about it, unless FOREREAD_CC_EXPLAIN=0 or -w is given.
    #[command(disable_help_flag = true)]
    Cc(PassedOn),
    /// Compile a C++ program together with its prefetch thread
    ///
    /// A replacement for the C++ compiler, with the same arguments: CC="foreread cc" CXX="foreread c++" make. The system's
    /// compiler is c++, or FOREREAD_CXX. See foreread cc.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(PassedOn),
    /// Print a C or C++ program with its prefetch thread, as source
    ///
    /// Runs foreread-slice: foreread slice prog.c -o prog.pf.c. See foreread slice --help.
    #[command(disable_help_flag = true)]
    Slice(PassedOn),
    /// Mount a file system as slow as a disk, a cloud volume or NFS
    Slowdisk(SlowdiskArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages
    ///
    /// Without --output, print foreread(1) only.
    Man {
        /// Write a page for each command into DIR
        #[arg(short, long, alias = "out", value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

/// Arguments passed on unchanged
#[derive(Debug, clap::Args)]
pub(crate) struct PassedOn {
    /// Arguments, passed on unchanged
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARG"
    )]
    pub(crate) args: Vec<OsString>,
}

/// List the records, most recently used first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a record: files, reads, patterns, order
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Start of a record's id, a program's name, or a path (with a slash or .fr) [default: the last used]
    pub(crate) record: Option<String>,
    /// Show the record of the last run, of whichever command
    #[arg(long, conflicts_with_all = ["record", "command"])]
    pub(crate) last: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List all files, not only those read most
    #[arg(long)]
    pub(crate) all: bool,
    /// Show the record of COMMAND
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "record")]
    pub(crate) command: Vec<OsString>,
}

/// Explain why a run was faster, or was not
///
/// Prints one screen: the line after the last run, its gain or the reason for having none, and findings about the command, the most costly
/// first. foreread report makes a page of the same facts.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Start of a record's id, a program's name, or a path (with a slash or .fr) [default: the last run]
    pub(crate) record: Option<String>,
    /// Explain the last run, of whichever command
    #[arg(long, conflicts_with_all = ["record", "command"])]
    pub(crate) last: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Explain the last run of COMMAND
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "record")]
    pub(crate) command: Vec<OsString>,
}

/// Make an HTML page about a run and what foreread did
///
/// Writes one HTML file without scripts or external parts: the gain or the reason for having none, the ledger of the fetched bytes,
/// findings, a timeline, and the files with most waiting. It shows the record of the command and the account of its last run, and names
/// missing facts.
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Start of a record's id, a program's name, or a path (with a slash or .fr) [default: the last run]
    pub(crate) record: Option<String>,
    /// Report the last run, of whichever command
    #[arg(long, conflicts_with_all = ["record", "command"])]
    pub(crate) last: bool,
    /// Write to FILE; - is standard output [default: PROGRAM-report.html; standard output for --svg, --png, --csv and --json]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw one part as SVG
    #[arg(long, value_name = "PART", conflicts_with_all = ["png", "csv", "json"])]
    pub(crate) svg: Option<Section>,
    /// Draw one part as PNG
    #[arg(long, value_name = "PART", conflicts_with_all = ["csv", "json"])]
    pub(crate) png: Option<Section>,
    /// Print the numbers of one part as CSV
    #[arg(long, value_name = "PART", conflicts_with = "json")]
    pub(crate) csv: Option<Section>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Report the last run of COMMAND
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "record")]
    pub(crate) command: Vec<OsString>,
}

/// A part of a report
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// Ledger of the fetched bytes
    Ledger,
    /// Reads that waited, and bytes read or fetched, over time
    Timeline,
    /// Distance of the prefetching ahead of the program
    Distance,
    /// Speed and queue of the device
    Device,
    /// Files with most waiting
    Files,
    /// Processes: when they waited and read
    Processes,
    /// Ranks of a parallel program: when they waited, and the bytes fetched for them
    Ranks,
}

/// Show the I/O signatures in a trace of another tool
///
/// Formats: strace -f -ttt (best with -y and -T), fio iologs, Darshan logs with DXT records, the text of
/// darshan-dxt-parser, the text of recorder2text, and foreread's records. xz, gzip and zstd are decompressed. Prints a
/// trace signature and a pattern signature for the reads and the writes of each process and file. Signatures that differ
/// only in a few numbers share a row, with $1, $2 in place of these numbers.
#[derive(Debug, clap::Args)]
pub(crate) struct Analyze {
    /// Traces: files, or folders with one file per rank or process
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Format of the traces: strace, fio, darshan, dxt or recorder [default: detected from the content]
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
/// Reads strace -f -ttt, the other formats of foreread analyze, and foreread's records (.fr), also from /dev/stdin. Each model is trained
/// on the --train traces, then measured on the others while it goes on learning. Options with LIST accept values separated by commas; all
/// combinations are compared in one pass. docs/models.md defines models and figures.
#[derive(Debug, clap::Args)]
pub(crate) struct Sim {
    /// Traces to measure on
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Train on TRACE first; may be repeated
    #[arg(long, value_name = "TRACE")]
    pub(crate) train: Vec<PathBuf>,
    /// Models: last, trie:ORDER, pcm:SIZE/ORDER, epcm:SIZE/ORDER+JUMP, or ahead:SIZE/ORDER+JUMP (the daemon's EPCM);
    /// missing parameters come from --nodes and --order
    #[arg(long = "model", value_name = "LIST", value_delimiter = ',')]
    pub(crate) models: Vec<ModelChoice>,
    /// Nodes per partition [default: 64]
    #[arg(long = "nodes", alias = "size", value_name = "LIST", value_delimiter = ',', value_parser = parameter)]
    pub(crate) sizes: Vec<usize>,
    /// Events per pattern, at most the nodes [default: 8; for epcm 80 % of the nodes]
    #[arg(long = "order", value_name = "LIST", value_delimiter = ',', value_parser = parameter)]
    pub(crate) orders: Vec<usize>,
    /// Least likelihood at which a file is fetched, above 0.5
    #[arg(long = "threshold", value_name = "LIST", value_delimiter = ',', default_value = "0.55", value_parser = share)]
    pub(crate) thresholds: Vec<f64>,
    /// Size of the simulated cache, such as 16M,64M,256M
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "256M", value_parser = units::parse_size)]
    pub(crate) memory: Vec<u64>,
    /// Milliseconds in which a device reads a file, one at a time; adds hits, partial hits, misses and waits
    #[arg(long = "read-ms", value_name = "MS", value_parser = milliseconds)]
    pub(crate) read_ns: Option<u64>,
    /// Sequences that the models learn from
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = Sequences::Both)]
    pub(crate) sequences: Sequences,
    /// Do not learn while measuring
    #[arg(long)]
    pub(crate) frozen: bool,
    /// Limit of files per model and cache; a partition of 64 nodes takes 1.3 KiB
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = limit)]
    pub(crate) max_files: usize,
    /// Limit of processes followed at once
    #[arg(long, value_name = "N", default_value_t = 1 << 12, value_parser = limit)]
    pub(crate) max_contexts: usize,
    /// Limit of nodes of a trie, about 40 bytes each
    #[arg(long, value_name = "N", default_value_t = 1 << 23, value_parser = limit)]
    pub(crate) max_nodes: usize,
    /// Draw plots into DIR: figures.png, lead.png, memory.png, threshold.png
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A time in milliseconds, in ns.
fn milliseconds(text: &str) -> Result<u64, String> {
    let ms: Option<f64> = text.parse().ok();
    let ms = ms.filter(|ms| (0.001..=60_000.0).contains(ms));
    let ms = ms.ok_or_else(|| "not a number of milliseconds from 0.001 to 60000".to_owned())?;
    Ok((ms * 1e6) as u64)
}

/// The size of the file that a device is measured with.
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

/// A limit between 16 and the greatest number of a symbol.
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

/// Delete the least recently used records
#[derive(Debug, clap::Args)]
pub(crate) struct Prune {
    /// Keep at most SIZE of records, such as 500M [default: FOREREAD_STORE_LIMIT, or 1G]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) max_size: Option<u64>,
    /// Delete records not used for AGE, such as 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = units::parse_age)]
    pub(crate) older_than: Option<Duration>,
}

/// Have systemd start a service under foreread run
///
/// Writes a drop-in beside the service's unit that puts foreread run before the program. The first start of the service is recorded, and
/// later starts are prefetched. docs/services.md has the details.
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Write the drop-in
    Enable(ServiceUnit),
    /// Remove the drop-in
    Disable(ServiceUnit),
}

/// A service of systemd
#[derive(Debug, clap::Args)]
pub(crate) struct ServiceUnit {
    /// Name of the service, such as postgresql@15-main
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// A service of the user's own manager, not of the system
    #[arg(long)]
    pub(crate) user: bool,
    /// Folder of another system, such as a mounted image
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    pub(crate) root: Option<PathBuf>,
    /// Print the changes and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Check this machine's features, and what missing ones cost
///
/// Exit status: 0 if prefetching works here, 1 if it cannot.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure the device that a folder is on
///
/// Writes a file into DIR, reads it from the device in several ways, and removes it. Later runs that read from this device
/// use the measured profile.
#[derive(Debug, clap::Args)]
pub(crate) struct Calibrate {
    /// A writable folder on the device
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Duration of the measurement in seconds, approximate; slow disks need 20
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=600))]
    pub(crate) seconds: u16,
    /// Size of the file, at least 16M [default: 256M, or a quarter of the free space or memory]
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

    /// Tests that plain command lines parsed by `foreread` itself mean the same here.
    #[test]
    fn plain_command_lines_mean_the_same_to_both_programs() {
        for line in [
            "run -- ls --json -q",
            "run -q --json=a.json --observer=ebpf -- ls",
            "run --quiet --no-record --redact --cache 64M -- ls -- x",
            "run --explain --no-prefetch --observer preload -- ls",
            "run make -j4 --quiet -- x",
            "run -q --json-out a.json make",
            "record --output x.fr --quiet -- ls",
            "record ls -l",
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
