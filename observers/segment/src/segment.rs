//! A mapped segment: assignment of slots to pages, filling, and counts.
//!
//! Data flow: [`Segment::claim`] → [`Fill`] → from the file → valid. Parts that another rank of the host has or is reading are
//! [left](Segment::leave_to) to that rank: this segment's rank reads them there.
//!
//! Eviction: the least recently used page makes room, except pages that are foretold and unread (the paper's second chance). Among pages
//! that are foretold only to other ranks, the oldest is evicted. If all are foretold to the owner, the claim is refused, and the filler
//! waits or insists.
//!
//! Invariant: only the owner assigns slots to pages and to states of their files, one at a time.

mod fill;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    FileType, MemfdFlags, Mode as Permissions, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals,
    fstat, ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::atomic::{AtomicU64, Ordering};
use crate::key::{Key, sets_of, tag};
use crate::layout::{
    Counters, FILES, File, Header, MAGIC, Mode, PAGE, PART, PARTS, PEERS, Places, SLOTS_MAX,
    VERSION, WAYS, reading, sets,
};
use crate::map::Map;
use crate::slot::{Claimed, Slot, Word};
pub use fill::Fill;

/// Number of attempts of a claim whose slots are changed meanwhile.
const TRIES: usize = 8;

/// The reason why a segment cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It has no room for a page.
    #[error("a collective cache of {size} bytes has no room for a page of {PAGE} bytes")]
    TooSmall {
        /// The requested size, in bytes.
        size: u64,
    },
    /// It is larger than a segment can be.
    #[error("a collective cache of {size} bytes is larger than it can be ({most} bytes)")]
    TooLarge {
        /// The requested size, in bytes.
        size: u64,
        /// The largest size, in bytes.
        most: u64,
    },
    /// A system call failed.
    #[error("cannot make the collective cache of {size} bytes: {call}: {errno}")]
    Create {
        /// The call.
        call: &'static str,
        /// The size, in bytes.
        size: u64,
        /// The error of the call.
        errno: Errno,
    },
}

/// A file that the rank has opened through MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// True if it is read past the page cache.
    pub direct: bool,
    /// Its state ([`crate::version`]) when it was opened or last synced. Pages of another state are not served.
    pub version: u64,
}

/// Result of a claim.
#[derive(Debug)]
pub enum Claim<'a> {
    /// All parts are valid or being filled.
    There,
    /// These parts are to be filled.
    Fill(Fill<'a>),
    /// All pages that could make room are foretold.
    Full,
}

/// Counts of reads, pages, fills and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "said at `layout::Counters`")]
pub struct Counts {
    pub hits: u64,
    pub hit_bytes: u64,
    pub host_hits: u64,
    pub host_bytes: u64,
    pub remote_hits: u64,
    pub remote_bytes: u64,
    pub late: u64,
    pub missed: u64,
    pub voided: u64,
    pub changed: u64,
    pub filled: u64,
    pub filled_bytes: u64,
    pub left_bytes: u64,
    pub beside_bytes: u64,
    pub lost: u64,
    pub evicted: u64,
    pub unread: u64,
}

/// A segment of this rank, or of another one.
#[derive(Debug)]
pub struct Segment {
    file: OwnedFd,
    map: Map,
    slots: u32,
    /// Locked while a slot is assigned to a page, or to another state of its file.
    giving: Mutex<()>,
}

