//! Traces of the paper's benchmarks give the paper's signatures (section VI).

use foreread_plan::Extent;

use super::{at, exact, lu, scattered};
use crate::signature::{Operation, PatternSignature, Signature, Temporal, Term, Trace, parse};

/// The trace signatures of a trace, and its pattern signature.
fn signatures(operation: Operation, trace: Trace) -> (Vec<Signature>, String) {
    let of = |term| Signature {
        operation,
        term,
        period: None,
    };
    let all: Vec<Signature> = trace.terms.into_iter().map(of).collect();
    let pattern = PatternSignature::of(&all, Temporal::Random);
    (all, pattern.to_string())
}

/// Reads give this one trace signature, as the paper prints it, and this pattern signature.
fn gives(reads: &[Extent], paper: &str, pattern: &str) {
    let (found, kind) = signatures(Operation::Read, exact(reads));
    assert_eq!(Ok(found), parse(paper, &[]));
    assert_eq!(kind, pattern);
}

#[test]
fn lu_decomposition() {
    let (found, kind) = signatures(Operation::Read, exact(&lu(125)));
    assert_eq!(
        (found.len(), found[0].dimension(), found[0].repetitions()),
        (1, 3, 125)
    );
    assert_eq!(
        kind,
        "{READ, <Non-contiguous, 3d strided>, <repetitive>, <variable size, large>, <random>}"
    );
}

#[test]
fn ior() {
    gives(
        &at((0..4096).map(|n| n * 32_768), 32_768),
        "{READ, 0, 1, ([{0, 32768, 1}, 32768, 4096]), 1}",
        "{READ, <Contiguous>, <single occurrence>, <fixed size, medium>, <random>}",
    );
}

#[test]
fn mpi_tile_io() {
    gives(
        &at([307_200], 1_024_000),
        "{READ, 307200, 1, ([0, 1024000, 0]), 1}",
        "{READ, <No spatial pattern>, <single occurrence>, <fixed size, large>, <no temporal pattern>}",
    );
}

#[test]
fn btio() {
    for rank in 0..16 {
        gives(
            &at(
                (0..40).map(|n| rank * 5_308_416 + n * 42_450_944),
                5_308_416,
            ),
            &format!(
                "{{READ, {}, 1, ([42450944, 5308416, 40]), 1}}",
                rank * 5_308_416
            ),
            "{READ, <Non-contiguous, fixed strided>, <single occurrence>, <fixed size, large>, <random>}",
        );
    }
}

/// Three patterns one after the other, with random accesses between them.
#[test]
fn flash() {
    let patterns = [
        (54_680, 1_323_008, 327_680, 25),
        (40_000_000, 661_504, 163_840, 4),
        (50_000_000, 941_868, 233_280, 4),
    ];
    let mut strange = scattered(11).map(|n| Extent::new(n % 100_000_000, 96 + n % 1000));
    let mut writes: Vec<Extent> = strange.by_ref().take(5).collect();
    for (start, stride, len, count) in patterns {
        writes.extend(at((0..count).map(|n| start + n * stride), len));
        writes.extend(strange.by_ref().take(4));
    }
    assert_eq!(writes.len(), 50);
    let (found, _) = signatures(Operation::Write, exact(&writes));
    let loops: Vec<Signature> = found
        .into_iter()
        .filter(|one| matches!(one.term, Term::Loop(_)))
        .collect();
    let paper = "{WRITE, 54680, 1, ([1323008, 327680, 25]), 1}, {WRITE, 40000000, 1, ([661504, 163840, 4]), 1}, \
                 {WRITE, 50000000, 1, ([941868, 233280, 4]), 1}";
    assert_eq!(Ok(&loops), parse(paper, &[]).as_ref());
    for one in loops {
        let kind = PatternSignature::of(&[one], Temporal::Random).to_string();
        let paper = "{WRITE, <Non-contiguous, fixed strided>, <single occurrence>, <fixed size, large>, <random>}";
        assert_eq!(kind, paper);
    }
}

#[test]
fn pio_bench_simple_strided() {
    gives(
        &at((0..100).map(|n| n * 8192), 4096),
        "{READ, 0, 1, ([8192, 4096, 100]), 1}",
        "{READ, <Non-contiguous, fixed strided>, <single occurrence>, <fixed size, small>, <random>}",
    );
}

#[test]
fn pio_bench_nested_strided() {
    let nested = |n: u64| {
        [
            Extent::new(n * 16_384, 4096),
            Extent::new(n * 16_384 + 4096, 2048),
        ]
    };
    gives(
        &(0..100).flat_map(nested).collect::<Vec<_>>(),
        "{READ, 0, 2, ([4096, 4096, 1], [12288, 2048, 1], 100), 1}",
        "{READ, <Non-contiguous, 2d strided>, <single occurrence>, <variable size, small>, <random>}",
    );
}

#[test]
fn pio_bench_segmented() {
    gives(
        &at((0..100).map(|n| 409_600 + n * 4096), 4096),
        "{READ, 409600, 1, ([4096, 4096, 100]), 1}",
        "{READ, <Contiguous>, <single occurrence>, <fixed size, small>, <random>}",
    );
}

#[test]
fn other_kinds_have_their_names() {
    let kind = |reads: Vec<Extent>| signatures(Operation::Read, exact(&reads)).1;
    let backward = at((0..100).rev().map(|n| n * 4096), 4096);
    assert!(kind(backward.clone()).contains("<Non-contiguous, negative strided>"));
    let random = at(scattered(5).take(300), 100_000);
    assert!(
        kind(random).contains("<Non-contiguous, random>, <single occurrence>, <fixed size, large>")
    );
    let forward = at((0..100).map(|n| (1 << 40) + n * 65_536), 4096);
    assert!(kind([backward, forward].concat()).contains("<Combination>"));
    let tile = at(
        (0..50).flat_map(|y| (0..9).map(move |x| y * 1_000_000 + x * 8192)),
        512,
    );
    assert!(kind(tile).contains("<Non-contiguous, 2d strided>, <repetitive>"));
    assert!(kind(lu(5)).contains("<variable size, large>"));
}

#[test]
fn contiguous_accesses_that_are_no_loop_are_contiguous() {
    // Each begins where the previous one ended, and all lengths differ.
    let lengths = [4096, 100, 70_000, 832, 5, 9000, 12];
    let mut at = 0;
    let reads: Vec<Extent> = lengths
        .iter()
        .map(|len| {
            at += len;
            Extent::new(at - len, *len)
        })
        .collect();
    let (found, kind) = signatures(Operation::Read, exact(&reads));
    assert!(found.len() > 1, "no loop is the whole of it");
    assert!(kind.contains("<Contiguous>"), "{kind}");
    let apart: Vec<Extent> = scattered(7)
        .take(50)
        .map(|at| Extent::new(at, 4096))
        .collect();
    let (_, kind) = signatures(Operation::Read, exact(&apart));
    assert!(kind.contains("<Non-contiguous, random>"), "{kind}");
}
