//! A slot: a page of a file, or some of its parts, and their state.
//!
//! Invariants:
//! - a part becomes valid only if the page was not made void since the claim;
//! - all valid parts are at least as new as the state `version` of their file, which changes only with a new generation;
//! - a slot's page changes only with a new generation, while all of its parts are marked as being filled by the thread that changes it;
//! - the memory of a part that is marked as being filled belongs to the thread that has marked it, even if the page is void.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::key::Key;

/// All parts of a page.
pub const ALL: u16 = u16::MAX;

/// The state of a slot at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// Number of times that parts became void, or that the page was replaced; it wraps.
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Parts that are being filled.
    pub fn filling(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Parts with the file's content.
    pub fn valid(self) -> u16 {
        self.0 as u16
    }

    /// The half that fills change, as in memory.
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    fn new(generation: u32, filling: u16, valid: u16) -> Self {
        Self(u64::from(generation) << 32 | u64::from(filling) << 16 | u64::from(valid))
    }

    fn void(self, filling: u16) -> Self {
        Self::new(self.generation().wrapping_add(1), filling, 0)
    }
}

/// A slot. Only ever used by reference to mapped memory.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    pub(crate) word: AtomicU64,
    pub(crate) dev: AtomicU64,
    pub(crate) ino: AtomicU64,
    pub(crate) page: AtomicU64,
    /// The state of its file, which valid parts are at least as new as; 0 for none.
    pub(crate) version: AtomicU64,
    /// The clock at its last use.
    pub(crate) used: AtomicU64,
    /// In the low half, parts that are foretold to the owner and not read since; in the high half, the same for other ranks, which read
    /// them here.
    pub(crate) expected: AtomicU32,
    /// Parts that were never read.
    pub(crate) fresh: AtomicU32,
    /// Number of waiters for a fill.
    pub(crate) waiters: AtomicU32,
    /// In the low half, parts that were foretold to the owner, or to a rank that left them to it, since the slot got its page; in the high
    /// half, parts that the owner is reading from the file. For the ranks' forereads.
    pub(crate) wanted: AtomicU32,
}

/// Claimed parts: to be filled, and then to be [committed](Slot::commit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    generation: u32,
    /// The parts.
    pub parts: u16,
}

impl Claimed {
    /// Splits these parts off, as a claim of their own.
    pub fn split(&mut self, parts: u16) -> Self {
        let generation = self.generation;
        let parts = self.parts & parts;
        self.parts &= !parts;
        Self { generation, parts }
    }
}

impl Slot {
    /// Its state.
    pub fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// True if it seems to be for this page. The result is certain while the generation stays the same as before the call.
    pub fn is_for(&self, key: &Key) -> bool {
        self.dev.load(Ordering::Relaxed) == key.dev
            && self.ino.load(Ordering::Relaxed) == key.ino
            && self.page.load(Ordering::Relaxed) == key.page
    }

