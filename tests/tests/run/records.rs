//! Records that are not what foreread wrote: damaged, cut off, foreign. Each costs the speed-up of one run, is named,
//! and is replaced; the others stay as they are. One of a newer foreread stays as well.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use foreread_plan::format::Reader;
use foreread_tests::{Lab, Need, Outcome, check, finish, start, text};

use crate::Test;

pub const TESTS: &[Test] = &[
    (
        "a_record_damaged_in_the_middle_is_named_and_replaced",
        &[],
        damaged,
    ),
    (
        "a_damaged_record_of_files_in_memory_is_named_and_replaced",
        &[],
        damaged_and_hot,
    ),
    ("a_truncated_record_is_named_and_replaced", &[], truncated),
    ("an_empty_record_is_named_and_replaced", &[], empty),
    (
        "foreign_bytes_in_a_records_place_are_named_and_replaced",
        &[],
        foreign,
    ),
    (
        "a_record_of_a_newer_foreread_is_named_and_left_as_it_is",
        &[],
        future,
    ),
    (
        "a_record_damaged_anywhere_harms_nobody",
        &[],
        damaged_anywhere,
    ),
    (
        "something_that_is_no_file_in_a_records_place_is_left_alone",
        &[],
        no_file,
    ),
    (
        "a_pipe_in_a_records_place_is_named_and_replaced",
        &[Need::Command("mkfifo")],
        pipe,
    ),
    (
        "a_record_for_a_place_that_is_no_file_s_is_refused_and_the_program_runs",
        &[Need::Command("mkfifo")],
        no_file_s_place,
    ),
    (
        "a_record_for_a_link_s_place_goes_where_the_link_leads",
        &[],
        link_s_place,
    ),
    (
        "two_runs_of_one_command_at_once_leave_one_whole_record",
        &[],
        two_runs,
    ),
    (
        "two_recordings_at_once_leave_one_whole_record",
        &[],
        two_recordings,
    ),
];

const COMMAND: &[&str] = &["./scatter", "1000", "50", "data"];

/// A lab with the record of [`COMMAND`] and one of another.
fn recorded() -> Lab {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.run(&["cksum", "data"]);
    lab.cold(&["data"]);
    lab.run(COMMAND);
    assert_eq!(lab.records().len(), 2);
    lab
}

/// Spoils the record of [`COMMAND`]; runs it; holds that to everything but the speed-up.
#[track_caller]
fn spoil(lab: &Lab, spoil: impl Fn(Vec<u8>) -> Vec<u8>) -> Outcome {
    let ours =
        |path: &Path| Reader::open(path).is_ok_and(|record| record.meta().identity.argv == COMMAND);
    let (own, other): (Vec<_>, Vec<_>) = lab.records().into_iter().partition(|path| ours(path));
    let (own, other) = (&own[0], &other[0]);
    let kept = fs::read(other).expect("the other record");
    let whole = fs::read(own).expect("the record");
    fs::write(own, spoil(whole)).expect("our own store");
    lab.cold(&["data"]);
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&lab.plain(COMMAND));
    assert!(fs::read(other).expect("the other record") == kept);
    assert_eq!(lab.records().len(), 2, "nothing is left lying about");
    outcome
}

#[track_caller]
fn assert_named_and_replaced(lab: &Lab, outcome: &Outcome, what: &str) {
    let recorded = outcome.account["recorded"].as_str();
    // A program may be through before its record is read as far as the damage.
    check!(recorded.is_some(), "not replaced: {outcome:?}");
    let recorded = recorded.unwrap_or_default();
    check!(
        outcome.reason().contains(recorded),
        "not named: {outcome:?}"
    );
    check!(outcome.reason().contains(what), "{outcome:?}");
    assert_eq!(outcome.stderr().lines().count(), 1, "{outcome:?}");
    lab.cold(&["data"]);
    let next = lab.run(COMMAND);
    next.check_mode("prefetched");
    check!(next.reason().is_empty(), "{next:?}");
    check!(next.coverage() > 0.9, "{next:?}");
}

