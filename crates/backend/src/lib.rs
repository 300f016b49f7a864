//! Backends: they fetch requested pages into memory, or simulate that.
//!
//! A backend accepts requests and questions, and answers with events. It never blocks its caller, never fails the program, and reads only
//! files that its user may read.
//!
//! - [`PageCache`]: the kernel's page cache, by `posix_fadvise(WILLNEED)`.
//! - [`SharedCache`]: a segment of the collective cache, for the files of a parallel program that lie where ranks share no page
//!   cache; all others go to the page cache.
//! - [`NullBackend`]: accepts everything and does nothing; for measurements of the policy's cost.
//! - [`Sim`]: a disk model and a memory of limited size in virtual time; for deterministic tests.

#![forbid(unsafe_code)]

mod null;
mod page_cache;
mod shared_cache;
mod sim;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use foreread_plan::{FileId, FileMeta, Kin, Kind, Request, RequestId};

pub use null::NullBackend;
pub use page_cache::{PageCache, Recorded, Register};
pub use shared_cache::{Collective, RankCache, SharedCache};
pub use sim::{ReadOutcome, Sim, SimMachine};

/// A scattered read slower than this waited for a head to move or a platter to turn: local SSDs answer in 0.05 to 0.1 ms, the
/// modelled network volume in 0.7 ms, a disk with a moving head in 4 ms and more.
pub(crate) const MOVING_HEAD: Duration = Duration::from_millis(2);

/// A backend's knowledge of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Name in reports: `vda`, `loop0`, or the type of a file system without a device.
    pub name: String,
    /// Whether distance costs time on it; `None` if only the device claims so, without proof.
    pub positions: Option<bool>,
}

/// A run of a file that lies together on its device; offsets and length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Offset in the file.
    pub logical: u64,
    /// Offset on the device.
    pub physical: u64,
    /// Length.
    pub len: u64,
}

/// The difference between a file and its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another file has its name.
    Replaced,
    /// Its size is now this, in bytes.
    Resized(u64),
    /// Same size, other contents.
    Modified,
}

/// A question's number, which comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// A question about one file. Answering may have to wait for a device, perhaps for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub ticket: Ticket,
    /// The file.
    pub file: FileId,
    /// Runs of its pages; none where only its length is asked for.
    pub parts: Vec<Range<u64>>,
    /// True if the evicted pages are to be listed, and not only counted.
    pub which: bool,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The file's present number of pages; `None` if unknown.
    pub length: Option<u64>,
    /// The state of each part, in the order of the question.
    pub parts: Vec<Standing>,
}

/// The state of a range of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Number of resident pages; `None` if unknown. For a file that cannot be opened, all of them.
    pub resident: Option<u64>,
    /// Number of pages evicted from memory; `None` if unknown.
    pub evicted: Option<u64>,
    /// These, where it was asked which they are.
    pub gone: Vec<Range<u64>>,
}

/// Result of looking up a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lookup did not wait: all blocks that it needed were in memory.
    InMemory,
    /// The lookup waited, and the name is in memory now.
    Fetched,
    /// The lookup failed: the name is missing, was replaced, or is not accessible.
    Failed,
}

/// An event of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file is open and ready.
    Opened {
        /// The file.
        file: FileId,
        /// The difference from the record, if there is one.
        change: Option<Change>,
        /// The layout, on devices where it matters.
        layout: Arc<[Placed]>,
        /// Whether distance costs time on its device, if that was measured.
        rotational: Option<bool>,
    },
    /// An examined file differs from its record.
    Changed {
        /// The file.
        file: FileId,
        /// The difference.
        change: Change,
    },
    /// A file cannot be fetched: removed, not a regular file, or not readable by this user.
    Gone {
        /// The file.
        file: FileId,
        /// Why, in plain words.
        why: String,
    },
    /// The kernel does not read this file ahead: its pages do not stay in the page cache. Reported once per file.
    Unaided {
        /// The file.
        file: FileId,
    },
    /// These pages are on their way from the device. Pages that were in memory already, and those of holes, are
    /// left out.
    Issued {
        /// The request they belong to.
        id: RequestId,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Range<u64>,
    },
    /// These pages of a request are beyond the end of its file.
    Short {
        /// The request.
        id: RequestId,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Range<u64>,
    },
    /// A request is finished, one way or the other.
    Done {
        /// The request.
        id: RequestId,
        /// True if the device was used.
        fetched: bool,
        /// True if all requested pages are known to be in memory.
        complete: bool,
    },
    /// A name was looked up.
    Looked {
        /// The name's inode.
        file: FileId,
        /// The kind of the lookup.
        kind: Kind,
        /// The result of its lookup.
        outcome: Outcome,
    },
    /// A question is answered.
    Answered {
        /// Its number.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
}

