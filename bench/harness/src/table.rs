//! The tables on the terminal, at most 80 columns wide.

pub mod cost;
mod files;
// Each column of a table has its own line.
#[rustfmt::skip]
mod groups;
mod mpi;

use crate::curves::{Measured, Point, Run};
use crate::results::{Results, Summary};
use groups::{Block, GROUPS, seconds};

/// Widest line of any table.
#[cfg(test)]
const WIDTH: usize = 80;
const MIB: f64 = 1024.0 * 1024.0;

/// A column: its title, its width, and a row's cell.
pub struct Column<R = Summary> {
    title: &'static str,
    width: usize,
    cell: fn(&R) -> String,
}

/// A column of any table.
pub const fn column<R>(title: &'static str, width: usize, cell: fn(&R) -> String) -> Column<R> {
    Column { title, width, cell }
}

/// All tables, ready to print.
pub fn render(results: &Results) -> String {
    let environment = &results.environment;
    let mut out = format!(
        "Linux {}, {} processors; medians of paired cold runs, in seconds\n\
         plain: with the kernel's own read-ahead, at Linux's default of {} KiB",
        environment.kernel, environment.cpus, environment.read_ahead_kb
    );
    if let Some(disk) = &environment.own_disk {
        out += &format!(
            "\nown: {}, set to {} KiB otherwise",
            disk.name, disk.read_ahead_kb
        );
    }
    if environment.pages_out {
        out += "\nDAMON is paging out what lies idle: now and then, what was fetched is gone again";
    }
    out += "\n\n";
    let mut parts = Vec::new();
    for (group, about, blocks) in GROUPS {
        let all = results.summaries.iter();
        let rows: Vec<&Summary> = all.filter(|summary| summary.group == *group).collect();
        if !rows.is_empty() {
            parts.push(format!("{about}\n{}", tables(blocks, &rows)));
        }
    }
    if !results.files.is_empty() {
        parts.push(files::tables(&results.files));
    }
    if !results.mpi.is_empty() {
        parts.push(mpi::tables(&results.mpi));
    }
    out += &parts.join("\n");
    for curve in &results.curves {
        out += &format!("\n{} on {}\n\n", curve.about, curve.disk);
        out += &curve_table(curve);
    }
    let costs = &results.cost;
    if !costs.reads.is_empty() {
        out += &format!("\n{}", cost::reads(&costs.reads));
    }
    if !costs.recording.is_empty() {
        out += &format!("\n{}", cost::recording(&costs.recording));
    }
    for measurement in &results.measurements {
        for note in &measurement.notes {
            out += &format!(
                "\nnote: {} on {}: {note}",
                measurement.case, measurement.disk
            );
        }
        if measurement.discarded > 0 {
            out += &format!(
                "\nnote: {} on {}: starts that were not cold, and not counted: {}",
                measurement.case, measurement.disk, measurement.discarded
            );
        }
    }
    for (case, disk, reason) in &results.skipped {
        out += &format!("\nskipped: {case} on {disk}: {reason}");
    }
    out.trim_end().to_owned() + "\n"
}

/// A group's tables, each below its heading; a table without rows is left out.
fn tables(blocks: &[Block], all: &[&Summary]) -> String {
    let mut out = String::new();
    for Block {
        heading,
        columns,
        has,
    } in blocks
    {
        let rows: Vec<&Summary> = all.iter().copied().filter(|row| has(row)).collect();
        if !rows.is_empty() {
            let heading = if heading.is_empty() {
                String::new()
            } else {
                format!("\n{heading}\n")
            };
            out += &format!("{heading}\n{}", table(columns, rows, 2));
        }
    }
    out
}

/// One line per point; `x` is bytes from the device per byte asked for.
fn curve_table(curve: &Measured) -> String {
    fn traffic(point: &Point, run: Option<&Run>) -> String {
        let traffic = run.and_then(|run| point.traffic(run));
        traffic.map_or("-".into(), |times| format!("{times:.2}"))
    }
    let mut columns: Vec<Column<Point>> = vec![
        column("", 19, |p| p.x.to_string()),
        column("plain", 8, |p| seconds(Some(p.plain.seconds))),
        column("foreread", 9, |p| seconds(Some(p.foreread.seconds))),
        column("faster", 8, |p| {
            format!("{:.2}x", p.plain.seconds / p.foreread.seconds)
        }),
        column("plain, ms", 11, |p| format!("{:.2}", p.read_ms(&p.plain))),
        column("foreread, ms", 14, |p| {
            format!("{:.2}", p.read_ms(&p.foreread))
        }),
        column("fixed", 7, |p| seconds(p.fixed.map(|run| run.seconds))),
        column("fair", 7, |p| format!("{:.3}", p.foreread.fairness)),
        column("x plain", 9, |p| traffic(p, Some(&p.plain))),
        column("x foreread", 12, |p| traffic(p, Some(&p.foreread))),
        column("x fixed", 8, |p| traffic(p, p.fixed.as_ref())),
    ];
    let fixed = curve.points.iter().any(|point| point.fixed.is_some());
    let several = curve.points.iter().any(|point| point.readers > 1);
    let device = curve
        .points
        .iter()
        .any(|point| point.plain.device_bytes.is_some());
    columns.retain(|column| match column.title {
        "fixed" | "x fixed" => fixed,
        "fair" => several,
        "plain, ms" | "foreread, ms" => curve.single,
        "x plain" | "x foreread" => device,
        _ => true,
    });
    let text = table(&columns, &curve.points, 0);
    format!("{:>19}{}", curve.unit, &text[19..])
}

