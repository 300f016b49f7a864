//! The first run: foreread knows only the program's reads so far. Its output is as without foreread, and the bytes fetched are accounted
//! for by source. How much is fetched in time is tested in virtual time (`crates/engine/tests/sim/first_runs.rs`).

use foreread_tests::{Lab, Need, Outcome, check, finish, foreread, start};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_first_run_is_unharmed_and_accounted_for_with_a_file_read_backward",
        QUICK,
        &[],
        backward,
    ),
    (
        "a_first_run_is_unharmed_and_accounted_for_with_strides",
        ALL,
        &[],
        strides,
    ),
    (
        "a_first_run_is_unharmed_and_accounted_for_with_nested_strides",
        ALL,
        &[],
        nested,
    ),
    (
        "a_first_run_is_unharmed_and_accounted_for_with_several_cursors",
        ALL,
        &[],
        cursors,
    ),
    (
        "a_first_run_is_unharmed_and_accounted_for_with_runs_and_gaps",
        ALL,
        &[],
        gaps,
    ),
    (
        "a_first_run_is_unharmed_and_accounted_for_with_a_file_that_the_program_writes",
        ALL,
        &[],
        own,
    ),
    (
        "a_first_run_without_a_pattern_is_unharmed_and_recorded",
        ALL,
        &[],
        nothing,
    ),
    (
        "a_first_run_that_is_not_to_be_recorded_is_fetched_for_and_leaves_no_record",
        ALL,
        &[],
        unrecorded,
    ),
    (
        "of_a_run_that_is_only_recorded_nothing_is_fetched",
        QUICK,
        &[],
        recorded_alone,
    ),
    (
        "a_record_of_a_run_that_was_helped_says_so",
        ALL,
        &[],
        helped_record,
    ),
    (
        "reads_of_files_that_no_record_has_are_fetched_by_patterns",
        ALL,
        &[],
        beside_a_record,
    ),
    (
        "files_that_a_program_writes_itself_are_fetched_as_it_read_them_when_recorded",
        QUICK,
        &[],
        rewritten,
    ),
    (
        "a_mount_whose_path_is_not_utf8_hides_no_other_mount",
        QUICK,
        &[Need::Root, Need::Command("unshare")],
        odd_mount,
    ),
];

/// Offsets and lengths in bytes.
type Reads = Vec<(u64, u64)>;

const PAGE: u64 = 4096;
/// Size of the data, in MiB.
const MIB: u64 = 64;
const SIZE: u64 = MIB << 20;

fn list(lab: &Lab, name: &str, reads: &Reads) {
    let lines = reads.iter().map(|(at, len)| format!("{at} {len}\n"));
    lab.write(name, lines.collect::<String>());
}

/// A cold first run of these reads, whose output must be as without foreread.
#[track_caller]
fn first(reads: &Reads, options: &[&str]) -> (Lab, Outcome) {
    let lab = Lab::new();
    lab.program("walker", &[]);
    lab.data("data", MIB);
    list(&lab, "list", reads);
    let command = ["./walker", "list", "data"];
    let plain = lab.plain(&command);
    lab.cold(&["data"]);
    let outcome = lab.run_with(options, &command);
    outcome.assert_as(&plain);
    (lab, outcome)
}

/// A first run that was prefetched for: its output is as without foreread, and the ledgers of its sources add up.
#[track_caller]
fn helped(reads: &Reads) {
    let (_, outcome) = first(reads, &[]);
    assert_helped(&outcome);
}

#[track_caller]
fn assert_helped(outcome: &Outcome) {
    let ahead = outcome.bytes("useful") + outcome.bytes("late");
    check!(ahead > 0, "nothing was fetched: {outcome:?}");
    outcome.check_mode("recorded");
    check!(!outcome.account["recorded"].is_null(), "{outcome:?}");
    // Each source has a ledger of its own, and these add up to the whole.
    let sources = outcome.account["sources"].as_array().expect("sources");
    for column in [
        "issued", "useful", "late", "wasted", "evicted", "infill", "unknown",
    ] {
        let parts = sources.iter().map(|one| one["ledger"][column].as_u64());
        let parts: u64 = parts.map(|part| part.expect("a number")).sum();
        assert_eq!(parts, outcome.bytes(column), "{column}: {outcome:?}");
    }
    let name = |one: &serde_json::Value| one["name"].as_str().map(str::to_owned);
    assert!(
        sources
            .iter()
            .any(|one| name(one).as_deref() == Some("signatures"))
    );
}

fn backward() {
    helped(&(0..2000).rev().map(|n| (n * PAGE, PAGE)).collect());
    helped(&(0..SIZE >> 15).rev().map(|n| (n << 15, 1 << 15)).collect());
}