/// Brings pages into memory.
pub trait Backend: Send {
    /// Know one more file, which is not touched for that.
    fn add(&mut self, _file: FileId, _meta: FileMeta) {}
    /// The device of a file, without touching the file; `None` if the file is not known to exist.
    fn device(&mut self, file: FileId) -> Option<u64>;
    /// The block of a file's inode on its device, as far as it is known without a system call: inodes in one block are probably brought
    /// into memory by one access.
    fn block(&mut self, _file: FileId) -> Option<u64> {
        None
    }
    /// Small files with the same number are likely to lie next to each other on their device; `None` for a file of which that is
    /// not known, and for one that is not small.
    fn kin(&mut self, _file: FileId) -> Option<Kin> {
        None
    }
    /// The facts about a device.
    fn facts(&mut self, device: u64) -> DeviceFacts;
    /// Sets whether position matters on a device, so that it need not be found out.
    fn assume(&mut self, _device: u64, _positions: bool) {}
    /// Look a file up ahead of its use: brings its metadata into memory, and its layout where that may matter.
    fn prepare(&mut self, file: FileId);
    /// Fetch these pages. The answer is `Issued` for each part that comes from the device, `Short` if the file ends
    /// before, then `Done`.
    fn submit(&mut self, request: Request);
    /// The same as [`Backend::submit`] for each of these requests, whose files are [`Backend::kin`]: adjacent pages are requested from the
    /// device together, as far as possible.
    fn submit_together(&mut self, requests: Vec<Request>) {
        for request in requests {
            self.submit(request);
        }
    }
    /// Returns the events since the last call.
    fn poll(&mut self, events: &mut Vec<Event>);
    /// Brings the targets of these names into memory: the directories on the way, the inode, and for a listed directory ([`Kind::List`])
    /// its entries. As many lookups run at once as the device is deep, in its order if distance costs time. Each is answered by one
    /// [`Event::Looked`], in any order. Only listed directories are opened, no symbolic link is followed, and no automount is triggered.
    fn look(&mut self, names: &[(FileId, Kind)]);
    /// Asks for the state of a file's pages. The answer is one [`Event::Answered`], sooner or later. Files are examined beside the
    /// fetching, and those of one device do not wait for another device.
    fn ask(&mut self, question: Question);
    /// Pages that may be fetched and not read at one time, where they have a room of their own; `None` where that is
    /// the memory of all.
    fn room(&self) -> Option<u64> {
        None
    }
    /// Frees the memory of these pages: the program is past them. Pages that a process has mapped or written to stay, and nothing is
    /// reported.
    fn discard(&mut self, file: FileId, pages: Range<u64>);
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn add(&mut self, file: FileId, meta: FileMeta) {
        (**self).add(file, meta);
    }
    fn device(&mut self, file: FileId) -> Option<u64> {
        (**self).device(file)
    }
    fn block(&mut self, file: FileId) -> Option<u64> {
        (**self).block(file)
    }
    fn kin(&mut self, file: FileId) -> Option<Kin> {
        (**self).kin(file)
    }
    fn facts(&mut self, device: u64) -> DeviceFacts {
        (**self).facts(device)
    }
    fn assume(&mut self, device: u64, positions: bool) {
        (**self).assume(device, positions);
    }
    fn prepare(&mut self, file: FileId) {
        (**self).prepare(file);
    }
    fn submit(&mut self, request: Request) {
        (**self).submit(request);
    }
    fn submit_together(&mut self, requests: Vec<Request>) {
        (**self).submit_together(requests);
    }
    fn poll(&mut self, events: &mut Vec<Event>) {
        (**self).poll(events);
    }
    fn look(&mut self, names: &[(FileId, Kind)]) {
        (**self).look(names);
    }
    fn ask(&mut self, question: Question) {
        (**self).ask(question);
    }
    fn room(&self) -> Option<u64> {
        (**self).room()
    }
    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        (**self).discard(file, pages);
    }
}
