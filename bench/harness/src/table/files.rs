//! The tables of the group `files`: a block per case and disk, a row per variant.

use super::{Column, column, table};
use crate::files::Measured;
use crate::files::figures::{self, Figures, Mean};
use crate::files::latency::BUCKETS;

const NAME: usize = 9;

/// The tables, ready to print.
pub(super) fn tables(all: &[Measured]) -> String {
    let mut out = String::from(
        "programs that open many files, beside daemons; means ± 90 % confidence, seconds\n\
         I/O: elapsed less user and system time; gone: of plain's, %; ratio: to plain\n",
    );
    for measured in all {
        let figures = figures::of(measured);
        let runs = figures.first().map_or(0, |one| one.runs);
        let title = format!("{} on {}, {runs} runs each", measured.case, measured.disk);
        out += &format!("\n{title}\n\n{}", times(&figures));
        if measured.series.iter().any(|one| one.reads.calls > 0) {
            out += "\nreads, µs, of runs under strace; percent of them up to\n\n";
            out += &reads(measured, &figures);
        }
        for (variant, reason) in &measured.missing {
            out += &format!("\nwithout {}: {reason}\n", variant.name());
        }
        for note in &measured.notes {
            out += &format!("\nnote: {note}\n");
        }
        if measured.discarded > 0 {
            out += &format!(
                "\nnote: starts that were not cold, and not counted: {}\n",
                measured.discarded
            );
        }
    }
    out
}

fn with_margin(mean: Mean) -> String {
    match mean.within {
        Some(within) => format!("{:.3} ±{within:.3}", mean.mean),
        None => format!("{:.3}", mean.mean),
    }
}

fn or_none(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("-".into(), |figure| format!("{figure:.digits$}"))
}

fn times(figures: &[Figures]) -> String {
    let columns: &[Column<Figures>] = &[
        column("variant", NAME, |one| one.variant.name().into()),
        column("elapsed", 14, |one| with_margin(one.elapsed)),
        column("compute", 15, |one| with_margin(one.compute)),
        column("I/O", 15, |one| with_margin(one.io)),
        column("gone", 6, |one| or_none(one.elapsed_gone, 0)),
        column("I/O", 6, |one| or_none(one.io_gone, 0)),
        column("ratio", 7, |one| or_none(one.ratio, 3)),
        column("MiB", 7, |one| or_none(one.device_mib, 0)),
    ];
    table(columns, figures, 1)
}

/// The distribution of the read latencies.
fn reads(measured: &Measured, figures: &[Figures]) -> String {
    let mut out = format!(
        "{:<NAME$}{:>8}{:>7}{:>6}{:>7}{:>7}",
        "variant", "calls", "mean", "gone", "median", "99 %"
    );
    for bound in BUCKETS {
        out += &match bound {
            ..1024 => format!("{bound:>5}"),
            _ => format!("{:>5}", format!("{}ms", bound / 1024)),
        };
    }
    out.push('\n');
    for (series, figures) in measured.series.iter().zip(figures) {
        let reads = &series.reads;
        out += &format!(
            "{:<NAME$}{:>8}{:>7}{:>6}{:>7}{:>7}",
            series.variant.name(),
            reads.calls,
            or_none(reads.mean_us(), 0),
            or_none(figures.read_gone, 0),
            or_none(reads.at(0.5).map(|us| us as f64), 0),
            or_none(reads.at(0.99).map(|us| us as f64), 0),
        );
        let mut below = 0;
        for (count, _) in reads.buckets.iter().zip(BUCKETS) {
            below += count;
            let share = (reads.calls > 0).then(|| 100.0 * below as f64 / reads.calls as f64);
            out += &format!("{:>5}", or_none(share, 0));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;
    use crate::files::Variant;
    use crate::files::figures::tests::measured;

    #[test]
    fn each_variant_has_its_rows_within_the_width_of_a_terminal() {
        let times: &[(Variant, &[f64])] = &[
            (Variant::Plain, &[123.0, 124.0]),
            (Variant::Epcm, &[101.0, 101.5]),
        ];
        let mut measured = measured("multi-glimpse", "network-ssd", times);
        measured.series[0].reads.calls = 1;
        let text = tables(std::slice::from_ref(&measured));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(WIDTH), "{widest:?}\n{text}");
        assert!(
            text.contains("multi-glimpse on network-ssd, 2 runs each"),
            "{text}"
        );
        assert_eq!(text.matches("\nepcm").count(), 2, "{text}");
        assert!(text.contains("without preload: it is not there"), "{text}");
        measured.series[0].reads.calls = 0;
        let text = tables(&[measured]);
        assert_eq!(text.matches("\nepcm").count(), 1, "{text}");
    }
}
