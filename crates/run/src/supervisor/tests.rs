use super::*;
use crate::files::Files;
use foreread_observe::{Event, How, What, Who};
use foreread_plan::{Extent, Kind};
use std::fs;
use std::time::SystemTime;

#[test]
fn what_is_read_of_a_file_that_has_grown_since_its_open_is_explained() {
    let home = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = home.path().canonicalize().unwrap().join("data");
    fs::write(&path, "").unwrap();
    let files = Files::new(Default::default());
    let mut watch = Watch::new(SystemTime::now(), Vec::new(), files);
    let mut sinks = Sinks::new(None, None, false);
    let mut tell = |what| {
        let who = Who {
            pid: 1,
            tid: 1,
            uid: None,
        };
        let event = Event { who, at: 0, what };
        watch.take(event, &mut sinks);
    };
    tell(What::Open {
        handle: 1,
        file: path.clone().into(),
        took: 0,
        how: How::default(),
    });
    let size = 8 << 20;
    fs::write(&path, vec![7; size as usize]).unwrap();
    tell(What::Read {
        handle: 1,
        kind: Kind::Pread,
        extent: Extent::new(0, size),
        took: 0,
        more: 0,
    });
    assert_eq!(sinks.explained.unseen(size), None);
}

/// A file may be open in both ways at once.
#[test]
fn only_reads_past_the_page_cache_are_counted_as_such() {
    let home = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = home.path().canonicalize().unwrap().join("data");
    fs::write(&path, vec![7; 8192]).unwrap();
    let files = Files::new(Default::default());
    let mut watch = Watch::new(SystemTime::now(), Vec::new(), files);
    let mut sinks = Sinks::new(None, None, false);
    for (handle, direct) in [(1, true), (2, false), (1, false)] {
        let open = What::Open {
            handle,
            file: path.clone().into(),
            took: 0,
            how: How {
                direct,
                ..How::default()
            },
        };
        let read = What::Read {
            handle,
            kind: Kind::Pread,
            extent: Extent::new(0, 4096),
            took: 0,
            more: 1,
        };
        for what in [open, read] {
            let who = Who {
                pid: 1,
                tid: 1,
                uid: None,
            };
            watch.take(Event { who, at: 0, what }, &mut sinks);
        }
    }
    assert_eq!(sinks.direct_bytes, 8192);
}
