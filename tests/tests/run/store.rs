//! A data directory that cannot be written, is full, or at its limit: the program runs as usual, the place is named, and the existing
//! records stay.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{Access, Extent, FileId, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta};
use foreread_tests::{Lab, Need, check, finish, foreread, start, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_file_in_place_of_the_data_directory_is_named",
        ALL,
        &[],
        no_directory,
    ),
    (
        "a_data_directory_that_may_not_be_written_is_named",
        QUICK,
        &[Need::Nobody],
        unwritable,
    ),
    (
        "a_full_data_directory_is_named_and_its_records_stay",
        QUICK,
        &[Need::Root, Need::Command("unshare")],
        full,
    ),
    (
        "a_read_only_data_directory_is_named_once",
        ALL,
        &[Need::Root, Need::Command("unshare")],
        read_only,
    ),
    (
        "at_its_limit_the_store_gives_up_the_records_longest_unused",
        QUICK,
        &[],
        at_the_limit,
    ),
    ("a_limit_that_is_no_size_is_named", ALL, &[], no_limit),
    (
        "without_a_place_for_data_it_stands_aside",
        ALL,
        &[],
        no_place,
    ),
    (
        "what_is_not_a_record_is_left_in_the_store",
        ALL,
        &[],
        strangers,
    ),
    (
        "a_record_named_twice_is_forgotten_once",
        ALL,
        &[],
        twice_named,
    ),
    ("an_empty_name_stands_for_no_record", QUICK, &[], empty_name),
    (
        "names_with_control_characters_stay_on_one_line",
        ALL,
        &[],
        odd_names,
    ),
    (
        "what_a_record_holds_one_of_is_told_in_the_singular",
        ALL,
        &[],
        one_of_each,
    ),
    (
        "what_is_said_to_a_terminal_keeps_to_its_width",
        ALL,
        &[],
        narrow_lines,
    ),
    (
        "a_terminal_of_20_columns_loses_no_command_from_the_list",
        ALL,
        &[Need::Command("script"), Need::Command("stty")],
        narrow_list,
    ),
    (
        "who_asks_for_a_record_of_a_newer_version_by_its_program_hears_that_one_cannot_be_used",
        QUICK,
        &[],
        newer,
    ),
    (
        "the_preload_library_is_no_file_of_the_program",
        ALL,
        &[],
        no_own_library,
    ),
];

const COMMAND: &[&str] = &["cksum", "data"];

fn no_directory() {
    let lab = Lab::new().with_home("file/data".as_ref());
    lab.data("data", 8);
    let file = lab.write("file", "not a folder");
    let plain = lab.plain(COMMAND);
    for _ in 0..2 {
        let outcome = lab.run(COMMAND);
        outcome.assert_as(&plain);
        assert_eq!(outcome.mode(), "aside");
        assert!(
            outcome.reason().contains(file.to_str().unwrap()),
            "{outcome:?}"
        );
    }
    assert_eq!(fs::read(file).expect("our own file"), b"not a folder");
}

fn unwritable() {
    let lab = Lab::of_nobody();
    lab.data("data", 8);
    let plain = lab.plain(COMMAND);
    lab.run(COMMAND);
    let record = fs::read(lab.record()).expect("the record");
    // A folder that cannot be written, and then folders in which none can be created.
    for folder in ["home/foreread/records", "home/foreread", "home"] {
        if folder != "home/foreread/records" {
            fs::remove_dir_all(lab.path(folder)).expect("our own folder");
            fs::create_dir(lab.path(folder)).expect("our own folder");
        }
        fs::set_permissions(lab.path(folder), fs::Permissions::from_mode(0o555)).expect("root");
        std::os::unix::fs::chown(lab.path(folder), Some(0), Some(0)).expect("root");
        let outcome = lab.run(&["cksum", "./data"]);
        assert_eq!(outcome.output.status, plain.status);
        assert_eq!(outcome.stdout().replace("./", ""), text(&plain.stdout));
        let place = lab.path(folder);
        assert!(outcome.says(place.to_str().unwrap()), "{outcome:?}");
        if folder == "home/foreread/records" {
            assert!(fs::read(lab.record()).expect("the record") == record);
        }
    }
}

