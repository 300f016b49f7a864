//! Records of ranks: kept apart, shown together, followed by the ranks of later runs.

use std::collections::BTreeSet;
use std::fs;

use foreread_plan::Rank;
use foreread_plan::format::Reader;
use foreread_tests::{Lab, Slow, check, text};
use serde_json::Value;

use super::harness::{Mpi, lines};
use super::{Needs, Test};
use foreread_tests::suite::{ALL, QUICK};

pub const TESTS: &[Test] = &[
    (
        "each_rank_has_a_record_and_is_fetched_for",
        ALL,
        Needs::Mount,
        run_twice,
    ),
    (
        "one_line_is_printed_for_all_ranks",
        QUICK,
        Needs::C,
        one_line,
    ),
    (
        "show_and_analyze_tell_what_depends_on_the_rank",
        ALL,
        Needs::C,
        shown,
    ),
    (
        "another_number_of_ranks_goes_by_the_patterns",
        ALL,
        Needs::C,
        other_ranks,
    ),
    (
        "files_that_the_user_names_are_one_for_each_rank",
        ALL,
        Needs::C,
        named_files,
    ),
    (
        "a_rank_that_mpi_has_otherwise_is_not_recorded",
        ALL,
        // Open MPI sets these variables itself.
        Needs::Mpich,
        mistaken,
    ),
];

const RANKS: u32 = 2;

fn lab(mpi: Mpi, mib: u64) -> Lab {
    let lab = Lab::new();
    lab.data("data", mib);
    mpi.build(&lab, "strided.c");
    lab
}

fn accounts(lab: &Lab, ranks: u32) -> Vec<Value> {
    let ranks = 0..ranks;
    let read = |rank| fs::read(lab.path(&format!("account.{rank}"))).expect("an account");
    ranks
        .map(|rank| serde_json::from_slice(&read(rank)).expect("JSON"))
        .collect()
}

fn run_twice(mpi: Mpi) {
    let lab = Lab::new();
    // A disk that answers slowly: if it answered at once, foreread would leave the ranks alone.
    let _mount = Slow::mount(&lab, "network-ssd");
    lab.data("mnt/data", 32);
    mpi.build(&lab, "strided.c");
    let plain = mpi.launch(&lab, RANKS, &["./strided", "mnt/data"]);
    let again = || {
        lab.cold(&["mnt/data"]);
        let options = ["run", "--json", "account"];
        let output = mpi.foreread(&lab, RANKS, &options, &["./strided", "mnt/data"]);
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
        assert_eq!(output.status, plain.status);
        accounts(&lab, RANKS)
    };
    again();
    let ranks: BTreeSet<_> = lab
        .records()
        .iter()
        .filter_map(|path| Reader::open(path).expect("a record").meta().identity.rank)
        .map(|Rank { rank, of }| (rank, of))
        .collect();
    assert_eq!(ranks, BTreeSet::from([(0, RANKS), (1, RANKS)]));
    for (rank, account) in again().iter().enumerate() {
        let bytes = |column: &str| account["ledger"][column].as_u64().unwrap_or(0);
        check!(
            bytes("useful") + bytes("late") > 0,
            "rank {rank}: {account:#}"
        );
    }
}

fn one_line(mpi: Mpi) {
    let lab = lab(mpi, 1);
    let output = mpi.foreread(&lab, 3, &["run"], &["./strided", "data"]);
    let said = text(&output.stderr);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("foreread: "))
        .collect();
    assert_eq!(ours.len(), 1, "{said}");
    assert!(
        ours[0].starts_with("foreread: 3 ranks of strided: "),
        "{said}"
    );
    assert!(ours[0].contains("recorded "), "{said}");
    let quiet = mpi.foreread(&lab, 3, &["run", "--quiet"], &["./strided", "data"]);
    assert!(!text(&quiet.stderr).contains("foreread: "), "{quiet:?}");
    let full = mpi.foreread(&lab, 2, &["run", "--explain"], &["./strided", "data"]);
    let said = text(&full.stderr);
    assert!(said.matches("foreread: ").count() > 2, "{said}");
}

