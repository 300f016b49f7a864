//! The signatures of a record: the patterns in which each thread read each file (docs/signatures.md). For a file that a program accesses
//! through MPI-IO they describe the program's requests to MPI, not MPI's own reads.
//!
//! Data flow: [`Streams::add`] for each access, then [`Streams::found`], largest first. Memory is bounded by the number of streams and of
//! terms per stream.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use anyhow::Result;
use foreread_plan::format::Reader;
use foreread_plan::{Access, FileId, Kind, ThreadId};
use foreread_sources::signature::{
    Builder, Limits, Operation, PatternSignature, Signature, Term, Times, weight,
};
use foreread_words::counted;
use foreread_words::units::{WIDTH, bytes, cut, folded};
use serde::Serialize;

use super::path_of;
use super::sentence::sentence;
use crate::output::width;

/// Number of streams followed at the same time; with the terms of each, at most 120 MiB.
const STREAMS: usize = 8192;
/// Limits of one stream: 14 KiB of terms.
const LIMITS: Limits = Limits {
    group: 16,
    window: 64,
    keep: 64,
};
/// Streams shown without `--all`: four or five lines each.
const SHOWN: usize = 8;
/// Trace signatures shown per stream.
const SIGNATURES: usize = 3;
/// Columns before a signature, and before its explanation.
const INDENT: usize = 4;
const SAID: usize = 6;
/// Legend: the parts of a signature in braces, in order.
const LEGEND: &str = "\
Of each file, by docs/signatures.md:
    {operation, <where>, <how often>, <size of accesses>, <when>}
    {operation, first byte, dimension, ([stride, bytes, count], ...), count}
      and what that says";

/// The reads of one file by one thread.
struct Stream {
    builder: Builder,
    times: Times,
    operation: Operation,
    reads: u64,
    bytes: u64,
}

/// The calls by which a stream is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Layer {
    File,
    MpiRead,
    MpiWrite,
}

/// All streams of a record.
#[derive(Default)]
pub(super) struct Streams {
    streams: HashMap<(FileId, ThreadId, Layer), Stream>,
    /// Reads of streams beyond the limit [`STREAMS`].
    beyond: u64,
}

/// The patterns of one stream. Sizes in bytes.
#[derive(Serialize)]
pub(super) struct StreamPatterns {
    path: String,
    pid: Option<u32>,
    thread: Option<u32>,
    reads: u64,
    bytes: u64,
    /// The pattern signature.
    pattern: String,
    /// The trace signatures of loops, in the order of the reads.
    signatures: Vec<String>,
    /// Each trace signature as a sentence.
    sentences: Vec<String>,
    /// Number of reads outside loops.
    single: u64,
    /// True if the signatures and the single reads are complete.
    whole: bool,
    /// Number of signatures that are loops.
    #[serde(skip)]
    loops: usize,
    /// Indices of signatures, sorted by their bytes.
    #[serde(skip)]
    largest: Vec<usize>,
}

impl Streams {
    /// Adds an access. Touched pages have no order among themselves, so they form no pattern.
    pub(super) fn add(&mut self, access: &Access) {
        let layer = match access.kind {
            Kind::MpiRead => Layer::MpiRead,
            Kind::MpiWrite => Layer::MpiWrite,
            kind if kind.reads() && kind != Kind::Touch => Layer::File,
            _ => return,
        };
        let key = (access.file, access.thread, layer);
        if self.streams.len() >= STREAMS && !self.streams.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let stream = self.streams.entry(key).or_insert_with(|| Stream {
            builder: Builder::new(LIMITS),
            times: Times::default(),
            operation: if layer == Layer::MpiWrite {
                Operation::Write
            } else {
                Operation::Read
            },
            reads: 0,
            bytes: 0,
        });
        stream.builder.push(access.extent);
        stream.times.push(access.start);
        stream.reads += 1;
        stream.bytes = stream.bytes.saturating_add(access.extent.len);
    }

