//! Records that foreread did not write in this form: damaged, cut off, foreign. Each costs the speed-up of one run, is named, and is
//! replaced; the others stay unchanged. A record of a newer foreread also stays.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use foreread_plan::format::{MAX_ID, Reader, RecordFile};
use foreread_plan::{FileId, FileMeta, Summary};
use foreread_tests::{Lab, Need, Outcome, check, eventually, finish, foreread, start, text};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_record_damaged_in_the_middle_is_named_and_replaced",
        QUICK,
        &[],
        damaged,
    ),
    (
        "a_damaged_record_of_files_in_memory_is_named_and_replaced",
        QUICK,
        &[],
        damaged_and_hot,
    ),
    (
        "a_truncated_record_is_named_and_replaced",
        QUICK,
        &[],
        truncated,
    ),
    ("an_empty_record_is_named_and_replaced", QUICK, &[], empty),
    (
        "foreign_bytes_in_a_records_place_are_named_and_replaced",
        QUICK,
        &[],
        foreign,
    ),
    (
        "a_record_of_a_newer_foreread_is_named_and_left_as_it_is",
        QUICK,
        &[],
        future,
    ),
    (
        "a_record_damaged_anywhere_harms_nobody",
        QUICK,
        &[],
        damaged_anywhere,
    ),
    (
        "something_that_is_no_file_in_a_records_place_is_left_alone",
        QUICK,
        &[],
        no_file,
    ),
    (
        "a_pipe_in_a_records_place_is_named_and_replaced",
        QUICK,
        &[Need::Command("mkfifo")],
        pipe,
    ),
    (
        "a_record_for_a_place_that_is_no_file_s_is_refused_and_the_program_runs",
        QUICK,
        &[Need::Command("mkfifo")],
        no_file_s_place,
    ),
    (
        "a_record_for_a_link_s_place_goes_where_the_link_leads",
        QUICK,
        &[],
        link_s_place,
    ),
    (
        "two_runs_of_one_command_at_once_leave_one_whole_record",
        QUICK,
        &[],
        two_runs,
    ),
    (
        "two_recordings_at_once_leave_one_whole_record",
        QUICK,
        &[],
        two_recordings,
    ),
    (
        "a_run_in_another_pid_namespace_leaves_a_growing_record_alone",
        QUICK,
        &[Need::Root, Need::PidNamespace],
        other_namespace,
    ),
    (
        "a_record_written_to_fill_the_memory_is_named_and_does_not",
        QUICK,
        &[],
        hostile,
    ),
    (
        "a_password_on_the_command_line_is_nowhere_in_the_store",
        QUICK,
        &[],
        redacted,
    ),
];

const COMMAND: &[&str] = &["./scatter", "1000", "50", "data"];

/// A lab with the record of [`COMMAND`] and one of another command.
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

/// Spoils the record of [`COMMAND`], runs the command, and checks that only the speed-up is lost.
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
    // A program may end before its record is read up to the damage.
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
}

/// Damages a record at a place. A single damaged byte may be in a frame's length, and then the record seems to break off.
pub fn damage(record: &mut [u8], at: usize) {
    for byte in &mut record[at..at + 4] {
        *byte ^= 0x55;
    }
}

