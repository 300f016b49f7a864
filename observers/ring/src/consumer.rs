//! The supervisor's side: creates the area, says what to report, collects the events.
//!
//! [`Ring::poll`] merges the rings by start time without buffering: it looks at the start
//! of one event per ring that has any, and hands out the earliest until it reaches
//! the stamp taken when the poll began. What began later stays in its ring for the
//! next poll, so an event is handed out only when no ring can still hold an earlier
//! one, calls in flight apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::area::Area;
use crate::clock::Calibration;
use crate::event::{
    COMMON_BITS, EXTRA_MAX, Malformed, Slot, What, after, code, decode, extent_and_time, extra,
    held,
};
use crate::layout::{
    ADVICE_SLOTS, AREA_SIZE, Advice, Clock, Header, MAGIC, Mode, RING_SLOTS, RINGS, Shared, Slots,
    VERSION,
};
use crate::layout::{path_hash, probe};
use crate::passage::{Passage, Unobserved};
use crate::switched::Switches;

/// How often rings of dead threads are looked for.
const SWEEP: Duration = Duration::from_millis(50);

/// A wait this long is none that passed without a switch.
const CERTAIN: Duration = Duration::from_micros(500);

/// How many slots are read before the producer is told that they are free.
const RELEASE_EVERY: u32 = 64;

/// Why the shared area could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot make the shared ring of {size} bytes: {call}: {errno}")]
    Create {
        /// The call.
        call: &'static str,
        /// The area's size, in bytes.
        size: usize,
        /// What it returned.
        errno: Errno,
    },
}

/// One event of one thread, or an access and others like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When the call began, in ns since [`Ring::create`].
    pub start: u64,
    /// What happened.
    pub what: What<PathBuf>,
    /// Of an access, how many followed it, of the same length and duration, each where and when the one before ended.
    pub more: u16,
}

impl RawEvent {
    /// The same, each access by itself.
    pub fn singly(self) -> impl Iterator<Item = Self> {
        (0..=u64::from(self.more)).map(move |number| {
            let mut one = Self {
                more: 0,
                ..self.clone()
            };
            if let What::Access {
                offset, len, took, ..
            } = &mut one.what
            {
                one.start += number * *took;
                *offset += number * u64::from(*len);
            }
            one
        })
    }
}

/// The shared area, seen by its owner.
#[derive(Debug)]
pub struct Ring {
    memfd: OwnedFd,
    area: Area,
    calibration: Calibration,
    lanes: Vec<Lane>,
    swept: Instant,
}

/// What the consumer knows of one ring.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The last thing handed out, if it was an access: the producer may still be adding others to it.
    last: Option<Last>,
    /// The first slot not handed out.
    head: u32,
    /// The producer's position when this poll began.
    tail: u32,
    /// `head` as the producer was last told.
    told: u32,
    /// Slots below this were there at the previous poll: whatever their stamp says, it
    /// is their turn.
    seen: u32,
    /// When the last access handed out began, in ns: what others like it took is an estimate, which the next one's stamp
    /// may be before, as it may be if the clock was measured anew since.
    started: u64,
    pid: u32,
    tid: u32,
}

/// An access handed out.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// As if it had a slot by itself.
    access: Slot,
    /// How many were handed out of the slot before [`Lane::head`], this one with them.
    taken: u16,
}

