//! The names of a trace: files and the processes, threads or ranks that used them, each stored once.

use std::fmt;

use foreread_plan::FileId;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Names of files that are kept: as many as a record may have.
const MAX_FILES: usize = 1 << 20;
/// Threads that are kept: as many as there are numbers of threads in Linux (PID_MAX_LIMIT).
const MAX_WHOS: usize = 1 << 22;
/// Limit of the bytes of all names: the same as in a record, for files and for their users.
const MAX_NAME_BYTES: usize = 128 << 20;

/// The number of a [`Who`] in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WhoId(pub u32);

/// The origin of an access.
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
    files: IndexSet<Box<str>, FxBuildHasher>,
    whos: IndexSet<Who, FxBuildHasher>,
    /// Bytes of both.
    file_bytes: usize,
    who_bytes: usize,
}

impl Names {
    /// No names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file's name in the trace, made absolute if the trace shows its base.
    pub fn file(&self, id: FileId) -> &str {
        let id = usize::try_from(id.0).ok();
        let name = id.and_then(|id| self.files.get_index(id));
        name.map_or("", |name| name)
    }

    /// The origin with this number, if there is one.
    pub fn who(&self, id: WhoId) -> Option<&Who> {
        self.whos.get_index(id.0 as usize)
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Number of processes, ranks or jobs, with their threads counted separately.
    pub fn whos(&self) -> usize {
        self.whos.len()
    }

    pub(crate) fn meet_file(&mut self, name: &str) -> Result<FileId, Full> {
        if let Some(id) = self.files.get_index_of(name) {
            return Ok(FileId(id as u32));
        }
        let bytes = self.file_bytes + name.len();
        if self.files.len() >= MAX_FILES || bytes > MAX_NAME_BYTES {
            return Err(Full);
        }
        self.file_bytes = bytes;
        let (id, _) = self.files.insert_full(name.into());
        Ok(FileId(id as u32))
    }

    pub(crate) fn meet(&mut self, who: Who) -> Result<WhoId, Full> {
        if let Some(id) = self.whos.get_index_of(&who) {
            return Ok(WhoId(id as u32));
        }
        let bytes = self.who_bytes + size_of::<Who>();
        if self.whos.len() >= MAX_WHOS || bytes > MAX_NAME_BYTES {
            return Err(Full);
        }
        self.who_bytes = bytes;
        let (id, _) = self.whos.insert_full(who);
        Ok(WhoId(id as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_that_linux_can_number_have_a_name_and_no_more() {
        let mut names = Names::new();
        let who = |pid| Who::Process { pid, thread: pid };
        for pid in 0..MAX_WHOS as u64 {
            assert_eq!(names.meet(who(pid)), Ok(WhoId(pid as u32)));
        }
        assert_eq!(names.meet(who(u64::MAX)), Err(Full));
        assert_eq!(names.meet(who(7)), Ok(WhoId(7)));
        assert!(
            names.meet_file("/a").is_ok(),
            "files have room of their own"
        );
    }
}
