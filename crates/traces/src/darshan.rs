//! Binary Darshan logs of version 3: the DXT records in them.
//!
//! A log is a header (version, byte order, compression, where each region lies), the job, the names of the files, and a
//! region a module, in this order. A region is one zlib stream or several, one after the other. A DXT region is a list of
//! records: a head of 104 bytes, then the segments, first those of the writes, then those of the reads. (Darshan's own
//! description is `darshan-log-format.h` and `darshan-dxt-log-format.h`.)
//!
//! Regions are read in their order in the log, so a log can itself be compressed. The accesses of a program with MPI-IO may be in two
//! regions: as the program made them and as they reached the file system (`DXT_POSIX`). The latter is read, and the former only if the
//! latter is missing.

use std::io::{self, BufRead, BufReader, Read, Take};

use flate2::bufread::ZlibDecoder;
use foreread_plan::FileId;
use rustc_hash::FxHashMap;

use crate::fields::extent;
use crate::input::{Content, unreadable};
use crate::problem::{Fault, Then, quoted};
use crate::{Access, Names, Operation, Who};

const MAGIC: i64 = 6_567_223;
/// Bytes of the head of a DXT record: id, rank, shared flag, host name, counts of writes and reads.
const HEAD: usize = 8 + 8 + 8 + 64 + 8 + 8;
/// Bytes of a segment: offset, length, start, end; in later versions the thread, too.
const SEGMENT: usize = 32;
const SEGMENT_WITH_THREAD: usize = 40;
/// The longest name, in bytes; the longest path that Linux takes is 4096.
const MAX_NAME: usize = 1 << 16;

/// The place of a region, in bytes of the log.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    at: u64,
    len: u64,
}

/// Numbers in the byte order of the machine that wrote the log.
#[derive(Clone, Copy, Debug)]
struct ByteOrder {
    big: bool,
}

impl ByteOrder {
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = bytes[at..at + 8].try_into().unwrap_or_default();
        if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes[at..at + 4].try_into().unwrap_or_default();
        if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }
}

/// A record whose segments are being read.
#[derive(Clone, Copy, Debug)]
struct Record {
    file: FileId,
    rank: i64,
    writes: u64,
    reads: u64,
    /// When the last segment of the same list began, in ns.
    last: Option<u64>,
}

/// The decoder.
pub(crate) struct Darshan {
    order: ByteOrder,
    names: FxHashMap<u64, String>,
    region: Option<Members>,
    segment: usize,
    record: Option<Record>,
    /// Bytes of the region that were read, decompressed.
    at: u64,
    /// Segments without an offset in the log.
    unplaced: u64,
    /// True if the log also has the accesses as MPI-IO made them.
    other: bool,
}

impl Darshan {
    /// True if content with this beginning is a Darshan log.
    pub(crate) fn recognises(head: &[u8]) -> bool {
        order(head).is_some()
    }

    /// Reads the header and the names. The error is the reason.
    pub(crate) fn open(content: Content) -> Result<Self, String> {
        let mut log = Log {
            content: Some(content),
            at: 0,
        };
        let cut = |error: io::Error| format!("the header of the log cannot be read: {error}");
        let mut start = [0; 16];
        log.exact(&mut start).map_err(cut)?;
        let order = order(&start).ok_or("not a Darshan log: the magic number is missing")?;
        let version = String::from_utf8_lossy(&start[..8]);
        let version = version.trim_end_matches('\0').to_owned();
        // The place of the list of regions, its room in modules, and the index of DXT_POSIX in it; DXT_MPIIO is the next.
        let (list, modules, posix) = match version.as_str() {
            "3.00" | "3.10" => (8, 16, 8),
            "3.20" | "3.21" => (8, 16, 9),
            "3.41" => (16, 64, 10),
            _ => {
                return Err(format!(
                    "a Darshan log of version {}; 3.00, 3.10, 3.20, 3.21 and 3.41 can be read",
                    quoted(&version)
                ));
            }
        };
        let mut header = vec![0; list + 16 + modules * (16 + 4)];
        log.exact(&mut header).map_err(cut)?;
        match header[0] {
            0 => {}
            1 => {
                return Err(
                    "a Darshan log compressed with bzip2; darshan-convert makes one with zlib of it"
                        .to_owned(),
                );
            }
            other => {
                return Err(format!(
                    "a Darshan log compressed in an unknown way ({other})"
                ));
            }
        }
        let region = |number: usize| Region {
            at: order.u64(&header, list + 16 * number),
            len: order.u64(&header, list + 8 + 16 * number),
        };
        let names_region = region(0);
        let version_of = |module: usize| order.u32(&header, list + 16 + 16 * modules + 4 * module);
        let has = |module: usize| region(module + 1).len > 0;
        let (module, newest, with_thread) = match (has(posix), has(posix + 1)) {
            (true, _) => (posix, 2, 2),
            (false, true) => (posix + 1, 3, 3),
            (false, false) => {
                return Err(
                    "the log has no DXT records: Darshan writes them when DXT_ENABLE_IO_TRACE=1 is set"
                        .to_owned(),
                );
            }
        };
        let found = version_of(module);
        if found == 0 || found > newest {
            return Err(format!(
                "DXT records of version {found}; up to {newest} can be read"
            ));
        }
        let mut darshan = Self {
            order,
            names: FxHashMap::default(),
            region: None,
            segment: if found >= with_thread {
                SEGMENT_WITH_THREAD
            } else {
                SEGMENT
            },
            record: None,
            at: 0,
            unplaced: 0,
            other: has(posix) && has(posix + 1),
        };
        let mut names = log.region(names_region, "names of the files")?;
        darshan
            .read_names(&mut names, version == "3.00")
            .map_err(|error| format!("the names of the files cannot be read: {error}"))?;
        log.give_back(names);
        darshan.region = Some(log.region(region(module + 1), "DXT records")?);
        Ok(darshan)
    }

