//! Records that are cut short, changed, foreign or of another version.

use std::fs;

use crate::user::{A, B, User};

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
pub fn version_offset(bytes: &[u8]) -> usize {
    let version = foreread_plan::format::VERSION.to_le_bytes();
    (4..16)
        .find(|&at| bytes[at..at + 2] == version)
        .expect("a version in the header")
}