    /// The patterns, the streams with most bytes first and libraries last, and the number of reads outside all streams.
    pub(super) fn found(self, reader: &Reader) -> (Vec<StreamPatterns>, u64) {
        let asked: HashSet<FileId> = (self.streams.keys())
            .filter(|(_, _, layer)| *layer != Layer::File)
            .map(|(file, ..)| *file)
            .collect();
        let mut streams: Vec<_> = self.streams.into_iter().collect();
        streams.retain(|((file, _, layer), _)| *layer != Layer::File || !asked.contains(file));
        streams.sort_by(|(a, one), (b, other)| other.bytes.cmp(&one.bytes).then(a.cmp(b)));
        // The dynamic linker's reads of libraries are not the program's own.
        streams.sort_by_cached_key(|((file, ..), _)| is_library(&path_of(reader, *file)));
        let found = streams.into_iter().map(|((file, thread, _), stream)| {
            let thread = reader.threads().get(&thread);
            let facts = (
                path_of(reader, file),
                thread.map(|meta| (meta.pid, meta.tid)),
            );
            StreamPatterns::new(facts, stream)
        });
        (found.collect(), self.beyond)
    }
}

impl StreamPatterns {
    fn new((path, thread): (String, Option<(u32, u32)>), stream: Stream) -> Self {
        let Stream {
            builder,
            times,
            operation,
            reads,
            bytes,
        } = stream;
        let whole = builder.lost() == 0;
        let period = times.period();
        let all: Vec<Signature> = (builder.finish().terms.into_iter())
            .map(|term| Signature {
                period,
                operation,
                ..Signature::reads(term)
            })
            .collect();
        let pattern = PatternSignature::of(&all, times.temporal()).to_string();
        let alone = all.len() == 1;
        let loops: Vec<&Signature> = (all.iter())
            .filter(|one| alone || matches!(one.term, Term::Loop(_)))
            .collect();
        let single = (all.len() - loops.len()) as u64;
        let patterned = |one: &&Signature| matches!(one.term, Term::Loop(_));
        let repeated = all.iter().filter(patterned).count();
        let mut largest: Vec<usize> = (0..loops.len()).collect();
        largest.sort_by(|a, b| {
            weight(loops[*b])
                .1
                .total_cmp(&weight(loops[*a]).1)
                .then(a.cmp(b))
        });
        Self {
            path,
            pid: thread.map(|(pid, _)| pid),
            thread: thread.map(|(_, tid)| tid),
            reads,
            bytes,
            pattern,
            sentences: loops.iter().map(|one| sentence(one)).collect(),
            signatures: loops.into_iter().map(Signature::to_string).collect(),
            single,
            whole,
            loops: repeated,
            largest,
        }
    }

    /// The lines of the table, at most 80 columns wide except for paths.
    fn lines(&self, all: bool, is_cut: bool) -> Vec<String> {
        let who = self
            .thread
            .map_or_else(|| "-".to_owned(), |thread| thread.to_string());
        let head = format!("{:>9} {:>8} {who:>8}  ", bytes(self.bytes), self.reads);
        let path = match is_cut {
            true => cut(&self.path, WIDTH - head.len(), true),
            false => self.path.clone(),
        };
        let mut lines = vec![head + &path];
        let mut indented = |text: &str, indent: usize| {
            let folded = folded(text, WIDTH - indent);
            lines.extend(folded.iter().map(|line| format!("{:indent$}{line}", "")));
        };
        indented(&self.pattern, INDENT);
        let most = if all { self.largest.len() } else { SIGNATURES };
        for at in self.largest.iter().take(most) {
            indented(&self.signatures[*at], INDENT);
            indented(&self.sentences[*at], SAID);
        }
        let mut rest = Vec::new();
        if self.largest.len() > most {
            rest.push(counted(
                (self.largest.len() - most) as u64,
                "more signature",
                "more signatures",
            ));
        }
        if self.single > 0 {
            rest.push(counted(self.single, "single read", "single reads"));
        }
        if !self.whole {
            rest.push("others not kept".to_owned());
        }
        if !rest.is_empty() {
            indented(&format!("and {}", rest.join(", ")), INDENT);
        }
        lines
    }
}

