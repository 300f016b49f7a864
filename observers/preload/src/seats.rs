//! Which thread has which ring.
//!
//! Each thread that has something to say claims a ring, whose slots the process maps then if it has not yet, and keeps it
//! as a word of its own ([`key`]). What a process knows of its rings
//! lies on one page that the kernel wipes in forked children, so that a child can never write into its parent's rings,
//! however it was forked; a child that shares memory (vfork) borrows its parent's ring while the parent waits.
//!
//! A signal handler that comes in the middle of an event finds the seat busy and says nothing. One that leaves by
//! `siglongjmp` leaves it busy: after [`ABANDONED`] events that were not said, the event is taken for given up.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use foreread_ring::{RINGS, Shared, Slots, THREAD_NO_STDIO, Writer, encode, slots_at, thread};

use crate::memory::MEMORY;
use crate::pace::Pace;
use crate::streak::Streak;
use crate::sys::{self, Allowed};
use crate::{key, paths, report, stdio, threads};

/// Which process this was before it was forked.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// So many events are not said before the one that was being written is taken for given up.
const ABANDONED: u32 = 64;

/// How long a thread that found all rings taken goes without one, in events.
const CLAIM_EVERY: u32 = 1024;

/// Events since all rings were last found taken.
static UNCLAIMED: AtomicU32 = AtomicU32::new(0);

/// The states of a [`Seat`].
const WIPED: u32 = 0;
pub const QUIET: u32 = 1;
const BUSY: u32 = 2;
const NOBODYS: u32 = 3;

/// The process's main thread, as [`thread`] has it, once it has a seat, and the seat. Only that thread changes it, so
/// whoever finds itself there finds its own seat. Most programs read in no other.
static MAIN: AtomicUsize = AtomicUsize::new(0);
static MAIN_SEAT: AtomicPtr<Seat> = AtomicPtr::new(ptr::null_mut());

/// What a fork must not copy.
#[repr(C, align(4096))]
struct Own {
    /// This process, 0 in a forked child that has not noticed yet.
    pid: AtomicU32,
    streak: Streak,
    seats: [Seat; RINGS],
}

/// A thread's end of the ring with the same index.
#[repr(C, align(128))]
pub struct Seat {
    /// [`WIPED`] in a forked child, [`NOBODYS`] of the one that is [`HELPERS`], else whether an event is being written:
    /// a signal handler's own events must not come between.
    pub state: AtomicU32,
    /// True if the start time of this thread's next read need not be recorded.
    pub goes_on: AtomicBool,
    /// Events that were not said since one was begun.
    unsaid: AtomicU32,
    tid: AtomicU32,
    /// On one line of the processor's cache with what is before it: a read that goes on needs no more.
    writer: UnsafeCell<MaybeUninit<Writer<'static>>>,
    pub pace: UnsafeCell<Pace>,
}

// SAFETY: a seat is used by the thread that owns the ring of its index alone, and only
// after that thread has filled it.
unsafe impl Sync for Seat {}

impl Seat {
    const fn new(state: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
            tid: AtomicU32::new(0),
            unsaid: AtomicU32::new(0),
            writer: UnsafeCell::new(MaybeUninit::uninit()),
            pace: UnsafeCell::new(Pace::NEW),
            goes_on: AtomicBool::new(false),
        }
    }
}

/// In place of a seat, for threads that are not the program's and report nothing ([`threads::is_helper`]).
static HELPERS: Seat = Seat::new(NOBODYS);

static OWN: Own = Own {
    pid: AtomicU32::new(0),
    streak: Streak::new(),
    seats: [const { Seat::new(WIPED) }; RINGS],
};

/// Readies the page and the key, for process `pid`. Returns whether that was possible.
pub fn ready(allowed: Allowed, pid: u32) -> bool {
    if !sys::wipe_on_fork(allowed, &OWN) {
        return false;
    }
    own(pid);
    PARENT.store(sys::getppid(allowed), Ordering::Relaxed);
    key::create(thread_ends)
}

/// Takes a seat for this thread, if it has none.
pub fn sit(area: &Shared) {
    if main_seat().is_none() {
        seat(area);
    }
}

/// The process that the rings are of; 0 in a forked child that has not noticed yet.
#[inline(always)]
pub fn owner() -> u32 {
    OWN.pid.load(Ordering::Relaxed)
}

/// The main thread's reads that are only counted.
#[inline(always)]
pub fn streak() -> &'static Streak {
    &OWN.streak
}

/// From now on they are process `pid`'s.
pub fn own(pid: u32) {
    OWN.pid.store(pid, Ordering::Relaxed);
}

/// In a forked child: this thread's seat was its parent's.
pub fn forget() {
    key::set(ptr::null());
    forget_main();
}

/// Does with this thread's end of its ring what publishes one event, and returns what that returns: whether it was
/// published.
#[inline(always)]
pub fn seated(area: &Shared, publish: impl FnOnce(&Seat, &mut Writer<'static>) -> bool) -> bool {
    let seat = match main_seat() {
        Some(seat) if seat.state.load(Ordering::Relaxed) == QUIET => seat,
        _ => match quiet_seat(area) {
            Some(seat) => seat,
            None => {
                // Neither a process that does not report loses anything nor a thread that has nothing to.
                area.add_lost(u64::from(report::area().is_some() && !in_helper()));
                return false;
            }
        },
    };
    publish(seat, Busy::at(seat).writer())
}

/// This thread's end of its ring while an event is written, which keeps signal handlers of this thread out of it.
pub struct Busy<'a>(&'a Seat);

impl<'a> Busy<'a> {
    #[inline(always)]
    pub fn at(seat: &'a Seat) -> Self {
        seat.state.store(BUSY, Ordering::Relaxed);
        seat.unsaid.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(seat)
    }

