//! The collective cache as programs see it: the same bytes as without it, for every call, whichever process writes.
//!
//! `seed.c` stands in for foreread, so that the cache's contents are known and can be marked: bytes from the cache are then
//! distinguished from bytes that were read.

use std::collections::HashMap;
use std::path::Path;
use std::process::Output;

use foreread_tests::symbols::{interposed, unnamed};
use foreread_tests::{Lab, check, foreread, root, text};

use super::harness::{Mpi, lines};
use super::{Needs, Test};
use foreread_tests::suite::{ALL, QUICK};

pub const TESTS: &[Test] = &[
    (
        "every_kind_of_read_is_served_by_the_cache",
        ALL,
        Needs::C,
        every_kind,
    ),
    (
        "pages_of_other_ranks_on_the_host_are_served",
        ALL,
        Needs::C,
        other_ranks,
    ),
    (
        "reads_that_reach_the_end_of_a_file_are_the_same",
        ALL,
        Needs::C,
        ends_of_files,
    ),
    ("what_ranks_write_all_ranks_read", ALL, Needs::C, writes),
    (
        "what_a_write_reads_is_never_served",
        ALL,
        Needs::C,
        read_by_a_write,
    ),
    (
        "ranks_that_read_and_write_at_once_read_what_mpi_says",
        ALL,
        Needs::C,
        at_once,
    ),
    (
        "what_another_program_writes_is_seen_after_a_sync_and_an_open",
        ALL,
        Needs::C,
        others,
    ),
    (
        "whatever_call_changes_a_file_all_ranks_read_what_it_holds",
        QUICK.alone(),
        Needs::C,
        |mpi| changed(mpi, "whole,kept", 1),
    ),
    (
        "whatever_call_changes_a_file_all_ranks_read_what_it_holds_a_hundred_times_each",
        // Thousands of barriers, at each of which the ranks wait for a processor.
        ALL.alone(),
        Needs::C,
        |mpi| changed(mpi, "parts,kept", 10),
    ),
    ("nothing_is_served_in_atomic_mode", ALL, Needs::C, atomic),
    (
        "a_file_that_unknown_ranks_may_write_is_left_alone",
        ALL,
        Needs::C,
        unknown_ranks,
    ),
    (
        "pages_of_ranks_on_other_hosts_are_fetched_one_sided",
        ALL,
        Needs::C,
        other_hosts,
    ),
    ("a_page_on_its_way_is_waited_for", ALL, Needs::C, waited),
    (
        "a_page_that_never_comes_is_not_waited_for_twice",
        ALL,
        Needs::C,
        stuck,
    ),
    (
        "no_page_is_waited_for_before_a_read_was_measured",
        ALL,
        Needs::C,
        unmeasured,
    ),
    (
        "a_long_read_waits_no_longer_for_all_of_its_pages_than_for_one",
        ALL,
        Needs::C,
        long,
    ),
    (
        "programs_with_an_open_file_end_as_they_do_alone",
        ALL,
        Needs::C,
        endings,
    ),
    (
        "a_rank_shows_the_pages_that_it_reads_itself",
        QUICK,
        Needs::C,
        shown,
    ),
    ("what_is_no_segment_is_not_used", ALL, Needs::C, no_segment),
    (
        "reads_into_memory_that_cannot_be_written_to_fail_as_ever",
        QUICK,
        Needs::C,
        unwritable,
    ),
    (
        "every_function_below_mpi_does_the_same_with_any_arguments",
        QUICK,
        Needs::C,
        conforms,
    ),
];

const SIZE: usize = (1 << 20) + 5000;
/// Bytes of a page of the cache.
const PAGE: u64 = 1 << 16;

