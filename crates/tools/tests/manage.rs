//! `list`, `show`, `forget`, `prune`, `doctor` and the pages, as a user or a script runs them; what all commands do with a
//! standard output that takes nothing; a daemon that cannot start.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use foreread_plan::format::RecordFile;
use foreread_plan::{
    Access, Extent, FileId, FileMeta, Identity, Kind, Meta, Summary, ThreadId, ThreadMeta,
};
use serde_json::Value;

/// A user with a data directory of their own.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn records(&self) -> PathBuf {
        self.home.path().join("foreread/records")
    }

    fn foreread(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("foreread").unwrap();
        command
            .env("XDG_DATA_HOME", self.home.path())
            .env_remove("FOREREAD_STORE_LIMIT")
            .args(args);
        command
    }

    /// Standard output of a command that succeeds.
    fn says(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a command that fails with status 2.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(2).get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    }

    /// Standard error of a command that fails with status 1.
    fn is_unable(&self, args: &[&str]) -> String {
        let output = self.foreread(args).assert().code(1).get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(args)).unwrap()
    }

    /// Keeps a record of a backward and a sequential reader under `id`.
    fn keep(&self, id: &str, argv: &[&str]) -> PathBuf {
        let path = self.records().join(format!("{id}.fr"));
        fs::create_dir_all(self.records()).unwrap();
        write_record(&path, argv);
        path
    }
}

fn write_record(path: &Path, argv: &[&str]) {
    let meta = Meta {
        identity: Identity {
            exe: "/usr/bin/reader".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: "/srv".into(),
            rank: None,
        },
        recorded_at: 1_700_000_000,
        writer: "foreread test".into(),
    };
    let mut record = RecordFile::create(path, &meta, u64::MAX).unwrap();
    for (id, name) in [(0, "/srv/backward.db"), (1, "/srv/forward.log")] {
        let file = FileMeta::regular(name, (1, id), 1 << 20, 0);
        record.file(FileId(id as u32), file).unwrap();
    }
    let thread = ThreadMeta {
        pid: 41,
        tid: 41,
        ppid: 1,
        exe: "/usr/bin/reader".into(),
    };
    record.thread(ThreadId(0), thread).unwrap();
    let mut now = 0;
    let mut read = |file, offset, len| {
        now += 1_000_000;
        let access = Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: now,
            took: 100_000,
        };
        record.access(&access).unwrap();
    };
    for page in (0..100).rev() {
        read(0, page * 4096, 4096);
    }
    for block in 0..10 {
        read(1, block * 1000, 1000);
    }
    let summary = Summary {
        wall_ns: 120_000_000,
        read_ns: 11_000_000,
        exit_status: Some(0),
        ..Summary::default()
    };
    record.commit(summary).unwrap();
}

const A: &str = "0123456789abcdef";
const B: &str = "0123456789ffffff";

#[test]
fn a_new_user_is_told_what_to_do() {
    let user = User::new();
    assert!(user.says(&["list"]).contains("foreread run -- COMMAND"));
    assert_eq!(user.json(&["list", "--json"]), Value::Array(vec![]));
    let error = user.fails(&["show"]);
    assert!(error.starts_with("foreread: ") && error.contains("foreread/records"));
}

#[test]
fn output_that_cannot_be_written_fails_a_command_and_is_named() {
    let user = User::new();
    let trace = user.home.path().join("trace");
    let call = r#"openat(AT_FDCWD, "/srv/data", O_RDONLY) = 3"#;
    fs::write(&trace, format!("1 1000.000000 {call}\n")).unwrap();
    let trace = trace.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["help", "run"],
        &["run", "--help"],
        &["daemon", "start", "--help"],
        &["list"],
        &["list", "--json"],
        &["show"],
        &["show", "--json"],
        &["explain"],
        &["explain", "--json"],
        &["report", "-o", "-"],
        &["report", "--json"],
        &["report", "--csv", "files"],
        &["report", "--svg", "files"],
        &["doctor"],
        &["doctor", "--json"],
        &["analyze", trace],
        &["analyze", "--json", trace],
        &["sim", trace],
        &["sim", "--json", trace],
        &["predict", "--json", trace],
        &["man"],
        &["completions", "bash"],
        &["slowdisk", "models"],
        &["prune"],
        // The last: others show the record.
        &["forget", "--all"],
    ];
    user.keep(A, &["reader"]);
    for words in commands {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("foreread"))
            .env("XDG_DATA_HOME", user.home.path())
            .args(*words)
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        let is_named = said.starts_with("foreread: standard output: ")
            && said.ends_with("No space left on device\n");
        assert!(is_named, "{words:?}: {said}");
    }
}

