//! From the accesses of a record to the list of wants: pages and names to bring into memory, in the program's order.
//!
//! Each page and each name is wanted once. A read that continues the previous one, in either direction, joins it, up to [`JOINED`] pages. A
//! name is not wanted if its file is read soon afterwards, because reading opens the file, nor if the block of its inode comes with another
//! name and its folder has been searched already. The continuation of a long sequential stream is left to the kernel, whose pieces of
//! memory are larger than the requests it accepts. For files in a [`Cache`] all pages are wanted each time they are read.
//!
//! Data flow: [`Trace`] → [`Wants::next`] → a batch of wants, in order.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use foreread_plan::{Access, FileId, FileMeta, Kind};
use foreread_sources::Streams;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Files;
use crate::pages::Planned;

/// The accesses of an earlier run, in order.
pub trait Trace {
    /// The next access; `None` at the end, also where the record is damaged from here on.
    fn next(&mut self) -> Option<Access>;
}

/// Pages of one want, at most: 128 KiB, Linux's default read-ahead window, which no hint is cut below.
pub const JOINED: u64 = 32;
/// Accesses in a batch. The first batch is small, so that the program's first reads are requested at once; each later one is [`GROWTH`]
/// times as large. A name whose file is read within the same batch is not wanted.
const FIRST_BATCH: usize = 256;
/// The factor was not measured by itself, nor others.
const GROWTH: usize = 4;
/// Accesses in a batch at most, a bound on memory.
const BATCH: usize = 1 << 16;
/// Inodes in one block of a device: of 256 bytes, in blocks of 4 KiB, as ext4 has them.
pub(crate) const INODES: u64 = 16;

/// A page range or a name to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Pages of a regular file.
    Pages(Range<u64>),
    /// Pages that go to a [`Cache`](crate::Cache).
    Cached(Range<u64>),
    /// The inode of a name, and for [`Kind::List`] the entries of a directory.
    Name(Kind),
    /// Pages of small files that are likely to lie next to each other on their device, each with its file.
    Together(Vec<(FileId, Range<u64>)>),
}

/// A page range or a name of a plan, to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) file: FileId,
    pub(crate) what: What,
    /// Pages that the program reads between the want before and this one, and that are left to the kernel or go to a cache.
    pub(crate) left: u64,
}

/// Makes wants of a trace.
pub(crate) struct Wants<'a, T> {
    trace: T,
    files: &'a dyn Files,
    batch: Vec<Access>,
    /// Size of the next batch, in accesses.
    room: usize,
    /// Files that are read in the batch.
    read: FxHashSet<FileId>,
    /// Files that a name was wanted of, or that were opened.
    named: FxHashMap<FileId, Kind>,
    /// Blocks of inodes that are wanted, by device.
    inodes: FxHashSet<(u64, u64)>,
    /// Folders in which a name is wanted.
    folders: FxHashSet<PathBuf>,
    streams: Streams,
    /// Pages left to the kernel, or for a cache, since the last want.
    left: u64,
    fresh: Vec<Range<u64>>,
    /// The file of the latest read, and whether its pages go to a cache.
    taken: Option<(FileId, bool)>,
}

impl<'a, T: Trace> Wants<'a, T> {
    pub(crate) fn new(trace: T, files: &'a dyn Files) -> Self {
        Self {
            trace,
            files,
            batch: Vec::new(),
            room: FIRST_BATCH,
            read: FxHashSet::default(),
            named: FxHashMap::default(),
            inodes: FxHashSet::default(),
            folders: FxHashSet::default(),
            streams: Streams::default(),
            left: 0,
            fresh: Vec::new(),
            taken: None,
        }
    }