    fn replace(&self, old: Word, new: Word) -> bool {
        let (set, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        self.word
            .compare_exchange(old.0, new.0, set, failed)
            .is_ok()
    }

    /// Claims the `wanted` parts of this page that are neither valid nor being filled, together with such parts of `beside`; `None` if no
    /// wanted part is missing. [`Another`] if the slot has another page by now.
    pub fn claim(&self, key: &Key, wanted: u16, beside: u16) -> Result<Option<Claimed>, Another> {
        loop {
            let word = self.word();
            if !self.is_for(key) {
                return Err(Another);
            }
            let is_there = word.valid() | word.filling();
            if wanted & !is_there == 0 {
                return Ok(None);
            }
            let missing = (wanted | beside) & !is_there;
            let new = Word::new(word.generation(), word.filling() | missing, word.valid());
            if self.replace(word, new) {
                // The file, including its state, is read after that.
                fence(Ordering::SeqCst);
                return Ok(Some(Claimed {
                    generation: word.generation(),
                    parts: missing,
                }));
            }
        }
    }

    /// Assigns the slot, whose state was `word`, to this page, and claims these parts; `None` if the state has changed, or a part is being
    /// filled. `named` makes the slot known as the page's, for searches.
    pub fn take(&self, word: Word, key: &Key, parts: u16, named: impl FnOnce()) -> Option<Claimed> {
        if word.filling() != 0 || !self.replace(word, word.void(ALL)) {
            return None;
        }
        // A reader that sees any of the following stores sees the new generation, too.
        fence(Ordering::Release);
        self.version.store(0, Ordering::Relaxed);
        self.dev.store(key.dev, Ordering::Relaxed);
        self.ino.store(key.ino, Ordering::Relaxed);
        self.page.store(key.page, Ordering::Relaxed);
        self.expected.store(0, Ordering::Relaxed);
        self.fresh.store(0, Ordering::Relaxed);
        self.wanted.store(0, Ordering::Relaxed);
        named();
        let others = Word::new(0, !parts, 0);
        self.word.fetch_and(!others.0, Ordering::AcqRel);
        // The file, including its state, is read after that.
        fence(Ordering::SeqCst);
        Some(Claimed {
            generation: word.void(0).generation(),
            parts,
        })
    }

    /// Makes the `filled` parts of a claim valid, and gives up the others; false if the page was made void meanwhile.
    pub fn commit(&self, claimed: Claimed, filled: u16) -> bool {
        let Claimed { generation, parts } = claimed;
        let mut word = self.word();
        loop {
            let is_same = word.generation() == generation;
            let new = if is_same { parts & filled } else { 0 };
            let valid = word.valid() | new;
            let new = Word::new(word.generation(), word.filling() & !parts, valid);
            if self.replace(word, new) {
                return is_same;
            }
            word = self.word();
        }
    }

    /// Makes the page void: its valid parts, and those that are being filled. True if there were any.
    pub fn void(&self) -> bool {
        loop {
            let word = self.word();
            if word.valid() == 0 && word.filling() == 0 {
                return false;
            }
            if self.replace(word, word.void(word.filling())) {
                return true;
            }
        }
    }

    /// Frees the memory of these parts; false if a part is being filled, or if the state is no longer `word`.
    pub fn discard(&self, word: Word, parts: u16) -> bool {
        let kept = word.valid() & !parts;
        let new = Word::new(word.generation().wrapping_add(1), 0, kept);
        word.filling() == 0 && self.replace(word, new)
    }

    /// True if data copied since its state was `word` are the page's content.
    pub fn is_still(&self, word: Word) -> bool {
        fence(Ordering::Acquire);
        let now = Word(self.word.load(Ordering::Relaxed));
        now.generation() == word.generation() && now.valid() & word.valid() == word.valid()
    }

    /// Prepares filling the claimed parts from their file in this state, which was read after the claim. Parts of another state become
    /// void, and other parts that are being filled never become valid: neither is known to be as new as this. False if the page was made
    /// void since the claim. For one thread at a time.
    pub fn renew(&self, claimed: &mut Claimed, version: u64) -> bool {
        loop {
            let word = self.word();
            if word.generation() != claimed.generation {
                return false;
            }
            let before = self.version();
            if before == version {
                return true;
            }
            if before == 0 {
                // A new page: no part is valid, and every thread that fills one comes here before it reads.
                self.version.store(version, Ordering::Release);
                return true;
            }
            let new = word.void(word.filling());
            if self.replace(word, new) {
                claimed.generation = new.generation();
                // After the new generation: a reader that sees this state and the old generation finds the change when it checks the word
                // again.
                self.version.store(version, Ordering::Release);
                return true;
            }
        }
    }

    /// Parts that are being filled, and parts that are valid for its file in this state (in any state for `None`).
    pub fn on_hand(&self, version: Option<u64>) -> u16 {
        let word = self.word();
        let is_new = version.is_none_or(|version| self.version() == version);
        word.filling() | if is_new { word.valid() } else { 0 }
    }

    /// The state of its file, which valid parts are at least as new as. It belongs to the page only while the generation stays the same.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Marks these parts as foretold.
    pub fn expect(&self, parts: u16) {
        self.expected.fetch_or(parts.into(), Ordering::Relaxed);
        self.wanted.fetch_or(parts.into(), Ordering::Relaxed);
    }

    /// Marks these parts as foretold to another rank, which will read them here.
    pub fn expect_elsewhere(&self, parts: u16) {
        self.expected
            .fetch_or(u32::from(parts) << 16, Ordering::Relaxed);
        self.wanted.fetch_or(parts.into(), Ordering::Relaxed);
    }

    /// The parts that were foretold since the slot got its page.
    pub fn wanted(&self) -> u16 {
        self.wanted.load(Ordering::Relaxed) as u16
    }

    /// Marks these claimed parts as being read from the file, or no longer.
    pub fn set_reading(&self, parts: u16, reading: bool) {
        let parts = u32::from(parts) << 16;
        if reading {
            self.wanted.fetch_or(parts, Ordering::Relaxed);
        } else {
            self.wanted.fetch_and(!parts, Ordering::Relaxed);
        }
    }

    /// Among these parts, which another rank has claimed in its own segment, those that the owner of this slot has claimed, too, and reads:
    /// the parts that it reads already, or all of them if it goes first of the two.
    pub fn reads_before(&self, parts: u16, is_first: bool) -> u16 {
        let parts = self.word().filling() & parts;
        let reading = (self.wanted.load(Ordering::Relaxed) >> 16) as u16;
        if is_first { parts } else { parts & reading }
    }

    /// Its valid parts that are foretold to the owner and not read since.
    pub fn expected(&self, word: Word) -> u16 {
        self.expected.load(Ordering::Relaxed) as u16 & word.valid()
    }

    /// Its valid parts that are foretold to other ranks and not read since.
    pub fn expected_elsewhere(&self, word: Word) -> u16 {
        (self.expected.load(Ordering::Relaxed) >> 16) as u16 & word.valid()
    }

    /// Its valid parts that were never read.
    pub fn unread(&self, word: Word) -> u16 {
        self.fresh.load(Ordering::Relaxed) as u16 & word.valid()
    }

    /// Marks these parts as new.
    pub fn refresh(&self, parts: u16, clock: u64) {
        self.fresh.fetch_or(parts.into(), Ordering::Relaxed);
        self.used.store(clock, Ordering::Relaxed);
    }

    /// Marks these parts as read by the owner.
    pub fn read(&self, parts: u16, clock: u64) {
        self.expected
            .fetch_and(!u32::from(parts), Ordering::Relaxed);
        self.fresh.fetch_and(!u32::from(parts), Ordering::Relaxed);
        self.used.store(clock, Ordering::Relaxed);
    }

    /// The clock at its last use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// True if there are waiters for a fill, on [`Slot::address`].
    pub fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) != 0
    }

    /// The address of its state.
    pub fn address(&self) -> *const AtomicU64 {
        &self.word
    }

    #[cfg(all(test, loom))]
    pub(crate) fn empty() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            word: zero(),
            dev: zero(),
            ino: zero(),
            page: zero(),
            version: zero(),
            used: zero(),
            expected: AtomicU32::new(0),
            fresh: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
        }
    }
}

/// The slot has another page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Another;
