//! Decodes the kernel's bytes into events. Pure: no file is examined.
//!
//! Invariants: events are sorted by start within each batch; a process begins and a file is opened before all their other events; a touched
//! page that is passed on was mapped.
//!
//! Touches: a fault names its page. The kernel also maps the resident pages around it, and touching those causes no fault. Pages among them
//! that were not in memory before this run were read because this run needed their read-ahead window, and are passed on after the page. If
//! the page itself was in memory before, so were its neighbours: those of a program's or library's text are passed on, because its pages
//! are used together, and those of other files are not, because a database's are not.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foreread_observe::{Event, How, What, Who};
use foreread_plan::{Extent, Kind, PAGE};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::{self, NO_FOLLOW};

/// The record, as `module/bpf/record.h` defines it.
#[allow(
    missing_docs,
    dead_code,
    non_camel_case_types,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
#[rustfmt::skip]
pub(crate) mod record;

use record::{
    NAMED_APART, NAMED_CUT, NAMED_DELETED, NAMED_DIRECTORY, WHAT_EXEC, WHAT_EXIT, WHAT_FAULT,
    WHAT_FILE, WHAT_FORK, WHAT_LIST, WHAT_LOOK, WHAT_OPEN, WHAT_READ,
};

/// Pages around a touched one that are believed to be mapped with it, at most: the kernel's default is 16.
const ALONG: u64 = 512;
/// Pages that one access adds to the page cache, at most: 1 GiB.
const ADDED: u64 = 1 << 18;
/// Handles remembered at a time; beyond it the table is emptied, and handles still in use are no longer seen.
const REMEMBERED: usize = 1 << 20;

/// A structure of the kernel's side that any bytes make.
///
/// # Safety
/// The type holds nothing but numbers.
unsafe trait Numbers: Copy {}

// SAFETY: numbers alone.
unsafe impl Numbers for record::record {}
// SAFETY: the same.
unsafe impl Numbers for record::fault {}
/// A `struct named` without its path.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head(record::record, u64, u32, u32, u32, u32);
// SAFETY: the same.
unsafe impl Numbers for Head {}
const _: () = assert!(size_of::<Head>() == std::mem::offset_of!(record::named, path));

/// The structure that these bytes begin with.
fn start_of<T: Numbers>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: as many bytes as are read, of which any make one.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A set of pages.
#[derive(Default)]
struct Pages(FxHashMap<u64, u64>);

impl Pages {
    fn insert(&mut self, pages: Range<u64>) {
        for page in pages {
            *self.0.entry(page / 64).or_default() |= 1 << (page % 64);
        }
    }

    fn contains(&self, page: u64) -> bool {
        let chunk = self.0.get(&(page / 64));
        chunk.is_some_and(|bits| bits & 1 << (page % 64) != 0)
    }
}

/// A file that has a handle.
struct File {
    /// Its name in full; `None` where the supervisor could not find it by that.
    path: Option<PathBuf>,
    /// True if it was passed on as open.
    is_told: bool,
    /// True if it was mapped to be executed.
    is_program: bool,
    /// The pages that were added to the page cache in this run.
    added: Pages,
}

/// Makes events of bytes.
pub(crate) struct Decoder {
    rows: Vec<(u32, record::call, Option<Kind>)>,
    files: FxHashMap<u32, File>,
    /// The programs of the processes that have begun.
    programs: FxHashMap<u32, PathBuf>,
    elsewhere: FxHashSet<u32>,
    events: VecDeque<(u64, Event)>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            rows: calls::table(),
            files: FxHashMap::default(),
            programs: FxHashMap::default(),
            elsewhere: FxHashSet::default(),
            events: VecDeque::new(),
        }
    }
}

impl Decoder {
    /// Files whose reads are not passed on, because the supervisor cannot find them by name.
    pub(crate) fn elsewhere(&self) -> u64 {
        self.elsewhere.len() as u64
    }