impl Segment {
    /// Creates a segment with at most `size` bytes of pages.
    ///
    /// # Errors
    /// [`Error`], with the requested size.
    pub fn create(size: u64) -> Result<Self, Error> {
        let most = u64::from(SLOTS_MAX) * PAGE;
        let slots = match u32::try_from(size / PAGE) {
            Ok(0) => return Err(Error::TooSmall { size }),
            Ok(slots) if slots <= SLOTS_MAX => slots,
            _ => return Err(Error::TooLarge { size, most }),
        };
        let fail = |call| move |errno| Error::Create { call, size, errno };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = match memfd_create("foreread-cache", flags | MemfdFlags::NOEXEC_SEAL) {
            // Linux before 6.3 does not know the flag.
            Err(Errno::INVAL) => memfd_create("foreread-cache", flags),
            made => made,
        }
        .map_err(fail("memfd_create"))?;
        ftruncate(&file, Places::of(slots).size).map_err(fail("ftruncate"))?;
        // Without the seals another process could shrink the mapped file.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(fail("fcntl(F_ADD_SEALS)"))?;
        let map = Map::new(&file, slots).map_err(fail("mmap"))?;
        let mut token = [0; 8];
        getrandom(&mut token, GetRandomFlags::empty()).map_err(fail("getrandom"))?;
        let header = map.header();
        header
            .token
            .store(u64::from_ne_bytes(token), Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.slots.store(slots, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Self {
            file,
            map,
            slots,
            giving: Mutex::new(()),
        })
    }

    /// Opens another rank's segment on this host by a descriptor of another process. `None` if it is not this user's segment with this
    /// token.
    pub fn of_peer(pid: u32, fd: u32, token: u64) -> Option<Self> {
        Self::open(Path::new(&format!("/proc/{pid}/fd/{fd}")), token)
    }

    fn open(path: &Path, token: u64) -> Option<Self> {
        // Opening a device, a terminal or a pipe may have an effect.
        let is_file = |stat: &rustix::fs::Stat| {
            let user = rustix::process::geteuid().as_raw();
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == user
        };
        if !rustix::fs::stat(path).is_ok_and(|stat| is_file(&stat)) {
            return None;
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(path, flags, Permissions::empty()).ok()?;
        let stat = fstat(&file).ok().filter(is_file)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW;
        if !fcntl_get_seals(&file).is_ok_and(|has| has.contains(seals)) {
            return None;
        }
        let size = u64::try_from(stat.st_size).ok()?;
        if size < Places::of(1).size {
            return None;
        }
        // Only the header is read before the size is checked.
        let header = Map::new(&file, 1).ok()?;
        let slots = header.header().slots.load(Ordering::Relaxed);
        let is_one = header.header().is_valid(token)
            && (1..=SLOTS_MAX).contains(&slots)
            && Places::of(slots).size == size;
        let map = is_one.then(|| Map::new(&file, slots).ok())??;
        Some(Self {
            file,
            map,
            slots,
            giving: Mutex::new(()),
        })
    }

    /// The value of [`crate::ENV`] for the rank's processes, while this process has it.
    pub fn env_value(&self) -> String {
        let (pid, fd) = (std::process::id(), self.file.as_raw_fd());
        format!("{:016x}/proc/{pid}/fd/{fd}", self.token())
    }

    /// The random number that identifies it.
    pub fn token(&self) -> u64 {
        self.map.header().token.load(Ordering::Relaxed)
    }

    /// Number of its pages.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Sets the place for the rank's reads.
    pub fn set_mode(&self, mode: Mode) {
        let word = &self.map.header().mode;
        word.store(mode as u32, Ordering::Relaxed);
    }

    /// The other ranks' segments on this host that the rank has named: process, descriptor and token.
    pub fn peers(&self) -> Vec<(u32, u32, u64)> {
        let header = self.map.header();
        let count = header.peer_count.load(Ordering::Acquire) as usize;
        let named = header.peers.iter().take(count.min(PEERS));
        let told = named.map(|peer| {
            let (pid, fd) = (&peer.pid, &peer.fd);
            let token = peer.token.load(Ordering::Relaxed);
            (
                pid.load(Ordering::Relaxed),
                fd.load(Ordering::Relaxed),
                token,
            )
        });
        told.filter(|&(pid, _, token)| pid != 0 && token != self.token())
            .collect()
    }

    /// The rank's entry for a file; `None` if it has not opened the file through MPI, as far as is known.
    pub fn opened(&self, dev: u64, ino: u64) -> Option<Opened> {
        let header = self.map.header();
        let count = header.file_count.load(Ordering::Acquire);
        let named = usize::try_from(count).unwrap_or(FILES).min(FILES);
        let is_it = |file: &&File| {
            file.dev.load(Ordering::Relaxed) == dev && file.ino.load(Ordering::Relaxed) == ino
        };
        let file = header.files[..named].iter().find(is_it)?;
        Some(Opened {
            direct: file.direct.load(Ordering::Relaxed) == 1,
            version: file.version.load(Ordering::Relaxed),
        })
    }

    /// True if the rank is reading this page from its file itself.
    pub fn is_being_read(&self, key: &Key) -> bool {
        let header = self.map.header();
        let (place, pages) = reading(header.reading.load(Ordering::Relaxed));
        let file = &header.files[place];
        pages.contains(&key.page)
            && file.dev.load(Ordering::Relaxed) == key.dev
            && file.ino.load(Ordering::Relaxed) == key.ino
    }

    /// Names another rank's segment of this process, like the library in front of MPI: for tests.
    #[doc(hidden)]
    pub fn name_peer(&self, peer: &Segment) {
        let header = self.map.header();
        let count = header.peer_count.load(Ordering::Relaxed);
        let place = &header.peers[count as usize];
        place.token.store(peer.token(), Ordering::Relaxed);
        place.pid.store(std::process::id(), Ordering::Relaxed);
        let fd = peer.file.as_raw_fd().cast_unsigned();
        place.fd.store(fd, Ordering::Relaxed);
        header.peer_count.store(count + 1, Ordering::Release);
    }

    /// Names a file, like the library: for tests.
    #[doc(hidden)]
    pub fn name_file(&self, (dev, ino): (u64, u64), opened: Opened) {
        let header = self.map.header();
        let count = header.file_count.load(Ordering::Relaxed);
        let is_it = |file: &&File| {
            file.dev.load(Ordering::Relaxed) == dev && file.ino.load(Ordering::Relaxed) == ino
        };
        let known = header.files[..count as usize].iter().find(is_it);
        let file = known.unwrap_or(&header.files[count as usize]);
        file.dev.store(dev, Ordering::Relaxed);
        file.ino.store(ino, Ordering::Relaxed);
        file.direct.store(opened.direct.into(), Ordering::Relaxed);
        file.version.store(opened.version, Ordering::Relaxed);
        let more = u64::from(known.is_none());
        header.file_count.store(count + more, Ordering::Release);
    }

    /// Shows a read of the rank, as a word of the header, like the library: for tests.
    #[doc(hidden)]
    pub fn show_reading(&self, word: u64) {
        self.map.header().reading.store(word, Ordering::Relaxed);
    }

    /// The parts of a page that are valid or being filled.
    pub fn resident(&self, key: &Key) -> u16 {
        self.slots_of(key)
            .map(|(_, slot)| slot.word())
            .fold(0, |parts, word| parts | word.valid() | word.filling())
    }

    /// Parts of a page that are being filled, or valid for the file in this state (in any state for `None`).
    pub fn on_hand(&self, key: &Key, version: Option<u64>) -> u16 {
        self.slots_of(key)
            .fold(0, |parts, (_, slot)| parts | slot.on_hand(version))
    }

    /// Leaves these parts of a page, which are foretold to this segment's rank, to `peer`, which has them on hand.
    pub fn leave_to(&self, peer: &Segment, key: &Key, parts: u16) {
        peer.slots_of(key)
            .for_each(|(_, slot)| slot.expect_elsewhere(parts));
        count(&self.counters().left_bytes, bytes(parts));
    }

    /// The parts of a page that were foretold to the owner, or to a rank that left them to it, since the page got its slot.
    pub fn wanted(&self, key: &Key) -> u16 {
        self.slots_of(key)
            .fold(0, |parts, (_, slot)| parts | slot.wanted())
    }

    /// Claims the `wanted` parts of a page, which are foretold; if any of them is missing, those `beside`, too. With `insist`, a foretold
    /// page is evicted if all are foretold.
    pub fn claim(&self, key: &Key, wanted: u16, beside: u16, insist: bool) -> Claim<'_> {
        let _giving = self.giving.lock().unwrap_or_else(PoisonError::into_inner);
        count(&self.map.header().claimed, 1);
        for _ in 0..TRIES {
            let mut is_there = false;
            for (number, slot) in self.slots_of(key) {
                if let Ok(claimed) = slot.claim(key, wanted, beside) {
                    slot.expect(wanted);
                    match claimed {
                        Some(claimed) => return self.fill(number, *key, claimed, wanted),
                        None => is_there = true,
                    }
                }
            }
            if is_there {
                return Claim::There;
            }
            let Some((number, word)) = self.victim(key, insist) else {
                return Claim::Full;
            };
            let slot = &self.map.slots()[number as usize];
            let unread = slot.unread(word);
            let name = || {
                let set = &self.map.sets()[(number / WAYS) as usize];
                let way = (number % WAYS) as usize;
                set.tag[way].store(tag(key.hash()), Ordering::Relaxed);
            };
            if let Some(claimed) = slot.take(word, key, wanted | beside, name) {
                slot.expect(wanted);
                let counts = self.counters();
                count(&counts.evicted, (word.valid() != 0).into());
                count(&counts.unread, (unread != 0).into());
                return self.fill(number, *key, claimed, wanted);
            }
        }
        Claim::Full
    }

    /// Sets the state of a slot's page to `version`, the state of the file for the claimed parts. False if the page was made void
    /// meanwhile.
    fn renew(&self, slot: u32, claimed: &mut Claimed, version: u64) -> bool {
        let _giving = self.giving.lock().unwrap_or_else(PoisonError::into_inner);
        self.map.slots()[slot as usize].renew(claimed, version)
    }

    fn fill(&self, slot: u32, key: Key, claimed: Claimed, wanted: u16) -> Claim<'_> {
        Claim::Fill(Fill {
            segment: self,
            slot,
            key,
            wanted: claimed.parts & wanted,
            claimed,
            filled: 0,
        })
    }

