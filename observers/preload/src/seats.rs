//! Assigns rings to threads.
//!
//! Each thread with something to report claims a ring, whose slots the process maps if necessary, and stores it in a word of its own
//! ([`key`]).
//!
//! A signal handler that interrupts an event finds the seat busy and reports nothing. If it leaves by `siglongjmp`, the seat stays busy:
//! after [`ABANDONED`] lost events the interrupted event counts as abandoned.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use foreread_ring::{Shared, Slots, THREAD_NO_STDIO, Writer, encode, slots_at, thread};

use crate::area;
use crate::memory::MEMORY;
use crate::pace::Pace;
use crate::seat::{self, BUSY, Busy, HELPERS, OWN, QUIET, Seat};
pub use crate::seat::{in_helper, main_seat};
use crate::sys::{self, Allowed};
use crate::{key, paths, process, threads};

/// True if reads through stdio are seen.
static SEES_STDIO: AtomicBool = AtomicBool::new(false);

/// The id of this process's parent at its fork.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// Number of lost events after which an interrupted event counts as abandoned.
const ABANDONED: u32 = 64;

/// Number of events after which a thread that found all rings taken tries again.
const CLAIM_EVERY: u32 = 1024;

/// Events since all rings were last found taken.
static UNCLAIMED: AtomicU32 = AtomicU32::new(0);

/// Prepares the page of [`OWN`] and the key, for process `pid`. False if that fails.
pub fn ready(allowed: Allowed, pid: u32) -> bool {
    if !sys::wipe_on_fork(allowed, &OWN) {
        return false;
    }
    seat::own(pid);
    PARENT.store(sys::getppid(allowed), Ordering::Relaxed);
    key::create(thread_ends)
}

/// From now on reads through stdio are seen.
pub fn see_stdio() {
    SEES_STDIO.store(true, Ordering::Relaxed);
}

/// True if reads through stdio are seen.
pub fn sees_stdio() -> bool {
    SEES_STDIO.load(Ordering::Relaxed)
}

/// Claims a seat for this thread, if it has none.
pub fn sit(area: &Shared) {
    if main_seat().is_none() {
        of_thread(area);
    }
}

/// Calls `publish` with this thread's end of its ring. Returns its result: true if an event was published.
#[inline(always)]
pub fn seated(area: &Shared, publish: impl FnOnce(&Seat, &mut Writer<'static>) -> bool) -> bool {
    let seat = match main_seat() {
        Some(seat) if seat.state.load(Ordering::Relaxed) == QUIET => seat,
        _ => match quiet_seat(area) {
            Some(seat) => seat,
            None => {
                // The event counts as lost, unless the process does not report or the thread is a helper.
                area.add_lost(u64::from(area::area().is_some() && !in_helper()));
                return false;
            }
        },
    };
    publish(seat, Busy::at(seat).writer())
}

/// This thread's seat, unless an event is being written already.
#[inline(never)]
fn quiet_seat(area: &Shared) -> Option<&'static Seat> {
    process::notice_fork();
    let seat = of_thread(area)?;
    let is_abandoned = || {
        seat.state.load(Ordering::Relaxed) == BUSY
            && seat.unsaid.fetch_add(1, Ordering::Relaxed) == ABANDONED
    };
    (seat.state.load(Ordering::Relaxed) == QUIET || is_abandoned()).then_some(seat)
}

/// True if this thread has a ring.
pub fn is_seated() -> bool {
    !key::get().is_null()
}

fn of_thread(area: &Shared) -> Option<&'static Seat> {
    // SAFETY: a thread's word is null or a seat.
    let seat = unsafe { key::get().cast::<Seat>().as_ref() };
    if seat.is_some() {
        seat
    } else {
        take_seat(area)
    }
}

/// Claims a ring for this thread and introduces the thread in it.
#[cold]
fn take_seat(area: &Shared) -> Option<&'static Seat> {
    if in_helper() {
        return None;
    }
    if UNCLAIMED.load(Ordering::Relaxed) != 0
        && !UNCLAIMED
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CLAIM_EVERY)
    {
        return None;
    }
    let (pid, tid) = (seat::owner(), threads::number()?);
    // SAFETY: null, or mapped below.
    let mapped = |ring: usize| unsafe { MEMORY.mapped[ring].load(Ordering::Relaxed).as_ref() };
    let Some(mut writer) = Writer::claim(area, (pid, tid), mapped, |ring| map(area, ring)) else {
        UNCLAIMED.fetch_max(1, Ordering::Relaxed);
        return None;
    };
    UNCLAIMED.store(0, Ordering::Relaxed);
    let flags = if sees_stdio() { 0 } else { THREAD_NO_STDIO };
    let parent = PARENT.load(Ordering::Relaxed);
    let introduced = paths::of_program(|exe| {
        let first = encode::thread(pid, tid, parent, flags, area::stamp(), exe.len());
        writer.push_path(area, &first, &[exe])
    });
    if introduced.is_err() {
        // The last owner's events still fill the ring. No event may follow them without an introduction.
        writer.release(area, pid, tid);
        return None;
    }
    let seat = OWN.seats.get(writer.ring())?;
    seat.state.store(QUIET, Ordering::Relaxed);
    seat.tid.store(tid, Ordering::Relaxed);
    // SAFETY: the claim makes the seat this thread's.
    unsafe {
        (*seat.writer.get()).write(writer);
        *seat.pace.get() = Pace::NEW;
    }
    seat.goes_on.store(false, Ordering::Relaxed);
    if !key::set(ptr::from_ref(seat).cast()) {
        writer.release(area, pid, tid);
        return None;
    }
    if let (Some(own), true) = (thread(), tid == pid) {
        seat::take_main(own.as_ptr() as usize, seat);
    }
    Some(seat)
}

/// Maps a ring's slots.
fn map(area: &Shared, ring: usize) -> Option<&'static Slots> {
    let from = ptr::from_ref(area).cast();
    // SAFETY: the area is mapped shared; its file is sealed, and long enough for all rings.
    let at = unsafe { sys::map_again(Allowed::now()?, from, slots_at(ring), size_of::<Slots>()) };
    let slots = at?.cast::<Slots>();
    MEMORY.mapped[ring].store(slots, Ordering::Relaxed);
    // SAFETY: as long as `Slots`, which consists of atomics; never unmapped.
    unsafe { slots.as_ref() }
}

/// Releases this thread's ring.
pub fn leave_seat() {
    let seat = key::get();
    if key::set(ptr::null()) {
        // SAFETY: the thread's word.
        unsafe { thread_ends(seat) };
    }
}

/// Releases the ring of a thread that ends, or does not need it any more.
///
/// # Safety
/// `seat` must be the thread's word.
unsafe extern "C" fn thread_ends(seat: *mut c_void) {
    if main_seat().is_some() {
        seat::forget_main();
    }
    let pid = seat::owner();
    // SAFETY: a thread's word: null, or a seat that this thread has filled. In a forked child that has not noticed the fork (pid 0), the
    // seat is the parent's.
    let Some(seat) = (unsafe { seat.cast::<Seat>().as_ref() }) else {
        return;
    };
    if ptr::eq(seat, &HELPERS) {
        return;
    }
    if let (Some(area), true) = (area::area(), pid != 0) {
        // SAFETY: as above.
        let writer = unsafe { (*seat.writer.get()).assume_init() };
        writer.release(area, pid, seat.tid.load(Ordering::Relaxed));
    }
}
