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
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use foreread_ring::{
    Clock, Full, Mode, Passage, RINGS, Shared, Slot, Switches, THREAD_NO_STDIO, Wanted, Writer,
    encode, thread,
};

use crate::pace::{Pace, Times};
use crate::{files, heartbeat, paths, stdio, sys, threads};

/// How long a thread that found all rings taken goes without one, in events.
const CLAIM_EVERY: u32 = 1024;

static AREA: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static TSC: AtomicBool = AtomicBool::new(false);
static KEY: AtomicU32 = AtomicU32::new(0);

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

/// Events since all rings were last found taken.
static UNCLAIMED: AtomicU32 = AtomicU32::new(0);

/// The states of a [`Seat`].
const WIPED: u32 = 0;
const QUIET: u32 = 1;
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
    seats: [Seat; RINGS],
}

/// A thread's end of the ring with the same index.
#[repr(C, align(128))]
pub struct Seat {
    /// [`WIPED`] in a forked child, [`NOBODYS`] of the one that is [`HELPERS`], else whether an event is being written:
    /// a signal handler's own events must not come between.
    state: AtomicU32,
    /// Whether its next read is not to be looked up the start of.
    goes_on: AtomicBool,
    tid: AtomicU32,
    /// On one line of the processor's cache with what is before it: a read that goes on needs no more.
    writer: UnsafeCell<MaybeUninit<Writer>>,
    pace: UnsafeCell<Pace>,
}

// SAFETY: a seat is used by the thread that owns the ring of its index alone, and only
// after that thread has filled it.
unsafe impl Sync for Seat {}

impl Seat {
    const fn new(state: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
            tid: AtomicU32::new(0),
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
    seats: [const { Seat::new(WIPED) }; RINGS],
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
    threads::ask();
    let pid = sys::getpid();
    OWN.pid.store(pid, Ordering::Relaxed);
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
fn outer_pid() -> Option<u32> {
    let mut buffer = [const { MaybeUninit::uninit() }; 16];
    let digits = sys::readlink(c"/proc/self", &mut buffer)?;
    Some(digits.iter().fold(0_u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}

fn same_pid_namespace() -> bool {
    outer_pid() == Some(OWN.pid.load(Ordering::Relaxed))
}

/// This process's number in /proc, if its parent is in another PID namespace: where there is none such, that is all that
/// is asked.
fn outer_pid_of_first() -> Option<u32> {
    if sys::getppid() != 0 {
        return None;
    }
    outer_pid().filter(|&outer| outer != OWN.pid.load(Ordering::Relaxed))
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
    // Before it may see a /proc of the new namespace's own.
    OUTER.store(outer_pid_of_first().unwrap_or(0), Ordering::Relaxed);
    LENT.store(false, Ordering::Relaxed);
    // SAFETY: our own key.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::null()) };
    forget_main();
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
    if let Some(seat) = main_seat()
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
    if seat.state.load(Ordering::Relaxed) != QUIET {
        return false;
    }
    let room = Busy::at(seat).writer().add(area, of, offset, len as u32);
    seat.goes_on.store(room == Some(true), Ordering::Relaxed);
    room.is_some()
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

/// Does with this thread's end of its ring what publishes one event, and returns what that returns: whether it was
/// published.
#[inline(always)]
fn seated(area: &Shared, publish: impl FnOnce(&Seat, &mut Writer) -> bool) -> bool {
    let seat = match main_seat() {
        Some(seat) if seat.state.load(Ordering::Relaxed) == QUIET => seat,
        _ => match quiet_seat(area) {
            Some(seat) => seat,
            None => {
                // Neither a process that does not report loses anything nor a thread that has nothing to.
                area.add_lost(u64::from(self::area().is_some() && !in_helper()));
                return false;
            }
        },
    };
    publish(seat, Busy::at(seat).writer())
}

/// This thread's end of its ring while an event is written, which keeps signal handlers of this thread out of it.
struct Busy<'a>(&'a Seat);

impl<'a> Busy<'a> {
    #[inline(always)]
    fn at(seat: &'a Seat) -> Self {
        seat.state.store(BUSY, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(seat)
    }

    #[inline(always)]
    fn writer(&mut self) -> &mut Writer {
        // SAFETY: this thread owns the seat and has filled it.
        unsafe { (*self.0.writer.get()).assume_init_mut() }
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
fn main_seat() -> Option<&'static Seat> {
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
    notice_fork();
    let seat = seat(area)?;
    (seat.state.load(Ordering::Relaxed) == QUIET).then_some(seat)
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

/// Whether this thread is not one of the program's ([`threads::is_helper`]): what it does with descriptors is to be left
/// alone.
pub fn in_helper() -> bool {
    if threads::is_alone() || main_seat().is_some() {
        return false;
    }
    // SAFETY: our own key.
    let seat = unsafe { libc::pthread_getspecific(KEY.load(Ordering::Relaxed)) };
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
        // SAFETY: our own key, and a value that its destructor understands.
        unsafe {
            let key = KEY.load(Ordering::Relaxed);
            libc::pthread_setspecific(key, (&raw const HELPERS).cast());
        }
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
    let (pid, tid) = (OWN.pid.load(Ordering::Relaxed), sys::gettid());
    let outer = if is_apart() {
        Some(known_as())
    } else {
        outer_pid()
    };
    if outer != Some(pid) {
        area.pass(outer.unwrap_or(pid), Passage::Apart);
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
    seat.state.store(QUIET, Ordering::Relaxed);
    seat.tid.store(tid, Ordering::Relaxed);
    // SAFETY: the claim makes the seat this thread's.
    unsafe {
        (*seat.writer.get()).write(writer);
        *seat.pace.get() = Pace::NEW;
    }
    seat.goes_on.store(false, Ordering::Relaxed);
    // SAFETY: our own key, and a value that its destructor understands.
    let set = unsafe {
        libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::from_ref(seat).cast())
    };
    if set != 0 {
        writer.release(area, pid, tid);
        return None;
    }
    if let (Some(own), true) = (thread(), tid == pid) {
        MAIN_SEAT.store(ptr::from_ref(seat).cast_mut(), Ordering::Relaxed);
        MAIN.store(own.as_ptr() as usize, Ordering::Relaxed);
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

/// The main thread has no seat.
fn forget_main() {
    MAIN_SEAT.store(ptr::null_mut(), Ordering::Relaxed);
    MAIN.store(0, Ordering::Relaxed);
}

extern "C" fn thread_ends(seat: *mut c_void) {
    if main_seat().is_some() {
        forget_main();
    }
    let pid = OWN.pid.load(Ordering::Relaxed);
    // SAFETY: a value of our key: null, or a seat that this thread has filled. In a
    // forked child that has not noticed (pid 0) the seat is the parent's.
    let Some(seat) = (unsafe { seat.cast::<Seat>().as_ref() }) else {
        return;
    };
    if ptr::eq(seat, &HELPERS) {
        return;
    }
    if let (Some(area), true) = (area(), pid != 0) {
        // SAFETY: as above.
        let writer = unsafe { (*seat.writer.get()).assume_init() };
        writer.release(area, pid, seat.tid.load(Ordering::Relaxed));
    }
}

/// The supervisor is gone: from now on the library only hands calls through.
pub fn detach() {
    WANTED.store((&raw const NOTHING).cast_mut(), Ordering::Relaxed);
    AREA.store(ptr::null_mut(), Ordering::Relaxed);
    files::restore_all();
}