fn damaged() {
    let lab = recorded();
    let outcome = spoil(&lab, |mut bytes| {
        let middle = bytes.len() / 2;
        damage(&mut bytes, middle);
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
    // At any place: the files are in memory as a whole, so the plan is not read.
    for part in 1..10 {
        let mut bytes = whole.clone();
        damage(&mut bytes, whole.len() * part / 10);
        fs::write(&record, &bytes).expect("our own store");
        if part == 5 {
            let (complete, said) = problem();
            let said = said.to_string();
            assert!(
                complete == false && said.contains("damaged at byte"),
                "{said}"
            );
        }
        let outcome = lab.run(&command);
        outcome.assert_as(&lab.plain(&command));
        check!(
            outcome.reason().contains(record.to_str().unwrap()),
            "{outcome:?}"
        );
        // If the sample was sound, the program was left alone, and its next run is recorded.
        lab.run(&command);
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
    // A record that is similar enough to be followed in its place.
    lab.run(&["./scatter", "900", "50", "data"]);
    let mut newer = fs::read(&record).expect("the record");
    // The version follows the eight bytes of the magic.
    newer[8] = 0xfe;
    fs::write(&record, &newer).expect("our own store");
    for options in [&[][..], &["--no-prefetch"]] {
        lab.cold(&["data"]);
        let outcome = lab.run_with(options, COMMAND);
        outcome.assert_as(&lab.plain(COMMAND));
        // Prediction from the program's own reads still helps it.
        assert_ne!(outcome.mode(), "recorded", "{outcome:?}");
        assert!(outcome.account["recorded"].is_null(), "{outcome:?}");
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
    // Recording to the user's own file still works.
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

/// Opening a pipe for reading waits for a writer.
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
    // First where no file exists yet, then in place of the first one.
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
    // If the disk is busy, a record may come a moment later.
    eventually("one whole record", || {
        let records = lab.records();
        records.len() == 1 && Reader::open(&records[0]).is_ok_and(|record| record.is_complete())
    });
    // On a busy machine the program may end before anything has been fetched for it.
    let helps = |_| {
        lab.cold(&["data"]);
        lab.run(COMMAND).mode() == "prefetched"
    };
    check!((0..5).any(helps));
}

/// In the other namespace the recorder's number is not in use.
fn other_namespace() {
    let lab = Lab::new();
    lab.data("data", 8);
    let script =
        "cat /etc/passwd; sleep 0.6; echo ready; until [ -e go ]; do sleep 0.01; done; cksum data";
    let command = ["sh", "-c", script];
    let (mut running, account) = lab.running(&[], &command);
    let child = start(&mut running);
    let folder = lab.path("home/foreread/records");
    let growing = || -> Vec<_> {
        let listed = fs::read_dir(&folder).into_iter().flatten().flatten();
        let paths = listed.map(|entry| entry.path());
        let is_partial = |path: &PathBuf| path.to_string_lossy().contains(".partial-");
        paths.filter(is_partial).collect()
    };
    eventually("a record grows", || {
        growing()
            .iter()
            .any(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 500))
    });
    let before = growing();
    let mut shell = lab.command("unshare");
    shell.args(["-p", "-f", "--mount-proc"]).arg(foreread());
    // A program without a record: leftovers of killed recorders are sought before it starts, and after its end.
    let elsewhere = finish(start(shell.args(["run", "--", "cat", "/etc/group"])));
    assert!(elsewhere.status.success(), "{elsewhere:?}");
    assert_eq!(growing(), before, "{elsewhere:?}");
    fs::write(lab.path("go"), "").expect("our own file");
    let outcome = account.of(finish(child));
    assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
    let record = outcome.account["recorded"].as_str().expect("a record");
    let mut record = Reader::open(Path::new(record)).expect("the record");
    assert!(record.is_complete() && record.check().is_ok());
    assert!(growing().is_empty());
}

/// The largest resident size of a foreread run, its helper included, in bytes.
fn peak_of(lab: &Lab, args: &[&str]) -> (u64, Output) {
    let mut command = lab.command("python3");
    // RUSAGE_CHILDREN has the largest of the ended children and their own ended children.
    let measure = "import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code)";
    let output = finish(start(
        command.args(["-c", measure]).arg(foreread()).args(args),
    ));
    let said = text(&output.stdout);
    let peak = said.lines().last().and_then(|line| line.parse().ok());
    (peak.unwrap_or_else(|| panic!("{output:?}")), output)
}

/// A record with six bytes per file on disk, which would take hundreds of bytes each in memory if it were trusted.
fn hostile() {
    let lab = Lab::new();
    lab.data("data", 8);
    let command = ["run", "--", "cksum", "data"];
    let (usual, _) = peak_of(&lab, &command);
    let path = lab.record();
    let reader = Reader::open(&path).expect("the record");
    let mut record = RecordFile::create(&path, reader.meta(), u64::MAX).expect("a record");
    for number in 0..MAX_ID {
        // As similar to the one before as possible.
        let meta = FileMeta::regular(format!("/{}", number % 2), (1, 1), 1, 0);
        record.file(FileId(number), meta).expect("a record");
    }
    record.commit(Summary::default()).expect("a record");
    let size = fs::metadata(&path).expect("the record").len();
    let (peak, output) = peak_of(&lab, &command);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(path.to_str().expect("a path")), "{said}");
    assert!(
        said.contains("the memory for its files and threads in bytes is"),
        "{said}"
    );
    let bound = usual + 16 * size + (32 << 20);
    println!("{size} bytes on disk: {peak} bytes in memory, of {bound}, {usual} without");
    assert!(peak < bound, "{peak} bytes in memory, of {bound}");
}

/// The secret is not in the record, nor in the notes beside it, whether a record is made, followed or sought.
fn redacted() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let secret = "correct-horse-battery";
    let spoken = |folder: &Path| -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = fs::read(path).expect("our own store");
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        files_below(folder).into_iter().filter(holds).collect()
    };
    let command = ["./scatter", "500", "50", "data", secret];
    let other = ["./scatter", "500", "50", "data", "another-secret"];
    for options in [&["--redact"][..], &[], &["--redact"]] {
        let lab = if options.is_empty() {
            &Lab::new().with("FOREREAD_REDACT", "1")
        } else {
            &lab
        };
        if options.is_empty() {
            lab.program("scatter", &[]);
            lab.data("data", 8);
        }
        for again in [false, true] {
            lab.cold(&["data"]);
            let outcome = lab.run_with(options, &command);
            outcome.assert_as(&lab.plain(&command));
            if again {
                outcome.check_mode("prefetched");
                check!(outcome.reason().is_empty(), "{outcome:?}");
            }
        }
        lab.cold(&["data"]);
        let near = lab.run_with(options, &other);
        near.check_mode("prefetched");
        assert_eq!(spoken(&lab.path("home")), Vec::<PathBuf>::new());
        for report in [
            &["list"][..],
            &["list", "--json"],
            &["show"],
            &["show", "--json"],
        ] {
            let said = text(&lab.foreread(report).stdout);
            assert!(
                said.contains("redacted:") && !said.contains(secret),
                "{said}"
            );
        }
        let found = lab.foreread(&[&["show", "--"], &command[..]].concat());
        assert!(
            found.status.success() && found.stderr.is_empty(),
            "{found:?}"
        );
    }
    // Without --redact the arguments are kept, which is why the manual mentions it.
    lab.run(&command);
    assert!(!spoken(&lab.path("home")).is_empty());
    assert!(text(&lab.foreread(&["run", "--help"]).stdout).contains("passwords"));
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("our own folder");
    let paths = entries.map(|entry| entry.expect("our own folder").path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
