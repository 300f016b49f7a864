//! From what threads report to accesses of files.
//!
//! The preload library reports by number and path, cheaply; here, on foreread's own time, paths
//! are resolved, everything but regular files is dropped, mappings are sampled for the pages
//! that were touched, and each file and thread gets its number.
//!
//! Data flow: [`Event`] → [`Watch::take`] → [`Sink`], in order of start.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, Sequence, ThreadId, ThreadMeta,
};
use rustc_hash::FxHashMap;

use super::files::Files;
use super::observer::{Event, How, What};
use super::touched::{Mapping, Sample, Touched};

/// Open descriptions and paths remembered at a time; beyond it the tables start afresh, and
/// what is still in use is no longer seen.
const REMEMBERED: usize = 1 << 20;
/// The same of processes.
const PROCESSES: usize = 1 << 16;
/// The bytes of programs' paths that are remembered, and said of threads; those after them are not named.
const NAMES: usize = 16 << 20;

/// Programs told apart.
const PROGRAMS: usize = 4096;
/// Threads told apart: those after them count as the last.
const THREADS: usize = 1 << 16;
/// The bytes of the paths of files, and of the paths that lead to them: what a process of another user opens, or says to
/// have opened, takes no more of this one's memory.
const PATHS: usize = 512 << 20;

/// Where what was watched goes.
pub(super) trait Sink {
    /// A file is met for the first time, or its facts have changed.
    fn file(&mut self, id: FileId, meta: &FileMeta);
    /// A file is longer than it was known to be, or is emptied once more.
    fn grown(&mut self, _: FileId, _: &FileMeta) {}
    /// A thread is met for the first time.
    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta);
    /// An access, or several that went on where it ended.
    fn accesses(&mut self, sequence: Sequence);
}

/// What is known of the program tree.
pub(super) struct Watch {
    began: SystemTime,
    /// The preload library, which is no file of the program's.
    own: Option<PathBuf>,
    files: Files,
    /// Files opened for writing: their facts are looked up again at the end.
    writable: BTreeSet<FileId>,
    by_path: HashMap<PathBuf, Option<FileId>>,
    /// Folders whose paths lead through no symbolic link.
    direct: HashSet<PathBuf>,
    instances: FxHashMap<u32, FileId>,
    threads: FxHashMap<(u32, u32), ThreadId>,
    /// The last access's, with the size of its file, which mostly are the next one's too.
    last_instance: Option<(u32, FileId, u64)>,
    last_thread: Option<((u32, u32), ThreadId)>,
    processes: FxHashMap<u32, (u32, String)>,
    programs: HashSet<String>,
    /// The bytes of the programs' paths in `processes`, and of those said of threads.
    named: usize,
    said: usize,
    /// The bytes of the paths of `files`, and of those in `by_path`.
    paths: usize,
    kept: usize,
    pub(super) touched: Touched,
    observed: bool,
    without_stdio: bool,
}

impl Watch {
    /// Watch a run that began at `began`, and reports by the library `own`; `files` are those of its session.
    pub(super) fn new(began: SystemTime, own: Option<PathBuf>, files: Files) -> Self {
        Self {
            began,
            own,
            files,
            writable: BTreeSet::new(),
            by_path: HashMap::new(),
            direct: HashSet::new(),
            instances: FxHashMap::default(),
            threads: FxHashMap::default(),
            last_instance: None,
            last_thread: None,
            processes: FxHashMap::default(),
            programs: HashSet::new(),
            named: 0,
            said: 0,
            paths: 0,
            kept: 0,
            touched: Touched::default(),
            observed: false,
            without_stdio: false,
        }
    }

    /// Whether any thread reported at all.
    pub(super) fn observed(&self) -> bool {
        self.observed
    }

    /// The files met so far.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// Whether some process's reads through stdio could not be seen.
    pub(super) fn without_stdio(&self) -> bool {
        self.without_stdio
    }

    /// Take one event.
    pub(super) fn take(&mut self, event: Event, sink: &mut impl Sink) {
        self.observed = true;
        let Event {
            pid,
            tid,
            start,
            what,
        } = event;
        match what {
            What::Begin { ppid, exe, stdio } => {
                self.without_stdio |= !stdio;
                let mut exe = exe.to_string_lossy().into_owned();
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
                self.processes.insert(pid, (ppid, exe));
                let thread = self.thread(pid, tid, sink);
                self.touched.begins(pid, thread);
            }
            What::Open {
                handle,
                path,
                took,
                how,
            } => {
                let Some(file) = self.open(&path, how, sink) else {
                    return;
                };
                if self.instances.len() >= REMEMBERED {
                    self.instances.clear();
                }
                self.instances.insert(handle, file);
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
                sink.accesses(sequence);
            }
            What::Exit => {
                self.touched.exit(pid);
                self.processes.remove(&pid);
            }
        }
    }

