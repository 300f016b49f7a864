//! Curves as SVG: time against what changes, for plain, foreread and the limit.
//!
//! Both axes are logarithmic, as in the talk: sizes double and times span decades.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::cases::sql_times_memory;
use crate::curves::Measured;
use crate::results::{Results, Summary};

const GREY: RGBColor = RGBColor(150, 150, 150);
const BLUE: RGBColor = RGBColor(31, 119, 180);
const BLACK: RGBColor = RGBColor(60, 60, 60);

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
    lines: Vec<Line>,
}

/// Draws every curve that was measured into `folder`; the files made.
pub fn draw(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut charts: Vec<(String, Chart)> = Vec::new();
    for disk in ["hdd-7200", "network-ssd", "own"] {
        if let Some(chart) = by_size(&results.summaries, disk) {
            charts.push((format!("sql-{disk}.svg"), chart));
        }
    }
    for curve in &results.curves {
        charts.push((
            format!("{}-{}.svg", curve.curve, curve.disk),
            of_curve(curve),
        ));
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
        lines: vec![
            line("plain", GREY, |s| Some(s.plain.median)),
            line("foreread", BLUE, |s| Some(s.foreread?.median)),
            line("limit", BLACK, |s| s.limit),
        ],
    })
}

/// A measured curve.
fn of_curve(curve: &Measured) -> Chart {
    let line = |name, colour, seconds: fn(&crate::curves::Point) -> f64| Line {
        name,
        colour,
        points: curve
            .points
            .iter()
            .map(|point| (point.x as f64, seconds(point)))
            .collect(),
    };
    Chart {
        title: format!("{}, on {}", curve.about, curve.disk),
        x: curve.unit.clone(),
        y: "seconds".into(),
        lines: vec![
            line("plain", GREY, |point| point.plain.seconds),
            line("foreread", BLUE, |point| point.foreread.seconds),
        ],
    }
}

/// Where a value stands on a logarithmic axis; 0 stands one step left of the least.
fn place(value: f64, least: f64) -> f64 {
    if value > 0.0 {
        value.log2()
    } else {
        least.log2() - 1.0
    }
}

fn paint(path: &Path, chart: &Chart) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = SVGBackend::new(path, (640, 420)).into_drawing_area();
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
    let up = |y: f64| y.max(least_y).log10();
    let (left, right) = (
        across(*ticks.first().unwrap_or(&1.0)) - 0.3,
        across(*ticks.last().unwrap_or(&1.0)) + 0.3,
    );
    let top = points().map(|point| up(point.1)).fold(f64::MIN, f64::max);
    let (low, high) = (up(least_y).floor(), (top + 0.3).ceil());
    let mut drawing = ChartBuilder::on(&root)
        .caption(&chart.title, ("sans-serif", 16))
        .margin(12)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(left..right, low..high)?;
    let decades = (high - low).round() as usize;
    drawing
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .y_labels(decades + 1)
        .y_label_formatter(&|y| {
            // Only whole decades have a name.
            if (y - y.round()).abs() < 0.01 {
                format!("{}", 10f64.powf(y.round()))
            } else {
                String::new()
            }
        })
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
    use crate::case::Group;
    use crate::curves::{Point, Run};
    use crate::results::Environment;
    use crate::results::tests::measured;

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
            plain: run(9.0),
            foreread: run(seconds),
        };
        let results = Results {
            environment: Environment::look(Path::new("."), "full", 1).unwrap(),
            summaries: vec![
                row("sql-x0.25", 3.0),
                row("sql-x1", 30.0),
                row("sql-x4", 300.0),
            ],
            measurements: Vec::new(),
            curves: vec![Measured {
                curve: "infill".into(),
                about: "shuffled reads".into(),
                unit: "KiB of infill".into(),
                disk: "hdd-7200".into(),
                points: vec![point(0, 4.0), point(16, 3.0), point(64, 2.0)],
            }],
            skipped: Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let made = draw(&results, folder.path()).unwrap();
        assert_eq!(made.len(), 2);
        let sql = std::fs::read_to_string(folder.path().join("sql-hdd-7200.svg")).unwrap();
        for word in ["size of the database / memory", "seconds", "limit", "0.25"] {
            assert!(sql.contains(word), "{word}");
        }
        let infill = std::fs::read_to_string(folder.path().join("infill-hdd-7200.svg")).unwrap();
        assert!(infill.contains("KiB of infill") && !infill.contains("limit"));
    }
}
