//! A fill: parts of a page that one thread has claimed, reads, and lets become valid or gives up.
//!
//! Invariant: what was claimed is let go exactly once, whether the fill is committed or dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Segment, byte_runs, bytes, count};
use crate::atomic::AtomicU64;
use crate::key::Key;
use crate::layout::{PAGE, PART};
use crate::slot::{Claimed, Slot};

/// Parts of a page to be filled; those that were not when this is dropped are given up.
#[derive(Debug)]
pub struct Fill<'a> {
    pub(super) segment: &'a Segment,
    pub(super) slot: u32,
    pub(super) key: Key,
    /// Of the parts claimed, those that are foretold.
    pub(super) wanted: u16,
    pub(super) claimed: Claimed,
    pub(super) filled: u16,
}

impl Fill<'_> {
    /// Which parts.
    pub fn parts(&self) -> u16 {
        self.claimed.parts
    }

    /// Of these, the ones that are foretold; the others lie beside them.
    pub fn wanted(&self) -> u16 {
        self.wanted
    }

    /// The page.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Fill these of them from their file, whose state ([`crate::version`]) was asked for after they were claimed. What the file
    /// does not have in full stays out.
    ///
    /// # Errors
    /// What reading says.
    pub fn from_file(&mut self, file: BorrowedFd<'_>, parts: u16, version: u64) -> io::Result<()> {
        Self::all_from_file(&mut [(self, parts)], file, version)
    }

    /// As [`Fill::from_file`] for each of these, of one file and in its order: what lies together in the file is read by one call.
    ///
    /// # Errors
    /// What reading says; what was read before that is filled.
    pub fn all_from_file(
        fills: &mut [(&mut Self, u16)],
        file: BorrowedFd<'_>,
        version: u64,
    ) -> io::Result<()> {
        let mut pieces = Vec::new();
        for (number, (fill, parts)) in fills.iter_mut().enumerate() {
            let parts = *parts & fill.claimed.parts;
            let segment = fill.segment;
            if !segment.renew(fill.slot, &mut fill.claimed, version) {
                continue;
            }
            let page = fill.segment.map.page(fill.slot);
            pieces.extend(byte_runs(parts).map(|(at, len)| Piece {
                fill: number,
                at,
                into: page.wrapping_add(at),
                len,
                offset: fill.key.page * PAGE + at as u64,
            }));
        }
        let mut read = Ok(());
        for run in pieces.chunk_by(|one, next| one.offset + one.len as u64 == next.offset) {
            let (mut done, why) = read_run(file, run);
            for piece in run {
                let whole = done.min(piece.len) / PART as usize;
                fills[piece.fill].0.filled |=
                    (((1_u32 << whole) - 1) << (piece.at / PART as usize)) as u16;
                done -= done.min(piece.len);
            }
            read = why;
            if read.is_err() {
                break;
            }
        }
        for (fill, _) in fills {
            let beside = fill.filled & !fill.wanted;
            count(&fill.segment.counters().beside_bytes, bytes(beside));
        }
        read
    }

    /// Those that another rank has claimed at the same time, in its segment `peer`, and reads first, are left to it; all of them where
    /// nothing that is foretold remains. Of two ranks that have claimed the same and see each other one goes first.
    pub fn leave_to(&mut self, peer: &Segment) {
        let is_first = peer.token() < self.segment.token();
        let mut left = peer.slots_of(&self.key).fold(0, |left, (_, slot)| {
            let theirs = slot.reads_before(self.claimed.parts, is_first);
            slot.expect_elsewhere(theirs & self.wanted);
            left | theirs
        });
        if left == 0 {
            return;
        }
        count(
            &self.segment.counters().left_bytes,
            bytes(self.wanted & left),
        );
        self.wanted &= !left;
        if self.wanted == 0 {
            left = self.claimed.parts;
        }
        let let_go = self.claimed.split(left);
        self.slot().commit(let_go, 0);
        self.wake();
    }

    /// All of these are about to be read from the file.
    pub fn begin_reading(&self) {
        self.slot().set_reading(self.claimed.parts, true);
    }

    /// What was filled becomes valid; which parts. None if the page was made void meanwhile.
    pub fn commit(self) -> u16 {
        let filled = self.filled;
        if self.close() { filled } else { 0 }
    }

    fn slot(&self) -> &Slot {
        &self.segment.map.slots()[self.slot as usize]
    }

    /// Let go of what was claimed; whether anything has become valid.
    fn close(mut self) -> bool {
        self.let_go()
    }

    fn let_go(&mut self) -> bool {
        let claimed = self.claimed;
        self.claimed.parts = 0;
        if claimed.parts == 0 {
            return false;
        }
        let (slot, segment) = (self.slot(), self.segment);
        slot.refresh(self.filled & self.wanted, segment.clock());
        slot.set_reading(claimed.parts, false);
        let is_valid = slot.commit(claimed, self.filled) && self.filled != 0;
        let counts = segment.counters();
        if is_valid {
            segment.log(self.slot);
            count(&counts.filled_bytes, bytes(self.filled));
        }
        // Last: whoever sees that there is something to look for finds it.
        count(
            if is_valid {
                &counts.filled
            } else {
                &counts.lost
            },
            1,
        );
        self.wake();
        is_valid
    }

    /// Whoever waits for any of these looks again.
    fn wake(&self) {
        if self.slot().has_waiters() {
            wake(self.slot().address());
        }
    }
}

