//! `calibrate` for real, on the file system the build tree is on, and what is made of its file.
//!
//! What was measured depends on the machine; that it was kept, found again and left nothing
//! behind does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

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

    fn file(&self) -> PathBuf {
        self.home.path().join("foreread/devices.json")
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.home.path().join("foreread")).unwrap();
        fs::write(self.file(), text).unwrap();
    }

    fn stored(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.file()).unwrap()).unwrap()
    }

    fn foreread(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("foreread").unwrap();
        command.env("XDG_DATA_HOME", self.home.path()).args(args);
        command
    }

    fn doctor(&self) -> Value {
        let output = self.foreread(&["doctor", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What a short measurement found; `None`, said aloud, where the file system keeps files in memory.
    fn calibrate(&self, dir: &Path) -> Option<Value> {
        let dir = dir.to_str().unwrap();
        let output = self
            .foreread(&["calibrate", "--json", "--seconds=1", "--size=16M", dir])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("stay in memory") {
            eprintln!("skipped: {said}");
            return None;
        }
        assert!(output.status.success(), "{said}");
        assert_eq!(said, "", "progress is for terminals");
        Some(serde_json::from_slice(&output.stdout).unwrap())
    }
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn what_was_measured_is_kept_and_goes_before_what_is_built_in() {
    let (user, dir) = (User::new(), dir());
    let Some(found) = user.calibrate(dir.path()) else {
        return;
    };
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "the file is gone");
    assert!(found["samples"]["service_ns"].as_u64().unwrap() > 0);
    assert!(found["profile"]["depth"].as_u64().unwrap() > 0);

    let mode = fs::metadata(user.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stored = user.stored();
    assert_eq!(stored["devices"][0]["profile"], found["profile"]);
    assert_eq!(stored["devices"][0]["samples"], found["samples"]);

    let diagnosis = user.doctor();
    let disks = diagnosis["devices"].as_array().unwrap();
    if let Some(disk) = disks.iter().find(|disk| disk["name"] == found["name"]) {
        assert_eq!(disk["profile"], found["profile"]);
        assert!(disk["measured_at"].as_u64().unwrap() > 0);
    }
}

#[test]
fn measuring_again_replaces_what_was_known_of_the_device_and_nothing_else() {
    let (user, dir) = (User::new(), dir());
    let Some(_) = user.calibrate(dir.path()) else {
        return;
    };
    let mut stored = user.stored();
    let mut other = stored["devices"][0].clone();
    other["id"] = json!("another disk");
    other["profile"]["depth"] = json!(77);
    stored["devices"][0]["measured_at"] = json!(1);
    stored["devices"].as_array_mut().unwrap().push(other);
    user.write(&stored.to_string());
    user.calibrate(dir.path()).unwrap();
    let after = user.stored();
    let devices = after["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2, "{devices:#?}");
    assert_eq!(devices[0]["profile"]["depth"], 77);
    assert_ne!(devices[1]["measured_at"], 1);
}

#[test]
fn a_file_that_is_not_what_it_should_be_is_named_and_the_built_in_profiles_hold() {
    let profile = json!({"by_position": false, "depth": 0, "request_pages": 256, "infill_pages": 0,
        "service_ns": 80_000, "lead": 4096, "lateness_ns": null});
    let samples = json!({"service_ns": 1, "scattered": [], "requests": [], "gaps": [],
        "order": {"random_ns": 1.0, "ordered_ns": 1.0}, "ordered": [], "leads": [], "lateness": []});
    let device = json!({"name": "sda", "sectors": 1, "id": "x", "measured_at": 1,
        "profile": profile, "samples": samples});
    let spoilt = [
        ("{\"format\": \"foreread dev", "EOF"),
        (
            "{\"some\": \"thing else\"}",
            "not a file of measured devices",
        ),
        (
            "{\"format\": \"foreread devices\", \"version\": 9, \"devices\": 3}",
            "version 9",
        ),
        (
            &json!({"format": "foreread devices", "version": 1, "devices": [device]}).to_string(),
            "sda: depth: 0 is not within 1 to 1024",
        ),
    ];
    for (text, why) in spoilt {
        let user = User::new();
        user.write(text);
        let diagnosis = user.doctor();
        let problem = diagnosis["profiles_problem"].as_str().unwrap();
        assert!(problem.contains(user.file().to_str().unwrap()), "{problem}");
        assert!(problem.contains(why), "{problem}");
        let disks = diagnosis["devices"].as_array().unwrap();
        assert!(disks.iter().all(|disk| disk["measured_at"].is_null()));
        assert_eq!(
            fs::read_to_string(user.file()).unwrap(),
            text,
            "looking changes nothing"
        );
    }
}

#[test]
fn a_size_that_tells_nothing_is_refused_and_named() {
    let user = User::new();
    let dir = dir();
    for size in ["0", "1", "4096", "15M", "16777215", "many"] {
        let given = format!("--size={size}");
        let mut run = user.foreread(&[
            "calibrate",
            "--seconds=1",
            &given,
            dir.path().to_str().unwrap(),
        ]);
        let output = run.assert().code(2).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains(&format!("'{size}' for '--size <SIZE>'")),
            "{said}"
        );
        assert!(
            size == "many" || said.contains("less than 16.0 MiB"),
            "{said}"
        );
        assert!(!user.file().exists());
    }
}

#[test]
fn a_folder_that_cannot_be_measured_in_is_named_and_nothing_is_kept() {
    let user = User::new();
    let mut hopeless = vec!["/no/such/folder"];
    // A file system in memory has nothing to measure.
    hopeless.extend(Path::new("/dev/shm").is_dir().then_some("/dev/shm"));
    for dir in hopeless {
        let output = user
            .foreread(&["calibrate", "--seconds=1", "--size=16M", dir])
            .assert()
            .code(2)
            .get_output()
            .clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(dir), "{said}");
        assert!(!user.file().exists());
    }
}
