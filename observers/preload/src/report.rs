//! Events into the ring.
//!
//! [`process`] knows the process, and [`seats`](crate::seats) the ring of each thread.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use foreread_ring::{Full, Mode, Shared, Switches, Wishes, Writer, encode};

pub use crate::area::{area, is_idle, stamp};
pub use crate::home::{lending, lending_to_anybody};
use crate::pace::{Times, at_once};
pub use crate::process::{at_home, pid};
use crate::seat::{self, Busy, Seat};
use crate::seats::seated;
use crate::{area, heartbeat, process, table, threads};

/// The number of [`Wishes::mode`] when anything was last reported. While nothing is reported, the descriptor table may become outdated.
static TIME: AtomicU32 = AtomicU32::new(0);

/// The area, if anything is to be reported now.
#[inline(always)]
pub fn active() -> Option<&'static Shared> {
    let area = area()?;
    let (mode, time) = area.wanted().mode();
    if mode == Mode::Mute {
        return None;
    }
    if TIME.load(Ordering::Relaxed) != time {
        unmute(time);
    }
    Some(area)
}

/// Actions while nothing is reported: withdraws advice that is over.
#[cold]
pub fn settle() {
    let done = area().map_or(Wishes::NOT_DONE, |area| area.wanted().once_done());
    if table::is_advice_over() {
        table::restore_all();
    }
    area::settled(done);
}

/// Offsets have moved unseen in the meantime: all descriptors become unknown.
#[cold]
fn unmute(time: u32) {
    if TIME.swap(time, Ordering::Relaxed) != time {
        if table::is_advised() {
            table::restore_all();
        }
        table::forget_all();
    }
}

/// From now on this process reports by this area.
pub fn attach(area: &'static Shared) {
    // SAFETY: plain functions that stay as long as the process. A failure (no memory)
    // costs the exactness of offsets shared with a child.
    unsafe { libc::pthread_atfork(Some(process::before_fork), None, Some(process::after_fork)) };
    let (mode, time) = area.wanted().mode();
    // Files opened while nothing is reported must be examined later.
    TIME.store(
        if mode == Mode::Mute { u32::MAX } else { time },
        Ordering::Relaxed,
    );
    area::attach(area);
}

/// An observed read.
pub struct Read {
    pub inst: u32,
    pub kind: u8,
    /// Its start, from [`begin`].
    pub start: Start,
    /// Its end, in ticks; `None` if it has just ended, and the thread was not switched out during it.
    pub ended: Option<u64>,
    /// The bytes read.
    pub offset: u64,
    pub len: u64,
}

/// The start of a read.
#[derive(Clone, Copy)]
pub enum Start {
    /// In ticks.
    At(u64),
    /// Directly after the previous read by the thread in this seat, if both turn out to be equal.
    AtOnce(&'static Seat),
}

/// Duration of a call that began at `start`, just after these switches were marked, in ticks.
pub fn spent(start: u64, switches: Switches) -> u64 {
    let took = stamp().wrapping_sub(start);
    match switches.is_marked() {
        true => at_once(took, 0),
        false => took,
    }
}

/// A read begins. Returns the place that shows whether the thread is switched out, and the start.
#[inline(always)]
pub fn begin(area: &Shared) -> (Switches, Start) {
    let switches = threads::switches(area);
    if let Some(seat) = seat::main_seat()
        && seat.goes_on.load(Ordering::Relaxed)
        && switches.is_marked()
    {
        return (switches, Start::AtOnce(seat));
    }
    let start = stamp();
    switches.mark();
    (switches, Start::At(start))
}

/// Publishes a read directly after the previous one, in which the thread did not wait, if it is equal to that: same file, kind and length.
/// True if it is.
#[inline(always)]
pub fn goes_on(area: &Shared, seat: &Seat, of: (u32, u8), offset: u64, len: u64) -> bool {
    let Some(mut busy) = Busy::quietly(seat) else {
        return false;
    };
    let room = busy.writer().add(area, of, offset, len as u32);
    seat.goes_on.store(room == Some(true), Ordering::Relaxed);
    room.is_some()
}

/// Called after such a read at a descriptor's cursor: the next reads may only be counted.
#[inline(always)]
pub fn begin_streak(seat: &Seat, fd: c_int, len: u64) {
    if seat.goes_on.load(Ordering::Relaxed)
        && let Some(mut busy) = Busy::quietly(seat)
        && let Some(descriptor) = table::plain(fd)
    {
        seat::streak().begin(busy.writer(), fd, descriptor, len);
    }
}

/// Publishes a read. True if it was published.
#[inline(never)]
pub fn emit_read(area: &Shared, read: &Read) -> bool {
    if table::is_advised() && heartbeat::is_silent(area) {
        process::detach();
        return false;
    }
    seated(area, |seat, writer| {
        // SAFETY: used like the writer, by this thread alone.
        let pace = unsafe { &mut *seat.pace.get() };
        let begun = match read.start {
            Start::At(start) => Some(start),
            Start::AtOnce(_) => None,
        };
        let Times { start, took, quick } = pace.times(begun, read.ended, read.len, writer.more());
        // No single call reads 2 GiB or more.
        let slot = encode::access(
            read.inst,
            read.kind,
            start,
            took,
            read.offset,
            read.len as u32,
        );
        seat.goes_on
            .store(quick && writer.is_like_last(&slot), Ordering::Relaxed);
        let mut put = || writer.push_access(area, &slot).is_ok();
        put() || wait(area, put)
    })
}

/// Publishes one event through `put`. True if it was published.
#[inline(always)]
pub fn emit(area: &Shared, put: impl Fn(&mut Writer) -> Result<(), Full>) -> bool {
    seated(area, |seat, writer| {
        seat.goes_on.store(false, Ordering::Relaxed);
        put(writer).is_ok() || wait(area, || put(writer).is_ok())
    })
}

/// The ring is full: waits for room, and detaches if none is made.
#[cold]
fn wait(area: &Shared, retry: impl FnMut() -> bool) -> bool {
    heartbeat::wait(area, retry).unwrap_or_else(|heartbeat::Dead| {
        process::detach();
        false
    })
}

/// Publishes that the process ends.
pub fn emit_exit(area: &Shared) {
    emit(area, |writer| writer.push(area, &encode::exit(stamp())));
}
