//! The tables on the terminal, at most 100 columns wide.

use crate::foreread::Ledger;
use crate::results::{Results, Summary};
use crate::stats::Spread;

/// Widest line of any table.
#[cfg(test)]
const WIDTH: usize = 100;
const MIB: f64 = 1024.0 * 1024.0;

/// A column: its title, its width, and a row's cell.
struct Column {
    title: &'static str,
    width: usize,
    cell: fn(&Summary) -> String,
}

const CASE: Column = Column {
    title: "case",
    width: 12,
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
        "Linux {}, {} processors; plain is the kernel's own read-ahead at Linux's default {} KiB\n\
         medians of paired cold runs, in seconds\n\n",
        environment.kernel, environment.cpus, environment.read_ahead_kb
    );
    if let Some(disk) = &environment.own_disk {
        out = out.replace(
            "\nmedians",
            &format!(
                "\n(own disk: {}, read-ahead {} KiB outside of the runs)\nmedians",
                disk.name, disk.read_ahead_kb
            ),
        );
    }
    out += &table(&times(), &results.summaries);
    out += "\nspread (shortest..longest run, seconds) and foreread / plain pair by pair\n\n";
    out += &table(&spreads(), &results.summaries);
    out += "\nread from the device (plain, foreread), and where the bytes foreread issued ended, in MiB\n\n";
    out += &table(&bytes(), &results.summaries);
    for measurement in &results.measurements {
        for note in &measurement.notes {
            out += &format!(
                "\nnote: {} on {}: {note}",
                measurement.case, measurement.disk
            );
        }
        if measurement.discarded > 0 {
            out += &format!(
                "\nnote: {} on {}: {} starts were not cold and not counted",
                measurement.case, measurement.disk, measurement.discarded
            );
        }
    }
    for (case, disk, reason) in &results.skipped {
        out += &format!("\nskipped: {case} on {disk}: {reason}");
    }
    out.trim_end().to_owned() + "\n"
}

/// The table of times.
fn times() -> Vec<Column> {
    let column = |title, width, cell| Column { title, width, cell };
    vec![
        CASE,
        DISK,
        column("plain", 9, |s| seconds(Some(s.plain.median))),
        column("foreread", 9, |s| seconds(s.foreread.map(|f| f.median))),
        column("hot", 9, |s| seconds(s.hot.map(|h| h.median))),
        column("limit", 9, |s| seconds(s.limit)),
        column("improved", 9, |s| percent(s.improvement_pct)),
        column("faster", 8, |s| {
            s.speed_up.map_or("-".into(), |x| format!("{x:.2}x"))
        }),
        column("masked", 8, |s| percent(s.masked_pct)),
        column("paper", 8, |s| {
            percent(s.paper.map(|paper| paper.improvement_pct))
        }),
    ]
}

/// The table of spreads and paired ratios.
fn spreads() -> Vec<Column> {
    let column = |title, width, cell| Column { title, width, cell };
    vec![
        CASE,
        DISK,
        column("plain", 17, |s| range(Some(s.plain))),
        column("foreread", 17, |s| range(s.foreread)),
        column("ratio", 8, |s| {
            s.paired_ratio
                .map_or("-".into(), |r| format!("{:.3}", r.median))
        }),
        column("of ratios", 15, |s| {
            s.paired_ratio
                .map_or("-".into(), |r| format!("{:.3}..{:.3}", r.min, r.max))
        }),
        column("pairs", 7, |s| {
            s.paired_ratio.map_or("-".into(), |r| r.samples.to_string())
        }),
    ]
}

/// The table of bytes.
fn bytes() -> Vec<Column> {
    let column = |title, width, cell| Column { title, width, cell };
    vec![
        CASE,
        DISK,
        column("plain", 9, |s| mib(s.plain_device_bytes)),
        column("foreread", 9, |s| mib(s.foreread_device_bytes)),
        column("issued", 9, |s| mib(ledger(s, |l| l.issued))),
        column("useful", 9, |s| mib(ledger(s, |l| l.useful))),
        column("late", 8, |s| mib(ledger(s, |l| l.late))),
        column("wasted", 8, |s| mib(ledger(s, |l| l.wasted))),
        column("evicted", 8, |s| mib(ledger(s, |l| l.evicted))),
        column("recording", 10, |s| percent(s.recording_pct)),
    ]
}

/// Rows of cells: the first two columns to the left, the others to the right.
fn table(columns: &[Column], rows: &[Summary]) -> String {
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
        Some(value) if value < 10.0 => format!("{value:.3}"),
        Some(value) if value < 1000.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
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
    bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes / MIB))
}

fn ledger(summary: &Summary, part: fn(&Ledger) -> u64) -> Option<f64> {
    summary.ledger.as_ref().map(|ledger| part(ledger) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Environment;
    use crate::results::tests::measured;

    #[test]
    fn tables_stay_within_their_width_even_with_large_figures() {
        let measurement = measured(
            &[123_456.0, 99.0],
            &[1234.5, 12345.0],
            &[0.1, 0.2],
            &[999.9, 1.0],
        );
        let mut summary = Summary::of(&measurement).unwrap();
        summary.disk = "network-ssd".into();
        summary.ledger = Some(Ledger {
            issued: 1 << 40,
            useful: 1 << 40,
            late: 1 << 34,
            wasted: 1 << 34,
            evicted: 0,
        });
        let results = Results {
            environment: Environment::look(std::path::Path::new("."), "quick", 3).unwrap(),
            summaries: vec![summary],
            measurements: vec![measurement],
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
    fn what_was_not_measured_is_a_dash_and_not_a_zero() {
        let summary = Summary::of(&measured(&[3.0], &[], &[1.0], &[2.0])).unwrap();
        let text = table(&times(), &[summary]);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            row[..6],
            ["backward-1", "hdd-7200", "3.000", "-", "1.000", "2.000"]
        );
        assert_eq!(row[6..9], ["-", "-", "-"]);
    }
}
