//! The layout of the shared area.
//!
//! Everything is an atomic, so a reference to the mapped area is sound whatever the
//! other side does to it. First comes [`Shared`], which every observed process maps: header page, owner words,
//! cursors, passages, advice table. After it come the slots of each ring ([`Slots`]): a process maps those of its own
//! threads alone, so that neither its locked memory nor its core file holds other processes' events. The supervisor
//! maps all ([`Whole`]). Pages are touched only when used: an idle ring costs nothing.

use crate::atomic::{AtomicU32, AtomicU64, MODELLED, Ordering};

/// The environment variable that names the shared area to the program tree.
pub const ENV: &str = "FOREREAD_RING";

/// Places for processes that execute another program, a power of two: the number that can be in transition at once.
pub const PASSAGES: usize = if MODELLED { 2 } else { 1024 };

/// The area as the environment variable describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// The area's token.
    pub token: u64,
    /// Number of system-call filters of the supervisor itself.
    pub filters: u32,
    /// The area's path.
    pub path: &'a [u8],
}

/// Reads the value of [`ENV`]: the token in 16 digits, the filters in decimal ones, the path. `None` if that makes no sense.
pub fn address(value: &[u8]) -> Option<Address<'_>> {
    let (token, rest) = value.split_at_checked(16)?;
    let number = |digits: &[u8], base: u32| {
        digits.iter().try_fold(0_u64, |number, &byte| {
            let digit = char::from(byte).to_digit(base)?;
            Some(number.wrapping_mul(base.into()).wrapping_add(digit.into()))
        })
    };
    let (filters, path) = rest.split_at(rest.iter().position(|&byte| byte == b'/')?);
    Some(Address {
        token: number(token, 16)?,
        filters: u32::try_from(number(filters, 10)?).ok()?,
        path,
    })
}

/// The first word of the area.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FOREREAD");

/// The layout's version; a library that knows another one stays passive.
pub const VERSION: u32 = 15;

/// Number of rings, so of threads that can report at once. Together with [`RING_SLOTS`] it keeps the whole area under 64 MiB even if every
/// page is touched.
pub const RINGS: usize = if MODELLED { 2 } else { 112 };

/// Slots in one ring, a power of two; 512 KiB.
pub const RING_SLOTS: usize = if MODELLED { 4 } else { 16384 };

/// Entries of the advice table, a power of two.
pub const ADVICE_SLOTS: usize = if MODELLED { 1 } else { 8192 };

/// Owner words: those of the rings, and more to keep the following fields in place.
pub(crate) const OWNERS: usize = if MODELLED { RINGS } else { 128 };

/// A program's advice to the kernel on a file that it opens, in the terms of posix_fadvise(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Advice {
    /// To read nothing ahead, because foreread does.
    Random = 0,
    /// To read twice as far ahead.
    Sequential = 1,
}

impl Advice {
    /// The bit of an advice table's entry that says which; the others are the path's.
    const BIT: u64 = 1;

    /// The entry for the path of this hash.
    pub(crate) fn entry(self, hash: u64) -> u64 {
        hash & !Self::BIT | self as u64
    }

    /// The advice of an entry, if it is for the path with this hash.
    pub(crate) fn of(entry: u64, hash: u64) -> Option<Self> {
        [Self::Random, Self::Sequential]
            .into_iter()
            .find(|one| one.entry(hash) == entry)
    }
}

/// The extent of reporting by the observed programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Nothing: a call costs one more load.
    Mute = 0,
    /// The program's position, and the names that it waited for; an event for a full ring is dropped.
    Progress = 1,
    /// Everything; a full ring is waited for, within bounds.
    Record = 2,
}

impl Mode {
    /// The mode with this code; an unknown code is [`Mode::Mute`].
    pub const fn from_code(code: u32) -> Self {
        match code {
            1 => Mode::Progress,
            2 => Mode::Record,
            _ => Mode::Mute,
        }
    }
}

/// The supervisor's wishes: the [`Mode`], whether the kernel is to read ahead by itself again, and how often the mode has become
/// [`Mode::Mute`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Wishes(pub(crate) AtomicU32);

const MODE: u32 = 3;
const GIVEN_UP: u32 = 4;
/// Adds one to the count, which is in the highest bits and wraps.
const TIME: u32 = 8;

impl Wishes {
    /// No wishes.
    #[cfg(not(all(test, loom)))]
    pub const fn nothing() -> Self {
        Self(AtomicU32::new(Mode::Mute as u32))
    }

