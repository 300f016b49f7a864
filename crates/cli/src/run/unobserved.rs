//! Which of the programs that a run started were not observed, and why.

use foreread_ring::Unobserved;

use crate::words::counted;

/// Which of the programs it started were not observed, and why, in one sentence.
pub(super) fn told(unobserved: Unobserved) -> Option<String> {
    let Unobserved {
        cleared,
        apart,
        other,
    } = unobserved;
    let count = cleared.saturating_add(apart).saturating_add(other);
    let were = counted(count.into(), "process was", "processes were");
    let why: Vec<&str> = [
        (other, "statically linked"),
        (other, "privileged"),
        (apart, "in another PID namespace"),
        (apart, "without /proc"),
        (cleared, "given an environment without foreread's variables"),
    ]
    .into_iter()
    .filter_map(|(count, why)| (count > 0).then_some(why))
    .collect();
    let why = match why[..] {
        [] => return None,
        [one] => one.to_owned(),
        [one, two] => format!("{one} or {two}"),
        [ref all @ .., last] => format!("{}, or {last}", all.join(", ")),
    };
    Some(format!("{were} not observed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_processes_were_not_observed_is_told_as_far_as_it_is_known() {
        let said_of = |cleared, apart, other| {
            told(Unobserved {
                cleared,
                apart,
                other,
            })
        };
        assert_eq!(said_of(0, 0, 0), None);
        for (counts, said) in [
            (
                (0, 0, 1),
                "1 process was not observed: statically linked or privileged",
            ),
            (
                (0, 2, 0),
                "2 processes were not observed: in another PID namespace or without /proc",
            ),
            (
                (1, 0, 1),
                "2 processes were not observed: statically linked, privileged, \
                 or given an environment without foreread's variables",
            ),
        ] {
            assert_eq!(said_of(counts.0, counts.1, counts.2).as_deref(), Some(said));
        }
    }
}
