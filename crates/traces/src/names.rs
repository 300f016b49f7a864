//! Who made accesses, and of which files: the names in a trace, each kept once.

use std::fmt;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;

/// Names that are kept, of files and of processes each: as many as a record may have.
const MAX_NAMES: usize = 1 << 20;
/// Bytes that names may take together: as many as in a record.
const MAX_NAME_BYTES: usize = 128 << 20;

/// The number of a [`Who`] in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WhoId(pub u32);

/// Who made an access.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// A thread of a process. A trace of one process names none: both numbers are 0.
    Process {
        /// The process.
        pid: u64,
        /// The thread; the first one of a process has the number of the process.
        thread: u64,
    },
    /// A thread of a rank of a parallel program.
    Rank {
        /// The rank; -1 stands for all of them together.
        rank: i64,
        /// The thread, as the trace names it; 0 where it names none.
        thread: u64,
    },
    /// A job of fio, by the name of its log.
    Job(String),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Process { pid: 0, .. } => write!(f, "the process"),
            Who::Process { pid, thread } if pid == thread => write!(f, "process {pid}"),
            Who::Process { pid, thread } => write!(f, "process {pid} thread {thread}"),
            Who::Rank { rank: -1, .. } => write!(f, "all ranks"),
            Who::Rank { rank, thread: 0 } => write!(f, "rank {rank}"),
            Who::Rank { rank, thread } => write!(f, "rank {rank} thread {thread}"),
            Who::Job(name) => write!(f, "job {name}"),
        }
    }
}

/// There is no room for another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The names met so far, in any number of traces.
#[derive(Debug, Default)]
pub struct Names {
    files: Vec<Box<str>>,
    file_ids: FxHashMap<Box<str>, u32>,
    whos: Vec<Who>,
    who_ids: FxHashMap<Who, u32>,
    bytes: usize,
}

impl Names {
    /// No names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file's name as the trace has it; made absolute where the trace says what it is relative to.
    pub fn file(&self, id: FileId) -> &str {
        let name = usize::try_from(id.0).ok().and_then(|id| self.files.get(id));
        name.map_or("", |name| name)
    }

    /// Who has this number, if anyone.
    pub fn who(&self, id: WhoId) -> Option<&Who> {
        self.whos.get(id.0 as usize)
    }

    /// How many files were met.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// How many processes, ranks or jobs were met, their threads counted apart.
    pub fn whos(&self) -> usize {
        self.whos.len()
    }

    pub(crate) fn meet_file(&mut self, name: &str) -> Result<FileId, Full> {
        if let Some(id) = self.file_ids.get(name) {
            return Ok(FileId(*id));
        }
        let id = self.room(self.files.len(), name.len())?;
        self.files.push(name.into());
        self.file_ids.insert(name.into(), id);
        Ok(FileId(id))
    }

    pub(crate) fn meet(&mut self, who: Who) -> Result<WhoId, Full> {
        if let Some(id) = self.who_ids.get(&who) {
            return Ok(WhoId(*id));
        }
        let id = self.room(self.whos.len(), size_of::<Who>())?;
        self.whos.push(who.clone());
        self.who_ids.insert(who, id);
        Ok(WhoId(id))
    }

    fn room(&mut self, count: usize, bytes: usize) -> Result<u32, Full> {
        let total = self.bytes + bytes;
        if count >= MAX_NAMES || total > MAX_NAME_BYTES {
            return Err(Full);
        }
        self.bytes = total;
        Ok(count as u32)
    }
}