    /// The same, unless an event is being written already.
    #[inline(always)]
    pub fn quietly(seat: &'a Seat) -> Option<Self> {
        (seat.state.load(Ordering::Relaxed) == QUIET).then(|| Self::at(seat))
    }

    #[inline(always)]
    pub fn writer(&mut self) -> &mut Writer<'static> {
        // SAFETY: this thread owns the seat and has filled it.
        let writer = unsafe { (*self.0.writer.get()).assume_init_mut() };
        streak().settle(writer);
        writer
    }
}

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.state.store(QUIET, Ordering::Relaxed);
    }
}

/// This thread's seat, if it is the main thread and has one.
#[inline(always)]
pub fn main_seat() -> Option<&'static Seat> {
    let own = thread()?.as_ptr() as usize;
    if MAIN.load(Ordering::Relaxed) != own {
        return None;
    }
    // SAFETY: null or a seat.
    unsafe { MAIN_SEAT.load(Ordering::Relaxed).as_ref() }
}

/// This thread's seat, unless an event is being written already.
#[inline(never)]
fn quiet_seat(area: &Shared) -> Option<&'static Seat> {
    report::notice_fork();
    let seat = seat(area)?;
    let is_abandoned = || {
        seat.state.load(Ordering::Relaxed) == BUSY
            && seat.unsaid.fetch_add(1, Ordering::Relaxed) == ABANDONED
    };
    (seat.state.load(Ordering::Relaxed) == QUIET || is_abandoned()).then_some(seat)
}

/// Whether this thread has a ring.
pub fn is_seated() -> bool {
    !key::get().is_null()
}

fn seat(area: &Shared) -> Option<&'static Seat> {
    // SAFETY: a thread's word is null or a seat.
    let seat = unsafe { key::get().cast::<Seat>().as_ref() };
    if seat.is_some() {
        seat
    } else {
        take_seat(area)
    }
}

/// Whether this thread is not one of the program's ([`threads::is_helper`]): what it does with descriptors is to be left
/// alone.
pub fn in_helper() -> bool {
    if threads::is_alone() || main_seat().is_some() {
        return false;
    }
    let seat = key::get();
    if seat.is_null() {
        sit_with_helpers()
    } else {
        ptr::eq(seat.cast(), &raw const HELPERS)
    }
}

/// Sees whether this thread, which has no seat, is a helper, and gives it theirs.
#[cold]
fn sit_with_helpers() -> bool {
    let helps = threads::is_helper();
    if helps {
        // Without the memory for it the thread is asked for its name each time.
        key::set((&raw const HELPERS).cast());
    }
    helps
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
    let (pid, tid) = (owner(), threads::number()?);
    // SAFETY: null, or mapped below.
    let mapped = |ring: usize| unsafe { MEMORY.mapped[ring].load(Ordering::Relaxed).as_ref() };
    let Some(mut writer) = Writer::claim(area, (pid, tid), mapped, |ring| map(area, ring)) else {
        UNCLAIMED.fetch_max(1, Ordering::Relaxed);
        return None;
    };
    UNCLAIMED.store(0, Ordering::Relaxed);
    let flags = if stdio::is_hooked() {
        0
    } else {
        THREAD_NO_STDIO
    };
    let parent = PARENT.load(Ordering::Relaxed);
    let introduced = paths::of_program(|exe| {
        let first = encode::thread(pid, tid, parent, flags, report::stamp(), exe.len());
        writer.push_path(area, &first, &[exe])
    });
    if introduced.is_err() {
        // The last owner's events still fill it, and nothing may follow them unannounced.
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
        MAIN_SEAT.store(ptr::from_ref(seat).cast_mut(), Ordering::Relaxed);
        MAIN.store(own.as_ptr() as usize, Ordering::Relaxed);
    }
    Some(seat)
}

/// Maps a ring's slots.
fn map(area: &Shared, ring: usize) -> Option<&'static Slots> {
    let from = ptr::from_ref(area).cast();
    // SAFETY: the area is mapped shared; its file is sealed, and as long as all rings take.
    let at = unsafe { sys::map_again(Allowed::now()?, from, slots_at(ring), size_of::<Slots>()) };
    let slots = at?.cast::<Slots>();
    MEMORY.mapped[ring].store(slots, Ordering::Relaxed);
    // SAFETY: as long as `Slots`, which consists of atomics; never unmapped.
    unsafe { slots.as_ref() }
}

/// Gives this thread's ring back.
pub fn leave_seat() {
    let seat = key::get();
    if key::set(ptr::null()) {
        // SAFETY: the thread's word.
        unsafe { thread_ends(seat) };
    }
}

/// The main thread has no seat.
fn forget_main() {
    MAIN_SEAT.store(ptr::null_mut(), Ordering::Relaxed);
    MAIN.store(0, Ordering::Relaxed);
}

/// Gives back the ring of a thread that ends, or that needs it no more.
///
/// # Safety
/// `seat` must be the thread's word.
unsafe extern "C" fn thread_ends(seat: *mut c_void) {
    if main_seat().is_some() {
        forget_main();
    }
    let pid = OWN.pid.load(Ordering::Relaxed);
    // SAFETY: a thread's word: null, or a seat that this thread has filled. In a
    // forked child that has not noticed (pid 0) the seat is the parent's.
    let Some(seat) = (unsafe { seat.cast::<Seat>().as_ref() }) else {
        return;
    };
    if ptr::eq(seat, &HELPERS) {
        return;
    }
    if let (Some(area), true) = (report::area(), pid != 0) {
        // SAFETY: as above.
        let writer = unsafe { (*seat.writer.get()).assume_init() };
        writer.release(area, pid, seat.tid.load(Ordering::Relaxed));
    }
}
