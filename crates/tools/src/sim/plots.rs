//! The comparison as PNG files in a folder: figures of each model, distribution of leads, hits by size of memory, coverage and waste by
//! threshold.

use std::path::Path;

use anyhow::{Context, Result};
use foreread_words::units::{bytes, duration};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::Compared;
use super::measure::{Arm, Measured};
use super::quantiles::Quantiles;
use crate::font::{self, FONT};

/// Size of a plot in pixels.
const HEIGHT: u32 = 520;
const WIDTH: u32 = 1000;
/// Width of a group of bars, in pixels.
const GROUP: u32 = 110;
/// Width of the legend, in pixels.
const LEGEND: u32 = 240;
const GREY: RGBColor = RGBColor(120, 120, 120);

/// Colours of the models: Okabe and Ito's palette, which colour-blind readers can distinguish.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// Creates the folder before the traces are read, so that an error does not cost hours.
pub(super) fn ready(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

/// Draws all plots.
pub(super) fn draw(compared: &Compared, folder: &Path) -> Result<()> {
    font::ready()?;
    let file = |name: &str, width: u32, paint: &dyn Fn(&Area) -> Result<()>| {
        let path = folder.join(name);
        let area = BitMapBackend::new(&path, (width, HEIGHT)).into_drawing_area();
        let painted = area.fill(&WHITE).map_err(anyhow::Error::from);
        painted
            .and_then(|()| paint(&area))
            .and_then(|()| Ok(area.present()?))
            .with_context(|| format!("drawing {}", path.display()))
    };
    let bars = 80 + GROUP * compared.models.len() as u32;
    file("figures.png", (bars + LEGEND).max(WIDTH), &|area| {
        figures(area, compared)
    })?;
    file("lead.png", WIDTH, &|area| lead(area, compared))?;
    file("memory.png", WIDTH, &|area| memory(area, compared))?;
    file("threshold.png", WIDTH, &|area| threshold(area, compared))
}

/// Splits an area into the plot and the legend.
fn split<'a>(area: &Area<'a>) -> (Area<'a>, Area<'a>) {
    area.split_horizontally(area.dim_in_pixel().0 - LEGEND)
}

/// A bar in each group.
struct Bar {
    name: &'static str,
    colour: RGBColor,
    share: fn(&Measured) -> Option<f64>,
}

/// The figures at the first threshold and size of memory.
const BARS: [Bar; 5] = [
    Bar {
        name: "accuracy",
        colour: COLOURS[0],
        share: |model| share(model.right, model.events),
    },
    Bar {
        name: "predicted",
        colour: COLOURS[5],
        share: |model| share(model.arms[0].predicted, model.events),
    },
    Bar {
        name: "covered",
        colour: COLOURS[2],
        share: |model| covered(&model.arms[0]),
    },
    Bar {
        name: "hits",
        colour: COLOURS[1],
        share: |model| share(model.arms[0].caches[0].hits, model.events),
    },
    Bar {
        name: "wasted bytes",
        colour: COLOURS[3],
        share: |model| wasted(&model.arms[0]),
    },
];

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| 100.0 * part as f64 / of as f64)
}

fn covered(arm: &Arm) -> Option<f64> {
    let cached = &arm.caches[0];
    share(cached.covered, cached.needed)
}

/// Share of the prefetched bytes.
fn wasted(arm: &Arm) -> Option<f64> {
    let cached = &arm.caches[0];
    share(cached.wasted().bytes, cached.cache.issued.bytes)
}

