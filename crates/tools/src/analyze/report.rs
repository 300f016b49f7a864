//! The output of `foreread analyze`: a summary, then one row per family of signatures, the largest first; or the same as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use foreread_traces::{Operation, Who};
use foreread_words::units::{WIDTH, bytes, cut, folded, wrapped};
use foreread_words::{counted, shown};
use serde::Serialize;

use super::families::Family;
use super::streams::Stream;
use super::{Analysis, TraceRead};
use crate::output::fitted;

/// Number of rows without `--all`.
const ROWS: usize = 20;
/// Lines per signature without `--all`.
const LINES: usize = 4;
/// Parameters listed without `--all`.
const PARAMETERS: usize = 4;
/// Values listed per parameter without `--all`.
const FEW: usize = 8;
/// File names per row without `--all`.
const FILES: usize = 3;
/// Column at which the text of the summary begins.
const COLUMN: usize = 10;
/// Indentation of a row's signature, in columns.
const INDENT: usize = 4;

/// Totals of one operation.
#[derive(Serialize)]
struct Sums {
    accesses: u64,
    bytes: u64,
    /// Raw bytes of these accesses in the traces.
    raw_bytes: u64,
    streams: u64,
    /// Streams without a signature, because it grew too long.
    unsigned_streams: u64,
    /// Bytes of the signatures; streams without one count with their raw bytes.
    signature_bytes: u64,
    /// Raw bytes divided by signature bytes.
    ratio: Option<f64>,
}

impl Sums {
    fn of(analysis: &Analysis, operation: Operation) -> Self {
        let mut sums = Self {
            accesses: 0,
            bytes: 0,
            raw_bytes: 0,
            streams: 0,
            unsigned_streams: 0,
            signature_bytes: 0,
            ratio: None,
        };
        for family in families(analysis, operation) {
            let mut raw = 0;
            for stream in streams(analysis, family) {
                sums.accesses += stream.count;
                sums.bytes = sums.bytes.saturating_add(stream.bytes);
                raw += stream.raw;
                sums.unsigned_streams += u64::from(stream.trace.is_none());
            }
            sums.raw_bytes += raw;
            sums.streams += family.members.len() as u64;
            sums.signature_bytes += if family.is_signed() {
                family.size()
            } else {
                raw
            };
        }
        sums.ratio =
            (sums.signature_bytes > 0).then(|| sums.raw_bytes as f64 / sums.signature_bytes as f64);
        sums
    }
}

fn families(analysis: &Analysis, operation: Operation) -> impl Iterator<Item = &Family> {
    let all = analysis.families.iter();
    all.filter(move |family| family.operation == operation)
}

fn streams<'a>(
    analysis: &'a Analysis,
    family: &'a Family,
) -> impl Iterator<Item = &'a Stream> + 'a {
    let members = family.members.iter();
    members.map(|number| &analysis.streams.all[*number])
}

/// Prints the analysis as text.
pub(crate) fn print(out: &mut impl Write, analysis: &Analysis, all: bool) -> Result<()> {
    for told in &analysis.told {
        print_trace(out, told)?;
    }
    let by = format!(
        "{} by {}",
        counted(analysis.names.files() as u64, "file", "files"),
        counted(
            analysis.names.whos() as u64,
            "process",
            "processes, threads or ranks"
        )
    );
    row(out, "files", &by)?;
    if analysis.families.is_empty() {
        row(out, "", "no reads and no writes, and so no signatures")?;
    }
    for (operation, one, more) in [
        (Operation::Read, "read", "reads"),
        (Operation::Write, "write", "writes"),
    ] {
        let sums = Sums::of(analysis, operation);
        if sums.accesses > 0 {
            row(out, more, &in_words(&sums, one, more))?;
        }
    }
    if let Some(TraceRead { raw, .. }) = analysis.told.first()
        && !analysis.families.is_empty()
    {
        let text = format!(
            "bytes of the trace are those of {raw}; names of files and processes count neither there nor in signatures"
        );
        row(out, "", &text)?;
    }
    print_families(out, analysis, all)
}

/// Prints the families of signatures, the largest first.
pub(crate) fn print_families(out: &mut impl Write, analysis: &Analysis, all: bool) -> Result<()> {
    let shown = if all { usize::MAX } else { ROWS };
    for family in analysis.families.iter().take(shown) {
        writeln!(out)?;
        print_family(out, analysis, family, all)?;
    }
    if analysis.families.len() > shown {
        let more = analysis.families.len() - shown;
        writeln!(out, "\nand {more} more (--all lists them)")?;
    }
    Ok(())
}

