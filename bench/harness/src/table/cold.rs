//! The tables of starts as after a reboot, and of the second figure: the case's files alone out of memory.

use super::{CASE, Column, DISK, column, mib, percent, seconds, table};
use crate::results::{FilesOnlyFigures, Summary};

/// The tables, ready to print; empty where nothing started as after a reboot.
pub(super) fn tables(rows: &[&Summary]) -> String {
    let rows: Vec<&Summary> = rows
        .iter()
        .copied()
        .filter(|row| row.files_only.is_some())
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    out += "\nthe case's files alone out of memory\n\n";
    out += &table(&files_times(), &rows);
    out += "\nMiB from the disks, foreread's for each of plain's: everything cold; files alone\n\n";
    out += &table(&device(), &rows);
    let waiting: Vec<&Summary> = rows.into_iter().filter(|row| row.waits.is_some()).collect();
    if !waiting.is_empty() {
        out +=
            "\nwaits: a plain run's time less the processor's; gone: the share foreread takes\n\n";
        out += &table(&waits(), &waiting);
    }
    out
}

fn files(summary: &Summary, figure: fn(&FilesOnlyFigures) -> Option<f64>) -> Option<f64> {
    figure(summary.files_only.as_ref()?)
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}

/// The times of runs with the files alone out of memory.
fn files_times() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 8, |s| seconds(files(s, |f| Some(f.plain.median)))),
        column("foreread", 9, |s| {
            seconds(files(s, |f| Some(f.foreread?.median)))
        }),
        column("limit", 8, |s| seconds(files(s, |f| f.limit))),
        column("masked", 9, |s| percent(files(s, |f| f.masked_pct))),
    ]
}

/// What was read from the disks, either way.
fn device() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 9, |s| mib(s.plain_device_bytes)),
        column("foreread", 9, |s| mib(s.foreread_device_bytes)),
        column("ratio", 7, |s| times(s.device_ratio)),
        column("plain", 9, |s| mib(files(s, |f| f.plain_device_bytes))),
        column("foreread", 9, |s| {
            mib(files(s, |f| f.foreread_device_bytes))
        }),
        column("ratio", 7, |s| {
            times(files(s, FilesOnlyFigures::device_ratio))
        }),
    ]
}

/// What plain runs wait for.
fn waits() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 9, |s| seconds(Some(s.plain.median))),
        column("waits", 9, |s| seconds(s.waits)),
        column("gone", 9, |s| percent(s.waits_gone_pct)),
    ]
}
