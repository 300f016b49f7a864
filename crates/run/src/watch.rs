//! Turns reports of threads into accesses of files.
//!
//! An observer reports numbers and paths, because that is cheap for the program. Here, in foreread's own time, paths are resolved
//! ([`places`]), mappings are sampled for touched pages, and files and threads get their numbers. A name is passed on once for each kind of
//! use: after that its inode and entries are in memory.
//!
//! Data flow: [`Event`] → [`Watch::take`] → [`Sink`], in order of start.

mod places;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foreread_observe::{Event, How, What, Who};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, Rank, Sequence, ThreadId, ThreadMeta,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::files::Files;
use super::touched::{Mapping, Sample, Touched};
use places::{Places, Resolved, Target, Use};

/// Open descriptions remembered at a time. Beyond that the table starts afresh, and reads of those still open are lost.
const REMEMBERED: usize = 1 << 20;
/// Processes remembered at a time, with the same consequence.
const PROCESSES: usize = 1 << 16;
/// Limit of the bytes of programs' paths, those remembered and those given for threads. Later programs are not named.
const NAMES: usize = 16 << 20;

/// Limit of the paths of files that are only written to, in bytes. Later ones are examined like all other files.
const UNREAD: usize = 64 << 20;
/// Files that were only written to and are still examined at the end: 3 µs each.
const WRITTEN: usize = 256;

/// Number of programs that are distinguished.
const PROGRAMS: usize = 4096;
/// Number of threads that are distinguished: later ones share the last number.
const THREADS: usize = 1 << 16;

/// Uses of a file so far, as bits: opened, looked up, its entries read.
const OPENED: u8 = 1;
const LOOKED_AT: u8 = 2;
const LISTED: u8 = 4;

/// Who made a call, and when: process, thread, start and duration in ns.
type At = (u32, u32, u64, u64);

/// A receiver of observed accesses.
pub(super) trait Sink {
    /// A file is met for the first time, or its facts have changed.
    fn file(&mut self, id: FileId, meta: &FileMeta);
    /// A file is met by its name alone; its contents may not be read.
    fn named(&mut self, id: FileId, meta: &FileMeta) {
        self.file(id, meta);
    }
    /// A file that was met by its name alone is opened.
    fn opened(&mut self, _: FileId, _: &FileMeta) {}
    /// A file is longer than it was known to be, or is emptied once more.
    fn grown(&mut self, id: FileId, meta: &FileMeta);
    /// A file was mapped while touches were sampled: touches after the last sample are unknown.
    fn doubted(&mut self, _: FileId) {}
    /// True if a file of the followed record is identified by its path alone. The prefetcher checks the file itself.
    fn trusts(&self, _: FileId) -> bool {
        false
    }
    /// A thread is met for the first time.
    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta);
    /// An access, or several that went on where it ended.
    fn accesses(&mut self, sequence: Sequence);
    /// Reads with `O_DIRECT`: pages in memory are of no use to them.
    fn passes_cache_by(&mut self, _: Sequence) {}
}

/// The program tree, as known from its events.
pub(super) struct Watch {
    places: Places,
    /// Uses of files, as bits.
    uses: FxHashMap<FileId, u8>,
    /// Files opened for writing: their facts are looked up again at the end.
    writable: BTreeSet<FileId>,
    /// Paths of files that were opened for writing alone and not met otherwise, and whether they were emptied. Most are made by the run,
    /// and never read: nothing is asked of those.
    unread: FxHashMap<OsString, bool>,
    /// The bytes of all those paths so far.
    unread_paths: usize,
    instances: FxHashMap<u32, FileId>,
    /// Those of them that were opened with `O_DIRECT`.
    direct: FxHashSet<u32>,
    threads: FxHashMap<(u32, u32), ThreadId>,
    /// The last access's, with the size of its file, which mostly are the next one's too.
    last_instance: Option<(u32, FileId, u64)>,
    last_thread: Option<((u32, u32), ThreadId)>,
    processes: FxHashMap<u32, (u32, String)>,
    programs: HashSet<String>,
    /// The bytes of the programs' paths in `processes`, and of those said of threads.
    named: usize,
    said: usize,
    pub(super) touched: Touched,
    /// True if touched pages are found by sampling, because the observer does not report touches.
    samples: bool,
    /// Files that were found mapped.
    mapped: FxHashSet<FileId>,
    observed: bool,
    without_stdio: bool,
    /// The rank of a process of a parallel program, from its MPI library.
    rank: Option<Rank>,
}