fn damaged() {
    let lab = recorded();
    let outcome = spoil(&lab, |mut bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        bytes
    });
    assert_named_and_replaced(&lab, &outcome, "damaged at byte");
}

fn damaged_and_hot() {
    let lab = Lab::new();
    lab.data("data", 8);
    let command = ["cat", "data"];
    lab.run(&command);
    let record = lab.record();
    let whole = fs::read(&record).expect("the record");
    let problem = || {
        let listed = lab.foreread(&["list", "--json"]).stdout;
        let listed: serde_json::Value = serde_json::from_slice(&listed).expect("JSON");
        (listed[0]["complete"].clone(), listed[0]["problem"].clone())
    };
    assert_eq!(problem(), (true.into(), serde_json::Value::Null));
    let _held = lab.held(&["data"]);
    // Wherever it lies: the files are in memory whole, so no plan is read.
    for part in 1..10 {
        let mut bytes = whole.clone();
        bytes[whole.len() * part / 10] ^= 0x55;
        fs::write(&record, &bytes).expect("our own store");
        if part == 5 {
            let (complete, said) = problem();
            assert!(complete == false && said.to_string().contains("damaged at byte"));
        }
        let outcome = lab.run(&command);
        outcome.assert_as(&lab.plain(&command));
        check!(
            outcome.reason().contains(record.to_str().unwrap()),
            "{outcome:?}"
        );
        outcome.check_mode("recorded");
        check!(problem().0 == true, "{outcome:?}");
    }
    let hot = lab.run(&command);
    hot.check_mode("aside");
    check!(hot.reason() == "all of it was in memory already", "{hot:?}");
}

fn truncated() {
    let lab = recorded();
    let outcome = spoil(&lab, |bytes| bytes[..bytes.len() / 2].to_vec());
    assert_named_and_replaced(&lab, &outcome, "breaks off after");
}

fn empty() {
    let lab = recorded();
    let outcome = spoil(&lab, |_| Vec::new());
    assert_named_and_replaced(&lab, &outcome, "ends after 0 bytes");
}

fn foreign() {
    let lab = recorded();
    let outcome = spoil(&lab, |bytes| b"\x7fELF not ours ".repeat(bytes.len() / 13));
    assert_named_and_replaced(&lab, &outcome, "not a foreread record");
}

fn future() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.run(COMMAND);
    let record = lab.record();
    // One that comes near enough to be followed in its place.
    lab.run(&["./scatter", "900", "50", "data"]);
    let mut newer = fs::read(&record).expect("the record");
    // The version follows the eight bytes of the magic.
    newer[8] = 0xfe;
    fs::write(&record, &newer).expect("our own store");
    for options in [&[][..], &["--no-prefetch"]] {
        lab.cold(&["data"]);
        let outcome = lab.run_with(options, COMMAND);
        outcome.assert_as(&lab.plain(COMMAND));
        assert_eq!(outcome.mode(), "aside", "{outcome:?}");
        assert!(outcome.account["followed"].is_null(), "{outcome:?}");
        for part in [
            record.to_str().unwrap(),
            "format version 254",
            "left as it is",
        ] {
            assert!(outcome.reason().contains(part), "{outcome:?}");
        }
        assert!(fs::read(&record).expect("the record") == newer);
    }
    assert_eq!(lab.records().len(), 2);
    // Nor does it keep a record from the user's own file.
    let output = lab.foreread(&[&["record", "-o", "mine.fr", "--"], COMMAND].concat());
    assert!(text(&output.stderr).contains("to mine.fr"), "{output:?}");
    assert!(fs::read(&record).expect("the record") == newer);
}

fn damaged_anywhere() {
    let lab = recorded();
    for part in 0..12 {
        spoil(&lab, |mut bytes| {
            let at = bytes.len() * part / 12;
            let end = (at + 16).min(bytes.len());
            bytes[at..end].fill(0xa5);
            bytes
        });
    }
}

