//! The charts of a report.
//!
//! A chart is a set of rectangles in a box of [`WIDTH`] by its height, which a page scales to the available width. Its texts stand beside
//! the box, so they have the page's text size on a telephone, too; [`super::drawing`] puts them above and below. All colours are classes,
//! defined by the page or the drawing for light and dark.
//!
//! Data flow: [`CommandFacts`] → [`Chart`]s; pure.

use foreread_run::{Fate, Sample, Waits};
use foreread_words::units::{bytes, duration};

use super::digest::{BINS, COLUMNS, Digest, File, ROWS};
use super::facts::CommandFacts;

/// Width of a chart, in units.
pub(crate) const WIDTH: f64 = 1000.0;
/// Height of a row of bars, and of a map, in units.
const ROW: f64 = 110.0;
const MAP: f64 = 240.0;
/// Style sheets of the classes: in a separate drawing, and in the page.
pub(crate) const COLOURS: &str = include_str!("../../templates/colours.css");

/// A chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) height: f64,
    /// Shapes, the frontmost last.
    pub(crate) shapes: Vec<Shape>,
    /// Classes with their legend texts.
    pub(crate) legend: Vec<(&'static str, String)>,
    /// Texts below the start, the middle and the end.
    pub(crate) axis: [String; 3],
}

/// Rectangles of one class.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) class: &'static str,
    /// Scale of the rectangles, to the right and downwards, in units.
    pub(crate) scale: (f64, f64),
    pub(crate) rects: Vec<Rect>,
}

/// Left edge, top edge, width and height.
pub(crate) type Rect = [f64; 4];

/// The class of a horizontal line.
pub(crate) const RULE: &str = "rule";

impl Chart {
    pub(super) fn new(title: &str, height: f64, span_ns: u64) -> Self {
        Self {
            title: title.to_owned(),
            height,
            axis: ["0 s".to_owned(), duration(span_ns / 2), duration(span_ns)],
            ..Self::default()
        }
    }

    pub(super) fn shape(&mut self, class: &'static str, rects: Vec<Rect>) {
        self.scaled(class, (1.0, 1.0), rects);
    }

    fn scaled(&mut self, class: &'static str, scale: (f64, f64), rects: Vec<Rect>) {
        if !rects.is_empty() {
            let shape = Shape {
                class,
                scale,
                rects,
            };
            self.shapes.push(shape);
        }
    }

    /// Bars from a base line, upwards or, with a negative height, downwards; each at least `least` high.
    pub(super) fn bars(
        &mut self,
        class: &'static str,
        values: &[u64],
        most: u64,
        base: f64,
        height: f64,
        least: f64,
    ) {
        let bars = values.iter().enumerate().filter(|(_, value)| **value > 0);
        let bars = bars.map(|(place, value)| {
            let share = (*value as f64 / most.max(1) as f64).min(1.0);
            let h = (share * height.abs()).max(least).max(0.5);
            bar(place as f64, 1.0, base, h * height.signum())
        });
        // Bars are one unit wide, so that their coordinates are short.
        let width = WIDTH / values.len().max(1) as f64;
        self.scaled(class, (width, 1.0), bars.collect());
    }

    /// A horizontal line across the chart.
    pub(super) fn rule(&mut self, y: f64) {
        self.shape(RULE, vec![[0.0, y, WIDTH, 0.0]]);
    }

    pub(super) fn says(&mut self, class: &'static str, text: String) {
        self.legend.push((class, text));
    }
}

/// The ledger of the fetched bytes as one stacked bar; `None` if nothing was fetched.
pub(crate) fn ledger(facts: &CommandFacts) -> Option<Chart> {
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
        chart.shape(class, vec![[x, 0.0, width, 34.0]]);
        chart.says(
            class,
            format!("{} {said} ({:.1} %)", bytes(part), share * 100.0),
        );
        x += width;
    }
    Some(chart)
}

