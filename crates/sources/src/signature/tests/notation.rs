//! The notation: the paper's own signatures, the round trip, and refused input.

use proptest::prelude::*;

use super::expansion::term;
use super::{at, lu, only, trace};
use crate::signature::{
    Operation, PatternSignature, Repetition, Signature, Size, Spatial, Temporal, Term, Variation,
    join, parse, parse_pattern,
};

/// The only signature of a text.
fn one(text: &str, names: &[(&str, i64)]) -> Signature {
    let mut signatures = parse(text, names).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(signatures.len(), 1);
    signatures.remove(0)
}

/// The paper's text as printed here.
fn printed(text: &str, names: &[(&str, i64)]) -> String {
    let signatures = parse(text, names).unwrap_or_else(|error| panic!("{text}: {error}"));
    join(&signatures)
}

const LU: &str = "{READ, 0, 3, ([{1049088, 1, [{(524544, 1)}, 524544], 1}],
[{524544, 1, [{524544}, {518272, 1, (-4096)}, {1, (1)}}],
[{0, 1, [(0, 522368, 1])}] ), 125}";

#[test]
fn lu_as_printed_has_unbalanced_brackets_and_is_refused_by_line_and_column() {
    let error = parse(LU, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, column 55: `]` is expected, not `}`"
    );
}

#[test]
fn lu_with_its_brackets_mended_is_the_trace_of_lu() {
    let mended = LU
        .replace("{1, (1)}}],", "{1, (1)}]}],")
        .replace("522368, 1])", "522368, 1)]");
    let signature = one(&mended, &[]);
    let trace = trace(&lu(125));
    assert_eq!(signature.term, Term::Loop(only(&trace).clone()));
    let ours = "{READ, 1049088, 3, ([{1049088, 1, [{524544}, 524544, 1]}], \
                [{524544, 1, [{524544}, {518272, 1, (-4096)}, {1, 1, (1)}]}], \
                [{0, 1, [{0}, 522368, 1]}]), 125}";
    assert_eq!(signature.to_string(), ours);
}

#[test]
fn the_stride_of_section_iv_is_read() {
    let text = "{READ, initial position, 1, ([8192, 4096, 100]), 1}";
    let position = [("initial position", 77)];
    assert_eq!(
        printed(text, &position),
        "{READ, 77, 1, ([8192, 4096, 100]), 1}"
    );
    let error = parse(text, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 8: `initial position` has no value"
    );
}

#[test]
fn ior_is_read() {
    let text = "{WRITE, 0, 1, ([{0, 32768, 1}, 32768, 4096]), 1}, {READ,
0, 1, ([{0, 32768, 1}, 32768, 4096]), 1}";
    let ours = "{WRITE, 0, 1, ([32768, 32768, 4096]), 1}, {READ, 0, 1, ([32768, 32768, 4096]), 1}";
    assert_eq!(printed(text, &[]), ours);
}

#[test]
fn mpi_tile_io_is_read() {
    let text = "{READ, initial position, 1, ([0, 1024000, 0]), 1}";
    let position = [("initial position", 3 * 102_400)];
    assert_eq!(
        printed(text, &position),
        "{READ, 307200, 1, ([0, 1024000, 0]), 1}"
    );
}

#[test]
fn btio_is_read() {
    let text = "{WRITE, initial
position, 1, ([42450944, 5308416, 40]), 1}, {READ, initial position, 1, ([42450944, 5308416, 40]), 1}";
    let text = text.replace("initial\n", "initial ");
    let position = [("initial position", 5_308_416)];
    let ours = "{WRITE, 5308416, 1, ([42450944, 5308416, 40]), 1}, \
                {READ, 5308416, 1, ([42450944, 5308416, 40]), 1}";
    assert_eq!(printed(&text, &position), ours);
}

