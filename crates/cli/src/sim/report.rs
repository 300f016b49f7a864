//! What was measured, as a table of 80 columns and as JSON.

use std::io::{self, Write};

use foreread_words::units::{WIDTH, bytes, duration, wrapped};
use foreread_words::{counted, shown};
use serde::Serialize;

use super::Compared;
use super::cache::Sum;
use super::events::Told;
use super::measure::{ASSUMED_SIZE, Measured};
use super::quantiles::Quantiles;

/// What a figure that there is none of looks like.
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
    writeln!(out)?;
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
        percent(compared.plain_hits, compared.events)
    )?;
    for model in &compared.models {
        let lead = |all: &Quantiles| all.at(0.5);
        writeln!(
            out,
            "{:<18}{:>8}{:>10}{:>6}{:>7}{:>9}{:>8}{:>8}{:>6}",
            model.name,
            percent(model.right, model.events),
            percent(model.predicted, model.events),
            or_none(model.ahead.at(0.5)),
            or_none(lead(&model.lead_events)),
            lead(&model.lead_ns).map_or(NONE.to_owned(), duration),
            percent(model.covered, model.needed),
            model.wasted().files,
            percent(model.hits, model.events),
        )?;
    }
    writeln!(out)?;
    for line in notes(compared) {
        for line in wrapped(&line, WIDTH) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What a reader needs to know of the table.
fn notes(compared: &Compared) -> Vec<String> {
    let memory = bytes(compared.args.memory);
    let mut notes = vec![format!(
        "accuracy: the file was the most likely next one. ahead, lead: medians; lead is from the first prediction of a \
         file to its use. covered: of what a cache of {memory} alone waits for. wasted: fetched ahead and not read."
    )];
    for model in &compared.models {
        let (issued, wasted) = (model.cache.issued, model.wasted());
        notes.push(format!(
            "{}: {} fetched ahead, {} wasted ({} of {}); the model takes {}",
            model.name,
            counted(issued.files, "file", "files"),
            counted(wasted.files, "file", "files"),
            bytes(wasted.bytes),
            bytes(issued.bytes),
            bytes(model.bytes() as u64),
        ));
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
    notes
}

impl Told {
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
    trained: &'a [Told],
    tested: &'a [Told],
    threshold: f64,
    memory_bytes: u64,
    learning: bool,
    /// Whether the size of any file was assumed.
    sizes_assumed: bool,
    events: u64,
    /// Events whose file a cache without prefetching had.
    plain_hits: u64,
    models: Vec<JsonModel<'a>>,
}

#[derive(Serialize)]
struct JsonModel<'a> {
    name: &'a str,
    bytes: usize,
    /// Events whose file was the most likely next one.
    right: u64,
    accuracy: f64,
    predicted: u64,
    predicted_right: u64,
    ahead: Spread,
    lead_events: Spread,
    lead_ns: Spread,
    /// Of leads in time, the share of 10 ms and more: what a read of a slow disk takes.
    lead_from_10_ms: Option<f64>,
    withdrawn: u64,
    needed: u64,
    covered: u64,
    issued: Sum,
    wasted: Sum,
    hits: u64,
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
    let of = |model: &'a Measured| JsonModel {
        name: &model.name,
        bytes: model.bytes(),
        right: model.right,
        accuracy: model.right as f64 / model.events as f64,
        predicted: model.predicted,
        predicted_right: model.predicted_right,
        ahead: Spread::of(&model.ahead),
        lead_events: Spread::of(&model.lead_events),
        lead_ns: Spread::of(&model.lead_ns),
        lead_from_10_ms: model.lead_ns.from(10_000_000),
        withdrawn: model.withdrawn,
        needed: model.needed,
        covered: model.covered,
        issued: model.cache.issued,
        wasted: model.wasted(),
        hits: model.hits,
    };
    Json {
        trained: &compared.trained,
        tested: &compared.tested,
        threshold: compared.args.threshold,
        memory_bytes: compared.args.memory,
        learning: !compared.args.frozen,
        sizes_assumed: compared.assumed,
        events: compared.events,
        plain_hits: compared.plain_hits,
        models: compared.models.iter().map(of).collect(),
    }
}
