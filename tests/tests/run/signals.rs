//! Signals, stops and kills: the program receives them as without foreread, and the death of one side does not hurt the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use foreread_tests::{Lab, Need, check, eventually, finish, foreread, start, text};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_signal_to_foreread_reaches_a_program_that_handles_it",
        QUICK,
        &[],
        handled,
    ),
    (
        "every_signal_that_tells_something_reaches_the_program",
        ALL,
        &[Need::Command("python3")],
        every,
    ),
    (
        "a_stop_sent_to_foreread_stops_the_program_first",
        ALL,
        &[],
        stop_sent,
    ),
    (
        "who_ignores_its_children_still_learns_how_the_program_ended",
        ALL,
        &[Need::Command("env")],
        children_ignored,
    ),
    (
        "the_c_library_s_own_signals_are_ignored_or_not_as_before",
        ALL,
        &[Need::Command("cc")],
        reserved,
    ),
    (
        "a_signal_the_program_does_not_handle_ends_both",
        QUICK,
        &[],
        unhandled,
    ),
    ("a_signal_to_the_group_ends_the_program", ALL, &[], group),
    (
        "the_program_gets_each_signal_as_often_as_it_is_sent",
        ALL,
        &[],
        once,
    ),
    (
        "a_program_outside_the_group_gets_what_is_sent_to_foreread",
        ALL,
        &[Need::Command("setsid")],
        outside,
    ),
    (
        "an_alarm_set_before_foreread_reaches_the_program",
        ALL,
        &[Need::Command("python3")],
        alarm,
    ),
    (
        "the_interrupt_key_reaches_the_program_once",
        QUICK,
        &[Need::Command("script")],
        interrupt_key,
    ),
    (
        "a_signal_sent_at_the_program_s_start_reaches_it_once",
        ALL,
        &[Need::Command("strace")],
        at_start,
    ),
    (
        "a_stopped_program_stops_foreread_and_both_go_on_together",
        QUICK,
        &[],
        stopped,
    ),
    (
        "the_program_goes_on_unharmed_when_foreread_is_killed",
        QUICK,
        &[],
        supervisor_killed,
    ),
    (
        "a_helper_that_is_killed_leaves_an_account_that_says_so",
        QUICK,
        &[Need::Command("pkill")],
        helper_killed,
    ),
    (
        "what_was_read_a_second_before_foreread_is_killed_is_known",
        ALL,
        &[],
        soon_killed,
    ),
    (
        "foreread_ends_as_a_program_that_is_killed_from_outside",
        ALL,
        &[],
        program_killed,
    ),
    (
        "what_outlives_the_program_is_left_alone",
        ALL,
        &[],
        outlived,
    ),
];

/// Counts its signals until one tells it to end.
const TRAPS: &str = "trap 'echo usr1' USR1; trap 'echo hup' HUP; trap 'echo end; exit 5' TERM
    echo ready; while :; do sleep 0.01; done";

/// A program under foreread that has printed "ready".
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn new(lab: &Lab, args: &[&str]) -> Self {
        let (mut command, _) = lab.running(&["--quiet"], args);
        let mut child = start(command.process_group(0));
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut running = Self { child, stdout };
        assert_eq!(running.line(), "ready\n");
        running
    }

    /// A script that receives every signal. The process that started the tests may ignore some (nohup), and a shell keeps those ignored.
    fn script(lab: &Lab, script: &str) -> Self {
        Self::new(lab, &["env", "--default-signal", "sh", "-c", script])
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("our own child");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line
    }

    /// The rest of the program's output, and foreread's exit status.
    fn end(mut self) -> (String, std::process::ExitStatus) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("output");
        (rest, finish(self.child).status)
    }
}

/// The state of a process as one letter.
fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.expect("a process that is not reaped");
    let (_, after) = stat.rsplit_once(") ").expect("the name in parentheses");
    after.chars().next().expect("a state")
}

fn handled() {
    let lab = Lab::new();
    let mut running = Running::script(&lab, TRAPS);
    running.signal(Signal::USR1);
    assert_eq!(running.line(), "usr1\n");
    running.signal(Signal::HUP);
    assert_eq!(running.line(), "hup\n");
    running.signal(Signal::TERM);
    let (rest, status) = running.end();
    assert_eq!(rest, "end\n");
    assert_eq!(status.code(), Some(5));
}