fn shown(mpi: Mpi) {
    let lab = lab(mpi, 4);
    // 65,536 bytes of each 131,072, alternating between three ranks.
    mpi.foreread(&lab, 3, &["record"], &["./strided", "data"]);
    let shown = text(&lab.foreread(&["show"]).stdout);
    let (_, all) = shown
        .split_once("Through MPI, all 3 ranks:")
        .expect("all ranks");
    let expected = [
        "{READ, $1, 1, ([393216, 65536, 10]), 1}",
        "$1 0 + 131072 * rank",
    ];
    for line in expected {
        assert!(all.contains(line), "no {line} in {all}");
    }
    assert!(shown.contains(" of 3\n"), "no rank in {shown}");
    let json: Value =
        serde_json::from_slice(&lab.foreread(&["show", "--json"]).stdout).expect("JSON");
    let family = &json["ranks"][0];
    assert_eq!(family["of_rank"][0], "0 + 131072 * rank", "{family:#}");
    assert_eq!(family["members"].as_array().map(Vec::len), Some(3));

    let records = lab.records();
    let mut words = vec!["analyze", "--json"];
    words.extend(records.iter().map(|path| path.to_str().expect("a path")));
    let analysed = text(&lab.foreread(&words).stdout);
    // Ranks with different timing are kept apart there.
    for word in [
        "\"rank 0\"",
        "\"rank 1\"",
        "\"rank 2\"",
        "[393216, 65536, 10",
        "foreread's record",
    ] {
        assert!(analysed.contains(word), "no {word} in {analysed}");
    }
}

fn other_ranks(mpi: Mpi) {
    let lab = lab(mpi, 32);
    let words = ["./strided", "data", "parts"];
    mpi.foreread(&lab, 2, &["record"], &words);
    assert_eq!(lab.records().len(), 2);
    let plain = mpi.launch(&lab, 4, &words);
    lab.cold(&["data"]);
    let options = ["run", "--no-record", "--json", "account"];
    let output = mpi.foreread(&lab, 4, &options, &words);
    assert_eq!(lines(&output), lines(&plain), "{output:?}");
    let read = (32 << 20) / 2 / 4;
    for (rank, account) in accounts(&lab, 4).iter().enumerate() {
        let bytes = |column: &str| account["ledger"][column].as_u64().unwrap_or(0);
        // The places that another rank read are not prefetched for this one.
        check!(
            bytes("wasted") <= bytes("useful") + bytes("late") + read / 4,
            "rank {rank}: {account:#}"
        );
    }
}

fn named_files(mpi: Mpi) {
    let lab = lab(mpi, 1);
    let options = ["record", "-o", "out.fr"];
    mpi.foreread(&lab, RANKS, &options, &["./strided", "data"]);
    for rank in 0..RANKS {
        let path = lab.path(&format!("out.fr.{rank}"));
        let reader = Reader::open(&path).expect("a record");
        assert_eq!(reader.meta().identity.rank, Some(Rank { rank, of: RANKS }));
    }
    assert!(!lab.path("out.fr").exists());
}

fn mistaken(mpi: Mpi) {
    // A launcher's variables that another launcher set.
    let lab = lab(mpi, 1)
        .with("OMPI_COMM_WORLD_RANK", "2")
        .with("OMPI_COMM_WORLD_SIZE", "4");
    let output = mpi.foreread(&lab, RANKS, &["run", "--explain"], &["./strided", "data"]);
    // Long lines are folded.
    let said = text(&output.stderr).replace("\nforeread:   ", " ");
    assert!(lab.records().is_empty(), "{said}");
    for rank in 0..RANKS {
        let wanted =
            format!("MPI has it as rank {rank} of 2, and its launcher told 2 of 4; not recorded");
        assert!(said.contains(&wanted), "{said}");
    }
}
