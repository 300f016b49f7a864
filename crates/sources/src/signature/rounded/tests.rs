use proptest::prelude::*;

use super::*;

/// The reads of a rounded loop: iterations of terms that begin at `starts`.
fn rounded(block: i64, origin: i64, starts: &[i64], stride: i64, count: i64) -> Vec<Extent> {
    let reads = (0..count).flat_map(|index| {
        starts.iter().map(move |start| {
            let offset = start + stride * index;
            let offset = (offset - origin).div_euclid(block) * block + origin;
            Extent::new(offset as u64, block as u64)
        })
    });
    reads.collect()
}

/// Number of reads that were predicted, possible, and impossible in the followed loop.
fn follow(rounding: &mut Rounding, reads: &[Extent]) -> [usize; 3] {
    let mut counts = [0; 3];
    for &read in reads {
        if let Some(fit) = rounding.read(read, false) {
            counts[fit as usize] += 1;
        }
    }
    counts
}

#[test]
fn hyperslabs_through_a_buffer_are_predicted() {
    let starts: Vec<_> = (0..5).map(|row| 144_720 + row * 57_600).collect();
    let reads = rounded(8192, 0, &starts, 518_400, 1000);
    let [predicted, possible, strange] = follow(&mut Rounding::default(), &reads);
    println!("{predicted} predicted, {possible} possible, {strange} strange");
    // A row's end, before the rows are seen to be one loop's iterations.
    assert!(strange <= 4, "{strange}");
    assert!(predicted > 4900, "{predicted}");
    assert!(possible < 40, "{possible}");
}

#[test]
fn the_roundest_number_is_found() {
    assert_eq!(roundest(57_500, 57_700), 57_600);
    assert_eq!(roundest(-57_700, -57_500), -57_600);
    assert_eq!(roundest(7, 7), 7);
    assert_eq!(roundest(-1, 1), 0);
    assert_eq!(roundest(1, i64::MAX), 1 << 62);
}

proptest! {
    /// The found number is in its interval, and none there is divisible by a larger power of two.
    #[test]
    fn the_roundest_number_is_as_round_as_any(least in -5000_i64..5000, width in 0_i64..300) {
        let found = roundest(least, least + width);
        prop_assert!((least..=least + width).contains(&found));
        let best = (least..=least + width).map(i64::trailing_zeros).max();
        prop_assert_eq!(Some(found.trailing_zeros()), best);
    }

    /// For any block, stride and starts: the true stride is never excluded, and most reads are predicted. A read is impossible only in a
    /// part of the loop that was mistaken for the whole: in a row.
    #[test]
    fn rounded_loops_are_followed(
        block in prop_oneof![Just(512_i64), Just(4096), Just(8192), 512_i64..100_000],
        origin in 0_i64..512,
        blocks in 1_i64..200,
        part in 0.02_f64..0.98,
        // By chance, or a row.
        starts in prop_oneof![
            prop::collection::vec(0_i64..100_000_000, 1..16),
            (1_i64..16, 0_i64..1000, 0_i64..1_000_000).prop_map(|(size, start, step)| {
                (0..size).map(|at| start + step * at).collect()
            }),
        ],
        backward in any::<bool>(),
    ) {
        let stride = blocks * block + (part * block as f64) as i64;
        let count = 400;
        let stride = if backward { -stride } else { stride };
        // A row whose successor begins as far from its end as its places are apart, to within two blocks, fits a loop of one term: the
        // stride found then is no part of the true one.
        if let [first, second, .., last] | [first, second @ last] = starts[..] {
            prop_assume!((stride - (last - first) - (second - first)).abs() >= 2 * block);
        }
        let base = if backward { -stride * count } else { 0 } + block;
        let starts: Vec<_> = starts.iter().map(|start| base + start).collect();
        let reads = rounded(block, origin, &starts, stride, count);
        let mut rounding = Rounding::default();
        let [predicted, possible, strange] = follow(&mut rounding, &reads);
        prop_assert!(strange * 25 <= reads.len(), "{strange} of {}", reads.len());
        // One of fifty strides differs at worst; until then a loop is exact.
        let looked_for = reads.len() - 60 * starts.len();
        prop_assert!(predicted + possible >= looked_for, "{predicted} + {possible} of {}", reads.len());
        prop_assert!(possible * 10 <= predicted, "{possible} of {predicted}");
        let followed = rounding.followed().expect("a loop is followed");
        // Two places of an iteration may look like one, and be followed as half of the loop.
        let iterations = followed.terms.len() as i64;
        let whole = stride * iterations / starts.len() as i64;
        prop_assert!((followed.least..=followed.most).contains(&whole), "{stride} {followed:?}");
        for term in &followed.terms {
            prop_assert!(term.lows.len() <= BOUNDS && term.highs.len() <= BOUNDS);
        }
    }

    /// Reads in no order never bring the recogniser down, and are hardly ever predicted.
    #[test]
    fn reads_in_no_order_are_not_predicted(
        reads in prop::collection::vec((0_u64..1 << 20, 1_u64..4), 0..2000),
    ) {
        let mut rounding = Rounding::default();
        let reads: Vec<_> = reads.iter().map(|(at, len)| Extent::new(at * 4096, len * 4096)).collect();
        let [predicted, ..] = follow(&mut rounding, &reads);
        prop_assert!(predicted < 3, "{predicted}");
    }

    /// The greatest offsets do no harm.
    #[test]
    fn any_extent_is_borne(reads in prop::collection::vec((0..=i64::MAX as u64, any::<bool>()), 0..300)) {
        let mut rounding = Rounding::default();
        let mut last = 0;
        for (offset, near) in reads {
            let offset = if near { (last + 65_536) & !511 } else { offset } & i64::MAX as u64;
            last = offset;
            rounding.read(Extent::new(offset, 1), false);
            if let Some(followed) = rounding.followed() {
                prop_assert!(followed.ahead().take(100).all(|read| read.end() <= i64::MAX as u64));
            }
        }
    }
}