    /// Frees the memory of these parts, which are no longer needed.
    pub fn discard(&self, key: &Key, parts: u16) {
        for (_, slot) in self.slots_of(key) {
            let word = slot.word();
            let parts = parts & !slot.expected_elsewhere(word);
            if slot.is_for(key) && word.valid() & parts != 0 {
                // If other parts of the page are being filled, these stay until they are evicted.
                let _ = slot.discard(word, parts);
            }
        }
    }

    /// Makes a page void: the file has changed there.
    pub fn void(&self, key: &Key) {
        crate::atomic::fence(Ordering::SeqCst);
        let voided = self.slots_of(key).filter(|(_, slot)| slot.void()).count();
        count(&self.counters().voided, voided as u64);
    }

    /// The content of these parts of a page, as a rank reads it, if all are valid and stay so during the copy.
    pub fn read(&self, key: &Key, parts: u16) -> Option<Vec<u8>> {
        let (number, slot, word) = self.slots_of(key).find_map(|(number, slot)| {
            let word = slot.word();
            let has = slot.is_for(key) && word.valid() & parts == parts;
            has.then_some((number, slot, word))
        })?;
        let mut page = vec![0; PAGE as usize];
        let from = self.map.page(number);
        for (at, len) in byte_runs(parts) {
            // SAFETY: the run is within the page of a slot, which is mapped, and within `page`. Writes of another process meanwhile are
            // detected below, and the copy is dropped then.
            unsafe { std::ptr::copy_nonoverlapping(from.add(at), page[at..].as_mut_ptr(), len) };
        }
        slot.is_still(word).then(|| {
            slot.read(parts, self.clock());
            page
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let counters = self.counters();
        macro_rules! counts {
            ($($name:ident),*) => {
                Counts { $($name: counters.$name.load(Ordering::Relaxed)),* }
            };
        }
        counts!(
            hits,
            hit_bytes,
            host_hits,
            host_bytes,
            remote_hits,
            remote_bytes,
            late,
            missed,
            voided,
            changed,
            filled,
            filled_bytes,
            left_bytes,
            beside_bytes,
            lost,
            evicted,
            unread
        )
    }

    /// Slots that seem to be assigned to a page.
    fn slots_of(&self, key: &Key) -> impl Iterator<Item = (u32, &Slot)> {
        let wanted = tag(key.hash());
        self.candidates(key)
            .filter(move |&number| {
                let set = &self.map.sets()[(number / WAYS) as usize];
                set.tag[(number % WAYS) as usize].load(Ordering::Relaxed) == wanted
            })
            .map(|number| (number, &self.map.slots()[number as usize]))
            .filter(|(_, slot)| slot.is_for(key))
    }

    /// The slots that may be assigned to a page.
    fn candidates(&self, key: &Key) -> impl Iterator<Item = u32> + use<> {
        let slots = self.slots;
        let [first, second] = sets_of(key.hash(), sets(slots));
        let others = (second != first).then_some(second);
        std::iter::once(first)
            .chain(others)
            .flat_map(|set| set * WAYS..(set + 1) * WAYS)
            .filter(move |&number| number < slots)
    }

    /// The slot to be given to a page, and its state.
    fn victim(&self, key: &Key, insist: bool) -> Option<(u32, Word)> {
        let free = |word: Word| word.valid() == 0;
        let all = || {
            self.candidates(key)
                .map(|number| (number, self.map.slots()[number as usize].word()))
                .filter(|(_, word)| word.filling() == 0)
        };
        // In the set with more room, so that both fill evenly.
        let room = |set: u32| {
            all()
                .filter(|&(n, word)| n / WAYS == set && free(word))
                .count()
        };
        let unused = all().filter(|&(_, word)| free(word));
        if let Some(unused) = unused.max_by_key(|&(number, _)| room(number / WAYS)) {
            return Some(unused);
        }
        let slot = |number: u32| &self.map.slots()[number as usize];
        let oldest = |&(number, _): &(u32, Word)| slot(number).used();
        let is_own = |&(number, word): &(u32, Word)| slot(number).expected(word) != 0;
        let is_others = |&(number, word): &(u32, Word)| slot(number).expected_elsewhere(word) != 0;
        let over = all().filter(|one| insist || !is_own(one));
        // First pages that are foretold to no rank, then those of other ranks, then the owner's; the oldest of each.
        over.min_by_key(|one| (is_own(one), is_others(one), oldest(one)))
    }

    fn clock(&self) -> u64 {
        self.map.header().clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn counters(&self) -> &Counters {
        &self.map.header().counts
    }

    /// Logs a filled slot, for other processes on this host that search for its page.
    fn log(&self, slot: u32) {
        let at = self.map.header().logged.fetch_add(1, Ordering::Relaxed);
        let log = self.map.log();
        log[at as usize % log.len()].store(slot, Ordering::Relaxed);
    }
}

impl Header {
    fn is_valid(&self, token: u64) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
            && self.token.load(Ordering::Relaxed) == token
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn count(counter: &AtomicU64, by: u64) {
    if by != 0 {
        counter.fetch_add(by, Ordering::Release);
    }
}

fn bytes(parts: u16) -> u64 {
    u64::from(parts.count_ones()) * PART
}

/// Runs of adjacent parts.
pub fn runs(parts: u16) -> impl Iterator<Item = std::ops::Range<u32>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = u32::from(parts) >> at;
        if rest == 0 {
            return None;
        }
        let from = at + rest.trailing_zeros();
        at = from + (u32::from(parts) >> from).trailing_ones();
        Some(from..at)
    })
}

/// The same as offsets in the page and lengths, in bytes.
fn byte_runs(parts: u16) -> impl Iterator<Item = (usize, usize)> {
    let part = PART as usize;
    runs(parts).map(move |run| (run.start as usize * part, run.len() * part))
}

/// The parts of a page among these 4 KiB pages of the file.
pub(crate) fn parts_of(page: u64, parts: &std::ops::Range<u64>) -> u16 {
    let first = page * PARTS;
    let from = parts.start.clamp(first, first + PARTS) - first;
    let to = parts.end.clamp(first, first + PARTS) - first;
    let below = |n: u64| (1_u32 << n) - 1;
    (below(to) & !below(from)) as u16
}

impl Key {
    /// The pages of a file with these 4 KiB pages, and the parts of each.
    pub fn pages(
        dev: u64,
        ino: u64,
        parts: std::ops::Range<u64>,
    ) -> impl Iterator<Item = (Self, u16)> {
        let pages = match parts.is_empty() {
            true => 0..0,
            false => parts.start / PARTS..(parts.end - 1) / PARTS + 1,
        };
        pages.map(move |page| (Self { dev, ino, page }, parts_of(page, &parts)))
    }
}