/// A lab with the programs, and a file whose bytes are neither 0xaa nor its complement.
fn lab(mpi: Mpi) -> Lab {
    let lab = Lab::new();
    mpi.build(&lab, "cached.c");
    const LIBRARY: &[&str] = &["-shared", "-fPIC"];
    for (source, options) in [
        ("seed.c", &[][..]),
        ("slow.c", LIBRARY),
        ("shown.c", LIBRARY),
    ] {
        let source = root().join("tests/mpi").join(source);
        let name = source.file_stem().expect("a name").to_str().expect("text");
        let path = source.to_str().expect("a path");
        let built = lab.plain(&[&["cc", "-o", name, path][..], options].concat());
        assert!(built.status.success(), "{built:?}");
    }
    fresh(&lab);
    lab
}

/// Restores the file's first contents.
fn fresh(lab: &Lab) {
    std::fs::write(lab.path("data"), contents(SIZE)).expect("a file");
}

/// `len` bytes, none of them 0xaa or its complement.
pub fn contents(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .filter(|byte| ![0xaa, 0x55].contains(byte))
    .take(len)
    .collect()
}

fn library(mpi: Mpi) -> String {
    let path = foreread().with_file_name(format!("libforeread_{}.so", mpi.name()));
    path.to_str().expect("a path").to_owned()
}

/// The command that runs one way of `cached.c` with a cache that is filled as `how` says.
fn seeded<'a>(library: &'a str, how: &'a str, way: &'a str) -> [&'a str; 8] {
    [
        "./seed", library, "data", how, "counts", "./cached", way, "data",
    ]
}

/// The result of a run: its output, and each rank's counts.
struct Ran {
    output: Output,
    counts: Vec<HashMap<String, u64>>,
}

impl Ran {
    fn sum(&self, name: &str) -> u64 {
        self.counts.iter().map(|one| one[name]).sum()
    }

    /// Bytes served from the cache of any rank.
    fn served(&self) -> u64 {
        self.sum("bytes")
    }
}

fn run(mpi: Mpi, lab: &Lab, ranks: u32, how: &str, way: &str) -> Ran {
    fresh(lab);
    let output = mpi.launch(lab, ranks, &seeded(&library(mpi), how, way));
    assert!(output.status.success(), "{how} {way}: {output:?}");
    let counts = (0..ranks).map(|rank| counts(lab, rank)).collect();
    Ran { output, counts }
}

fn counts(lab: &Lab, rank: u32) -> HashMap<String, u64> {
    let counts = std::fs::read_to_string(lab.path(&format!("counts.{rank}"))).expect("counts");
    let line = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    counts.lines().filter_map(line).collect()
}

fn plain(mpi: Mpi, lab: &Lab, ranks: u32, way: &str) -> Vec<String> {
    fresh(lab);
    let output = mpi.launch(lab, ranks, &["./cached", way, "data"]);
    assert!(output.status.success(), "{way}: {output:?}");
    lines(&output)
}

/// Asserts that every read byte came from the cache: the program inverts the marked bytes, and its sums are those of the plain run.
fn all_served(mpi: Mpi, ranks: u32, how: &str, way: &str) -> Ran {
    let lab = lab(mpi);
    let alone = plain(mpi, &lab, ranks, way);
    let lab = lab.with("MARKED", "1");
    let ran = run(mpi, &lab, ranks, how, way);
    assert_eq!(lines(&ran.output), alone);
    ran
}

fn every_kind(mpi: Mpi) {
    for way in ["reads", "reads_writable"] {
        let ran = all_served(mpi, 2, "whole,marked", way);
        assert!(ran.counts.iter().all(|one| one["hits"] > 0));
        // The counts show that the rank's foreread knows the file and the other rank.
        assert!(ran.counts.iter().all(|one| one["files"] == 1));
        assert!(ran.counts.iter().all(|one| one["peers"] == 1));
        for (rank, one) in (0..).zip(&ran.counts) {
            assert_eq!(one["joined"], (2 << 32) + rank + 1);
        }
    }
}

fn other_ranks(mpi: Mpi) {
    let ran = all_served(mpi, 3, "parts,marked", "reads");
    assert!(ran.sum("host_hits") > 0);
}

