//! The progress of a run, for other processes: words that the supervisor writes when asked, and only then.
//!
//! The asking process belongs to the same user, and maps only the first page of the area. It asks by incrementing a word. The supervisor
//! compares two words at each poll, and answers with numbers that only it interprets.
//!
//! Invariant: an answer is complete or absent. Data from another's area are untrusted, because any program of the run can write there.
//!
//! Data flow: [`Visit::ask`] → [`Board::is_asked`] → [`Board::answer`] → [`Visit::answer`].

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, SealFlags, fcntl_get_seals, fstat, open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::area::Area;
use crate::atomic::Ordering;
use crate::layout::{AREA_SIZE, BOARD_WORDS, Header, MAGIC, VERSION};

/// The supervisor's side. While it exists, the area can be found.
#[derive(Debug)]
pub struct Board {
    pub(crate) area: Arc<Area>,
    /// Held open: under its name in /proc the area is found.
    pub(crate) _memfd: Arc<OwnedFd>,
}

impl Board {
    /// True if there was a question since the last answer.
    pub fn is_asked(&self) -> bool {
        let board = &self.header().board.0;
        board.asked.load(Ordering::Relaxed) != board.answered.load(Ordering::Relaxed)
    }

    /// Answers all who have asked so far.
    pub fn answer(&self, words: [u64; BOARD_WORDS]) {
        let board = &self.header().board.0;
        let asked = board.asked.load(Ordering::Relaxed);
        // An odd number while the words are being written.
        let writes = board.writes.load(Ordering::Relaxed).wrapping_add(1) | 1;
        board.writes.store(writes, Ordering::SeqCst);
        for (place, word) in board.words.iter().zip(words) {
            place.store(word, Ordering::SeqCst);
        }
        board.writes.store(writes.wrapping_add(1), Ordering::SeqCst);
        board.answered.store(asked, Ordering::Release);
    }

    fn header(&self) -> &Header {
        &self.area.get().shared.header
    }
}

/// The first page of another process's area.
#[derive(Debug)]
pub struct Visit(NonNull<Header>);

// SAFETY: the page is plain memory, not bound to a thread, and all of it is atomics.
unsafe impl Send for Visit {}

impl Visit {
    /// The area that another process has open under this path, which is in its folder in /proc.
    ///
    /// # Errors
    /// The kernel's error: this user may not examine that process, or the process is gone. [`io::ErrorKind::InvalidData`] for anything but
    /// an area of this version.
    pub fn at(path: &Path) -> io::Result<Self> {
        let memfd = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let is_sealed =
            fcntl_get_seals(&memfd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let is_whole = fstat(&memfd)?.st_size as u64 == AREA_SIZE as u64;
        // Otherwise its owner could shrink it while it is read.
        if !is_sealed || !is_whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else in this process refers to it.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                size_of::<Header>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &memfd,
                0,
            )?
        };
        let visit = Self(NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        let header = visit.header();
        let is_known = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION;
        match is_known {
            true => Ok(visit),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Distinguishes this area from others.
    pub fn token(&self) -> u64 {
        self.header().token.load(Ordering::Relaxed)
    }

    /// Asks for an answer.
    pub fn ask(&self) {
        self.header().board.0.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// The last answer; `None` before the first, and while one is being written.
    pub fn answer(&self) -> Option<[u64; BOARD_WORDS]> {
        let board = &self.header().board.0;
        let writes = board.writes.load(Ordering::SeqCst);
        let words = board.words.each_ref();
        let words = words.map(|word| word.load(Ordering::SeqCst));
        let is_whole = writes.is_multiple_of(2) && board.writes.load(Ordering::SeqCst) == writes;
        (writes > 0 && is_whole).then_some(words)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is readable, writable, page-aligned and as long as `Header`, which consists of atomics only; it lives
        // as long as `self`, and the seal keeps anybody from shrinking the file beneath it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // SAFETY: mapped in `at` with this length, and no reference outlives `self`. A failure leaves the mapping in place, which
        // harms nobody.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<Header>()) };
    }
}