impl Watch {
    /// Watch a run that began at `began`, and reports by the libraries `own`; `files` are those of its session.
    pub(super) fn new(began: SystemTime, own: Vec<PathBuf>, files: Files) -> Self {
        Self {
            places: Places::new(began, own, files),
            uses: FxHashMap::default(),
            writable: BTreeSet::new(),
            unread: FxHashMap::default(),
            unread_paths: 0,
            instances: FxHashMap::default(),
            direct: FxHashSet::default(),
            threads: FxHashMap::default(),
            last_instance: None,
            last_thread: None,
            processes: FxHashMap::default(),
            programs: HashSet::new(),
            named: 0,
            said: 0,
            touched: Touched::default(),
            samples: true,
            mapped: FxHashSet::default(),
            observed: false,
            without_stdio: false,
            rank: None,
        }
    }

    /// The same, with mapped pages sampled or not.
    pub(super) fn sampling(self, samples: bool) -> Self {
        Self { samples, ..self }
    }

    /// True if any thread reported.
    pub(super) fn observed(&self) -> bool {
        self.observed
    }

    /// The files met so far.
    pub(super) fn files(&self) -> &Files {
        &self.places.files
    }

    /// The identity of the file that is at `path` now.
    pub(super) fn facts(&self, path: &Path) -> Option<FileMeta> {
        self.places.facts(path)
    }

    /// Uses of names that are not accounted for, because there were too many.
    pub(super) fn unnamed(&self) -> u64 {
        self.places.unnamed()
    }

    /// The rank in a parallel program, from its MPI library.
    pub(super) fn rank(&self) -> Option<Rank> {
        self.rank
    }

    /// True if reads through stdio could not be observed in some process.
    pub(super) fn without_stdio(&self) -> bool {
        self.without_stdio
    }

    /// Take one event.
    pub(super) fn take(&mut self, event: Event, sink: &mut impl Sink) {
        self.observed = true;
        let Event {
            who: Who { pid, tid, .. },
            at: start,
            what,
        } = event;
        match what {
            What::Begin {
                parent,
                program,
                stdio,
            } => {
                self.without_stdio |= !stdio;
                let mut exe = program.path.to_string_lossy().into_owned();
                if self.processes.len() >= PROCESSES {
                    self.processes.clear();
                    self.named = 0;
                }
                self.named += exe.len();
                if self.named > NAMES {
                    exe.clear();
                }
                if self.programs.len() < PROGRAMS && self.programs.insert(exe.clone()) {
                    self.touched.expects_news();
                }
                self.processes.insert(pid, (parent, exe));
                let thread = self.thread(pid, tid, sink);
                if self.samples {
                    self.touched.begins(pid, thread);
                }
            }
            What::Open {
                handle,
                file,
                took,
                how,
            } => {
                let at = (pid, tid, start, took);
                if how.directory {
                    return self.name(file.path, Kind::Open, Use::Followed, at, sink);
                }
                if how.unread && self.is_unread(&file.path, how) {
                    return;
                }
                let how = self.also_written(&file.path, how);
                let Resolved { link, target } = self.places.find(file.path, &Use::Opened, sink);
                if let Some(link) = link {
                    self.used(link, Kind::Stat, at, sink);
                }
                let Some(file) = self.open(target, how, sink) else {
                    return;
                };
                if self.instances.len() >= REMEMBERED {
                    self.instances.clear();
                    self.direct.clear();
                }
                self.instances.insert(handle, file);
                match how.direct {
                    true => self.direct.insert(handle),
                    false => self.direct.remove(&handle),
                };
                self.last_instance = None;
                let thread = self.thread(pid, tid, sink);
                let opened = Access {
                    file,
                    extent: Extent::default(),
                    thread,
                    kind: Kind::Open,
                    start,
                    took,
                };
                sink.accesses(opened.into());
            }
            What::Read {
                handle,
                kind,
                extent,
                took,
                more,
            } => {
                let Some((file, size)) = self.file_of(handle) else {
                    return;
                };
                let end = extent
                    .offset
                    .saturating_add(extent.len * (u64::from(more) + 1));
                if end > size {
                    self.grow(file, end, sink);
                }
                let thread = self.thread(pid, tid, sink);
                let first = Access {
                    file,
                    extent,
                    thread,
                    kind,
                    start,
                    took,
                };
                let sequence = Sequence { first, more };
                if self.direct.contains(&handle) {
                    sink.passes_cache_by(sequence);
                } else {
                    sink.accesses(sequence);
                }
            }
            What::Dropped { handle } => {
                if let Some((file, _)) = self.file_of(handle) {
                    self.drop(file, sink);
                }
            }
            What::Named {
                path,
                kind,
                took,
                follows,
                inode,
            } => {
                let looked_for = match inode {
                    _ if follows => Use::Followed,
                    Some(inode) => Use::Told(inode),
                    None => Use::Named,
                };
                self.name(path, kind, looked_for, (pid, tid, start, took), sink);
            }
            What::Touched {
                handle,
                extent,
                took,
            } => {
                let Some((file, _)) = self.file_of(handle) else {
                    return;
                };
                let thread = self.thread(pid, tid, sink);
                let touched = Access {
                    file,
                    extent,
                    thread,
                    kind: Kind::Touch,
                    start,
                    took,
                };
                self.touch(&touched, sink);
            }
            What::Rank(rank) => self.rank = Some(rank),
            What::Exit | What::Ended => {
                self.touched.exit(pid);
                self.processes.remove(&pid);
            }
            // Observers of the machine alone report these.
            What::Forked { .. } | What::Fetched { .. } | What::Waits => {}
        }
    }