/// Python knows all their names; `trap` needs numbers for the real-time signals.
const LISTEN: &str = "import signal, sys
told = ['VTALRM', 'PROF', 'IO', 'PWR', 'XCPU', 'STKFLT', 'WINCH', 'URG', 'TSTP', 'TTIN', 'TTOU', 'RTMIN', 'RTMAX']
numbers = [getattr(signal, 'SIG' + name) for name in told]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print('ready', flush=True)
print(*numbers, flush=True)
for _ in numbers:
    print(signal.sigwait(numbers), flush=True)
";

fn every() {
    let lab = Lab::new();
    let mut running = Running::new(&lab, &["python3", "-c", LISTEN]);
    let numbers = running.line();
    for number in numbers.split_whitespace() {
        let sent = lab.plain(&["kill", "-s", number, &running.child.id().to_string()]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        assert_eq!(running.line().trim(), number);
    }
    assert_eq!(running.end().1.code(), Some(0));
}

const WAITS: &str = "echo ready; echo $$; until [ -e go ]; do sleep 0.01; done; exit 4";

fn stop_sent() {
    let lab = Lab::new();
    let mut running = Running::script(&lab, WAITS);
    let program: i32 = running.line().trim().parse().expect("a process id");
    let program = Pid::from_raw(program).expect("a process id");
    running.signal(Signal::TSTP);
    eventually("foreread stops too", || state(running.pid()) == 'T');
    assert_eq!(state(program), 'T');
    std::fs::write(lab.path("go"), "").expect("a file");
    running.signal(Signal::CONT);
    assert_eq!(running.end().1.code(), Some(4));
}

fn children_ignored() {
    let lab = Lab::new();
    lab.data("data", 8);
    // The mask of signals that the kernel ignores for the program.
    let script = "echo ready; grep SigIgn /proc/$$/status; cksum data; exit 3";
    let ignoring = |rest: &[&str]| {
        let ignored = &["env", "--default-signal", "--ignore-signal=CHLD"];
        lab.plain(&[ignored, rest].concat())
    };
    let plain = ignoring(&["sh", "-c", script]);
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    let home = format!("XDG_DATA_HOME={}", lab.path("home").display());
    for _ in 0..2 {
        let run = ignoring(&[
            "env", &home, foreread, "run", "-q", "--", "sh", "-c", script,
        ]);
        assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
        assert_eq!(text(&run.stdout), text(&plain.stdout));
    }
    let missing = ignoring(&[foreread, "run", "--", "./missing"]);
    assert_eq!(missing.status.code(), Some(127));
}

fn reserved() {
    let lab = Lab::new();
    lab.data("data", 8);
    lab.program("defaults", &[]);
    let script = "grep SigIgn /proc/$$/status; cksum data";
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    let home = format!("XDG_DATA_HOME={}", lab.path("home").display());
    // Ignored, as this process starts programs, and not.
    for before in [&["env"], &["./defaults"]] {
        let plain = lab.plain(&[before, &["sh", "-c", script][..]].concat());
        let command = [
            "env", &home, foreread, "run", "-q", "--", "sh", "-c", script,
        ];
        for _ in 0..2 {
            let run = lab.plain(&[&before[..], &command].concat());
            assert_eq!(text(&run.stdout), text(&plain.stdout), "{before:?}");
        }
    }
}

fn unhandled() {
    let lab = Lab::new();
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::ALARM] {
        let running = Running::script(&lab, "ulimit -c 0; echo ready; exec sleep 60");
        running.signal(signal);
        assert_eq!(running.end().1.signal(), Some(signal.as_raw()));
    }
}

fn group() {
    let lab = Lab::new();
    let running = Running::script(&lab, "echo ready; exec sleep 60");
    kill_process_group(running.pid(), Signal::INT).expect("our own group");
    assert_eq!(running.end().1.signal(), Some(Signal::INT.as_raw()));
}

/// Long enough for a forwarded signal to arrive, after all processes have received the signals sent to them.
const PASSING: Duration = Duration::from_millis(20);