fn print_trace(out: &mut impl Write, told: &TraceRead) -> Result<()> {
    row(out, "trace", &told.path.to_string_lossy())?;
    let mut text = format!(
        "{}: {}",
        told.title,
        counted(told.accesses, "access", "accesses")
    );
    for (count, word) in [(told.opens, "opens"), (told.maps, "mmaps")] {
        if count > 0 {
            text += &format!(", {count} of them {word}");
        }
    }
    row(out, "", &text)?;
    for problem in &told.problems {
        row(out, "problem", problem)?;
    }
    let kept = told.problems.len() as u64;
    if told.problem_count > kept {
        let more = told.problem_count - kept;
        row(out, "", &format!("and {more} more problems"))?;
    }
    for left_out in &told.left_out {
        row(out, "left out", left_out)?;
    }
    Ok(())
}

fn in_words(sums: &Sums, one: &str, more: &str) -> String {
    let mut text = format!(
        "{} of {} in {}; {} of the trace, {} as signatures",
        counted(sums.accesses, one, more),
        bytes(sums.bytes),
        counted(sums.streams, "stream", "streams"),
        bytes(sums.raw_bytes),
        bytes(sums.signature_bytes),
    );
    if let Some(ratio) = sums.ratio {
        let digits = usize::from(ratio < 9.95);
        text += &format!(": {ratio:.digits$} times smaller");
    }
    if sums.unsigned_streams > 0 {
        text += &format!(
            " ({} without a pattern count as in the trace)",
            counted(sums.unsigned_streams, "stream", "streams")
        );
    }
    text
}

/// Prints a label with its lines to the right of it.
fn row(out: &mut impl Write, mut label: &str, text: &str) -> Result<()> {
    for line in folded(&shown(text), WIDTH - COLUMN) {
        writeln!(out, "{label:<COLUMN$}{line}")?;
        label = "";
    }
    Ok(())
}

fn print_family(
    out: &mut impl Write,
    analysis: &Analysis,
    family: &Family,
    all: bool,
) -> Result<()> {
    let (mut count, mut size) = (0, 0u64);
    let mut whos = std::collections::BTreeSet::new();
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for stream in streams(analysis, family) {
        count += stream.count;
        size = size.saturating_add(stream.bytes);
        whos.insert(stream.who);
        *files.entry(analysis.names.file(stream.file)).or_default() += 1;
    }
    let (one, more) = match family.operation {
        Operation::Write => ("write", "writes"),
        _ => ("read", "reads"),
    };
    let first = whos.first().and_then(|who| analysis.names.who(*who));
    let who = match (whos.len(), first) {
        (1, Some(who)) => who.to_string(),
        (all, Some(first)) => {
            let others = counted(all as u64 - 1, "other", "others");
            format!("{first} and {others}")
        }
        (_, None) => String::new(),
    };
    writeln!(
        out,
        "{}",
        fitted(
            &shown(&format!(
                "{}, {} of {}: {who}",
                counted(family.members.len() as u64, "stream", "streams"),
                counted(count, one, more),
                bytes(size)
            )),
            WIDTH,
            false
        )
    )?;
    let mut by_count: Vec<_> = files.into_iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let listed = if all { usize::MAX } else { FILES };
    for (name, count) in by_count.iter().take(listed) {
        let times = match count {
            1 => String::new(),
            count => format!(" ({count})"),
        };
        let room = WIDTH - INDENT - times.len();
        writeln!(
            out,
            "{:INDENT$}{}{times}",
            "",
            fitted(&shown(name), room, true)
        )?;
    }
    if by_count.len() > listed {
        let more = by_count.len() - listed;
        writeln!(
            out,
            "{:INDENT$}and {}",
            "",
            counted(more as u64, "other file", "other files")
        )?;
    }
    paragraph(out, &family.pattern, all)?;
    if !family.is_signed() {
        return Ok(());
    }
    paragraph(out, &family.text(), all)?;
    let ranks = ranks(analysis, family);
    let parameters = family.values.len();
    let listed = if all { parameters } else { PARAMETERS };
    for parameter in 0..parameters.min(listed) {
        let values = &family.values[parameter];
        let by_rank = ranks.as_deref();
        let by_rank = by_rank.and_then(|ranks| family.of_rank(parameter, ranks));
        let text = match (values.iter().min(), values.iter().max()) {
            _ if by_rank.is_some() => by_rank.unwrap_or_default(),
            (Some(least), Some(most)) if !all && values.len() > FEW => {
                format!("{least} to {most} in {} streams", values.len())
            }
            _ => family.values(parameter),
        };
        paragraph(out, &format!("${} {text}", parameter + 1), all)?;
    }
    if parameters > listed {
        let text = format!("${} to ${parameters} differ, too", listed + 1);
        paragraph(out, &text, all)?;
    }
    if !family.empty.is_empty() {
        let with = family.empty.len();
        let count: usize = streams(analysis, family)
            .map(|stream| stream.empty.len())
            .sum();
        let text = format!(
            "but {} of {} came back empty",
            counted(count as u64, "access", "accesses"),
            counted(with as u64, "stream", "streams")
        );
        paragraph(out, &text, all)?;
    }
    Ok(())
}