    /// Look which mapped pages the program has touched since the last look, at `now` ns.
    pub(super) fn sample(&mut self, now: u64, sink: &mut impl Sink) {
        for Sample { thread, mappings } in self.touched.sample() {
            for (Mapping { extent, path, .. }, is_new, touched) in mappings {
                let how = self.also_written(&path, How::default());
                let target = self.places.find(path, &Use::Opened, sink).target;
                let Some(file) = self.open(target, how, sink) else {
                    continue;
                };
                let access = |kind, extent| Access {
                    file,
                    extent,
                    thread,
                    kind,
                    start: now,
                    took: 0,
                };
                self.mapped.insert(file);
                if is_new {
                    let size = self.files().met(file).size;
                    sink.accesses(access(Kind::Map, extent.clipped(size)).into());
                }
                for extent in touched {
                    self.touch(&access(Kind::Touch, extent), sink);
                }
            }
        }
    }

    /// Examines the files that were open for writing once more, so that the next run does not mistake this run's writes for changes by
    /// others. Files created by this run are never fetched. Also notes the mapped files, because their last touches are unknown.
    pub(super) fn finish(&mut self, sink: &mut impl Sink) {
        self.mapped.drain().for_each(|file| sink.doubted(file));
        let unread = std::mem::take(&mut self.unread).into_iter();
        for (path, truncates) in unread.take(WRITTEN) {
            let how = written(truncates, How::default());
            let target = self.places.find(path.into(), &Use::Opened, sink).target;
            self.open(target, how, sink);
        }
        for id in std::mem::take(&mut self.writable) {
            let before = self.files().met(id);
            if before.written {
                continue;
            }
            if let Some(meta) = self.places.regular(&before.path) {
                sink.file(id, &meta);
                *self.places.files.met_mut(id) = meta;
            }
        }
    }

    /// True if a file opened for writing only need not be examined until it is opened in another way.
    fn is_unread(&mut self, path: &Path, how: How) -> bool {
        if let Some(truncates) = self.unread.get_mut(path.as_os_str()) {
            *truncates |= how.truncates;
            return true;
        }
        let len = path.as_os_str().len();
        let is_left = self.unread_paths + len <= UNREAD && !self.places.knows(path);
        if is_left {
            self.unread_paths += len;
            self.unread.insert(path.into(), how.truncates);
        }
        is_left
    }

    /// The mode of an open, combined with earlier opens for writing.
    fn also_written(&mut self, path: &Path, how: How) -> How {
        match self.unread.remove(path.as_os_str()) {
            Some(truncates) => written(truncates, how),
            None => how,
        }
    }

    /// Passes on the use of a name: the link at the path, if any, and its target.
    fn name(&mut self, path: PathBuf, kind: Kind, used: Use, at: At, sink: &mut impl Sink) {
        let Resolved { link, target } = self.places.find(path, &used, sink);
        if let Some(link) = link {
            self.used(link, Kind::Stat, at, sink);
            if used != Use::Followed {
                return;
            }
        }
        match target {
            Target::Regular(file) if kind != Kind::List => self.used(file, kind, at, sink),
            Target::Directory(file) => self.used(file, kind, at, sink),
            _ => {}
        }
    }

