//! The accesses recorded for each family of calls: the bytes that a call addresses, in order.

use foreread_plan::Kind;
use foreread_tests::{Lab, foreread, root};

use super::harness::{Asked, Mpi, asked, lines};
use super::{Needs, Test};
use foreread_tests::suite::{ALL, QUICK};

pub const TESTS: &[Test] = &[
    (
        "explicit_offsets_are_recorded_as_given",
        QUICK,
        Needs::C,
        explicit_offsets,
    ),
    (
        "individual_pointers_are_known_at_each_call",
        ALL,
        Needs::C,
        individual_pointers,
    ),
    (
        "the_shared_pointer_is_found_by_what_was_read",
        ALL,
        Needs::C,
        the_shared_pointer,
    ),
    ("writes_are_recorded_as_reads_are", ALL, Needs::C, writes),
    ("views_are_taken_apart", ALL, Needs::C, views),
    (
        "a_call_of_many_pieces_is_bounded",
        ALL,
        Needs::C,
        many_pieces,
    ),
    (
        "what_lies_behind_the_end_was_not_read",
        ALL,
        Needs::C,
        the_end_of_a_file,
    ),
    ("programs_in_fortran_are_seen", ALL, Needs::Fortran, fortran),
    (
        "an_mpi_that_is_loaded_late_is_found",
        ALL,
        Needs::C,
        loaded_late,
    ),
    (
        "another_tool_sees_the_same_calls",
        ALL,
        Needs::C,
        another_tool,
    ),
];

const BLOCK: u64 = 4096;
const ROUNDS: u64 = 4;
const RANKS: u32 = 2;

/// Records a family of calls; returns the accesses of each rank.
fn family(mpi: Mpi, lab: &Lab, name: &str) -> Vec<Asked> {
    for record in lab.records() {
        std::fs::remove_file(record).expect("our own record");
    }
    let output = mpi.foreread(lab, RANKS, &["record"], &["./families", name, "data"]);
    assert!(output.status.success(), "{name}: {output:?}");
    asked(lab, RANKS, "data")
}

fn lab(mpi: Mpi) -> Lab {
    let lab = Lab::new();
    lab.data("data", 1);
    mpi.build(&lab, "families.c");
    lab
}

/// Accesses of a rank to blocks that alternate between the ranks.
fn in_turn(kind: Kind, rank: u64) -> Asked {
    let block = |round| (round * u64::from(RANKS) + rank) * BLOCK;
    (0..ROUNDS)
        .map(|round| (kind, block(round), BLOCK))
        .collect()
}

fn in_parts(kind: Kind, rank: u64) -> Asked {
    let block = |round| (rank * ROUNDS + round) * BLOCK;
    (0..ROUNDS)
        .map(|round| (kind, block(round), BLOCK))
        .collect()
}

fn check(mpi: Mpi, families: &[&str], kind: Kind, expected: fn(Kind, u64) -> Asked) {
    let lab = lab(mpi);
    for name in families {
        let found = family(mpi, &lab, name);
        for (rank, found) in (0..).zip(found) {
            assert_eq!(found, expected(kind, rank), "{name}, rank {rank}");
        }
    }
}

fn explicit_offsets(mpi: Mpi) {
    let families = [
        "read_at",
        "read_at_all",
        "iread_at",
        "iread_at_all",
        "read_at_all_begin",
    ];
    check(mpi, &families, Kind::MpiRead, in_turn);
}

fn individual_pointers(mpi: Mpi) {
    let families = ["read", "read_all", "iread", "iread_all", "read_all_begin"];
    check(mpi, &families, Kind::MpiRead, in_parts);
}