/// Rows of cells: the first `left` columns are aligned to the left, the others to the right.
pub fn table<'a, R: 'a>(
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = &'a R>,
    left: usize,
) -> String {
    let line = |cells: Vec<String>| {
        let mut line = String::new();
        for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
            let width = column.width;
            line += &if index < left {
                format!("{cell:<width$} ")
            } else {
                format!("{cell:>width$}")
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let titles = columns.iter().map(|column| column.title.to_owned());
    let mut out = line(titles.collect());
    for row in rows {
        out += &line(columns.iter().map(|column| (column.cell)(row)).collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Group;
    use crate::foreread::Ledger;
    use crate::measure::FilesOnly;
    use crate::results::tests::measured;
    use crate::results::{Environment, ThreadCosts};
    use crate::translated::Build;

    #[test]
    fn tables_stay_within_their_width_even_with_large_figures() {
        let mut measurement = measured(
            &[12_345.0, 99.0],
            &[1234.5, 999.99],
            &[0.1, 0.2],
            &[999.9, 1.0],
        );
        measurement.files_only = Some(FilesOnly {
            plain: measurement.plain.clone(),
            foreread: measurement.foreread.clone(),
            ..FilesOnly::default()
        });
        let mut summary = Summary::of(&measurement).unwrap();
        summary.disk = "network-ssd".into();
        summary.ledger = Some(Ledger {
            issued: 1 << 36,
            useful: 1 << 36,
            late: 1 << 34,
            wasted: 1 << 34,
            evicted: 0,
            infill: 1 << 34,
            ..Ledger::default()
        });
        let translated = Summary {
            group: Group::Slice,
            work: Some(9999),
            prefetch_thread: Some(ThreadCosts {
                cpu_pct: 100.0,
                process_cpu_pct: 100.0,
                synchronization_pct: -10.0,
            }),
            build: Some(Build {
                program: "raycast".into(),
                plain_s: 0.1,
                translated_s: 99.9,
                plain_code: 1 << 23,
                translated_code: 1 << 26,
            }),
            ..summary.clone()
        };
        let results = Results {
            environment: Environment::look(std::path::Path::new("."), "quick", 3).unwrap(),
            summaries: vec![
                summary.clone(),
                Summary {
                    group: Group::Start,
                    ..summary.clone()
                },
                Summary {
                    case: "busy-python".into(),
                    group: Group::Hot,
                    ..summary.clone()
                },
                Summary {
                    case: "other-tiles".into(),
                    group: Group::Signature,
                    recorded: summary.foreread,
                    gain_share_pct: summary.foreread,
                    ..summary.clone()
                },
                Summary {
                    group: Group::Api,
                    ..summary
                },
                translated,
            ],
            measurements: vec![measurement],
            files: Vec::new(),
            files_figures: Vec::new(),
            mpi: Vec::new(),
            curves: Vec::new(),
            cost: Default::default(),
            skipped: Vec::new(),
        };
        let text = render(&results);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(
            text.contains("85.5%"),
            "the paper's figure is there:\n{text}"
        );
    }

    #[test]
    fn curves_stay_within_the_width_and_show_what_they_have() {
        let run = |seconds| Run {
            seconds,
            device_bytes: Some(3 << 30),
            fairness: 0.95,
        };
        let curve = |readers, fixed| Measured {
            curve: "any".into(),
            about: "reads".into(),
            unit: "MiB aimed at first".into(),
            disk: "hdd-7200".into(),
            single: false,
            points: vec![Point {
                x: 64,
                readers,
                needed_bytes: 1 << 30,
                reads: 1,
                plain: run(1234.5),
                foreread: run(617.25),
                fixed,
            }],
        };
        let adapt = curve_table(&curve(1, Some(run(1000.0))));
        let contend = curve_table(&curve(8, None));
        for line in adapt.lines().chain(contend.lines()) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(
            adapt.contains("fixed") && !adapt.contains("fair"),
            "{adapt}"
        );
        assert!(
            contend.contains("0.950") && contend.contains("3.00"),
            "{contend}"
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_not_a_zero() {
        let summary = Summary::of(&measured(&[3.0], &[], &[1.0], &[2.0])).unwrap();
        let text = table(GROUPS[0].2[0].columns, [&summary], 2);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            row[..6],
            ["backward-1", "hdd-7200", "3.000", "-", "1.000", "2.000"]
        );
        assert_eq!(row[6..], ["-", "-", "85.5%"], "only the paper has a figure");
    }
}
