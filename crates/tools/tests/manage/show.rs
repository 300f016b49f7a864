//! What `list` and `show` say of sound records, and how they fit it on a terminal.

use serde_json::Value;

use crate::user::{A, User, write_record};

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
