//! Programs that cannot use the preload library, that cannot reach it, or that confine themselves: each behaves as it does alone,
//! including its standard error, and the summary says why they were not observed.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use foreread_tests::{Lab, Need, copy, eventually, finish, foreread, root, start, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_program_of_another_c_library_runs_as_ever",
        QUICK,
        &[Need::Command("musl-gcc")],
        musl,
    ),
    (
        "a_32_bit_program_runs_as_ever",
        QUICK,
        &[Need::Narrow],
        narrow,
    ),
    (
        "a_static_child_is_said_to_be_one",
        ALL,
        &[Need::StaticC],
        fixed,
    ),
    (
        "a_child_without_the_environment_is_said_to_be_one",
        ALL,
        &[],
        cleared,
    ),
    (
        "who_cannot_reach_the_library_is_not_told_so_by_the_loader",
        QUICK,
        &[Need::Root, Need::Command("setpriv")],
        out_of_reach,
    ),
    (
        "a_new_root_without_the_library_is_not_told_so_by_the_loader",
        QUICK,
        &[Need::Root, Need::Command("bwrap")],
        new_root,
    ),
    (
        "who_may_not_load_the_library_any_more_is_not_told_so_by_the_loader",
        QUICK,
        &[],
        restricted,
    ),
    (
        "a_program_under_a_filter_from_its_start_runs_as_ever_and_it_is_said",
        QUICK,
        &[],
        filtered,
    ),
    (
        "a_server_that_confines_its_children_lets_users_log_in",
        QUICK,
        &[Need::Root, Need::Command("sshd"), Need::Command("ssh")],
        logins,
    ),
];