    /// Appends the wants of the next accesses, and adds their pages to those planned; false at the end.
    pub(crate) fn next(&mut self, planned: &Mutex<Planned>, out: &mut Vec<Want>) -> bool {
        self.batch.clear();
        self.read.clear();
        let room = self.room;
        self.room = (room * GROWTH).min(BATCH);
        while self.batch.len() < room
            && let Some(access) = self.trace.next()
        {
            if access.kind.reads() && !access.extent.is_empty() {
                self.read.insert(access.file);
            }
            self.batch.push(access);
        }
        let batch = std::mem::take(&mut self.batch);
        let first = out.len();
        let mut planned = planned.lock().unwrap_or_else(PoisonError::into_inner);
        for access in &batch {
            if access.kind.reads() && access.waited() {
                let waited = planned.waited.entry(access.file).or_default();
                *waited = waited.saturating_add(access.took);
            }
            if access.kind == Kind::Touch {
                // A mapping has no read-ahead of that kind.
                self.fetch(access, &mut planned, first, out);
            } else if access.kind.reads() {
                self.read(access, &mut planned, first, out);
            } else if access.kind.names() && !self.read.contains(&access.file) {
                self.name(access.file, access.kind, out);
            }
        }
        self.batch = batch;
        !self.batch.is_empty()
    }

    fn read(&mut self, access: &Access, planned: &mut Planned, first: usize, out: &mut Vec<Want>) {
        let file = access.file;
        planned.files.insert(file);
        if self.is_cached(file) {
            let pages = access.extent.pages();
            self.left += planned.all.add(file, pages.clone());
            push((file, pages), What::Cached, &mut self.left, first, out);
            return;
        }
        if self.streams.is_left(access.thread, file, access.extent) {
            let pages = access.extent.pages();
            self.fresh.clear();
            planned.all.fresh(file, pages, &mut self.fresh);
            for pages in self.fresh.drain(..) {
                self.left += planned.left.add(file, pages);
            }
            return;
        }
        self.fetch(access, planned, first, out);
    }

    fn fetch(&mut self, access: &Access, planned: &mut Planned, first: usize, out: &mut Vec<Want>) {
        let file = access.file;
        self.fresh.clear();
        planned
            .all
            .fresh(file, access.extent.pages(), &mut self.fresh);
        for pages in self.fresh.drain(..) {
            push((file, pages), What::Pages, &mut self.left, first, out);
        }
        if self.named.insert(file, Kind::Open).is_none()
            && let Some(meta) = self.files.file(file)
        {
            self.finds(meta);
        }
    }

    /// True if pages of the file go to a cache.
    fn is_cached(&mut self, file: FileId) -> bool {
        let Some(cache) = self.files.cache() else {
            return false;
        };
        let known = self.taken.filter(|(last, _)| *last == file);
        let (_, is_taken) = *self
            .taken
            .insert(known.unwrap_or_else(|| (file, cache.takes(file))));
        is_taken
    }

    fn name(&mut self, file: FileId, kind: Kind, out: &mut Vec<Want>) {
        let known = self.named.get(&file);
        if known.is_some_and(|known| *known == Kind::List || kind != Kind::List) {
            return;
        }
        self.named.insert(file, kind);
        let Some(meta) = self.files.file(file) else {
            return;
        };
        if self.finds(meta) || kind == Kind::List {
            out.push(Want {
                file,
                what: What::Name(kind),
                left: std::mem::take(&mut self.left),
            });
        }
    }

    /// Notes a lookup of the file. True if it brings anything new into memory.
    fn finds(&mut self, meta: &FileMeta) -> bool {
        let block = block(meta);
        let folder = meta.path.parent().unwrap_or(Path::new("/"));
        let is_new_folder = !self.folders.contains(folder);
        if is_new_folder {
            self.folders.insert(folder.to_owned());
        }
        // Without a device of its own a file system asks a server for each name.
        self.inodes.insert(block) || is_new_folder || rustix::fs::major(meta.dev) == 0
    }
}

/// Appends wants of these pages, joined to the last want if its index is at least `first`.
fn push(
    (file, pages): (FileId, Range<u64>),
    what: fn(Range<u64>) -> What,
    left: &mut u64,
    first: usize,
    out: &mut Vec<Want>,
) {
    let last = out[first..].last_mut().filter(|last| last.file == file);
    if let Some(What::Pages(last) | What::Cached(last)) = last.map(|last| &mut last.what)
        && let Some(joined) = joined(last, &pages)
    {
        *last = joined;
        return;
    }
    let mut start = pages.start;
    while start < pages.end {
        let end = pages.end.min(start + JOINED);
        out.push(Want {
            file,
            what: what(start..end),
            left: std::mem::take(left),
        });
        start = end;
    }
}

