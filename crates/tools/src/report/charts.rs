//! The charts of a report, as SVG.
//!
//! A chart's shapes lie in a box of [`WIDTH`] by its height and are stretched to the width there is. Its words are beside it, not in it,
//! so that they have the size of all other words on a telephone, too. By itself ([`Chart::alone`]) it has its words in it. All colours
//! are classes: the page, or the drawing itself, says what they are in light and in the dark.
//!
//! Data flow: [`Facts`] → [`Chart`]s; pure.

use std::fmt::Write as _;

use foreread_run::{Sample, Waits};
use foreread_words::shown;
use foreread_words::units::{bytes, duration};

use super::digest::{BINS, COLUMNS, Digest, File, Lane, ROWS};
use super::facts::Facts;

/// Units of a chart's width.
pub(crate) const WIDTH: f64 = 1000.0;
/// Units of height of a row of bars, of a process's lane, and of a map.
const ROW: f64 = 110.0;
const LANE: f64 = 20.0;
const MAP: f64 = 240.0;
/// What the classes look like, in a drawing by itself and in the page.
pub(crate) const COLOURS: &str = include_str!("../../templates/colours.css");

/// A chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) height: f64,
    /// Shapes.
    pub(crate) body: String,
    /// Classes and the words for them.
    pub(crate) legend: Vec<(&'static str, String)>,
    /// Words under the start, the middle and the end.
    pub(crate) axis: [String; 3],
}

impl Chart {
    fn new(title: &str, height: f64, span_ns: u64) -> Self {
        Self {
            title: title.to_owned(),
            height,
            axis: ["0 s".to_owned(), duration(span_ns / 2), duration(span_ns)],
            ..Self::default()
        }
    }

    fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            let _ = write!(self.body, r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// A line from side to side.
    fn rule(&mut self, y: f64) {
        let _ = write!(self.body, r#"<path class="rule" d="M0 {y:.1}H{WIDTH}"/>"#);
    }

    fn says(&mut self, class: &'static str, text: String) {
        self.legend.push((class, text));
    }

    /// The chart as a file of its own.
    pub(crate) fn alone(&self) -> String {
        let head = 34.0 + 20.0 * self.legend.len() as f64;
        let height = head + self.height + 34.0;
        let mut text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1040 {height:.0}" width="1040" height="{height:.0}"><style>{COLOURS}text{{font:14px sans-serif;fill:var(--ink)}}.ground{{fill:var(--ground)}}</style><rect class="ground" width="100%" height="100%"/><text x="20" y="24">{}</text>"#,
            escaped(&self.title)
        );
        for (place, (class, said)) in self.legend.iter().enumerate() {
            let y = 46.0 + 20.0 * place as f64;
            let _ = write!(
                text,
                r#"<rect class="{class}" x="20" y="{:.0}" width="12" height="12"/><text x="40" y="{y:.0}">{}</text>"#,
                y - 11.0,
                escaped(said)
            );
        }
        let _ = write!(
            text,
            r#"<svg x="20" y="{head:.0}" width="1000" height="{0:.0}" viewBox="0 0 1000 {0:.0}">{1}</svg>"#,
            self.height, self.body
        );
        let anchors = [("20", "start"), ("520", "middle"), ("1020", "end")];
        for (said, (x, anchor)) in self.axis.iter().zip(anchors) {
            let y = head + self.height + 20.0;
            let _ = write!(
                text,
                r#"<text x="{x}" y="{y:.0}" text-anchor="{anchor}">{}</text>"#,
                escaped(said)
            );
        }
        text + "</svg>\n"
    }
}

/// Text in XML.
pub(crate) fn escaped(text: &str) -> String {
    let text = shown(text).replace('&', "&amp;");
    text.replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What became of what was fetched, as one stacked bar; `None` if nothing was.
pub(crate) fn ledger(facts: &Facts) -> Option<Chart> {
    let ledger = facts
        .run
        .as_ref()?
        .ledger
        .filter(|ledger| ledger.issued > 0)?;
    let mut chart = Chart {
        title: format!("What became of the {} fetched ahead", bytes(ledger.issued)),
        height: 34.0,
        ..Chart::default()
    };
    let columns = [
        ("useful", ledger.useful, "useful: in memory when read"),
        ("late", ledger.late, "late: the program already waited"),
        ("wasted", ledger.wasted, "wasted: not read"),
        (
            "evicted",
            ledger.evicted,
            "evicted: left memory before it was read",
        ),
        (
            "infill",
            ledger.infill,
            "infill: lay between what was wanted",
        ),
        (
            "unknown",
            ledger.unknown,
            "unknown: the reads were not observed",
        ),
    ];
    let mut x = 0.0;
    for (class, part, said) in columns {
        if part == 0 {
            continue;
        }
        let share = part as f64 / ledger.issued as f64;
        let width = share * WIDTH;
        chart.path(class, &format!("M{x:.1} 0h{width:.1}v34h-{width:.1}z"));
        chart.says(
            class,
            format!("{} {said} ({:.1} %)", bytes(part), share * 100.0),
        );
        x += width;
    }
    Some(chart)
}

/// When reads waited, and what was read or fetched below: the recorded run, then the last one, on one axis.
pub(crate) fn timeline(facts: &Facts) -> Vec<Chart> {
    let run = facts.run.as_ref();
    let recorded = facts.record.as_ref();
    let span = recorded.map_or(0, |record| record.span_ns);
    let span = span.max(run.map_or(0, |run| run.wall_ns)).max(1);
    let mut charts = Vec::new();
    if let Some(record) = recorded {
        let how = match &facts.summary {
            Some(summary) if summary.helped => "When recorded, with foreread",
            _ => "When recorded",
        };
        charts.push(recorded_row(how, record, span));
    }
    if let Some(run) = run {
        let how = match facts.was_helped() {
            true => "The last run, with foreread",
            false => "The last run",
        };
        let mut chart = Chart::new(how, 2.0 * ROW, span);
        let waits = rebinned(&run.went.waits, span);
        let most = waits.iter().copied().max().unwrap_or(0);
        chart.path("waited", &bars(&waits, most, ROW, ROW, 0.0));
        chart.says(
            "waited",
            said_of_waits(&waits, run.went.waits.reads.iter().sum()),
        );
        let rates = rates(&run.went.samples, span, |sample| sample.ahead_bytes);
        let most = rates.iter().map(|rate| rate.2).fold(0.0, f64::max);
        chart.path("fetched", &steps(&rates, most, ROW, -ROW));
        chart.says(
            "fetched",
            match most {
                0.0 => "below: nothing was seen to be requested ahead".to_owned(),
                _ => format!("below: requested ahead, at most {}/s", bytes(most as u64)),
            },
        );
        chart.rule(ROW);
        charts.push(chart);
    }
    charts
}

fn recorded_row(title: &str, record: &Digest, span: u64) -> Chart {
    let mut chart = Chart::new(title, 2.0 * ROW, span);
    let scale = record.span_ns as f64 / span as f64;
    let most = record.waited_ns.iter().copied().max().unwrap_or(0);
    let scaled = scaled(&record.waited_ns, scale);
    chart.path("waited", &bars(&scaled, most, ROW, ROW, 0.0));
    chart.says(
        "waited",
        said_of_waits(&record.waited_ns, record.reads_waited + record.names_waited),
    );
    let read = self::scaled(&record.read_bytes, scale);
    let most = read.iter().copied().max().unwrap_or(0);
    chart.path("read", &bars(&read, most, ROW, -ROW, 0.0));
    chart.says(
        "read",
        format!(
            "below: read by the program, {} in all",
            bytes(record.read_bytes.iter().sum())
        ),
    );
    chart.rule(ROW);
    chart
}

fn said_of_waits(waits: &[u64], count: u64) -> String {
    match count {
        0 => "above: no read was seen to wait".to_owned(),
        _ => format!(
            "above: {count} reads and names waited {} in all",
            duration(waits.iter().sum())
        ),
    }
}

/// How far ahead of the program the fetching was, and below, how long reads waited; `None` if that was not sampled.
pub(crate) fn distance(facts: &Facts) -> Option<Chart> {
    let run = facts.run.as_ref()?;
    let samples = &run.went.samples;
    let ahead = |sample: &Sample| sample.ahead_bytes.saturating_sub(sample.passed_bytes);
    let most = samples.iter().map(ahead).max().filter(|most| *most > 0)?;
    let span = run.wall_ns.max(1);
    let mut chart = Chart::new(
        "Distance ahead of the program, and lateness",
        1.5 * ROW,
        span,
    );
    let levels: Vec<_> = thinned(samples, span)
        .windows(2)
        .map(|pair| {
            (
                pair[0].at_ns as f64 / span as f64,
                pair[1].at_ns as f64 / span as f64,
                ahead(pair[1]) as f64,
            )
        })
        .collect();
    chart.path("ahead", &steps(&levels, most as f64, ROW, ROW));
    chart.says(
        "ahead",
        format!(
            "above: fetched or in memory, and not read yet; at most {}",
            bytes(most)
        ),
    );
    let waits = rebinned(&run.went.waits, span);
    let most = waits.iter().copied().max().unwrap_or(0);
    chart.path("waited", &bars(&waits, most, ROW, -ROW / 2.0, 0.0));
    chart.says(
        "waited",
        match most {
            0 => "below: no read was seen to wait".to_owned(),
            _ => format!(
                "below: reads that waited, {} in all",
                duration(waits.iter().sum())
            ),
        },
    );
    chart.rule(ROW);
    Some(chart)
}

/// The device's speed and, below, its queue; `None` if the kernel does not count them.
pub(crate) fn device(facts: &Facts) -> Option<Chart> {
    let run = facts.run.as_ref()?;
    let samples = &run.went.samples;
    if run.went.devices.is_empty() || samples.len() < 2 {
        return None;
    }
    let span = run.wall_ns.max(1);
    let mut chart = Chart::new(
        &format!("The device ({})", run.went.devices.join(", ")),
        2.0 * ROW,
        span,
    );
    let rates = rates(samples, span, |sample| sample.device_bytes);
    let most = rates.iter().map(|rate| rate.2).fold(0.0, f64::max);
    chart.path("fetched", &steps(&rates, most, ROW, ROW));
    chart.says(
        "fetched",
        format!(
            "above: read from it by anyone, at most {}/s",
            bytes(most as u64)
        ),
    );
    let queue: Vec<_> = thinned(samples, span)
        .windows(2)
        .map(|pair| {
            (
                pair[0].at_ns as f64 / span as f64,
                pair[1].at_ns as f64 / span as f64,
                pair[1].queue as f64,
            )
        })
        .collect();
    let most = queue.iter().map(|one| one.2).fold(0.0, f64::max);
    chart.path("queue", &steps(&queue, most, ROW, -ROW));
    chart.says(
        "queue",
        format!("below: requests that it had at once, at most {most:.0}"),
    );
    chart.rule(ROW);
    Some(chart)
}

/// Offset of a file, downwards, against time.
pub(crate) fn map(record: &Digest, file: &File) -> Chart {
    let mut chart = Chart::new(&file.path, MAP, record.span_ns);
    let cells = |has: &dyn Fn(usize) -> bool| {
        let mut path = String::new();
        for row in 0..ROWS {
            let mut column = 0;
            while column < COLUMNS {
                let length = (column..COLUMNS)
                    .take_while(|at| has(row * COLUMNS + at))
                    .count();
                if length > 0 {
                    let _ = write!(path, "M{column} {row}h{length}v1h-{length}z");
                }
                column += length.max(1);
            }
        }
        path
    };
    let map = &file.map;
    // Cells are units of one, so that their numbers are short.
    let (width, height) = (WIDTH / COLUMNS as f64, MAP / ROWS as f64);
    let _ = write!(
        chart.body,
        r#"<g transform="scale({width:.4} {height:.4})">"#
    );
    let at_once = cells(&|at| map.at_once[at] > 0 && map.waited[at] == 0);
    chart.path("read", &at_once);
    chart.path("waited", &cells(&|at| map.waited[at] > 0));
    chart.body += "</g>";
    chart.says("waited", format!("{} reads waited", file.reads_waited));
    chart.says(
        "read",
        format!(
            "{} found their bytes in memory",
            file.reads.saturating_sub(file.reads_waited)
        ),
    );
    chart.rule(0.5);
    chart.rule(MAP - 0.5);
    chart
}

/// When each process waited, a chart each; none of those that did not wait.
pub(crate) fn processes(facts: &Facts) -> Vec<Chart> {
    let Some(record) = &facts.record else {
        return Vec::new();
    };
    let waited = record.processes.iter().filter(|lane| lane.waited_ns > 0);
    let chart = |lane: &Lane| {
        let program = lane.program.rsplit('/').next().unwrap_or_default();
        let title = format!(
            "{program} ({}): waited {}",
            lane.pid,
            duration(lane.waited_ns)
        );
        let mut chart = Chart::new(&title, LANE, record.span_ns);
        chart.axis = Default::default();
        chart.path("waited", &bars(&lane.bins, record.bin_ns, LANE, LANE, 1.0));
        chart.rule(LANE - 0.5);
        chart
    };
    waited.map(chart).collect()
}

/// Bars from a base line, upwards or, with a negative height, downwards; one is at least `least` high.
fn bars(values: &[u64], most: u64, base: f64, height: f64, least: f64) -> String {
    let width = WIDTH / values.len().max(1) as f64;
    let mut path = String::new();
    for (place, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
        let share = (*value as f64 / most.max(1) as f64).min(1.0);
        let h = (share * height.abs()).max(least).max(0.5) * height.signum();
        let x = place as f64 * width;
        let _ = write!(path, "M{x:.1} {base:.1}v{:.1}h{width:.2}v{h:.1}z", -h);
    }
    path
}

/// Bars between moments, which are shares of the width.
fn steps(values: &[(f64, f64, f64)], most: f64, base: f64, height: f64) -> String {
    let mut path = String::new();
    for (from, to, value) in values.iter().filter(|one| one.2 > 0.0 && most > 0.0) {
        let h = (value / most).min(1.0) * height;
        let (x, width) = (from.min(1.0) * WIDTH, (to.min(1.0) - from.min(1.0)) * WIDTH);
        let _ = write!(path, "M{x:.1} {base:.1}v{:.1}h{width:.2}v{h:.1}z", -h);
    }
    path
}

/// Samples that are not closer than a bin.
fn thinned(samples: &[Sample], span: u64) -> Vec<&Sample> {
    let least = span / BINS as u64;
    let mut kept: Vec<&Sample> = Vec::new();
    for sample in samples {
        if kept
            .last()
            .is_none_or(|last| sample.at_ns >= last.at_ns.saturating_add(least))
        {
            kept.push(sample);
        }
    }
    kept
}

/// What a count grew by, a second, between samples.
fn rates(samples: &[Sample], span: u64, count: impl Fn(&Sample) -> u64) -> Vec<(f64, f64, f64)> {
    let kept = thinned(samples, span);
    let start = Sample::default();
    let before = std::iter::once(&start).chain(kept.iter().copied());
    let pairs = before.zip(kept.iter().copied());
    let rate = |(from, to): (&Sample, &Sample)| {
        let seconds = to.at_ns.saturating_sub(from.at_ns).max(1) as f64 / 1e9;
        let share = |at: u64| at as f64 / span as f64;
        let grown = count(to).saturating_sub(count(from)) as f64;
        (share(from.at_ns), share(to.at_ns), grown / seconds)
    };
    pairs.map(rate).collect()
}

/// Waits in as many bins as a chart has.
fn rebinned(waits: &Waits, span: u64) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for (place, waited) in waits.waited_ns.iter().enumerate() {
        let start = u128::from(waits.bin_ns) * place as u128;
        let bin = start * BINS as u128 / u128::from(span.max(1));
        bins[(bin as usize).min(BINS - 1)] += waited;
    }
    bins
}

/// Bins that take only a part of the width.
fn scaled(values: &[u64], scale: f64) -> Vec<u64> {
    let mut bins = vec![0; values.len()];
    for (place, value) in values.iter().enumerate() {
        bins[((place as f64 * scale) as usize).min(values.len() - 1)] += value;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_that_are_moved_keep_their_sum() {
        let waits = Waits {
            bin_ns: 1 << 17,
            waited_ns: (0..1000).collect(),
            reads: vec![1; 1000],
        };
        let all: u64 = waits.waited_ns.iter().sum();
        for span in [1, 1 << 20, 1 << 30] {
            assert_eq!(rebinned(&waits, span).iter().sum::<u64>(), all);
        }
        assert_eq!(scaled(&[1, 2, 3, 4], 0.5), [3, 7, 0, 0]);
    }

    #[test]
    fn what_is_drawn_by_itself_is_well_formed_whatever_a_file_is_called() {
        let mut chart = Chart::new("a<b>&\"c\u{1b}", 10.0, 1_000_000_000);
        chart.says("waited", "<script>".to_owned());
        let text = chart.alone();
        assert!(
            !text.contains("<b>") && !text.contains("<script>"),
            "{text}"
        );
        assert!(
            text.ends_with("</svg>\n") && text.contains("1.00 s"),
            "{text}"
        );
    }
}