#[test]
fn a_daemon_makes_no_folder_for_a_socket_that_is_named() {
    let user = User::new();
    let folder = user.home.path().join("x/y");
    let socket = folder.join("z.sock").display().to_string();
    let state = user.home.path().join("state").display().to_string();
    for command in ["run", "start"] {
        let words = ["daemon", command, "--socket", &socket, "--state", &state];
        let mut run = user.foreread(&words);
        // A daemon that starts all the same runs until somebody stops it.
        let run = run.timeout(std::time::Duration::from_secs(20));
        let output = run.assert().code(1).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        let named = format!("{}: No such file or directory\n", folder.display());
        assert!(said.ends_with(&named), "{said}");
        assert!(!user.home.path().join("x").exists(), "{command}");
    }
}

#[test]
fn show_and_doctor_keep_to_a_narrow_terminal_and_announce_what_is_wider() {
    let user = User::new();
    user.keep(A, &["reader", "--verbose", "--of", "some", "thing"]);
    let program = assert_cmd::cargo::cargo_bin("foreread");
    for command in ["show", "doctor"] {
        let line = format!("stty cols 40; '{}' {command}", program.display());
        let shown = std::process::Command::new("script")
            .env("XDG_DATA_HOME", user.home.path())
            .args(["-qec", &line, "/dev/null"])
            .output();
        let Ok(shown) = shown else { return };
        let text = String::from_utf8(shown.stdout).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let announced = lines
            .iter()
            .position(|line| line.starts_with("The tables below take"));
        // Without a device there is no table.
        let head = &lines[..announced.unwrap_or(lines.len())];
        let fits = |line: &&str| line.chars().count() <= 40 || !line.trim().contains(' ');
        let is_path = |line: &&str| line.contains('/');
        assert!(
            head.iter().all(|line| fits(line) || is_path(line)),
            "{text}"
        );
        assert!(head.len() > 5, "{text}");
    }
}

#[test]
fn list_is_whole_into_a_pipe_cut_to_a_terminal_and_its_json_has_everything() {
    let user = User::new();
    let long = "x".repeat(200);
    user.keep(A, &["reader", "--file", &long]);
    let text = user.says(&["list"]);
    assert!(text.contains(A) && text.contains("410 KiB"), "{text}");
    assert!(text.contains(&long), "{text}");
    // script(1) gives it a terminal.
    let program = assert_cmd::cargo::cargo_bin("foreread");
    let line = format!("stty cols 60; '{}' list", program.display());
    let shown = std::process::Command::new("script")
        .env("XDG_DATA_HOME", user.home.path())
        .args(["-qec", &line, "/dev/null"])
        .output();
    if let Ok(shown) = shown {
        let text = String::from_utf8(shown.stdout).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(A)).collect();
        let fits = |line: &&str| line.trim_end().chars().count() <= 60;
        assert!(!lines.is_empty() && lines.iter().all(fits), "{text}");
    }
    let listed = &user.json(&["list", "--json"])[0];
    assert_eq!(listed["id"], A);
    assert_eq!(listed["complete"], true);
    assert_eq!(listed["identity"]["argv"][2], long.as_str());
    assert_eq!(listed["summary"]["bytes"], 100 * 4096 + 10 * 1000);
    assert_eq!(listed["problem"], Value::Null);
}

