//! Events as slots of 32 bytes, and back.
//!
//! | word | bits | holds |
//! | --- | --- | --- |
//! | 0 | 0..8 | what it is ([`code`]) |
//! | 0 | 8..16 | flags, or the call kind of an access |
//! | 0 | 16..32 | how many slots follow that belong to it; of an access, how many more it holds |
//! | 0 | 32..64 | instance (parent's pid in a thread event) |
//! | 1 | | start, in ticks |
//! | 2 | | offset, or `pid \| tid << 32`, or an inode's number |
//! | 3 | 0..32 | length of the extent or of the path, in bytes |
//! | 3 | 32..64 | duration in units of 16 ticks, saturating |
//!
//! Paths fill the slots after the first, padded with zeros. The use of a name may have a slot of the inode's facts before its
//! path ([`Inode`]); word 0 then has the device where others have an instance.
//!
//! Up to [`MORE_MAX`] accesses after one, with the same file, kind and length, each begun when the previous one ended, need no slot of
//! their own. Those that continue the previous one are counted in its slot, even after it is published. Those elsewhere share slots with an
//! offset in each word from word 1 on, and are counted in them as they come. Decoding checks everything and never panics.

/// A slot: four words.
pub type Slot = [u64; 4];

/// The longest path an event carries, in bytes.
pub const PATH_MAX: usize = 4096;

/// The most slots that can follow an event's first one.
pub const EXTRA_MAX: usize = PATH_MAX / 32;

/// The most accesses that can be added to one.
pub const MORE_MAX: u16 = 63;

/// The most accesses in a slot of offsets.
pub(crate) const OFFSETS: u16 = 3;

/// One more access in word 0, and all the bits of this count.
pub(crate) const MORE: u64 = 1 << 16;
pub(crate) const MORE_BITS: u64 = 0xffff << 16;

/// The bits of word 0 that an access shares with those added to it: instance and kind.
pub(crate) const COMMON_BITS: u64 = 0xffff_ffff_0000_ff00;

/// The first byte of an event.
pub mod code {
    /// A thread began to write to this ring.
    pub const THREAD: u8 = 1;
    /// A file was opened or found open.
    pub const OPEN: u8 = 2;
    /// A range of a file was read, and maybe those after it.
    pub const ACCESS: u8 = 3;
    /// The process is about to end or to become another program.
    pub const EXIT: u8 = 6;
    /// Other ranges of the file were read that was read last.
    pub const OFFSETS: u8 = 7;
    /// A name was used without opening a file.
    pub const NAME: u8 = 8;
    /// The process is one of the ranks of a parallel program.
    pub const RANK: u8 = 9;
}

/// The call kinds of accesses, with the codes of `foreread_plan::Kind`, which this crate
/// must not depend on; a whole-program test holds the two equal.
pub mod kind {
    /// `read`.
    pub const READ: u8 = 1;
    /// `pread`.
    pub const PREAD: u8 = 2;
    /// `readv`.
    pub const READV: u8 = 3;
    /// `preadv` and `preadv2`.
    pub const PREADV: u8 = 4;
    /// A refill of a stdio stream's buffer.
    pub const STDIO: u8 = 5;
    /// `sendfile`, as its source.
    pub const SENDFILE: u8 = 8;
    /// `copy_file_range`, as its source.
    pub const COPY_FILE_RANGE: u8 = 9;
    /// `splice`, as its source.
    pub const SPLICE: u8 = 10;
    /// A read through MPI-IO.
    pub const MPI_READ: u8 = 13;
    /// A write through MPI-IO.
    pub const MPI_WRITE: u8 = 14;
    /// No access: the program drops pages of the file from memory, or asks for their residency.
    pub const DROPPED: u8 = 255;
}

/// Flag of an open: opened for writing.
pub const OPEN_WRITTEN: u8 = 1;
/// Flag of an open: opened with `O_CREAT`, so the program may have made the file itself.
pub const OPEN_CREATED: u8 = 2;
/// Flag of an open: opened with `O_TRUNC`.
pub const OPEN_TRUNCATED: u8 = 4;
/// Flag of an open: opened with `O_DIRECTORY`.
pub const OPEN_DIRECTORY: u8 = 8;
/// Flag of an open: not seen being opened, but found open (inherited or received); the path is the kernel's.
pub const OPEN_FOUND: u8 = 16;
/// Flag of an open: opened for writing alone, so that nothing is read by the descriptor.
pub const OPEN_UNREAD: u8 = 32;
/// Flag of an open: opened with `O_DIRECT`, so that the page cache is of no use to its reads.
pub const OPEN_DIRECT: u8 = 64;

/// Flag for the use of a name: a directory was listed; without the flag an inode was looked up.
pub const NAME_LISTED: u8 = 1;
/// Flag of the use of a name: the symbolic link was followed that may be there.
pub const NAME_FOLLOWED: u8 = 2;

/// Flag for the use of a name: the inode comes before the path. The upper half of the flags is its type then.
pub const NAME_INODE: u8 = 4;

