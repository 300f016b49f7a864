//! Charts as SVG. Bars: for each disk and group, times relative to plain, and masked I/O. Lines: time or speed against the
//! changing quantity, for plain, foreread and the limit.
//!
//! The changing quantity doubles from point to point, so its axis is logarithmic. The other axis is logarithmic only where times
//! span decades, as in the talk's plot of database sizes. Elsewhere it starts at 0, so that a line twice as high is twice as
//! much. The viewer's own sans-serif font is used; to place text, its widths are taken from a font in this program.

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Result, anyhow};
use epaint_default_fonts::HACK_REGULAR;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::case::Group;
use crate::cases::sql_times_memory;
use crate::curves::{Measured, Point, Run};
use crate::results::{Results, Summary};
use crate::stats::Spread;

const GREY: RGBColor = RGBColor(150, 150, 150);
const BLUE: RGBColor = RGBColor(31, 119, 180);
const BLACK: RGBColor = RGBColor(60, 60, 60);
const ORANGE: RGBColor = RGBColor(255, 158, 74);
const BROWN: RGBColor = RGBColor(214, 110, 20);
const PURPLE: RGBColor = RGBColor(148, 103, 189);
const MIB: f64 = 1024.0 * 1024.0;

/// One bar of each group.
struct Series {
    name: &'static str,
    colour: RGBColor,
    /// The bar's height in percent; none leaves a gap.
    height: fn(&Summary) -> Option<f64>,
}

/// Room for the legend beside the bars, in groups.
const LEGEND: f64 = 1.0;

const fn bar(name: &'static str, colour: RGBColor, height: fn(&Summary) -> Option<f64>) -> Series {
    Series {
        name,
        colour,
        height,
    }
}

/// A time in percent of plain.
fn of_plain(summary: &Summary, time: Option<Spread>) -> Option<f64> {
    Some(time?.median / summary.plain.median * 100.0)
}

const PLAIN: Series = bar("plain", GREY, |_| Some(100.0));
const FOREREAD: Series = bar("foreread", BLUE, |s| of_plain(s, s.foreread));
const HOT: Series = bar("hot cache", ORANGE, |s| of_plain(s, s.hot));
const WILLNEED: Series = bar("WILLNEED", ORANGE, |s| of_plain(s, s.willneed));
const VMTOUCH: Series = bar("vmtouch", PURPLE, |s| of_plain(s, s.vmtouch));
const CC: Series = bar("foreread cc", BLUE, FOREREAD.height);
const RUN: Series = bar("foreread run", PURPLE, |s| of_plain(s, s.recorded));
const FIRST: Series = bar("first run", BLUE, FOREREAD.height);
const REPLAY: Series = bar("replay", PURPLE, RUN.height);
const LIMIT: Series = bar("limit", BLACK, |s| Some(s.limit? / s.plain.median * 100.0));

const TIMES: &[Series] = &[PLAIN, FOREREAD, HOT, LIMIT];
const API_TIMES: &[Series] = &[PLAIN, WILLNEED, VMTOUCH, FOREREAD, LIMIT];
const SLICE_TIMES: &[Series] = &[PLAIN, CC, RUN, HOT, LIMIT];
const SIGNATURE_TIMES: &[Series] = &[PLAIN, FIRST, REPLAY, HOT, LIMIT];
const MASKED: &[Series] = &[
    // A value far below 0 would flatten all others; the table has the figure.
    bar("foreread", BLUE, |s| {
        Some(s.masked_pct?.clamp(-50.0, 110.0))
    }),
    bar("the paper", ORANGE, |s| Some(s.paper?.masked_pct)),
];

/// Draws all results into `folder`; returns the files.
pub fn draw(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut made = draw_bars(&results.summaries, folder)?;
    made.extend(draw_lines(results, folder)?);
    Ok(made)
}

