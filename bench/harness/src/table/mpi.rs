//! The table of the group `mpi`: a row per case and disk.

use super::{Column, column, table};
use crate::mpi::Measured;
use crate::stats::Spread;

/// The table, ready to print.
pub(super) fn tables(all: &[Measured]) -> String {
    let mut out = String::from(
        "parallel programs, each rank under `foreread run`; reads of the slowest rank\n\
         plain: MB/s; first, second, paper: times plain's bandwidth; ±: half the range\n\
         of 2nd: first's saving of second's, %; masked: of what memory would spare, %\n\n",
    );
    let (gains, rest): (Vec<&Measured>, Vec<_>) = all.iter().partition(|one| !one.no_harm);
    if !gains.is_empty() {
        let columns: &[Column<Measured>] = &[
            column("case", 22, |one| one.case.clone()),
            column("disk", 12, |one| one.disk.clone()),
            column("plain", 6, |one| figure(one.plain_mb_s(), 1)),
            column("first", 6, |one| {
                multiple(one.faster(&one.first).map(|one| one.median))
            }),
            column("second", 7, |one| {
                multiple(one.faster(&one.second).map(|one| one.median))
            }),
            column("±", 5, |one| {
                multiple(one.faster(&one.second).map(half_range))
            }),
            column("paper", 6, |one| multiple(one.paper())),
            column("of 2nd", 7, |one| median(one.first_of_second_pct(), 0)),
            column("masked", 7, |one| figure(one.masked_pct(), 0)),
        ];
        out += &table(columns, gains, 2);
    }
    if !rest.is_empty() {
        out +=
            "\nnothing to gain: time in the calls over plain, pair by pair, and half its range\n\n";
        let columns: &[Column<Measured>] = &[
            column("case", 26, |one| one.case.clone()),
            column("disk", 12, |one| one.disk.clone()),
            column("plain, s", 8, |one| {
                median(Spread::of(one.plain.iter().copied()), 4)
            }),
            column("first", 8, |one| median(one.ratio(&one.first), 3)),
            column("±", 7, |one| half(one.ratio(&one.first), 3)),
            column("second", 8, |one| median(one.ratio(&one.second), 3)),
            column("±", 7, |one| half(one.ratio(&one.second), 3)),
        ];
        out += &table(columns, rest, 2);
    }
    for one in all {
        for note in &one.notes {
            out += &format!("\nnote: {} on {}: {note}\n", one.case, one.disk);
        }
        if one.discarded > 0 {
            out += &format!(
                "\nnote: {} on {}: starts that were not cold, and not counted: {}\n",
                one.case, one.disk, one.discarded
            );
        }
    }
    out
}

fn half(spread: Option<Spread>, digits: usize) -> String {
    figure(spread.map(half_range), digits)
}

fn half_range(spread: Spread) -> f64 {
    (spread.max - spread.min) / 2.0
}

/// Three digits that count.
fn multiple(of: Option<f64>) -> String {
    let digits = match of {
        Some(large) if large >= 99.95 => 0,
        Some(medium) if medium >= 9.995 => 1,
        _ => 2,
    };
    figure(of, digits)
}

fn median(spread: Option<Spread>, digits: usize) -> String {
    figure(spread.map(|one| one.median), digits)
}

fn figure(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("-".into(), |figure| format!("{figure:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;
    use crate::mpi::figures::tests::measured;

    #[test]
    fn each_case_has_a_row_within_the_width_of_a_terminal_with_the_papers_figure() {
        let gain = measured(
            "simple",
            "striped-2008",
            16,
            [&[1.0], &[0.8], &[0.5], &[0.1]],
        );
        let harm = measured("flash", "striped-2008", 16, [&[1.0], &[1.01], &[0.99], &[]]);
        let text = tables(&[gain, harm]);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(WIDTH), "{widest:?}\n{text}");
        let row = text
            .lines()
            .find(|line| line.starts_with("simple-16"))
            .unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(
            words[1..],
            [
                "striped-2008",
                "100.0",
                "1.25",
                "2.00",
                "0.00",
                "1.14",
                "40",
                "56"
            ]
        );
        let row = text
            .lines()
            .find(|line| line.starts_with("flash-16"))
            .unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words[2..], ["1.0000", "1.010", "0.000", "0.990", "0.000"]);
    }
}