/// A program that prints the first line of `data` and ends with 3, as soon as there is no file `hold`.
const PROGRAM: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) {\n\
    \x20   FILE *file = fopen(\"data\", \"r\");\n\
    \x20   char text[16];\n\
    \x20   if (!file || !fgets(text, sizeof text, file)) return 1;\n\
    \x20   puts(text);\n\
    \x20   while (access(\"hold\", F_OK) == 0) usleep(1000);\n\
    \x20   return 3;\n\
    }\n";

/// A script that starts a command and ends as it does. If the file `watched` exists, the command lives until foreread has looked at
/// `program`, which it executes, from outside.
fn watched(lab: &Lab, command: &str, program: &str) -> String {
    lab.program("looked_at", &[]);
    format!(
        "test ! -e watched || : > hold; {command} &
         test ! -e watched || ./looked_at {program}; rm -f hold; wait $!"
    )
}

/// A program built by this command, run directly and as a child: it behaves as without foreread, and the summary contains `is`.
fn foreign(compiler: &[&str], is: &str) {
    let lab = Lab::new();
    lab.write("data", "some text\n");
    lab.write("program.c", PROGRAM);
    let built = lab.plain(&[compiler, &["-o", "program", "program.c"]].concat());
    assert!(built.status.success(), "{built:?}");
    let script = format!("./program; {}", watched(&lab, "./program", "program"));
    for command in [&["./program"][..], &["sh", "-c", &script]] {
        let plain = lab.plain(command);
        assert_eq!(plain.status.code(), Some(3));
        // As root it is observed by eBPF, if that is loaded in time.
        for _ in 0..2 {
            let run = [&["run", "--quiet", "--"], command].concat();
            let output = finish(start(lab.command(foreread()).args(run)));
            assert_eq!(output, plain);
        }
        lab.foreread(&["forget", "--all"]);
        lab.write("watched", "");
        let said = lab.run_with(&["--observer", "preload"], command);
        fs::remove_file(lab.path("watched")).expect("our own file");
        said.assert_as(&plain);
        assert!(said.says(is), "{said:?}");
    }
}

fn musl() {
    foreign(&["musl-gcc"], "linked with another C library than glibc");
}

fn narrow() {
    foreign(&["cc", "-m32"], "a 32-bit program");
}

fn fixed() {
    foreign(&["cc", "-static"], "statically linked");
}

fn cleared() {
    let lab = Lab::new();
    lab.program("looked_at", &[]);
    let script = "env -i ./looked_at looked_at; true";
    let said = lab.foreread(&["run", "--", "sh", "-c", script]);
    assert!(said.status.success());
    let said = text(&said.stderr);
    assert!(
        said.contains(
            "1 process was not observed: given an environment without foreread's variables"
        ),
        "{said}"
    );
}

/// A copy of foreread in a folder that only its owner can enter.
fn hidden(lab: &Lab) -> PathBuf {
    let folder = lab.path("hidden");
    fs::create_dir(&folder).expect("a folder");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(foreread().with_file_name("loaders"))
        .arg(foreread())
        .arg(foreread().with_file_name("libforeread_preload.so"))
        .arg(&folder)
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("our own folder");
    folder.join("foreread")
}

/// Checks that a command under a hidden foreread behaves as it does alone.
fn unheard(lab: &Lab, foreread: &PathBuf, command: &[&str]) {
    let plain = lab.plain(command);
    assert!(plain.status.success(), "{command:?}: {plain:?}");
    for _ in 0..2 {
        let mut run = lab.command(foreread);
        let got = finish(start(run.args(["run", "--quiet", "--"]).args(command)));
        assert_eq!(shown(&got), shown(&plain), "{command:?}");
    }
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn out_of_reach() {
    let lab = Lab::new();
    lab.program("title", &[]);
    let foreread = hidden(&lab);
    let lose = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv('/bin/true', ['true'])";
    for command in [
        &["setpriv", "--reuid=65534", "--clear-groups", "/bin/true"][..],
        &[
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "/bin/true",
        ],
        &["runuser", "-u", "nobody", "--", "/bin/true"],
        &["su", "-s", "/bin/sh", "nobody", "-c", "true; /bin/true"],
        &["python3", "-c", lose],
        // Programs that keep a copy of their environment.
        &["./title"],
        &[
            "perl",
            "-e",
            "$( = $) = 65534; $> = $< = 65534; print `echo started`",
        ],
    ] {
        unheard(&lab, &foreread, command);
    }
}

fn new_root() {
    let lab = Lab::new();
    let foreread = hidden(&lab);
    let links = [
        ("usr/lib", "/lib"),
        ("usr/lib64", "/lib64"),
        ("usr/bin", "/bin"),
    ];
    let links: Vec<&str> = links
        .iter()
        .flat_map(|(to, at)| ["--symlink", *to, *at])
        .collect();
    let mut command = vec!["bwrap", "--ro-bind", "/usr", "/usr", "--proc", "/proc"];
    command.extend(links);
    command.extend(["sh", "-c", "true; /bin/true; echo done"]);
    if !lab.plain(&command).status.success() {
        eprintln!("skipped: no new root can be made here");
        return;
    }
    unheard(&lab, &foreread, &command);
    // In that namespace /proc/self is not the process of getpid().
    command.splice(1..1, ["--unshare-pid"]);
    unheard(&lab, &foreread, &command);
    let root = lab.path("root");
    for folder in ["", "usr", "proc"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    for (to, at) in [
        ("usr/lib", "lib"),
        ("usr/lib64", "lib64"),
        ("usr/bin", "bin"),
    ] {
        std::os::unix::fs::symlink(to, root.join(at)).expect("a link");
    }
    // Mounted in a mount namespace of the command.
    let script =
        "mount --bind /usr root/usr && exec chroot root /bin/sh -c 'true; /bin/true; echo done'";
    for namespaces in ["-m", "-mpf"] {
        unheard(
            &lab,
            &foreread,
            &["unshare", namespaces, "sh", "-c", script],
        );
    }
}

fn restricted() {
    let lab = Lab::new();
    lab.program("restrict", &[]);
    let foreread = hidden(&lab);
    let folder = lab.path("").display().to_string();
    let child = "true; /bin/true; echo done";
    for how in ["landlock", "noexec"] {
        let command = ["./restrict", how, &folder, "/bin/sh", "-c", child];
        if lab.plain(&command).status.code() == Some(77) {
            eprintln!("skipped: no {how} here");
            continue;
        }
        unheard(&lab, &foreread, &command);
    }
}

fn filtered() {
    let lab = Lab::new();
    lab.data("data", 1);
    let source = root().join("tests/observe/heir.c");
    let source = source.to_str().expect("a path");
    let built = lab.plain(&["cc", "-pthread", "-o", "heir", source]);
    assert!(built.status.success(), "{built:?}");
    // foreread opens the first program for other reasons as well.
    copy(&lab.path("heir"), &lab.path("under"));
    let whole = "2 processes were observed only as far as a system-call filter allows";
    let unseen = "1 process was not observed: under a system-call filter from its start";
    // The summary describes a program that no library has seen only as far as it is known.
    for (how, said) in [("library", whole), ("own", unseen), ("child", unseen)] {
        let script = watched(&lab, &format!("./heir {how} ./under data"), "under");
        let command = ["sh", "-c", &script];
        let plain = lab.plain(&command);
        assert_eq!(plain.status.code(), Some(7), "{plain:?}");
        if said == unseen {
            lab.write("watched", "");
        }
        lab.foreread(&["forget", "--all"]);
        let output = lab.foreread(&[&["run", "--"], &command[..]].concat());
        let _ = fs::remove_file(lab.path("watched"));
        assert_eq!(output.status, plain.status, "{how}: {output:?}");
        assert_eq!(output.stdout, plain.stdout, "{how}");
        let told = text(&output.stderr).replace("\nforeread:   ", " ");
        assert!(told.contains(said), "{how}: {told}");
    }
}

fn logins() {
    let lab = Lab::new();
    for (name, file) in [("host", "host"), ("user", "user")] {
        let made = lab.plain(&[
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            name,
            "-f",
            file,
        ]);
        assert!(made.status.success(), "{made:?}");
    }
    fs::copy(lab.path("user.pub"), lab.path("allowed")).expect("a key");
    // The folder to which the server confines its children.
    fs::create_dir_all("/run/sshd").expect("root may");
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a free port")
        .port()
        .to_string();
    let at = |name: &str| lab.path(name).display().to_string();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
         StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n",
        at("host"),
        at("allowed")
    );
    lab.write("config", config);
    let server = Command::new("sh")
        .args(["-c", "command -v sshd"])
        .output()
        .map(|found| text(&found.stdout).trim().to_owned())
        .expect("a shell");
    let config = at("config");
    // First recorded, then prefetched.
    for _ in 0..2 {
        let mut run = lab.command(foreread());
        let mut running = start(run.args(["run", "--", &server, "-De", "-f", &config]));
        let login = || {
            lab.plain(&[
                "ssh",
                "-p",
                &port,
                "-i",
                &at("user"),
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "LogLevel=ERROR",
                "root@127.0.0.1",
                "echo logged in",
            ])
        };
        eventually("a login", || text(&login().stdout) == "logged in\n");
        assert_eq!(text(&login().stdout), "logged in\n");
        let stopped = Command::new("kill").arg(running.id().to_string()).status();
        assert!(stopped.is_ok_and(|status| status.success()));
        let _ = running.wait();
    }
}
