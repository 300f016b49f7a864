//! A fill: parts of a page that one thread has claimed, reads, and lets become valid or gives up.
//!
//! Invariant: what was claimed is let go exactly once, whether the fill is committed or dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

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
            fill.slot().set_reading(parts, true);
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

    /// Fill these of them from another rank's segment, if that has all of them, of the file in the state `version`.
    pub fn from_peer(&mut self, peer: &Segment, parts: u16, version: u64) -> bool {
        let segment = self.segment;
        let page = segment.map.page(self.slot);
        let parts = parts & self.claimed.parts;
        let is_good = segment.renew(self.slot, &mut self.claimed, version)
            && peer.copy(&self.key, parts, page, Some(version));
        if is_good {
            self.filled = parts;
            let counts = self.segment.counters();
            count(&counts.taken, 1);
            count(&counts.taken_bytes, bytes(self.filled));
        }
        is_good
    }

    /// Whether another rank is going to fill these parts, so that they need only be [waited for](Segment::wait): it reads them from
    /// the file, or has claimed them and comes before this one. Of two that have claimed the same and see each other, one goes first.
    pub fn comes_after(&self, peer: &Segment, parts: u16) -> bool {
        let is_first = peer.token() < self.segment.token();
        peer.slots_of(&self.key).any(|(_, slot)| {
            let word = slot.word();
            let missing = parts & self.claimed.parts & !word.valid();
            let is_on_its_way = missing != 0 && missing & !word.filling() == 0;
            is_on_its_way && (is_first || slot.is_reading(missing))
        })
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
        if slot.has_waiters() {
            wake(slot.address());
        }
        is_valid
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

impl Segment {
    /// Wait until these parts of a page, which this segment's rank is filling, are valid, but no longer than `most`; whether they are.
    pub fn wait(&self, key: &Key, parts: u16, most: Duration) -> bool {
        let until = Instant::now() + most;
        loop {
            let state = |(_, slot)| {
                let slot: &Slot = slot;
                let word = slot.word();
                let missing = parts & !word.valid();
                (missing & !word.filling() == 0).then_some((slot, word, missing))
            };
            let Some((slot, word, missing)) = self.slots_of(key).find_map(state) else {
                return false;
            };
            if missing == 0 {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            slot.wait(|| sleep(slot.address(), word.low(), left));
        }
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

/// Waits until somebody [wakes](wake) it, for this time at most, or not at all where the lower half is another by now.
fn sleep(word: *const AtomicU64, low: u32, most: Duration) {
    let time = libc::timespec {
        tv_sec: most.as_secs().cast_signed(),
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: the word is mapped; the call writes nothing. That the wait was cut short is found out by whoever looks again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            half(word),
            libc::FUTEX_WAIT,
            low,
            &raw const time,
        );
    }
}
