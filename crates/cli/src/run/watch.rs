//! From what threads report to accesses of files.
//!
//! The preload library reports by number and path, cheaply; here, on foreread's own time, paths
//! are resolved, everything but regular files is dropped, mappings are sampled for the pages
//! that were touched, and each file and thread gets its number.
//!
//! Data flow: [`RawEvent`] → [`Watch::take`] → [`Sink`], in order of start.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, Sequence, ThreadId, ThreadMeta,
};
use foreread_ring::{OPEN_DIRECTORY, OPEN_TRUNCATED, OPEN_WRITTEN, RawEvent, What};
use rustc_hash::FxHashMap;

use super::familiar::Familiar;
use super::touched::Touched;

/// Processes and open descriptions remembered at a time; beyond it the tables start afresh, and
/// what is still in use is no longer seen.
const REMEMBERED: usize = 1 << 20;

/// Where what was watched goes.
pub(super) trait Sink {
    /// A file is met for the first time, or its facts have changed.
    fn file(&mut self, id: FileId, meta: &FileMeta);
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
    files: Vec<FileMeta>,
    /// Files opened for writing: their facts are looked up again at the end.
    writable: BTreeSet<FileId>,
    by_path: HashMap<PathBuf, Option<FileId>>,
    /// Folders whose paths lead through no symbolic link.
    direct: HashSet<PathBuf>,
    instances: FxHashMap<u32, FileId>,
    threads: FxHashMap<(u32, u32), ThreadId>,
    /// The last access's, which mostly are the next one's too.
    last_instance: Option<(u32, FileId)>,
    last_thread: Option<((u32, u32), ThreadId)>,
    processes: FxHashMap<u32, (u32, String)>,
    pub(super) touched: Touched,
    pub(super) familiar: Familiar,
    observed: bool,
    without_stdio: bool,
}

impl Watch {
    /// Watch a run that began at `began`, and reports by the library `own`.
    pub(super) fn new(began: SystemTime, own: Option<PathBuf>) -> Self {
        Self {
            began,
            own,
            files: Vec::new(),
            writable: BTreeSet::new(),
            by_path: HashMap::new(),
            direct: HashSet::new(),
            instances: FxHashMap::default(),
            threads: FxHashMap::default(),
            last_instance: None,
            last_thread: None,
            processes: FxHashMap::default(),
            touched: Touched::default(),
            familiar: Familiar::default(),
            observed: false,
            without_stdio: false,
        }
    }

    /// Whether any thread reported at all.
    pub(super) fn observed(&self) -> bool {
        self.observed
    }

    /// Whether some process's reads through stdio could not be seen.
    pub(super) fn without_stdio(&self) -> bool {
        self.without_stdio
    }

