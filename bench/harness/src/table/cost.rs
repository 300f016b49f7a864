//! The tables of the cost of observation.

use super::{Column, column, table};
use crate::cost::{BATCHES, ReadCost, RecordingCost};
use crate::stats::Spread;

/// The table of the cost per hot read.
pub fn reads(costs: &[ReadCost]) -> String {
    let rounds = costs.first().map_or(0, |cost| cost.by_call_ns.samples);
    let columns: &[Column<ReadCost>] = &[
        column("state", 24, |cost| cost.state.clone()),
        column("system call", 11, |cost| ns(cost.by_call_ns.median)),
        column("library", 9, |cost| ns(cost.by_library_ns.median)),
        column("difference", 11, |cost| ns(cost.difference_ns.median)),
        column("added", 8, |cost| {
            cost.added_ns.map_or("-".into(), |added| ns(added.median))
        }),
        column("added, range", 16, |cost| {
            let range = |added: Spread| format!("{:.1}..{:.1}", added.min, added.max);
            cost.added_ns.map_or("-".into(), range)
        }),
    ];
    format!(
        "a hot 4 KiB pread, ns: medians of {rounds} runs of {BATCHES} pairs of batches\n\
         difference: between the C library's function and the system call itself\n\
         added: the state's difference less that of the plain run in its round\n\n{}",
        table(columns, costs, 1)
    )
}

/// The table of the cost of recording.
pub fn recording(costs: &[RecordingCost]) -> String {
    let columns: &[Column<RecordingCost>] = &[
        column("case", 10, |cost| cost.case.clone()),
        column("pairs", 5, |cost| cost.plain.samples.to_string()),
        column("plain s", 9, |cost| format!("{:.3}", cost.plain.median)),
        column("recorded s", 11, |cost| {
            format!("{:.3}", cost.recorded.median)
        }),
        column("added", 9, |cost| format!("{:.1}%", cost.added_pct.median)),
        column("", 6, |cost| {
            cost.margin_pct
                .map_or_else(String::new, |margin| format!("\u{b1}{margin:.1}"))
        }),
        column("range", 16, |cost| {
            format!("{:.1}..{:.1}%", cost.added_pct.min, cost.added_pct.max)
        }),
        column("foreread MiB", 13, |cost| {
            cost.memory_mib
                .map_or("-".into(), |memory| format!("{:.1}", memory.median))
        }),
    ];
    format!(
        "recording, everything in memory (medians of pairs of runs)\n\n{}",
        table(columns, costs, 1)
    )
}

fn ns(ns: f64) -> String {
    format!("{ns:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::tests::measured;

    #[test]
    fn the_tables_fit_a_terminal_and_say_what_is_added() {
        let cost = measured(-123.4, 123.4, 1234.5);
        let text = reads(&cost.reads) + &recording(&cost.recording);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let row = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(row("plain")[3..], ["140.0", "-", "-"]);
        assert_eq!(row("prefetched")[3..5], ["16.6", "-123.4"]);
        assert_eq!(
            row("hot")[1..],
            [
                "1",
                "1.000",
                "2.234",
                "123.4%",
                "\u{b1}0.5",
                "123.4..123.4%",
                "1234.5"
            ]
        );
    }
}