/// Waits until every process of a group has received its signals and sleeps. A process may have waited long for a processor, and a
/// second signal would merge with one that is still pending.
fn all_taken(group: Pid) {
    let number = group.as_raw_nonzero().to_string();
    let idle = |folder: std::path::PathBuf| {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let stat = text("stat");
        // After the name: the state, the parent and the group.
        let mut fields = stat
            .rsplit_once(") ")
            .map_or("", |two| two.1)
            .split_whitespace();
        let (state, of) = (fields.next(), fields.nth(1));
        let status = text("status");
        let mut pending = status
            .lines()
            .filter(|line| line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"));
        of != Some(&number)
            || state == Some("S") && pending.all(|line| line.ends_with("\t0000000000000000"))
    };
    eventually("all have taken their signals", || {
        let processes = std::fs::read_dir("/proc").expect("/proc");
        processes.flatten().all(|process| idle(process.path()))
    });
}

fn once() {
    let lab = Lab::new();
    lab.program("count", &[]);
    let mut running = Running::new(&lab, &["./count"]);
    for round in 0..60 {
        if round % 3 == 0 {
            running.signal(Signal::USR1);
        } else {
            kill_process_group(running.pid(), Signal::USR1).expect("our own group");
        }
        assert_eq!(running.line(), "usr1\n");
        all_taken(running.pid());
        std::thread::sleep(PASSING);
    }
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, "term\n");
}

fn outside() {
    let lab = Lab::new();
    lab.program("count", &[]);
    let running = Running::new(&lab, &["setsid", "./count"]);
    // Without foreread it would not get signals to a group that it has left.
    kill_process_group(running.pid(), Signal::USR1).expect("our own group");
    all_taken(running.pid());
    std::thread::sleep(PASSING);
    running.signal(Signal::TERM);
    assert_eq!(running.end().0, "term\n");
}

fn alarm() {
    let lab = Lab::new();
    let set = "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.3); \
               os.execvp(sys.argv[1], sys.argv[1:])";
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    for command in [
        &["sleep", "20"][..],
        &[foreread, "run", "-q", "--", "sleep", "20"],
    ] {
        let output = lab.plain(&[&["python3", "-c", set], command].concat());
        let signal = output.status.signal();
        assert_eq!(signal, Some(Signal::ALARM.as_raw()), "{command:?}");
    }
}

fn interrupt_key() {
    let lab = Lab::new();
    lab.script(
        "count",
        "#!/bin/sh\nn=0; trap 'n=$((n+1))' INT; echo ready\n\
         read line; sleep 0.2; echo \"interrupts: $n\"\n",
    );
    // A shell that waited for foreread would be interrupted as well, and end.
    let line = format!("exec {} run -q -- ./count", foreread().display());
    // A shell cannot trap a signal that was ignored at its start, as in background commands of scripts.
    let mut command = lab.command("env");
    let mut child = start(
        command
            .args(["--default-signal=INT", "script", "-qec", &line, "/dev/null"])
            .stdin(Stdio::piped()),
    );
    let mut keys = child.stdin.take().expect("a pipe");
    let mut screen = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut shown = String::new();
    screen.read_line(&mut shown).expect("a line");
    assert_eq!(shown, "ready\r\n");
    keys.write_all(b"\x03").expect("a terminal");
    // Only after the interrupt has been processed, because the terminal would discard the line as well.
    eventually("the terminal shows the key", || {
        let mut byte = [0];
        screen.read_exact(&mut byte).is_ok() && byte == *b"C"
    });
    keys.write_all(b"\n").expect("a terminal");
    let mut rest = String::new();
    screen.read_to_string(&mut rest).expect("output");
    assert!(rest.contains("interrupts: 1\r\n"), "{rest:?}");
    assert!(finish(child).status.success());
}

/// Every process that foreread starts is delayed, as on a busy machine: the program is already working when foreread continues.
fn at_start() {
    let lab = Lab::new();
    lab.script(
        "count",
        "#!/bin/sh\nn=0; trap 'n=$((n+1))' USR1; kill -USR1 0; sleep 0.2; echo $n\n",
    );
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    let held = "inject=fork,vfork,clone,clone3:delay_enter=50000";
    let mut command = lab.command("strace");
    // -DD puts the tracer outside of the group.
    command.args(["-DD", "-qq", "-o", "/dev/null", "-e", held]);
    command.args([
        "env",
        "--default-signal",
        foreread,
        "run",
        "-q",
        "--",
        "./count",
    ]);
    let output = finish(start(command.process_group(0)));
    assert_eq!(text(&output.stdout), "1\n");
}