fn figures(area: &Area, compared: &Compared) -> Result<()> {
    let models = &compared.models;
    let args = compared.args;
    let title = format!(
        "Models with {} of cache, fetching from {} on",
        bytes(args.memory[0]),
        args.thresholds[0]
    );
    let groups = models.len() as f64;
    let (plot, beside) = split(area);
    let mut chart = ChartBuilder::on(&plot)
        .caption(title, (FONT, 18))
        .margin(14)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..groups, 0.0..105.0)?;
    let name = |x: &f64| {
        let middle = (x.fract() - 0.5).abs() < 0.01;
        let model = models.get(x.floor() as usize).filter(|_| middle);
        model.map_or(String::new(), |model| model.name.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .label_style((FONT, 12))
        .x_labels(2 * models.len() + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .y_desc("%")
        .draw()?;
    let width = 0.8 / BARS.len() as f64;
    for (place, bar) in BARS.iter().enumerate() {
        let bars = models.iter().enumerate().filter_map(|(group, model)| {
            let left = group as f64 + 0.1 + place as f64 * width;
            let corners = [(left, 0.0), (left + width * 0.9, (bar.share)(model)?)];
            Some(Rectangle::new(corners, bar.colour.filled()))
        });
        chart.draw_series(bars)?;
    }
    let entries: Vec<_> = BARS
        .iter()
        .map(|bar| (bar.name, bar.colour, false))
        .collect();
    legend(&beside, &entries)
}

/// The legend beside the plot: name, colour, and true if the line is dashed.
fn legend(area: &Area, entries: &[(&str, RGBColor, bool)]) -> Result<()> {
    let (left, right, top, row) = (8, 30, 44, 20);
    for (place, (name, colour, dashed)) in entries.iter().enumerate() {
        let y = top + row * place as i32;
        let parts: &[(i32, i32)] = match dashed {
            true => &[(left, left + 9), (left + 13, right)],
            false => &[(left, right)],
        };
        for (from, until) in parts {
            area.draw(&Rectangle::new(
                [(*from, y - 2), (*until, y + 1)],
                colour.filled(),
            ))?;
        }
        let text = (FONT, 12).into_font();
        area.draw(&Text::new(name.to_string(), (right + 8, y - 6), text))?;
    }
    Ok(())
}

/// A line, with points whose second coordinates are percentages.
struct Line {
    name: String,
    colour: RGBColor,
    dashed: bool,
    points: Vec<(f64, f64)>,
}

/// The horizontal axis.
struct Axis<'a> {
    title: &'a str,
    written: &'a dyn Fn(f64) -> String,
}

/// Draws lines over an axis.
fn lines<X>(area: &Area, caption: &str, range: X, axis: &Axis, lines: &[Line]) -> Result<()>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let (plot, beside) = split(area);
    let mut chart = ChartBuilder::on(&plot)
        .caption(caption, (FONT, 18))
        .margin(14)
        .margin_right(36)
        .x_label_area_size(48)
        .y_label_area_size(56)
        .build_cartesian_2d::<X, std::ops::Range<f64>>(range, 0.0..105.0)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .label_style((FONT, 12))
        .x_label_formatter(&|x| (axis.written)(*x))
        .x_desc(axis.title)
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .y_desc("%")
        .draw()?;
    for line in lines {
        let (colour, points) = (line.colour, line.points.clone());
        let style = colour.stroke_width(2);
        if line.dashed {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(points, style))?;
        }
        let dots = line.points.iter().filter(|_| line.points.len() < 16);
        chart.draw_series(dots.map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    let entries: Vec<_> = lines
        .iter()
        .map(|line| (line.name.as_str(), line.colour, line.dashed))
        .collect();
    legend(&beside, &entries)
}

fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// Share of leads of at least this length.
fn lead(area: &Area, compared: &Compared) -> Result<()> {
    let of = |arm: &Arm| match compared.timed {
        true => arm.lead_ns.clone(),
        false => arm.lead_events.clone(),
    };
    let line = |(place, model): (usize, &Measured)| {
        let leads: Quantiles = of(&model.arms[0]);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (value, share) in leads.shares() {
            // The share is constant between two lengths that occur.
            let share = 100.0 * share;
            let value = (value as f64).max(1.0);
            points.extend(points.last().map(|_| (value, share)));
            let below = leads
                .from(value as u64 + 1)
                .map_or(0.0, |rest| 100.0 * rest);
            points.push((value, share));
            points.push((value, below.min(share)));
        }
        Line {
            name: model.name.clone(),
            colour: colour(place),
            dashed: false,
            points,
        }
    };
    let drawn: Vec<Line> = compared.models.iter().enumerate().map(line).collect();
    let ends = drawn.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
    let (least, most) = ends.fold((f64::INFINITY, 10.0), |(least, most), x| {
        (x.min(least), x.max(most))
    });
    let range = (least.min(most / 10.0) / 1.2..most * 1.1).log_scale();
    let caption = "Leads at least so long, from the first prediction to the use";
    let axis = match compared.timed {
        true => Axis {
            title: "time",
            written: &|ns| duration(ns.round() as u64),
        },
        false => Axis {
            title: "events of the machine",
            written: &|events| format!("{events:.0}"),
        },
    };
    lines(area, caption, range, &axis, &drawn)
}

/// Hits by the size of the cache.
fn memory(area: &Area, compared: &Compared) -> Result<()> {
    let sizes = &compared.args.memory;
    let over = |hits: &mut dyn Iterator<Item = u64>| {
        let shares = hits.map(|hits| 100.0 * hits as f64 / compared.events as f64);
        let mut points: Vec<(f64, f64)> =
            sizes.iter().map(|size| *size as f64).zip(shares).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let plain = Line {
        name: "no prefetching".to_owned(),
        colour: GREY,
        dashed: true,
        points: over(&mut compared.plain_hits.iter().copied()),
    };
    let of = |(place, model): (usize, &Measured)| Line {
        name: model.name.clone(),
        colour: colour(place),
        dashed: false,
        points: over(&mut model.arms[0].caches.iter().map(|cached| cached.hits)),
    };
    let drawn: Vec<Line> = std::iter::once(plain)
        .chain(compared.models.iter().enumerate().map(of))
        .collect();
    let (least, most) = ends(sizes.iter().map(|size| *size as f64));
    let range = (least / 1.3..most * 1.3).log_scale().base(2.0);
    let axis = Axis {
        title: "memory of the cache",
        written: &|size| bytes(size.round() as u64),
    };
    let caption = "Events whose file was in the cache";
    lines(area, caption, range, &axis, &drawn)
}

/// Coverage and waste by the threshold.
fn threshold(area: &Area, compared: &Compared) -> Result<()> {
    let of = |(place, model): (usize, &Measured)| {
        let line = |what: &str, dashed, figure: fn(&Arm) -> Option<f64>| {
            let points = model.arms.iter();
            let mut points: Vec<(f64, f64)> = points
                .filter_map(|arm| Some((arm.threshold, figure(arm)?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line {
                name: format!("{}, {what}", model.name),
                colour: colour(place),
                dashed,
                points,
            }
        };
        [
            line("covered", false, covered),
            line("wasted bytes", true, wasted),
        ]
    };
    let drawn: Vec<Line> = compared.models.iter().enumerate().flat_map(of).collect();
    let (least, most) = ends(compared.args.thresholds.iter().copied());
    let range: std::ops::Range<f64> = least - 0.02..most + 0.02;
    let axis = Axis {
        title: "likelihood from which on a file is fetched",
        written: &|threshold| format!("{threshold:.2}"),
    };
    let caption = "Coverage and waste";
    lines::<std::ops::Range<f64>>(area, caption, range, &axis, &drawn)
}

/// The least and the greatest value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    values.fold(nothing, |(least, most), x| (x.min(least), x.max(most)))
}
