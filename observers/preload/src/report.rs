//! Events into the ring.
//!
//! The library is attached when the area named by the environment could be mapped and
//! is of this layout, and silent otherwise. Each thread that has something to say claims
//! a ring, kept under a `pthread` key. What a process knows of its rings lies on one page
//! that the kernel wipes in forked children, so that a child can never write into its
//! parent's rings, however it was forked; a child that shares memory (vfork) borrows
//! its parent's ring while the parent waits.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};

use foreread_ring::{
    Clock, Full, Mode, Passage, RINGS, Shared, Slot, THREAD_NO_STDIO, Writer, encode,
};

use crate::{files, paths, stdio, sys};

/// How long a full ring is waited for while recording, in ns.
const WAIT: u64 = 20_000_000;

/// After this long without a poll the supervisor is taken for dead, in ns.
const DEAD_AFTER: u64 = 1_000_000_000;

/// How long a thread that found all rings taken goes without one, in events.
const CLAIM_EVERY: u32 = 1024;

static AREA: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static TSC: AtomicBool = AtomicBool::new(false);
static KEY: AtomicU32 = AtomicU32::new(0);

/// Set while the area is muted: what the descriptor table says may then go stale.
static MUTED: AtomicBool = AtomicBool::new(false);

/// Whether a child may ever have borrowed this process's memory: until then nobody has to
/// ask the kernel which process this is.
static LENT: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked and has not become another program since.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Events since all rings were last found taken.
static UNCLAIMED: AtomicU32 = AtomicU32::new(0);

/// The heartbeat at which a wait was last in vain, and when that was first seen.
static STALLED_BEAT: AtomicU64 = AtomicU64::new(u64::MAX);
static STALLED_SINCE: AtomicU64 = AtomicU64::new(0);

/// What a fork must not copy.
#[repr(C, align(4096))]
struct Own {
    /// This process, 0 in a forked child that has not noticed yet.
    pid: AtomicU32,
    seats: [Seat; RINGS],
}

/// A thread's end of the ring with the same index.
struct Seat {
    /// Set while an event is being written: a signal handler's own events must not
    /// come between.
    busy: AtomicBool,
    tid: AtomicU32,
    writer: UnsafeCell<MaybeUninit<Writer>>,
}

// SAFETY: a seat is used by the thread that owns the ring of its index alone, and only
// after that thread has filled it.
unsafe impl Sync for Seat {}

static OWN: Own = Own {
    pid: AtomicU32::new(0),
    seats: [const {
        Seat {
            busy: AtomicBool::new(false),
            tid: AtomicU32::new(0),
            writer: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }; RINGS],
};

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
    if area.mode() == Mode::Mute {
        if !MUTED.load(Ordering::Relaxed) {
            MUTED.store(true, Ordering::Relaxed);
        }
        return None;
    }
    if MUTED.load(Ordering::Relaxed) {
        unmute();
    }
    Some(area)
}

/// Offsets moved unseen while muted: everything is to be found out anew.
#[cold]
fn unmute() {
    if MUTED.swap(false, Ordering::Relaxed) {
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
    if !shared.is_valid() || !sys::wipe_on_fork(&OWN) {
        return false;
    }
    let mut key = 0;
    // SAFETY: `key` is writable, `thread_ends` is a destructor of the type asked for.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } != 0 {
        return false;
    }
    KEY.store(key, Ordering::Relaxed);
    TSC.store(shared.clock() == Clock::Tsc, Ordering::Relaxed);
    let pid = sys::getpid();
    OWN.pid.store(pid, Ordering::Relaxed);
    // Rings left behind by the program that this process was before, unless the number
    // is another process's in another namespace.
    if Writer::any_of(shared, pid) && same_pid_namespace() {
        Writer::release_all(shared, pid);
    }
    // SAFETY: plain functions that stay as long as the process. A failure (no memory)
    // costs the exactness of offsets shared with a child.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork)) };
    shared.pass(pid, Passage::Here);
    AREA.store(area, Ordering::Release);
    true
}

/// The supervisor looks for our threads in /proc, by the numbers we report: both need
/// that /proc and we agree on who we are.
fn same_pid_namespace() -> bool {
    let mut buffer = [const { MaybeUninit::uninit() }; 16];
    let Some(digits) = sys::readlink(c"/proc/self", &mut buffer) else {
        return false;
    };
    let pid = digits.iter().fold(0_u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    });
    pid == OWN.pid.load(Ordering::Relaxed)
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
    !LENT.load(Ordering::Relaxed) || OWN.pid.load(Ordering::Relaxed) == sys::getpid()
}

/// Whether this is a forked child that has done nothing worth reporting: one that a shell
/// makes only to become another program.
pub fn is_mere_fork() -> bool {
    FORKED.load(Ordering::Relaxed) && !is_seated()
}

