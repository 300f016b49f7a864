//! Two charts per disk and group as SVG: times relative to plain, and masked I/O.
//!
//! The viewer's own sans-serif is used; to place text, its widths are taken from a font that is part of this program.

use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Result, anyhow};
use epaint_default_fonts::HACK_REGULAR;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::case::Group;
use crate::results::Summary;

/// One bar of each group.
struct Series {
    name: &'static str,
    colour: RGBColor,
    /// The bar's height in percent; none leaves a gap.
    height: fn(&Summary) -> Option<f64>,
}

/// Room for the legend beside the bars, in groups.
const LEGEND: f64 = 1.0;

const PLAIN: Series = Series {
    name: "plain",
    colour: RGBColor(150, 150, 150),
    height: |_| Some(100.0),
};
const FOREREAD: Series = Series {
    name: "foreread",
    colour: RGBColor(31, 119, 180),
    height: |s| Some(s.foreread?.median / s.plain.median * 100.0),
};
const HOT: Series = Series {
    name: "hot cache",
    colour: RGBColor(255, 158, 74),
    height: |s| Some(s.hot?.median / s.plain.median * 100.0),
};
const LIMIT: Series = Series {
    name: "limit",
    colour: RGBColor(60, 60, 60),
    height: |s| Some(s.limit? / s.plain.median * 100.0),
};

const TIMES: &[Series] = &[PLAIN, FOREREAD, HOT, LIMIT];

const API_TIMES: &[Series] = &[
    PLAIN,
    Series {
        name: "WILLNEED",
        colour: RGBColor(255, 158, 74),
        height: |s| Some(s.willneed?.median / s.plain.median * 100.0),
    },
    Series {
        name: "vmtouch",
        colour: RGBColor(148, 103, 189),
        height: |s| Some(s.vmtouch?.median / s.plain.median * 100.0),
    },
    FOREREAD,
    LIMIT,
];

const SLICE_TIMES: &[Series] = &[
    PLAIN,
    Series {
        name: "foreread cc",
        ..FOREREAD
    },
    Series {
        name: "foreread run",
        colour: RGBColor(148, 103, 189),
        height: |s| Some(s.recorded?.median / s.plain.median * 100.0),
    },
    HOT,
    LIMIT,
];

const SIGNATURE_TIMES: &[Series] = &[
    PLAIN,
    Series {
        name: "first run",
        ..FOREREAD
    },
    Series {
        name: "replay",
        colour: RGBColor(148, 103, 189),
        height: |s| Some(s.recorded?.median / s.plain.median * 100.0),
    },
    HOT,
    LIMIT,
];

const MASKED: &[Series] = &[
    Series {
        name: "foreread",
        colour: RGBColor(31, 119, 180),
        // What is far below 0 would flatten all others; the table has the figure.
        height: |s| Some(s.masked_pct?.clamp(-50.0, 110.0)),
    },
    Series {
        name: "the paper",
        colour: RGBColor(255, 158, 74),
        height: |s| Some(s.paper?.masked_pct),
    },
];

/// Draws the charts of every disk measured into `folder`; the files made.
pub fn draw(summaries: &[Summary], folder: &Path) -> Result<Vec<PathBuf>> {
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
            chart(&path, &title, &rows, series)?;
            made.push(path);
            // A bar where there is a figure, and the paper's only where one published it.
            let rows: Vec<&Summary> = rows
                .into_iter()
                .filter(|row| row.masked_pct.is_some())
                .collect();
            if !rows.is_empty() {
                let published = rows.iter().any(|row| row.paper.is_some());
                let series = if published { MASKED } else { &MASKED[..1] };
                let path = folder.join(format!("masked-{prefix}{disk}.svg"));
                let title = format!("Masked I/O on {disk}, percent");
                chart(&path, &title, &rows, series)?;
                made.push(path);
            }
        }
    }
    Ok(made)
}

/// A grouped bar chart, one group per row.
fn chart(path: &Path, title: &str, rows: &[&Summary], series: &[Series]) -> Result<()> {
    let width = 240 + 120 * (u32::try_from(rows.len())? + 1);
    let root = sheet(path, width);
    bars(&root, title, rows, series).map_err(|error| anyhow!("drawing {}: {error}", path.display()))
}

/// An empty drawing, `width` pixels wide and 420 high.
pub(crate) fn sheet(path: &Path, width: u32) -> DrawingArea<SVGBackend<'_>, Shift> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // If the font cannot be read, drawing says so.
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

#[cfg(test)]
mod tests {
    use super::*;
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
        let made = draw(&[own, hdd, second.clone()], folder.path()).unwrap();
        assert_eq!(made.len(), 4);
        let api = Summary {
            group: Group::Api,
            ..second
        };
        assert_eq!(draw(&[api], folder.path()).unwrap().len(), 2);
        let svg = std::fs::read_to_string(folder.path().join("times-hdd-7200.svg")).unwrap();
        for word in ["backward-1", "backward-2", "foreread", "limit"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(!svg.contains("sqlite"));
    }
}
