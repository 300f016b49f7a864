//! Patterns that are recognised, and how soon.

use foreread_plan::Extent;

use super::{at, exact, lu, only, predicted, scattered};
use crate::signature::{Affine, Builder, Limits, Recognition, Term};

/// The paper's Table 1.
const TABLE: &str = include_str!("lu_trace.csv");

#[test]
fn lu_decomposition_is_one_nest_of_three_dimensions() {
    let table: Vec<Extent> = (TABLE.lines().filter(|line| !line.starts_with('#')).skip(1))
        .map(|line| {
            let (offset, len) = line.split_once(',').unwrap();
            Extent::new(offset.parse().unwrap(), len.parse().unwrap())
        })
        .collect();
    assert_eq!(table, lu(5)[..table.len()]);
    for (reads, repetitions) in [(table, 5), (lu(125), 125)] {
        let trace = exact(&reads);
        let nest = only(&trace);
        assert_eq!(nest.count, Affine::constant(repetitions));
        let [Term::Read(first), Term::Loop(second), Term::Read(third)] = &nest.body[..] else {
            panic!("{nest:?}");
        };
        assert_eq!(
            (first.offset.base, first.offset.step(0)),
            (1_049_088, 524_544)
        );
        assert_eq!((second.count.base, second.count.step(0)), (1, 1));
        assert_eq!(third.offset, Affine::constant(0));
    }
    // Four iterations are learnt from.
    assert!(
        predicted(&lu(125)) > lu(125).len() - 26,
        "{}",
        predicted(&lu(125))
    );
}

#[test]
fn a_fixed_stride_is_predicted_from_the_third_read_on() {
    for stride in [4096i64, 8192, 65_536, 1 << 21, -4096, -8192, 0] {
        let start = 1i64 << 40;
        let offsets = (0..100).map(|n| (start + n * stride) as u64);
        let reads = at(offsets, 4096);
        assert_eq!(predicted(&reads), reads.len() - 3, "stride {stride}");
        only(&exact(&reads));
    }
}

#[test]
fn what_is_expected_goes_on_through_the_enclosing_loops() {
    // Planes of rows of reads.
    let offsets = (0..6u64).flat_map(|plane| {
        (0..7)
            .flat_map(move |row| (0..8).map(move |read| (plane << 30) + (row << 20) + (read << 13)))
    });
    let reads = at(offsets, 4096);
    let mut builder = Builder::new(Limits::ONLINE);
    for (number, read) in reads.iter().enumerate() {
        builder.push(*read);
        // From the third read of the second row of the second plane on, all is known.
        if number >= 7 * 8 + 8 + 2 {
            let ahead: Vec<Extent> = builder.ahead().take(reads.len() - number - 1).collect();
            assert_eq!(ahead, reads[number + 1..], "after read {number}");
            assert_eq!(builder.state(), Recognition::Stable);
        }
    }
    assert_eq!(only(&exact(&reads)).count, Affine::constant(6));
}

#[test]
fn the_usual_patterns_are_one_loop_each() {
    let mut patterns: Vec<(&str, Vec<Extent>, usize)> = Vec::new();
    let nested = (0..100u64).flat_map(|n| [n * 16_384, n * 16_384 + 4096]);
    patterns.push(("nested strided", at(nested, 4096), 6));
    let column = (0..1000u64).map(|row| row * 80_000 + 1_600);
    patterns.push(("column", at(column, 8), 3));
    for cursors in 2..=8u64 {
        let turns =
            (0..50u64).flat_map(|n| (0..cursors).map(move |c| ((c * c + c) << 30) + (n << 13)));
        patterns.push(("cursors in turn", at(turns, 4096), 3 * cursors as usize));
    }
    let run_and_gap = (0..5u64).flat_map(|run| (0..399).map(move |mb| (run * 498 + mb) << 20));
    patterns.push(("run and gap", at(run_and_gap, 1 << 20), 7));
    let tile = (0..60u64).flat_map(|y| (0..12u64).map(move |x| y * 1_000_000 + x * 10_240));
    patterns.push(("tile", at(tile, 1024), 7));
    let passes = (0..5u64).flat_map(|_| (0..40).map(|n| n << 12).chain([1 << 30]));
    patterns.push(("passes", at(passes, 4096), 7));
    let triangle = (0..50u64).flat_map(|row| (0..=row).map(move |x| (row << 20) + (x << 12)));
    patterns.push(("growing rows", at(triangle, 4096), 27));
    let triangle = (0..50u64).flat_map(|row| (row..50).map(move |x| (row << 20) + (x << 12)));
    patterns.push(("shrinking rows", at(triangle, 4096), 60));
    let growing = (0..50u64)
        .map(|n| Extent::new(n << 20, 512 + 1024 * n))
        .collect();
    patterns.push(("sizes that grow", growing, 3));
    for (name, reads, learnt) in patterns {
        let trace = exact(&reads);
        assert!(trace.terms.len() <= 2, "{name}: {trace:?}");
        let right = predicted(&reads);
        assert!(
            right + learnt >= reads.len(),
            "{name}: {right} of {}",
            reads.len()
        );
    }
}

#[test]
fn a_strange_read_interrupts_a_pattern_and_does_not_end_it() {
    let mut reads = at((0..200u64).map(|n| n << 20), 4096);
    for (number, strange) in scattered(7).take(10).enumerate() {
        reads.insert(20 * number + 10, Extent::new((strange << 12) + 512, 100));
    }
    // Each costs itself, and the reads it made wrong.
    assert!(
        predicted(&reads) >= reads.len() - 3 - 2 * 10,
        "{}",
        predicted(&reads)
    );
    exact(&reads);
}

#[test]
fn a_random_series_is_left_alone() {
    let reads = at(scattered(1).take(20_000).map(|n| n << 12), 4096);
    let mut builder = Builder::new(Limits::ONLINE);
    let mut expected = 0;
    for read in &reads {
        builder.push(*read);
        expected += builder.ahead().take(1).count();
    }
    assert_eq!(expected, 0);
    assert!(builder.is_random());
    assert_eq!(builder.state(), Recognition::Initial);
}

#[test]
fn states_are_the_papers() {
    let mut builder = Builder::new(Limits::ONLINE);
    let mut states = vec![builder.state()];
    for offset in [0, 8192, 16_384, 24_576, 999] {
        builder.push(Extent::new(offset, 4096));
        states.push(builder.state());
    }
    use Recognition::{Initial, Learning, Stable};
    assert_eq!(
        states,
        [Initial, Learning, Learning, Stable, Stable, Learning]
    );
    assert_eq!(builder.confirmed(), 0);
}