fn no_file() {
    let lab = recorded();
    for record in lab.records() {
        fs::remove_file(&record).expect("our own store");
        fs::create_dir(&record).expect("our own store");
    }
    for _ in 0..2 {
        lab.cold(&["data"]);
        let outcome = lab.run(COMMAND);
        outcome.assert_as(&lab.plain(COMMAND));
        assert_ne!(outcome.reason(), "", "{outcome:?}");
    }
    assert!(lab.records().iter().all(|record| record.is_dir()));
}

/// To open a pipe for reading waits until somebody writes.
fn pipe() {
    let lab = recorded();
    for record in lab.records() {
        fs::remove_file(&record).expect("our own store");
        let made = lab.plain(&["mkfifo", record.to_str().expect("a readable path")]);
        assert!(made.status.success());
    }
    lab.cold(&["data"]);
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&lab.plain(COMMAND));
    assert_named_and_replaced(&lab, &outcome, "not a regular file");
}

fn no_file_s_place() {
    let lab = Lab::new();
    lab.data("data", 8);
    let plain = lab.plain(&["cksum", "data"]);
    assert!(lab.plain(&["mkfifo", "pipe"]).status.success());
    symlink("/dev/null", lab.path("null")).expect("a link");
    fs::create_dir(lab.path("folder")).expect("a folder");
    fs::create_dir(lab.path("home")).expect("a folder");
    let all = || {
        let listed = fs::read_dir(lab.path("")).expect("our own folder");
        let mut all: Vec<_> = listed
            .map(|entry| {
                let entry = entry.expect("our own folder");
                (entry.file_name(), entry.metadata().expect("ours").ino())
            })
            .collect();
        all.sort();
        all
    };
    let before = all();
    for name in ["pipe", "null", "folder"] {
        let output = lab.foreread(&["record", "-o", name, "--", "cksum", "data"]);
        assert_eq!(output.status, plain.status);
        assert_eq!(output.stdout, plain.stdout);
        let said = format!("{name} is not a regular file; nothing is recorded");
        assert_eq!(
            text(&output.stderr),
            format!("foreread: stood aside: {said}\n")
        );
        assert_eq!(all(), before);
    }
}

fn link_s_place() {
    let lab = Lab::new();
    lab.data("data", 8);
    fs::create_dir(lab.path("kept")).expect("a folder");
    symlink("kept/mine.fr", lab.path("link")).expect("a link");
    // Where there is none yet, and in the place of the first.
    for _ in 0..2 {
        let output = lab.foreread(&["record", "-o", "link", "--", "cksum", "data"]);
        let said = text(&output.stderr);
        assert!(said.ends_with("to kept/mine.fr\n"), "{said}");
        assert!(lab.path("link").is_symlink());
        let record = Reader::open(&lab.path("kept/mine.fr")).expect("a record");
        assert!(record.is_complete());
        assert_eq!(fs::read_dir(lab.path("kept")).expect("ours").count(), 1);
    }
}

fn two_runs() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let plain = lab.plain(COMMAND);
    for _ in 0..3 {
        lab.cold(&["data"]);
        let started: Vec<_> = (0..2)
            .map(|_| {
                let (mut command, account) = lab.running(&[], COMMAND);
                (start(&mut command), account)
            })
            .collect();
        for (child, account) in started {
            account.of(finish(child)).assert_as(&plain);
        }
        let record = Reader::open(&lab.record()).expect("a sound record");
        assert!(record.is_complete());
    }
    let _held = lab.held(&["data", "scatter"]);
    lab.run(COMMAND).check_mode("aside");
}

fn two_recordings() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let plain = lab.plain(COMMAND);
    let line: Vec<_> = [&["record", "--"], COMMAND].concat();
    let started: Vec<_> = (0..3)
        .map(|_| start(lab.command(foreread_tests::foreread()).args(&line)))
        .collect();
    for child in started {
        let output = finish(child);
        assert!(output.stdout == plain.stdout && output.status == plain.status);
    }
    assert!(
        Reader::open(&lab.record())
            .expect("a sound record")
            .is_complete()
    );
    // On a busy machine the program may be through before anything has been fetched for it.
    let helps = |_| {
        lab.cold(&["data"]);
        lab.run(COMMAND).mode() == "prefetched"
    };
    check!((0..5).any(helps));
}
