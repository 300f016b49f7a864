//! Events into the ring.
//!
//! The library is attached when the area named by the environment could be mapped and
//! is of this layout, and silent otherwise. Here it is known which process this is, also after a
//! fork, and what is wanted of it; which thread has which ring is [`seats`]' business.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use foreread_ring::{Clock, Full, Mode, Passage, Shared, Switches, Wanted, Writer, encode, thread};

use crate::pace::{Times, at_once};
use crate::seats::{self, Busy, Seat, seated};
use crate::sys::{self, Allowed};
use crate::{attach, files, heartbeat, paths, threads};

static AREA: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static TSC: AtomicBool = AtomicBool::new(false);

/// What is wanted: what the area says, if there is one.
static WANTED: AtomicPtr<Wanted> = AtomicPtr::new((&raw const NOTHING).cast_mut());
static NOTHING: Wanted = Wanted::nothing();

/// [`Wanted::once_done`] as it was when all advice was taken back.
static DONE: AtomicU32 = AtomicU32::new(Wanted::NOT_DONE);

/// The number that [`Wanted::mode`] told when there was something to report last: while there is not, what the
/// descriptor table says may go stale.
static TIME: AtomicU32 = AtomicU32::new(0);

/// The thread, as [`thread`] has it, one of whose children may be borrowing this process's memory, or [`NOBODY`] or
/// [`ANYBODY`].
static LENT: AtomicUsize = AtomicUsize::new(NOBODY);
const NOBODY: usize = 0;
const ANYBODY: usize = usize::MAX;

/// The area, if attached.
#[inline(always)]
pub fn area() -> Option<&'static Shared> {
    // SAFETY: null, or a mapping of `Shared` that is never taken away.
    unsafe { AREA.load(Ordering::Relaxed).as_ref() }
}

/// The area, if there is anything to report now.
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

/// Whether there is nothing to do about a read but to make the call.
#[inline(always)]
pub fn is_idle() -> bool {
    // SAFETY: a static, or in the area, which is never taken away.
    unsafe { (*WANTED.load(Ordering::Relaxed)).is_nothing(DONE.load(Ordering::Relaxed)) }
}

/// All that is wanted now: another number whenever it is not the same.
#[inline(always)]
pub fn wanted() -> u32 {
    // SAFETY: as above.
    unsafe { (*WANTED.load(Ordering::Relaxed)).word() }
}

/// Does what there is to do though nothing is reported: takes back advice that is over.
#[cold]
pub fn settle() {
    let done = area().map_or(Wanted::NOT_DONE, |area| area.wanted().once_done());
    if files::is_advice_over() {
        files::restore_all();
    }
    DONE.store(done, Ordering::Relaxed);
}

/// Offsets moved unseen meanwhile: everything is to be found out anew.
#[cold]
fn unmute(time: u32) {
    if TIME.swap(time, Ordering::Relaxed) != time {
        if files::is_advised() {
            files::restore_all();
        }
        files::forget_all();
    }
}

/// Now, in the area's ticks.
#[inline(always)]
pub fn stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if TSC.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the instruction.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    stamp_by_call()
}

#[cold]
fn stamp_by_call() -> u64 {
    sys::clock(libc::CLOCK_MONOTONIC)
}

/// From now on this process reports by this area.
pub fn attach(area: &'static Shared) {
    TSC.store(area.clock() == Clock::Tsc, Ordering::Relaxed);
    // SAFETY: plain functions that stay as long as the process. A failure (no memory)
    // costs the exactness of offsets shared with a child.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork)) };
    let (mode, time) = area.wanted().mode();
    // What is opened while nothing is reported has to be found out later.
    TIME.store(
        if mode == Mode::Mute { u32::MAX } else { time },
        Ordering::Relaxed,
    );
    AREA.store(ptr::from_ref(area).cast_mut(), Ordering::Release);
    WANTED.store(ptr::from_ref(area.wanted()).cast_mut(), Ordering::Relaxed);
}

extern "C" fn before_fork() {
    files::share_all();
}

extern "C" fn after_fork() {
    // Of this child's only thread, as the C library has just written down.
    begin_anew(threads::number());
}

/// From now on a child that this thread has made may be borrowing this process's memory, while the thread waits for it.
pub fn lending() {
    let own = thread().map_or(ANYBODY, |own| own.as_ptr() as usize);
    let lent = LENT.swap(own, Ordering::Relaxed);
    if lent != NOBODY && lent != own {
        LENT.store(ANYBODY, Ordering::Relaxed);
    }
}

/// From now on a child that this process has made in its own way may have its memory, or a copy of it.
pub fn lending_to_anybody() {
    LENT.store(ANYBODY, Ordering::Relaxed);
}