    /// Take one event.
    pub(super) fn take(&mut self, event: RawEvent, sink: &mut impl Sink) {
        self.observed = true;
        let RawEvent {
            pid,
            tid,
            start,
            what,
            more,
        } = event;
        match what {
            What::Thread {
                ppid, exe, stdio, ..
            } => {
                self.without_stdio |= !stdio;
                let exe = exe.to_string_lossy().into_owned();
                self.processes.insert(pid, (ppid, exe));
                self.thread(pid, tid, sink);
            }
            What::Open {
                inst,
                path,
                flags,
                took,
            } => {
                let Some(file) = self.open(&path, flags, sink) else {
                    return;
                };
                if self.instances.len() >= REMEMBERED {
                    self.instances.clear();
                }
                self.instances.insert(inst, file);
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
            What::Access {
                inst,
                kind,
                offset,
                len,
                took,
            } => {
                let (Some(file), Some(kind)) = (self.file_of(inst), Kind::from_code(kind)) else {
                    return;
                };
                let thread = self.thread(pid, tid, sink);
                let first = Access {
                    file,
                    extent: Extent::new(offset, u64::from(len)),
                    thread,
                    kind,
                    start,
                    took,
                };
                let sequence = Sequence { first, more };
                if kind == Kind::Touch {
                    if self.touch(&first, sequence.extent(), sink)
                        && let Some((_, program)) = self.processes.get(&pid)
                    {
                        self.familiar.has_news(program);
                    }
                } else {
                    sink.accesses(sequence);
                }
            }
            What::Map {
                inst,
                addr,
                len,
                offset,
                took,
                ..
            } => {
                let Some(file) = self.file_of(inst) else {
                    return;
                };
                let size = self.files[file.0 as usize].size;
                let extent = Extent::new(offset, len).clipped(size);
                let thread = self.thread(pid, tid, sink);
                self.touched.map(pid, thread, addr, file, extent);
                let mapped = Access {
                    file,
                    extent,
                    thread,
                    kind: Kind::Map,
                    start,
                    took,
                };
                sink.accesses(mapped.into());
            }
            What::Unmap { addr, len } => self.touched.unmap(pid, addr, len),
            What::Exit => {
                self.touched.exit(pid);
                if let Some((_, program)) = self.processes.remove(&pid) {
                    self.familiar.has_ended(program);
                }
            }
            _ => {}
        }
    }

    /// Look which mapped pages the program has touched since the last look, at `now` ns.
    pub(super) fn sample(&mut self, now: u64, sink: &mut impl Sink) {
        for (thread, file, extent) in self.touched.sample() {
            let touch = Access {
                file,
                extent,
                thread,
                kind: Kind::Touch,
                start: now,
                took: 0,
            };
            self.touch(&touch, extent, sink);
        }
    }

    /// Look once more at the files that were open for writing, so that the next run does not take
    /// this run's own writes for somebody else's.
    pub(super) fn finish(&mut self, sink: &mut impl Sink) {
        for id in std::mem::take(&mut self.writable) {
            let before = &self.files[id.0 as usize];
            if let Some(meta) = self.facts(&before.path) {
                let meta = FileMeta {
                    written: before.written || meta.written,
                    ..meta
                };
                sink.file(id, &meta);
                self.files[id.0 as usize] = meta;
            }
        }
    }

    /// Pass on the pages of a touch of `extent` that were not touched before. Returns whether there are any.
    fn touch(&mut self, access: &Access, extent: Extent, sink: &mut impl Sink) -> bool {
        let size = self.files[access.file.0 as usize].size;
        let fresh = self.touched.fresh(access.file, extent.clipped(size));
        for &extent in &fresh {
            sink.accesses(Access { extent, ..*access }.into());
        }
        !fresh.is_empty()
    }

    fn file_of(&mut self, inst: u32) -> Option<FileId> {
        if let Some((last, file)) = self.last_instance
            && last == inst
        {
            return Some(file);
        }
        let file = *self.instances.get(&inst)?;
        self.last_instance = Some((inst, file));
        Some(file)
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
        let id = ThreadId(self.threads.len() as u32);
        self.threads.insert((pid, tid), id);
        let (ppid, exe) = self.processes.get(&pid).cloned().unwrap_or_default();
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

    fn open(&mut self, path: &Path, flags: u8, sink: &mut impl Sink) -> Option<FileId> {
        if flags & OPEN_DIRECTORY != 0 {
            return None;
        }
        let known = match self.by_path.get(path) {
            Some(&known) => known,
            None => {
                let found = self.resolve(path, sink);
                if self.by_path.len() >= REMEMBERED {
                    self.by_path.clear();
                }
                self.by_path.insert(path.to_owned(), found);
                found
            }
        };
        let id = known?;
        if flags & OPEN_TRUNCATED != 0 && !self.files[id.0 as usize].written {
            self.files[id.0 as usize].written = true;
            sink.file(id, &self.files[id.0 as usize]);
        }
        if flags & OPEN_WRITTEN != 0 {
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
        let id = FileId(u32::try_from(self.files.len()).ok()?);
        sink.file(id, &meta);
        self.files.push(meta);
        self.by_path.insert(canonical, Some(id));
        Some(id)
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
        let mut watch = Watch::new(SystemTime::now(), None);
        let path = |number: u32| PathBuf::from(format!("/none/{number}"));
        for number in 0..FILES {
            watch.by_path.insert(path(number), Some(FileId(number)));
            watch.files.push(FileMeta {
                path: path(number),
                dev: 1,
                ino: 1,
                size: 0,
                mtime_ns: 0,
                written: true,
                advice: Advice::Normal,
            });
        }
        for number in (0..FILES).chain(0..FILES) {
            watch.open(&path(number), OPEN_WRITTEN, &mut Nobody);
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
        let mut watch = Watch::new(SystemTime::now(), None);
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
