//! Programs that a service manager starts: what it tells the process that it started holds for the program.

use std::process::{Command, Stdio};

use foreread_tests::{Lab, finish, foreread, start, text};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[(
    "sockets_that_are_meant_for_foreread_are_meant_for_the_program",
    QUICK,
    &[],
    listener,
)];

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
