//! Files of an overlay, as containers have: their pages belong to the layer below, and are found all the same. Needs root.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{Backend, Event, PageCache, Question, Ticket};
use foreread_plan::{FileId, FileMeta, Request, RequestId};

const FILE: FileId = FileId(1);
const PAGES: u64 = 8;

/// A mount, as long as this lives.
struct Overlay(PathBuf);

impl Overlay {
    /// An overlay of a folder that holds `file`; `None`, and why on standard output, where there can be none.
    fn new(folder: &Path) -> Option<Self> {
        let [lower, upper, work, point] = ["lower", "upper", "work", "point"].map(|name| {
            let path = folder.join(name);
            fs::create_dir(&path).expect("made");
            path
        });
        fs::write(lower.join("file"), vec![7; PAGES as usize * 4096]).expect("written");
        let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mut command = Command::new("mount");
        let made = command.args(["-t", "overlay", "-o", &options, "overlay"]);
        let made = made.arg(&point).output();
        if made.is_ok_and(|output| output.status.success()) {
            return Some(Self(point));
        }
        println!("skipped: no overlay can be mounted here");
        None
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()));
    }
}

/// The events up to the wanted one.
fn until(backend: &mut PageCache, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let (mut events, begun) = (Vec::new(), Instant::now());
    while !events.iter().any(&wanted) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{events:?}");
        backend.poll(&mut events);
        std::thread::sleep(Duration::from_micros(200));
    }
    events
}

#[test]
fn pages_of_an_overlay_are_seen_in_memory() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(overlay) = Overlay::new(folder.path()) else {
        return;
    };
    let path = overlay.0.join("file");
    let facts = fs::metadata(&path).expect("facts");
    let meta = FileMeta::regular(
        path,
        (facts.dev(), facts.ino()),
        facts.size(),
        facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
    );
    let files = Arc::new(BTreeMap::from([(FILE, meta)]));
    let mut backend = PageCache::new(&files);
    // Whoever clears all memory may come between two steps, but not each time.
    let seen = (0..50).any(|turn| is_seen_in_memory(&mut backend, turn));
    assert!(seen, "its pages are never seen");
}

/// Requests the file. True if it is in memory then.
fn is_seen_in_memory(backend: &mut PageCache, turn: u64) -> bool {
    backend.submit(Request {
        id: RequestId(turn),
        file: FILE,
        pages: 0..PAGES,
    });
    let events = until(backend, |event| matches!(event, Event::Done { .. }));
    let gone = |event: &Event| matches!(event, Event::Gone { .. });
    assert!(!events.iter().any(gone), "{events:?}");
    backend.ask(Question {
        ticket: Ticket(turn),
        file: FILE,
        parts: std::iter::once(0..PAGES).collect(),
        which: false,
    });
    let events = until(backend, |event| matches!(event, Event::Answered { .. }));
    events.iter().any(|event| match event {
        Event::Answered { answer, .. } => answer.parts[0].resident.is_some_and(|pages| pages > 0),
        _ => false,
    })
}