#[test]
fn show_tells_files_and_patterns_apart() {
    let user = User::new();
    // Called by a link's name, as sh is dash.
    user.keep(A, &["/srv/bin/rd", "select *"]);
    for name in [A, "0123", "reader", "rd"] {
        let text = user.says(&["show", name]);
        assert!(text.contains("rd 'select *'"), "{text}");
        assert!(text.contains("100 % back 4.00 KiB"), "{text}");
        assert!(text.contains("100 % sequential"), "{text}");
        // What the user may want to copy is in full, however long.
        for line in text.lines().filter(|line| !line.starts_with("record ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    let shown = user.json(&["show", "--json"]);
    let (most, least) = (&shown["files"][0], &shown["files"][1]);
    assert_eq!(most["path"], "/srv/backward.db");
    assert_eq!(most["reads"], 100);
    assert_eq!(most["stride"], -4096);
    assert_eq!(most["backward_share"], 1.0);
    assert_eq!(least["sequential_share"], 1.0);
    assert_eq!(least["order"], 2);
    assert_eq!(least["calls"]["pread"], 10);
    assert_eq!(shown["processes"][0]["pid"], 41);
}

#[test]
fn show_breaks_a_long_command_between_its_words() {
    let user = User::new();
    let words: Vec<String> = (0..20).map(|n| format!("--option-{n}")).collect();
    let argv: Vec<&str> = words.iter().map(String::as_str).collect();
    user.keep(A, &argv);
    let text = user.says(&["show"]);
    let (command, _) = text.split_once("\nprogram").unwrap();
    assert!(command.lines().count() > 2, "{command}");
    let fits = |line: &str| line.chars().count() <= 80;
    assert!(command.lines().all(fits), "{command}");
    let told: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert_eq!(told, argv);
}

#[test]
fn show_draws_a_backward_reader_from_the_end_to_the_start() {
    let user = User::new();
    user.keep(A, &["reader"]);
    let text = user.says(&["show"]);
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("start of file"))
        .take(8)
        .map(|line| line.split_once('|').unwrap().1)
        .collect();
    let first_mark = |row: &str| row.find(|c| c != ' ').unwrap();
    assert!(first_mark(rows[0]) > first_mark(rows[7]), "{text}");
}

#[test]
fn show_opens_a_record_by_its_path() {
    let user = User::new();
    let path = user.home.path().join("mine.fr");
    write_record(&path, &["reader"]);
    let text = user.says(&["show", path.to_str().unwrap()]);
    assert!(text.contains("/srv/backward.db"));
    let missing = user.fails(&["show", "/no/such.fr"]);
    assert!(missing.contains("/no/such.fr"), "{missing}");
}

#[test]
fn show_finds_the_record_of_a_command_or_says_there_is_none() {
    let user = User::new();
    user.keep(A, &["reader"]);
    let error = user.fails(&["show", "--", "cat", "something"]);
    assert!(error.contains("no record of cat something"), "{error}");
}

#[test]
fn a_truncated_record_is_shown_as_far_as_it_goes() {
    let user = User::new();
    let path = user.keep(A, &["reader"]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let text = user.says(&["show"]);
    assert!(
        text.contains("cut short") && text.contains("backward.db"),
        "{text}"
    );
    assert_eq!(user.json(&["list", "--json"])[0]["complete"], false);
}

#[test]
fn list_and_show_count_the_same_files_wherever_a_record_breaks_off() {
    let user = User::new();
    let path = user.keep(A, &["reader"]);
    let whole = fs::read(&path).unwrap();
    let mut counts = std::collections::BTreeSet::new();
    for len in (0..=whole.len()).rev().step_by(5) {
        fs::write(&path, &whole[..len]).unwrap();
        let listed = user.says(&["list"]);
        let line = listed.lines().find(|line| line.starts_with(A)).unwrap();
        if line.contains("unusable") {
            break;
        }
        let files = line[29..].split_whitespace().next().unwrap().to_owned();
        let count = user.json(&["show", "--json"])["files"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(files, count.to_string(), "{len}: {listed}");
        counts.insert(count);
    }
    assert!(counts.len() > 1, "{counts:?}");
}

#[test]
fn no_cut_or_flipped_byte_of_a_record_makes_a_command_crash() {
    let user = User::new();
    let path = user.keep(A, &["reader"]);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 24) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        for bytes in [&whole[..at], &flipped] {
            fs::write(&path, bytes).unwrap();
            user.says(&["list"]);
            let output = user.foreread(&["show", A]).output().unwrap();
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 2)), "byte {at}: {code:?}");
            if code == Some(2) {
                let said = String::from_utf8(output.stderr).unwrap();
                assert!(said.contains(path.to_str().unwrap()), "{said}");
            }
        }
    }
}