    /// Bytes of the DXT records that were read, decompressed.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn left_out(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.other {
            said.push(
                "the accesses as MPI-IO made them: those below it, which reached the files, are read"
                    .to_owned(),
            );
        }
        if self.unplaced > 0 {
            said.push(format!(
                "{} accesses whose offset the log does not have",
                self.unplaced
            ));
        }
        said
    }

    /// The next access. A fault may come with one that is kept.
    pub(crate) fn next(
        &mut self,
        names: &mut Names,
    ) -> Result<Option<Access>, (Fault, Option<Access>)> {
        loop {
            let record = match self.record.take() {
                Some(record) if record.writes + record.reads > 0 => record,
                _ => match self.read_head(names).map_err(|fault| (fault, None))? {
                    Some(record) => record,
                    None => return Ok(None),
                },
            };
            self.record = Some(record);
            if record.writes + record.reads > 0
                && let Some(access) = self.read_segment(record, names)?
            {
                return Ok(Some(access));
            }
        }
    }

    /// The names of the files, by the numbers that records have for them.
    fn read_names(&mut self, region: &mut Members, with_length: bool) -> io::Result<()> {
        let mut reader = BufReader::new(region);
        let mut id = [0; 8];
        while !reader.fill_buf()?.is_empty() {
            reader.read_exact(&mut id)?;
            let mut name = Vec::new();
            if with_length {
                let mut len = [0; 4];
                reader.read_exact(&mut len)?;
                let len = u64::from(self.order.u32(&len, 0)).min(MAX_NAME as u64);
                (&mut reader).take(len).read_to_end(&mut name)?;
            } else {
                (&mut reader)
                    .take(MAX_NAME as u64)
                    .read_until(0, &mut name)?;
                if name.pop() != Some(0) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a name does not end",
                    ));
                }
            }
            let name = String::from_utf8_lossy(&name).into_owned();
            if !name.is_empty() {
                self.names.entry(self.order.u64(&id, 0)).or_insert(name);
            }
            if self.names.len() > 1 << 20 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "there are more than 1048576 of them",
                ));
            }
        }
        Ok(())
    }

    fn read_head(&mut self, names: &mut Names) -> Result<Option<Record>, Fault> {
        let mut head = [0; HEAD];
        if !self.fill(&mut head, "the head of a record")? {
            return Ok(None);
        }
        let id = self.order.u64(&head, 0);
        let rank = self.order.u64(&head, 8) as i64;
        let (writes, reads) = (self.order.u64(&head, 88), self.order.u64(&head, 96));
        if writes
            .checked_add(reads)
            .is_none_or(|sum| sum > i64::MAX as u64)
        {
            return Err(Fault::end(format!(
                "a record of rank {rank} has {} writes and {} reads",
                writes as i64, reads as i64
            )));
        }
        let file = match self.names.get(&id) {
            Some(name) => names.meet_file(name)?,
            None => names.meet_file(&format!("file {id}"))?,
        };
        Ok(Some(Record {
            file,
            rank,
            writes,
            reads,
            last: None,
        }))
    }

    /// The next segment of a record; `None` where the log does not say where it lies.
    fn read_segment(
        &mut self,
        mut record: Record,
        names: &mut Names,
    ) -> Result<Option<Access>, (Fault, Option<Access>)> {
        let mut bytes = [0; SEGMENT_WITH_THREAD];
        let bytes = &mut bytes[..self.segment];
        let read = self
            .fill(bytes, "a segment")
            .map_err(|fault| (fault, None))?;
        if !read {
            let left = record.writes + record.reads;
            let what = format!(
                "the records end where {left} more accesses of rank {} were announced",
                record.rank
            );
            return Err((Fault::end(what), None));
        }
        let operation = if record.writes > 0 {
            record.writes -= 1;
            Operation::Write
        } else {
            record.reads -= 1;
            Operation::Read
        };
        let before = record.last;
        let number = |at| self.order.u64(bytes, at);
        let (offset, len) = (number(0) as i64, number(8) as i64);
        let times = [16, 24].map(|at| seconds(f64::from_bits(number(at))));
        let thread = if bytes.len() > SEGMENT { number(32) } else { 0 };
        // The list of the reads begins with a time of its own.
        let ends_list = operation == Operation::Write && record.writes == 0;
        record.last = times[0].filter(|_| !ends_list).or(None);
        self.record = Some(record);
        if offset == -1 {
            self.unplaced += 1;
            return Ok(None);
        }
        let (Ok(offset), Ok(len)) = (u64::try_from(offset), u64::try_from(len)) else {
            let what = format!("{len} bytes at {offset} are no extent of a file");
            return Err((Fault::new(0, what), None));
        };
        let extent = extent(offset, len, 0).map_err(|fault| (fault, None))?;
        let [Some(start), Some(end)] = times else {
            let what = "a start or an end is not a time".to_owned();
            return Err((Fault::new(0, what), None));
        };
        let who = names.meet(Who::Rank {
            rank: record.rank,
            thread,
        });
        let access = Access {
            who: who.map_err(|full| (Fault::from(full), None))?,
            file: record.file,
            operation,
            extent,
            start,
            took: end.checked_sub(start),
            raw: self.segment as u32,
        };
        let kept = |what: String| Err((Fault::kept(0, what), Some(access)));
        if end < start {
            return kept(format!(
                "an access ends at {end} ns, before it starts at {start} ns"
            ));
        }
        match before {
            Some(before) if start < before => kept(format!(
                "time runs backward: an access starts at {start} ns, the one before it at {before} ns"
            )),
            _ => Ok(Some(access)),
        }
    }

    /// Fills `bytes`; `false` if the region has ended. Ending within `what` is a fault.
    fn fill(&mut self, bytes: &mut [u8], what: &str) -> Result<bool, Fault> {
        let Some(region) = &mut self.region else {
            return Ok(false);
        };
        let mut len = 0;
        while len < bytes.len() {
            match region.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        self.at += len as u64;
        match len {
            0 => Ok(false),
            _ if len == bytes.len() => Ok(true),
            _ => Err(Fault {
                then: Then::End,
                ..Fault::new(0, format!("the records end in the middle of {what}"))
            }),
        }
    }
}