fn stopped() {
    let lab = Lab::new();
    let mut running = Running::new(&lab, &["sh", "-c", WAITS]);
    let program: i32 = running.line().trim().parse().expect("a process id");
    let program = Pid::from_raw(program).expect("a process id");
    kill_process(program, Signal::STOP).expect("our own grandchild");
    eventually("foreread stops too", || state(running.pid()) == 'T');
    std::fs::write(lab.path("go"), "").expect("a file");
    running.signal(Signal::CONT);
    let (rest, status) = running.end();
    assert_eq!((rest.as_str(), status.code()), ("", Some(4)));
}

fn supervisor_killed() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let command = &["./scatter", "2000", "200", "data"];
    let plain = text(&lab.plain(command).stdout);
    // Killed while recording; an undisturbed run; killed while prefetching; and killed once more.
    for run in 0..4 {
        lab.cold(&["data"]);
        let mut running = Running::new(&lab, command);
        if run == 1 {
            let (rest, status) = running.end();
            assert_eq!(
                (rest.as_str(), status.code()),
                (&plain["ready\n".len()..], Some(0))
            );
            continue;
        }
        running.child.kill().expect("our own child");
        running.child.wait().expect("our own child");
        let mut rest = String::new();
        running.stdout.read_to_string(&mut rest).expect("output");
        assert_eq!(rest, plain["ready\n".len()..]);
    }
    // What a killed foreread leaves behind is removed by the next run, once its helper has ended as well.
    eventually("one record", || {
        let after = lab.run(command);
        assert_eq!(after.stdout(), plain);
        let records = lab.records();
        records.len() == 1 && records[0].extension().is_some_and(|end| end == "fr")
    });
}

fn helper_killed() {
    let lab = Lab::new();
    // The kernel may kill the helper when memory runs out.
    let script = "cat /etc/passwd > /dev/null; pkill -KILL -P $PPID foreread-helper; exit 3";
    for options in [&[][..], &["-q"]] {
        let outcome = lab.run_with(options, &["sh", "-c", script]);
        assert_eq!(outcome.output.status.code(), Some(3), "{outcome:?}");
        assert_eq!(outcome.mode(), "aside", "{outcome:?}");
        let why = "foreread's helper process ended before the program";
        assert!(outcome.reason().contains(why), "{outcome:?}");
        assert_eq!(outcome.says(why), options.is_empty(), "{outcome:?}");
    }
}

fn soon_killed() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    lab.script(
        "job",
        "#!/bin/sh\n./scatter 1000 0 data > /dev/null\necho ready\nuntil [ -e go ]; do sleep 0.02; done\n",
    );
    lab.cold(&["data"]);
    let mut running = Running::new(&lab, &["./job"]);
    std::thread::sleep(Duration::from_millis(900));
    running.child.kill().expect("our own child");
    running.child.wait().expect("our own child");
    std::fs::write(lab.path("go"), "").expect("a file");
    running.end();
    lab.cold(&["data"]);
    let after = lab.run(&["./job"]);
    check!(after.bytes("useful") >= 800 * 4096, "{after:?}");
}

fn program_killed() {
    let lab = Lab::new();
    lab.data("data", 8);
    for _ in 0..2 {
        let mut running = Running::new(
            &lab,
            &[
                "sh",
                "-c",
                "cksum < data > /dev/null; echo ready; echo $$; exec sleep 60",
            ],
        );
        let program: i32 = running.line().trim().parse().expect("a process id");
        let program = Pid::from_raw(program).expect("a process id");
        kill_process(program, Signal::KILL).expect("our own grandchild");
        assert_eq!(running.end().1.signal(), Some(9));
    }
}

fn outlived() {
    let lab = Lab::new();
    lab.data("data", 8);
    let sum = lab.plain(&["cksum", "data"]);
    let outcome = lab.run(&[
        "sh",
        "-c",
        "(sleep 0.3; cksum data > late) > /dev/null 2>&1 &",
    ]);
    assert_eq!(outcome.output.status.code(), Some(0));
    eventually("the background job is done", || {
        std::fs::read(lab.path("late")).is_ok_and(|said| said == sum.stdout)
    });
}