/// The inode returned by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Device number, as `st_dev` has it.
    pub dev: u32,
    /// Inode number.
    pub ino: u64,
    /// The type of the file: the bits of `S_IFMT` in `st_mode`, shifted down by 12.
    pub kind: u8,
    /// Bytes.
    pub size: u64,
    /// When the file was modified last, in ns since the epoch.
    pub mtime_ns: i64,
    /// When its inode was changed last, in ns since the epoch.
    pub ctime_ns: i64,
}

impl Inode {
    /// The second slot of the event, for data without room in the first.
    pub fn slot(&self) -> Slot {
        [self.size, self.mtime_ns as u64, self.ctime_ns as u64, 0]
    }

    fn decode(first: &Slot, bytes: &[u8; 32]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            u64::from_le_bytes(word)
        };
        Self {
            dev: (first[0] >> 32) as u32,
            ino: first[2],
            kind: (first[0] >> 12) as u8 & 15,
            size: word(0),
            mtime_ns: word(1) as i64,
            ctime_ns: word(2) as i64,
        }
    }
}

/// Flag of a thread event: the C library's stdio could not be hooked, its reads are not seen.
pub const THREAD_NO_STDIO: u8 = 1;

/// A thread's report. Paths have type `P`; durations are ticks of the area's clock when decoded, and ns when passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What<P> {
    /// A thread begins to report; comes before all its other events.
    Thread {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Parent process.
        ppid: u32,
        /// True if reads through stdio are seen.
        stdio: bool,
        /// Absolute path of the process's executable.
        exe: P,
    },
    /// A file description is known from now on; comes before any use of `inst`, unless events were lost.
    Open {
        /// Its number, unique in this ring's life.
        inst: u32,
        /// `OPEN_*` flags.
        flags: u8,
        /// Duration of the call.
        took: u64,
        /// Absolute path, joined but not normalised.
        path: P,
    },
    /// A read.
    Access {
        /// The file description.
        inst: u32,
        /// The code of the call kind, equal to `foreread_plan::Kind`'s; not checked.
        kind: u8,
        /// First byte.
        offset: u64,
        /// Bytes read, not 0.
        len: u32,
        /// Duration of the call.
        took: u64,
    },
    /// A name was used without opening a file: its inode was looked up, or the directory was listed.
    Name {
        /// [`NAME_LISTED`] and [`NAME_FOLLOWED`].
        flags: u8,
        /// Duration of the call.
        took: u64,
        /// Absolute path, joined but not normalised.
        path: P,
        /// The inode, if the call returned it.
        inode: Option<Inode>,
    },
    /// The process is one of the ranks of a parallel program, as its MPI library has it.
    Rank {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        of: u32,
    },
    /// The process ends, or becomes another program; if that fails, its events go on.
    Exit,
}

/// Slots that hold no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Builders of slots; the inverse of [`decode`].
pub mod encode {
    use super::{Inode, NAME_INODE, Slot, code};

    pub(crate) fn word0(code: u8, flags: u8, extra: usize, inst: u32) -> u64 {
        u64::from(code) | u64::from(flags) << 8 | (extra as u64) << 16 | u64::from(inst) << 32
    }

    fn took(ticks: u64) -> u64 {
        let units = ticks >> 4;
        (if units > u64::from(u32::MAX) {
            u64::from(u32::MAX)
        } else {
            units
        }) << 32
    }

    /// The first slot of a thread event; `exe` bytes of path follow.
    pub fn thread(pid: u32, tid: u32, ppid: u32, flags: u8, start: u64, exe: usize) -> Slot {
        let who = u64::from(pid) | u64::from(tid) << 32;
        [
            word0(code::THREAD, flags, exe.div_ceil(32), ppid),
            start,
            who,
            exe as u64,
        ]
    }

    /// The first slot of an open; `path` bytes of path follow.
    pub fn open(inst: u32, flags: u8, start: u64, ticks: u64, path: usize) -> Slot {
        [
            word0(code::OPEN, flags, path.div_ceil(32), inst),
            start,
            0,
            path as u64 | took(ticks),
        ]
    }

    /// The first slot of the use of a name; [`Inode::slot`] follows if the inode is known, and `path` bytes of path.
    pub fn name(flags: u8, start: u64, ticks: u64, path: usize, inode: Option<&Inode>) -> Slot {
        let slots = path.div_ceil(32);
        let (word0, ino) = match inode {
            None => (word0(code::NAME, flags, slots, 0), 0),
            Some(inode) => {
                let flags = flags | NAME_INODE | inode.kind << 4;
                (word0(code::NAME, flags, slots + 1, inode.dev), inode.ino)
            }
        };
        [word0, start, ino, path as u64 | took(ticks)]
    }

    /// An access.
    #[inline]
    pub fn access(inst: u32, kind: u8, start: u64, ticks: u64, offset: u64, len: u32) -> Slot {
        [
            word0(code::ACCESS, kind, 0, inst),
            start,
            offset,
            u64::from(len) | took(ticks),
        ]
    }

