//! The tables on the terminal, at most 80 columns wide.

mod cold;
mod files;
mod mpi;
mod signature;
mod slice;

use crate::case::Group;
use crate::cost;
use crate::curves::{Measured, Point, Run};
use crate::foreread::Ledger;
use crate::results::{Results, Summary};
use crate::stats::{self, Spread};

/// Widest line of any table.
#[cfg(test)]
const WIDTH: usize = 80;
const MIB: f64 = 1024.0 * 1024.0;

/// A column: its title, its width, and a row's cell.
struct Column {
    title: &'static str,
    width: usize,
    cell: fn(&Summary) -> String,
}

const CASE: Column = Column {
    title: "case",
    width: 11,
    cell: |s| s.case.clone(),
};
const DISK: Column = Column {
    title: "disk",
    width: 11,
    cell: |s| s.disk.clone(),
};

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
    let of = |group: Group| -> Vec<&Summary> {
        let all = results.summaries.iter();
        all.filter(|summary| summary.group == group).collect()
    };
    let (main, api, slice) = (of(Group::Main), of(Group::Api), of(Group::Slice));
    let (start, hot, first) = (of(Group::Start), of(Group::Hot), of(Group::Signature));
    let mut parts = Vec::new();
    if !main.is_empty() {
        let title = "unmodified programs under `foreread run`, cold as after a reboot";
        parts.push(under_run(title, &main));
    }
    if !start.is_empty() {
        let title = "starts and walks over many files under `foreread run`, cold as after a reboot";
        parts.push(under_run(title, &start));
    }
    if !api.is_empty() {
        let mut out = String::new();
        out += "programs that hand over their list, and other means (their time counts)\n\n";
        out += &table(&api_times(), &api);
        out += "\nshortest..longest run; foreread / plain pair by pair; MiB from the device\n\n";
        out += &table(&api_spreads(), &api);
        parts.push(out);
    }
    if !slice.is_empty() {
        parts.push(slice::tables(&slice));
    }
    if !first.is_empty() {
        parts.push(signature::tables(&first));
    }
    if !results.files.is_empty() {
        parts.push(files::tables(&results.files));
    }
    if !results.mpi.is_empty() {
        parts.push(mpi::tables(&results.mpi));
    }
    if !hot.is_empty() {
        let mut out = String::new();
        out += "everything in memory, under `foreread run` with its record; milliseconds\n\
                hot: the processors as they are; busy: beside a busy loop on each of them\n\
                added: foreread - plain, the median of the pairs, and what it is told to\n\n";
        out += &table(&hot_times(), &hot);
        out += "\nshortest..longest run, milliseconds\n\n";
        out += &table(&hot_spreads(), &hot);
        parts.push(out);
    }
    out += &parts.join("\n");
    for curve in &results.curves {
        out += &format!("\n{} on {}\n\n", curve.about, curve.disk);
        out += &curve_table(curve);
    }
    let cost = &results.cost;
    if !cost.reads.is_empty() {
        out += &format!("\n{}", cost::reads_table(&cost.reads));
    }
    if !cost.recording.is_empty() {
        out += &format!("\n{}", cost::recording_table(&cost.recording));
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

/// The tables of unmodified programs under `foreread run`.
fn under_run(title: &str, rows: &[&Summary]) -> String {
    let mut out = format!("{title}\n\n");
    out += &table(&times(), rows);
    out += &cold::tables(rows);
    out += "\nshortest..longest run; foreread / plain pair by pair; the price of recording\n\n";
    out += &table(&spreads("foreread"), rows);
    out += "\nread from the device, and where the bytes foreread issued ended, in MiB\n\n";
    out += &table(&bytes("foreread"), rows);
    out
}

/// The table of times.
fn times() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 8, |s| seconds(Some(s.plain.median))),
        column("foreread", 9, |s| seconds(s.foreread.map(|f| f.median))),
        column("hot", 7, |s| seconds(s.hot.map(|h| h.median))),
        column("limit", 8, |s| seconds(s.limit)),
        column("improved", 9, |s| percent(s.improvement_pct)),
        column("masked", 8, |s| percent(s.masked_pct)),
        column("paper", 7, |s| {
            percent(s.paper.map(|paper| paper.improvement_pct))
        }),
    ]
}

/// The table of spreads and paired ratios; `helped` is the title of what foreread helps.
fn spreads(helped: &'static str) -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("faster", 8, times_faster),
        column("plain", 15, |s| range(Some(s.plain))),
        column(helped, 15, |s| range(s.foreread)),
        column("ratio", 7, ratio),
        column("recording", 10, |s| percent(s.recording_pct)),
    ]
}

/// What commands cost more that have nothing to gain.
fn hot_times() -> Vec<Column> {
    vec![
        CASE,
        column("pairs", 6, |s| s.plain.samples.to_string()),
        column("plain", 9, |s| ms(Some(s.plain.median))),
        column("foreread", 10, |s| ms(s.foreread.map(|f| f.median))),
        column("added", 9, |s| ms(s.added.map(|added| added.median))),
        column("±", 7, |s| ms(s.added_margin)),
        column("added", 9, |s| {
            percent(s.added.map(|added| added.median / s.plain.median * 100.0))
        }),
        column("allowed", 9, |s| ms(Some(stats::allowed(s.plain.median)))),
    ]
}

/// Their spreads.
fn hot_spreads() -> Vec<Column> {
    vec![
        CASE,
        column("plain", 20, |s| ms_range(Some(s.plain))),
        column("foreread", 20, |s| ms_range(s.foreread)),
        column("added", 20, |s| ms_range(s.added)),
    ]
}

