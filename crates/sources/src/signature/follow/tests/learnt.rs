use super::*;
use crate::signature::Trace;

/// Reads predicted of the first ten of a file.
fn of_the_first(source: &mut Signatures, file: u32, stride: u64, len: u64) -> u64 {
    let trace: Vec<_> = (0..10)
        .map(|n| (0, file, Extent::new(8 * KIB + n * stride, len)))
        .collect();
    run(source, &trace).predicted
}

fn role(source: &mut Signatures, file: u32, role: u64) {
    let file = FileId(file);
    source.see(&Seen::Role {
        file,
        role: Role(role),
        turn: Role::default(),
    });
}

#[test]
fn a_new_name_is_known_by_its_turn() {
    let Learnt { nest, .. } = taught().learnt().pop().unwrap();
    let read = |turn| {
        let one = Learnt {
            role: Role(7),
            nest: nest.clone(),
        };
        let mut source = Signatures::new().with_learnt([one]);
        with_files(&mut source, 1, 4000 * MIB);
        source.see(&Seen::Role {
            file: FileId(0),
            role: Role(1),
            turn: Role(turn),
        });
        // The stride is another one, so that only the role speaks for the signature.
        of_the_first(&mut source, 0, 96 * KIB, 4 * KIB)
    };
    assert_eq!((read(7), read(8)), (8, 7));
}

/// A source that has seen a file of role 1 read in rows of 16.
fn taught() -> Signatures {
    let mut source = Signatures::new();
    with_files(&mut source, 4, 4000 * MIB);
    role(&mut source, 0, 1);
    let rows: Vec<_> = (0..40)
        .flat_map(|row| (0..16).map(move |n| read(row * 4 * MIB + n * 64 * KIB, 4 * KIB)))
        .collect();
    run(&mut source, &rows);
    source
}

#[test]
fn a_signature_is_followed_from_the_second_read_of_another_file() {
    let mut source = Signatures::new();
    with_files(&mut source, 2, 4000 * MIB);
    assert_eq!(
        of_the_first(&mut source, 1, 64 * KIB, 4 * KIB),
        7,
        "three reads make a pattern"
    );
    let mut source = taught();
    assert_eq!(
        of_the_first(&mut source, 1, 64 * KIB, 4 * KIB),
        8,
        "stride and size equal"
    );
}

#[test]
fn a_signature_with_another_stride_or_size_is_learnt_and_with_both_left() {
    for (file, stride, len, predicted) in [(1, 96, 4, 8), (2, 64, 8, 8), (3, 96, 8, 7)] {
        let mut source = taught();
        role(&mut source, file, 1);
        let found = of_the_first(&mut source, file, stride * KIB, len * KIB);
        assert_eq!(found, predicted, "stride {stride} KiB, size {len} KiB");
    }
}

#[test]
fn the_end_of_a_row_is_known_from_another_file_and_from_an_earlier_run() {
    let rows: Vec<_> = (0..2)
        .flat_map(|row| {
            (0..16).map(move |n| {
                (
                    0,
                    1,
                    Extent::new(MIB + row * 4 * MIB + n * 64 * KIB, 4 * KIB),
                )
            })
        })
        .collect();
    let alone = {
        let mut source = Signatures::new();
        with_files(&mut source, 2, 4000 * MIB);
        run(&mut source, &rows)
    };
    let mut same_run = taught();
    role(&mut same_run, 1, 1);
    let Learnt { role: kind, nest } = taught().learnt().pop().unwrap();
    let single = Term::read(Extent::new(0, 512));
    let terms = vec![single.clone(), Term::Loop(nest.clone()), single];
    let of_record = Learnt::of(kind, &Trace { terms });
    let role_1 = Learnt {
        role: Role(1),
        nest,
    };
    assert_eq!(of_record, [role_1]);
    let mut later_run = Signatures::new().with_learnt(of_record);
    with_files(&mut later_run, 2, 4000 * MIB);
    role(&mut later_run, 1, 1);
    for source in [&mut same_run, &mut later_run] {
        let disclosed = run(source, &rows);
        assert_eq!(disclosed.predicted, 30, "{disclosed:?}");
        assert!(alone.predicted < 30, "{alone:?}");
    }
}

#[test]
fn a_signature_that_does_not_hold_is_left() {
    let mut source = taught();
    role(&mut source, 1, 1);
    let mut random = fastrand::Rng::with_seed(5);
    let mut trace = vec![
        (0, 1, Extent::new(0, 4 * KIB)),
        (0, 1, Extent::new(64 * KIB, 4 * KIB)),
    ];
    trace.extend((0..1000).map(|_| (0, 1, Extent::new(random.u64(..900_000) * 4 * KIB, 4 * KIB))));
    let disclosed = run(&mut source, &trace);
    // The disclosures of the other file are repeated once, and then no more.
    assert!(disclosed.pages <= 16 + HORIZON as u64, "{disclosed:?}");
}

#[test]
fn a_pattern_that_breaks_was_told_no_further_than_it_had_been_right() {
    for length in [20, 100, 1000, 5000] {
        let mut source = Signatures::new();
        with_files(&mut source, 1, 4000 * MIB);
        let trace: Vec<_> = (0..length).map(|n| read(n * 64 * KIB, 4 * KIB)).collect();
        let disclosed = run(&mut source, &trace);
        assert!(
            disclosed.pages - disclosed.useful <= length,
            "{disclosed:?}"
        );
        assert!(
            2 * disclosed.pages <= 3 * disclosed.useful + 16,
            "{disclosed:?}"
        );
    }
}

#[test]
fn each_pattern_of_a_file_is_known_from_an_earlier_run() {
    // Rows of 16, then columns of 8 of larger reads.
    let part = |at: u64, len: u64, stride: u64, jump: u64, length: u64, rows: u64| {
        (0..rows).flat_map(move |row| {
            (0..length).map(move |n| (0, 0, Extent::new(at + row * jump + n * stride, len)))
        })
    };
    let rows = || part(0, 4 * KIB, 64 * KIB, 4 * MIB, 16, 20);
    let columns = || part(500 * MIB, 16 * KIB, 256 * KIB, 8 * MIB, 8, 20);
    let trace: Vec<_> = rows().chain(columns()).collect();
    let learn = |trace: &[(u32, u32, Extent)]| {
        let mut source = Signatures::new();
        with_files(&mut source, 1, 4000 * MIB);
        role(&mut source, 0, 1);
        run(&mut source, trace);
        source.learnt()
    };
    let predicted = |learnt: Vec<Learnt>| {
        let mut source = Signatures::new().with_learnt(learnt);
        with_files(&mut source, 1, 4000 * MIB);
        role(&mut source, 0, 1);
        run(&mut source, &trace).predicted
    };
    let (both, first) = (learn(&trace), learn(&rows().collect::<Vec<_>>()));
    assert_eq!((both.len(), first.len()), (2, 1), "{both:?}");
    let (with_both, with_first) = (predicted(both), predicted(first));
    // The second pattern's third read, and the end of its first row.
    assert!(with_both >= with_first + 3, "{with_both} {with_first}");
}