    /// The process's rank.
    pub fn rank(rank: u32, of: u32, start: u64) -> Slot {
        [word0(code::RANK, 0, 0, rank), start, 0, u64::from(of)]
    }

    /// An exit.
    pub fn exit(start: u64) -> Slot {
        [word0(code::EXIT, 0, 0, 0), start, 0, 0]
    }
}

/// Number of slots that follow the given one, as it claims; at most `u16::MAX`.
pub(crate) fn extra(first: &Slot) -> usize {
    if matches!(first[0] as u8, code::ACCESS | code::OFFSETS) {
        return 0;
    }
    usize::from((first[0] >> 16) as u16)
}

/// Number of accesses in a slot, by its word 0, if it has any.
#[cfg(feature = "std")]
pub(crate) fn held(word0: u64) -> u16 {
    let most = if word0 as u8 == code::OFFSETS {
        OFFSETS
    } else {
        1 + MORE_MAX
    };
    (((word0 & MORE_BITS) / MORE) as u16)
        .saturating_add(1)
        .min(most)
}

/// The length in bytes and the duration in ticks that word 3 of an access holds.
#[cfg(feature = "std")]
pub(crate) fn extent_and_time(word3: u64) -> (u64, u64) {
    (u64::from(word3 as u32), (word3 >> 32) << 4)
}

/// The access after `last`, as if each had its own slot. It is number `number` of those in `slot`.
#[cfg(feature = "std")]
pub(crate) fn after(last: &Slot, slot: &Slot, number: u16) -> Result<Slot, Malformed> {
    if (last[0] ^ slot[0]) & COMMON_BITS != 0 {
        return Err(Malformed);
    }
    let [word0, start, offset, word3] = *last;
    let (len, took) = extent_and_time(word3);
    let offset = if slot[0] as u8 == code::OFFSETS {
        *slot.get(1 + usize::from(number)).ok_or(Malformed)?
    } else {
        offset.saturating_add(len)
    };
    Ok([word0, start.saturating_add(took), offset, word3])
}

/// Decodes an event from its first slot and the bytes of the following ones. Returns its start in ticks and its content, with a path made
/// by `own`; for a slot of accesses, the first one.
#[inline(always)]
pub fn decode<'a, P>(
    first: &Slot,
    rest: &'a [u8],
    own: impl FnOnce(&'a [u8]) -> P,
) -> Result<(u64, What<P>), Malformed> {
    let [w0, start, w2, w3] = *first;
    let (kind, flags, extra) = (w0 as u8, (w0 >> 8) as u8, extra(first));
    let inst = (w0 >> 32) as u32;
    if extra > EXTRA_MAX || rest.len() != extra * 32 {
        return Err(Malformed);
    }
    let took = |w: u64| (w >> 32) << 4;
    let path_in = |rest: &'a [u8]| {
        let len = (w3 as u32) as usize;
        let path = rest.get(..len).ok_or(Malformed)?;
        if len.div_ceil(32) * 32 != rest.len() || path.contains(&0) {
            return Err(Malformed);
        }
        Ok(path)
    };
    let path = || path_in(rest);
    let single = || if extra == 0 { Ok(()) } else { Err(Malformed) };
    let payload = match kind {
        code::THREAD => {
            let (pid, tid) = (w2 as u32, (w2 >> 32) as u32);
            if pid == 0 || tid == 0 {
                return Err(Malformed);
            }
            What::Thread {
                pid,
                tid,
                ppid: inst,
                stdio: flags & THREAD_NO_STDIO == 0,
                exe: own(path()?),
            }
        }
        code::OPEN => {
            let path = path()?;
            if inst == 0 || path.first() != Some(&b'/') {
                return Err(Malformed);
            }
            What::Open {
                inst,
                flags,
                took: took(w3),
                path: own(path),
            }
        }
        code::NAME => {
            let (inode, rest) = if flags & NAME_INODE != 0 {
                let (facts, rest) = rest.split_first_chunk().ok_or(Malformed)?;
                (Some(Inode::decode(first, facts)), rest)
            } else {
                (None, rest)
            };
            let path = path_in(rest)?;
            if path.first() != Some(&b'/') {
                return Err(Malformed);
            }
            What::Name {
                flags: flags & (NAME_LISTED | NAME_FOLLOWED),
                took: took(w3),
                path: own(path),
                inode,
            }
        }
        code::ACCESS => {
            let len = w3 as u32;
            if inst == 0 || len == 0 || w2.checked_add(u64::from(len)).is_none() {
                return Err(Malformed);
            }
            What::Access {
                inst,
                kind: flags,
                offset: w2,
                len,
                took: took(w3),
            }
        }
        code::RANK => {
            single()?;
            let of = w3 as u32;
            if inst >= of {
                return Err(Malformed);
            }
            What::Rank { rank: inst, of }
        }
        code::EXIT => {
            single()?;
            What::Exit
        }
        _ => return Err(Malformed),
    };
    Ok((start, payload))
}
