//! `foreread sim`, on traces written here.

use std::fmt::Write as _;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Exit status, standard output, standard error.
fn sim(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("foreread")
        .expect("foreread")
        .arg("sim")
        .args(arguments)
        .output()
        .expect("a run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A trace of a build: each unit's compiler opens the unit and the headers, 5 ms apart. Units share all headers but one.
fn build(folder: &TempDir, name: &str, rounds: u32) -> PathBuf {
    let mut text = String::new();
    let mut at = 0;
    let mut call = |pid: u32, call: &str| {
        at += 5;
        let _ = writeln!(
            text,
            "{pid} {}.{:03}000 {call}",
            1_000 + at / 1000,
            at % 1000
        );
    };
    for round in 0..rounds {
        for unit in 0..20 {
            let pid = 100 + round * 20 + unit;
            call(
                pid,
                "execve(\"/usr/bin/cc\", [\"cc\"], 0x7ffe /* 3 vars */) = 0",
            );
            let mut open = |path: &str| {
                call(pid, &format!("openat(AT_FDCWD, \"{path}\", O_RDONLY) = 3"));
            };
            open(&format!("/src/unit{unit}.c"));
            (0..15).for_each(|header| open(&format!("/usr/include/h{header}.h")));
            open(&format!("/src/unit{unit}.h"));
            call(pid, "+++ exited with 0 +++");
        }
    }
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a trace");
    path
}

fn json(arguments: &[&str]) -> Value {
    let (status, out, err) = sim(&[&["--json"], arguments].concat());
    assert_eq!(status, Some(0), "{err}");
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn models_are_compared_by_accuracy_and_lead() {
    let folder = TempDir::new().expect("a folder");
    let (train, test) = (build(&folder, "train", 4), build(&folder, "test", 1));
    let (train, test) = (
        train.to_str().expect("UTF-8"),
        test.to_str().expect("UTF-8"),
    );
    let said = json(&["--train", train, test]);
    assert_eq!(said["events"], 20 * 18);
    let models = said["models"].as_array().expect("models");
    let model = |name: &str| {
        let found = models.iter().find(|model| model["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {models:?}"))
    };
    let accuracy = |name| model(name)["accuracy"].as_f64().expect("a share");
    // Only the unit and the unit's own header differ. Which unit comes next the machine's sequence says, and a pattern
    // that is longer than one event.
    assert!(accuracy("epcm:64/51") > accuracy("last"), "{models:?}");
    assert!(accuracy("epcm:64/51") > 0.9, "{models:?}");
    let ahead = |name| model(name)["ahead"]["median"].as_u64().expect("a number");
    assert_eq!(ahead("pcm:64/8"), 1);
    assert!(ahead("epcm:64/51") >= 4, "{models:?}");
    // Events are 5 ms apart: a file that was predicted n events ahead had 5n ms.
    let lead = |of: &str| {
        model("epcm:64/51")[of]["median"]
            .as_u64()
            .expect("a number")
    };
    let (events, ns) = (lead("lead_events"), lead("lead_ns"));
    assert!(
        events >= 4 && ns.abs_diff(events * 5_000_000) < ns / 100,
        "{events}, {ns}"
    );
    assert_eq!(model("last")["lead_from_10_ms"], 0.0);
    // Cold files are fetched ahead, and none in vain: what is not predicted from 0.55 on is not fetched.
    let cold = model("epcm:64/51");
    assert!(cold["covered"].as_u64() > Some(10), "{cold}");
    assert_eq!(cold["wasted"]["files"], 0);
    assert!(cold["hits"].as_u64() > said["plain_hits"].as_u64());
}

#[test]
fn the_table_fits_a_terminal_and_has_lead_beside_accuracy() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 6);
    let test = test.to_str().expect("UTF-8");
    let (status, out, err) = sim(&[test, "--memory", "64K", "--model", "epcm:4096/4000+64"]);
    assert_eq!(status, Some(0), "{err}");
    let head = out.lines().find(|line| line.starts_with("model "));
    let head = head.expect("a head");
    assert!(head.contains("accuracy") && head.contains("lead"), "{head}");
    let table = out.lines().skip_while(|line| !line.starts_with("model "));
    assert!(table.clone().count() > 5, "{out}");
    assert!(
        table.clone().all(|line| line.chars().count() <= 80),
        "{out}"
    );
    assert!(out.contains("epcm:4096/4000+64"), "{out}");
}

#[test]
fn a_model_that_may_not_learn_knows_nothing_of_what_it_was_not_trained_on() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 3);
    let test = test.to_str().expect("UTF-8");
    let frozen = json(&["--frozen", test]);
    for model in frozen["models"].as_array().expect("models") {
        assert_eq!(model["right"], 0, "{model}");
        assert_eq!(model["issued"]["files"], 0, "{model}");
    }
    let learning = json(&[test]);
    for model in learning["models"].as_array().expect("models") {
        assert!(model["right"].as_u64() > Some(100), "{model}");
    }
}

#[test]
fn what_a_process_opens_first_only_the_machines_sequence_says() {
    let folder = TempDir::new().expect("a folder");
    // Each process opens one file, and the order is the same each time.
    let mut text = String::new();
    for number in 0..200 {
        let call = format!("openat(AT_FDCWD, \"/f{}\", O_RDONLY) = 3", number % 10);
        let _ = writeln!(text, "{} {}.0 {call}", 100 + number, 1000 + number);
    }
    let path = folder.path().join("trace");
    std::fs::write(&path, text).expect("a trace");
    let path = path.to_str().expect("UTF-8");
    let right = |sequences| {
        let said = json(&["--sequences", sequences, "--model", "pcm", path]);
        said["models"][0]["right"].as_u64().expect("a number")
    };
    assert_eq!(right("process"), 0);
    assert_eq!((right("machine"), right("both")), (189, 189));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = TempDir::new().expect("a folder");
    let test = build(&folder, "test", 1);
    let test = test.to_str().expect("UTF-8");
    for (arguments, said) in [
        (&[test, "--model", "lru"][..], "no model"),
        (&[test, "--threshold", "0.5"], "above 0.5"),
        (&["/nowhere/trace"], "/nowhere/trace"),
        (&[], "TRACE"),
    ] {
        let (status, _, err) = sim(arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(err.contains(said), "{err}");
    }
}