/// Two charts for each disk and group: times relative to plain, and masked I/O.
fn draw_bars(summaries: &[Summary], folder: &Path) -> Result<Vec<PathBuf>> {
    let mut disks: Vec<&str> = summaries
        .iter()
        .map(|summary| summary.disk.as_str())
        .collect();
    disks.sort_unstable();
    disks.dedup();
    let groups = [
        (Group::Main, "", "Run time", TIMES),
        (Group::Start, "start-", "Run time after a reboot", TIMES),
        (
            Group::Api,
            "api-",
            "Run time through the library",
            API_TIMES,
        ),
        (
            Group::Slice,
            "slice-",
            "Run time of translated programs",
            SLICE_TIMES,
        ),
        (
            Group::Signature,
            "signature-",
            "Run time of first runs",
            SIGNATURE_TIMES,
        ),
    ];
    let mut made = Vec::new();
    for disk in disks {
        for (group, prefix, title, series) in groups {
            let rows: Vec<&Summary> = summaries
                .iter()
                .filter(|summary| summary.disk == disk && summary.group == group)
                .collect();
            if rows.is_empty() {
                continue;
            }
            let path = folder.join(format!("times-{prefix}{disk}.svg"));
            let title = format!("{title} on {disk}, percent of plain");
            bar_chart(&path, &title, &rows, series)?;
            made.push(path);
            // A bar for each figure, and the paper's only if it published one.
            let rows: Vec<&Summary> = rows
                .into_iter()
                .filter(|row| row.masked_pct.is_some())
                .collect();
            if !rows.is_empty() {
                let published = rows.iter().any(|row| row.paper.is_some());
                let series = if published { MASKED } else { &MASKED[..1] };
                let path = folder.join(format!("masked-{prefix}{disk}.svg"));
                let title = format!("Masked I/O on {disk}, percent");
                bar_chart(&path, &title, &rows, series)?;
                made.push(path);
            }
        }
    }
    Ok(made)
}

/// A grouped bar chart, one group per row.
fn bar_chart(path: &Path, title: &str, rows: &[&Summary], series: &[Series]) -> Result<()> {
    let width = 240 + 120 * (u32::try_from(rows.len())? + 1);
    let root = sheet(path, width);
    bars(&root, title, rows, series).map_err(|error| anyhow!("drawing {}: {error}", path.display()))
}

/// An empty drawing, `width` pixels wide and 420 high.
fn sheet(path: &Path, width: u32) -> DrawingArea<SVGBackend<'_>, Shift> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // If the font cannot be read, drawing reports the error.
        let _ = register_font("sans-serif", FontStyle::Normal, HACK_REGULAR);
    });
    SVGBackend::new(path, (width, 420)).into_drawing_area()
}

