//! The table of the group `mpi`: a row for each case and disk.

use crate::mpi::Measured;
use crate::stats::Spread;

/// The table, ready to print.
pub(super) fn tables(all: &[Measured]) -> String {
    let mut out = String::from(
        "parallel programs, each rank under `foreread run`; reads of the slowest rank\n\
         plain: MB/s; first, second, paper: bandwidth over plain, %; ±: half the range\n\
         of 2nd: first's saving of second's, %; masked: of what memory would spare, %\n\n",
    );
    let row = |cells: [String; 8]| {
        let [case, disk, plain, first, second, within, of_second, masked] = cells;
        format!(
            "{case:<24}{disk:<13}{plain:>6}{first:>7}{second:>7}{within:>6}{of_second:>8}{masked:>8}"
        )
    };
    let (gains, rest): (Vec<_>, Vec<_>) = all.iter().partition(|one| !one.no_harm);
    let title = [
        "case", "disk", "plain", "first", "second", "±", "of 2nd", "masked",
    ];
    if !gains.is_empty() {
        // The paper's average stands in the line of each of its cases.
        out += &format!("{}\n", row(title.map(Into::into)));
        for one in &gains {
            let second = one.gain_pct(&one.second);
            out += &row([
                one.case.clone(),
                one.disk.clone(),
                figure(one.plain_mb_s(), 1),
                figure(one.gain_pct(&one.first).map(|gain| gain.median), 0),
                figure(second.map(|gain| gain.median), 0),
                figure(second.map(half), 0),
                figure(one.first_of_second_pct().map(|share| share.median), 0),
                figure(one.masked_pct(), 0),
            ]);
            out += &match one.paper_pct() {
                Some(paper) => format!(
                    "\n{:<24}{:<13}{:>6}{:>7}{paper:>7.0}\n",
                    "", "(the paper)", "", ""
                ),
                None => "\n".into(),
            };
        }
    }
    if !rest.is_empty() {
        out +=
            "\nnothing to gain: time in the calls over plain, pair by pair, and half its range\n\n";
        let row = |cells: [String; 7]| {
            let [case, disk, plain, first, within, second, more] = cells;
            format!("{case:<27}{disk:<13}{plain:>8}{first:>8}{within:>7}{second:>8}{more:>7}\n")
        };
        out += &row(["case", "disk", "plain, s", "first", "±", "second", "±"].map(Into::into));
        for one in &rest {
            let plain = Spread::of(one.plain.iter().copied());
            let (first, second) = (one.ratio(&one.first), one.ratio(&one.second));
            out += &row([
                one.case.clone(),
                one.disk.clone(),
                figure(plain.map(|plain| plain.median), 4),
                figure(first.map(|ratio| ratio.median), 3),
                figure(first.map(half), 3),
                figure(second.map(|ratio| ratio.median), 3),
                figure(second.map(half), 3),
            ]);
        }
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

fn half(spread: Spread) -> f64 {
    (spread.max - spread.min) / 2.0
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
            ["striped-2008", "100.0", "25", "100", "0", "40", "56"]
        );
        assert!(
            text.contains("(the paper)") && text.contains(" 14\n"),
            "{text}"
        );
        let row = text
            .lines()
            .find(|line| line.starts_with("flash-16"))
            .unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words[2..], ["1.0000", "1.010", "0.000", "0.990", "0.000"]);
    }
}
