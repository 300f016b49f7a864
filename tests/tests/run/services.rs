//! Programs that a service manager starts: the manager's messages to the process that it started are valid for the program.

use std::process::{Command, Stdio};

use foreread_tests::{Lab, Need, check, eventually, finish, foreread, start, text, verified};
use serde_json::Value;

use foreread_tests::suite::{ALL, QUICK, Test};

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
    (
        "a_service_that_says_that_it_is_ready_is_recorded_and_its_next_start_followed",
        QUICK,
        &[Need::Command("python3")],
        beside,
    ),
    (
        "the_start_of_a_service_that_was_killed_is_followed_at_the_next",
        ALL,
        &[Need::Command("python3")],
        killed,
    ),
    (
        "a_service_is_observed_to_the_end_of_its_start_up",
        QUICK,
        &[Need::Command("python3")],
        start_up,
    ),
    (
        "a_socket_of_systemd_s_is_handed_to_the_program",
        ALL,
        &[
            Need::Command("systemd-socket-activate"),
            Need::Command("python3"),
        ],
        activated,
    ),
    (
        "systemd_takes_the_template_unit",
        QUICK,
        &[Need::Command("systemd-analyze")],
        template,
    ),
    (
        "a_service_is_enabled_by_a_drop_in_and_disabled_without_a_trace",
        QUICK,
        &[],
        enabled,
    ),
];

/// Prints the process for which inherited sockets are meant, as sd_listen_fds(3) determines it.
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

/// A service manager that trusts only the process that it started; it prints the message and its sender.
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

/// A service that reports its readiness as sd_notify(3) does.
const SERVICE: &str = "import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])
raise SystemExit(3)
";

