//! A part of a report as a table of numbers: times in ns, sizes in bytes. The first row has the columns' names.

use std::fmt::Write as _;

use super::facts::CommandFacts;
use crate::args::Section;

/// The table of a part; only the first row if nothing is known.
pub(super) fn of(facts: &CommandFacts, part: Section) -> String {
    let (run, record) = (facts.run.as_ref(), facts.record.as_ref());
    let samples = run.map_or(&[][..], |run| &run.went.samples);
    let mut text = String::new();
    let mut row = |cells: &[&dyn std::fmt::Display]| {
        for (place, cell) in cells.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{cell}");
        }
        text.push('\n');
    };
    match part {
        Section::Ledger => {
            row(&[&"column", &"bytes"]);
            if let Some(ledger) = run.and_then(|run| run.ledger) {
                row(&[&"issued", &ledger.issued]);
                row(&[&"useful", &ledger.useful]);
                row(&[&"late", &ledger.late]);
                row(&[&"wasted", &ledger.wasted]);
                row(&[&"evicted", &ledger.evicted]);
                row(&[&"infill", &ledger.infill]);
                row(&[&"unknown", &ledger.unknown]);
            }
        }
        Section::Timeline => {
            row(&[
                &"run",
                &"start_ns",
                &"length_ns",
                &"waited_ns",
                &"read_bytes",
            ]);
            if let Some(record) = record {
                let bins = record.waited_ns.iter().zip(&record.read_bytes);
                for (bin, (waited, read)) in bins.enumerate() {
                    let start = record.bin_ns * bin as u64;
                    row(&[&"recorded", &start, &record.bin_ns, waited, read]);
                }
            }
            if let Some(waits) = run.map(|run| &run.went.waits) {
                for (bin, waited) in waits.waited_ns.iter().enumerate() {
                    let start = waits.bin_ns * bin as u64;
                    row(&[&"last", &start, &waits.bin_ns, waited, &""]);
                }
            }
        }
        Section::Distance => {
            row(&[&"at_ns", &"ahead_bytes", &"passed_bytes"]);
            for sample in samples {
                row(&[&sample.at_ns, &sample.ahead_bytes, &sample.passed_bytes]);
            }
        }
        Section::Device => {
            row(&[&"at_ns", &"device_bytes", &"queue"]);
            for sample in samples {
                row(&[&sample.at_ns, &sample.device_bytes, &sample.queue]);
            }
        }
        Section::Files => {
            row(&[
                &"path",
                &"size",
                &"reads",
                &"bytes",
                &"reads_waited",
                &"waited_ns",
            ]);
            for file in record.into_iter().flat_map(|record| &record.files) {
                let path = quoted(&file.path);
                row(&[
                    &path,
                    &file.size,
                    &file.reads,
                    &file.bytes,
                    &file.reads_waited,
                    &file.waited_ns,
                ]);
            }
        }
        Section::Processes => {
            row(&[&"pid", &"program", &"reads", &"waited_ns"]);
            for lane in record.into_iter().flat_map(|record| &record.processes) {
                let program = quoted(&lane.program);
                row(&[&lane.pid, &program, &lane.reads, &lane.waited_ns]);
            }
        }
        Section::Ranks => {
            row(&[
                &"rank",
                &"host",
                &"wall_ns",
                &"waited_ns",
                &"issued",
                &"useful",
                &"late",
                &"wasted",
                &"missed",
            ]);
            for (rank, told) in &facts.ranks {
                let host = quoted(&told.host);
                let waited = told.went.waits.waited_ns.iter().sum::<u64>();
                let ledger = told.ledger.unwrap_or_default();
                row(&[
                    rank,
                    &host,
                    &told.wall_ns,
                    &waited,
                    &ledger.issued,
                    &ledger.useful,
                    &ledger.late,
                    &ledger.wasted,
                    &ledger.missed,
                ]);
            }
        }
    }
    text
}

/// A text as one cell. A quotation mark is put before a text that a spreadsheet would evaluate as a formula.
fn quoted(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}
