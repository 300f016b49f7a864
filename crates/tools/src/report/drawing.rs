//! Charts as a separate file, one above the other: as SVG or as PNG.
//!
//! Data flow: [`Chart`]s → [`Sheet`] → SVG, or pixels → PNG; pure.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use foreread_words::shown;
use foreread_words::units::cut;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::charts::{COLOURS, Chart, RULE, Rect, Shape, WIDTH};
use crate::font::{self, FONT};

/// Margin around a chart, and width of the whole drawing, in units.
const MARGIN: f64 = 20.0;
const WHOLE: f64 = WIDTH + 2.0 * MARGIN;
/// Side of a legend's key, and height of a letter, in units.
const KEY: f64 = 12.0;
const LETTER: f64 = 14.0;
/// Longest title or legend line, in characters.
const LINE: usize = 115;
/// Pixels of a PNG per unit: two, for screens of high resolution.
const SCALE: f64 = 2.0;
/// Width of a line, in units.
const THIN: f64 = 1.0;

/// All parts of a drawing, with their places.
#[derive(Default)]
struct Sheet<'a> {
    height: f64,
    /// Alignment, horizontal position, base line, text.
    words: Vec<(HPos, f64, f64, String)>,
    /// The keys of the legends.
    keys: Vec<(&'static str, Rect)>,
    /// The shapes, each with the top of its chart.
    shapes: Vec<(f64, &'a Shape)>,
}

/// The charts as an SVG that follows the viewer's preference for light or dark.
pub(super) fn svg(charts: &[Chart]) -> String {
    let sheet = Sheet::of(charts);
    let height = sheet.height;
    let mut text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WHOLE} {height:.0}" width="{WHOLE}" height="{height:.0}"><style>{COLOURS}text{{font:{LETTER}px sans-serif;fill:var(--ink)}}.ground{{fill:var(--ground)}}</style><rect class="ground" width="100%" height="100%"/>"#
    );
    for (side, x, y, said) in &sheet.words {
        let anchor = match side {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let said = escaped(said);
        let _ = write!(
            text,
            r#"<text x="{x}" y="{y:.0}" text-anchor="{anchor}">{said}</text>"#
        );
    }
    for (class, [x, y, width, height]) in &sheet.keys {
        let _ = write!(
            text,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        );
    }
    for (top, shape) in &sheet.shapes {
        let _ = write!(text, r#"<g transform="translate({MARGIN} {top:.0})">"#);
        shape.draw(&mut text);
        text += "</g>";
    }
    text + "</svg>\n"
}

/// The charts as a PNG, in light colours.
///
/// # Errors
/// When it cannot be drawn.
pub(super) fn png(charts: &[Chart]) -> Result<Vec<u8>> {
    font::ready()?;
    let sheet = Sheet::of(charts);
    let size = [WHOLE, sheet.height].map(|side| (side * SCALE).round() as u32);
    let mut pixels = vec![0; size.iter().product::<u32>() as usize * 3];
    let area = BitMapBackend::with_buffer(&mut pixels, (size[0], size[1])).into_drawing_area();
    area.fill(&colour("ground"))?;
    for (class, rect) in &sheet.keys {
        area.draw(&block(*rect, colour(class)))?;
    }
    for (top, shape) in &sheet.shapes {
        let colour = colour(shape.class);
        for [x, y, width, height] in &shape.rects {
            let (right, down) = shape.scale;
            let height = if shape.class == RULE { THIN } else { *height };
            let rect = [
                MARGIN + x * right,
                top + y * down,
                width * right,
                height * down,
            ];
            area.draw(&block(rect, colour))?;
        }
    }
    for (side, x, y, said) in &sheet.words {
        let style = (FONT, LETTER * SCALE).into_font().color(&colour("ink"));
        let style = style.pos(Pos::new(*side, VPos::Bottom));
        let place = [*x, *y + LETTER / 4.0].map(|at| (at * SCALE).round() as i32);
        let said = shown(said).into_owned();
        area.draw(&Text::new(said, (place[0], place[1]), style))?;
    }
    area.present()?;
    drop(area);
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, size[0], size[1]);
    encoder.set_color(::png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish().context("a picture")?;
    Ok(file)
}

/// A rectangle in pixels, at least one pixel wide and high.
fn block([x, y, width, height]: Rect, colour: RGBColor) -> Rectangle<(i32, i32)> {
    let pixel = |at: f64| (at * SCALE).round() as i32;
    let (left, top) = (pixel(x), pixel(y));
    // The end of the range is included.
    let right = (pixel(x + width) - 1).max(left);
    let bottom = (pixel(y + height) - 1).max(top);
    Rectangle::new([(left, top), (right, bottom)], colour.filled())
}

/// The light colour of a class, from the first line of the style sheet.
fn colour(class: &str) -> RGBColor {
    let name = if class == RULE { "line" } else { class };
    let name = format!("--{name}:#");
    let light = COLOURS.lines().next().unwrap_or_default();
    let digits = light.split_once(&name).map_or("", |(_, rest)| rest);
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let parts = [0, 2, 4].map(|at| part(at).unwrap_or(0));
    RGBColor(parts[0], parts[1], parts[2])
}

impl<'a> Sheet<'a> {
    fn of(charts: &'a [Chart]) -> Self {
        let mut sheet = Self::default();
        charts.iter().for_each(|chart| sheet.add(chart));
        sheet
    }

    /// Adds a chart with its texts.
    fn add(&mut self, chart: &'a Chart) {
        let mut y = self.height + 24.0;
        let title = cut(&chart.title, LINE, true);
        self.words.push((HPos::Left, MARGIN, y, title));
        for (class, said) in &chart.legend {
            y += 20.0;
            let key = [MARGIN, y - KEY + 1.0, KEY, KEY];
            self.keys.push((class, key));
            let said = cut(said, LINE, false);
            self.words.push((HPos::Left, 2.0 * MARGIN, y, said));
        }
        let top = y + 10.0;
        self.shapes
            .extend(chart.shapes.iter().map(|shape| (top, shape)));
        let foot = top + chart.height;
        self.height = foot + 10.0;
        let places = [(0.0, HPos::Left), (0.5, HPos::Center), (1.0, HPos::Right)];
        for (said, (share, side)) in chart.axis.iter().zip(places) {
            if !said.is_empty() {
                let x = MARGIN + share * WIDTH;
                self.words.push((side, x, foot + 18.0, said.clone()));
                self.height = foot + 34.0;
            }
        }
    }
}

impl Chart {
    /// The shapes, for the SVG box of a chart.
    pub(super) fn svg(&self) -> String {
        let mut text = String::new();
        self.shapes.iter().for_each(|shape| shape.draw(&mut text));
        text
    }
}

impl Shape {
    fn draw(&self, out: &mut String) {
        let _ = write!(out, r#"<path class="{}""#, self.class);
        if self.scale != (1.0, 1.0) {
            let (right, down) = self.scale;
            let _ = write!(out, r#" transform="scale({right:.4} {down:.4})""#);
        }
        *out += r#" d=""#;
        for &[x, y, width, height] in &self.rects {
            let (x, y) = (short(x), short(y));
            let (width, height) = (short(width), short(height));
            let _ = match self.class {
                RULE => write!(out, "M{x} {y}h{width}"),
                _ => write!(out, "M{x} {y}v{height}h{width}v-{height}z"),
            };
        }
        *out += r#""/>"#;
    }
}

/// A number with visible digits only.
fn short(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let text = shown(text).replace('&', "&amp;");
    text.replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(title: &str) -> Chart {
        Chart {
            title: title.to_owned(),
            height: 40.0,
            shapes: vec![Shape {
                class: "waited",
                scale: (1.0, 1.0),
                rects: vec![[0.0, 0.0, WIDTH, 40.0]],
            }],
            legend: vec![("waited", "<script>".to_owned())],
            axis: ["0 s", "500 ms", "1.00 s"].map(str::to_owned),
        }
    }

    #[test]
    fn what_is_drawn_is_well_formed_whatever_a_file_is_called() {
        let charts = [chart("a<b>&\"c\u{1b}"), chart(&"/é".repeat(200))];
        let text = svg(&charts);
        assert!(
            !text.contains("<b>") && !text.contains("<script>"),
            "{text}"
        );
        assert!(
            text.ends_with("</svg>\n") && text.contains("1.00 s"),
            "{text}"
        );
        assert!(png(&charts).is_ok());
    }

    #[test]
    fn a_picture_has_its_colours_and_letters_without_a_font_of_the_machine() {
        let file = png(&[chart("title")]).unwrap();
        let mut reader = ::png::Decoder::new(&*file).read_info().unwrap();
        let (width, height) = (reader.info().width, reader.info().height);
        assert_eq!((width, height), (2080, 256));
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).unwrap();
        let at = |x: u32, y: u32| {
            let place = (y * width + x) as usize * 3;
            [pixels[place], pixels[place + 1], pixels[place + 2]]
        };
        assert_eq!(at(2, 2), [0xff; 3]);
        assert_eq!(at(1000, 150), [0xc2, 0x41, 0x0c]);
        let dark = |x: u32, y: u32| at(x, y).iter().all(|part| *part < 0x80);
        assert!((40..120).any(|x| (20..60).any(|y| dark(x, y))));
    }

    #[test]
    fn every_class_has_a_colour_in_light_and_in_dark() {
        let classes = COLOURS.split("fill:var(--").skip(1);
        let classes = classes.filter_map(|rest| rest.split_once(')'));
        for (name, _) in classes {
            let defined = COLOURS.matches(&format!("--{name}:#")).count();
            assert_eq!(defined, 3, "{name}");
        }
    }
}