/// Asserts that the program reads the same with the cache as without; returns the run.
fn same(mpi: Mpi, ranks: u32, how: &str, way: &str) -> Ran {
    let lab = lab(mpi);
    let alone = plain(mpi, &lab, ranks, way);
    let ran = run(mpi, &lab, ranks, how, way);
    assert_eq!(lines(&ran.output), alone, "{how} {way}");
    ran
}

fn ends_of_files(mpi: Mpi) {
    let ran = same(mpi, 2, "whole", "ends");
    // In reads that reach the end of the file, the part before the last page is served.
    assert!(ran.served() > 0);
}

fn writes(mpi: Mpi) {
    for how in ["whole", "parts", "whole,kept"] {
        let ran = same(mpi, 3, how, "writes");
        // Served before the first write; after it each rank leaves the file to the file system.
        assert!(ran.served() > 0 && ran.sum("changed") == 3, "{how}");
    }
}

fn read_by_a_write(mpi: Mpi) {
    let lab = lab(mpi);
    plain(mpi, &lab, 2, "sieve");
    let written = std::fs::read(lab.path("data")).expect("the file");
    // Served bytes would be wrong ones, and would be written back to the file.
    let ran = run(mpi, &lab, 2, "whole,marked", "sieve");
    assert!(std::fs::read(lab.path("data")).expect("the file") == written);
    assert_eq!(ran.served(), 0);
}

fn at_once(mpi: Mpi) {
    for how in ["whole,kept", "parts,kept"] {
        let ran = same(mpi, 3, how, "at_once");
        let wrong = lines(&ran.output);
        let wrong = wrong.iter().filter(|line| line.contains("wrong"));
        assert!(wrong.clone().all(|line| line.ends_with("wrong 0")));
        assert_eq!(wrong.count(), 3);
        // Served before the first write.
        assert!(ran.served() > 0 && ran.sum("voided") > 0, "{how}");
    }
}

fn others(mpi: Mpi) {
    for how in ["whole", "whole,kept"] {
        let ran = same(mpi, 2, how, "others");
        assert!(ran.served() > 0 && ran.sum("voided") > 0, "{how}");
    }
}

/// Several runs, each of which makes every change ten times.
fn changed(mpi: Mpi, how: &str, runs: u32) {
    let lab = lab(mpi);
    mpi.build(&lab, "changed.c");
    let library = library(mpi);
    for run in 0..runs {
        let places = run.to_string();
        let mut words = seeded(&library, how, "data")[..5].to_vec();
        words.extend(["./changed", "data", "10", &places]);
        fresh(&lab);
        let output = mpi.launch(&lab, 2, &words);
        assert!(output.status.success(), "{output:?}");
        let said = lines(&output);
        assert_eq!(said.len(), 2 * 18, "{said:?}");
        let wrong = said.iter().filter(|line| !line.ends_with(" wrong 0"));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&String>::new());
        let served = (0..2).map(|rank| counts(&lab, rank)["bytes"]);
        assert!(served.sum::<u64>() > 0);
    }
}

fn atomic(mpi: Mpi) {
    // Served bytes would be wrong ones.
    let ran = same(mpi, 2, "whole,marked", "atomic");
    assert_eq!(ran.served(), 0);
}

fn unknown_ranks(mpi: Mpi) {
    let lab = lab(mpi);
    let library = library(mpi);
    for (way, served) in [("reads_writable", false), ("reads", true)] {
        let alone = plain(mpi, &lab, 2, way);
        // The second rank has no such library.
        let (how, last) = if served {
            ("whole", "reads")
        } else {
            ("whole,marked", way)
        };
        fresh(&lab);
        let words = [
            &seeded(&library, how, way)[..],
            &[":", "-n", "1", "./cached", last, "data"],
        ]
        .concat();
        let output = mpi.launch(&lab, 1, &words);
        assert_eq!(lines(&output), alone, "{output:?}");
        let hits = counts(&lab, 0)["hits"];
        assert_eq!(hits > 0, served, "{way}: {hits}");
    }
    // Both ranks have it, but count as being on different hosts.
    let lab = lab.with("FOREREAD_CACHE_ALONE", "1");
    let alone = plain(mpi, &lab, 2, "reads_writable");
    let ran = run(mpi, &lab, 2, "whole,marked", "reads_writable");
    assert_eq!(lines(&ran.output), alone);
    assert_eq!(ran.served(), 0);
}

