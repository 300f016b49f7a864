//! What the daemon shows to each user, and which sockets are trusted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::{Command, Output};

use foreread_tests::{Need, copy, eventually, foreread, text};
use rustix::process::Signal;
use serde_json::Value;

use super::{NOBODY, Place};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_user_is_told_of_own_programs_and_files_alone",
        QUICK,
        &[Need::Fanotify, Need::Nobody],
        a_user_is_told_of_own_programs_and_files_alone,
    ),
    (
        "a_socket_of_somebody_else_is_not_believed",
        QUICK,
        &[Need::Fanotify],
        a_socket_of_somebody_else_is_not_believed,
    ),
    (
        "nothing_is_made_in_a_folder_of_models_that_is_somebody_elses",
        QUICK,
        &[Need::Fanotify],
        nothing_is_made_in_a_folder_of_models_that_is_somebody_elses,
    ),
    (
        "hostile_names_break_neither_lines_nor_terminals",
        ALL,
        &[Need::Fanotify],
        hostile_names_break_neither_lines_nor_terminals,
    ),
];

/// A command of the unprivileged user.
fn as_nobody(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--",
        program,
    ]);
    command
}

fn ask_as_nobody(place: &Place, words: &[&str]) -> Output {
    let mut command = as_nobody(&foreread().display().to_string());
    command.args(words).arg("--socket").arg(place.socket());
    command.output().expect("setpriv")
}

fn a_user_is_told_of_own_programs_and_files_alone() {
    let place = Place::new();
    let open = |path: &str, mode| {
        let path = place.lab.path(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
    };
    open("", 0o755);
    let names: Vec<String> = (0..6).map(|number| format!("public/{number}")).collect();
    let secrets: Vec<String> = (0..6).map(|number| format!("secret/{number}")).collect();
    for folder in ["public", "secret"] {
        fs::create_dir(place.lab.path(folder)).expect("a folder");
    }
    for name in names.iter().chain(&secrets) {
        place.lab.write(name, "one line\n");
    }
    open("secret", 0o700);
    let _running = place.running();
    let read = |names: &[String], command: &mut Command| {
        let read: String = names
            .iter()
            .map(|name| format!("read x <{name}; "))
            .collect();
        let command = command.args(["-c", &format!("{read} exit 0")]);
        let status = command.current_dir(place.lab.path("")).status();
        assert!(status.expect("a shell").success());
    };
    let followers = |output: &Output| -> Vec<Value> {
        let followers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let status = i32::from(followers.is_empty());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            text(&output.stderr)
        );
        followers
    };
    let words = |name: &str| {
        [
            "predict".to_owned(),
            "--json".to_owned(),
            place.lab.path(name).display().to_string(),
        ]
    };
    let as_root = |name: &str| {
        let words = words(name);
        followers(&place.output(&words.each_ref().map(String::as_str)))
    };
    let by_nobody = |name: &str| {
        let words = words(name);
        followers(&ask_as_nobody(
            &place,
            &words.each_ref().map(String::as_str),
        ))
    };
    let secret = |follower: &Value| {
        follower["path"]
            .as_str()
            .is_some_and(|path| path.contains("secret"))
    };
    eventually("what follows is known", || {
        for _ in 0..4 {
            // Root reads a public file and then secret ones, twice as often as the user reads public ones.
            let behind: Vec<String> = names[..1].iter().chain(&secrets).cloned().collect();
            read(&behind, &mut Command::new("sh"));
            read(&behind, &mut Command::new("sh"));
            let public: Vec<String> = names.iter().rev().cloned().collect();
            read(&public, &mut as_nobody("sh"));
        }
        as_root("public/0").iter().any(secret)
            && !as_root("secret/1").is_empty()
            && !by_nobody("public/4").is_empty()
    });
    // The user gets no prediction for a file in a closed folder, and none of such files after an open one.
    assert_eq!(by_nobody("secret/1"), [] as [Value; 0]);
    for name in &names {
        assert!(!by_nobody(name).iter().any(secret), "{name}");
    }
    let output = ask_as_nobody(&place, &["daemon", "stop"]);
    assert!(!output.status.success());
    let refused = text(&output.stderr);
    assert!(refused.contains("only root may stop it"), "{refused}");
    let output = ask_as_nobody(&place, &["daemon", "status", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(status["events"].as_u64() > Some(0));
    for program in status["programs"].as_array().expect("a list") {
        assert_eq!(program["uid"], NOBODY, "{program}");
    }
}

fn a_socket_of_somebody_else_is_not_believed() {
    let place = Place::new();
    for folder in ["", "run"] {
        let all = fs::Permissions::from_mode(0o777);
        fs::set_permissions(place.lab.path(folder), all).expect("its mode");
    }
    // The owner of a listening socket is the user at the moment when the process began to listen.
    let path = place.socket();
    let listen = move || {
        let [root, nobody] = [0, NOBODY].map(rustix::process::Uid::from_raw);
        rustix::thread::set_thread_res_uid(root, nobody, root).expect("root may");
        std::os::unix::net::UnixListener::bind(path).expect("a socket")
    };
    let _listener = std::thread::spawn(listen).join().expect("it listens");
    for words in [
        &["daemon", "status"][..],
        &["daemon", "stop"],
        &["predict", "/etc/passwd"],
    ] {
        let said = place.complaint(words);
        assert!(said.contains("belongs to user 65534"), "{said}");
    }
}

fn nothing_is_made_in_a_folder_of_models_that_is_somebody_elses() {
    let place = Place::new();
    let folder = place.lab.path("elsewhere");
    fs::create_dir(&folder).expect("a folder");
    let is_left = |why: &str| {
        for words in [["daemon", "run"], ["daemon", "start"]] {
            let said = place.complaint(&words);
            assert!(said.contains(why), "{said}");
            assert_eq!(
                fs::read_dir(&folder).expect("the folder").count(),
                0,
                "{why}"
            );
        }
    };
    symlink(&folder, place.state()).expect("a link");
    is_left("is no folder");
    fs::remove_file(place.state()).expect("the link");
    fs::rename(&folder, place.state()).expect("the same folder");
    symlink(place.state(), &folder).expect("a link to look through");
    chown(place.state(), Some(NOBODY), None).expect("root may");
    is_left("it belongs to user 65534");
    chown(place.state(), Some(0), None).expect("root may");
    fs::set_permissions(place.state(), fs::Permissions::from_mode(0o777)).expect("its mode");
    is_left("others may write to it");
}

fn hostile_names_break_neither_lines_nor_terminals() {
    let place = Place::new();
    let running = place.running();
    // The name of a program and of a file: it clears the screen, ends a line and ends a label.
    let name = "a\nb\"}\\ \u{1b}[2J";
    let program = place.lab.path(name);
    copy("/bin/cat".as_ref(), &program);
    place.lab.write("c\nd", "text");
    for _ in 0..5 {
        let read = Command::new(&program).arg(place.lab.path("c\nd")).output();
        assert!(read.expect("it runs").status.success());
    }
    eventually("it was seen", || {
        let programs = place.status()["programs"].to_string();
        programs.contains("b\\\"}") || place.status()["events"].as_u64() > Some(20)
    });
    let path = program.display().to_string();
    for words in [
        &["daemon", "status"][..],
        &["daemon", "metrics"],
        &["predict", &path],
    ] {
        let output = place.output(words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.is_empty());
        assert!(!said.contains('\u{1b}'), "{said}");
        assert!(!said.contains("\nb\""), "{said}");
    }
    running.signal(Signal::TERM);
    assert!(running.end().status.success());
}