fn full() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    fs::create_dir(lab.path("home")).expect("a folder");
    let plain = lab.plain(&["./scatter", "1000", "0", "data"]);
    let (command, account) = lab.running(&[], &["./scatter", "1000", "0", "data"]);
    let script = format!(
        "mount -t tmpfs -o size=64k none home || exit 99
         {foreread} run -q -- cksum data > /dev/null
         cat /dev/zero > home/fill 2> /dev/null
         {foreread} run --json home/account.json -- cksum data > /dev/null 2> said
         ls home/*.json > accounts 2> /dev/null
         \"$@\"; status=$?
         {foreread} list --json > listed
         cp home/foreread/records/*.fr kept.fr
         ls -A home/foreread/records > left
         exit $status",
        foreread = foreread().display()
    );
    let mut shell = lab.command("unshare");
    shell
        .args(["-m", "sh", "-c", &script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let outcome = account.of(finish(start(&mut shell)));
    outcome.assert_as(&plain);
    assert_eq!(outcome.mode(), "aside");
    let place = lab.path("home/foreread/records");
    assert!(
        outcome.reason().contains(place.to_str().unwrap()),
        "{outcome:?}"
    );
    let said = fs::read_to_string(lab.path("said")).expect("what was said");
    // On a busy machine foreread did not wait for the account.
    assert!(said.contains("no account"), "{said}");
    let accounts = fs::read_to_string(lab.path("accounts")).expect("what there is");
    assert!(!accounts.contains("account.json"), "{accounts}");
    // The name of a growing record's file would mean nothing to a user.
    assert!(!outcome.reason().contains(".partial-"), "{outcome:?}");
    assert!(
        Reader::open(&lab.path("kept.fr"))
            .expect("the record")
            .is_complete()
    );
    let left = fs::read_to_string(lab.path("left")).expect("what is left");
    assert_eq!(left.lines().count(), 1, "{left}");
}

fn read_only() {
    let lab = Lab::new();
    lab.data("data", 8);
    let records = lab.path("home/foreread/records");
    fs::create_dir_all(&records).expect("a folder");
    let (command, account) = lab.running(&[], COMMAND);
    let mut shell = lab.command("unshare");
    let script = "mount --bind home home && mount -o remount,ro,bind home || exit 99; exec \"$@\"";
    shell
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let outcome = account.of(finish(start(&mut shell)));
    outcome.assert_as(&lab.plain(COMMAND));
    let said = format!(
        "cannot create a record in {}: Read-only file system; not recorded",
        records.display()
    );
    assert_eq!(outcome.reason(), said, "{outcome:?}");
}

fn at_the_limit() {
    let lab = Lab::new();
    lab.data("data", 8);
    let commands: Vec<Vec<String>> = (0..4)
        .map(|n| vec!["cksum".into(), "data".into(), format!("/dev/null/{n}")])
        .collect();
    let run = |lab: &Lab, command: &[String]| {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let outcome = lab.run_with(&["--no-prefetch"], &command);
        outcome.assert_as(&lab.plain(&command));
        outcome.account["recorded"].as_str().map(str::to_owned)
    };
    let records: Vec<_> = commands
        .iter()
        .map(|command| run(&lab, command).expect("a record"))
        .collect();
    let sizes: Vec<u64> = records
        .iter()
        .map(|path| fs::metadata(path).expect("a record").len())
        .collect();
    // Room for all records except the first.
    let lab = lab.with(
        "FOREREAD_STORE_LIMIT",
        sizes[1..].iter().sum::<u64>().to_string(),
    );
    lab.run_with(&["--no-record"], &["true"]);
    let left = lab.records();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left.iter().all(|path| path.to_str() != Some(&records[0])),
        "{left:?}"
    );
    // A new record counts at once, and is the last to be removed.
    let newest = run(&lab, &commands[0]).expect("a record");
    let total = |lab: &Lab| -> u64 {
        let sizes = lab.records().into_iter();
        sizes
            .map(|path| fs::metadata(path).expect("a record").len())
            .sum()
    };
    assert!(fs::metadata(newest).is_ok());
    assert!(total(&lab) <= sizes[1..].iter().sum());
    // No room for any record: every run works as usual, and the reason is reported.
    let lab = lab.with("FOREREAD_STORE_LIMIT", "100");
    for command in &commands {
        assert_eq!(run(&lab, command), None);
        assert!(lab.records().is_empty());
    }
    let outcome = lab.run(COMMAND);
    assert_eq!(outcome.mode(), "aside", "{outcome:?}");
    let said = "more than the 100 B that all records may; not recorded";
    assert!(outcome.reason().contains(said), "{outcome:?}");
}

fn no_limit() {
    let lab = Lab::new().with("FOREREAD_STORE_LIMIT", "plenty");
    lab.data("data", 8);
    let outcome = lab.run(COMMAND);
    outcome.assert_as(&lab.plain(COMMAND));
    assert_eq!(outcome.mode(), "aside");
    assert!(
        outcome.reason().contains("FOREREAD_STORE_LIMIT"),
        "{outcome:?}"
    );
}

fn no_place() {
    let lab = Lab::new();
    lab.data("data", 8);
    let plain = lab.plain(COMMAND);
    let (mut command, account) = lab.running(&[], COMMAND);
    command.env_remove("XDG_DATA_HOME").env_remove("HOME");
    let outcome = account.of(finish(start(&mut command)));
    outcome.assert_as(&plain);
    assert!(outcome.reason().contains("XDG_DATA_HOME"), "{outcome:?}");
}

fn strangers() {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.run(COMMAND);
    let folder = lab.record().parent().expect("the store").to_path_buf();
    for name in ["notes.txt", "0123.fr", ".hidden"] {
        fs::write(folder.join(name), name).expect("our own store");
    }
    let lab = lab.with("FOREREAD_STORE_LIMIT", "1");
    lab.run(COMMAND).assert_as(&lab.plain(COMMAND));
    for name in ["notes.txt", "0123.fr", ".hidden"] {
        assert_eq!(
            fs::read(folder.join(name)).expect("a stranger"),
            name.as_bytes()
        );
    }
}

fn twice_named() {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.run(COMMAND);
    let record = lab.record();
    let id = record
        .file_stem()
        .and_then(|id| id.to_str())
        .expect("an id");
    let size = fs::metadata(&record).expect("the record").len();
    let size = if size < 1024 {
        format!("{size} B")
    } else {
        format!("{:.2} KiB", size as f64 / 1024.0)
    };
    let output = lab.foreread(&["forget", id, &id[..12]]);
    assert_eq!(text(&output.stdout), format!("forgot 1 record, {size}\n"));
    assert!(lab.records().is_empty());
}

/// As of a script's variable that is not set.
fn empty_name() {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.run(COMMAND);
    for command in ["show", "explain", "report", "forget"] {
        let output = lab.foreread(&[command, ""]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
        assert!(
            text(&output.stderr).ends_with("no record \"\"\n"),
            "{output:?}"
        );
    }
    assert_eq!(lab.records().len(), 1);
}

fn odd_names() {
    let lab = Lab::new().with_home("ho\nme".as_ref());
    lab.program("scatter", &[]);
    let odd = "./sc\na\x1b[2Jt";
    fs::rename(lab.path("scatter"), lab.path(odd)).expect("our own program");
    lab.data("da\nta", 8);
    let command = [odd, "500", "50", "da\nta"];
    lab.cold(&["da\nta"]);
    let recorded = lab.run(&command);
    let (_, program) = odd.split_at(2);
    let said = program.replace(char::is_control, "?");
    assert!(recorded.says(&said), "{recorded:?}");
    // The file has changed, so it is named.
    let file = fs::File::options().write(true).open(lab.path("da\nta"));
    file.and_then(|file| file.set_len(9 << 20))
        .expect("our own file");
    lab.cold(&["da\nta"]);
    let (listed, shown) = (lab.foreread(&["list"]), lab.foreread(&["show"]));
    let explained = lab.run_with(&["--explain"], &command);
    check!(explained.says("da?ta: has changed"), "{explained:?}");
    let missing = lab.foreread(&["show", "no\n\x1bfile.fr"]);
    let absent = lab.foreread(&["run", "--", "no\n\x1bprogram"]);
    for text in [
        recorded.stderr(),
        explained.stderr(),
        text(&listed.stdout),
        text(&shown.stdout),
        text(&missing.stderr),
        text(&absent.stderr),
    ] {
        assert!(!text.replace('\n', "").contains(char::is_control), "{text}");
    }
    assert_eq!(recorded.stderr().lines().count(), 1, "{recorded:?}");
    let foreign = |line: &str| !line.starts_with("foreread:");
    assert!(!explained.stderr().lines().any(foreign), "{explained:?}");
    for output in [missing, absent] {
        assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
    }
}

/// Asserts that every line fits into 80 columns, except rows that end with a path: without a terminal, paths are printed whole.
fn assert_narrow(said: &str) {
    let names = |line: &str| {
        line.rsplit(' ')
            .next()
            .is_some_and(|word| word.starts_with('/'))
    };
    let mut long = said.lines().filter(|line| line.chars().count() > 80);
    let long = long.find(|line| !names(line));
    assert_eq!(long, None, "{said}");
}

fn narrow_lines() {
    let lab = Lab::new().with_home("a-rather-long-name-for-a-folder/".repeat(3).as_ref());
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let command = ["./scatter", "500", "50", "data"];
    lab.cold(&["data"]);
    lab.run(&command);
    lab.cold(&["data"]);
    let explained = lab.run_with(&["--explain"], &command);
    check!(explained.says("followed"), "{explained:?}");
    assert_narrow(explained.stderr().split_once('\n').expect("more").1);
    let record = lab.record();
    let mut bytes = fs::read(&record).expect("the record");
    let middle = bytes.len() / 2;
    super::records::damage(&mut bytes, middle);
    fs::write(&record, &bytes).expect("our own store");
    let shown = text(&lab.foreread(&["show"]).stdout);
    let (_, damaged) = shown.split_once("\ndamaged ").expect("a damaged record");
    assert_narrow(damaged);
}

fn narrow_list() {
    let lab = Lab::new();
    lab.run(&["sh", "-c", "cat /etc/passwd # to have a long command"]);
    let list = format!("stty cols 20; {} list", foreread().display());
    let mut script = lab.command("script");
    let shown = finish(start(script.args(["-qec", &list, "/dev/null"])));
    let shown = text(&shown.stdout);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("this terminal has 20"), "{shown}");
    assert!(
        flat.contains("sh -c 'cat /etc/passwd # to have a long command'"),
        "{shown}"
    );
}

fn newer() {
    let lab = Lab::new();
    lab.run(&["sh", "-c", "cat /etc/passwd"]);
    let record = lab.record();
    let mut bytes = fs::read(&record).expect("the record");
    // The byte of the format's version.
    bytes[8] = 99;
    fs::write(&record, &bytes).expect("our own store");
    for command in [
        &["explain", "sh"][..],
        &["forget", "sh"],
        &["export", "sh", "--to", "csv"],
    ] {
        let answer = lab.foreread(command);
        let said = text(&answer.stderr);
        assert_eq!(answer.status.code(), Some(2), "{said}");
        assert!(
            said.contains("; 1 record cannot be used, and may be meant: foreread list"),
            "{said}"
        );
    }
    assert_eq!(fs::read(&record).expect("it stays"), bytes);
}

fn no_own_library() {
    let lab = Lab::new();
    let script = "cat /etc/passwd; until [ -e go ]; do sleep 0.01; done";
    let (mut command, account) = lab.running(&[], &["sh", "-c", script]);
    let child = start(&mut command);
    // The program ends once its mappings were sampled.
    lab.await_recorded("libc.so.6");
    lab.write("go", "");
    account.of(finish(child));
    let shown = text(&lab.foreread(&["show", "--json"]).stdout);
    assert!(shown.contains("passwd"), "{shown}");
    assert!(shown.contains("libc.so"), "{shown}");
    assert!(!shown.contains("foreread_preload"), "{shown}");
}

/// A record with this many reads of one file.
fn record_of(lab: &Lab, reads: u64) -> String {
    let meta = Meta {
        identity: Identity {
            exe: "/bin/tool".into(),
            argv: vec!["tool".into()],
            cwd: "/".into(),
            rank: None,
        },
        recorded_at: 1,
        writer: "test".into(),
    };
    let mut record = RecordFile::create(&lab.path("mine.fr"), &meta, 1 << 20).expect("a record");
    let thread = ThreadMeta {
        pid: 1,
        tid: 1,
        ppid: 0,
        exe: "/bin/tool".into(),
    };
    record.thread(ThreadId(0), thread).expect("a record");
    for n in 0..reads {
        let access = Access {
            file: FileId(0),
            extent: Extent::new(n * 4096, 4096),
            thread: ThreadId(0),
            kind: Kind::Read,
            start: n,
            took: 1,
        };
        record.access(&access).expect("a record");
    }
    record.commit(Summary::default()).expect("a record");
    text(&lab.foreread(&["show", "mine.fr"]).stdout)
}

fn one_of_each() {
    let lab = Lab::new();
    let one = record_of(&lab, 1);
    assert!(
        one.contains("4.00 KiB in 1 read of 1 file by 1 thread of 1 process\n"),
        "{one}"
    );
    let none = record_of(&lab, 0);
    assert!(
        none.contains(" 0 B in 0 reads of 0 files by 1 thread of 1 process\n"),
        "{none}"
    );
    assert!(!none.contains("bytes a read"), "{none}");
}
