//! Whatever is read, the trace expands to exactly that.

use std::sync::Arc;

use foreread_plan::Extent;
use proptest::prelude::*;

use super::{exact, trace};
use crate::signature::walk::between;
use crate::signature::{Affine, Builder, Limits, Loop, Read, Term, Trace, Walk};

/// A number with steps for up to `depth` enclosing loops.
fn affine(base: std::ops::Range<i64>, step: i64, depth: usize) -> impl Strategy<Value = Affine> {
    let steps = prop::collection::vec(-step..=step, 0..=depth);
    (base, steps).prop_map(|(base, mut steps)| {
        while steps.last() == Some(&0) {
            steps.pop();
        }
        Affine { base, steps }
    })
}

pub(super) fn term(depth: usize) -> BoxedStrategy<Term> {
    let numbers = (
        affine(0..1_000_000, 5000, depth),
        affine(100..5000, 100, depth),
    );
    let read = numbers.prop_map(|(offset, len)| Term::Read(Read { offset, len }));
    if depth == 3 {
        return read.boxed();
    }
    let body = prop::collection::vec(term(depth + 1), 1..4);
    let nest =
        (affine(1..7, 2, depth), body).prop_map(|(count, body)| Term::Loop(Loop { count, body }));
    prop_oneof![read, nest].boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_nest_of_any_shape_expands_exactly(terms in prop::collection::vec(term(0), 1..4)) {
        let reads: Vec<Extent> = Trace { terms }.expand().take(3000).collect();
        exact(&reads);
    }

    #[test]
    fn a_nest_with_noise_expands_exactly(
        terms in prop::collection::vec(term(0), 1..3),
        noise in prop::collection::vec((any::<prop::sample::Index>(), 0..64u64, 0..3u64), 0..20),
    ) {
        let mut reads: Vec<Extent> = Trace { terms }.expand().take(1000).collect();
        for (place, offset, len) in noise {
            reads.insert(place.index(reads.len() + 1), Extent::new(offset * 512, len * 512));
        }
        exact(&reads);
    }

    #[test]
    fn few_numbers_in_any_order_expand_exactly(numbers in prop::collection::vec((0..6u64, 1..3u64), 0..300)) {
        let reads: Vec<Extent> = numbers.into_iter().map(|(offset, len)| Extent::new(offset, len)).collect();
        exact(&reads);
        // The end of the trace when memory is short.
        let mut builder = Builder::new(Limits { group: 4, window: 16, keep: 0 });
        reads.iter().for_each(|read| builder.push(*read));
        let kept: Vec<Extent> = builder.finish().expand().collect();
        prop_assert!(reads.ends_with(&kept));
    }

    #[test]
    fn any_numbers_expand_exactly(numbers in prop::collection::vec(any::<(u64, u64)>(), 0..50)) {
        let reads: Vec<Extent> = numbers.into_iter().map(|(offset, len)| Extent::new(offset, len)).collect();
        exact(&reads);
    }
}

#[test]
fn numbers_at_the_ends_of_their_range_expand_exactly() {
    let ends = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1];
    let all: Vec<Extent> = (ends.iter().flat_map(|a| ends.map(|b| Extent::new(*a, b)))).collect();
    exact(&all);
    let stride = |n: u64| Extent::new(n.wrapping_mul(1 << 62), n);
    exact(&(0..20).map(stride).collect::<Vec<_>>());
}

#[test]
fn a_trace_without_end_is_walked_without_end_but_an_empty_one_ends() {
    let empty = Loop {
        count: Affine::constant(i64::MAX),
        body: vec![],
    };
    let nested = Loop {
        count: Affine::constant(i64::MAX),
        body: vec![Term::Loop(empty)],
    };
    let trace = Trace {
        terms: vec![Term::Loop(nested)],
    };
    assert_eq!(trace.expand().count(), 0);
}

#[test]
fn nothing_is_a_trace() {
    assert_eq!(trace(&[]), Trace::default());
}

#[test]
fn rows_that_shrink_to_nothing_and_come_again_expand_exactly() {
    // If rows shrink to nothing, any number of empty ones may follow: they are not counted, and hide nothing.
    let row = |row: i64| (0..(5 - row).max(0) as u64).map(|read| Extent::new(1000 - read, 101));
    let round =
        |round: i64| std::iter::once(Extent::new(0, 100)).chain((0..1 + 2 * round).flat_map(row));
    exact(&(0..4).flat_map(round).collect::<Vec<_>>());
    // The nest itself, which its walk leaves before the last read.
    let read = Term::Read(Read {
        offset: Affine::constant(7),
        len: Affine::constant(1),
    });
    let rows = Loop {
        count: Affine {
            base: 2,
            steps: vec![-1],
        },
        body: vec![read.clone()],
    };
    let many = Loop {
        count: Affine::constant(1 << 40),
        body: vec![Term::Loop(rows)],
    };
    let nest = Loop {
        count: Affine::constant(9),
        body: vec![Term::Loop(many), read],
    };
    let mut walk = Walk::endless(Arc::new(nest), 0);
    assert_eq!(walk.by_ref().count(), 3);
    let mut passed = Vec::new();
    between(walk.nest(), &[], walk.frames(), &mut passed);
    assert_eq!(Trace { terms: passed }.expand().count(), 3);
}
