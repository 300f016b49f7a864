//! The tables of translated programs: their times, the paper's figures, and what their prefetch threads cost.

use super::{CASE, Column, DISK, bytes, column, percent, seconds, spreads, table};
use crate::results::Summary;
use crate::translated::Build;

/// The tables of the group `slice`, ready to print.
pub(super) fn tables(rows: &[&Summary]) -> String {
    let mut out = String::new();
    out += "programs translated by `foreread cc`, and the plain ones under `foreread run`\n\n";
    out += &table(&times(), rows);
    out += "\nthe paper's figures; the work chosen, and hot / plain with it; percent of hot\n\n";
    out += &table(&costs(), rows);
    out += "\nadded by synchronization, percent of hot; to translate, percent of a run of cc\n\n";
    out += &table(&overheads(), rows);
    out += "\nshortest..longest run; cc / plain pair by pair; the price of recording\n\n";
    out += &table(&spreads("cc"), rows);
    out += "\nread from the device, and where the bytes the program had issued ended, in MiB\n\n";
    out += &table(&bytes("cc"), rows);
    out += "\nseconds to compile; KiB of code, with the prefetch thread's library\n\n";
    out += &builds(rows);
    out
}

/// The times of translated programs.
fn times() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 8, |s| seconds(Some(s.plain.median))),
        column("cc", 8, |s| seconds(s.foreread.map(|f| f.median))),
        column("run", 8, |s| seconds(s.recorded.map(|r| r.median))),
        column("hot", 7, |s| seconds(s.hot.map(|h| h.median))),
        column("limit", 7, |s| seconds(s.limit)),
        column("improved", 9, |s| percent(s.improvement_pct)),
        column("masked", 8, |s| percent(s.masked_pct)),
    ]
}

/// What they cost on the program's own side and to translate, in percent, beside the paper's.
fn overheads() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("sync", 8, |s| {
            percent(s.prefetch_thread.map(|thread| thread.synchronization_pct))
        }),
        column("paper", 8, |s| {
            percent(s.paper.and_then(|p| p.synchronization_pct))
        }),
        column("compile", 8, |s| {
            let added = s.build.as_ref().map(|b| b.translated_s - b.plain_s);
            let run = s.foreread.map(|f| f.median);
            percent(added.zip(run).map(|(added, run)| added / run * 100.0))
        }),
        column("paper", 8, |s| percent(s.paper.and_then(|p| p.compile_pct))),
    ]
}

/// The paper's figures for them, how much they compute, and what their prefetch threads cost.
fn costs() -> Vec<Column> {
    let computing = |s: &Summary| percent(s.hot.map(|hot| hot.median / s.plain.median * 100.0));
    vec![
        CASE,
        DISK,
        column("paper", 7, |s| {
            percent(s.paper.map(|paper| paper.improvement_pct))
        }),
        column("masked", 7, |s| percent(s.paper.map(|p| p.masked_pct))),
        column("work", 5, |s| {
            s.work.map_or("-".into(), |work| work.to_string())
        }),
        column("hot", 7, computing),
        column("paper", 7, |s| {
            percent(s.paper.and_then(|p| Some(p.computing? * 100.0)))
        }),
        column("thread", 7, |s| {
            percent(s.prefetch_thread.map(|thread| thread.cpu_pct))
        }),
        column("process", 8, |s| {
            percent(s.prefetch_thread.map(|thread| thread.process_cpu_pct))
        }),
    ]
}

/// One line a program: what it takes to translate it.
fn builds(rows: &[&Summary]) -> String {
    let mut out = format!(
        "{:<12}{:>8}{:>8}{:>12}{:>8}\n",
        "program", "plain s", "cc s", "plain KiB", "cc KiB"
    );
    let mut builds: Vec<&Build> = rows.iter().filter_map(|row| row.build.as_ref()).collect();
    builds.sort_by(|a, b| a.program.cmp(&b.program));
    builds.dedup_by(|a, b| a.program == b.program);
    for build in builds {
        out += &format!(
            "{:<12}{:>8.2}{:>8.2}{:>12.1}{:>8.1}\n",
            build.program,
            build.plain_s,
            build.translated_s,
            build.plain_code as f64 / 1024.0,
            build.translated_code as f64 / 1024.0,
        );
    }
    out
}
