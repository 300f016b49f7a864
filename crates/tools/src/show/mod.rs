//! `foreread show`: the content of a record.
//!
//! Data flow: the record's accesses are read once into one [`Digest`] per file, and once more for the pictures of the files with most
//! reads. Memory is bounded by the number of files.

mod pattern;
mod picture;
mod ranks;
mod sentence;
mod signatures;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use foreread_plan::format::{Ending, Reader};
use foreread_plan::{Access, FileId, FileMeta, Kind, Meta, Rank, Summary, ThreadId};
use foreread_words::units::{WIDTH, ago, bytes, duration, wrapped};
use foreread_words::{counted, plain, shown};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::analyze::Row;
use crate::command_line::short_command_line;
use crate::output::{columns, fitted, narrow, output};
use crate::{args, chosen};
use pattern::Pattern;
use picture::{COLUMNS, Picture};
use signatures::Streams;

/// Files in the table without `--all`.
const FILES: usize = 20;
/// Number of files with a picture: few, because each takes ten lines.
const PICTURES: usize = 3;
/// Least number of reads for a picture.
const PICTURED_READS: u64 = 16;
/// Column at which the text of the summary begins.
const COLUMN: usize = 10;
/// Columns for a path.
const PATH_WIDTH: usize = 31;
/// Accesses between two updates of the progress bar.
const TICK: u64 = 1 << 18;

