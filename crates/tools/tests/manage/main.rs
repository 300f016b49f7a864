//! `list`, `show`, `forget`, `prune`, `doctor` and the pages, as a user or a script runs them; what all commands do with a
//! standard output that takes nothing; a daemon that cannot start.

mod damaged;
mod doctor;
mod show;
mod user;

use std::fs;

use serde_json::Value;

use self::damaged::version_offset;
use self::user::{A, B, User};

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
fn a_data_directory_that_cannot_be_made_is_named() {
    let user = User::new();
    fs::write(user.home.path().join("foreread"), "in the way").unwrap();
    let error = user.fails(&["list"]);
    assert!(error.contains(user.records().to_str().unwrap()), "{error}");
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