fn ready() {
    let foreread = foreread().display().to_string();
    // A recorded program also takes foreread's place, if it is in memory.
    for (manager, runs) in [("old", 2), ("told", 2), ("ancestor", 1)] {
        let lab = Lab::new();
        lab.write("manager.py", MANAGER);
        lab.write("service.py", SERVICE);
        for _ in 0..runs {
            let run = [&foreread, "run", "--quiet", "--", "python3", "service.py"];
            let output = lab.plain(&[&["python3", "manager.py", manager], &run[..]].concat());
            // A process that a service starts is trusted or not, as without foreread.
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

/// A service manager: starts a service, waits until it is ready, and sends these signals to the process that it started, or waits for
/// the file `goes-on`.
const SENDER: &str = "import os, signal, socket, sys, time
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind('notify')
pid = os.fork()
if pid == 0:
    os.environ['NOTIFY_SOCKET'] = os.path.abspath('notify')
    os.environ['SYSTEMD_EXEC_PID'] = os.environ['WATCHDOG_PID'] = str(os.getpid())
    os.execv(sys.argv[2], sys.argv[2:])
print(listener.recv(100).decode())
for name in sys.argv[1].split(','):
    if name == 'WAIT':
        while not os.path.exists('goes-on'):
            time.sleep(0.01)
        continue
    os.kill(pid, getattr(signal, name))
    if name == 'SIGHUP':
        print(listener.recv(100).decode())
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.unlink('notify')
";

/// A service that reads, reports its readiness, and reports the signals that it receives. It must have no child that it did not start.
const SERVER: &str = "import os, random, signal, socket
data = os.open('data', os.O_RDONLY)
order = list(range(2048))
# In no pattern, which the first run would be prefetched by: the second would have nothing to gain.
random.Random(7).shuffle(order)
for page in order:
    os.pread(data, 4096, page * 4096)
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
say = lambda text: manager.sendto(text, os.environ['NOTIFY_SOCKET'])
try:
    os.waitpid(-1, os.WNOHANG)
    say(b'a child of somebody else')
except ChildProcessError:
    pass
assert os.environ['WATCHDOG_PID'] == str(os.getpid())
def reload(*_):
    if os.path.exists('later'):
        open('later', 'rb').read()
    say(b'RELOADING=1')
signal.signal(signal.SIGHUP, reload)
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
say(b'READY=1')
while True:
    signal.pause()
";

/// Runs the service from a cold disk, ended by these signals; returns its manager's output, after foreread has finished.
fn served(lab: &Lab, signals: &str) -> String {
    lab.cold(&["data"]);
    let runs = lab.records_folder().with_file_name("runs");
    let before = changed(&runs);
    let foreread = foreread().display().to_string();
    let run = [&foreread, "run", "--", "python3", "server.py"];
    let output = lab.plain(&[&["python3", "sender.py", signals], &run[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let is_new = || changed(&runs).is_some_and(|now| Some(now) != before);
    eventually("foreread has kept the account", is_new);
    text(&output.stdout)
}

/// Starts the service with these files cold, waits until foreread has finished, and then makes the service read another file.
fn served_later(lab: &Lab, cold: &[&str]) {
    lab.cold(cold);
    let _ = std::fs::remove_file(lab.path("goes-on"));
    let runs = lab.records_folder().with_file_name("runs");
    let before = changed(&runs);
    let mut command = lab.command("python3");
    command.args(["sender.py", "WAIT,SIGHUP,SIGTERM"]);
    command.arg(foreread());
    command.args(["run", "--", "python3", "server.py"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let manager = start(&mut command);
    let is_new = || changed(&runs).is_some_and(|now| Some(now) != before);
    eventually("foreread has kept the account", is_new);
    check!(lab.cached("later") == 0);
    lab.write("goes-on", "");
    let output = finish(manager);
    assert_eq!(
        text(&output.stdout),
        "READY=1\nRELOADING=1\n7\n",
        "{output:?}"
    );
}

/// The time of the last stored account.
fn changed(folder: &std::path::Path) -> Option<std::time::SystemTime> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let times = files.filter(|file| file.path().extension().is_some_and(|kind| kind == "run"));
    times
        .filter_map(|file| file.metadata().ok()?.modified().ok())
        .max()
}

/// A lab with the service.
fn service() -> Lab {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.write("sender.py", SENDER);
    lab.write("server.py", SERVER);
    lab
}

/// Useful bytes of the last run.
fn useful(lab: &Lab) -> u64 {
    let told = lab.foreread(&["explain", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("an account");
    told["run"]["ledger"]["useful"].as_u64().expect("bytes")
}

fn beside() {
    let lab = service();
    for _ in 0..2 {
        assert_eq!(served(&lab, "SIGHUP,SIGTERM"), "READY=1\nRELOADING=1\n7\n");
    }
    check!(useful(&lab) >= 1000 * 4096, "{}", useful(&lab));
}

fn killed() {
    let lab = service();
    for _ in 0..2 {
        assert_eq!(served(&lab, "SIGKILL"), "READY=1\n-9\n");
    }
    check!(useful(&lab) >= 1000 * 4096, "{}", useful(&lab));
}

fn start_up() {
    let lab = service();
    lab.data("later", 1);
    // A hot start does not show how long a cold one waits.
    served_later(&lab, &["later"]);
    let listed = text(&lab.foreread(&["export", "--last", "--to", "csv"]).stdout);
    assert!(listed.contains("/data,"), "{listed}");
    assert!(!listed.contains("/later,"), "{listed}");
    served_later(&lab, &["data", "later"]);
    check!(useful(&lab) >= 1000 * 4096, "{}", useful(&lab));
}

/// Accepts the connection for which it was started, as sd_listen_fds(3) finds it.
const LISTENER: &str = "import os, socket
assert os.environ['LISTEN_PID'] == str(os.getpid()), os.environ['LISTEN_PID']
print(socket.socket(fileno=3).accept()[0].recv(100).decode())
";

/// Starts the service through a systemd socket in the abstract namespace, and sends it a message.
const CALLER: &str = "import os, socket, subprocess, sys, time
name = 'foreread-' + str(os.getpid())
service = subprocess.Popen(['systemd-socket-activate', '-l', '@' + name] + sys.argv[1:], stderr=subprocess.DEVNULL)
caller = socket.socket(socket.AF_UNIX)
while True:
    try:
        caller.connect(chr(0) + name)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
caller.send(b'hello')
sys.exit(service.wait())
";

fn activated() {
    let lab = Lab::new();
    lab.write("caller.py", CALLER);
    lab.write("listener.py", LISTENER);
    let foreread = foreread().display().to_string();
    for _ in 0..2 {
        let run = [&foreread, "run", "--quiet", "--", "python3", "listener.py"];
        let output = lab.plain(&[&["python3", "caller.py"], &run[..]].concat());
        assert_eq!(text(&output.stdout), "hello\n", "{output:?}");
        assert!(output.status.success(), "{output:?}");
    }
}

fn enabled() {
    let lab = Lab::new();
    let units = lab.path("image/lib/systemd/system");
    std::fs::create_dir_all(&units).expect("a folder");
    let unit = "[Service]\nType=notify\nExecStart=-/usr/sbin/server \\\n  -D $OPTIONS\n";
    std::fs::write(units.join("server.service"), unit).expect("a unit");
    let root = lab.path("image").display().to_string();
    let service = |words: &[&str]| {
        let output = lab.foreread(&[&["service"], words, &["--root", &root]].concat());
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let drop_in = lab.path("image/etc/systemd/system/server.service.d/zz-foreread.conf");
    let (code, shown, _) = service(&["enable", "server", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(!drop_in.exists());
    let (code, _, said) = service(&["enable", "server"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let written = std::fs::read_to_string(&drop_in).expect("the drop-in");
    assert!(shown.ends_with(&written), "{shown}");
    let command = written.lines().last().expect("a line");
    assert!(command.starts_with("ExecStart=-/"), "{written}");
    assert!(
        command.contains("/foreread run --quiet -- /usr/sbin/server ")
            && command.ends_with("-D $OPTIONS"),
        "{written}"
    );
    // A second time: the drop-in itself is not part of the unit.
    assert_eq!(service(&["enable", "server"]).0, Some(0));
    assert_eq!(
        std::fs::read_to_string(&drop_in).expect("the drop-in"),
        written
    );
    assert_eq!(service(&["disable", "server"]).0, Some(0));
    assert!(!drop_in.parent().expect("a folder").exists());
    for (words, why) in [
        (["disable", "server"], "server.service is not enabled"),
        (["enable", "other"], "no unit other.service"),
        (["enable", "server.socket"], "not a service, but a socket"),
    ] {
        let (code, _, said) = service(&words);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

fn template() {
    let lab = Lab::new();
    let unit = foreread_tests::root().join("packaging/foreread@.service.in");
    let unit = std::fs::read_to_string(&unit).expect("the unit");
    let units = ["foreread@.service", "foreread@server.service"].map(|name| (name, &*unit));
    let said = verified(&lab, "bin/foreread", &units);
    assert!(!said.contains("foreread@"), "{said}");
}