/// The table of bytes.
fn bytes(helped: &'static str) -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 6, |s| mib(s.plain_device_bytes)),
        column(helped, 9, |s| mib(s.foreread_device_bytes)),
        column("issued", 7, |s| mib(ledger(s, |l| l.issued))),
        column("useful", 7, |s| mib(ledger(s, |l| l.useful))),
        column("late", 5, |s| mib(ledger(s, |l| l.late))),
        column("infill", 7, |s| mib(ledger(s, |l| l.infill))),
        column("wasted", 7, |s| mib(ledger(s, |l| l.wasted))),
        column("evicted", 8, |s| mib(ledger(s, |l| l.evicted))),
    ]
}

/// The times of programs that use the library.
fn api_times() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 8, |s| seconds(Some(s.plain.median))),
        column("WILLNEED", 9, |s| seconds(s.willneed.map(|w| w.median))),
        column("vmtouch", 8, |s| seconds(s.vmtouch.map(|v| v.median))),
        column("foreread", 9, |s| seconds(s.foreread.map(|f| f.median))),
        column("limit", 7, |s| seconds(s.limit)),
        column("faster", 7, times_faster),
        column("masked", 8, |s| percent(s.masked_pct)),
    ]
}

/// Their spreads and bytes.
fn api_spreads() -> Vec<Column> {
    vec![
        CASE,
        DISK,
        column("plain", 15, |s| range(Some(s.plain))),
        column("foreread", 15, |s| range(s.foreread)),
        column("ratio", 7, ratio),
        column("plain", 9, |s| mib(s.plain_device_bytes)),
        column("foreread", 9, |s| mib(s.foreread_device_bytes)),
    ]
}

/// One line a point; `x` is bytes from the device for each byte asked for.
fn curve_table(curve: &Measured) -> String {
    let fixed = curve.points.iter().any(|point| point.fixed.is_some());
    let several = curve.points.iter().any(|point| point.readers > 1);
    let mut out = format!(
        "{:>19}{:>8}{:>9}{:>8}",
        curve.unit, "plain", "foreread", "faster"
    );
    if fixed {
        out += &format!("{:>7}", "fixed");
    }
    if several {
        out += &format!("{:>7}", "fair");
    }
    out += &format!("{:>9}{:>12}", "x plain", "x foreread");
    if fixed {
        out += &format!("{:>8}", "x fixed");
    }
    out += "\n";
    let bytes = |point: &Point, run: &Run| {
        let traffic = point.traffic(run);
        traffic.map_or("-".into(), |times| format!("{times:.2}"))
    };
    for point in &curve.points {
        out += &format!(
            "{:>19}{:>8}{:>9}{:>7.2}x",
            point.x,
            seconds(Some(point.plain.seconds)),
            seconds(Some(point.foreread.seconds)),
            point.plain.seconds / point.foreread.seconds,
        );
        if fixed {
            out += &format!("{:>7}", seconds(point.fixed.map(|run| run.seconds)));
        }
        if several {
            out += &format!("{:>7.3}", point.foreread.fairness);
        }
        out += &format!(
            "{:>9}{:>12}",
            bytes(point, &point.plain),
            bytes(point, &point.foreread)
        );
        if let Some(run) = &point.fixed {
            out += &format!("{:>8}", bytes(point, run));
        }
        out += "\n";
    }
    out
}

fn column(title: &'static str, width: usize, cell: fn(&Summary) -> String) -> Column {
    Column { title, width, cell }
}

fn times_faster(summary: &Summary) -> String {
    summary
        .speed_up
        .map_or("-".into(), |times| format!("{times:.2}x"))
}

fn ratio(summary: &Summary) -> String {
    summary
        .paired_ratio
        .map_or("-".into(), |ratio| format!("{:.3}", ratio.median))
}

/// Rows of cells: the first two columns to the left, the others to the right.
fn table(columns: &[Column], rows: &[&Summary]) -> String {
    let line = |cells: Vec<String>| {
        let mut line = String::new();
        for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
            let width = column.width;
            line += &if index < 2 {
                format!("{cell:<width$} ")
            } else {
                format!("{cell:>width$}")
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut out = line(
        columns
            .iter()
            .map(|column| column.title.to_owned())
            .collect(),
    );
    for row in rows {
        out += &line(columns.iter().map(|column| (column.cell)(row)).collect());
    }
    out
}

fn seconds(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value < 9.9995 => format!("{value:.3}"),
        Some(value) if value < 999.95 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn ms(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), |seconds| format!("{:.2}", seconds * 1000.0))
}

fn ms_range(spread: Option<Spread>) -> String {
    spread.map_or("-".into(), |spread| {
        format!("{}..{}", ms(Some(spread.min)), ms(Some(spread.max)))
    })
}

fn range(spread: Option<Spread>) -> String {
    spread.map_or("-".into(), |s| {
        format!("{}..{}", seconds(Some(s.min)), seconds(Some(s.max)))
    })
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1}%"))
}

fn mib(bytes: Option<f64>) -> String {
    bytes.map_or("-".into(), |bytes| {
        let mib = bytes / MIB;
        let decimals = if mib < 1000.0 { 1 } else { 0 };
        format!("{mib:.decimals$}")
    })
}

fn ledger(summary: &Summary, part: fn(&Ledger) -> u64) -> Option<f64> {
    summary.ledger.as_ref().map(|ledger| part(ledger) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            points: vec![Point {
                x: 64,
                readers,
                needed_bytes: 1 << 30,
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
        let text = table(&times(), &[&summary]);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            row[..6],
            ["backward-1", "hdd-7200", "3.000", "-", "1.000", "2.000"]
        );
        assert_eq!(row[6..], ["-", "-", "85.5%"], "only the paper has a figure");
    }
}
