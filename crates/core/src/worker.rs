//! The work of one thread: it opens files, finds their missing pages and hints about them, and looks up names.
//!
//! Invariants: only regular files and listed directories are opened, and a file is open only while the worker uses it. The worker has no
//! threads and no clocks, and makes calls of [`System`] only, so a model of a machine can drive it in virtual time.
//!
//! Data flow: [`Task`] → [`Worker::serve`] → hints; the result → [`Done`].

use std::ops::Range;
use std::sync::Arc;

use foreread_plan::{FileId, FileMeta, PAGE};
use foreread_sys::file::FileFacts;
use rustc_hash::FxHashSet;

use crate::Files;
use crate::price::Sight;
use crate::system::{Kept, System};
use crate::wants::{JOINED, Want, What};

/// The reason given for fetching nothing of such a file.
const UNKEPT: &str = "its file system keeps no page that is read in memory";

/// Difference between a file and its entry in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The path has another file with the same size and time: a copy, or the same file on another machine or mount.
    Copied,
    /// Another file has its name.
    Replaced,
    /// Its size is now this, in bytes.
    Resized(u64),
    /// Same size, other contents.
    Modified,
    /// It cannot be read, for this reason.
    Gone(String),
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) want: Want,
    /// The device whose counters are read afterwards.
    pub(crate) look: Option<u64>,
    /// True if the device has as many requests in flight as it can work on.
    pub(crate) is_enough: bool,
}

/// The result of one want.
pub(crate) struct Done {
    /// The want's file.
    pub(crate) file: FileId,
    pub(crate) issued: Vec<(FileId, Range<u64>)>,
    pub(crate) name: Option<(FileId, bool)>,
    pub(crate) differences: Vec<(FileId, Difference)>,
    pub(crate) device: Option<u64>,
    pub(crate) sight: Option<(u64, Sight)>,
    /// Pages, issued now or before, that have arrived.
    pub(crate) arrived: u64,
    /// True if this process had too many files open; the rest of the want is in `left`.
    is_crowded: bool,
    pub(crate) left: Vec<(FileId, Range<u64>)>,
}

/// The state of one thread.
pub(crate) struct Worker<S: System> {
    files: Arc<dyn Files>,
    system: S,
    /// The file of the last want, as long as there are wants.
    held: Option<(FileId, Open<S::File>)>,
    /// Files that are not fetched, already reported.
    met: FxHashSet<FileId>,
    /// Pages requested since the last wait, and whether to wait once they are enough.
    under_way: u64,
    waits: bool,
}

/// A file that is open.
struct Open<F> {
    file: F,
    facts: FileFacts,
}

impl<S: System> Worker<S> {
    pub(crate) fn new(files: Arc<dyn Files>, system: S) -> Self {
        Self {
            files,
            system,
            held: None,
            met: FxHashSet::default(),
            under_way: 0,
            waits: false,
        }
    }

    /// Requests a want.
    pub(crate) async fn serve(&mut self, task: Task) -> Done {
        let Task {
            want,
            look,
            is_enough,
        } = task;
        self.waits = is_enough;
        let mut done = Done::of(want.file);
        match want.what {
            What::Pages(pages) => self.fetch(want.file, pages, &mut done).await,
            // Passed on to the cache already. The file is opened to notice that it differs from the record.
            What::Cached(_) => {
                if self
                    .held
                    .as_ref()
                    .is_none_or(|(last, _)| *last != want.file)
                {
                    let open = self.open(want.file, &mut done).await;
                    self.held = open.map(|open| (want.file, open));
                }
            }
            What::Name(kind) => {
                self.held = None;
                let meta = self.files.file(want.file);
                let path = meta.map(|meta| &*meta.path);
                if let Some(path) = path
                    && let Some(waited) = self.system.look_up(path, kind).await
                {
                    done.name = Some((want.file, waited));
                }
            }
            What::Together(all) => self.fetch_together(all, &mut done).await,
        }
        if let Some(dev) = look
            && let Some(sight) = self.system.sight(done.device.unwrap_or(dev)).await
        {
            done.sight = Some((dev, sight));
        }
        done
    }

    /// Closes all that is open.
    pub(crate) fn let_go(&mut self) {
        self.held = None;
        self.system.let_go();
    }

    /// Opens a file.
    async fn open(&mut self, id: FileId, done: &mut Done) -> Option<Open<S::File>> {
        let meta = self.files.file(id)?;
        match self.system.open(&meta.path).await {
            Ok((file, facts)) => {
                let differs = difference(meta, &facts).map(|differs| (id, differs));
                done.differences.extend(differs);
                done.device = Some(facts.dev);
                Some(Open { file, facts })
            }
            Err(why) if is_crowded(&why) => {
                self.let_go();
                done.is_crowded = true;
                None
            }
            Err(why) => {
                self.refuse(id, &why.to_string(), done);
                None
            }
        }
    }

    /// Reports once why a file is not fetched.
    fn refuse(&mut self, id: FileId, why: &str, done: &mut Done) {
        if self.met.insert(id) {
            let gone = Difference::Gone(why.to_owned());
            done.differences.push((id, gone));
        }
    }

    /// The parts of these pages that a hint would fetch.
    async fn missing(
        &mut self,
        id: FileId,
        open: &Open<S::File>,
        pages: Range<u64>,
        done: &mut Done,
    ) -> Vec<Range<u64>> {
        let end = pages.end.min(open.facts.size.div_ceil(PAGE));
        if pages.start >= end {
            return Vec::new();
        }
        let Open { file, facts } = open;
        match self.system.keeps(file, facts, pages.start).await {
            Kept::Yes => {}
            Kept::ByReading => done.issued.push((id, pages.start..pages.start + 1)),
            Kept::No => {
                self.refuse(id, UNKEPT, done);
                return Vec::new();
            }
        }
        self.system.missing(file, facts, pages.start..end).await
    }

