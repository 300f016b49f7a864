//! A slot: a page of a file, or some of its parts, and what is known of them.
//!
//! Invariants:
//! - a part becomes valid only if nobody has made the page void since it was claimed;
//! - all valid parts are as new as the state `version` of their file, which changes only with a new generation;
//! - a slot's page changes only with a new generation, while all of its parts are marked as being filled by whoever
//!   changes it;
//! - the memory of a part that is marked as being filled belongs to whoever has marked it, void or not.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::key::Key;

/// All parts of a page.
pub const ALL: u16 = u16::MAX;

/// The state of a slot at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// How often the page was made void or another, counting round.
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Parts that somebody is filling.
    pub fn filling(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Parts that hold what the file does.
    pub fn valid(self) -> u16 {
        self.0 as u16
    }

    /// The half that fills change, as it lies in memory.
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
    /// The state of its file that what is valid is as new as, at least; 0 for none.
    pub(crate) version: AtomicU64,
    /// The clock at its last use.
    pub(crate) used: AtomicU64,
    /// In the low half, parts that are foretold to the owner and not read since; in the high half, the same of other ranks, which
    /// read them here.
    pub(crate) expected: AtomicU32,
    /// Parts that were never read.
    pub(crate) fresh: AtomicU32,
    /// How many wait for a fill.
    pub(crate) waiters: AtomicU32,
    /// In the low half, parts that the owner, or a rank that left them to it, was foretold to read since the slot is the page's; in the
    /// high half, parts that the owner is reading from the file. For the ranks' forereads.
    pub(crate) wanted: AtomicU32,
}

/// Parts that were claimed: they are to be filled, and then to be [committed](Slot::commit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    generation: u32,
    /// Which.
    pub parts: u16,
}

impl Claimed {
    /// These of the parts, claimed by themselves.
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

    /// Whether it seems to be for this page. That is so for sure while the generation stays as it was before this was asked.
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

    /// Claim those of the parts `wanted` of this page that are neither valid nor being filled, and with them those `beside` of which
    /// the same is true; `None` if nothing that is wanted is missing. [`Another`] if the slot is another page's by now.
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
                // What is read of the file, its state included, is read after that.
                fence(Ordering::SeqCst);
                return Ok(Some(Claimed {
                    generation: word.generation(),
                    parts: missing,
                }));
            }
        }
    }

    /// Make the slot this page's, whose state was `word`, and claim these parts; `None` if that has changed, or something is being
    /// filled. `named` makes the slot known as the page's to whoever looks for it.
    pub fn take(&self, word: Word, key: &Key, parts: u16, named: impl FnOnce()) -> Option<Claimed> {
        if word.filling() != 0 || !self.replace(word, word.void(ALL)) {
            return None;
        }
        // Whoever sees any of what follows sees that it is another generation.
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
        // What is read of the file, its state included, is read after that.
        fence(Ordering::SeqCst);
        Some(Claimed {
            generation: word.void(0).generation(),
            parts,
        })
    }

    /// Of what was claimed, the parts `filled` hold what the file does, and the others are given up; false if the page was made
    /// void meanwhile.
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

    /// Make the page void: what is valid of it, and what is being filled; whether there was anything.
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

    /// Give these parts' memory back; false where something is being filled.
    pub fn discard(&self, word: Word, parts: u16) -> bool {
        let kept = word.valid() & !parts;
        let new = Word::new(word.generation().wrapping_add(1), 0, kept);
        word.filling() == 0 && self.replace(word, new)
    }

    /// Whether what was copied since its state was `word` is what its page held.
    pub fn is_still(&self, word: Word) -> bool {
        fence(Ordering::Acquire);
        let now = Word(self.word.load(Ordering::Relaxed));
        now.generation() == word.generation() && now.valid() & word.valid() == word.valid()
    }

    /// What is claimed is filled from its file in this state, which was asked for after the claim. Parts of another state become void,
    /// and what else is being filled never becomes valid: of both it is not known whether they are as new as this. False if the page was
    /// made void since the claim. For one thread at a time.
    pub fn renew(&self, claimed: &mut Claimed, version: u64) -> bool {
        if self.version() == version {
            return true;
        }
        loop {
            let word = self.word();
            if word.generation() != claimed.generation {
                return false;
            }
            let new = word.void(word.filling());
            if self.replace(word, new) {
                claimed.generation = new.generation();
                // After the new generation: whoever sees this and the old one knows by the word that something was between.
                self.version.store(version, Ordering::Release);
                return true;
            }
        }
    }

    /// Parts that are being filled, and those that are valid of its file in this state, where that is known.
    pub fn on_hand(&self, version: Option<u64>) -> u16 {
        let word = self.word();
        let is_new = version.is_none_or(|version| self.version() == version);
        word.filling() | if is_new { word.valid() } else { 0 }
    }

    /// The state of its file that what is valid is as new as, at least; of the page only while the generation stays the same.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// These parts are foretold.
    pub fn expect(&self, parts: u16) {
        self.expected.fetch_or(parts.into(), Ordering::Relaxed);
        self.wanted.fetch_or(parts.into(), Ordering::Relaxed);
    }

    /// These parts are foretold to another rank, which will read them here.
    pub fn expect_elsewhere(&self, parts: u16) {
        self.expected
            .fetch_or(u32::from(parts) << 16, Ordering::Relaxed);
        self.wanted.fetch_or(parts.into(), Ordering::Relaxed);
    }

    /// The parts that were foretold since the slot is the page's.
    pub fn wanted(&self) -> u16 {
        self.wanted.load(Ordering::Relaxed) as u16
    }

    /// These parts, which are claimed, are read from the file from now on, or not any more.
    pub fn set_reading(&self, parts: u16, reading: bool) {
        let parts = u32::from(parts) << 16;
        if reading {
            self.wanted.fetch_or(parts, Ordering::Relaxed);
        } else {
            self.wanted.fetch_and(!parts, Ordering::Relaxed);
        }
    }

    /// Of these parts, which another rank has claimed in its own segment, those that the owner of this slot has claimed as well and reads:
    /// what it reads already, and all of them if it goes first of the two.
    pub fn reads_before(&self, parts: u16, is_first: bool) -> u16 {
        let parts = self.word().filling() & parts;
        let reading = (self.wanted.load(Ordering::Relaxed) >> 16) as u16;
        if is_first { parts } else { parts & reading }
    }

    /// Those of its valid parts that are foretold to the owner and not read since.
    pub fn expected(&self, word: Word) -> u16 {
        self.expected.load(Ordering::Relaxed) as u16 & word.valid()
    }

    /// Those of its valid parts that are foretold to other ranks and not read since.
    pub fn expected_elsewhere(&self, word: Word) -> u16 {
        (self.expected.load(Ordering::Relaxed) >> 16) as u16 & word.valid()
    }

    /// Those of its valid parts that were never read.
    pub fn unread(&self, word: Word) -> u16 {
        self.fresh.load(Ordering::Relaxed) as u16 & word.valid()
    }

    /// These parts are new.
    pub fn refresh(&self, parts: u16, clock: u64) {
        self.fresh.fetch_or(parts.into(), Ordering::Relaxed);
        self.used.store(clock, Ordering::Relaxed);
    }

    /// These parts were read.
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

    /// Whether anybody waits for it to be filled, on [`Slot::address`].
    pub fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) != 0
    }

    /// Where its state is.
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

/// The slot is another page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Another;