impl Ring {
    /// Makes an area with the given clock, in [`Mode::Mute`].
    pub fn create(clock: Clock) -> Result<Self, Error> {
        let size = AREA_SIZE;
        let fail = |call| move |errno| Error::Create { call, size, errno };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memfd = match memfd_create("foreread-ring", flags | MemfdFlags::NOEXEC_SEAL) {
            // Linux before 6.3 does not know the flag.
            Err(Errno::INVAL) => memfd_create("foreread-ring", flags),
            made => made,
        }
        .map_err(fail("memfd_create"))?;
        ftruncate(&memfd, size as u64).map_err(fail("ftruncate"))?;
        // Without the seals an observed program could shrink the file under our feet.
        fcntl_add_seals(
            &memfd,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )
        .map_err(fail("fcntl(F_ADD_SEALS)"))?;
        let area = Area::map(&memfd).map_err(fail("mmap"))?;
        let header = &area.get().shared.header;
        let mut token = [0; 8];
        getrandom(&mut token, GetRandomFlags::empty()).map_err(fail("getrandom"))?;
        header
            .token
            .store(u64::from_ne_bytes(token), Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.clock.store(clock as u32, Ordering::Relaxed);
        header.instances.0.store(1, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Self {
            memfd,
            area,
            calibration: Calibration::new(clock),
            lanes: vec![Lane::default(); RINGS],
            swept: Instant::now(),
        })
    }

    /// The value of [`crate::ENV`] for the program to be observed.
    pub fn env_value(&self) -> String {
        let (pid, fd) = (std::process::id(), self.memfd.as_raw_fd());
        format!("{:016x}/proc/{pid}/fd/{fd}", self.shared().token())
    }

    /// The area itself, for a producer in this process.
    pub fn shared(&self) -> &Shared {
        &self.area.get().shared
    }

    /// The slots of a ring, for a producer in this process.
    pub fn slots(&self, ring: usize) -> &Slots {
        &self.area.get().rings[ring]
    }

    /// Says what programs shall report from now on.
    pub fn set_mode(&self, mode: Mode) {
        self.shared().wanted().set_mode(mode);
    }

    /// What programs report.
    pub fn mode(&self) -> Mode {
        self.shared().mode()
    }

    /// Sets what programs shall tell the kernel of the files at these absolute paths when they open them, one for each
    /// path. Returns for how many there was room (three quarters of the table). Call it before the program starts.
    pub fn set_advice<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = (P, Advice)>,
    ) -> usize {
        let Shared { header, advice, .. } = self.shared();
        header.wanted.give_up(false);
        // A new table is all zeros, and not in memory yet.
        if header.advice_len.swap(0, Ordering::Relaxed) != 0 {
            advice
                .iter()
                .for_each(|slot| slot.store(0, Ordering::Relaxed));
        }
        let mut count = 0;
        for (path, told) in paths.into_iter().take(ADVICE_SLOTS / 4 * 3) {
            let hash = path_hash(&[path.as_ref().as_os_str().as_bytes()]);
            let free = probe(hash).map(|i| &advice[i]).find(|slot| {
                let found = slot.load(Ordering::Relaxed);
                found == 0 || Advice::of(found, hash).is_some()
            });
            if let Some(slot) = free {
                slot.store(told.entry(hash), Ordering::Relaxed);
                count += 1;
            }
        }
        header.advice_len.store(count, Ordering::Release);
        count as usize
    }

    /// Says whether programs shall give the advised files the kernel's read-ahead back, and leave it to those that they
    /// open from now on: what they read next is not foreseen.
    pub fn give_up(&self, given_up: bool) {
        let Header {
            wanted, advice_len, ..
        } = &self.shared().header;
        if advice_len.load(Ordering::Relaxed) != 0 && wanted.is_given_up() != given_up {
            wanted.give_up(given_up);
        }
    }

