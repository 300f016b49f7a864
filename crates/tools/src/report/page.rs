//! The HTML page of a report.

use anyhow::Result;
use askama::Template;
use foreread_run::Fate;
use foreread_words::counted;
use foreread_words::units::{bytes, duration};

use super::charts::{self, COLOURS, Chart};
use super::digest::{File, Order};
use super::facts::{CommandFacts, date};
use super::lanes;

/// The variables of the page's template.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    facts: &'a CommandFacts,
    version: &'static str,
    colours: &'static str,
    recorded: Option<String>,
    run: Option<String>,
    numbers: [Number; 4],
    ledger: Option<Chart>,
    no_ledger: &'static str,
    timeline: Vec<Chart>,
    distance: Option<Chart>,
    device: Option<Chart>,
    /// The text about a file, and its map.
    maps: Vec<(String, Chart)>,
    more_files: usize,
    names: String,
    processes: Vec<Chart>,
    ranks: Vec<Chart>,
    ranks_said: String,
    processes_said: String,
    nothing_unseen: &'static str,
}

/// One of the four numbers, as text.
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// A short remark, or nothing if the number is not known.
    pub(super) note: &'static str,
    /// What the number is, in a phrase.
    said: &'static str,
}

/// The page of these facts.
pub(super) fn of(facts: &CommandFacts) -> Result<String> {
    let record = facts.record.as_ref();
    let files = record.map_or(&[][..], |record| &record.files);
    let maps = files.iter().map(said_of_file).zip(charts::maps(facts));
    let page = Page {
        facts,
        version: env!("CARGO_PKG_VERSION"),
        colours: COLOURS,
        recorded: facts.recorded_at.map(date),
        run: facts.run_at.map(date),
        numbers: numbers(facts),
        ledger: charts::ledger(facts),
        no_ledger: match facts.run {
            None => "Not known: no account of a run is stored.",
            Some(_) => "Nothing was fetched ahead in the last run.",
        },
        timeline: charts::timeline(facts),
        distance: charts::distance(facts),
        device: charts::device(facts),
        maps: maps.collect(),
        more_files: record.map_or(0, |record| record.files_in_all - files.len()),
        names: names(facts),
        processes: lanes::processes(facts),
        ranks: lanes::ranks(facts),
        ranks_said: lanes::said_of_ranks(facts),
        processes_said: match record {
            None => "Not known: there is no record.".to_owned(),
            Some(record) => format!(
                "Each that waited in the recorded run, and when. {} seen in all.",
                counted(
                    record.processes_in_all as u64,
                    "process was",
                    "processes were"
                )
            ),
        },
        nothing_unseen: match facts.run {
            None => "The record tells of nothing that was not observed.",
            Some(_) => {
                "Neither the record nor the last run tells of anything that was not observed."
            }
        },
    };
    Ok(page.render()? + "\n")
}

/// How a file was read, and its waiting.
fn said_of_file(file: &File) -> String {
    let order = match file.order() {
        None => "",
        Some(Order::Onward) => ", from front to back",
        Some(Order::Gaps) => ", from front to back with gaps",
        Some(Order::Scattered) => ", scattered",
    };
    let outcome = match &file.fates {
        None => "outcome not known".to_owned(),
        Some(fates) => {
            let all = Fate::ALL.iter().zip(fates).filter(|(_, all)| **all > 0);
            let all =
                all.map(|(fate, all)| format!("{} {}", bytes(*all), charts::in_words(*fate).1));
            format!("in the last run {}", all.collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "{}: waited {} in {} of {}{order}; {} of {}; {outcome}",
        file.path,
        duration(file.waited_ns),
        file.reads_waited,
        counted(file.reads, "read", "reads"),
        bytes(file.bytes),
        bytes(file.size)
    )
}

/// The four numbers as text.
pub(super) fn numbers(facts: &CommandFacts) -> [Number; 4] {
    let numbers = &facts.numbers;
    let number = |name, value: Option<String>, note, said| Number {
        name,
        note: if value.is_some() { note } else { "" },
        value: value.unwrap_or_else(|| "not known".to_owned()),
        said,
    };
    let time = |ns: Option<u64>| ns.map(duration);
    // Beyond these bounds the share shows only that few waits were observed.
    let (masked, note, said) = match numbers.masked {
        Some(share) if share > 1.0 => (
            Some("all".to_owned()),
            "less than the limit",
            "of the waits; the last run took less than the limit, which is an estimate",
        ),
        Some(share) if share < 0.0 => (
            Some("none".to_owned()),
            "",
            "of the waits; the last run took longer than the plain one",
        ),
        share => (
            share.map(|share| format!("{:.0} %", share * 100.0)),
            "",
            "of the waits: the share that foreread spared the last run",
        ),
    };
    [
        number(
            "plain",
            time(numbers.plain_ns),
            "one run",
            "one run, recorded cold and without foreread",
        ),
        number("with foreread", time(numbers.with_ns), "", "the last run"),
        number(
            "limit",
            time(numbers.limit_ns),
            "an estimate",
            "the plain run less its waits: an estimate",
        ),
        number("masked", masked, note, said),
    ]
}

/// The text about names.
fn names(facts: &CommandFacts) -> String {
    let mut said = match &facts.record {
        None => "What was looked up is not known: there is no record.".to_owned(),
        Some(record) if record.names_waited == 0 => {
            "When recorded, no file or folder that was looked up was waited for.".to_owned()
        }
        Some(record) => format!(
            "When recorded, {} of files or folders waited {}.",
            counted(record.names_waited, "look-up", "look-ups"),
            duration(record.name_waited_ns)
        ),
    };
    let names = facts.run.as_ref().and_then(|run| run.names);
    if let Some(names) = names.filter(|names| names.asked > 0) {
        said += &format!(
            " In the last run, {} looked up ahead. {} of these came from the device; the program still waited for {}.",
            counted(names.asked, "name was", "names were"),
            names.fetched,
            names.late
        );
    }
    said
}
