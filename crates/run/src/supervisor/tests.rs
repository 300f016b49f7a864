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
    let mut sinks = Sinks::new(None, None);
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