    /// Look which mapped pages the program has touched since the last look, at `now` ns.
    pub(super) fn sample(&mut self, now: u64, sink: &mut impl Sink) {
        for Sample { thread, mappings } in self.touched.sample() {
            for (Mapping { extent, path, .. }, is_new, touched) in mappings {
                let Some(file) = self.open(&path, How::default(), sink) else {
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
                if is_new {
                    let size = self.files.met(file).size;
                    sink.accesses(access(Kind::Map, extent.clipped(size)).into());
                }
                for extent in touched {
                    self.touch(&access(Kind::Touch, extent), sink);
                }
            }
        }
    }

    /// Look once more at the files that were open for writing, so that the next run does not take
    /// this run's own writes for somebody else's.
    pub(super) fn finish(&mut self, sink: &mut impl Sink) {
        for id in std::mem::take(&mut self.writable) {
            let before = self.files.met(id);
            if let Some(meta) = self.facts(&before.path) {
                let meta = FileMeta {
                    written: before.written || meta.written,
                    ..meta
                };
                sink.file(id, &meta);
                *self.files.met_mut(id) = meta;
            }
        }
    }

    /// Pass on the pages of a touch that were not touched before.
    fn touch(&mut self, access: &Access, sink: &mut impl Sink) {
        let size = self.files.met(access.file).size;
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
        let size = self.files.met(file).size;
        self.last_instance = Some((handle, file, size));
        Some((file, size))
    }

    /// A file was read up to `end`, and was not known to be as long.
    fn grow(&mut self, file: FileId, end: u64, sink: &mut impl Sink) {
        // One that has another name by now is as long as was read of it, at least.
        let path = &self.files.met(file).path;
        let found = path.metadata().map_or(0, |meta| meta.size());
        let meta = self.files.met_mut(file);
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

    fn open(&mut self, path: &Path, how: How, sink: &mut impl Sink) -> Option<FileId> {
        if how.directory {
            return None;
        }
        let known = match self.by_path.get(path) {
            Some(&known) => known,
            None => {
                let found = self.resolve(path, sink);
                self.keep(path, found);
                found
            }
        };
        let id = known?;
        if how.truncates {
            let meta = self.files.met_mut(id);
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

    /// The regular file a path leads to, symbolic links resolved.
    fn resolve(&mut self, path: &Path, sink: &mut impl Sink) -> Option<FileId> {
        let (canonical, stat) = self.place(path)?;
        if canonical != path
            && let Some(&known) = self.by_path.get(&canonical)
        {
            return known;
        }
        if self.is_own(&canonical) {
            return None;
        }
        let meta = self.facts_in(&canonical, &stat)?;
        if self.paths >= PATHS {
            return None;
        }
        let (id, is_new) = self.files.meet(&meta, stat.created().ok())?;
        if is_new {
            sink.file(id, &meta);
            self.paths += canonical.as_os_str().len();
            self.touched.expects_news();
        }
        self.keep(&canonical, Some(id));
        Some(id)
    }

    /// Remember where a path leads.
    fn keep(&mut self, path: &Path, found: Option<FileId>) {
        let len = path.as_os_str().len();
        if self.by_path.len() >= REMEMBERED || self.kept + len > PATHS {
            self.by_path.clear();
            self.kept = 0;
        }
        self.kept += len;
        self.by_path.insert(path.to_owned(), found);
    }

    /// Where a path leads, and what is there. To follow it link by link takes a call for each of its folders, so those
    /// that were found to lead through no link are kept.
    fn place(&mut self, path: &Path) -> Option<(PathBuf, Metadata)> {
        let (folder, name) = (path.parent()?, path.file_name()?);
        if !self.direct.contains(folder) {
            if folder.canonicalize().ok()? != folder {
                let canonical = path.canonicalize().ok()?;
                let stat = canonical.symlink_metadata().ok()?;
                return Some((canonical, stat));
            }
            if self.direct.len() >= REMEMBERED {
                self.direct.clear();
            }
            self.direct.insert(folder.to_owned());
        }
        // Without the dots and slashes that mean nothing.
        let mut place: PathBuf = folder.components().collect();
        place.push(name);
        let stat = place.symlink_metadata().ok()?;
        if !stat.is_symlink() {
            return Some((place, stat));
        }
        let canonical = place.canonicalize().ok()?;
        let stat = canonical.symlink_metadata().ok()?;
        Some((canonical, stat))
    }

    fn is_own(&self, canonical: &Path) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| {
            own.file_name() == canonical.file_name()
                && own.canonicalize().is_ok_and(|own| own == canonical)
        })
    }

    /// What identifies the regular file at `path` now.
    pub(super) fn facts(&self, path: &Path) -> Option<FileMeta> {
        self.facts_in(path, &path.metadata().ok()?)
    }

    /// The same, if that is what was found there.
    fn facts_in(&self, path: &Path, meta: &Metadata) -> Option<FileMeta> {
        meta.is_file().then(|| FileMeta {
            path: path.to_owned(),
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            mtime_ns: meta.mtime().saturating_mul(1_000_000_000) + meta.mtime_nsec(),
            written: meta.created().is_ok_and(|born| born >= self.began),
            advice: Advice::Normal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// What was handed on: threads, the bytes of their programs' paths, files and reads.
    #[derive(Default)]
    struct Counts {
        threads: usize,
        names: usize,
        files: usize,
        reads: usize,
    }

    impl Sink for Counts {
        fn file(&mut self, _: FileId, _: &FileMeta) {
            self.files += 1;
        }

        fn thread(&mut self, _: ThreadId, meta: &ThreadMeta) {
            self.threads += 1;
            self.names += meta.exe.len();
        }

        fn accesses(&mut self, _: Sequence) {
            self.reads += 1;
        }
    }

    fn event(pid: u32, what: What) -> Event {
        Event {
            pid,
            tid: pid,
            start: 0,
            what,
        }
    }

    #[test]
    fn what_hostile_processes_say_takes_bounded_memory() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().canonicalize().unwrap().join("file");
        std::fs::write(&file, "text").unwrap();
        let mut watch = Watch::new(SystemTime::now(), None, Files::new(Default::default()));
        let mut counts = Counts::default();
        let long = "x".repeat(4000);
        for pid in 1..200_000 {
            let introduced = What::Begin {
                ppid: 1,
                stdio: true,
                exe: format!("/{pid}/{long}").into(),
            };
            watch.take(event(pid, introduced), &mut counts);
        }
        // The same file by ever other paths, and paths that lead nowhere.
        for inst in 1..2000_u32 {
            for dots in ["./".repeat(inst as usize), format!("{inst}/")] {
                let opened = What::Open {
                    handle: inst,
                    how: How::default(),
                    took: 0,
                    path: home.path().join(dots).join("file"),
                };
                watch.take(event(inst, opened), &mut counts);
            }
        }
        assert_eq!(counts.files, 1);
        assert!(counts.threads <= THREADS + 1, "{} threads", counts.threads);
        assert!(counts.names <= NAMES, "{} bytes of names", counts.names);
        assert!(watch.processes.len() <= PROCESSES && watch.programs.len() <= PROGRAMS);
        let names = watch.processes.values().map(|(_, exe)| exe.len());
        assert!(names.sum::<usize>() <= NAMES);
        let paths = watch.by_path.keys().map(|path| path.as_os_str().len());
        assert!(paths.sum::<usize>() <= PATHS);
    }

    /// Were each looked for among all that were opened before, this would take minutes.
    #[test]
    fn a_program_may_write_very_many_files() {
        struct Nobody;
        impl Sink for Nobody {
            fn file(&mut self, _: FileId, _: &FileMeta) {}
            fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}
            fn accesses(&mut self, _: Sequence) {}
        }
        const FILES: u32 = 400_000;
        let mut watch = Watch::new(SystemTime::now(), None, Files::new(Default::default()));
        let path = |number: u32| PathBuf::from(format!("/none/{number}"));
        for number in 0..FILES {
            watch.by_path.insert(path(number), Some(FileId(number)));
            let meta = FileMeta {
                path: path(number),
                dev: 1,
                ino: u64::from(number),
                size: 0,
                mtime_ns: 0,
                written: true,
                advice: Advice::Normal,
            };
            assert_eq!(watch.files.meet(&meta, None), Some((FileId(number), true)));
        }
        for number in (0..FILES).chain(0..FILES) {
            let how = How {
                writes: true,
                ..How::default()
            };
            watch.open(&path(number), how, &mut Nobody);
        }
        assert_eq!(watch.writable.len(), FILES as usize);
        watch.finish(&mut Nobody);
        assert!(watch.writable.is_empty());
    }

    #[test]
    fn a_place_is_where_all_links_lead() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        for file in ["a/f", "a/b/f"] {
            std::fs::write(at(file), file).unwrap();
        }
        symlink("a", at("link")).unwrap();
        symlink("f", at("a/b/again")).unwrap();
        symlink("../f", at("a/b/up")).unwrap();
        symlink("nowhere", at("a/dangling")).unwrap();
        let mut watch = Watch::new(SystemTime::now(), None, Files::new(Default::default()));
        // Twice: the second time the folders are known.
        for _ in 0..2 {
            for name in [
                "a/f",
                "a/b/f",
                "a//b/./f",
                "a/b/../f",
                "link/f",
                "link/b/f",
                "a/b/again",
                "a/b/up",
                "link/b/up",
                "a/dangling",
                "a/none",
                "none/f",
                "a/f/f",
            ] {
                let found = watch.place(&at(name)).map(|(place, _)| place);
                // As bytes: paths that differ in dots are equal.
                let bytes = |path: PathBuf| path.into_os_string();
                let expected = at(name).canonicalize().ok();
                assert_eq!(found.map(bytes), expected.map(bytes), "{name}");
            }
        }
        // A folder that a link has taken the place of is not remembered by that path.
        assert!(!watch.direct.contains(&at("link")));
    }
}