/// Waiting of reads, with the bytes read or fetched below: the recorded run, then the last run, on one axis.
pub(crate) fn timeline(facts: &CommandFacts) -> Vec<Chart> {
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
        chart.bars("waited", &waits, most, ROW, ROW, 0.0);
        chart.says(
            "waited",
            said_of_waits(&waits, run.went.waits.reads.iter().sum()),
        );
        let rates = rates(&run.went.samples, span, BINS, |sample| sample.ahead_bytes);
        let most = rates.iter().map(|rate| rate.2).fold(0.0, f64::max);
        chart.shape("fetched", steps(&rates, most, ROW, -ROW));
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
    chart.bars("waited", &scaled, most, ROW, ROW, 0.0);
    chart.says(
        "waited",
        said_of_waits(&record.waited_ns, record.reads_waited + record.names_waited),
    );
    let read = self::scaled(&record.read_bytes, scale);
    let most = read.iter().copied().max().unwrap_or(0);
    chart.bars("read", &read, most, ROW, -ROW, 0.0);
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

/// The distance of the prefetching ahead of the program, with the waiting of reads below; `None` if it was not sampled.
pub(crate) fn distance(facts: &CommandFacts) -> Option<Chart> {
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
    let levels: Vec<_> = thinned(samples, span, BINS)
        .windows(2)
        .map(|pair| {
            (
                pair[0].at_ns as f64 / span as f64,
                pair[1].at_ns as f64 / span as f64,
                ahead(pair[1]) as f64,
            )
        })
        .collect();
    chart.shape("ahead", steps(&levels, most as f64, ROW, ROW));
    chart.says(
        "ahead",
        format!(
            "above: fetched or in memory, and not read yet; at most {}",
            bytes(most)
        ),
    );
    let waits = rebinned(&run.went.waits, span);
    let most = waits.iter().copied().max().unwrap_or(0);
    chart.bars("waited", &waits, most, ROW, -ROW / 2.0, 0.0);
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

/// The device's throughput, with its queue below; `None` if the kernel has no counters for it.
pub(crate) fn device(facts: &CommandFacts) -> Option<Chart> {
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
    let rates = rates(samples, span, BINS, |sample| sample.device_bytes);
    let most = rates.iter().map(|rate| rate.2).fold(0.0, f64::max);
    chart.shape("fetched", steps(&rates, most, ROW, ROW));
    chart.says(
        "fetched",
        format!(
            "above: read from it by anyone, at most {}/s",
            bytes(most as u64)
        ),
    );
    let queue: Vec<_> = thinned(samples, span, BINS)
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
    chart.shape("queue", steps(&queue, most, ROW, -ROW));
    chart.says(
        "queue",
        format!("below: requests that it had at once, at most {most:.0}"),
    );
    chart.rule(ROW);
    Some(chart)
}

/// The maps of the files that have one.
pub(crate) fn maps(facts: &CommandFacts) -> Vec<Chart> {
    let record = facts.record.iter();
    let maps = record.flat_map(|record| record.files.iter().map(|file| map(record, file)));
    maps.collect()
}

/// A file's map: offset downwards, time to the right.
fn map(record: &Digest, file: &File) -> Chart {
    let mut chart = Chart::new(&file.path, MAP, record.span_ns);
    let cells = |has: &dyn Fn(usize) -> bool| {
        let mut rects = Vec::new();
        for row in 0..ROWS {
            let mut column = 0;
            while column < COLUMNS {
                let length = (column..COLUMNS)
                    .take_while(|at| has(row * COLUMNS + at))
                    .count();
                if length > 0 {
                    rects.push([column as f64, row as f64, length as f64, 1.0]);
                }
                column += length.max(1);
            }
        }
        rects
    };
    let map = &file.map;
    let fates = file.fates.as_ref();
    // Cells are one unit wide and high, so that their coordinates are short.
    let scale = (WIDTH / COLUMNS as f64, MAP / ROWS as f64);
    if fates.is_none() {
        let at_once = cells(&|at| map.at_once[at] > 0 && map.waited[at] == 0);
        chart.scaled("read", scale, at_once);
        chart.scaled("waited", scale, cells(&|at| map.waited[at] > 0));
        chart.says("waited", format!("{} reads waited", file.reads_waited));
        chart.says(
            "read",
            format!(
                "{} found their bytes in memory",
                file.reads.saturating_sub(file.reads_waited)
            ),
        );
    }
    for (fate, bytes_of) in Fate::ALL.iter().zip(fates.into_iter().flatten()) {
        let (class, said) = in_words(*fate);
        let cells = cells(&|at| map.fates[at] == Some(*fate));
        chart.scaled(class, scale, cells);
        if *bytes_of > 0 {
            chart.says(class, format!("{} {said}", bytes(*bytes_of)));
        }
    }
    chart.rule(0.5);
    chart.rule(MAP - 0.5);
    chart
}

/// The class and the legend text of a page with this fate.
pub(crate) fn in_words(fate: Fate) -> (&'static str, &'static str) {
    match fate {
        Fate::InMemory => ("read", "in memory before"),
        Fate::Kernel => ("kernel", "left to the kernel, which reads ahead"),
        Fate::Useful => ("useful", "useful"),
        Fate::Late => ("late", "late"),
        Fate::Wasted => ("wasted", "wasted"),
        Fate::Missed => ("missed", "missed"),
        Fate::Unknown => ("unknown", "not known"),
    }
}

/// Bars between moments, given as shares of the width.
pub(super) fn steps(values: &[(f64, f64, f64)], most: f64, base: f64, height: f64) -> Vec<Rect> {
    let steps = values.iter().filter(|one| one.2 > 0.0 && most > 0.0);
    let steps = steps.map(|(from, to, value)| {
        let (x, end) = (from.min(1.0) * WIDTH, to.min(1.0) * WIDTH);
        bar(x, end - x, base, (value / most).min(1.0) * height)
    });
    steps.collect()
}

/// A bar from a base line, upwards or, with a negative height, downwards.
fn bar(x: f64, width: f64, base: f64, height: f64) -> Rect {
    [x, base - height.max(0.0), width, height.abs()]
}

/// Samples thinned out to at most this many parts of the duration.
fn thinned(samples: &[Sample], span: u64, parts: usize) -> Vec<&Sample> {
    let least = span / parts as u64;
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

/// Growth of a counter per second, between samples thinned out to this many parts of the duration.
pub(super) fn rates(
    samples: &[Sample],
    span: u64,
    parts: usize,
    count: impl Fn(&Sample) -> u64,
) -> Vec<(f64, f64, f64)> {
    let kept = thinned(samples, span, parts);
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

/// Waiting in as many bins as a chart has.
pub(super) fn rebinned(waits: &Waits, span: u64) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for (place, waited) in waits.waited_ns.iter().enumerate() {
        let start = u128::from(waits.bin_ns) * place as u128;
        let bin = start * BINS as u128 / u128::from(span.max(1));
        bins[(bin as usize).min(BINS - 1)] += waited;
    }
    bins
}

/// Scales bins to a part of the width.
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
}
