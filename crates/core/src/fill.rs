//! Pages brought into memory for no program: nothing is paced, and only the pages are accounted for.
//!
//! Data flow: trace → [`Wants`] → [`Shared`] → page cache; requested bytes → [`Filled`].

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use foreread_plan::FileId;

use crate::Files;
use crate::fetch::Fetching;
use crate::pages::Planned;
use crate::threads::Shared;
use crate::wants::{Trace, Wants};
use crate::worker::Difference;

/// The result of filling memory.
#[derive(Debug, Default)]
pub struct Filled {
    /// Pages that were requested from a device, gaps included.
    pub issued: Vec<(FileId, Range<u64>)>,
    /// Files that differ from their entry, or could not be read.
    pub differences: Vec<(FileId, Difference)>,
}

/// Reads the pages of `trace` into memory, in its order, with as many requests at once as the devices accept. Gaps of up to `gaps` pages in
/// all are read as well, if that costs less than further requests. Returns when everything is requested; the last pages may be on their
/// way.
///
/// # Errors
/// When no thread can be started.
pub fn fill(trace: impl Trace, files: Arc<dyn Files>, gaps: u64) -> io::Result<Filled> {
    let shared = Arc::new(Shared::new(Arc::clone(&files), Fetching::filling(gaps)));
    let planned = Mutex::<Planned>::default();
    let mut wants = Wants::new(trace, &*files);
    let mut batch = Vec::new();
    let mut is_first = true;
    while wants.next(&planned, &mut batch) {
        let is_empty = batch.is_empty();
        shared.add(&mut batch);
        if is_first && !is_empty {
            is_first = false;
            if !shared.has_threads() {
                return Err(io::Error::other("no thread can be started"));
            }
        }
    }
    shared.complete();
    let mut state = shared.await_done();
    Ok(Filled {
        issued: std::mem::take(&mut state.issued),
        differences: std::mem::take(&mut state.differences),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, Extent, FileMeta, Kind, PAGE, ThreadId};
    use foreread_sys::cache;
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    struct List(std::vec::IntoIter<Access>);

    impl Trace for List {
        fn next(&mut self) -> Option<Access> {
            self.0.next()
        }
    }

    #[test]
    fn each_page_of_a_list_is_requested_once_and_a_file_that_is_gone_is_named() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().canonicalize().unwrap().join("data");
        std::fs::write(&path, vec![7; (512 * PAGE) as usize]).unwrap();
        cache::evict(File::open(&path).unwrap()).unwrap();
        let facts = path.metadata().unwrap();
        let meta = FileMeta::regular(
            path,
            (facts.dev(), facts.ino()),
            facts.size(),
            facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
        );
        let gone = FileMeta {
            path: "/none/here".into(),
            ..meta.clone()
        };
        let files = BTreeMap::from([(FileId(0), meta), (FileId(1), gone)]);
        let touch = |file, page| Access {
            file: FileId(file),
            extent: Extent::new(page * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Touch,
            start: 0,
            took: 0,
        };
        let list: Vec<_> = (0..300).map(|n| touch(0, n * 37 % 512)).collect();
        let list = [list, vec![touch(1, 0)]].concat();
        let filled = fill(List(list.into_iter()), Arc::new(files), 0).unwrap();
        let pages = filled
            .issued
            .iter()
            .map(|(_, pages)| pages.end - pages.start);
        // Somebody else's read-ahead may have brought some.
        assert!(pages.sum::<u64>() <= 300, "{:?}", filled.issued);
        let gone = |(file, how): &(FileId, Difference)| {
            *file == FileId(1) && matches!(how, Difference::Gone(_))
        };
        assert!(filled.differences.iter().any(gone), "{filled:?}");
    }

    #[test]
    fn an_empty_list_is_done_at_once() {
        let none = List(Vec::new().into_iter());
        let filled = fill(none, Arc::new(BTreeMap::new()), 100).unwrap();
        assert!(filled.issued.is_empty() && filled.differences.is_empty());
    }
}