/// The ranks of a family's members; `None` if any member has no rank.
fn ranks(analysis: &Analysis, family: &Family) -> Option<Vec<i64>> {
    let ranks = streams(analysis, family).map(|stream| match analysis.names.who(stream.who) {
        Some(Who::Rank { rank, .. }) if *rank >= 0 => Some(*rank),
        _ => None,
    });
    ranks.collect()
}

/// Prints indented text: its first lines, or all.
fn paragraph(out: &mut impl Write, text: &str, all: bool) -> Result<()> {
    let lines = wrapped(text, WIDTH - INDENT);
    let shown = if all { lines.len() } else { LINES };
    for (index, line) in lines.iter().take(shown).enumerate() {
        let left = lines.len() - index - 1;
        let line = if left > 0 && index + 1 == shown {
            let more = format!(" ({})", counted(left as u64, "line more", "lines more"));
            let room = WIDTH - INDENT - more.chars().count();
            cut(line, room, false) + &more
        } else {
            line.to_string()
        };
        for line in folded(&line, WIDTH - INDENT) {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
    }
    Ok(())
}

/// The analysis as JSON.
#[derive(Serialize)]
pub(crate) struct Json<'a> {
    traces: &'a [TraceRead],
    processes: usize,
    files: usize,
    reads: Sums,
    writes: Sums,
    families: Vec<Row<'a>>,
}

/// A family of signatures as JSON.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    operation: &'static str,
    pattern: &'a str,
    /// The trace signature, with `$1`, `$2` … in place of differing numbers; absent for streams without a pattern.
    signature: Option<String>,
    signature_bytes: u64,
    members: Vec<Member<'a>>,
    /// Formulas of `$1`, `$2` … by rank, where one formula holds for all members.
    of_rank: Vec<Option<String>>,
}

#[derive(Serialize)]
struct Member<'a> {
    who: String,
    file: &'a str,
    accesses: u64,
    bytes: u64,
    raw_bytes: u64,
    /// The values of `$1`, `$2` …
    values: Vec<i64>,
    /// Accesses of the signature, counted from 0, that returned no bytes.
    empty: &'a [u64],
}

/// The families as JSON.
pub(crate) fn rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let families = analysis.families.iter().map(|family| {
        let members = streams(analysis, family).enumerate();
        let members = members.map(|(index, stream)| Member {
            who: analysis
                .names
                .who(stream.who)
                .map_or_else(String::new, ToString::to_string),
            file: analysis.names.file(stream.file),
            accesses: stream.count,
            bytes: stream.bytes,
            raw_bytes: stream.raw,
            values: family.values.iter().map(|values| values[index]).collect(),
            empty: &stream.empty,
        });
        let ranks = ranks(analysis, family).unwrap_or_default();
        let parameters = 0..family.values.len();
        let parameters = parameters.map(|one| family.of_rank(one, &ranks));
        Row {
            operation: family.operation.name(),
            pattern: &family.pattern,
            signature: family.is_signed().then(|| family.text()),
            signature_bytes: if family.is_signed() { family.size() } else { 0 },
            members: members.collect(),
            of_rank: parameters.collect(),
        }
    });
    families.collect()
}

/// The analysis as JSON.
pub(crate) fn json(analysis: &Analysis) -> Json<'_> {
    Json {
        traces: &analysis.told,
        processes: analysis.names.whos(),
        files: analysis.names.files(),
        reads: Sums::of(analysis, Operation::Read),
        writes: Sums::of(analysis, Operation::Write),
        families: rows(analysis),
    }
}
