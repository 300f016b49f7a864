//! foreread's own records.
//!
//! For a file accessed through MPI-IO, the accesses are the program's requests to MPI; for all others, the reads of the file. Their origin
//! is a rank of a parallel program, otherwise a thread of a process. Names have no bytes, and touched pages no order: both are left out.
//!
//! Data flow: the record is gone through once for the files that MPI was asked for, and once more for the accesses.

use std::collections::HashSet;
use std::path::Path;

use foreread_plan::format::{ReadError, Reader};
use foreread_plan::{FileId, Kind, Rank};

use crate::problem::{Fault, Then};
use crate::{Access, Names, Operation, Who};

/// First bytes of a record.
const MAGIC: &[u8] = b"FOREREAD";

/// A record that is being read.
pub(crate) struct Record {
    reader: Reader,
    rank: Option<Rank>,
    /// Files that MPI was asked for.
    asked: HashSet<FileId>,
    /// Bytes of the record that an access takes, by and large.
    raw: u32,
}

impl Record {
    pub(crate) fn recognises(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let mut reader = Reader::open(path)?;
        let mut asked = HashSet::new();
        let mut count: u64 = 0;
        for access in reader.accesses().map_while(Result::ok) {
            count += 1;
            if access.kind.asks() {
                asked.insert(access.file);
            }
        }
        reader.rewind();
        let raw = reader.size_bytes().div_ceil(count.max(1));
        Ok(Self {
            rank: reader.meta().identity.rank,
            raw: u32::try_from(raw).unwrap_or(u32::MAX),
            reader,
            asked,
        })
    }

    /// The next access; `None` at the end.
    pub(crate) fn next(&mut self, names: &mut Names) -> Result<Option<Access>, Fault> {
        let end = |what: String| Fault {
            column: 0,
            what,
            then: Then::End,
        };
        loop {
            let access = match self.reader.next_access() {
                None => return Ok(None),
                Some(Ok(access)) => access,
                Some(Err(why)) => return Err(end(why.to_string())),
            };
            let operation = match access.kind {
                Kind::MpiRead => Operation::Read,
                Kind::MpiWrite => Operation::Write,
                Kind::Open => Operation::Open,
                Kind::Map => Operation::Map,
                Kind::Touch => continue,
                kind if kind.reads() && !self.asked.contains(&access.file) => Operation::Read,
                _ => continue,
            };
            let thread = self.reader.threads().get(&access.thread);
            let who = match (self.rank, thread) {
                (Some(Rank { rank, .. }), thread) => Who::Rank {
                    rank: rank.into(),
                    // The first thread of the program goes without a number.
                    thread: thread
                        .filter(|one| one.tid != one.pid)
                        .map_or(0, |one| one.tid.into()),
                },
                (None, Some(one)) => Who::Process {
                    pid: one.pid.into(),
                    thread: one.tid.into(),
                },
                (None, None) => Who::Process { pid: 0, thread: 0 },
            };
            let file = self.reader.files().get(&access.file);
            let file = file.map_or_else(
                || format!("file {} (not named in the record)", access.file.0).into(),
                |meta| meta.path.to_string_lossy(),
            );
            let file = names.meet_file(&file);
            let (Ok(file), Ok(who)) = (file, names.meet(who)) else {
                return Err(end("there are too many files and processes".into()));
            };
            return Ok(Some(Access {
                who,
                file,
                operation,
                extent: access.extent,
                // 0 would say that no time is known.
                start: access.start.max(1),
                took: Some(access.took),
                raw: self.raw,
            }));
        }
    }
}