    /// Pass on that a file was named, if that is news.
    fn used(
        &mut self,
        file: FileId,
        kind: Kind,
        (pid, tid, start, took): At,
        sink: &mut impl Sink,
    ) {
        // Files created by this run are in memory.
        if !self.is_news(file, kind) || self.files().met(file).written {
            return;
        }
        let named = Access {
            file,
            extent: Extent::default(),
            thread: self.thread(pid, tid, sink),
            kind,
            start,
            took,
        };
        sink.accesses(named.into());
    }

    /// Notes a use of a name. True if it needs more than the uses before.
    fn is_news(&mut self, file: FileId, kind: Kind) -> bool {
        let used = self.uses.entry(file).or_default();
        let (bit, covers) = match kind {
            Kind::List => (LISTED, LISTED),
            Kind::Open => (OPENED, OPENED | LISTED),
            _ => (LOOKED_AT, OPENED | LOOKED_AT | LISTED),
        };
        let is_news = *used & covers == 0;
        *used |= bit;
        is_news
    }

    /// Pass on the pages of a touch that were not touched before.
    fn touch(&mut self, access: &Access, sink: &mut impl Sink) {
        let size = self.files().met(access.file).size;
        for extent in self.touched.fresh(access.file, access.extent.clipped(size)) {
            sink.accesses(Access { extent, ..*access }.into());
        }
    }

    /// The file that is open as this, and its size as far as is known, in bytes.
    fn file_of(&mut self, handle: u32) -> Option<(FileId, u64)> {
        if let Some((last, file, size)) = self.last_instance
            && last == handle
        {
            return Some((file, size));
        }
        let file = *self.instances.get(&handle)?;
        let size = self.files().met(file).size;
        self.last_instance = Some((handle, file, size));
        Some((file, size))
    }

    /// The program asks which pages of a file are in memory.
    fn drop(&mut self, file: FileId, sink: &mut impl Sink) {
        let meta = self.places.files.met_mut(file);
        if meta.advice != Advice::Dropped {
            meta.advice = Advice::Dropped;
            sink.file(file, meta);
        }
    }

    /// A file was read up to `end`, and was not known to be as long.
    fn grow(&mut self, file: FileId, end: u64, sink: &mut impl Sink) {
        // A renamed file is at least as long as its reads.
        let path = &self.files().met(file).path;
        let found = path.metadata().map_or(0, |meta| meta.len());
        let meta = self.places.files.met_mut(file);
        meta.size = found.max(end);
        sink.grown(file, meta);
        self.last_instance = None;
    }

    fn thread(&mut self, pid: u32, tid: u32, sink: &mut impl Sink) -> ThreadId {
        if let Some((last, id)) = self.last_thread
            && last == (pid, tid)
        {
            return id;
        }
        let id = self.number_of(pid, tid, sink);
        self.last_thread = Some(((pid, tid), id));
        id
    }

    fn number_of(&mut self, pid: u32, tid: u32, sink: &mut impl Sink) -> ThreadId {
        if let Some(&id) = self.threads.get(&(pid, tid)) {
            return id;
        }
        if self.threads.len() > THREADS {
            return ThreadId(THREADS as u32);
        }
        let id = ThreadId(self.threads.len() as u32);
        self.threads.insert((pid, tid), id);
        let (ppid, mut exe) = self.processes.get(&pid).cloned().unwrap_or_default();
        self.said += exe.len();
        if self.said > NAMES {
            exe.clear();
        }
        sink.thread(
            id,
            &ThreadMeta {
                pid,
                tid,
                ppid,
                exe,
            },
        );
        id
    }

    /// The regular file that was opened or mapped; `None` for anything else.
    fn open(&mut self, target: Target, how: How, sink: &mut impl Sink) -> Option<FileId> {
        let Target::Regular(id) = target else {
            return None;
        };
        if self.is_news(id, Kind::Open) {
            self.touched.expects_news();
            if self.places.is_first_opened(id) {
                sink.opened(id, self.files().met(id));
            }
        }
        let files = &mut self.places.files;
        if how.truncates {
            let meta = files.met_mut(id);
            let is_news = !meta.written;
            meta.written = true;
            meta.size = 0;
            if is_news {
                sink.file(id, meta);
            } else {
                sink.grown(id, meta);
            }
        }
        if how.writes {
            self.writable.insert(id);
        }
        Some(id)
    }
}

/// This mode of an open with writing added, and with truncation if `truncates`.
fn written(truncates: bool, how: How) -> How {
    How {
        writes: true,
        truncates: how.truncates || truncates,
        ..how
    }
}

#[cfg(test)]
mod tests;
