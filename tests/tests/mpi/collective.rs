//! The collective cache under `foreread run`, on a parallel file system whose pages ranks do not share.

use foreread_tests::{Lab, Slow, check, text};
use serde_json::Value;

use super::cache::contents;
use super::harness::{Mpi, lines};
use super::{Needs, Test};
use foreread_tests::suite::ALL;

pub const TESTS: &[Test] = &[
    (
        "ranks_are_served_by_the_collective_cache",
        ALL,
        Needs::Mount,
        served,
    ),
    (
        "ranks_that_read_from_front_to_back_are_served_where_no_kernel_reads_ahead",
        ALL,
        Needs::Mount,
        in_order,
    ),
    (
        "programs_read_the_same_by_the_collective_cache",
        ALL,
        Needs::Mount,
        the_same,
    ),
    (
        "pages_go_to_the_page_cache_where_ranks_share_it",
        ALL,
        Needs::C,
        shared_pages,
    ),
    (
        "files_that_are_read_past_the_page_cache_are_served_by_the_collective_cache",
        ALL,
        Needs::C,
        direct,
    ),
    (
        "a_program_of_sessions_alone_ends_as_it_does_alone",
        ALL,
        // Open MPI 4.1 has no sessions.
        Needs::Mpich,
        sessions,
    ),
    (
        "a_cache_smaller_than_a_page_is_refused",
        ALL,
        Needs::C,
        too_small,
    ),
];

fn accounts(lab: &Lab, ranks: u32) -> Vec<Value> {
    let read = |rank| std::fs::read(lab.path(&format!("account.{rank}"))).expect("an account");
    (0..ranks)
        .map(|rank| serde_json::from_slice(&read(rank)).expect("JSON"))
        .collect()
}

fn served(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "strided.c");
    let _mount = Slow::mount(&lab, "striped");
    std::fs::write(lab.path("mnt/data"), contents(16 << 20)).expect("a file");
    let words = &["./strided", "mnt/data"];
    let plain = mpi.launch(&lab, 2, words);
    let again = || {
        let output = mpi.foreread(&lab, 2, &["run", "--json", "account"], words);
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
    };
    again();
    again();
    let accounts = accounts(&lab, 2);
    let caches: Vec<_> = accounts
        .iter()
        .map(|one| &one["collective_cache"])
        .collect();
    let sum = |name: &str| -> u64 {
        let counts = caches.iter().map(|cache| cache[name].as_u64());
        counts.map(|count| count.expect("a count")).sum()
    };
    // The two ranks make 128 reads.
    let hits = sum("hit_local") + sum("hit_host");
    check!(hits >= 64, "{words:?}: {caches:#?}");
    check!(sum("filled_bytes") > 0, "{words:?}: {caches:#?}");
    let chosen = caches.iter().any(|cache| {
        let homes = cache["file_systems"].as_object().expect("file systems");
        homes.values().any(|home| home == "collective cache")
    });
    check!(chosen, "{words:?}: {caches:#?}");
}

/// Reads of a rank that the collective cache served, from the rank's own segment or another's.
fn hits(account: &Value) -> u64 {
    let count = |name: &str| account["collective_cache"][name].as_u64().unwrap_or(0);
    count("hit_local") + count("hit_host")
}

fn in_order(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "strided.c");
    let _mount = Slow::mount(&lab, "striped");
    std::fs::write(lab.path("mnt/data"), contents(48 << 20)).expect("a file");
    let words = &["./strided", "mnt/data", "parts", "whole"];
    let plain = mpi.launch(&lab, 2, words);
    // The first run follows the pattern, the second the record.
    for round in 0..2 {
        let output = mpi.foreread(&lab, 2, &["run", "--json", "account"], words);
        assert_eq!(lines(&output), lines(&plain), "{output:?}");
        let accounts = accounts(&lab, 2);
        // Each rank makes 384 reads. On one processor, following the start of MPI may cost so much that foreread leaves a rank to itself
        // for its first 200 ms.
        let hits: Vec<u64> = accounts.iter().map(hits).collect();
        check!(
            hits.iter().all(|&hits| hits >= 64),
            "round {round}: {accounts:#?}"
        );
    }
}