/// Shows the chosen record.
pub(crate) fn show(args: &args::Show) -> Result<ExitCode> {
    let mut reader = chosen::record(args.record.as_deref(), args.last, &args.command)?;
    let progress = progress(&reader);
    let mut streams = Streams::default();
    let (digests, damage) = digest(&mut reader, &mut streams, &progress);
    let found = streams.found(&reader);
    let mut files: Vec<(FileId, Digest)> = digests.into_iter().collect();
    files.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then(a.1.order.cmp(&b.1.order)));
    let together = ranks::together(&reader, &files)?;
    let mut out = output();
    if args.json {
        progress.finish_and_clear();
        serde_json::to_writer_pretty(
            &mut out,
            &Shown::new(&reader, &files, found.0, together.as_ref(), damage),
        )
        .map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pictures = pictures(&mut reader, &files, &progress);
    progress.finish_and_clear();
    print_head(&mut out, &reader, &files, damage.as_deref())?;
    for line in narrow().iter().flat_map(|said| wrapped(said, columns())) {
        writeln!(out, "{line}")?;
    }
    print_files(&mut out, &reader, &files, args.all)?;
    signatures::print(&mut out, &found, args.all)?;
    if let Some(together) = &together {
        together.print(&mut out, args.all)?;
    }
    for (id, picture) in &pictures {
        print_picture(&mut out, &path_of(&reader, *id), picture)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Totals of the accesses to one file.
#[derive(Clone, Debug, Default)]
struct Digest {
    /// Position of the file in the order of first accesses.
    order: usize,
    /// Time of the first access, in ns from the start of the run.
    first: u64,
    last: u64,
    reads: u64,
    bytes: u64,
    /// End of its last read byte, for files of unknown size.
    end: u64,
    /// Duration of its reads, in ns.
    took: u64,
    kinds: BTreeMap<&'static str, u64>,
    pattern: Pattern,
}

/// Reads all accesses. Returns the damage that ends them, if any.
fn digest(
    reader: &mut Reader,
    streams: &mut Streams,
    progress: &ProgressBar,
) -> (HashMap<FileId, Digest>, Option<String>) {
    let mut digests: HashMap<FileId, Digest> = HashMap::new();
    let mut before: HashMap<(FileId, ThreadId), (u64, u64)> = HashMap::new();
    for (count, access) in reader.accesses().enumerate() {
        let access = match access {
            Ok(access) => access,
            Err(error) => return (digests, Some(plain(&error.to_string()))),
        };
        tick(progress, count as u64);
        let order = digests.len();
        let digest = digests.entry(access.file).or_insert_with(|| Digest {
            order,
            first: access.start,
            ..Digest::default()
        });
        digest.enter(&access);
        streams.add(&access);
        if access.kind.reads() {
            let here = (access.extent.offset, access.extent.len);
            if let Some(before) = before.insert((access.file, access.thread), here) {
                digest.pattern.add(before, here.0);
            }
        }
    }
    (digests, None)
}

impl Digest {
    fn enter(&mut self, access: &Access) {
        *self.kinds.entry(access.kind.name()).or_default() += 1;
        self.last = self.last.max(access.start.saturating_add(access.took));
        if access.kind.reads() {
            self.reads += 1;
            self.bytes = self.bytes.saturating_add(access.extent.len);
            self.took = self.took.saturating_add(access.took);
            self.end = self.end.max(access.extent.end());
        }
    }

    fn calls(&self, kind: Kind) -> u64 {
        self.kinds.get(kind.name()).copied().unwrap_or(0)
    }

    /// True if the file was neither read nor opened or mapped for reading.
    fn is_only_named(&self, meta: Option<&FileMeta>) -> bool {
        let is_directory = meta.is_some_and(|meta| meta.directory);
        let looks = self.calls(Kind::Stat) + self.calls(Kind::List);
        is_directory || self.reads == 0 && looks == self.kinds.values().sum::<u64>()
    }
}

/// Uses of names by kind, counted as in the line after a run.
fn names<'a>(files: impl Iterator<Item = &'a Digest> + Clone) -> Option<String> {
    let calls = |kind| files.clone().map(|digest| digest.calls(kind)).sum::<u64>();
    let [opened, looked_up, listed] = [Kind::Open, Kind::Stat, Kind::List].map(calls);
    let used = opened + looked_up + listed;
    (used > 0)
        .then(|| format!("{used} used: {opened} opened, {looked_up} looked up, {listed} listed"))
}

/// Pictures of the files with most reads.
fn pictures(
    reader: &mut Reader,
    files: &[(FileId, Digest)],
    progress: &ProgressBar,
) -> Vec<(FileId, Picture)> {
    let span = files.iter().map(|(_, digest)| digest.last).max();
    let span = span.unwrap_or(0);
    let mut pictures: Vec<(FileId, Picture)> = files
        .iter()
        .filter(|(_, digest)| digest.reads >= PICTURED_READS)
        .take(PICTURES)
        .map(|(id, digest)| (*id, Picture::new(span, digest.end)))
        .collect();
    if pictures.is_empty() {
        return pictures;
    }
    for (count, access) in reader.accesses().map_while(Result::ok).enumerate() {
        tick(progress, count as u64);
        if let Some((_, picture)) = pictures.iter_mut().find(|(id, _)| *id == access.file)
            && access.kind.reads()
        {
            picture.dot(access.start, access.extent.offset);
        }
    }
    pictures
}

/// A progress bar, shown on a terminal only and for long records only.
fn progress(reader: &Reader) -> ProgressBar {
    let accesses = reader.summary().map_or(0, |summary| summary.accesses);
    if accesses < 4 * TICK {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(accesses);
    if let Ok(style) = ProgressStyle::with_template("reading the record {bar:40} {percent} %") {
        bar.set_style(style);
    }
    bar
}

fn tick(progress: &ProgressBar, count: u64) {
    if count.is_multiple_of(TICK) {
        progress.set_position(count);
    }
}

fn path_of(reader: &Reader, id: FileId) -> String {
    reader.files().get(&id).map_or_else(
        || format!("file {} (not named in the record)", id.0),
        |meta| shown(&meta.path.to_string_lossy()).into_owned(),
    )
}

fn print_head(
    out: &mut impl Write,
    reader: &Reader,
    files: &[(FileId, Digest)],
    damage: Option<&str>,
) -> Result<()> {
    let Meta {
        identity,
        recorded_at,
        writer,
    } = reader.meta();
    let recorded = UNIX_EPOCH + Duration::from_secs(*recorded_at);
    let reads: u64 = files.iter().map(|(_, digest)| digest.reads).sum();
    let read = files
        .iter()
        .fold(0u64, |sum, (_, digest)| sum.saturating_add(digest.bytes));
    let named = files.iter().filter(|(id, digest)| {
        let meta = reader.files().get(id);
        digest.is_only_named(meta)
    });
    let named = named.count() as u64;
    let mut row = |label: &str, said: &str| print_row(out, label, said);
    row("command", &short_command_line(identity))?;
    row("program", &shown(&identity.exe))?;
    row("folder", &shown(&identity.cwd))?;
    if let Some(Rank { rank, of }) = identity.rank {
        row("rank", &format!("{rank} of {of}"))?;
    }
    let when = ago(recorded, std::time::SystemTime::now());
    row("recorded", &format!("{when} by {}", shown(writer)))?;
    row("record", &shown(&reader.path().to_string_lossy()))?;
    let size = reader.size_bytes();
    let each = match reads {
        0 => String::new(),
        _ => format!(", {:.1} bytes a read", size as f64 / reads as f64),
    };
    row("size", &format!("{}{each}", bytes(size)))?;
    let read = format!(
        "{} in {} of {} by {} of {}",
        bytes(read),
        counted(reads, "read", "reads"),
        counted(files.len() as u64 - named, "file", "files"),
        counted(reader.threads().len() as u64, "thread", "threads"),
        counted(processes(reader).len() as u64, "process", "processes")
    );
    row("read", &read)?;
    if let Some(names) = names(files.iter().map(|(_, digest)| digest)) {
        row("names", &names)?;
    }
    if let Some(summary) = reader.summary() {
        print_summary(out, summary)?;
    }
    match (reader.ending(), damage) {
        (_, Some(damage)) => {
            let text = format!("{damage}; this is what comes before");
            print_row(out, "damaged", &text)?;
        }
        (Ending::Damaged { at, why }, None) => {
            print_row(out, "damaged", &format!("at byte {at}: {why}"))?;
        }
        (Ending::Truncated { at }, None) => {
            let text = format!("after byte {at}; this is what comes before");
            print_row(out, "cut short", &text)?;
        }
        (Ending::Complete, None) => {}
    }
    Ok(())
}

/// A row of the summary. A path longer than a line is not wrapped.
fn print_row(out: &mut impl Write, mut label: &str, said: &str) -> Result<()> {
    for line in wrapped(said, columns() - COLUMN) {
        writeln!(out, "{label:<COLUMN$}{line}")?;
        label = "";
    }
    Ok(())
}

fn print_summary(out: &mut impl Write, summary: &Summary) -> Result<()> {
    if let Some(list) = &summary.imported {
        let said = format!("{list}, not recorded: its times are not a run's");
        return print_row(out, "made of", &said);
    }
    if summary.partial {
        print_row(out, "part", "cut to a limit: what waited longest")?;
    }
    let mut run = format!(
        "{}, of which {} in reads",
        duration(summary.wall_ns),
        duration(summary.read_ns)
    );
    if let Some(device) = summary.device_bytes {
        run += &format!("; {} from the device", bytes(device));
    }
    if let Some(status) = summary.exit_status.filter(|status| *status != 0) {
        run += &format!("; exit status {status}");
    }
    if summary.helped {
        run += "; foreread fetched ahead of it";
    }
    print_row(out, "run", &run)?;
    if let Some(cold) = summary.cold_wall_ns {
        print_row(out, "cold run", &duration(cold))?;
    }
    if summary.lost > 0 {
        let lost = counted(summary.lost, "access", "accesses");
        print_row(out, "lost", &format!("{lost} not recorded"))?;
    }
    Ok(())
}

fn print_files(
    out: &mut impl Write,
    reader: &Reader,
    files: &[(FileId, Digest)],
    all: bool,
) -> Result<()> {
    writeln!(
        out,
        "\n{:>5} {:>9} {:>8}  {:<21} FILE",
        "ORDER", "BYTES", "READS", "PATTERN"
    )?;
    let shown = if all { files.len() } else { FILES };
    for (id, digest) in files.iter().take(shown) {
        let meta = reader.files().get(id);
        let pattern = match meta {
            Some(meta) if meta.written => "written by itself".to_owned(),
            Some(meta) if meta.directory && digest.calls(Kind::List) > 0 => {
                "directory, listed".to_owned()
            }
            Some(meta) if meta.directory => "directory".to_owned(),
            _ if digest.is_only_named(meta) => "looked up".to_owned(),
            _ if digest.reads == 0 => "not read".to_owned(),
            _ => digest.pattern.describe(),
        };
        writeln!(
            out,
            "{:>5} {:>9} {:>8}  {pattern:<21} {}",
            digest.order + 1,
            bytes(digest.bytes),
            digest.reads,
            fitted(&path_of(reader, *id), PATH_WIDTH, true)
        )?;
    }
    if files.len() > shown {
        writeln!(
            out,
            "      and {} more (--all lists them)",
            files.len() - shown
        )?;
    }
    Ok(())
}

fn print_picture(out: &mut impl Write, path: &str, picture: &Picture) -> Result<()> {
    writeln!(out, "\n{}", fitted(path, WIDTH, true))?;
    for (row, line) in picture.lines().iter().enumerate() {
        let label = if row == 0 { "start of file" } else { "" };
        writeln!(out, "{label:>13} |{line}")?;
    }
    let axis = " time ->";
    writeln!(out, "{:>13} +{axis:->COLUMNS$}", "end")?;
    Ok(())
}

/// A record as JSON. Times in ns from the start of the run, sizes in bytes.
#[derive(Serialize)]
struct Shown<'a> {
    path: String,
    record_bytes: u64,
    meta: &'a Meta,
    summary: Option<&'a Summary>,
    complete: bool,
    damage: Option<String>,
    processes: Vec<Process<'a>>,
    files: Vec<File>,
    signatures: Vec<signatures::StreamPatterns>,
    /// The signatures of all ranks of a parallel program.
    ranks: Option<Vec<Row<'a>>>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    parent: u32,
    exe: &'a str,
    threads: usize,
}

#[derive(Serialize)]
struct File {
    path: String,
    size: Option<u64>,
    written: bool,
    directory: bool,
    order: usize,
    first_ns: u64,
    last_ns: u64,
    reads: u64,
    bytes: u64,
    read_ns: u64,
    calls: BTreeMap<&'static str, u64>,
    pattern: String,
    sequential_share: Option<f64>,
    backward_share: Option<f64>,
    stride: Option<i64>,
    stride_share: Option<f64>,
}

/// The processes of the run, by process id.
fn processes(reader: &Reader) -> Vec<Process<'_>> {
    let mut processes: BTreeMap<u32, Process<'_>> = BTreeMap::new();
    for thread in reader.threads().values() {
        let process = processes.entry(thread.pid).or_insert(Process {
            pid: thread.pid,
            parent: thread.ppid,
            exe: &thread.exe,
            threads: 0,
        });
        process.threads += 1;
    }
    processes.into_values().collect()
}