#[test]
fn unusable_records_are_named_and_the_others_listed() {
    let user = User::new();
    user.keep(A, &["reader"]);
    let foreign = user.records().join(format!("{B}.fr"));
    fs::write(&foreign, "this is no record, whatever it is called\n").unwrap();
    let text = user.says(&["list"]);
    assert!(
        text.contains(A) && text.contains("unusable: not a record"),
        "{text}"
    );
    let error = user.fails(&["show", B]);
    assert!(error.contains(foreign.to_str().unwrap()), "{error}");
    assert!(foreign.exists());
}

#[test]
fn a_record_of_a_newer_version_is_said_to_be_one() {
    let user = User::new();
    let path = user.keep(A, &["reader"]);
    let mut bytes = fs::read(&path).unwrap();
    let version = version_offset(&bytes);
    bytes[version..version + 2].copy_from_slice(&999u16.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let error = user.fails(&["show", A]);
    assert!(error.contains("version 999"), "{error}");
    assert!(user.says(&["list"]).contains("of version 999"));
}

/// Where the version stands: the two bytes after the magic that hold it.
fn version_offset(bytes: &[u8]) -> usize {
    let version = foreread_plan::format::VERSION.to_le_bytes();
    (4..16)
        .find(|&at| bytes[at..at + 2] == version)
        .expect("a version in the header")
}

#[test]
fn forget_deletes_what_it_is_told_and_nothing_when_unsure() {
    let user = User::new();
    let (a, b) = (
        user.keep(A, &["reader", "a"]),
        user.keep(B, &["reader", "b"]),
    );
    let error = user.fails(&["forget", "0123"]);
    assert!(error.contains("2 records begin with"), "{error}");
    let error = user.fails(&["forget", A, "no-such-id"]);
    assert!(error.contains("no-such-id") && a.exists() && b.exists());
    let error = user.fails(&["forget", "reader"]);
    let ids = format!("have the ids {}, {}", &A[..12], &B[..12]);
    let other = format!("have the ids {}, {}", &B[..12], &A[..12]);
    assert!(error.contains(&ids) || error.contains(&other), "{error}");
    assert!(user.says(&["forget", A]).contains("forgot 1 record"));
    assert!(!a.exists() && b.exists());
    user.says(&["forget", "--all"]);
    assert!(!b.exists());
}

#[test]
fn prune_keeps_to_the_size_asked_for() {
    let user = User::new();
    let (a, b) = (
        user.keep(A, &["reader", "a"]),
        user.keep(B, &["reader", "b"]),
    );
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 86_400);
    fs::File::open(&a).unwrap().set_modified(old).unwrap();
    assert!(
        user.says(&["prune", "--max-size", "1G"])
            .contains("deleted 0")
    );
    assert!(
        user.says(&["prune", "--older-than", "30d"])
            .contains("deleted 1")
    );
    assert!(!a.exists() && b.exists());
    user.says(&["prune", "--max-size", "0"]);
    assert!(!b.exists());
    user.foreread(&["prune", "--max-size", "lots"])
        .assert()
        .code(2);
}

#[test]
fn who_lists_a_store_above_its_limit_deletes_nothing() {
    let user = User::new();
    let path = user.keep(A, &["reader"]);
    user.foreread(&["list"])
        .env("FOREREAD_STORE_LIMIT", "100")
        .assert()
        .success();
    assert!(path.exists());
    let output = user
        .foreread(&["list"])
        .env("FOREREAD_STORE_LIMIT", "plenty")
        .assert()
        .code(2)
        .get_output()
        .clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("FOREREAD_STORE_LIMIT") && said.contains("plenty"));
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let user = User::new();
    fs::write(user.home.path().join("foreread"), "in the way").unwrap();
    let error = user.fails(&["list"]);
    assert!(error.contains(user.records().to_str().unwrap()), "{error}");
}

#[test]
fn doctor_says_what_is_missing_and_what_it_costs() {
    let user = User::new();
    let output = user
        .foreread(&["doctor", "--json"])
        .env("FOREREAD_PRELOAD", "/no/such/library.so")
        .assert()
        .code(1)
        .get_output()
        .clone();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["works"], false);
    let checks = found["checks"].as_array().unwrap();
    let named = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    let library = named("preload library");
    assert_eq!(library["available"], false);
    assert!(
        library["detail"]
            .as_str()
            .unwrap()
            .contains("/no/such/library.so")
    );
    assert!(!library["cost"].as_str().unwrap().is_empty());
    assert_eq!(named("records")["available"], true);
    assert!(found["memory_available"].as_u64().unwrap() > 0);
}