#[test]
fn flash_is_read() {
    let text = "{WRITE, initial position_1, 1, ([1323008,
request_size_1, 25]), 1}, {WRITE, initial position_2, 1,
([661504, request_size_2, 4]), 1}, {WRITE, initial position_3,
1, ([941868, request_size_3, 4]), 1}";
    let names = [
        ("initial position_1", 54_680),
        ("request_size_1", 327_680),
        ("initial position_2", 40_000_000),
        ("request_size_2", 163_840),
        ("initial position_3", 50_000_000),
        ("request_size_3", 233_280),
    ];
    let ours = "{WRITE, 54680, 1, ([1323008, 327680, 25]), 1}, \
                {WRITE, 40000000, 1, ([661504, 163840, 4]), 1}, \
                {WRITE, 50000000, 1, ([941868, 233280, 4]), 1}";
    assert_eq!(printed(text, &names), ours);
}

#[test]
fn pio_bench_is_read() {
    let position = [("initial position", 0)];
    for text in [
        "{READ, initial position, 1, ([8192, 4096, 100]), 1}",
        "{READ, initial position, 2, ([4096, 4096, 1], [12288, 2048, 1], 100), 1}",
        "{READ, initial position, 1, ([4096, 4096, 100]), 1}",
    ] {
        // The count of the nested pattern stands inside the parentheses, and the pattern occurs once.
        assert_eq!(
            printed(text, &position),
            text.replace("initial position", "0")
        );
    }
    let nested = one(
        "{READ, 0, 2, ([4096, 4096, 1], [12288, 2048, 1], 100), 1}",
        &[],
    );
    let outside = one(
        "{READ, 0, 2, ([4096, 4096, 1], [12288, 2048, 1]), 100}",
        &[],
    );
    assert_eq!(nested, outside);
    let trace = crate::signature::Trace {
        terms: vec![nested.term],
    };
    let offsets: Vec<u64> = trace.expand().take(4).map(|read| read.offset).collect();
    assert_eq!(offsets, [0, 4096, 16_384, 20_480]);
}

