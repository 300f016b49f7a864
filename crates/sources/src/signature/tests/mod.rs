//! Patterns of reads for the tests of signatures.

mod benchmarks;
mod expansion;
mod notation;
mod recognition;

use foreread_plan::Extent;

use super::{Builder, Limits, Term, Trace};

/// The trace of these reads.
pub(crate) fn trace(reads: &[Extent]) -> Trace {
    let mut builder = Builder::new(Limits::OFFLINE);
    reads.iter().for_each(|read| builder.push(*read));
    builder.finish()
}

/// The trace, which must expand to the reads.
pub(crate) fn exact(reads: &[Extent]) -> Trace {
    let trace = trace(reads);
    let expanded: Vec<Extent> = trace.expand().collect();
    assert!(
        expanded == reads,
        "{trace:?}\nexpands to\n{expanded:?}\nand not to\n{reads:?}"
    );
    trace
}

/// Number of reads that a recogniser predicted as the next one.
pub(crate) fn predicted(reads: &[Extent]) -> usize {
    let mut builder = Builder::new(Limits::ONLINE);
    let mut right = 0;
    for read in reads {
        right += usize::from(builder.ahead().next() == Some(*read));
        builder.push(*read);
    }
    right
}

/// The first reads of the LU decomposition, by outer iterations.
pub(crate) fn lu(iterations: u64) -> Vec<Extent> {
    let mut reads = Vec::new();
    for outer in 0..iterations {
        reads.push(Extent::new(1_049_088 + outer * 524_544, 524_544));
        for inner in 0..=outer {
            let len = 518_272i64 - 4096 * inner as i64;
            reads.push(Extent::new(524_544 * (1 + inner), len as u64));
        }
        reads.push(Extent::new(0, 522_368));
    }
    reads
}

/// Reads at these offsets, of one length.
pub(crate) fn at(offsets: impl IntoIterator<Item = u64>, len: u64) -> Vec<Extent> {
    offsets
        .into_iter()
        .map(|offset| Extent::new(offset, len))
        .collect()
}

/// A series that looks random, and is the same each time.
pub(crate) fn scattered(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(move || random.u64(..1 << 31))
}

/// The only term, which must be a loop.
pub(crate) fn only(trace: &Trace) -> &super::Loop {
    match &trace.terms[..] {
        [Term::Loop(only)] => only,
        terms => panic!("{} terms: {terms:?}", terms.len()),
    }
}