/// The byte order of a log with this beginning, if it is one.
fn order(head: &[u8]) -> Option<ByteOrder> {
    let magic: [u8; 8] = head.get(8..16)?.try_into().ok()?;
    if i64::from_le_bytes(magic) == MAGIC {
        Some(ByteOrder { big: false })
    } else {
        (i64::from_be_bytes(magic) == MAGIC).then_some(ByteOrder { big: true })
    }
}

/// Seconds, in ns; `None` if the value is no time.
fn seconds(value: f64) -> Option<u64> {
    // 2^63 ns are 292 years.
    let ns = (value * 1e9).round();
    (ns >= 0.0 && ns < i64::MAX as f64).then_some(ns as u64)
}

/// A log that is read from front to back.
struct Log {
    content: Option<Content>,
    at: u64,
}

impl Log {
    fn exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let Some(content) = &mut self.content else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        content.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// The decompressed bytes of a region.
    fn region(&mut self, region: Region, what: &str) -> Result<Members, String> {
        let (Some(skip), Some(content)) = (region.at.checked_sub(self.at), self.content.take())
        else {
            return Err(format!(
                "the {what} begin at byte {}, before byte {}, where what precedes them ends",
                region.at, self.at
            ));
        };
        let mut content = content;
        let skipped = io::copy(&mut (&mut content).take(skip), &mut io::sink())
            .map_err(|error| format!("the {what} cannot be reached: {error}"))?;
        if skipped < skip {
            return Err(format!(
                "the log ends at byte {}, before its {what}, at byte {}",
                self.at + skipped,
                region.at
            ));
        }
        self.at = region.at.saturating_add(region.len);
        Ok(Members {
            state: Some(Member::Between(content.take(region.len))),
        })
    }

    /// Goes on after a region that was read to its end.
    fn give_back(&mut self, region: Members) {
        self.content = region.state.map(|state| match state {
            Member::Between(content) => content.into_inner(),
            Member::Within(decoder) => decoder.into_inner().into_inner(),
        });
    }
}

/// zlib streams, one after the other, as one.
struct Members {
    state: Option<Member>,
}

enum Member {
    Between(Take<Content>),
    Within(ZlibDecoder<Take<Content>>),
}

impl Read for Members {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state.take() {
                None => return Ok(0),
                Some(Member::Between(mut content)) => {
                    if content.fill_buf()?.is_empty() {
                        let cut = content.limit() > 0;
                        self.state = Some(Member::Between(content));
                        return if cut {
                            Err(io::ErrorKind::UnexpectedEof.into())
                        } else {
                            Ok(0)
                        };
                    }
                    self.state = Some(Member::Within(ZlibDecoder::new(content)));
                }
                Some(Member::Within(mut decoder)) => {
                    let read = decoder.read(bytes)?;
                    self.state = Some(if read > 0 {
                        Member::Within(decoder)
                    } else {
                        Member::Between(decoder.into_inner())
                    });
                    if read > 0 {
                        return Ok(read);
                    }
                }
            }
        }
    }
}