    /// All wishes as one number, which changes with each of them.
    #[inline(always)]
    pub fn word(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The mode, and a number that is another one after the mode has been [`Mode::Mute`].
    #[inline(always)]
    pub fn mode(&self) -> (Mode, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (Mode::from_code(word & MODE), word / TIME)
    }

    /// True if there is nothing to do: no report, and no advice to be withdrawn that is not in `done`, a former result of
    /// [`Wishes::once_done`].
    #[inline(always)]
    pub fn is_nothing(&self, done: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & (MODE | GIVEN_UP) == Mode::Mute as u32 || word == done
    }

    /// For [`Wishes::is_nothing`]: a number for "no report is wanted and all advice has been withdrawn"; otherwise a number that matches
    /// nothing.
    pub fn once_done(&self) -> u32 {
        let word = self.0.load(Ordering::Relaxed);
        if word & MODE == Mode::Mute as u32 {
            word
        } else {
            Self::NOT_DONE
        }
    }

    /// The result of [`Wishes::once_done`] when there is something to do; no state equals it.
    pub const NOT_DONE: u32 = MODE;

    /// True if advised descriptors are to get the kernel's own read-ahead back.
    #[inline]
    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) & GIVEN_UP != 0
    }

    #[cfg(feature = "std")]
    pub(crate) fn set_mode(&self, mode: Mode) {
        let once_more = if mode == Mode::Mute { TIME } else { 0 };
        let rest = self.0.load(Ordering::Relaxed) & !MODE;
        let word = rest.wrapping_add(once_more) | mode as u32;
        self.0.store(word, Ordering::Relaxed);
    }

    #[cfg(feature = "std")]
    pub(crate) fn give_up(&self, given_up: bool) {
        if given_up {
            self.0.fetch_or(GIVEN_UP, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!GIVEN_UP, Ordering::Relaxed);
        }
    }
}

/// The unit of the stamps in the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Monotonic = 0,
    /// Ticks of the time stamp counter (x86-64 only).
    Tsc = 1,
}

/// A value alone on its cache line.
#[repr(C, align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// The first page. The words that every call reads share a cache line that is hardly ever written; frequently written words have a line
/// each.
#[repr(C, align(4096))]
pub struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) clock: AtomicU32,
    pub(crate) wanted: Wishes,
    pub(crate) advice_len: AtomicU32,
    pub(crate) switches: AtomicU32,
    /// Non-zero if a process has asked for a write lease on a file.
    pub(crate) leases: AtomicU32,
    /// A random number that the environment names too ([`Address`](crate::Address)): an area with another one is not
    /// this supervisor's.
    pub(crate) token: AtomicU64,
    pub(crate) heartbeat: Line<AtomicU64>,
    pub(crate) instances: Line<AtomicU32>,
    pub(crate) lost: Line<AtomicU64>,
    /// Processes that never reported again and whose place in `passages` was reused, and processes in another PID namespace.
    pub(crate) evicted: AtomicU32,
    pub(crate) apart: AtomicU32,
    /// Programs under a system-call filter: those that took one on, and those that others under one became or started.
    pub(crate) filtered: AtomicU32,
    /// Not for programs: the supervisor's answers about the run. A library of this version need not know this part.
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(crate) board: Line<BoardWords>,
}

/// Words of an answer.
pub const BOARD_WORDS: usize = 12;

/// The progress of a run, written on request.
#[repr(C)]
#[cfg_attr(not(feature = "std"), allow(dead_code))]
pub(crate) struct BoardWords {
    /// Questions.
    pub(crate) asked: AtomicU32,
    /// Number of answered questions.
    pub(crate) answered: AtomicU32,
    /// Beginnings and ends of answers.
    pub(crate) writes: AtomicU32,
    pub(crate) words: [AtomicU64; BOARD_WORDS],
}

/// One ring's read and write positions, counting slots, wrapping at 2^32.
#[repr(C)]
pub(crate) struct Cursors {
    pub(crate) head: Line<AtomicU32>,
    pub(crate) tail: Line<AtomicU32>,
}

/// The memory that all processes map. Only used by reference to mapped memory.
#[repr(C, align(4096))]
pub struct Shared {
    pub(crate) header: Header,
    /// `pid << 32 | tid` of the thread that writes to the ring, 0 when free.
    pub(crate) owners: [AtomicU64; OWNERS],
    pub(crate) cursors: [Cursors; RINGS],
    /// Processes in transition from one program to the next. Each process writes here and to the fields before: they are near each other,
    /// so that the kernel maps the pages together.
    pub(crate) passages: [AtomicU64; PASSAGES],
    pub(crate) advice: [AtomicU64; ADVICE_SLOTS],
}

/// The events of one ring. Only ever used by reference to mapped memory.
#[repr(transparent)]
pub struct Slots(pub(crate) [[AtomicU64; 4]; RING_SLOTS]);

/// The whole area, as its owner maps it.
#[cfg(feature = "std")]
#[repr(C)]
pub struct Whole {
    pub(crate) shared: Shared,
    pub(crate) rings: [Slots; RINGS],
}