    /// Requests pages of small files in one call. The kernel keeps requests back until the end of the call, and joins neighbours.
    async fn fetch_together(&mut self, all: Vec<(FileId, Range<u64>)>, done: &mut Done) {
        self.held = None;
        let mut parts = Vec::new();
        for (id, pages) in all {
            let open = match done.is_crowded {
                true => None,
                false => self.open(id, done).await,
            };
            let Some(open) = open else {
                if done.is_crowded {
                    done.left.push((id, pages));
                }
                continue;
            };
            let missing = self.missing(id, &open, pages, done).await;
            if !missing.is_empty() {
                parts.push((id, open, missing));
            }
        }
        // The kernel merges a request only with the one directly before it.
        parts.sort_unstable_by_key(|(_, open, _)| open.facts.ino);
        let joined = parts.len() > 1 && self.hint_together(&parts).await;
        for (id, open, missing) in parts {
            for part in missing {
                if joined || self.hint(&open, &part).await {
                    done.issued.push((id, part));
                }
            }
        }
    }

    /// Requests all these parts with one call. True if that had an effect.
    async fn hint_together(&mut self, parts: &[Part<S::File>]) -> bool {
        let each = parts.iter().flat_map(|(_, open, missing)| {
            missing.iter().map(|part| (&open.file, open.bytes(part)))
        });
        let each: Vec<_> = each.collect();
        self.system.will_need_together(&each).await
    }

    /// True if this part could be requested.
    async fn hint(&mut self, open: &Open<S::File>, part: &Range<u64>) -> bool {
        let hinted = self.system.will_need(&open.file, open.bytes(part));
        hinted.await.is_ok()
    }

    /// Once this thread has requested as much as one request can be, waits for it if enough is in flight. More requests would wait in
    /// the kernel's queue, sorted by place, and the page that the program needs next might arrive last.
    async fn wait_for(&mut self, open: &Open<S::File>, part: &Range<u64>, done: &mut Done) {
        self.under_way += part.end - part.start;
        if self.waits && self.under_way >= JOINED {
            self.system.arrived(&open.file, part.end - 1).await;
            done.arrived += std::mem::take(&mut self.under_way);
        }
    }

    async fn fetch(&mut self, id: FileId, pages: Range<u64>, done: &mut Done) {
        let held = self.held.take().filter(|(last, _)| *last == id);
        let open = match held {
            Some((_, open)) => open,
            None => match self.open(id, done).await {
                Some(open) => open,
                None if done.is_crowded => return done.left.push((id, pages)),
                None => return,
            },
        };
        for mut part in self.missing(id, &open, pages, done).await {
            // The kernel cuts longer requests.
            while part.start < part.end {
                let piece = part.start..part.end.min(part.start + JOINED);
                part.start = piece.end;
                if self.hint(&open, &piece).await {
                    done.issued.push((id, piece.clone()));
                    self.wait_for(&open, &piece, done).await;
                }
            }
        }
        self.held = Some((id, open));
    }
}

/// Pages of a file that are to be hinted about.
type Part<F> = (FileId, Open<F>, Vec<Range<u64>>);

impl Done {
    pub(crate) fn of(file: FileId) -> Self {
        Self {
            file,
            issued: Vec::new(),
            name: None,
            differences: Vec::new(),
            device: None,
            sight: None,
            arrived: 0,
            is_crowded: false,
            left: Vec::new(),
        }
    }
}

impl<F> Open<F> {
    /// The byte range of pages, cut at the end of the file.
    fn bytes(&self, pages: &Range<u64>) -> Range<u64> {
        pages.start * PAGE..(pages.end * PAGE).min(self.facts.size)
    }
}

/// True if this process, or the system, has too many open files.
fn is_crowded(why: &std::io::Error) -> bool {
    let why = rustix::io::Errno::from_io_error(why);
    matches!(
        why,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

/// The difference between a file and its entry in the record.
pub(crate) fn difference(meta: &FileMeta, facts: &FileFacts) -> Option<Difference> {
    let is_same_file = (facts.dev, facts.ino) == (meta.dev, meta.ino);
    let is_same_state = (facts.size, facts.mtime_ns) == (meta.size, meta.mtime_ns);
    if !is_same_file {
        Some(if is_same_state {
            Difference::Copied
        } else {
            Difference::Replaced
        })
    } else if facts.size != meta.size {
        Some(Difference::Resized(facts.size))
    } else if facts.mtime_ns != meta.mtime_ns {
        Some(Difference::Modified)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_same_size_and_time_at_another_inode_is_a_copy() {
        let meta = FileMeta::regular("/a", (1, 2), 10, 5);
        let found = |dev, size, mtime_ns| FileFacts {
            dev,
            ino: 2,
            size,
            allocated: 0,
            mtime_ns,
            ctime_ns: 0,
            uid: 0,
        };
        let differs = |facts| difference(&meta, &facts);
        assert_eq!(differs(found(1, 10, 5)), None);
        assert_eq!(differs(found(9, 10, 5)), Some(Difference::Copied));
        assert_eq!(differs(found(9, 10, 6)), Some(Difference::Replaced));
        assert_eq!(differs(found(9, 11, 5)), Some(Difference::Replaced));
        assert_eq!(differs(found(1, 11, 5)), Some(Difference::Resized(11)));
        assert_eq!(differs(found(1, 10, 6)), Some(Difference::Modified));
    }
}