impl<'a> Shown<'a> {
    fn new(
        reader: &'a Reader,
        files: &[(FileId, Digest)],
        signatures: Vec<signatures::StreamPatterns>,
        together: Option<&'a ranks::Together>,
        damage: Option<String>,
    ) -> Self {
        Self {
            path: reader.path().display().to_string(),
            record_bytes: reader.size_bytes(),
            meta: reader.meta(),
            summary: reader.summary(),
            complete: damage.is_none() && reader.is_complete(),
            damage,
            processes: processes(reader),
            files: files
                .iter()
                .map(|(id, digest)| File::new(reader, *id, digest))
                .collect(),
            signatures,
            ranks: together.map(ranks::Together::rows),
        }
    }
}

impl File {
    fn new(reader: &Reader, id: FileId, digest: &Digest) -> Self {
        let meta = reader.files().get(&id);
        let stride = digest.pattern.stride();
        Self {
            path: path_of(reader, id),
            size: meta.map(|meta| meta.size),
            written: meta.is_some_and(|meta| meta.written),
            directory: meta.is_some_and(|meta| meta.directory),
            order: digest.order + 1,
            first_ns: digest.first,
            last_ns: digest.last,
            reads: digest.reads,
            bytes: digest.bytes,
            read_ns: digest.took,
            calls: digest.kinds.clone(),
            pattern: digest.pattern.describe(),
            sequential_share: digest.pattern.sequential_share(),
            backward_share: digest.pattern.backward_share(),
            stride: stride.map(|(stride, _)| stride),
            stride_share: stride.map(|(_, share)| share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_as_the_line_of_the_run_counts_them() {
        let of = |kinds: &[(Kind, u64)]| Digest {
            kinds: kinds.iter().map(|(kind, n)| (kind.name(), *n)).collect(),
            ..Digest::default()
        };
        let used = [
            of(&[(Kind::Open, 3), (Kind::Read, 9)]),
            of(&[(Kind::Open, 1), (Kind::Stat, 2), (Kind::List, 1)]),
        ];
        let said = names(used.iter()).unwrap();
        assert_eq!(said, "7 used: 4 opened, 2 looked up, 1 listed");
        assert_eq!(names([of(&[(Kind::Read, 9)])].iter()), None);
    }
}