/// The whole area's size, in bytes.
pub const AREA_SIZE: usize = slots_at(RINGS);

/// Offset of a ring's slots in the area, in bytes.
pub const fn slots_at(ring: usize) -> usize {
    size_of::<Shared>() + ring * size_of::<Slots>()
}

const _: () = assert!(AREA_SIZE < 64 << 20 && RINGS <= OWNERS);
#[cfg(not(all(test, loom)))]
const _: () = assert!(size_of::<Shared>() <= 128 << 10 && size_of::<Slots>().is_multiple_of(4096));
#[cfg(not(all(test, loom)))]
const _: () = assert!(size_of::<Header>() == 4096);
const _: () = assert!(RING_SLOTS.is_power_of_two() && ADVICE_SLOTS.is_power_of_two());
#[cfg(all(feature = "std", not(all(test, loom))))]
const _: () = assert!(size_of::<Whole>() == AREA_SIZE);

impl Shared {
    /// True if magic and version are this crate's.
    pub fn is_valid(&self) -> bool {
        self.header.magic.load(Ordering::Acquire) == MAGIC
            && self.header.version.load(Ordering::Relaxed) == VERSION
    }

    /// The present mode.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.wanted().mode().0
    }

    /// All present wishes.
    #[inline]
    pub fn wanted(&self) -> &Wishes {
        &self.header.wanted
    }

    /// The unit of the stamps.
    pub fn clock(&self) -> Clock {
        match self.header.clock.load(Ordering::Relaxed) {
            1 => Clock::Tsc,
            _ => Clock::Monotonic,
        }
    }

    /// True if a thread that waits in a system call finds its mark ([`Switches`](crate::Switches)) removed, as tested by the supervisor.
    #[inline]
    pub fn tells_switches(&self) -> bool {
        self.header.switches.load(Ordering::Relaxed) != 0
    }

    /// The supervisor's poll counter; it advances while the supervisor reads.
    pub fn heartbeat(&self) -> u64 {
        self.header.heartbeat.0.load(Ordering::Relaxed)
    }

    /// A number for one open file description, unique among all observed processes. Never 0.
    pub fn next_instance(&self) -> u32 {
        loop {
            let n = self.header.instances.0.fetch_add(1, Ordering::Relaxed);
            if n != 0 {
                return n;
            }
        }
    }

    /// Counts events that were dropped.
    pub fn add_lost(&self, events: u64) {
        self.header.lost.0.fetch_add(events, Ordering::Relaxed);
    }

    /// Events dropped so far, by producers and by the consumer's checks.
    pub fn lost(&self) -> u64 {
        self.header.lost.0.load(Ordering::Relaxed)
    }

    /// The area's token.
    pub fn token(&self) -> u64 {
        self.header.token.load(Ordering::Relaxed)
    }

    /// A process is about to ask for a write lease on a file.
    pub fn leasing(&self) {
        self.header.leases.store(1, Ordering::SeqCst);
    }

    /// True if a process has asked for a lease.
    pub fn has_leases(&self) -> bool {
        self.header.leases.load(Ordering::SeqCst) != 0
    }

    /// Counts a program under a system-call filter.
    pub fn count_filtered(&self) {
        self.header.filtered.fetch_add(1, Ordering::Relaxed);
    }

    /// Reverses [`Shared::count_filtered`]: the program did not start.
    pub fn uncount_filtered(&self) {
        self.header.filtered.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if the advice table has any path.
    #[inline]
    pub fn has_advice(&self) -> bool {
        self.header.advice_len.load(Ordering::Relaxed) != 0
    }

    /// The advice for the file at this path, given in parts.
    pub fn advice(&self, path: &[&[u8]]) -> Option<Advice> {
        if !self.has_advice() {
            return None;
        }
        let hash = path_hash(path);
        let told = probe(hash)
            .map(|slot| self.advice[slot].load(Ordering::Relaxed))
            .take_while(|&entry| entry != 0)
            .find_map(|entry| Advice::of(entry, hash))?;
        // A longer read-ahead of a stream does no harm where the plan is left; none at all would.
        (told == Advice::Sequential || !self.wanted().is_given_up()).then_some(told)
    }
}

/// The slots of the advice table where a hash may be, in order.
pub(crate) fn probe(hash: u64) -> impl Iterator<Item = usize> {
    let first = hash as usize;
    (0..ADVICE_SLOTS).map(move |i| first.wrapping_add(i) % ADVICE_SLOTS)
}

/// FNV-1a, 64 bits, more than its lowest: the advice table's key of an absolute path, given in parts.
pub fn path_hash(path: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in path.iter().copied().flatten() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash.max(2)
}
