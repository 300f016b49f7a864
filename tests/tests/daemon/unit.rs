//! The systemd unit: systemd accepts it, and the rights that it leaves are sufficient.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};

use foreread_tests::{Lab, Need, eventually, foreread, root, text, verified};
use serde_json::Value;

use foreread_tests::suite::{ALL, QUICK, Test};

use super::{Place, Running};

pub const TESTS: &[Test] = &[
    ("the_unit_is_hardened", ALL, &[], the_unit_is_hardened),
    (
        "systemd_takes_the_unit",
        ALL,
        &[Need::Command("systemd-analyze")],
        systemd_takes_the_unit,
    ),
    (
        "the_rights_that_the_unit_leaves_are_enough",
        QUICK,
        &[Need::Fanotify, Need::Command("setpriv")],
        the_rights_that_the_unit_leaves_are_enough,
    ),
    (
        "systemd_is_told_that_it_is_ready",
        ALL,
        &[Need::Fanotify],
        systemd_is_told_that_it_is_ready,
    ),
    (
        "rights_that_are_not_needed_are_given_up",
        QUICK,
        &[Need::Fanotify],
        rights_that_are_not_needed_are_given_up,
    ),
];

fn unit() -> String {
    let path = root().join("packaging/forereadd.service.in");
    fs::read_to_string(path).expect("the unit")
}

/// A unit's settings by section and name.
fn settings(unit: &str) -> HashMap<(String, String), String> {
    let (mut settings, mut section) = (HashMap::new(), String::new());
    for line in unit.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.to_owned();
            continue;
        }
        let (name, value) = line.split_once('=').expect("a setting");
        let before = settings.insert((section.clone(), name.to_owned()), value.to_owned());
        assert!(before.is_none(), "{name} twice");
    }
    settings
}

fn the_unit_is_hardened() {
    let unit = settings(&unit());
    let service = |name: &str| {
        let key = ("Service".to_owned(), name.to_owned());
        unit.get(&key)
            .unwrap_or_else(|| panic!("no {name}"))
            .as_str()
    };
    for (name, value) in [
        ("Type", "notify"),
        ("ExecStart", "@PREFIX@/libexec/forereadd"),
        ("PrivateNetwork", "yes"),
        ("RestrictAddressFamilies", "AF_UNIX"),
        ("ProtectSystem", "strict"),
        ("StateDirectory", "foreread"),
        ("StateDirectoryMode", "0700"),
        ("RuntimeDirectory", "foreread"),
        ("IOSchedulingClass", "best-effort"),
        ("IOSchedulingPriority", "7"),
        ("NoNewPrivileges", "yes"),
    ] {
        assert_eq!(service(name), value, "{name}");
    }
    assert!(service("MemoryMax").ends_with('M'));
    let keys: Vec<&str> = unit.keys().map(|(section, _)| section.as_str()).collect();
    assert!(
        keys.iter()
            .all(|key| ["Unit", "Service", "Install"].contains(key))
    );
}

fn systemd_takes_the_unit() {
    let lab = Lab::new();
    let units = [("forereadd.service", &*unit())];
    let said = verified(&lab, "libexec/forereadd", &units);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("forereadd"))
        .collect();
    assert_eq!(ours, [""; 0]);
}

fn the_rights_that_the_unit_leaves_are_enough() {
    let unit = settings(&unit());
    let key = ("Service".to_owned(), "CapabilityBoundingSet".to_owned());
    let rights: Vec<String> = unit[&key]
        .split(' ')
        .map(|right| right.strip_prefix("CAP_").expect("a right").to_lowercase())
        .collect();
    let place = Place::new();
    let words = place.command(&["daemon", "run"]);
    let set = format!("--bounding-set=-all,+{}", rights.join(",+"));
    let child = Command::new("setpriv")
        .args([&set, "--no-new-privs", "--"])
        .arg(words.get_program())
        .args(words.get_args())
        .stderr(Stdio::piped())
        .spawn()
        .expect("setpriv");
    let mut running = Running(child);
    let mut answers = false;
    eventually("it answers, or has ended", || {
        let output = place.output(&["daemon", "status", "--json"]);
        answers = serde_json::from_slice::<Value>(&output.stdout).is_ok();
        answers || running.0.try_wait().expect("our child").is_some()
    });
    if !answers {
        panic!("{}", text(&running.end().stderr));
    }
    // A file of another user, in a folder closed to all others, is seen.
    fs::create_dir(place.lab.path("closed")).expect("a folder");
    let file = place.lab.write("closed/file", "one line\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    for path in [place.lab.path("closed"), file] {
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).expect("root may");
        fs::set_permissions(&path, mode(0o700)).expect("root may");
    }
    let seen = || place.status()["model"]["symbols"].as_u64().unwrap_or(0);
    let before = seen();
    eventually("the file is seen", || {
        let read = "read x <closed/file; read x </etc/passwd; exit 0";
        let status = Command::new("sh")
            .args(["-c", read])
            .current_dir(place.lab.path(""))
            .status();
        assert!(status.expect("a shell").success());
        place.predicted(&place.lab.path("closed/file"));
        seen() > before
    });
    // The daemon checks a user's rights to know with that user's identity, which needs a privilege.
    let mut ask = Command::new("setpriv");
    ask.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    ask.arg(foreread())
        .args(["predict", "/etc/passwd", "--socket"]);
    let asked = ask.arg(place.socket()).output().expect("setpriv");
    if Need::Nobody.missing().is_none() {
        let errors = text(&asked.stderr);
        assert!(matches!(asked.status.code(), Some(0 | 1)), "{errors}");
    }
}

/// Root's daemon, started by hand, cannot write root's files, nor gain rights through a program that it starts.
fn rights_that_are_not_needed_are_given_up() {
    let place = Place::new();
    place.said(&["daemon", "start"]);
    let answer = place.said(&["daemon", "status", "--json"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let pid = answer["pid"].as_u64().expect("its process");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.expect("a field").trim().to_owned()
    };
    for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
        let rights = u64::from_str_radix(&field(set), 16).expect("rights");
        // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_NET_ADMIN, CAP_SYS_MODULE.
        for right in [0, 1, 3, 5, 12, 16] {
            assert_eq!(rights >> right & 1, 0, "{set} {rights:x} has {right}");
        }
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    place.said(&["daemon", "stop"]);
}

fn systemd_is_told_that_it_is_ready() {
    let place = Place::new();
    let path = place.lab.path("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    let child = place
        .command(&["daemon", "run"])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null())
        .spawn();
    let running = Running(child.expect("foreread"));
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .expect("a time");
    let told = || {
        let mut room = [0; 100];
        let len = socket.recv(&mut room).expect("a word");
        text(&room[..len])
    };
    assert_eq!(told(), "READY=1");
    place.said(&["daemon", "stop"]);
    assert_eq!(told(), "STOPPING=1");
    assert!(running.end().status.success());
}
