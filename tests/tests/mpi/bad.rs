//! Bad input is reported or does no harm: records that are damaged or of another program, ranks that disagree, caches that are too
//! small.

use std::fs;

use foreread_tests::{Lab, foreread, text};

use super::harness::{Mpi, lines};
use super::{Needs, Test};
use foreread_tests::suite::ALL;

pub const TESTS: &[Test] = &[
    (
        "damaged_records_of_ranks_do_no_harm",
        ALL,
        Needs::C,
        damaged_records,
    ),
    (
        "records_of_another_program_do_no_harm",
        ALL,
        Needs::C,
        other_programs,
    ),
    (
        "ranks_that_run_other_commands_are_each_as_they_are_alone",
        ALL,
        Needs::C,
        other_commands,
    ),
    (
        "a_cache_of_no_use_is_left_out_and_its_variable_named",
        ALL,
        Needs::C,
        small_cache,
    ),
];

const WORDS: [&str; 2] = ["./strided", "data"];

fn lab(mpi: Mpi) -> Lab {
    let lab = Lab::new();
    lab.data("data", 8);
    mpi.build(&lab, "strided.c");
    lab
}

/// Records, then runs with the records as `change` leaves them: every run behaves as without foreread.
fn run_with(mpi: Mpi, lab: &Lab, change: impl Fn(&[std::path::PathBuf])) {
    let plain = mpi.launch(lab, 2, &WORDS);
    assert!(plain.status.success(), "{plain:?}");
    mpi.foreread(lab, 2, &["record"], &WORDS);
    let records = lab.records();
    assert_eq!(records.len(), 2);
    change(&records);
    for _ in 0..2 {
        lab.cold(&["data"]);
        let output = mpi.foreread(lab, 2, &["run"], &WORDS);
        assert_eq!(output.status, plain.status, "{output:?}");
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
    }
}

fn damaged_records(mpi: Mpi) {
    let lab = lab(mpi);
    // A record cut off in the middle or near its end; with its second half inverted; empty; noise.
    type Damage = fn(Vec<u8>) -> Vec<u8>;
    let damages: [Damage; 5] = [
        |mut bytes| {
            bytes.truncate(bytes.len() / 2);
            bytes
        },
        |mut bytes| {
            bytes.truncate(bytes.len() - 3);
            bytes
        },
        |mut bytes| {
            let half = bytes.len() / 2;
            bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
            bytes
        },
        |_| Vec::new(),
        |bytes| (0..bytes.len()).map(|at| (at * 7 + 3) as u8).collect(),
    ];
    for damage in damages {
        run_with(mpi, &lab, |records| {
            // One of the two records: each rank follows a record of its own.
            let bytes = fs::read(&records[0]).expect("a record");
            fs::write(&records[0], damage(bytes)).expect("a record");
        });
    }
}

fn other_programs(mpi: Mpi) {
    let lab = lab(mpi);
    // A record of another program, and the ranks' records exchanged.
    let other = lab.path("other.fr");
    lab.foreread(&["record", "-o", "other.fr", "--", "cat", "data"]);
    run_with(mpi, &lab, |records| {
        fs::copy(&other, &records[0]).expect("a record");
    });
    run_with(mpi, &lab, |records| {
        let [one, two] = [0, 1].map(|at| fs::read(&records[at]).expect("a record"));
        fs::write(&records[0], two).expect("a record");
        fs::write(&records[1], one).expect("a record");
    });
}

fn other_commands(mpi: Mpi) {
    let lab = lab(mpi);
    let path = foreread();
    let under = [path.to_str().expect("a path"), "run", "--"];
    // One rank reads a file in alternating blocks and the other a contiguous part of it; and the ranks' files have different lengths.
    let one = ["./strided", "data"];
    let two = ["./strided", "data", "parts"];
    let both = |under: &[&str]| {
        let between = [":", "-n", "1"];
        let words = [under, &one, &between, under, &two].concat();
        lab.cold(&["data"]);
        mpi.launch(&lab, 1, &words)
    };
    let plain = both(&[]);
    assert!(plain.status.success(), "{plain:?}");
    for _ in 0..2 {
        let output = both(&under);
        assert_eq!(output.status, plain.status, "{output:?}");
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
    }
}

fn small_cache(mpi: Mpi) {
    for size in ["128K", "1", "much", "9999999G"] {
        let lab = lab(mpi).with("FOREREAD_CACHE_SIZE", size);
        let plain = mpi.launch(&lab, 2, &WORDS);
        let output = mpi.foreread(&lab, 2, &["run", "--explain"], &WORDS);
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
        // Long lines are folded.
        let said = text(&output.stderr).replace("\nforeread:   ", " ");
        let wanted = format!("FOREREAD_CACHE_SIZE={size}: ");
        assert!(said.contains(&wanted), "{said}");
        assert!(said.contains("no collective cache"), "{said}");
    }
}
