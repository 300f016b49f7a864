//! The clocks: one that runs evenly while the machine is awake, and the calendar's, for people.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use foreread_observe::now;

/// Seconds since 1970.
pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_observe::{File, Node, What};
    use foreread_plan::Extent;
    use foreread_sources::files::{Epcm, Levels, Symbol, Symbols};
    use proptest::prelude::*;

    use crate::files::Files;
    use crate::mind::Mind;
    use crate::observer::made::{began, event, opened};
    use crate::pressure::Pressure;
    use crate::upkeep::{Means, Sums, Upkeep};

    fn file(inode: u64) -> File {
        File {
            path: format!("/files/{inode}").into(),
            node: Some(Node {
                device: 1,
                inode,
                generation: 0,
                size: 300_000,
            }),
        }
    }

    /// Times of a clock that stands still, leaps by days as after a suspend, is set back, and reaches its end.
    fn times() -> impl Strategy<Value = Vec<u64>> {
        let leap = prop_oneof![
            Just(0),
            0..1_000_000_i64,
            1_000_000_000..1_000_000_000_000_i64,
            -10_000_000_000..0_i64,
            Just(864_000_000_000_000_i64),
            Just(i64::MAX),
        ];
        proptest::collection::vec(leap, 1..60).prop_map(|leaps| {
            let mut now = 1_000_000_000_u64;
            let next = |leap: i64| {
                now = now.saturating_add_signed(leap);
                now
            };
            leaps.into_iter().map(next).collect()
        })
    }

    proptest! {
        #[test]
        fn whatever_leaps_the_clock_makes_differences_are_taken_and_all_goes_on(times in times()) {
            let one = || Epcm::new(Epcm::shape(16, 100, 10), 4).looking_ahead();
            let model = Box::new(Levels::new(one(), one()));
            let mut mind = Mind::new(model, Symbols::new(100), Files::new(100), 0.55);
            let mut upkeep = Upkeep::new(times[0], 0);
            let mut pressure = Pressure::at("/nowhere".into());
            let mut out = Vec::new();
            let (pid, uid, parent) = (7, 0, 1);
            let longest = times.iter().max().copied().unwrap_or(0);
            for (number, &at) in times.iter().enumerate() {
                let inode = number as u64 % 5 + 1;
                // However long the pause, no more is saved up than the most: 0.7 s of work are never followed by `All`.
                upkeep.settle(at, Sums::default());
                let sums = Sums { used: 700_000_000, ..Sums::default() };
                prop_assert!(upkeep.settle(at, sums) < Means::All);
                upkeep = Upkeep::new(at, 0);
                pressure.fetched(1, 8 << 20, false, at);
                pressure.reason(Some(1), at);
                let program = file(99);
                mind.happened(event((pid, uid), at, began(parent, program)), Means::All, &mut out);
                mind.happened(event((pid, uid), at, opened(file(inode))), Means::All, &mut out);
                let (device, extent) = (1, Extent::new(0, 4096));
                mind.happened(event((pid, 0), at, What::Fetched { device, inode, extent }), Means::All, &mut out);
                mind.files.done(at);
                mind.files.due(Symbol(2), at);
                out.clear();
            }
            // Everything continues: due files are requested again when the clock is back where it was.
            mind.files.let_go(Symbol(2));
            prop_assert!(mind.files.get(Symbol(2)).is_none() || mind.files.due(Symbol(2), longest).is_some());
            prop_assert!(mind.accounts.all.leads.told().median <= longest);
        }
    }

    #[test]
    fn the_clock_goes_forward() {
        let before = now();
        assert!(before > 0 && now() >= before && seconds() > 1_700_000_000);
    }
}