/// The name of a mount is one line of the table that every process reads. Where users may mount with FUSE, any user can choose that
/// name.
fn odd_mount() {
    let lab = Lab::new();
    lab.program("walker", &[]);
    lab.data("data", MIB);
    let reads = (0..2000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    list(&lab, "list", &reads);
    lab.cold(&["data"]);
    let script = r#"set -e; bad=$(printf 'bad\377'); mkdir "$bad"; mount -t tmpfs none "$bad"
exec "$0" run --json account -- ./walker list data"#;
    let mut command = lab.command("unshare");
    command.args(["-m", "sh", "-c", script]).arg(foreread());
    let output = finish(start(&mut command));
    assert!(output.status.success(), "{output:?}");
    let account = std::fs::read(lab.path("account")).expect("an account");
    let account: serde_json::Value = serde_json::from_slice(&account).expect("JSON");
    check!(
        account["ledger"]["issued"].as_u64() > Some(0),
        "nothing was fetched: {account}"
    );
}

fn strides() {
    for (stride, count) in [(8 << 10, 2000), (64 << 10, 1000)] {
        helped(&(0..count).map(|n| (n * stride, PAGE)).collect());
    }
    // One column of a matrix after another.
    let stride = 2 << 20;
    let column = |column: u64| (0..SIZE / stride).map(move |n| (n * stride + column * PAGE, PAGE));
    helped(&(0..40).flat_map(column).collect());
}

fn nested() {
    let group = |n: u64| [(n * 20 * 1024, 4096), (n * 20 * 1024 + 4096, 4096)];
    helped(&(0..1000).map(|n| n * 2).flat_map(group).collect());
}

fn cursors() {
    let quarter = SIZE / 4;
    let at = |n: u64| (0..4).map(move |cursor| (cursor * quarter + n * (24 << 10), PAGE));
    helped(&(0..400).flat_map(at).collect());
}

fn gaps() {
    // Runs of 16 reads, with a gap of three times that length between them.
    let run = |n: u64| (0..16).map(move |read| ((n * 64 + read) * 8192, 8192));
    helped(&(0..SIZE / (64 * 8192)).flat_map(run).collect());
}

fn own() {
    let reads: Reads = (0..2000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    let lab = Lab::new();
    lab.program("walker", &[]);
    list(&lab, "list", &reads);
    let command = ["./walker", "list", "data", "64"];
    let plain = lab.plain(&command);
    std::fs::remove_file(lab.path("data")).expect("the data");
    let outcome = lab.run(&command);
    outcome.assert_as(&plain);
    assert_helped(&outcome);
}

fn rewritten() {
    let lab = Lab::new();
    lab.program("walker", &[]);
    list(&lab, "list", &random());
    // Each run's file has another name and the same role.
    let command = ["/bin/sh", "-c", "exec ./walker list swap-$$ 64"];
    let plain = lab.plain(&command);
    let recorded = lab.run(&command);
    recorded.assert_as(&plain);
    recorded.check_mode("recorded");
    let outcome = lab.run(&command);
    outcome.assert_as(&plain);
    let sources = outcome.account["sources"].as_array().expect("sources");
    let rewritten = sources.iter().find(|one| one["name"] == "rewritten");
    let issued = rewritten.and_then(|one| one["ledger"]["issued"].as_u64());
    check!(issued.is_some_and(|issued| issued > 0), "{outcome:?}");
}

/// Reads in no order.
fn random() -> Reads {
    // A step that shares no factor with the number of pages, squared: no two distances are equal.
    let scattered = |n: u64| (n * n * 7919 + n * 31) % (SIZE / PAGE) * PAGE;
    (0..2000).map(|n| (scattered(n), PAGE)).collect()
}

fn nothing() {
    let random = random();
    let sequential: Reads = (0..2000).map(|n| (n * PAGE, PAGE)).collect();
    for reads in [random, sequential] {
        let (_, outcome) = first(&reads, &[]);
        assert!(!outcome.account["recorded"].is_null(), "{outcome:?}");
    }
}

fn unrecorded() {
    // Observation starts only after the program has waited for its device, so the program reads for a while.
    let reads = (0..4000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    let (lab, outcome) = first(&reads, &["--no-record"]);
    check!(outcome.bytes("useful") > 0, "{outcome:?}");
    assert!(lab.records().is_empty());
}

fn recorded_alone() {
    let reads: Reads = (0..1000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    let (_, outcome) = first(&reads, &["--no-prefetch"]);
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    assert!(outcome.account["ledger"].is_null(), "{outcome:?}");
}

fn helped_record() {
    let reads: Reads = (0..2000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    let (lab, outcome) = first(&reads, &[]);
    outcome.check_mode("recorded");
    check!(outcome.bytes("issued") > 0, "{outcome:?}");
    assert!(outcome.says("to keep ahead of the next run"), "{outcome:?}");
    assert!(outcome.says("by signatures"), "{outcome:?}");
    let shown = lab.foreread(&["show"]);
    // The text without its line breaks.
    let shown = foreread_tests::text(&shown.stdout);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("foreread fetched ahead of it"), "{shown}");
    assert!(!shown.contains("cold run"), "{shown}");
    lab.cold(&["data"]);
    let again = lab.run(&["./walker", "list", "data"]);
    again.check_mode("prefetched");
    assert!(again.account["cold_wall_ns"].is_null(), "{again:?}");
    check!(
        again.says("when recorded, with reads fetched ahead"),
        "{again:?}"
    );
}

fn beside_a_record() {
    // The same command reads another file, because its input names another one.
    let reads: Reads = (0..2000).rev().map(|n| (n * 4 * PAGE, PAGE)).collect();
    let lab = Lab::new();
    lab.program("walker", &[]);
    lab.data("data", MIB);
    lab.data("other", MIB);
    list(&lab, "list", &reads);
    let command = ["sh", "-c", "./walker list $(cat name)"];
    lab.write("name", "data");
    lab.cold(&["data"]);
    lab.run(&command);
    lab.write("name", "other");
    let plain = lab.plain(&command);
    lab.cold(&["data", "other"]);
    let outcome = lab.run(&command);
    outcome.assert_as(&plain);
    let sources = outcome.account["sources"].as_array().expect("sources");
    let guessed = sources.iter().find(|one| one["name"] == "signatures");
    let guessed = guessed.and_then(|one| one["ledger"]["useful"].as_u64());
    check!(guessed > Some(0), "{outcome:?}");
}