fn the_same(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "cached.c");
    let _mount = Slow::mount(&lab, "striped");
    for way in [
        "reads",
        "reads_writable",
        "ends",
        "writes",
        "at_once",
        "others",
    ] {
        let words = ["./cached", way, "mnt/data"];
        let fresh = || std::fs::write(lab.path("mnt/data"), contents((1 << 20) + 5000));
        fresh().expect("a file");
        let plain = mpi.launch(&lab, 3, &words);
        for round in 0..2 {
            fresh().expect("a file");
            let output = mpi.foreread(&lab, 3, &["run"], &words);
            assert!(output.status.success(), "{way} {round}: {output:?}");
            assert_eq!(lines(&output), lines(&plain), "{way} {round}");
        }
    }
}

fn shared_pages(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "strided.c");
    lab.data("data", 4);
    for _ in 0..2 {
        lab.cold(&["data"]);
        mpi.foreread(
            &lab,
            2,
            &["run", "--json", "account"],
            &["./strided", "data"],
        );
        for account in accounts(&lab, 2) {
            let cache = &account["collective_cache"];
            for name in ["filled", "hit_local", "hit_host", "hit_remote"] {
                assert_eq!(cache[name].as_u64().unwrap_or(0), 0, "{cache:#}");
            }
        }
    }
}

fn direct(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "direct.c");
    lab.data("data", 16);
    lab.data("other", 16);
    let words = &["./direct", "data", "other"];
    let plain = mpi.launch(&lab, 2, words);
    if !plain.status.success() {
        println!("skipped: the file system of temporary files has no O_DIRECT: {plain:?}");
        return;
    }
    lab.cold(&["data", "other"]);
    let output = mpi.foreread(&lab, 2, &["run", "--json", "account"], words);
    assert_eq!(lines(&output), lines(&plain), "{output:?}");
    let accounts = accounts(&lab, 2);
    // The two ranks make 128 reads.
    check!(
        accounts.iter().map(hits).sum::<u64>() >= 64,
        "{accounts:#?}"
    );
    let is_said = |account: &Value| {
        let homes = account["collective_cache"]["file_systems"].as_object();
        homes.is_some_and(|homes| {
            homes.iter().any(|(name, home)| {
                name.ends_with(", read with O_DIRECT") && home == "collective cache"
            })
        })
    };
    check!(accounts.iter().any(is_said), "{accounts:#?}");
    let again = mpi.foreread(&lab, 2, &["run"], words);
    assert_eq!(lines(&again), lines(&plain), "{again:?}");
}

fn sessions(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "sessions.c");
    lab.data("data", 8);
    let mount = foreread_tests::Need::Fuse
        .missing()
        .or_else(|| foreread_tests::Need::Root.missing());
    let striped = mount.is_none().then(|| Slow::mount(&lab, "striped"));
    let mut files = vec!["data"];
    if striped.is_some() {
        std::fs::write(lab.path("mnt/data"), contents(8 << 20)).expect("a file");
        files.push("mnt/data");
    }
    for file in files {
        let words = &["./sessions", file];
        // MPICH 4.0 cannot open a file in a session.
        let plain = mpi.launch(&lab, 2, words);
        assert!(plain.status.success(), "{plain:?}");
        for _ in 0..2 {
            let output = mpi.foreread(&lab, 2, &["run"], words);
            assert_eq!(output.status, plain.status, "{output:?}");
            assert_eq!(lines(&output), lines(&plain), "{output:?}");
        }
    }
}

fn too_small(mpi: Mpi) {
    let lab = Lab::new();
    let words = ["run", "--cache", "60K"];
    let output = mpi.foreread(&lab, 1, &words, &["true"]);
    assert!(!output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("has no room for a page"), "{said}");
}
