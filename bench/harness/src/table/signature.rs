//! The tables of first runs: what they gain of what a replay gains.

use super::{CASE, Column, DISK, bytes, column, percent, range, ratio, seconds, table};
use crate::results::Summary;

/// The tables of the group `signature`, ready to print.
pub(super) fn tables(rows: &[&Summary]) -> String {
    let mut out = String::new();
    out += "first runs under `foreread run`: nothing known, or (other-…) another input\n\
            replay: with the record of the same run; gain: first's share of replay's gain\n\n";
    out += &table(&times(), rows);
    out += "\nshortest..longest run; first / plain pair by pair\n\n";
    out += &table(&spreads(), rows);
    out += "\nread from the device, and where the first run's issued bytes ended, in MiB\n\n";
    out += &table(&bytes("first"), rows);
    out
}

/// The times of first runs.
fn times() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 8, |s| seconds(Some(s.plain.median))),
        column("first", 8, |s| seconds(s.foreread.map(|f| f.median))),
        column("replay", 8, |s| seconds(s.recorded.map(|r| r.median))),
        column("hot", 7, |s| seconds(s.hot.map(|h| h.median))),
        column("limit", 8, |s| seconds(s.limit)),
        column("gain", 8, |s| {
            percent(s.gain_share_pct.map(|gain| gain.median))
        }),
        column("masked", 8, |s| percent(s.masked_pct)),
    ]
}

/// Their spreads.
fn spreads() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 14, |s| range(Some(s.plain))),
        column("first", 14, |s| range(s.foreread)),
        column("replay", 14, |s| range(s.recorded)),
        column("ratio", 6, ratio),
        column("±", 6, |s| {
            s.ratio_margin
                .map_or("-".into(), |margin| format!("{margin:.3}"))
        }),
    ]
}