    /// Waits by `wait`, which does nothing else, and sees by it whether the kernel tells a thread that it was switched
    /// out.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let switches = own_switches();
        let began = Instant::now();
        switches.mark();
        let waited = wait();
        let told = !switches.is_marked();
        if began.elapsed() >= CERTAIN {
            let word = &self.shared().header.switches;
            let told = u32::from(told && switches.raw() != 0);
            if word.load(Ordering::Relaxed) != told {
                word.store(told, Ordering::Relaxed);
            }
        }
        waited
    }

    /// Events dropped so far, by producers and by this side's checks.
    pub fn lost(&self) -> u64 {
        self.shared().lost()
    }

    /// The program has been started as process `pid`, to which the ring is named.
    pub fn started(&self, pid: u32) {
        self.shared().pass_child(pid, Passage::Gone);
    }

    /// Some process of the tree, as this one, is under a system-call filter.
    pub fn filters(&self) {
        self.shared().filters();
    }

    /// The processes that are about to become another program, or did and were not heard of again.
    pub fn gone(&self) -> impl Iterator<Item = u32> {
        self.shared().gone()
    }

    /// How many processes were not observed as they should have been.
    pub fn unobserved(&self) -> Unobserved {
        self.shared().unobserved()
    }

    /// Whether no ring holds an event.
    pub fn drained(&self) -> bool {
        let cursors = &self.shared().cursors;
        self.lanes
            .iter()
            .zip(cursors)
            .all(|(lane, c)| c.tail.0.load(Ordering::Acquire) == lane.head)
    }

    /// Hands out what has been reported, ordered by start, and tells the programs that
    /// somebody is there. Accesses that continue each other come together, as far as nothing comes between them.
    /// Returns how many events were handed out, each access by itself.
    pub fn poll(&mut self, each: &mut impl FnMut(RawEvent)) -> usize {
        let area = self.area.get();
        let shared = &area.shared;
        shared.header.heartbeat.0.fetch_add(1, Ordering::Relaxed);
        let cutoff = self.calibration.tick();
        let mut buffer = [0; EXTRA_MAX * 32];
        let mut next = BinaryHeap::new();
        for (ring, lane) in self.lanes.iter_mut().enumerate() {
            lane.look(shared, ring);
            if let Some(start) = lane.due(&area.rings[ring], cutoff) {
                next.push(Reverse((start, ring)));
            }
        }
        let mut count = 0;
        'rings: while let Some(Reverse((mut start, ring))) = next.pop() {
            if start >= cutoff {
                break;
            }
            let others = next.peek().map_or((u64::MAX, 0), |Reverse(first)| *first);
            let (lane, slots) = (&mut self.lanes[ring], &area.rings[ring]);
            let until = cutoff.min(others.0);
            while start < cutoff && (start, ring) < others {
                match lane.take((shared, ring), slots, &mut buffer) {
                    Ok(what) => {
                        let (more, last) = lane.go_on(slots, start..until);
                        count += 1 + usize::from(more);
                        each(lane.event(&self.calibration, start..last, what, more));
                        start = last;
                    }
                    Err(Malformed) => shared.add_lost(1),
                }
                let Some(later) = lane.due(slots, cutoff) else {
                    continue 'rings;
                };
                // Within a ring the order is the thread's own, whatever the stamps say.
                start = later.max(start);
            }
            next.push(Reverse((start, ring)));
        }
        for (ring, lane) in self.lanes.iter_mut().enumerate() {
            lane.tell(shared, ring);
            lane.seen = lane.tail;
        }
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            self.sweep();
        }
        count
    }

    /// Frees the drained rings of threads that are gone.
    fn sweep(&self) {
        let shared = self.shared();
        for (ring, lane) in self.lanes.iter().enumerate() {
            let word = &shared.owners[ring];
            let found = word.load(Ordering::Acquire);
            let drained = shared.cursors[ring].tail.0.load(Ordering::Acquire) == lane.head;
            if found == 0 || !drained {
                continue;
            }
            if is_gone((found >> 32) as u32, found as u32) {
                // A failure means that the ring has changed hands.
                let _ = word.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
}

impl Lane {
    /// Sees how far the producer has come.
    fn look(&mut self, shared: &Shared, ring: usize) {
        self.tail = shared.cursors[ring].tail.0.load(Ordering::Acquire);
        if self.tail.wrapping_sub(self.head) > RING_SLOTS as u32 {
            // No honest producer runs that far ahead: nothing in this ring can be trusted.
            shared.add_lost(1);
            self.head = self.tail;
            self.seen = self.tail;
            self.last = None;
        }
    }

    /// When the next event began, in ticks; one that was already waiting at the previous poll
    /// has waited long enough, and counts as due.
    fn due(&self, slots: &Slots, cutoff: u64) -> Option<u64> {
        let waits = |start: u64| start.min(cutoff.saturating_sub(1));
        if let Some((_, added)) = self.added(slots) {
            return Some(waits(added.map_or(0, |[_, start, ..]| start)));
        }
        if self.head == self.tail {
            return None;
        }
        let start = word(slots, self.head, 1);
        let waited = self.seen.wrapping_sub(self.head) as i32 > 0;
        Some(if waited { waits(start) } else { start })
    }

    /// The next event, if that is an access added to the last one, after how many slots to step over: none if it is in the
    /// slot before `head`, else one.
    #[inline(always)]
    fn added(&self, slots: &Slots) -> Option<(u32, Result<Slot, Malformed>)> {
        // The producer adds to a slot before it publishes the next.
        let before = self.head.wrapping_sub(1);
        if let Some(Last { access, taken }) = self.last
            && taken < held(word(slots, before, 0))
        {
            return Some((0, after(&access, &slot(slots, before), taken)));
        }
        if self.head == self.tail || word(slots, self.head, 0) as u8 != code::OFFSETS {
            return None;
        }
        let last = self.last.ok_or(Malformed);
        let added = last.and_then(|last| after(&last.access, &slot(slots, self.head), 0));
        Some((1, added))
    }

    /// Decodes the next event, which is [`Lane::due`], its times in ticks, and steps over it; over one slot if it makes no
    /// sense.
    #[inline]
    fn take(
        &mut self,
        (shared, ring): (&Shared, usize),
        slots: &Slots,
        buffer: &mut [u8],
    ) -> Result<What<PathBuf>, Malformed> {
        if let Some((steps, added)) = self.added(slots) {
            let decoded = added.and_then(|access| Ok((access, decode(&access, &[], path)?.1)));
            // Nothing is added to what makes no sense.
            self.last = match (self.last, &decoded) {
                (Some(Last { taken, .. }), Ok((access, _))) => Some(Last {
                    access: *access,
                    taken: if steps == 0 { taken + 1 } else { 1 },
                }),
                _ => None,
            };
            self.advance(shared, ring, steps);
            return decoded.map(|(_, what)| what);
        }
        let first = slot(slots, self.head);
        let following = extra(&first);
        let left = self.tail.wrapping_sub(self.head) as usize;
        let decoded = if following < left && following <= EXTRA_MAX {
            for (at, bytes) in (1..).zip(buffer.chunks_exact_mut(32).take(following)) {
                let words = slot(slots, self.head.wrapping_add(at));
                for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            }
            decode(&first, &buffer[..following * 32], path)
        } else {
            Err(Malformed)
        };
        let steps = if decoded.is_ok() {
            1 + following as u32
        } else {
            1
        };
        self.last = matches!(decoded, Ok((_, What::Access { .. }))).then_some(Last {
            access: first,
            taken: 1,
        });
        self.advance(shared, ring, steps);
        let (_, what) = decoded?;
        if let What::Thread { pid, tid, .. } = what {
            (self.pid, self.tid) = (pid, tid);
        }
        Ok(what)
    }

    /// Steps over the accesses that continue the one just taken, which began where `times` does, and begin before its end.
    /// Returns how many those are, and when the last one began.
    #[inline]
    fn go_on(&mut self, slots: &Slots, times: Range<u64>) -> (u16, u64) {
        let none = (0, times.start);
        let Some(Last { access, taken }) = &mut self.last else {
            return none;
        };
        let [word0, start, offset, word3] = *access;
        let found = word(slots, self.head.wrapping_sub(1), 0);
        if found as u8 != code::ACCESS || (found ^ word0) & COMMON_BITS != 0 {
            return none;
        }
        let (len, took) = extent_and_time(word3);
        let left = u64::from(held(found).saturating_sub(*taken));
        let in_time = times.end.saturating_sub(times.start).saturating_sub(1);
        let count = in_time.checked_div(took).unwrap_or(left).min(left);
        // What ends beyond all files makes no sense, which is said of it by itself.
        if offset.checked_add(len * (count + 1)).is_none() {
            return none;
        }
        let span = took * count;
        *access = [
            word0,
            start.saturating_add(span),
            offset + len * count,
            word3,
        ];
        *taken += count as u16;
        (count as u16, times.start.saturating_add(span))
    }

    /// Steps over so many slots of a ring.
    fn advance(&mut self, shared: &Shared, ring: usize, steps: u32) {
        self.head = self.head.wrapping_add(steps);
        if self.head.wrapping_sub(self.told) >= RELEASE_EVERY {
            self.tell(shared, ring);
        }
    }

    /// Lets the producer have the slots below `head`, but not one that it may be adding to.
    fn tell(&mut self, shared: &Shared, ring: usize) {
        let free = self.head.wrapping_sub(u32::from(self.last.is_some()));
        if self.told != free {
            self.told = free;
            shared.cursors[ring].head.0.store(free, Ordering::Release);
        }
    }

    /// An event of this ring's thread, and so many more like it, which began in this range, its times in ns. None begins before
    /// the one before it.
    #[inline]
    fn event(
        &mut self,
        calibration: &Calibration,
        starts: Range<u64>,
        mut what: What<PathBuf>,
        more: u16,
    ) -> RawEvent {
        let start = calibration.ns(starts.start).max(self.started);
        self.started = calibration.ns(starts.end).max(start);
        match &mut what {
            // From the first to the last it is as long by one clock as by the other, or what comes next might begin before.
            What::Access { took, .. } if more > 0 => {
                *took = (self.started - start) / u64::from(more);
            }
            What::Open { took, .. } | What::Access { took, .. } => {
                *took = calibration.span(*took);
            }
            What::Thread { .. } | What::Exit => {}
        }
        RawEvent {
            pid: self.pid,
            tid: self.tid,
            start,
            what,
            more,
        }
    }
}

/// Whether a thread has ended. In doubt (a /proc that hides other users' processes) it
/// has not: a ring kept too long is idle, one freed too early has two writers.
fn is_gone(pid: u32, tid: u32) -> bool {
    if Path::new(&format!("/proc/{pid}")).exists() {
        return !Path::new(&format!("/proc/{pid}/task/{tid}")).exists();
    }
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(pid) => test_kill_process(pid) == Err(Errno::SRCH),
        None => true,
    }
}

/// A slot, copied out of the area, so that it cannot change while it is checked. What word 0 counts is in the others.
#[inline(always)]
fn slot(slots: &Slots, at: u32) -> Slot {
    slots.0[at as usize % RING_SLOTS]
        .each_ref()
        .map(|word| word.load(Ordering::Acquire))
}

/// One word of a slot.
#[inline(always)]
fn word(slots: &Slots, at: u32, word: usize) -> u64 {
    slots.0[at as usize % RING_SLOTS][word].load(Ordering::Relaxed)
}

/// Where this process's threads are told that they were switched out.
fn own_switches() -> Switches {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: constants of the C library's.
        unsafe extern "C" {
            safe static __rseq_offset: isize;
            safe static __rseq_size: std::ffi::c_uint;
        }
        // SAFETY: what the C library says.
        unsafe { Switches::at(__rseq_offset, __rseq_size) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    Switches::UNKNOWN
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}
