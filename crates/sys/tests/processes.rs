//! The calls on real processes: their state, their signals, their pages, their reads.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use foreread_sys::features::{Availability, Features};
use foreread_sys::page_size;
use foreread_sys::pagemap::PageMap;
use foreread_sys::process::{Child, End, IoCounters};
use foreread_sys::signals::Signals;

/// Starts a child that the test reaps itself.
fn start(command: &mut Command) -> Child {
    Child::new(command.spawn().unwrap().id()).unwrap()
}

/// Waits until `condition` holds.
fn eventually(mut condition: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the process did not change state");
}

#[test]
fn a_stop_and_the_final_signal_are_told_apart() {
    let child = start(Command::new("sleep").arg("60"));
    assert!(!child.has_ended().unwrap() && !child.was_stopped().unwrap());
    assert_eq!(child.end().unwrap(), None);
    child.send(libc::SIGSTOP).unwrap();
    eventually(|| child.was_stopped().unwrap());
    assert!(!child.was_stopped().unwrap() && !child.has_ended().unwrap());
    child.send(libc::SIGCONT).unwrap();
    child.send(libc::SIGTERM).unwrap();
    eventually(|| child.has_ended().unwrap());
    // It exists until it is reaped.
    child.send(libc::SIGTERM).unwrap();
    assert!(!child.was_stopped().unwrap() && child.has_ended().unwrap());
    assert_eq!(child.end().unwrap(), Some(End::Killed(libc::SIGTERM)));
    assert!(child.has_ended().is_err());
}

#[test]
fn an_ended_process_still_tells_what_it_read_until_it_is_reaped() {
    let script = "cat /proc/self/exe /proc/self/exe >/dev/null; exit 3";
    let pid = Command::new("sh")
        .args(["-c", script])
        .spawn()
        .unwrap()
        .id();
    let child = Child::new(pid).unwrap();
    eventually(|| child.has_ended().unwrap());
    let counters = IoCounters::of(pid).unwrap();
    assert!(counters.rchar > 10_000, "{counters:?}");
    assert_eq!(child.end().unwrap(), Some(End::Exited(3)));
    assert!(IoCounters::of(pid).is_err());
}

#[test]
fn a_spawned_program_has_the_signal_mask_from_before_the_block() {
    let mask = |text: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("SigBlk:\t"))
            .unwrap()
            .to_owned()
    };
    // A thread of its own, as the mask belongs to the thread and tests share the process.
    std::thread::spawn(move || {
        let before = mask(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
        let signals = Signals::block(&[libc::SIGUSR1, libc::SIGTERM]).unwrap();
        let blocked = mask(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
        assert_ne!(before, blocked);
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = format!("cat /proc/self/status > {}", file.path().display());
        let command = ["sh", "-c", &line].map(Into::into);
        let pid = foreread_sys::spawn::spawn(&command, &[], &signals).unwrap();
        let child = Child::new(pid).unwrap();
        eventually(|| child.has_ended().unwrap());
        assert_eq!(child.end().unwrap(), Some(End::Exited(0)));
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(mask(&text), before);
    })
    .join()
    .unwrap();
}

#[test]
fn blocked_signals_are_taken_from_the_descriptor_in_turn() {
    std::thread::spawn(|| {
        let signals = Signals::block(&[libc::SIGUSR2]).unwrap();
        assert_eq!(signals.next().unwrap(), None);
        let me = rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_nonzero().get());
        // SAFETY: sends a signal this thread has blocked to this thread; no memory is passed.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                libc::getpid(),
                me.unwrap().as_raw_nonzero().get(),
                libc::SIGUSR2,
            )
        };
        assert_eq!(sent, 0);
        let received = signals.next().unwrap().unwrap();
        assert_eq!(received.signal, libc::SIGUSR2);
        assert!(!received.from_kernel);
        assert!(received.from_self);
        assert_eq!(signals.next().unwrap(), None);
    })
    .join()
    .unwrap();
}

#[test]
fn who_sent_a_signal_is_told_apart() {
    std::thread::spawn(|| {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        // SAFETY: only the number of this thread.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        // A thread can be sent to by its number, as nobody else in this process may get the signal.
        let send = format!(
            "import ctypes; ctypes.CDLL(None).syscall({}, {}, {thread}, {})",
            libc::SYS_tgkill,
            std::process::id(),
            libc::SIGUSR1
        );
        match Command::new("python3").args(["-c", &send]).status() {
            Ok(status) => assert!(status.success()),
            Err(_) => return println!("skipped: no python3 here"),
        }
        let received = signals.next().unwrap().unwrap();
        assert!(!received.from_kernel && !received.from_self, "{received:?}");
    })
    .join()
    .unwrap();
}

#[test]
fn the_touched_pages_of_another_process_are_found() {
    // The reader maps 64 untouched pages, touches two, prints the address and waits.
    const READER: &str = "\
import mmap, os, sys, ctypes
page = mmap.PAGESIZE
area = mmap.mmap(-1, 64 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area.madvise(getattr(mmap, 'MADV_NOHUGEPAGE', 15))
area[3 * page] = 1
area[40 * page] = 1
print(ctypes.addressof(ctypes.c_char.from_buffer(area)), flush=True)
sys.stdin.read()
";
    let spawned = Command::new("python3")
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: no python3 here");
        return;
    };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let base: u64 = line.trim().parse().unwrap();
    let page = page_size();
    let map = PageMap::open(child.id()).unwrap();
    let found = map.touched(base..base + 64 * page);
    drop(child.stdin.take());
    child.wait().unwrap();
    let after = map.touched(base..base + 64 * page);
    assert!(
        after.is_ok_and(|after| after.is_empty()),
        "of a process that has ended"
    );
    let at = |index: u64| base + index * page..base + (index + 1) * page;
    assert_eq!(found.unwrap(), [at(3), at(40)]);
}

#[test]
fn a_process_that_is_gone_has_no_pages_to_show() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    assert!(PageMap::open(child.id()).is_err());
    assert!(Child::new(0).is_err());
}

#[test]
fn probing_leaves_no_descriptor_open_and_every_lack_says_why() {
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let count = || (0..20).map(|_| open_files()).min().unwrap();
    let before = count();
    for _ in 0..50 {
        for feature in Features::probe().0 {
            if let Availability::Missing { why, cost } = feature.state {
                assert!(!why.is_empty() && !cost.is_empty(), "{}", feature.name);
            }
        }
    }
    // Other tests open a few files at the same time; fifty rounds of a leak would show.
    assert!(count() < before + 40);
    assert!(File::open("/dev/null").is_ok());
}
