//! The page of a report.

use anyhow::Result;
use askama::Template;
use foreread_words::counted;
use foreread_words::units::{bytes, duration};

use super::charts::{self, COLOURS, Chart};
use super::facts::{Facts, date};

/// What the page is made of.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    facts: &'a Facts,
    version: &'static str,
    colours: &'static str,
    recorded: Option<String>,
    run: Option<String>,
    /// Name, value, and what it is.
    numbers: [(&'static str, String, &'static str); 4],
    ledger: Option<Chart>,
    no_ledger: &'static str,
    timeline: Vec<Chart>,
    distance: Option<Chart>,
    device: Option<Chart>,
    /// What is said of a file, and its map.
    maps: Vec<(String, Chart)>,
    more_files: usize,
    names: String,
    processes: Vec<Chart>,
    processes_said: String,
    nothing_unseen: &'static str,
}

/// The page of these facts.
pub(super) fn of(facts: &Facts) -> Result<String> {
    let record = facts.record.as_ref();
    let files = record.map_or(&[][..], |record| &record.files);
    let maps = record.into_iter().flat_map(|record| {
        record.files.iter().map(|file| {
            let order = match (file.reads_waited, file.onward_share > 0.5) {
                (0..=1, _) => "",
                (_, true) => ", from front to back",
                (_, false) => ", scattered",
            };
            let said = format!(
                "{}: waited {} in {} of {}{order}; {} of {}",
                file.path,
                duration(file.waited_ns),
                file.reads_waited,
                counted(file.reads, "read", "reads"),
                bytes(file.bytes),
                bytes(file.size)
            );
            (said, charts::map(record, file))
        })
    });
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
        processes: charts::processes(facts),
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

/// The four numbers, in words.
pub(super) fn numbers(facts: &Facts) -> [(&'static str, String, &'static str); 4] {
    let time = |ns: Option<u64>| ns.map_or_else(|| "not known".to_owned(), duration);
    let numbers = &facts.numbers;
    // Beyond these bounds the share says only that the waits seen were few.
    let masked = numbers.masked.map(|share| match share {
        _ if share < 0.0 => "none".to_owned(),
        _ if share > 1.0 => "over 100 %".to_owned(),
        _ => format!("{:.0} %", share * 100.0),
    });
    [
        (
            "plain",
            time(numbers.plain_ns),
            "recorded cold, without foreread",
        ),
        (
            "with foreread",
            time(numbers.with_ns),
            "the last run that was fetched for",
        ),
        (
            "limit",
            time(numbers.limit_ns),
            "the plain run less its waits, an estimate",
        ),
        (
            "masked",
            masked.unwrap_or_else(|| "not known".to_owned()),
            "of the waits, spared by foreread",
        ),
    ]
}

/// What is said of names.
fn names(facts: &Facts) -> String {
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
