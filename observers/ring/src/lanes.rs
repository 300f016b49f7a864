//! The consumer's position in each ring, and the next event of each.
//!
//! Data flow: cursors and slots of the area → [`Lanes::poll`], up to a stamp taken by the caller → events. Nothing here reads a clock or
//! calls the kernel: the models run this code in every order.
//!
//! Invariant: no slot at or above the tail is read, and none is given back to the producer that the consumer may read
//! again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::atomic::{MODELLED, Ordering};
use crate::clock::Calibration;
use crate::event::{
    COMMON_BITS, EXTRA_MAX, Malformed, Slot, What, after, code, decode, extent_and_time, extra,
    held,
};
use crate::layout::{RING_SLOTS, RINGS, Shared, Slots, Whole};
use crate::raw_event::RawEvent;

/// Number of slots read before the producer is told that they are free.
const RELEASE_EVERY: u32 = if MODELLED { 1 } else { 64 };

/// All rings, as the consumer knows them.
#[derive(Debug)]
pub(crate) struct Lanes(Vec<Lane>);

/// The consumer's state of one ring.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The last thing handed out, if it was an access: the producer may still be adding others to it.
    last: Option<Last>,
    /// The first slot not handed out.
    head: u32,
    /// The producer's position when this poll began.
    tail: u32,
    /// `head` as last told to the producer.
    told: u32,
    /// Slots below this existed at the previous poll: they are due, whatever their stamps.
    seen: u32,
    /// Start of the last access passed on, in ns. The durations of others like it are estimates, so the next stamp may be earlier; it may
    /// also be earlier if the clock was calibrated again.
    started: u64,
    pid: u32,
    tid: u32,
}

/// An access handed out.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// As if it had a slot by itself.
    access: Slot,
    /// Number of accesses passed on from the slot before [`Lane::head`], including this one.
    taken: u16,
}

impl Lanes {
    /// The state for an area without reports.
    pub(crate) fn new() -> Self {
        Self(vec![Lane::default(); RINGS])
    }

    /// True if no ring has an event.
    pub(crate) fn are_drained(&self, shared: &Shared) -> bool {
        let mut lanes = self.0.iter().zip(&shared.cursors);
        lanes.all(|(lane, c)| c.tail.0.load(Ordering::Acquire) == lane.head)
    }

    /// True if a quarter of any ring is used: at a million events a second the rest lasts for 12 ms.
    pub(crate) fn are_filling(&self, shared: &Shared) -> bool {
        let mut lanes = self.0.iter().zip(&shared.cursors);
        lanes.any(|(lane, c)| {
            let held = c.tail.0.load(Ordering::Acquire).wrapping_sub(lane.head);
            held as usize >= RING_SLOTS / 4
        })
    }

    /// Passes on events that began before `cutoff`, in ticks, until `each` returns false; see [`Ring::poll`](crate::Ring::poll).
    #[inline]
    pub(crate) fn poll(
        &mut self,
        area: &Whole,
        cutoff: u64,
        calibration: &Calibration,
        each: &mut impl FnMut(RawEvent) -> bool,
    ) -> usize {
        let shared = &area.shared;
        let mut buffer = [0; EXTRA_MAX * 32];
        let mut next = BinaryHeap::new();
        for (ring, lane) in self.0.iter_mut().enumerate() {
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
            let (lane, slots) = (&mut self.0[ring], &area.rings[ring]);
            let until = cutoff.min(others.0);
            while start < cutoff && (start, ring) < others {
                match lane.take((shared, ring), slots, &mut buffer) {
                    Ok(what) => {
                        let (more, last) = lane.go_on(slots, start..until);
                        count += 1 + usize::from(more);
                        if !each(lane.event(calibration, start..last, what, more)) {
                            break 'rings;
                        }
                        start = last;
                    }
                    Err(Malformed) => shared.add_lost(1),
                }
                let Some(later) = lane.due(slots, cutoff) else {
                    continue 'rings;
                };
                // Within a ring the order is the thread's own, for any stamps.
                start = later.max(start);
            }
            next.push(Reverse((start, ring)));
        }
        for (ring, lane) in self.0.iter_mut().enumerate() {
            lane.tell(shared, ring);
            lane.seen = lane.tail;
        }
        count
    }

    /// Frees the drained rings of threads that are gone, as `is_gone` says of a process's thread.
    pub(crate) fn sweep(&self, shared: &Shared, is_gone: impl Fn(u32, u32) -> bool) {
        for (ring, lane) in self.0.iter().enumerate() {
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

    /// The next event if it is an access added to the last one, and the number of slots to step over: none if it is in the slot before
    /// `head`, else one.
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
            // Nothing is added to an invalid event.
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

    /// Steps over the accesses that continue the one just taken, which began at the start of `times`, if they begin before the end of
    /// `times`. Returns their number, and the start of the last one.
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
        // An access that ends beyond all files is invalid, and is passed on by itself.
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

    /// Steps over this many slots of a ring.
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

    /// An event of this ring's thread, with `more` others like it that began in this range, times in ns. None begins before its
    /// predecessor.
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
            // The duration from the first to the last is the same by both clocks, otherwise the next event might begin earlier.
            What::Access { took, .. } if more > 0 => {
                *took = (self.started - start) / u64::from(more);
            }
            What::Open { took, .. } | What::Name { took, .. } | What::Access { took, .. } => {
                *took = calibration.span(*took);
            }
            What::Thread { .. } | What::Rank { .. } | What::Exit => {}
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

/// A slot, copied out of the area so that it cannot change while it is checked. Word 0 has a count, and the other words what is counted.
#[inline(always)]
fn slot(slots: &Slots, at: u32) -> Slot {
    slots.0[at as usize % RING_SLOTS]
        .each_ref()
        .map(|word| word.load(Ordering::Acquire))
}

/// A word of a slot.
#[inline(always)]
fn word(slots: &Slots, at: u32, word: usize) -> u64 {
    slots.0[at as usize % RING_SLOTS][word].load(Ordering::Relaxed)
}

fn path(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}