#[inline(always)]
fn notice_fork() {
    if OWN.pid.load(Ordering::Relaxed) == 0 {
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
    OWN.pid.store(sys::getpid(), Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
    LENT.store(false, Ordering::Relaxed);
    // SAFETY: our own key.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::null()) };
    paths::unlock();
    crate::maps::unlock();
    files::share_all();
}

/// Publishes one event through `put`. Returns whether it was published.
#[inline(always)]
pub fn emit(area: &Shared, put: impl Fn(&mut Writer) -> Result<(), Full>) -> bool {
    notice_fork();
    let Some(seat) = seat(area) else {
        area.add_lost(1);
        return false;
    };
    if seat.busy.load(Ordering::Relaxed) {
        area.add_lost(1);
        return false;
    }
    seat.busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: this thread owns the seat and has filled it; `busy` keeps signal handlers
    // of this thread out.
    let writer = unsafe { (*seat.writer.get()).assume_init_mut() };
    let done = put(writer).is_ok() || wait(area, || put(writer).is_ok());
    compiler_fence(Ordering::SeqCst);
    seat.busy.store(false, Ordering::Relaxed);
    done
}

/// Publishes an event of one slot.
#[inline(always)]
pub fn emit_slot(area: &Shared, slot: &Slot) -> bool {
    emit(area, |writer| writer.push(area, slot))
}

/// Publishes that the process ends. A process of which nothing was seen while merely
/// following it stays unseen.
pub fn emit_exit(area: &Shared) {
    if is_seated() || area.mode() == Mode::Record {
        emit_slot(area, &encode::exit(stamp()));
    }
}

/// Whether this thread has a ring.
fn is_seated() -> bool {
    // SAFETY: our own key.
    unsafe { !libc::pthread_getspecific(KEY.load(Ordering::Relaxed)).is_null() }
}

#[inline(always)]
fn seat(area: &Shared) -> Option<&'static Seat> {
    // SAFETY: our own key; its values are null or seats.
    let seat = unsafe {
        libc::pthread_getspecific(KEY.load(Ordering::Relaxed))
            .cast::<Seat>()
            .as_ref()
    };
    if seat.is_some() {
        seat
    } else {
        take_seat(area)
    }
}

/// Claims a ring for this thread and introduces the thread in it.
#[cold]
fn take_seat(area: &Shared) -> Option<&'static Seat> {
    if UNCLAIMED.load(Ordering::Relaxed) != 0
        && !UNCLAIMED
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(CLAIM_EVERY)
    {
        return None;
    }
    let (pid, tid) = (OWN.pid.load(Ordering::Relaxed), sys::gettid());
    if !same_pid_namespace() {
        detach();
        return None;
    }
    let Some(mut writer) = Writer::claim(area, pid, tid) else {
        UNCLAIMED.fetch_max(1, Ordering::Relaxed);
        return None;
    };
    UNCLAIMED.store(0, Ordering::Relaxed);
    let mut buffer = paths::Buffer::new();
    let exe = sys::readlink(c"/proc/self/exe", &mut buffer.0).unwrap_or(b"");
    let flags = if stdio::is_hooked() {
        0
    } else {
        THREAD_NO_STDIO
    };
    let first = encode::thread(pid, tid, sys::getppid(), flags, stamp(), exe.len());
    if writer.push_path(area, &first, exe).is_err() {
        // The last owner's events still fill it, and nothing may follow them unannounced.
        writer.release(area, pid, tid);
        return None;
    }
    let seat = OWN.seats.get(writer.ring())?;
    seat.busy.store(false, Ordering::Relaxed);
    seat.tid.store(tid, Ordering::Relaxed);
    // SAFETY: the claim makes the seat this thread's.
    unsafe { (*seat.writer.get()).write(writer) };
    // SAFETY: our own key, and a value that its destructor understands.
    let set = unsafe {
        libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::from_ref(seat).cast())
    };
    if set != 0 {
        writer.release(area, pid, tid);
        return None;
    }
    Some(seat)
}

/// Gives this thread's ring back.
pub fn leave_seat() {
    // SAFETY: our own key; its values are null or seats.
    unsafe {
        let key = KEY.load(Ordering::Relaxed);
        let seat = libc::pthread_getspecific(key);
        if libc::pthread_setspecific(key, ptr::null()) == 0 {
            thread_ends(seat);
        }
    }
}

extern "C" fn thread_ends(seat: *mut c_void) {
    let pid = OWN.pid.load(Ordering::Relaxed);
    // SAFETY: a value of our key: null, or a seat that this thread has filled. In a
    // forked child that has not noticed (pid 0) the seat is the parent's.
    let Some(seat) = (unsafe { seat.cast::<Seat>().as_ref() }) else {
        return;
    };
    if let (Some(area), true) = (area(), pid != 0) {
        // SAFETY: as above.
        let writer = unsafe { (*seat.writer.get()).assume_init() };
        writer.release(area, pid, seat.tid.load(Ordering::Relaxed));
    }
}

/// The ring is full. While recording, waits a little for the supervisor to make room;
/// otherwise, and when waiting was in vain, the event is lost.
#[cold]
fn wait(area: &Shared, mut retry: impl FnMut() -> bool) -> bool {
    let beat = area.heartbeat();
    if STALLED_BEAT.load(Ordering::Relaxed) == beat {
        // Nobody has read since the last time this was in vain: do not wait again.
        if sys::clock(libc::CLOCK_MONOTONIC_COARSE)
            .saturating_sub(STALLED_SINCE.load(Ordering::Relaxed))
            > DEAD_AFTER
        {
            detach();
        }
        area.add_lost(1);
        return false;
    }
    if area.mode() == Mode::Record {
        let until = sys::clock(libc::CLOCK_MONOTONIC) + WAIT;
        while sys::clock(libc::CLOCK_MONOTONIC) < until {
            sys::nap();
            if retry() {
                return true;
            }
        }
    }
    STALLED_SINCE.store(sys::clock(libc::CLOCK_MONOTONIC_COARSE), Ordering::Relaxed);
    STALLED_BEAT.store(area.heartbeat(), Ordering::Relaxed);
    area.add_lost(1);
    false
}

/// The supervisor is gone: from now on the library only hands calls through.
fn detach() {
    AREA.store(ptr::null_mut(), Ordering::Relaxed);
    files::restore_all();
}