fn bars(
    root: &DrawingArea<SVGBackend, Shift>,
    title: &str,
    rows: &[&Summary],
    series: &[Series],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    root.fill(&WHITE)?;
    let heights = || {
        rows.iter()
            .flat_map(|row| series.iter().filter_map(|one| (one.height)(row)))
    };
    let tallest = heights().fold(100.0, f64::max);
    let lowest = heights().fold(0.0, f64::min);
    let groups = rows.len() as f64;
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..groups + LEGEND, lowest * 1.08..tallest * 1.08)?;
    let name = |x: &f64| {
        let row = rows
            .get(x.floor() as usize)
            .filter(|_| (x.fract() - 0.5).abs() < 0.01);
        row.map_or(String::new(), |row| row.case.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(2 * (rows.len() + 1) + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .y_desc("%")
        .draw()?;
    let width = 0.8 / series.len() as f64;
    for (place, one) in series.iter().enumerate() {
        let bars = rows.iter().enumerate().filter_map(|(group, row)| {
            let left = group as f64 + 0.1 + place as f64 * width;
            let height = (one.height)(row)?;
            Some(Rectangle::new(
                [(left, 0.0), (left + width * 0.92, height)],
                one.colour.filled(),
            ))
        });
        let colour = one.colour;
        chart
            .draw_series(bars)?
            .label(one.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    root.present()
}

/// One line: its name, colour and points.
struct Line {
    name: &'static str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// A chart of lines.
struct Chart {
    title: String,
    x: String,
    y: String,
    scale: Scale,
    lines: Vec<Line>,
}

/// The vertical axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// From 0.
    Linear,
    /// In whole decades.
    Decades,
}

impl Scale {
    /// The coordinate of a value; `least` is the least one above 0.
    fn place(self, value: f64, least: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Decades => value.max(least).log10(),
        }
    }

    /// The axis for values from `least` to `most`, and the approximate number of its labels.
    fn range(self, least: f64, most: f64) -> (std::ops::Range<f64>, usize) {
        match self {
            // Room above for the names of the lines.
            Scale::Linear => (0.0..most * 1.3, 8),
            Scale::Decades => {
                let (low, high) = (least.log10().floor(), (most.log10() + 0.3).ceil());
                (low..high, (high - low).round() as usize + 1)
            }
        }
    }

    /// The label at a coordinate.
    fn label(self, place: f64) -> String {
        match self {
            Scale::Linear => format!("{}", (place * 100.0).round() / 100.0),
            // Only whole decades have a label.
            Scale::Decades if (place - place.round()).abs() < 0.01 => {
                format!("{}", 10f64.powf(place.round()))
            }
            Scale::Decades => String::new(),
        }
    }
}

/// The curves, and run times against the size of a database.
fn draw_lines(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut charts: Vec<(String, Chart)> = Vec::new();
    for disk in ["hdd-7200", "network-ssd", "own"] {
        if let Some(chart) = by_size(&results.summaries, disk) {
            charts.push((format!("sql-{disk}.svg"), chart));
        }
    }
    for curve in &results.curves {
        let name = |what: &str| format!("{}{what}-{}.svg", curve.curve, curve.disk);
        charts.push((name(""), of_curve(curve)));
        // If memory is short, the number of times that the same bytes were fetched is shown, too.
        let contended = |point: &Point| point.readers > 1 || point.fixed.is_some();
        if curve.points.iter().any(contended) {
            charts.push((name("-bytes"), traffic_of(curve)));
        }
    }
    let mut made = Vec::new();
    for (name, chart) in charts {
        let path = folder.join(name);
        paint(&path, &chart).map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
        made.push(path);
    }
    Ok(made)
}

/// The talk's plot of one disk: run time against the size of the database.
fn by_size(summaries: &[Summary], disk: &str) -> Option<Chart> {
    let rows: Vec<(f64, &Summary)> = summaries
        .iter()
        .filter(|summary| summary.disk == disk)
        .filter_map(|summary| Some((sql_times_memory(&summary.case)?, summary)))
        .collect();
    if rows.len() < 2 {
        return None;
    }
    let line = |name, colour, seconds: fn(&Summary) -> Option<f64>| Line {
        name,
        colour,
        points: rows
            .iter()
            .filter_map(|(size, summary)| Some((*size, seconds(summary)?)))
            .collect(),
    };
    Some(Chart {
        title: format!("select * from customer order by zip, on {disk}"),
        x: "size of the database / memory".into(),
        y: "seconds".into(),
        scale: Scale::Decades,
        lines: vec![
            line("plain", GREY, |s| Some(s.plain.median)),
            line("foreread", BLUE, |s| Some(s.foreread?.median)),
            line("limit", BLACK, |s| s.limit),
        ],
    })
}

/// A measured curve: the speed, or the time of all readers if there are several.
fn of_curve(curve: &Measured) -> Chart {
    let several = curve.points.iter().any(|point| point.readers > 1);
    let (y, value): (_, fn(&Point, &Run) -> Option<f64>) = if several {
        ("seconds until all have ended", |_, run| Some(run.seconds))
    } else if curve.single {
        ("ms a read", |point, run| Some(point.read_ms(run)))
    } else {
        ("MiB asked for, a second", |point, run| {
            Some(point.needed_bytes as f64 / MIB / run.seconds)
        })
    };
    chart_of(curve, y, value)
}

/// Bytes from the device per byte needed.
fn traffic_of(curve: &Measured) -> Chart {
    chart_of(
        curve,
        "bytes from the device / bytes asked for",
        Point::traffic,
    )
}

fn chart_of(curve: &Measured, y: &str, value: fn(&Point, &Run) -> Option<f64>) -> Chart {
    let line = |name, colour, run: fn(&Point) -> Option<&Run>| Line {
        name,
        colour,
        points: curve
            .points
            .iter()
            .filter_map(|point| Some((point.x as f64, value(point, run(point)?)?)))
            .collect(),
    };
    let mut lines = vec![
        line("plain", GREY, |point| Some(&point.plain)),
        line("foreread", BLUE, |point| Some(&point.foreread)),
        line("foreread without AIMD", BROWN, |point| point.fixed.as_ref()),
    ];
    lines.retain(|line| !line.points.is_empty());
    Chart {
        title: format!("{}, on {}", curve.about, curve.disk),
        x: curve.unit.clone(),
        y: y.into(),
        scale: Scale::Linear,
        lines,
    }
}

/// The coordinate of a value on a logarithmic axis; 0 is one step left of the least.
fn place(value: f64, least: f64) -> f64 {
    if value > 0.0 {
        value.log2()
    } else {
        least.log2() - 1.0
    }
}

fn paint(path: &Path, chart: &Chart) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = sheet(path, 640);
    root.fill(&WHITE)?;
    let points = || chart.lines.iter().flat_map(|line| line.points.iter());
    let positive = |values: &mut dyn Iterator<Item = f64>| {
        values
            .filter(|&value| value > 0.0)
            .fold(f64::INFINITY, f64::min)
    };
    let least_x = positive(&mut points().map(|point| point.0));
    let least_y = positive(&mut points().map(|point| point.1));
    let mut ticks: Vec<f64> = points().map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let across = |x: f64| place(x, least_x);
    let up = |y: f64| chart.scale.place(y, least_y);
    let (left, right) = (
        across(*ticks.first().unwrap_or(&1.0)) - 0.3,
        across(*ticks.last().unwrap_or(&1.0)) + 0.3,
    );
    let most = points().map(|point| point.1).fold(least_y, f64::max);
    let (range, labels) = chart.scale.range(least_y, most);
    let low = range.start;
    let mut drawing = ChartBuilder::on(&root)
        .caption(&chart.title, ("sans-serif", 13))
        .margin(12)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(left..right, range)?;
    drawing
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .y_labels(labels)
        .y_label_formatter(&|y| chart.scale.label(*y))
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .draw()?;
    let style = ("sans-serif", 12).into_font().color(&BLACK);
    for tick in &ticks {
        let (x, y) = drawing.backend_coord(&(across(*tick), low));
        let label = format!("{tick}");
        // Roughly centred below its place.
        let half = i32::try_from(label.len() * 3).unwrap_or(0);
        root.draw_text(&label, &style, (x - half, y + 6))?;
    }
    for line in &chart.lines {
        let colour = line.colour;
        let path = line.points.iter().map(|&(x, y)| (across(x), up(y)));
        drawing
            .draw_series(LineSeries::new(path.clone(), colour.stroke_width(2)))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        drawing.draw_series(path.map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    drawing
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    root.present()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Environment;
    use crate::results::tests::measured;

    #[test]
    fn each_disk_gets_its_charts_with_every_case_named() {
        let mut own = Summary::of(&measured(&[3.0], &[1.0], &[0.5], &[0.8])).unwrap();
        own.disk = "own".into();
        own.case = "sqlite".into();
        let hdd = Summary::of(&measured(&[30.0], &[3.0], &[0.5], &[2.0])).unwrap();
        let second = Summary {
            case: "backward-2".into(),
            ..hdd.clone()
        };
        let folder = tempfile::tempdir().unwrap();
        let made = draw_bars(&[own, hdd, second.clone()], folder.path()).unwrap();
        assert_eq!(made.len(), 4);
        let api = Summary {
            group: Group::Api,
            ..second
        };
        assert_eq!(draw_bars(&[api], folder.path()).unwrap().len(), 2);
        let svg = std::fs::read_to_string(folder.path().join("times-hdd-7200.svg")).unwrap();
        for word in ["backward-1", "backward-2", "foreread", "limit"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(!svg.contains("sqlite"));
    }

    #[test]
    fn decades_are_named_and_a_linear_axis_starts_at_nothing() {
        assert_eq!(Scale::Decades.range(0.3, 40.0).0, -1.0..2.0);
        assert_eq!(Scale::Decades.label(2.0), "100");
        assert_eq!(Scale::Decades.label(1.5), "");
        assert_eq!(Scale::Linear.range(0.3, 40.0).0.start, 0.0);
        assert_eq!(Scale::Linear.label(2.5), "2.5");
    }

    #[test]
    fn the_sizes_and_the_curves_each_get_a_plot_with_named_axes() {
        let row = |case: &str, plain: f64| Summary {
            case: case.into(),
            group: Group::Api,
            ..Summary::of(&measured(&[plain], &[plain / 5.0], &[0.1], &[plain / 9.0])).unwrap()
        };
        let run = |seconds| Run {
            seconds,
            device_bytes: None,
            fairness: 1.0,
        };
        let point = |x, seconds| Point {
            x,
            readers: 1,
            needed_bytes: 1 << 20,
            reads: 1,
            plain: run(9.0),
            foreread: run(seconds),
            fixed: None,
        };
        let adapt = |x| Point {
            fixed: Some(Run {
                device_bytes: Some(3 << 20),
                ..run(6.0)
            }),
            ..point(x, 3.0)
        };
        let curve = |name: &str, points| Measured {
            curve: name.into(),
            about: "shuffled reads".into(),
            unit: format!("KiB of {name}"),
            disk: "hdd-7200".into(),
            single: false,
            points,
        };
        let results = Results {
            environment: Environment::look(Path::new("."), "full", 1).unwrap(),
            summaries: vec![
                row("sql-x0.25", 3.0),
                row("sql-x1", 30.0),
                row("sql-x4", 300.0),
            ],
            measurements: Vec::new(),
            files: Vec::new(),
            files_figures: Vec::new(),
            mpi: Vec::new(),
            curves: vec![
                curve(
                    "infill",
                    vec![point(0, 4.0), point(16, 3.0), point(64, 2.0)],
                ),
                curve("adapt", vec![adapt(1), adapt(64)]),
            ],
            cost: Default::default(),
            skipped: Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let made = draw_lines(&results, folder.path()).unwrap();
        assert_eq!(made.len(), 4);
        let sql = std::fs::read_to_string(folder.path().join("sql-hdd-7200.svg")).unwrap();
        for word in ["size of the database / memory", "seconds", "limit", "0.25"] {
            assert!(sql.contains(word), "{word}");
        }
        let infill = std::fs::read_to_string(folder.path().join("infill-hdd-7200.svg")).unwrap();
        assert!(infill.contains("KiB of infill") && !infill.contains("limit"));
        assert!(!infill.contains("AIMD"));
        let adapt = std::fs::read_to_string(folder.path().join("adapt-hdd-7200.svg")).unwrap();
        assert!(adapt.contains("without AIMD"));
        let bytes = folder.path().join("adapt-bytes-hdd-7200.svg");
        let bytes = std::fs::read_to_string(bytes).unwrap();
        assert!(
            bytes.contains("bytes asked for") && !bytes.contains(">plain<"),
            "{bytes}"
        );
    }
}