/// Whether this is the process the library's memory belongs to, and not a child that only borrows it (vfork). The kernel
/// need not be asked unless this thread has lent the memory.
pub fn at_home() -> bool {
    notice_fork();
    let lent = LENT.load(Ordering::Relaxed);
    let own = thread().map_or(ANYBODY, |own| own.as_ptr() as usize);
    if lent == NOBODY || lent != own && lent != ANYBODY {
        return true;
    }
    let at_home = Allowed::now().is_some_and(|allowed| seats::owner() == sys::getpid(allowed));
    if at_home && lent == own && own != ANYBODY {
        // The thread goes on when its child has ended, or has become another program.
        LENT.store(NOBODY, Ordering::Relaxed);
    }
    at_home
}

/// This process's number, as far as it is known or the kernel may be asked.
pub fn pid() -> Option<u32> {
    if at_home() {
        Some(seats::owner())
    } else {
        Allowed::now().map(sys::getpid)
    }
}

#[inline(always)]
pub fn notice_fork() {
    if seats::owner() == 0 && area().is_some() {
        begin_anew(Allowed::now().map(sys::getpid));
    }
}

/// In a forked child, of this number: has no ring, shares every open file with its parent, and nobody
/// but this thread can be holding anything.
#[cold]
fn begin_anew(pid: Option<u32>) {
    let Some(area) = area() else {
        return;
    };
    let Some(pid) = pid else {
        return detach();
    };
    if pid == 1 {
        // The first of another PID namespace.
        if let Some(outer) = Allowed::now().and_then(attach::outer_pid) {
            area.pass(outer, Passage::Apart);
        }
        return detach();
    }
    seats::own(pid);
    LENT.store(NOBODY, Ordering::Relaxed);
    seats::forget();
    paths::unlock();
    files::share_all();
}

/// A read that was seen.
pub struct Read {
    pub inst: u32,
    pub kind: u8,
    /// When it began, as [`begin`] says.
    pub start: Start,
    /// When it ended, in ticks: `None` where that was just now, and the thread was not switched out meanwhile.
    pub ended: Option<u64>,
    /// What was read, in bytes.
    pub offset: u64,
    pub len: u64,
}

/// When a read began.
#[derive(Clone, Copy)]
pub enum Start {
    /// In ticks.
    At(u64),
    /// At once after the one before by the thread in this seat, should it turn out to be another like that.
    AtOnce(&'static Seat),
}

/// How long a call took that began at `start`, and just before which these switches were marked, in ticks.
pub fn spent(start: u64, switches: Switches) -> u64 {
    let took = stamp().wrapping_sub(start);
    match switches.is_marked() {
        true => at_once(took, 0),
        false => took,
    }
}

/// A read begins: where to look whether the thread is switched out in it, and when that is.
#[inline(always)]
pub fn begin(area: &Shared) -> (Switches, Start) {
    let switches = threads::switches(area);
    if let Some(seat) = seats::main_seat()
        && seat.goes_on.load(Ordering::Relaxed)
        && switches.is_marked()
    {
        return (switches, Start::AtOnce(seat));
    }
    let start = stamp();
    switches.mark();
    (switches, Start::At(start))
}

/// Publishes a read that came at once, and in which the thread did not wait, if it is another like the one before: of
/// the same file and kind, as many bytes. Returns whether it is.
#[inline(always)]
pub fn goes_on(area: &Shared, seat: &Seat, of: (u32, u8), offset: u64, len: u64) -> bool {
    let Some(mut busy) = Busy::quietly(seat) else {
        return false;
    };
    let room = busy.writer().add(area, of, offset, len as u32);
    seat.goes_on.store(room == Some(true), Ordering::Relaxed);
    room.is_some()
}

/// After such a read at a descriptor's cursor: the next ones may only be counted.
#[inline(always)]
pub fn begin_streak(seat: &Seat, fd: c_int, len: u64) {
    if seat.goes_on.load(Ordering::Relaxed)
        && let Some(mut busy) = Busy::quietly(seat)
    {
        seats::streak().begin(busy.writer(), fd, len);
    }
}

/// Publishes a read. Returns whether it was published.
#[inline(never)]
pub fn emit_read(area: &Shared, read: &Read) -> bool {
    if files::is_advised() && heartbeat::is_silent(area) {
        detach();
        return false;
    }
    seated(area, |seat, writer| {
        // SAFETY: as the writer.
        let pace = unsafe { &mut *seat.pace.get() };
        let Times { start, took, quick } = pace.times(read, writer.more());
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
        put() || heartbeat::wait(area, put)
    })
}

/// Publishes one event through `put`. Returns whether it was published.
#[inline(always)]
pub fn emit(area: &Shared, put: impl Fn(&mut Writer) -> Result<(), Full>) -> bool {
    seated(area, |seat, writer| {
        seat.goes_on.store(false, Ordering::Relaxed);
        put(writer).is_ok() || heartbeat::wait(area, || put(writer).is_ok())
    })
}

/// Publishes that the process ends.
pub fn emit_exit(area: &Shared) {
    emit(area, |writer| writer.push(area, &encode::exit(stamp())));
}

/// The supervisor is gone, or the process reports no more: from now on the library only hands calls through.
pub fn detach() {
    WANTED.store((&raw const NOTHING).cast_mut(), Ordering::Relaxed);
    AREA.store(ptr::null_mut(), Ordering::Relaxed);
    files::restore_all();
}