    /// Takes bytes from the kernel's side.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(record) = start_of::<record::record>(bytes) else {
            return;
        };
        match u32::from(record.what) {
            WHAT_FILE => self.met(record.handle, bytes),
            WHAT_OPEN => {
                let _ = self.opened(&record, bytes);
            }
            WHAT_LOOK | WHAT_LIST => {
                let _ = self.named(&record, bytes);
            }
            WHAT_READ => self.read(&record, bytes),
            WHAT_FAULT => {
                let _ = self.touched(&record, bytes);
            }
            WHAT_FORK => {
                let exe = self.programs.get(&record.handle).cloned();
                self.begins(&record, exe.unwrap_or_default());
            }
            WHAT_EXEC => {
                let exe = named_in(bytes).map(|(path, ..)| path);
                self.begins(&record, exe.unwrap_or_default());
            }
            WHAT_EXIT => self.push(&record, What::Ended),
            _ => {}
        }
    }

    /// Passes on the events in order of start. `program` finds the program of a process whose beginning was not seen.
    pub(crate) fn drain(
        &mut self,
        program: &dyn Fn(u32) -> PathBuf,
        each: &mut dyn FnMut(Event),
    ) -> usize {
        let mut events = std::mem::take(&mut self.events);
        // Stable: events with the same start keep their order.
        events.make_contiguous().sort_by_key(|(start, _)| *start);
        let count = events.len();
        for (_, event) in events.drain(..) {
            let Event { who, at, .. } = event;
            let pid = who.pid;
            match &event.what {
                What::Begin { program, .. } => {
                    self.programs.insert(pid, program.path.clone());
                }
                What::Ended => {
                    self.programs.remove(&pid);
                }
                _ if self.programs.contains_key(&pid) => {}
                _ => {
                    let exe = program(pid);
                    self.programs.insert(pid, exe.clone());
                    let what = begin(0, exe);
                    each(Event { who, at, what });
                }
            }
            if let What::Read { handle, .. } | What::Touched { handle, .. } = event.what
                && let Some(file) = self.files.get_mut(&handle)
                && let Some(path) = file.path.as_ref().filter(|_| !file.is_told)
            {
                file.is_told = true;
                let what = What::Open {
                    handle,
                    file: path.clone().into(),
                    took: 0,
                    how: How {
                        found: true,
                        ..How::default()
                    },
                };
                each(Event { who, at, what });
            }
            if let What::Open { handle, .. } = event.what
                && let Some(file) = self.files.get_mut(&handle)
            {
                file.is_told = true;
            }
            each(event);
        }
        self.events = events;
        count
    }

    fn push(&mut self, record: &record::record, what: What) {
        let event = Event {
            who: Who {
                pid: record.pid,
                tid: record.tid,
                uid: None,
            },
            at: record.start,
            what,
        };
        self.events.push_back((record.start, event));
    }

    fn begins(&mut self, record: &record::record, exe: PathBuf) {
        // Its children may begin before it is passed on.
        self.programs.insert(record.pid, exe.clone());
        self.push(record, begin(record.handle, exe));
    }

    fn met(&mut self, handle: u32, bytes: &[u8]) {
        let Some((path, flags, _)) = named_in(bytes) else {
            return;
        };
        let is_found = flags & (NAMED_APART | NAMED_CUT | NAMED_DELETED) == 0;
        if flags & (NAMED_APART | NAMED_CUT) != 0 {
            self.elsewhere.insert(handle);
        }
        self.meet(handle, is_found.then_some(path));
    }

    /// A handle is met for the first time; `path` is its file's name, where the supervisor can find it by that.
    fn meet(&mut self, handle: u32, path: Option<PathBuf>) {
        if self.files.len() >= REMEMBERED {
            self.files.clear();
        }
        let file = File {
            path,
            is_told: false,
            is_program: false,
            added: Pages::default(),
        };
        self.files.insert(handle, file);
    }

    fn opened(&mut self, record: &record::record, bytes: &[u8]) -> Option<()> {
        let (given, flags, how) = named_in(bytes)?;
        let directory = flags & NAMED_DIRECTORY != 0;
        let known = self
            .files
            .get(&record.handle)
            .and_then(|file| file.path.clone());
        // A path in a process's own view leads elsewhere in the supervisor's.
        let is_given = flags & (NAMED_APART | NAMED_CUT) == 0 && !is_own_view(&given);
        let path = if is_given { given } else { known? };
        if record.handle != 0 && !self.files.contains_key(&record.handle) {
            self.meet(record.handle, Some(path.clone()));
        }
        let how = how as i32;
        let what = What::Open {
            handle: record.handle,
            file: path.into(),
            took: record.took,
            how: How {
                directory,
                writes: how & libc::O_ACCMODE != libc::O_RDONLY,
                unread: how & libc::O_ACCMODE == libc::O_WRONLY,
                truncates: how & libc::O_TRUNC != 0,
                found: false,
                direct: how & libc::O_DIRECT != 0,
            },
        };
        self.push(record, what);
        Some(())
    }

    fn named(&mut self, record: &record::record, bytes: &[u8]) -> Option<()> {
        let (path, flags, how) = named_in(bytes)?;
        if flags & (NAMED_APART | NAMED_CUT | NAMED_DELETED) != 0 || is_own_view(&path) {
            return None;
        }
        let is_list = u32::from(record.what) == WHAT_LIST;
        let what = What::Named {
            path,
            kind: if is_list { Kind::List } else { Kind::Stat },
            took: record.took,
            follows: is_list || how & NO_FOLLOW == 0,
            inode: None,
        };
        self.push(record, what);
        Some(())
    }

    fn read(&mut self, record: &record::record, bytes: &[u8]) {
        let extent = Extent::new(record.offset, record.len);
        if let Some(file) = self.files.get_mut(&record.handle) {
            if let Some(fault) = start_of::<record::fault>(bytes) {
                file.added.insert(added_in(&fault));
            }
            if file.path.is_none() {
                return;
            }
        }
        let what = What::Read {
            handle: record.handle,
            kind: calls::kind_of(&self.rows, record.call),
            extent,
            took: record.took,
            more: 0,
        };
        self.push(record, what);
    }

    fn touched(&mut self, record: &record::record, bytes: &[u8]) -> Option<()> {
        let fault = start_of::<record::fault>(bytes)?;
        let file = self.files.get_mut(&record.handle)?;
        file.is_program |= fault.is_program != 0;
        file.added.insert(added_in(&fault));
        file.path.as_ref()?;
        let page = record.offset / PAGE;
        let along = fault.along_first..fault.along_end.min(fault.along_first.saturating_add(ALONG));
        let was_cold = file.added.contains(page);
        let all = file.is_program && !was_cold;
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in along.filter(|&one| one != page && (all || file.added.contains(one))) {
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        let touched = |pages: Range<u64>, took| What::Touched {
            handle: record.handle,
            extent: Extent::new(pages.start * PAGE, (pages.end - pages.start) * PAGE),
            took,
        };
        self.push(record, touched(page..page + 1, record.took));
        for run in runs {
            self.push(record, touched(run, 0));
        }
        Some(())
    }
}

