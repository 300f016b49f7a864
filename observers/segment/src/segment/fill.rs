//! A fill: parts of a page that one thread has claimed and reads, and that it makes valid or gives up.
//!
//! Invariant: claimed parts are released exactly once, whether the fill is committed or dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Segment, byte_runs, bytes, count};
use crate::atomic::AtomicU64;
use crate::key::Key;
use crate::layout::{PAGE, PART};
use crate::slot::{Claimed, Slot};

/// Claimed parts of a page, to be filled. Without [`Fill::commit`] they are given up on drop.
#[derive(Debug)]
pub struct Fill<'a> {
    pub(super) segment: &'a Segment,
    pub(super) slot: u32,
    pub(super) key: Key,
    /// The claimed parts that are foretold.
    pub(super) wanted: u16,
    pub(super) claimed: Claimed,
    pub(super) filled: u16,
}

impl Fill<'_> {
    /// The claimed parts.
    pub fn parts(&self) -> u16 {
        self.claimed.parts
    }

    /// The foretold ones among them; the others are beside those.
    pub fn wanted(&self) -> u16 {
        self.wanted
    }

    /// The page.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Fills these parts, if claimed, from their file, whose state ([`crate::version`]) was read after the claim. Parts that the file does
    /// not have in full are left out.
    ///
    /// # Errors
    /// The error of reading.
    pub fn from_file(&mut self, file: BorrowedFd<'_>, parts: u16, version: u64) -> io::Result<()> {
        Self::all_from_file(&mut [(self, parts)], file, version)
    }

    /// The same as [`Fill::from_file`] for several fills of one file, in its order: adjacent pieces of the file are read by one call.
    ///
    /// # Errors
    /// The error of reading; pieces that were read before it are filled.
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

    /// Leaves to another rank the parts that it has claimed at the same time, in its segment `peer`, and reads first; all parts if no
    /// foretold one remains. Of two ranks that have claimed the same parts and see each other, one goes first.
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

    /// Marks all parts as being read from the file.
    pub fn begin_reading(&self) {
        self.slot().set_reading(self.claimed.parts, true);
    }

    /// Makes the filled parts valid, and returns them; 0 if the page was made void meanwhile.
    pub fn commit(self) -> u16 {
        let filled = self.filled;
        if self.close() { filled } else { 0 }
    }

    fn slot(&self) -> &Slot {
        &self.segment.map.slots()[self.slot as usize]
    }

    /// Releases the claimed parts. True if any became valid.
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
        // Last, so that a reader that sees the new count finds the page.
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

    /// Wakes all waiters for these parts, which then check again.
    fn wake(&self) {
        if self.slot().has_waiters() {
            wake(self.slot().address());
        }
    }
}

/// A piece of a file for one fill; in bytes.
struct Piece {
    /// Number of the fill.
    fill: usize,
    /// Offset in its page.
    at: usize,
    /// Its address in memory.
    into: *mut u8,
    len: usize,
    /// Offset in the file.
    offset: u64,
}

/// Reads pieces that are adjacent in the file. Returns the number of bytes read, and the error that ended the reading; the end of the file
/// is no error.
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

/// Wakes all waiters for a change of the lower half of a slot's state.
fn wake(word: *const AtomicU64) {
    // SAFETY: the word is mapped; the call writes nothing.
    unsafe {
        libc::syscall(libc::SYS_futex, half(word), libc::FUTEX_WAKE, i32::MAX);
    }
}
