//! The daemon's targets in the group `files`.

use super::line;
use crate::disk::DiskKind;
use crate::files::{Measured, Variant, figures};

/// Percent of plain's I/O latency that EPCM must remove at least on a rotating disk, with the percentage that the paper reports.
const PREDICTED: [(&str, f64, u32); 5] = [
    ("andrew", 90.0, 90),
    ("ldkernel", 80.0, 34),
    ("glimpse", 80.0, 31),
    ("patch", 80.0, 84),
    ("ssh", 80.0, 84),
];
/// A model learnt while other programs ran must remove nearly as much as a model learnt alone.
const SEVERAL: [(&str, &str); 2] = [("multi-glimpse", "glimpse"), ("multi-ld", "ldkernel")];
const NEARLY: f64 = 0.9;

/// The daemon's targets in the group files.
pub fn render(all: &[Measured]) -> String {
    let mut out = String::new();
    let gone = |case: &str, disk: &str| {
        let measured = all
            .iter()
            .find(|one| one.case == case && one.disk == disk)?;
        let figures = figures::of(measured);
        let epcm = figures.into_iter().find(|one| one.variant == Variant::Epcm);
        epcm?.io_gone
    };
    let hdd = DiskKind::Hdd7200.name();
    for (case, least, paper) in PREDICTED {
        if let Some(gone) = gone(case, hdd) {
            let wanted = format!("I/O -{least} % (paper {paper})");
            out += &line(case, hdd, &wanted, &format!("{gone:.0} %"), gone >= least);
        }
    }
    for measured in all {
        let (case, disk) = (&measured.case, &measured.disk);
        for (several, alone) in SEVERAL {
            if let Some((with, single)) = gone(case, disk).zip(gone(alone, disk))
                && case == several
            {
                let found = format!("{with:.0} % of {single:.0} %");
                let met = with >= NEARLY * single;
                out += &line(case, disk, "nearly as much as alone", &found, met);
            }
        }
        let figures = figures::of(measured);
        let plain = figures.iter().find(|one| one.variant == Variant::Plain);
        for one in &figures {
            let daemon = [Variant::Last, Variant::Pcm, Variant::Epcm].contains(&one.variant);
            let Some(plain) = plain.filter(|_| daemon) else {
                continue;
            };
            // Slower counts only if the two confidence intervals do not overlap.
            let doubt = plain.elapsed.within.unwrap_or(0.0) + one.elapsed.within.unwrap_or(0.0);
            let added = one.elapsed.mean - plain.elapsed.mean;
            let wanted = format!("{} no slower than plain", one.variant.name());
            out += &line(
                case,
                disk,
                &wanted,
                &format!("{added:+.3} s"),
                added <= doubt,
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::figures::tests::measured;

    #[test]
    fn epcm_is_judged_on_the_disk_that_turns_and_against_plain_on_each() {
        let slow: &[(Variant, &[f64])] = &[
            (Variant::Plain, &[11.0, 11.0]),
            (Variant::Epcm, &[1.5, 1.5]),
            (Variant::Last, &[12.0, 12.0]),
        ];
        let less: &[(Variant, &[f64])] = &[
            (Variant::Plain, &[11.0, 11.0]),
            (Variant::Epcm, &[4.0, 4.0]),
        ];
        let said = render(&[
            measured("ldkernel", "hdd-7200", slow),
            measured("multi-ld", "hdd-7200", less),
        ]);
        let verdict = |words: [&str; 2]| {
            let line = said
                .lines()
                .find(|line| words.iter().all(|word| line.contains(word)));
            line.and_then(|line| line.split_whitespace().last())
        };
        assert_eq!(verdict(["ldkernel", "I/O -80 %"]), Some("met"), "{said}");
        assert_eq!(
            verdict(["multi-ld", "nearly as much"]),
            Some("MISSED"),
            "{said}"
        );
        assert_eq!(
            verdict(["ldkernel", "last no slower"]),
            Some("MISSED"),
            "{said}"
        );
        assert_eq!(
            verdict(["multi-ld", "epcm no slower"]),
            Some("met"),
            "{said}"
        );
    }
}