/// A process begins. Reads of a stream of the C library are seen as the reads that the stream makes.
fn begin(parent: u32, exe: PathBuf) -> What {
    What::Begin {
        parent,
        program: exe.into(),
        stdio: true,
    }
}

/// The pages that were added to the page cache.
fn added_in(fault: &record::fault) -> Range<u64> {
    let most = fault.added_first.saturating_add(ADDED);
    fault.added_first..fault.added_end.min(most)
}

/// True if a path leads to another file for each process.
fn is_own_view(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

/// The path, its marks, and the flags of the call.
fn named_in(bytes: &[u8]) -> Option<(PathBuf, u32, u64)> {
    let Head(_, how, flags, names, given, _) = start_of(bytes)?;
    let rest = bytes.get(size_of::<Head>()..)?;
    let mut list = rest.get(..names as usize)?;
    let given = rest.get(names as usize..(names as usize).checked_add(given as usize)?)?;
    let mut upward: Vec<&[u8]> = Vec::new();
    while let Some((&len, after)) = list.split_first() {
        let (name, after) = after.split_at_checked(len.into())?;
        upward.push(name);
        list = after;
    }
    let mut path = PathBuf::from("/");
    path.extend(upward.iter().rev().map(|name| OsStr::from_bytes(name)));
    let given = given.strip_suffix(&[0]).unwrap_or(given);
    if !given.is_empty() {
        path.push(OsStr::from_bytes(given));
    }
    Some((path, flags, how))
}

#[cfg(test)]
#[path = "decode/tests.rs"]
mod tests;
