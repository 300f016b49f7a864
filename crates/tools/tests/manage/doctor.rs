//! What `doctor` finds.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

use crate::user::User;

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