fn the_shared_pointer(mpi: Mpi) {
    check(
        mpi,
        &["read_ordered", "read_ordered_begin"],
        Kind::MpiRead,
        in_turn,
    );
    // The first rank to call gets the next block, so each block belongs to one of the ranks.
    let lab = lab(mpi);
    let found = family(mpi, &lab, "read_shared");
    assert!(
        found.iter().all(|one| one.len() as u64 == ROUNDS),
        "{found:?}"
    );
    let mut all = found.concat();
    all.sort_by_key(|one| one.1);
    let mut expected = [in_turn(Kind::MpiRead, 0), in_turn(Kind::MpiRead, 1)].concat();
    expected.sort_by_key(|one| one.1);
    assert_eq!(all, expected);
}

fn writes(mpi: Mpi) {
    let explicit = [
        "write_at",
        "write_at_all",
        "iwrite_at",
        "write_at_all_begin",
    ];
    check(mpi, &explicit, Kind::MpiWrite, in_turn);
    let individual = ["write", "write_all", "iwrite", "write_all_begin"];
    check(mpi, &individual, Kind::MpiWrite, in_parts);
}

/// A file type as MPI defines it: the places of its bytes, its extent, and the view's displacement.
struct View {
    name: &'static str,
    pieces: Vec<(u64, u64)>,
    extent: u64,
    displacement: u64,
}

impl View {
    /// The offset of each byte of the view.
    fn bytes(&self) -> impl Iterator<Item = u64> {
        (0..).flat_map(move |tile| {
            let begin = self.displacement + tile * self.extent;
            let pieces = self.pieces.iter();
            pieces.flat_map(move |(offset, len)| (0..*len).map(move |at| begin + offset + at))
        })
    }

    /// The ranges that successive calls with these byte counts address.
    fn ranges(&self, calls: &[usize]) -> Asked {
        let mut bytes = self.bytes();
        let mut ranges = Asked::new();
        for call in calls {
            let places: Vec<u64> = bytes.by_ref().take(*call).collect();
            let runs = places.chunk_by(|one, next| one + 1 == *next);
            ranges.extend(runs.map(|run| (Kind::MpiRead, run[0], run.len() as u64)));
        }
        ranges
    }
}

/// The views of `families.c`.
fn views_of(rank: u64) -> Vec<View> {
    let view = |name, pieces, extent, displacement| View {
        name,
        pieces,
        extent,
        displacement,
    };
    vec![
        view(
            "vector",
            (0..8).map(|block| (block * 1000, 400)).collect(),
            7400,
            1000 + 100_000 * rank,
        ),
        view(
            "subarray",
            (0..8)
                .map(|row| ((row * 32 + 16 * rank) * 8, 128))
                .collect(),
            4096,
            0,
        ),
        view(
            "fortran",
            (0..16)
                .map(|column| ((16 * rank + column) * 16 * 8, 64))
                .collect(),
            4096,
            0,
        ),
        view(
            "indexed",
            vec![(0, 8), (20, 4), (40, 12)],
            100,
            rank * 10_000,
        ),
        view("struct", vec![(16, 8), (64, 12)], 128, rank * 10_000),
        view(
            "darray",
            (0..8).map(|row| ((row * 8 + rank * 4) * 4, 16)).collect(),
            256,
            0,
        ),
    ]
}

fn views(mpi: Mpi) {
    let lab = lab(mpi);
    for number in 0..views_of(0).len() {
        let name = format!("view_{}", views_of(0)[number].name);
        let found = family(mpi, &lab, &name);
        for (rank, found) in (0..).zip(found) {
            let view = &views_of(rank)[number];
            assert_eq!(found, view.ranges(&[4000, 400]), "{name}, rank {rank}");
        }
    }
}

fn many_pieces(mpi: Mpi) {
    const MOST: usize = 4096;
    let lab = lab(mpi);
    for (rank, found) in (0..).zip(family(mpi, &lab, "view_million")) {
        let view = View {
            name: "million",
            pieces: (0..500_000).map(|piece| (2 * piece, 1)).collect(),
            extent: 999_999,
            displacement: rank,
        };
        let mut expected = view.ranges(&[4000, 400, 5000]);
        // The ranges beyond the bound are joined to the last one within it.
        let last = expected.last().expect("ranges").1;
        expected.truncate(4400 + MOST);
        let (_, offset, len) = expected.last_mut().expect("ranges");
        *len = last + 1 - *offset;
        assert_eq!(found, expected, "rank {rank}");
    }
}