#[test]
fn doctor_gives_the_systems_reasons_without_their_numbers() {
    let user = User::new();
    // Root without its capabilities; others have none to lose.
    let script =
        "setpriv --bounding-set=-all true 2> /dev/null && drop='setpriv --bounding-set=-all'
                  $drop \"$1\" doctor";
    let foreread = Command::cargo_bin("foreread").unwrap();
    let output = Command::new("sh")
        .env("XDG_DATA_HOME", user.home.path())
        .args(["-c", script, "sh"])
        .arg(foreread.get_program())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("NO   fanotify"), "{text}");
    assert!(!text.contains("os error"), "{text}");
}

#[test]
fn doctor_sees_a_library_that_the_loader_refuses() {
    let user = User::new();
    let library = user.home.path().join("broken.so");
    fs::write(&library, "no library").unwrap();
    let output = user
        .foreread(&["doctor"])
        .env("FOREREAD_PRELOAD", &library)
        .assert()
        .code(1)
        .get_output()
        .clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("NO   preload library") && text.contains("broken.so"),
        "{text}"
    );
}

#[test]
fn doctor_and_help_fit_eighty_columns() {
    let user = User::new();
    let output = user.foreread(&["doctor"]).output().unwrap();
    let help = user.says(&["run", "--help"]);
    let text = String::from_utf8(output.stdout).unwrap() + &help;
    // A path is never broken, so a word may be longer than a line.
    for line in text.lines().filter(|line| !line.contains('/')) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let user = User::new();
    let commands = [
        "run", "record", "list", "show", "explain", "report", "forget", "prune", "doctor",
        "slowdisk",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let script = user.says(&["completions", shell]);
        for command in commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let folder = user.home.path().join("man");
    user.says(&["man", "--output", folder.to_str().unwrap()]);
    assert!(folder.join("foreread.1").exists());
    for command in commands {
        let page = folder.join(format!("foreread-{command}.1"));
        assert!(page.exists(), "{}", page.display());
    }
    assert!(user.says(&["man"]).contains(".TH foreread"));
}

#[test]
fn a_report_cut_short_by_its_reader_is_no_failure() {
    let user = User::new();
    for n in 0..300 {
        let name = format!("{n:016x}.fr");
        fs::create_dir_all(user.records()).unwrap();
        fs::write(user.records().join(name), "").unwrap();
    }
    let exe = assert_cmd::cargo::cargo_bin("foreread");
    let script = format!(
        "{} list --json | head -c 10; echo ${{PIPESTATUS[0]}}",
        exe.display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("XDG_DATA_HOME", user.home.path())
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("0\n"));
}

#[test]
fn a_report_is_one_file_and_none_is_left_where_it_cannot_be_made() {
    let user = User::new();
    let path = user.keep(A, &["reader", "a b"]);
    let page = user.home.path().join("page.html");
    let out = page.to_str().unwrap();
    assert!(user.says(&["report", A, "-o", out]).starts_with(out));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("/srv/backward.db") && text.ends_with("</html>\n"));
    assert!(text.contains("No account of a run"), "{text}");
    let explained = user.says(&["explain", "reader"]);
    assert!(explained.contains("/srv/backward.db"), "{explained}");
    // What is refused leaves an earlier page as it was.
    let mut bytes = fs::read(&path).unwrap();
    let version = version_offset(&bytes);
    bytes[version..version + 2].copy_from_slice(&999u16.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let error = user.fails(&["report", A, "-o", out]);
    assert!(error.contains("version 999"), "{error}");
    let error = user.fails(&["explain", "no-such"]);
    assert!(error.contains("no-such"), "{error}");
    let error = user.fails(&["report", "--", "cat", "something"]);
    assert!(error.contains("no record of cat something"), "{error}");
    assert_eq!(fs::read_to_string(&page).unwrap(), text);
    user.keep(A, &["reader"]);
    let error = user.is_unable(&["report", A, "-o", "/dev/full"]);
    assert!(error.contains("/dev/full: is no regular file"), "{error}");
}