/// A piece of a file that belongs into one fill; in bytes.
struct Piece {
    /// Which fill of several.
    fill: usize,
    /// Where in its page.
    at: usize,
    /// That place in memory.
    into: *mut u8,
    len: usize,
    /// Where in the file.
    offset: u64,
}

/// Read pieces that follow each other in the file; how many bytes that gave, and why no more, unless the file ends there.
fn read_run(file: BorrowedFd<'_>, run: &[Piece]) -> (usize, io::Result<()>) {
    let mut done = 0;
    loop {
        let mut skip = done;
        let mut rest = Vec::with_capacity(run.len());
        for piece in run {
            if skip < piece.len {
                rest.push(libc::iovec {
                    iov_base: piece.into.wrapping_add(skip).cast(),
                    iov_len: piece.len - skip,
                });
            }
            skip -= skip.min(piece.len);
        }
        let Some(first) = run.first().filter(|_| !rest.is_empty()) else {
            return (done, Ok(()));
        };
        let at = libc::off_t::try_from(first.offset + done as u64);
        let (Ok(at), Ok(count)) = (at, rest.len().try_into()) else {
            return (done, Err(io::ErrorKind::InvalidInput.into()));
        };
        // SAFETY: each piece lies within the page of a slot, which is mapped, and its memory is a claim's.
        let got = unsafe { libc::preadv(file.as_raw_fd(), rest.as_ptr(), count, at) };
        match usize::try_from(got) {
            Ok(0) => return (done, Ok(())),
            Ok(got) => done += got,
            Err(_) => {
                let why = io::Error::last_os_error();
                if why.kind() != io::ErrorKind::Interrupted {
                    return (done, Err(why));
                }
            }
        }
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        self.filled = if self.claimed.parts == 0 {
            self.filled
        } else {
            0
        };
        self.let_go();
    }
}

/// The lower half of a slot's state, which a fill changes.
fn half(word: *const AtomicU64) -> *const u32 {
    word.cast::<u32>()
        .wrapping_add(usize::from(cfg!(target_endian = "big")))
}

/// Wakes whoever waits for the lower half of a slot's state to change.
fn wake(word: *const AtomicU64) {
    // SAFETY: the word is mapped; the call writes nothing.
    unsafe {
        libc::syscall(libc::SYS_futex, half(word), libc::FUTEX_WAKE, i32::MAX);
    }
}
