//! The targets of the group `mpi`.

use super::line;
use crate::mpi::Measured;
use crate::stats::Spread;

/// A first run saves at least this percentage of the time that a second one saves.
const FIRST: f64 = 85.0;
/// Where ranks compute between reads, at least this percentage of the waiting is masked.
const MASKED: f64 = 90.0;
/// The largest difference from plain if foreread cannot gain anything, and the largest one if runs are recorded as well.
const HARM: f64 = 0.01;
const TRACING: f64 = 0.02;

/// The targets of the ranks: each pattern on each disk as the average over all strides, ranks and MPIs, as in the paper.
pub fn render(all: &[Measured]) -> String {
    let mut out = String::new();
    let mut groups: Vec<(&str, &str)> = all
        .iter()
        .map(|one| (one.pattern, one.disk.as_str()))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    for (pattern, disk) in groups {
        let of: Vec<&Measured> = all
            .iter()
            .filter(|one| one.pattern == pattern && one.disk == disk)
            .collect();
        let mean = |figure: &dyn Fn(&Measured) -> Option<f64>| {
            let figures: Vec<f64> = of.iter().filter_map(|one| figure(one)).collect();
            (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
        };
        let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
        let paper = mean(&|one| one.paper());
        if let Some((gain, paper)) = mean(&|one| median(one.faster(&one.second))).zip(paper) {
            let wanted = format!("the paper's {paper:.2}x");
            out += &line(
                pattern,
                disk,
                &wanted,
                &format!("{gain:.2}x"),
                gain >= paper,
            );
            if let Some(share) = mean(&|one| median(one.first_of_second_pct())) {
                let wanted = format!("first {FIRST} % of second");
                out += &line(
                    pattern,
                    disk,
                    &wanted,
                    &format!("{share:.0} %"),
                    share >= FIRST,
                );
            }
        }
        if let Some(masked) = mean(&|one| one.masked_pct()).filter(|_| pattern == "compute") {
            let wanted = format!("masked {MASKED} %");
            out += &line(
                pattern,
                disk,
                &wanted,
                &format!("{masked:.0} %"),
                masked >= MASKED,
            );
        }
        let recorded = of.iter().all(|one| one.hot_start);
        let allowed = if recorded { TRACING } else { HARM };
        for (name, runs) in [
            ("first", (|one| &one.first) as fn(&Measured) -> &Vec<f64>),
            ("second", |one| &one.second),
        ] {
            let harmless = |one: &Measured| median(one.ratio(runs(one))).filter(|_| one.no_harm);
            if let Some(ratio) = mean(&harmless) {
                let wanted = format!("{name} within {:.0} %", allowed * 100.0);
                out += &line(
                    pattern,
                    disk,
                    &wanted,
                    &format!("{ratio:.3}"),
                    ratio <= 1.0 + allowed,
                );
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::figures::tests::measured;

    #[test]
    fn patterns_are_judged_by_the_average_of_their_cases() {
        let all = [
            measured("simple", "nfs", 2, [&[1.0], &[0.8], &[0.8], &[0.1]]),
            measured("simple", "nfs", 4, [&[1.2], &[0.9], &[0.8], &[0.1]]),
            measured("simple", "striped", 4, [&[1.0], &[1.0], &[1.0], &[0.1]]),
            measured("flash", "nfs", 4, [&[1.0], &[1.02], &[1.005], &[]]),
            measured("compute", "nfs", 2, [&[1.0], &[0.2], &[0.1], &[0.1]]),
        ];
        let text = render(&all);
        let found = |start: &str, wanted: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(start) && line.contains(wanted));
            line.unwrap_or_else(|| panic!("{start} {wanted}: {text}"))
                .to_owned()
        };
        assert!(
            found("simple       nfs", "1.23x").ends_with("met"),
            "{text}"
        );
        assert!(
            found("simple       nfs", "first 85").ends_with("met"),
            "{text}"
        );
        assert!(
            found("simple       striped", "1.14x").ends_with("MISSED"),
            "{text}"
        );
        assert!(
            found("flash", "first within 1 %").ends_with("MISSED"),
            "{text}"
        );
        assert!(
            found("flash", "second within 1 %").ends_with("met"),
            "{text}"
        );
        assert!(found("compute", "masked 90 %").ends_with("met"), "{text}");
    }
}