fn the_end_of_a_file(mpi: Mpi) {
    let lab = lab(mpi);
    let rest = (Kind::MpiRead, (1 << 20) - 100, 100);
    for found in family(mpi, &lab, "read_end_of_file") {
        assert_eq!(found, [rest]);
    }
    // Open MPI 4.1 hangs in such a read, with or without foreread.
    if mpi == Mpi::Mpich {
        for found in family(mpi, &lab, "iread_end_of_file") {
            assert_eq!(found, [rest, rest]);
        }
    }
}

fn fortran(mpi: Mpi) {
    let lab = Lab::new();
    lab.data("data", 1);
    for source in ["fortran.f90", "fortran08.f90"] {
        mpi.build(&lab, source);
        for record in lab.records() {
            std::fs::remove_file(record).expect("our own record");
        }
        let program = format!("./{}", source.trim_end_matches(".f90"));
        let output = mpi.foreread(&lab, RANKS, &["record"], &[&program, "data"]);
        assert!(output.status.success(), "{source}: {output:?}");
        for (rank, found) in (0..).zip(asked(&lab, RANKS, "data")) {
            let mut expected = in_turn(Kind::MpiRead, rank);
            expected.push((Kind::MpiRead, 65_536 * rank, 4096));
            expected.push((Kind::MpiRead, 65_536 * rank + 4096, 2048));
            assert_eq!(found, expected, "{source}, rank {rank}");
        }
    }
}

fn loaded_late(mpi: Mpi) {
    let lab = lab(mpi);
    let shared = ["-shared", "-fPIC", "-Dmain=begin", "-o", "late.so"];
    mpi.build_as(&lab, "families.c", &shared);
    let source = root().join("tests/mpi/late.c");
    let built = lab.plain(&["cc", "-o", "late", source.to_str().expect("a path"), "-ldl"]);
    assert!(built.status.success(), "{built:?}");
    let words = ["./late", "./late.so", "read_at", "data"];
    let output = mpi.foreread(&lab, RANKS, &["record"], &words);
    assert!(output.status.success(), "{output:?}");
    for (rank, found) in (0..).zip(asked(&lab, RANKS, "data")) {
        assert_eq!(found, in_turn(Kind::MpiRead, rank), "rank {rank}");
    }
}

fn another_tool(mpi: Mpi) {
    let lab = lab(mpi);
    mpi.build_as(&lab, "tool.c", &["-shared", "-fPIC", "-o", "tool.so"]);
    let tool = root().join("tests/mpi/tool.c");
    let with_tool = [tool.to_str().expect("a path"), "-o", "tooled"];
    mpi.build_as(&lab, "families.c", &with_tool);
    let preloaded = format!("LD_PRELOAD={}", lab.path("tool.so").display());
    // A tool behind foreread's library, and a tool in the program itself, in front of it.
    for words in [
        &["env", &preloaded, "./families", "read_at", "data"][..],
        &["./tooled", "read_at", "data"],
    ] {
        for record in lab.records() {
            std::fs::remove_file(record).expect("our own record");
        }
        let plain = mpi.launch(&lab, RANKS, words);
        assert_eq!(lines(&plain), ["4 reads", "4 reads"], "{plain:?}");
        let path = foreread();
        let own = [path.to_str().expect("a path"), "record", "--"];
        // The process that starts foreread has the tool in its environment.
        let (before, after) = words.split_at(words.len() - 3);
        let output = mpi.launch(&lab, RANKS, &[before, &own, after].concat());
        assert_eq!(lines(&output), lines(&plain), "{words:?}: {output:?}");
        for (rank, found) in (0..).zip(asked(&lab, RANKS, "data")) {
            assert_eq!(
                found,
                in_turn(Kind::MpiRead, rank),
                "{words:?}, rank {rank}"
            );
        }
    }
}
