//! Programs that a service manager starts: what it tells the process that it started holds for the program.

use std::process::{Command, Stdio};

use foreread_tests::{Lab, Need, finish, foreread, start, text};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "sockets_that_are_meant_for_foreread_are_meant_for_the_program",
        QUICK,
        &[],
        listener,
    ),
    (
        "a_service_that_says_that_it_is_ready_is_the_process_that_was_started",
        QUICK,
        &[Need::Command("python3")],
        ready,
    ),
];

/// Tells whom inherited sockets are meant for, as sd_listen_fds(3) finds out.
const ASK: &str =
    r#"case $LISTEN_PID in $$) echo me ;; 1) echo init ;; *) echo "$LISTEN_PID, I am $$" ;; esac"#;

fn listener() {
    let lab = Lab::new();
    for (pid, whose) in [("$$", "me\n"), ("1", "init\n")] {
        for _ in 0..3 {
            let mut command = lab.command(foreread());
            command.args(["run", "--quiet", "--", "sh", "-c", ASK]);
            let mut manager = Command::new("sh");
            let become_it = format!("export LISTEN_FDS=1 LISTEN_PID={pid}; exec \"$@\"");
            manager
                .args(["-c", &become_it, "sh"])
                .arg(command.get_program())
                .args(command.get_args())
                .current_dir(lab.path(""))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            for (name, value) in command.get_envs() {
                if let Some(value) = value {
                    manager.env(name, value);
                }
            }
            let output = finish(start(&mut manager));
            assert_eq!(text(&output.stdout), whose, "{output:?}");
        }
    }
}

/// A service manager that believes the process that it has started, and nobody else: who has sent what.
const MANAGER: &str = "import os, socket, struct, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind('notify')
listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
here = {'NOTIFY_SOCKET': os.path.abspath('notify')}
told = {'told': lambda: os.getpid(), 'ancestor': lambda: 1}
pid = os.fork()
if pid == 0:
    os.environ.update(here)
    if sys.argv[1] in told:
        os.environ['SYSTEMD_EXEC_PID'] = str(told[sys.argv[1]]())
    os.execv(sys.argv[2], sys.argv[2:])
status = os.waitpid(pid, 0)[1]
text, said, _, _ = listener.recvmsg(100, 100)
sender = struct.unpack('iII', said[0][2])[0]
print(text.decode(), 'main' if sender == pid else 'another', os.waitstatus_to_exitcode(status))
";

/// A service as sd_notify(3) has it.
const SERVICE: &str = "import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])
raise SystemExit(3)
";

fn ready() {
    let lab = Lab::new();
    lab.write("manager.py", MANAGER);
    lab.write("service.py", SERVICE);
    let foreread = foreread().display().to_string();
    // A program that is recorded takes foreread's place as well, once it is in memory.
    for (manager, runs) in [("old", 2), ("told", 2), ("ancestor", 1)] {
        for _ in 0..runs {
            let run = [&foreread, "run", "--quiet", "--", "python3", "service.py"];
            let output = lab.plain(&[&["python3", "manager.py", manager], &run[..]].concat());
            // Whoever is started by a service is believed by its manager, or not, as it was.
            let who = if manager == "ancestor" {
                "another"
            } else {
                "main"
            };
            assert_eq!(
                text(&output.stdout),
                format!("READY=1 {who} 3\n"),
                "{output:?}"
            );
            std::fs::remove_file(lab.path("notify")).expect("a socket");
        }
    }
}
