//! None of foreread's lookups triggers a mount, whether the automount point is at the end of a path or in its middle.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use foreread_sys::way::{self, Links};
use foreread_sys::{file, name, user};
use foreread_tests::{AutomountPoint, Lab, Need};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "no_automount_point_is_triggered_wherever_it_is_in_a_path",
        QUICK,
        &[Need::Automount],
        looked_at,
    ),
    (
        "no_run_triggers_an_automount_point_that_its_record_leads_through",
        QUICK,
        &[Need::Automount],
        led_through,
    ),
];

/// A lookup that takes longer than this counts as waiting for a mount.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `look` in a thread; returns its result, or `None` if it waits.
fn within_patience<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(look()));
    told.recv_timeout(PATIENCE).ok()
}

/// All ways in which foreread looks up a path; true for each that finds something.
fn looks(path: &Path) -> [bool; 6] {
    [
        name::NameLookup::find(path).is_ok_and(|place| place.list(1).is_ok()),
        file::open_regular(path).is_ok(),
        file::open_exactly(path, 1, 1).is_ok(),
        way::find(path, Links::Followed).is_ok() && way::find(path, Links::Refused).is_ok(),
        way::real(path).is_ok(),
        user::may_know(path),
    ]
}

fn looked_at() {
    for kind in ["indirect", "direct"] {
        let lab = Lab::new();
        fs::create_dir(lab.path("point")).expect("a folder");
        let point = AutomountPoint::make(kind, lab.path("point")).expect("as it was tried before");
        let link = point.root.with_file_name("link");
        symlink(point.root.join("host"), &link).unwrap();
        for below in ["host", "host/file", "host/folder/file"] {
            for path in [point.root.join(below), link.join(below)] {
                let shown = path.display().to_string();
                let found = within_patience(move || looks(&path));
                assert!(
                    !point.is_asked(Duration::ZERO),
                    "{kind}: {shown} triggered it"
                );
                assert_eq!(found, Some([false; 6]), "{kind}: {shown}");
            }
        }
        // The point itself is found, and no mount is requested for it.
        let root = point.root.clone();
        let found = within_patience(move || way::find(&root, Links::Refused).is_ok());
        assert_eq!(found, Some(true), "{kind}");
        assert!(!point.is_asked(Duration::ZERO), "{kind}: the point itself");
        // A read by another program does trigger it.
        let mut other = Command::new("cat")
            .arg(point.root.join("host/file"))
            .spawn()
            .unwrap();
        let is_asked = point.is_asked(PATIENCE);
        // A process that waits for a mount would delay the removal of the point.
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(is_asked, "{kind}: nothing triggers it");
    }
}

/// A file system that was mounted during the recording is no longer mounted, and the program does not use its path.
fn led_through() {
    let lab = Lab::new();
    lab.program("looker", &[]);
    let folder = lab.path("mnt");
    fs::create_dir(&folder).expect("a folder");
    mount("none", &folder, "tmpfs", MountFlags::empty(), None).expect("root may");
    let mut lines = String::from("stat looker\n");
    for n in 0..40 {
        fs::create_dir(folder.join(format!("d{n}"))).expect("a folder");
        fs::write(folder.join(format!("d{n}/f")), "text").expect("a file");
        lines += &format!("list mnt/d{n}\nstat mnt/d{n}/f\n");
    }
    lab.write("list", &lines);
    let command = &["./looker", "list"];
    let first = lab.run(command);
    unmount(&folder, UnmountFlags::empty()).expect("nobody is there");
    assert_eq!(first.mode(), "recorded", "{first:?}");
    let point = AutomountPoint::make("direct", folder).expect("as it was tried before");
    lab.write("list", "stat looker\n");
    let plain = lab.plain(command);
    // Cached names under the mount point are dropped, so that all names are looked up again.
    let _ = fs::write("/proc/sys/vm/drop_caches", "2");
    let second = lab.run(command);
    second.assert_as(&plain);
    assert!(!point.is_asked(Duration::ZERO), "{second:?}");
}
