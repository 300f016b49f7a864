//! A process is about to wait for a device: the reader of the events gets an alarm at once.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use foreread_ebpf::system::observe;
use foreread_observe::{Budget, Event, Observer, What};
use foreread_tests::{Lab, eventually, text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::evict;

/// The shortest time between two alarms, in ns.
const ALARM: u64 = 4_000_000;

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec::try_from(Duration::ZERO).ok();
    let ready = poll(
        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
        now.as_ref(),
    );
    ready.is_ok_and(|ready| ready > 0)
}

pub(super) fn of_waits() {
    let lab = Lab::new();
    let names: Vec<String> = (0..300).map(|number| format!("cold-{number}")).collect();
    let files: Vec<File> = names
        .iter()
        .map(|name| File::open(lab.write(name, "1")).expect("our own file"))
        .collect();
    let mut system = observe().expect("as it was asked before");
    evict(&files);
    let mut alarms = Vec::new();
    let output = lab.plain(&["sh", "-c", "cat cold-*"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    eventually("the alarm is given", || {
        system.alarm_fd().is_some_and(is_readable)
    });
    let mut fetched = 0;
    let mut see = |event: Event| match event.what {
        What::Waits => alarms.push(event.at),
        What::Fetched { .. } => fetched += 1,
        _ => {}
    };
    let time = Duration::from_secs(60);
    while system.poll(&mut Budget::new(4096, time), &mut see).more {}
    assert!(!alarms.is_empty());
    assert!(fetched >= files.len(), "{fetched}");
    // With two processors each interval may have one alarm too many.
    let time = alarms[alarms.len() - 1] - alarms[0];
    assert!(alarms.len() as u64 <= 2 * (time / ALARM + 1), "{alarms:?}");
}