#[test]
fn the_papers_pattern_signatures_are_read() {
    use Operation::{Read, ReadWrite, Write};
    use Repetition::{Repetitive, Single};
    use Size::{Large, Medium, Small};
    use Variation::{Fixed, Variable};
    let all = [
        (
            "{READ, <Non-contiguous, 3d strided>, <repetitive>,\n<large, variable size>, <random>}",
            (Read, Spatial::Dimensions(3), Repetitive, Variable, Large),
        ),
        (
            "{Write (or Read), <Contiguous>, <single occurrence>,\n<fixed size, medium>, <random>}",
            (ReadWrite, Spatial::Contiguous, Single, Fixed, Medium),
        ),
        (
            "{Write (or Read), <No spatial pattern>, <single occurrence>, <fixed size, large>, <no temporal pattern>}",
            (ReadWrite, Spatial::None, Single, Fixed, Large),
        ),
        (
            "{Write (Read), <Non-contiguous, fixed strided>, <single occurrence>, <fixed size, large>, <random>}",
            (ReadWrite, Spatial::Fixed, Single, Fixed, Large),
        ),
        (
            "{Write, <non-contiguous, fixed strided>,\n<single occurrence>, <fixed size, large>, <random>}",
            (Write, Spatial::Fixed, Single, Fixed, Large),
        ),
        (
            "{Read, <non-contiguous, fixed strided>, <single occurrence>, <fixed size, small>, <random>}",
            (Read, Spatial::Fixed, Single, Fixed, Small),
        ),
        (
            "{Read,\n<contiguous>, <single occurrence>, <fixed size, small>,\n<random>}",
            (Read, Spatial::Contiguous, Single, Fixed, Small),
        ),
    ];
    for (text, (operation, spatial, repetition, variation, size)) in all {
        let read = parse_pattern(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let temporal = match spatial {
            Spatial::None => Temporal::None,
            _ => Temporal::Random,
        };
        let expected = PatternSignature {
            operation,
            spatial,
            repetition,
            variation,
            size,
            temporal,
        };
        assert_eq!(read, expected);
        assert_eq!(parse_pattern(&read.to_string()), Ok(read));
    }
}

#[test]
fn what_is_no_signature_is_refused_by_line_and_column() {
    for (text, message) in [
        ("", "line 1, column 1: `{` is expected, not the end"),
        (
            "{FETCH, 0",
            "line 1, column 2: READ, WRITE or READ/WRITE is expected",
        ),
        (
            "{READ,\n 99999999999999999999, 1",
            "line 2, column 2: a number beyond 64 bits",
        ),
        (
            "{READ, 0, 1, ([1, 2, -3]), 1}",
            "line 1, column 22: a count is not negative",
        ),
        (
            "{READ, 0, 2, ([1, 2, 3]), 1}",
            "line 1, column 10: 2 dimensions, where the parts have 1",
        ),
        (
            "{READ, 0, 1, ([1, 2, 3]), 1} x",
            "line 1, column 30: the end is expected, not `x`",
        ),
        (
            "{READ, 0, 1, ([1, 2, 3],\n[{4, 1, [{5}, 6, 7]}]), 1}",
            "line 1, column 15: parts with a start of their own among parts without one",
        ),
        (
            "{READ, 0, 1, ([{4, 3, [{5, 6, 7}, 8, 9]}]), 1}",
            "line 1, column 15: more strides or steps than there are loops around",
        ),
    ] {
        assert_eq!(parse(text, &[]).unwrap_err().to_string(), message, "{text}");
    }
    let deep = format!("{{READ, 0, 1, ({}", "[(".repeat(100_000));
    assert!(
        parse(&deep, &[])
            .unwrap_err()
            .trouble
            .contains("too many nests")
    );
}

/// A term whose counts are all at least 1 with indices of 0, in the form of a trace.
fn signature() -> impl Strategy<Value = Signature> {
    let period = prop::option::of(0..1_000_000u64);
    (term(0), period, prop::bool::ANY).prop_map(|(term, period, write)| Signature {
        operation: if write {
            Operation::Write
        } else {
            Operation::Read
        },
        term,
        period,
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(signatures in prop::collection::vec(signature(), 1..4)) {
        let text = join(&signatures);
        let read = parse(&text, &[]);
        prop_assert_eq!(read.as_ref(), Ok(&signatures), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[{}\\[\\]()<>,0-9 a-zA-Z\n-]{0,80}") {
        let _ = parse(&text, &[]);
        let _ = parse_pattern(&text);
    }

    #[test]
    fn a_damaged_signature_is_read_or_refused(
        signature in signature(),
        place in any::<prop::sample::Index>(),
        put in prop::sample::select(vec!["{", "}", "[", "]", "(", ")", ",", "-", "9", "", "é"]),
    ) {
        let mut text: Vec<char> = signature.to_string().chars().collect();
        let place = place.index(text.len());
        text.splice(place..=place, put.chars());
        let text: String = text.into_iter().collect();
        if let Ok(read) = parse(&text, &[]) {
            prop_assert_eq!(parse(&join(&read), &[]), Ok(read));
        }
    }
}

#[test]
fn a_trace_of_single_reads_is_read_back() {
    let trace = trace(&at([5, 900, 17], 64));
    let signatures: Vec<Signature> = trace.terms.into_iter().map(Signature::reads).collect();
    assert_eq!(parse(&join(&signatures), &[]), Ok(signatures));
}

#[test]
fn the_signatures_in_the_documents_are_read() {
    let page = include_str!("../../../../../docs/signatures.md");
    let mut read = 0;
    for paragraph in page.split("\n\n").filter(|text| text.starts_with("    {")) {
        let trace = parse(paragraph, &[]).map(|signatures| {
            let squeezed: Vec<&str> = paragraph.split_whitespace().collect();
            assert_eq!(join(&signatures), squeezed.join(" "));
        });
        let pattern = parse_pattern(paragraph).map(|pattern| {
            assert_eq!(pattern.to_string(), paragraph.trim());
        });
        assert!(
            trace.is_ok() != pattern.is_ok(),
            "{paragraph}: {trace:?}, {pattern:?}"
        );
        read += 1;
    }
    assert_eq!(read, 4);
}