/// True for shared libraries and the linker's cache: `libc.so.6`, `_json.so`, `ld.so.cache`.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// Prints the patterns of the streams with most bytes.
pub(super) fn print(
    out: &mut impl Write,
    (found, beyond): &(Vec<StreamPatterns>, u64),
    all: bool,
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let is_cut = width().is_some();
    writeln!(
        out,
        "\n{:>9} {:>8} {:>8}  FILE AND SIGNATURES",
        "BYTES", "READS", "THREAD"
    )?;
    writeln!(out, "{LEGEND}")?;
    // Streams with a single read or without a pattern come last, and are shown with `--all` only.
    let (patterned, others): (Vec<&StreamPatterns>, Vec<&StreamPatterns>) =
        found.iter().partition(|one| one.loops > 0);
    let shown = if all { patterned.len() } else { SHOWN };
    let rest = if all { others.len() } else { 0 };
    for one in patterned.iter().take(shown).chain(others.iter().take(rest)) {
        for line in one.lines(all, is_cut) {
            writeln!(out, "{line}")?;
        }
    }
    let left = patterned.len().saturating_sub(shown);
    if left > 0 {
        writeln!(out, "      and {left} more (--all lists them)")?;
    }
    if !all && !others.is_empty() {
        let others = counted(others.len() as u64, "other", "others");
        writeln!(
            out,
            "      and {others} without a pattern (--all lists them)"
        )?;
    }
    if *beyond > 0 {
        writeln!(
            out,
            "      and {} of still more",
            counted(*beyond, "read", "reads")
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use foreread_plan::Extent;

    use super::*;

    fn found(reads: impl IntoIterator<Item = (u64, u64)>, path: &str) -> StreamPatterns {
        let mut stream = Stream {
            builder: Builder::new(LIMITS),
            times: Times::default(),
            operation: Operation::Read,
            reads: 0,
            bytes: 0,
        };
        for (offset, len) in reads {
            stream.builder.push(Extent::new(offset, len));
            stream.times.push(stream.reads * stream.reads % 977 * 1000);
            stream.reads += 1;
            stream.bytes += len;
        }
        StreamPatterns::new((path.to_owned(), Some((7, 8))), stream)
    }

    #[test]
    fn a_stream_is_shown_by_its_pattern_and_its_largest_signatures() {
        let reads = (0..100).map(|n| (n * 8192, 4096));
        assert_eq!(
            found(reads, "/data/matrix").lines(false, true),
            [
                "  400 KiB      100        8  /data/matrix",
                "    {READ, <Non-contiguous, fixed strided>, <single occurrence>, <fixed size,",
                "    small>, <random>}",
                "    {READ, 0, 1, ([8192, 4096, 100]), 1}",
                "      reads 4 KiB every 8 KiB, 100 times, from byte 0",
            ]
        );
    }

    #[test]
    fn libraries_are_told_from_data() {
        for library in ["/lib/libc.so.6", "/usr/lib/_json.so", "/etc/ld.so.cache"] {
            assert!(is_library(library), "{library}");
        }
        for data in ["/data/matrix", "/data.so.d/matrix", "solution", "a.sort"] {
            assert!(!is_library(data), "{data}");
        }
    }

    #[test]
    fn of_thousands_of_files_those_with_a_pattern_are_shown_and_the_rest_is_counted() {
        let mut all: Vec<StreamPatterns> = (0..5000)
            .map(|n| found([(0, 1 << 30)], &format!("/once/{n}")))
            .collect();
        all.extend((0..20).map(|n| found((0..50).map(|k| (k << 20, 512 + n)), "/strided")));
        let all = (all, 3);
        let text = |whole| {
            let mut out = Vec::new();
            print(&mut out, &all, whole).unwrap();
            String::from_utf8(out).unwrap()
        };
        let short = text(false);
        assert!(short.lines().count() < 60, "{short}");
        assert_eq!(short.matches("/strided").count(), SHOWN);
        assert!(
            short.contains("and 12 more (--all")
                && short.contains("and 5000 others without a pattern")
        );
        assert!(short.ends_with("and 3 reads of still more\n"));
        let long = text(true);
        assert_eq!(long.matches("/strided").count(), 20);
        assert_eq!(long.matches("/once/").count(), 5000);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_no_line_is_longer_than_the_screen() {
        // Hundreds of runs of other lengths, each at another place, and reads between them.
        let runs = (0..300u64).flat_map(|run| {
            let place = run * run * run * 1_000_003;
            let strides = (0..3 + run % 7).map(move |n| (place + n * (run + 2) * 4096, 4096 + run));
            strides.chain([(place + 999, 17 * run)])
        });
        let one = found(runs, &"long/".repeat(60));
        for all in [false, true] {
            let lines = one.lines(all, true);
            assert!(
                lines.iter().all(|line| line.chars().count() <= WIDTH),
                "{lines:#?}"
            );
            let last = lines.last().unwrap();
            assert!(last.contains("single reads, others not kept"), "{last}");
        }
        assert!(one.lines(false, true).len() < 15);
        let count = |all| {
            one.lines(all, true)
                .iter()
                .filter(|line| line.contains("{READ, "))
                .count()
        };
        assert_eq!(count(false), 1 + SIGNATURES);
        assert!(count(true) > 10, "{}", count(true));
    }
}