impl Want {
    /// Wants these pages; there must be at least one.
    pub(crate) fn of(mut all: Vec<(FileId, Range<u64>)>) -> Self {
        let file = all[0].0;
        let what = match all.len() {
            1 => What::Pages(all.remove(0).1),
            _ => What::Together(all),
        };
        Self {
            file,
            what,
            left: 0,
        }
    }

    /// Its pages, gaps included. Pages for a cache are counted in [`Want::left`] instead, each once.
    pub(crate) fn pages(&self) -> u64 {
        match &self.what {
            What::Pages(pages) => pages.end - pages.start,
            What::Name(_) | What::Cached(_) => 0,
            What::Together(all) => all.iter().map(|(_, pages)| pages.end - pages.start).sum(),
        }
    }
}

/// The block that a file's inode lies in, and its device.
fn block(meta: &FileMeta) -> (u64, u64) {
    (meta.dev, meta.ino.wrapping_sub(1) / INODES)
}

/// Both ranges as one, if they touch or overlap, and that is not too long.
fn joined(last: &Range<u64>, pages: &Range<u64>) -> Option<Range<u64>> {
    let touch = last.start <= pages.end && pages.start <= last.end;
    let both = last.start.min(pages.start)..last.end.max(pages.end);
    (touch && both.end - both.start <= JOINED).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Extent, PAGE, ThreadId};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    struct List(std::vec::IntoIter<Access>);

    impl Trace for List {
        fn next(&mut self) -> Option<Access> {
            self.0.next()
        }
    }

    struct Table(BTreeMap<FileId, FileMeta>);

    impl Files for Table {
        fn file(&self, file: FileId) -> Option<&FileMeta> {
            self.0.get(&file)
        }
    }

    fn table(count: u32) -> Table {
        let meta = |number| {
            FileMeta::regular(
                format!("/data/{number}"),
                (0x801, u64::from(number) + 1),
                1 << 30,
                0,
            )
        };
        Table(
            (0..count)
                .map(|number| (FileId(number), meta(number)))
                .collect(),
        )
    }

    fn access(file: u32, kind: Kind, pages: Range<u64>) -> Access {
        Access {
            file: FileId(file),
            extent: Extent::new(pages.start * PAGE, (pages.end - pages.start) * PAGE),
            thread: ThreadId(0),
            kind,
            start: 0,
            took: 0,
        }
    }

    fn wants(accesses: Vec<Access>, files: &Table) -> Vec<Want> {
        let mut wants = Wants::new(List(accesses.into_iter()), files);
        let mut out = Vec::new();
        let planned = Mutex::default();
        while wants.next(&planned, &mut out) {}
        out
    }

    fn pages(wants: &[Want]) -> Vec<Range<u64>> {
        let pages = wants.iter().filter_map(|want| match &want.what {
            What::Pages(pages) | What::Cached(pages) => Some(pages.clone()),
            What::Name(_) | What::Together(_) => None,
        });
        pages.collect()
    }

    #[test]
    fn a_long_stream_is_left_to_the_kernel_but_for_its_beginning() {
        let files = table(1);
        let forward = (0..400).map(|page| access(0, Kind::Read, page..page + 1));
        let wanted = pages(&wants(forward.collect(), &files));
        assert_eq!(wanted.last().map(|last| last.end), Some(64));
        let touched = (0..400).map(|page| access(0, Kind::Touch, page..page + 1));
        let wanted = pages(&wants(touched.collect(), &files));
        assert_eq!(wanted.last().map(|last| last.end), Some(400));
    }

    #[test]
    fn a_want_counts_the_pages_before_it_that_are_left_to_the_kernel() {
        let files = table(2);
        let forward = (0..400).map(|page| access(0, Kind::Read, page..page + 1));
        let all = forward.chain([access(1, Kind::Read, 7..9)]);
        let wanted = wants(all.collect(), &files);
        let pages: u64 = wanted.iter().map(Want::pages).sum();
        assert_eq!((pages, wanted.last().unwrap().left), (66, 336));
    }

    /// A table of files whose pages go to a cache.
    struct Cached(Table);

    impl Files for Cached {
        fn file(&self, file: FileId) -> Option<&FileMeta> {
            self.0.file(file)
        }

        fn cache(&self) -> Option<&dyn crate::Cache> {
            Some(self)
        }
    }

    impl crate::Cache for Cached {
        fn takes(&self, file: FileId) -> bool {
            file == FileId(0)
        }

        fn bring(&self, _: FileId, _: Range<u64>) {}

        fn is_full(&self) -> bool {
            false
        }

        fn stop(&self) {}

        fn brought(&self) -> Vec<(FileId, Range<u64>)> {
            Vec::new()
        }
    }

    #[test]
    fn of_a_file_for_a_cache_all_reads_are_wanted_and_its_pages_are_counted_once() {
        let files = Cached(table(2));
        let forward = (0..400).map(|page| access(0, Kind::Read, page..page + 1));
        let all = forward.clone().chain(forward);
        let all = all.chain([access(1, Kind::Read, 7..9)]);
        let mut wants = Wants::new(List(all.collect::<Vec<_>>().into_iter()), &files);
        let (mut out, planned) = (Vec::new(), Mutex::default());
        while wants.next(&planned, &mut out) {}
        let cached = out.iter().filter_map(|want| match &want.what {
            What::Cached(pages) => Some(pages.end - pages.start),
            _ => None,
        });
        assert_eq!(cached.sum::<u64>(), 800);
        let counted = out.iter().map(|want| want.pages() + want.left);
        assert_eq!(counted.sum::<u64>(), 402);
    }

    #[test]
    fn neighbours_are_joined_in_either_direction() {
        let files = table(1);
        let forward = (0..40).map(|page| access(0, Kind::Pread, page..page + 1));
        assert_eq!(pages(&wants(forward.collect(), &files)), [0..32, 32..40]);
        let backward = (0..40)
            .rev()
            .map(|page| access(0, Kind::Pread, page..page + 1));
        assert_eq!(pages(&wants(backward.collect(), &files)), [8..40, 0..8]);
    }

    #[test]
    fn a_file_that_is_read_is_not_looked_up_for_its_name_as_well() {
        let files = table(3);
        let all = vec![
            access(0, Kind::Stat, 0..0),
            access(0, Kind::Open, 0..0),
            access(0, Kind::Read, 0..2),
            access(1, Kind::Open, 0..0),
            access(0, Kind::Stat, 0..0),
        ];
        let wanted = wants(all, &files);
        assert_eq!(pages(&wanted), std::slice::from_ref(&(0..2)));
        // Both inodes lie in one block, and both names in one folder.
        assert_eq!(wanted.len(), 1);
    }

    #[test]
    fn one_name_stands_for_all_of_its_block_and_a_listed_folder_is_listed() {
        let files = table(64);
        let mut all: Vec<_> = (0..64).map(|file| access(file, Kind::Stat, 0..0)).collect();
        assert_eq!(wants(all.clone(), &files).len(), 4);
        all.push(access(5, Kind::List, 0..0));
        all.push(access(5, Kind::List, 0..0));
        assert_eq!(wants(all, &files).len(), 5);
    }

    proptest! {
        #[test]
        fn each_page_is_wanted_exactly_once(
            reads in prop::collection::vec((0u32..3, 0u64..200, 1u64..90), 0..1500),
        ) {
            let files = table(3);
            let all: Vec<_> = reads
                .iter()
                .map(|&(file, start, len)| access(file, Kind::Touch, start..start + len))
                .collect();
            let model: BTreeSet<_> = reads
                .iter()
                .flat_map(|&(file, start, len)| (start..start + len).map(move |page| (FileId(file), page)))
                .collect();
            let wanted = wants(all, &files);
            let mut seen = BTreeSet::new();
            for want in &wanted {
                let What::Pages(pages) = &want.what else { panic!("{want:?}") };
                prop_assert!(pages.end - pages.start <= JOINED && !pages.is_empty());
                for page in pages.clone() {
                    prop_assert!(seen.insert((want.file, page)));
                }
            }
            prop_assert_eq!(seen, model);
        }
    }
}
