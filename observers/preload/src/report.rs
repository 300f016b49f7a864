//! Events into the ring.
//!
//! The library is attached when the area named by the environment could be mapped and
//! is of this layout, and silent otherwise. Here it is known which process this is, also after a
//! fork, and what is wanted of it; which thread has which ring is [`seats`]' business.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use foreread_ring::{Clock, Full, Mode, Passage, Shared, Slot, Switches, Wanted, Writer, encode};

use crate::pace::Times;
use crate::seats::{self, Busy, Seat, seated};
use crate::{direct, files, heartbeat, paths, sys, threads};

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

/// Whether a child may ever have borrowed this process's memory: until then nobody has to
/// ask the kernel which process this is.
static LENT: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked and has not become another program since.
static FORKED: AtomicBool = AtomicBool::new(false);

/// This process's number outside, if it was forked as the first of another PID namespace: its parent's library does not
/// see that.
static OUTER: AtomicU32 = AtomicU32::new(0);

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

/// Maps the area the environment names. Returns whether it did.
pub fn attach() -> bool {
    // SAFETY: a constructor runs before the program can change its environment.
    let name = unsafe { libc::getenv(c"FOREREAD_RING".as_ptr()) };
    if name.is_null() {
        return false;
    }
    // SAFETY: the C library's strings are terminated.
    let fd = sys::open(unsafe { CStr::from_ptr(name) }, libc::O_RDWR);
    let Ok(fd) = i32::try_from(fd) else {
        return false;
    };
    if fd < 0 {
        return false;
    }
    let area = if sys::regular_size(fd) == Some(size_of::<Shared>() as u64) {
        sys::map_shared(fd, size_of::<Shared>())
    } else {
        None
    };
    sys::close(fd);
    let Some(area) = area.map(<*mut c_void>::cast::<Shared>) else {
        return false;
    };
    // SAFETY: the mapping is as long as `Shared`, which consists of atomics, and stays.
    let shared = unsafe { &*area };
    if !shared.is_valid() || !seats::ready() {
        return false;
    }
    TSC.store(shared.clock() == Clock::Tsc, Ordering::Relaxed);
    threads::ask();
    seats::own();
    let pid = seats::owner();
    if let Some(outer) = outer_pid_of_first() {
        // It may have been said to be on its way by the one number or by the other.
        shared.stay(pid);
        shared.pass(outer, Passage::Apart);
        return false;
    }
    // Rings left behind by the program that this process was before, unless the number
    // is another process's in another namespace.
    if Writer::any_of(shared, pid) && same_pid_namespace() {
        Writer::release_all(shared, pid);
    }
    // SAFETY: plain functions that stay as long as the process. A failure (no memory)
    // costs the exactness of offsets shared with a child.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork)) };
    shared.pass(pid, Passage::Here);
    let (mode, time) = shared.wanted().mode();
    // What is opened while nothing is reported has to be found out later.
    TIME.store(
        if mode == Mode::Mute { u32::MAX } else { time },
        Ordering::Relaxed,
    );
    AREA.store(area, Ordering::Release);
    WANTED.store((&raw const *shared.wanted()).cast_mut(), Ordering::Relaxed);
    true
}

/// This process's number in /proc. The supervisor looks for our threads there, by the numbers we report: both need that
/// /proc, and we agree on who we are.
pub fn outer_pid() -> Option<u32> {
    let mut buffer = [const { MaybeUninit::uninit() }; 16];
    let digits = sys::readlink(c"/proc/self", &mut buffer)?;
    Some(digits.iter().fold(0_u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}

fn same_pid_namespace() -> bool {
    outer_pid() == Some(seats::owner())
}

/// This process's number in /proc, if its parent is in another PID namespace: where there is none such, that is all that
/// is asked.
fn outer_pid_of_first() -> Option<u32> {
    if sys::getppid() != 0 {
        return None;
    }
    outer_pid().filter(|&outer| outer != seats::owner())
}

extern "C" fn before_fork() {
    files::share_all();
}

extern "C" fn after_fork() {
    notice_fork();
}

/// From now on a child may be borrowing this process's memory.
pub fn lending() {
    LENT.store(true, Ordering::Relaxed);
}

/// Whether this is the process the library's memory belongs to, and not a child that
/// only borrows it (vfork).
pub fn at_home() -> bool {
    notice_fork();
    !LENT.load(Ordering::Relaxed) || seats::owner() == sys::getpid()
}

/// Whether this process was forked as the first of another PID namespace.
pub fn is_apart() -> bool {
    notice_fork();
    OUTER.load(Ordering::Relaxed) != 0
}

/// The number that this process is known by to the supervisor.
pub fn known_as() -> u32 {
    if is_apart() {
        OUTER.load(Ordering::Relaxed)
    } else {
        sys::getpid()
    }
}

/// Whether this is a forked child that has done nothing worth reporting: one that a shell
/// makes only to become another program.
pub fn is_mere_fork() -> bool {
    FORKED.load(Ordering::Relaxed) && !seats::is_seated()
}

#[inline(always)]
pub fn notice_fork() {
    if seats::owner() == 0 {
        begin_anew();
    }
}

/// In a forked child: has no ring, shares every open file with its parent, and nobody
/// but this thread can be holding anything.
#[cold]
fn begin_anew() {
    if area().is_none() {
        return;
    }
    seats::own();
    FORKED.store(true, Ordering::Relaxed);
    // Before it may see a /proc of the new namespace's own.
    OUTER.store(outer_pid_of_first().unwrap_or(0), Ordering::Relaxed);
    LENT.store(false, Ordering::Relaxed);
    seats::forget();
    paths::unlock();
    crate::maps::unlock();
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
pub fn begin_streak(area: &Shared, seat: &Seat, fd: c_int, len: u64) {
    if seat.goes_on.load(Ordering::Relaxed)
        && let Some(mut busy) = Busy::quietly(seat)
    {
        seats::streak().begin(area, busy.writer(), fd, len);
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
        if quick {
            direct::ask();
        }
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

/// Publishes an event of one slot.
#[inline(always)]
pub fn emit_slot(area: &Shared, slot: &Slot) -> bool {
    emit(area, |writer| writer.push(area, slot))
}

/// Publishes that the process ends. A process of which nothing was seen while merely
/// following it stays unseen.
pub fn emit_exit(area: &Shared) {
    if seats::is_seated() || area.mode() == Mode::Record {
        emit_slot(area, &encode::exit(stamp()));
    }
}

/// The supervisor is gone: from now on the library only hands calls through.
pub fn detach() {
    WANTED.store((&raw const NOTHING).cast_mut(), Ordering::Relaxed);
    AREA.store(ptr::null_mut(), Ordering::Relaxed);
    files::restore_all();
}