/// The variables that select how the ranks reach one another, and whether the MPI supports windows then.
type Transport = (&'static [(&'static str, &'static str)], bool);

fn other_hosts(mpi: Mpi) {
    let transports: &[Transport] = match mpi {
        Mpi::Mpich => &[
            (&[], true),
            (&[("MPIR_CVAR_NOLOCAL", "1")], true),
            (&[("UCX_TLS", "tcp,self")], true),
        ],
        Mpi::OpenMpi => &[
            (&[], true),
            (
                &[
                    ("OMPI_MCA_pml", "ob1"),
                    ("OMPI_MCA_btl", "tcp,self"),
                    ("OMPI_MCA_osc", "pt2pt"),
                ],
                true,
            ),
            (
                &[
                    ("OMPI_MCA_pml", "ob1"),
                    ("OMPI_MCA_btl", "tcp,self"),
                    ("OMPI_MCA_osc", "rdma"),
                ],
                false,
            ),
        ],
    };
    for (variables, windows) in transports {
        let mut lab = lab(mpi);
        let alone = plain(mpi, &lab, 2, "in_turn");
        // The ranks believe that they are on different hosts, and reads are slow enough that waiting for a page pays.
        let preload = format!("{}:{}", library(mpi), lab.path("slow.so").display());
        std::fs::rename(lab.path("slow"), lab.path("slow.so")).expect("our own library");
        lab = lab
            .with("FOREREAD_CACHE_ALONE", "1")
            .with("FOREREAD_CACHE_BETWEEN_HOSTS", "1");
        for (name, value) in *variables {
            lab = lab.with(name, *value);
        }
        fresh(&lab);
        let output = mpi.launch(&lab, 2, &seeded(&preload, "parts", "in_turn"));
        assert_eq!(lines(&output), alone, "{variables:?}: {output:?}");
        for rank in 0..2 {
            let counts = counts(&lab, rank);
            assert_eq!(counts["host_hits"], 0, "{variables:?}");
            check!(
                counts["remote_hits"] > 0 || !windows,
                "{variables:?}: {counts:?}"
            );
        }
    }
}

fn shown(mpi: Mpi) {
    let lab = lab(mpi);
    let alone = plain(mpi, &lab, 1, "once");
    std::fs::rename(lab.path("shown"), lab.path("shown.so")).expect("our own library");
    let preload = format!("{}:{}", library(mpi), lab.path("shown.so").display());
    fresh(&lab);
    // The library comes behind the one in front of MPI: its reads are the real ones.
    let output = mpi.launch(&lab, 1, &seeded(&preload, "none", "once"));
    assert_eq!(lines(&output), alone, "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let mut pages = 0;
    for line in said.lines().filter_map(|line| line.strip_prefix("shown ")) {
        let numbers = line.split(' ').map(|number| number.parse().expect(line));
        let [offset, len, first, count] = numbers.collect::<Vec<u64>>()[..] else {
            panic!("{said}");
        };
        let within = offset.div_ceil(PAGE)..(offset + len) / PAGE;
        let whole = within.end.saturating_sub(within.start);
        assert_eq!(count, whole, "{said}");
        assert!(count == 0 || first == within.start, "{said}");
        pages += count;
    }
    assert!(pages > 0, "{said}");
}

fn waited(mpi: Mpi) {
    let ran = same(mpi, 2, "whole,waited", "in_turn");
    check!(ran.sum("late") > 0, "{:?}", ran.counts);
}

fn stuck(mpi: Mpi) {
    let ran = same(mpi, 2, "whole,stuck", "in_turn");
    assert_eq!(ran.served(), 0);
}

fn long(mpi: Mpi) {
    // There are 16 pages, and each comes 4 ms after the one before.
    let ran = same(mpi, 1, "whole,waited,slow", "once");
    assert!(ran.served() < 8 * 65536, "{:?}", ran.counts);
}

fn unmeasured(mpi: Mpi) {
    let ran = same(mpi, 1, "whole,waited,new", "once");
    assert_eq!(ran.served(), 0, "{:?}", ran.counts);
}

fn endings(mpi: Mpi) {
    let lab = lab(mpi);
    for way in ["well", "exit", "kill", "abort"] {
        let alone = mpi.launch(&lab, 2, &["./cached", way, "data"]);
        for (how, between) in [("whole", "0"), ("whole,kept", "0"), ("whole", "1")] {
            let between = format!("FOREREAD_CACHE_BETWEEN_HOSTS={between}");
            let library = library(mpi);
            let words = [
                &["env", "FOREREAD_CACHE_ALONE=1", &between][..],
                &seeded(&library, how, way),
            ]
            .concat();
            let output = mpi.launch(&lab, 2, &words);
            assert_eq!(
                output.status.success(),
                alone.status.success(),
                "{way}, {how}: {output:?}"
            );
        }
    }
}

fn no_segment(mpi: Mpi) {
    let lab = lab(mpi);
    let alone = plain(mpi, &lab, 2, "reads");
    let preload = format!("LD_PRELOAD={}", library(mpi));
    let zeros = "0".repeat(16);
    let data = lab.path("data");
    for value in [
        String::new(),
        "x".to_owned(),
        zeros.clone(),
        format!("{zeros}/proc/self/fd/0"),
        format!("{zeros}/proc/1/fd/9999"),
        format!("{zeros}/dev/zero"),
        format!("{zeros}{}", data.display()),
    ] {
        let variable = format!("FOREREAD_CACHE={value}");
        let words = ["env", &preload, &variable, "./cached", "reads", "data"];
        let output = mpi.launch(&lab, 2, &words);
        assert_eq!(lines(&output), alone, "{value}: {}", text(&output.stderr));
    }
    // An invalid segment's bytes would be wrong ones.
    for (how, used) in [
        ("marked,token", false),
        ("marked,version", false),
        ("marked,slots", false),
        ("marked,unsealed", false),
        ("whole", true),
    ] {
        let ran = run(mpi, &lab, 2, how, "reads");
        assert_eq!(lines(&ran.output), alone, "{how}");
        assert_eq!(ran.served() > 0, used, "{how}");
    }
}

fn unwritable(mpi: Mpi) {
    // A read into memory that is writable only in part is left to the file system.
    same(mpi, 1, "whole", "unwritable");
}

fn conforms(mpi: Mpi) {
    let source = std::fs::read_to_string(root().join("tests/mpi/conform.c")).expect("a source");
    let library = library(mpi);
    let uncalled = unnamed(interposed(Path::new(&library)), &source);
    assert!(uncalled.is_empty(), "no call tried: {uncalled:?}");
    let lab = lab(mpi);
    mpi.build_as(&lab, "conform.c", &["-w"]);
    let calls = |words: &[&str]| {
        fresh(&lab);
        let output = mpi.launch(&lab, 1, words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output.stdout)
    };
    let plain = calls(&["./conform", "data"]);
    assert!(plain.lines().count() > 3000);
    // Without a cache, with one that holds the file, and with one whose void pages are filled again at once.
    for how in ["none", "whole", "whole,kept"] {
        let mut words = seeded(&library, how, "data");
        words[5] = "./conform";
        let got = calls(&words[..7]);
        let differ = plain
            .lines()
            .zip(got.lines())
            .find(|(plain, got)| plain != got);
        assert!(
            differ.is_none() && got.len() == plain.len(),
            "{how}: {differ:#?}"
        );
    }
}
