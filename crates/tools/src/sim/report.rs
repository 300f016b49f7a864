//! The results as a table of 80 columns, and as JSON.

use std::io::{self, Write};

use foreread_words::units::{WIDTH, bytes, duration, wrapped};
use foreread_words::{counted, shown};
use serde::Serialize;

use super::Compared;
use super::cache::Sum;
use super::device::Reads;
use super::events::TraceRead;
use super::measure::{ASSUMED_SIZE, Arm, Cached, Measured};
use super::quantiles::Quantiles;

/// Printed in place of a missing figure.
const NONE: &str = "-";

/// Prints the comparison.
pub(super) fn print(out: &mut impl Write, compared: &Compared) -> io::Result<()> {
    for (traces, what) in [
        (&compared.trained, "trained on"),
        (&compared.tested, "tested on"),
    ] {
        for told in traces {
            writeln!(out, "{what} {}", told.line())?;
            for problem in &told.problems {
                writeln!(out, "  {problem}")?;
            }
        }
    }
    let args = compared.args;
    for (place, threshold) in args.thresholds.iter().enumerate() {
        writeln!(out)?;
        if args.thresholds.len() > 1 {
            writeln!(out, "fetched from a likelihood of {threshold} on")?;
            writeln!(out)?;
        }
        figures(out, compared, place)?;
        if args.memory.len() > 1 {
            writeln!(out)?;
            hits(out, compared, place)?;
        }
        if let Some(plain) = compared.plain_reads.first() {
            writeln!(out)?;
            reads(out, compared, (place, plain))?;
        }
    }
    writeln!(out)?;
    for line in notes(compared) {
        for line in wrapped(&line, WIDTH) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// The figures of all models at a threshold, for the first size of memory.
fn figures(out: &mut impl Write, compared: &Compared, place: usize) -> io::Result<()> {
    writeln!(
        out,
        "{:<18}{:>8}{:>10}{:>6}{:>7}{:>9}{:>8}{:>8}{:>6}",
        "model", "accuracy", "predicted", "ahead", "lead", "lead", "covered", "wasted", "hits"
    )?;
    writeln!(
        out,
        "{:<18}{:>8}{:>10}{:>6}{:>7}{:>9}{:>8}{:>8}{:>6}",
        "", "%", "%", "files", "events", "time", "%", "files", "%"
    )?;
    writeln!(
        out,
        "{:<66}{:>8}{:>6}",
        "no prefetching",
        NONE,
        percent(compared.plain_hits[0], compared.events)
    )?;
    for model in &compared.models {
        let arm = &model.arms[place];
        let cached = &arm.caches[0];
        let lead = |all: &Quantiles| all.at(0.5);
        writeln!(
            out,
            "{:<18}{:>8}{:>10}{:>6}{:>7}{:>9}{:>8}{:>8}{:>6}",
            model.name,
            percent(model.right, model.events),
            percent(arm.predicted, model.events),
            or_none(arm.ahead.at(0.5)),
            or_none(lead(&arm.lead_events)),
            lead(&arm.lead_ns).map_or(NONE.to_owned(), duration),
            percent(cached.covered, cached.needed),
            cached.wasted().files,
            percent(cached.hits, model.events),
        )?;
    }
    Ok(())
}

/// Columns for a size of memory.
const HITS: usize = 10;
/// Sizes of memory side by side.
const BESIDE: usize = (WIDTH - NAME) / HITS;
/// Columns for a model's name.
const NAME: usize = 18;

/// Hits of all models at a threshold, by size of memory.
fn hits(out: &mut impl Write, compared: &Compared, place: usize) -> io::Result<()> {
    let sizes: Vec<(usize, u64)> = compared.args.memory.iter().copied().enumerate().collect();
    for sizes in sizes.chunks(BESIDE) {
        write!(out, "{:<NAME$}", "hits, %, with")?;
        for (_, memory) in sizes {
            write!(out, "{:>HITS$}", bytes(*memory))?;
        }
        write!(out, "\n{:<NAME$}", "no prefetching")?;
        for (size, _) in sizes {
            let hits = compared.plain_hits[*size];
            write!(out, "{:>HITS$}", percent(hits, compared.events))?;
        }
        for model in &compared.models {
            write!(out, "\n{:<NAME$}", model.name)?;
            for (size, _) in sizes {
                let hits = model.arms[place].caches[*size].hits;
                write!(out, "{:>HITS$}", percent(hits, model.events))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Hits, misses and waits of all models at a threshold, and the share of the waiting that is gone.
fn reads(
    out: &mut impl Write,
    compared: &Compared,
    (place, plain): (usize, &Reads),
) -> io::Result<()> {
    writeln!(
        out,
        "{:<18}{:>9}{:>9}{:>9}{:>11}{:>9}",
        "reads", "hits", "partial", "misses", "waited", "gone, %"
    )?;
    let mut row = |name: &str, reads: &Reads| {
        let gone = plain.waited_ns as f64 - reads.waited_ns as f64;
        let gone = match plain.waited_ns {
            0 => NONE.to_owned(),
            all => format!("{:.1}", 100.0 * gone / all as f64),
        };
        let Reads {
            hits,
            partial,
            misses,
            waited_ns,
        } = *reads;
        let waited = duration(waited_ns);
        writeln!(
            out,
            "{name:<18}{hits:>9}{partial:>9}{misses:>9}{waited:>11}{gone:>9}"
        )
    };
    row("no prefetching", plain)?;
    for model in &compared.models {
        if let Some(device) = &model.arms[place].caches[0].device {
            row(&model.name, &device.reads)?;
        }
    }
    Ok(())
}

/// Notes below the table.
fn notes(compared: &Compared) -> Vec<String> {
    let args = compared.args;
    let memory = bytes(args.memory[0]);
    let mut notes = vec![format!(
        "accuracy: the file was the most likely next one. ahead, lead: medians; lead is from the first prediction of a \
         file to its use. covered: of what a cache of {memory} alone waits for. wasted: fetched ahead and not read."
    )];
    for model in &compared.models {
        for arm in &model.arms {
            let cached = &arm.caches[0];
            let (issued, wasted) = (cached.cache.issued, cached.wasted());
            let at = match args.thresholds.len() {
                1 => String::new(),
                _ => format!(" from {} on", arm.threshold),
            };
            notes.push(format!(
                "{}{at}: {} fetched ahead, {} wasted ({} of {}); the model takes {}",
                model.name,
                counted(issued.files, "file", "files"),
                counted(wasted.files, "file", "files"),
                bytes(wasted.bytes),
                bytes(issued.bytes),
                bytes(model.bytes() as u64),
            ));
        }
    }
    if compared.assumed {
        notes.push(format!(
            "Files whose size the traces do not say are taken for {}.",
            bytes(ASSUMED_SIZE)
        ));
    }
    if !compared.timed {
        notes.push("The traces have no times: lead is known in events alone.".to_owned());
    }
    if let Some(ns) = args.read_ns {
        notes.push(format!(
            "partial: the file was being read ahead and not there yet. waited: for a device that takes {} a file.",
            duration(ns)
        ));
    }
    if let Some(folder) = &args.plots {
        let folder = folder.display().to_string();
        notes.push(format!("Drawn into {}.", shown(&folder)));
    }
    notes
}

impl TraceRead {
    fn line(&self) -> String {
        format!(
            "{}: {}",
            shown(&self.path),
            counted(self.events, "event", "events")
        )
    }
}

fn percent(part: u64, of: u64) -> String {
    match of {
        0 => NONE.to_owned(),
        of => format!("{:.1}", 100.0 * part as f64 / of as f64),
    }
}

fn or_none(value: Option<u64>) -> String {
    value.map_or(NONE.to_owned(), |value| value.to_string())
}

/// The comparison as JSON.
#[derive(Serialize)]
pub(super) struct Json<'a> {
    trained: &'a [TraceRead],
    tested: &'a [TraceRead],
    learning: bool,
    /// True if the size of any file was assumed.
    sizes_assumed: bool,
    events: u64,
    /// A cache without prefetching.
    plain: Vec<JsonPlain>,
    /// Each model at each threshold.
    models: Vec<JsonModel<'a>>,
}

#[derive(Serialize)]
struct JsonPlain {
    memory_bytes: u64,
    hits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Reads>,
}

#[derive(Serialize)]
struct JsonModel<'a> {
    name: &'a str,
    threshold: f64,
    bytes: usize,
    /// Events whose file was the most likely next file.
    right: u64,
    accuracy: f64,
    predicted: u64,
    predicted_right: u64,
    ahead: Spread,
    lead_events: Spread,
    lead_ns: Spread,
    /// Share of leads of at least 10 ms, the time of a read on a slow disk.
    lead_from_10_ms: Option<f64>,
    withdrawn: u64,
    /// Results by size of memory.
    caches: Vec<JsonCache>,
}

#[derive(Serialize)]
struct JsonCache {
    memory_bytes: u64,
    needed: u64,
    covered: u64,
    issued: Sum,
    wasted: Sum,
    hits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Reads>,
}

#[derive(Serialize)]
struct Spread {
    count: u64,
    p10: Option<u64>,
    median: Option<u64>,
    p90: Option<u64>,
}

impl Spread {
    fn of(all: &Quantiles) -> Self {
        Self {
            count: all.count(),
            p10: all.at(0.1),
            median: all.at(0.5),
            p90: all.at(0.9),
        }
    }
}

pub(super) fn json<'a>(compared: &'a Compared<'_>) -> Json<'a> {
    let args = compared.args;
    let cache = |(cached, memory): (&Cached, &u64)| JsonCache {
        memory_bytes: *memory,
        needed: cached.needed,
        covered: cached.covered,
        issued: cached.cache.issued,
        wasted: cached.wasted(),
        hits: cached.hits,
        reads: cached.device.as_ref().map(|device| device.reads),
    };
    let of = |model: &'a Measured, arm: &'a Arm| JsonModel {
        name: &model.name,
        threshold: arm.threshold,
        bytes: model.bytes(),
        right: model.right,
        accuracy: model.right as f64 / model.events as f64,
        predicted: arm.predicted,
        predicted_right: arm.predicted_right,
        ahead: Spread::of(&arm.ahead),
        lead_events: Spread::of(&arm.lead_events),
        lead_ns: Spread::of(&arm.lead_ns),
        lead_from_10_ms: arm.lead_ns.from(10_000_000),
        withdrawn: arm.withdrawn,
        caches: arm.caches.iter().zip(&args.memory).map(cache).collect(),
    };
    let plain = args.memory.iter().zip(&compared.plain_hits).enumerate();
    Json {
        trained: &compared.trained,
        tested: &compared.tested,
        learning: !args.frozen,
        sizes_assumed: compared.assumed,
        events: compared.events,
        plain: plain
            .map(|(place, (memory, hits))| JsonPlain {
                memory_bytes: *memory,
                hits: *hits,
                reads: compared.plain_reads.get(place).copied(),
            })
            .collect(),
        models: compared
            .models
            .iter()
            .flat_map(|model| model.arms.iter().map(move |arm| of(model, arm)))
            .collect(),
    }
}
