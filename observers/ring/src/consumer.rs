//! The supervisor's side: creates the area, sets the mode, collects the events.
//!
//! [`Ring::poll`] merges the rings by start time without buffering: it reads the start of the next event of each ring, and passes on the
//! earliest until it reaches the stamp taken at the beginning of the poll. Later events stay in their ring for the next poll, so an event
//! is passed on only when no ring can have an earlier one, except for calls still in progress.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::area::Area;
use crate::atomic::Ordering;
use crate::clock::Calibration;
use crate::lanes::Lanes;
use crate::layout::{
    ADVICE_SLOTS, AREA_SIZE, Advice, Clock, Header, MAGIC, Mode, Shared, Slots, VERSION,
};
use crate::layout::{path_hash, probe};
use crate::passage::{Passage, Unobserved};
use crate::raw_event::RawEvent;
use crate::switched::Switches;

/// Interval of the search for rings of dead threads.
const SWEEP: Duration = Duration::from_millis(50);

/// A wait of this length always includes a switch.
const CERTAIN: Duration = Duration::from_micros(500);

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
        /// The error of the call.
        errno: Errno,
    },
}

/// The shared area, seen by its owner.
#[derive(Debug)]
pub struct Ring {
    memfd: Arc<OwnedFd>,
    area: Arc<Area>,
    calibration: Calibration,
    lanes: Lanes,
    swept: Instant,
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
        let area = Arc::new(Area::map(&memfd).map_err(fail("mmap"))?);
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
            memfd: Arc::new(memfd),
            area,
            calibration: Calibration::new(clock),
            lanes: Lanes::new(),
            swept: Instant::now(),
        })
    }

    /// The value of [`crate::ENV`] for the program to be observed.
    pub fn env_value(&self) -> String {
        self.env_value_under(0, std::process::id())
    }

    /// The same, if this process is under this many system-call filters, which the program's processes inherit. `owner`, this process or a
    /// copy of it, keeps the area open while programs may search for it.
    pub fn env_value_under(&self, filters: u32, owner: u32) -> String {
        let fd = self.memfd.as_raw_fd();
        let filters = Some(filters).filter(|&filters| filters > 0);
        let filters = filters.map_or_else(String::new, |filters| filters.to_string());
        format!(
            "{:016x}{filters}/proc/{owner}/fd/{fd}",
            self.shared().token()
        )
    }

    /// Returns a function that shows whether an observed process has asked for a write lease on a file; it stays valid after the ring.
    pub fn leases(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let area = Arc::clone(&self.area);
        move || area.get().shared.has_leases()
    }

    /// The board, on which this process answers questions about the run.
    #[cfg(not(all(test, loom)))]
    pub fn board(&self) -> crate::Board {
        crate::Board {
            area: Arc::clone(&self.area),
            _memfd: Arc::clone(&self.memfd),
        }
    }

    /// The area itself, for a producer in this process.
    pub fn shared(&self) -> &Shared {
        &self.area.get().shared
    }

    /// The slots of a ring, for a producer in this process.
    pub fn slots(&self, ring: usize) -> &Slots {
        &self.area.get().rings[ring]
    }

    /// Sets the mode of all programs' reports.
    pub fn set_mode(&self, mode: Mode) {
        self.shared().wanted().set_mode(mode);
    }

    /// The mode of reports.
    pub fn mode(&self) -> Mode {
        self.shared().mode()
    }

    /// Sets the advice that programs give the kernel on the files at these absolute paths when they open them, one per path. Returns the
    /// number for which there was room (three quarters of the table). To be called before the program starts.
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

    /// Sets whether programs give the advised files the kernel's read-ahead back, and leave it on for files that they open from now on:
    /// their next reads are not foreseen.
    pub fn give_up(&self, given_up: bool) {
        let Header {
            wanted, advice_len, ..
        } = &self.shared().header;
        if advice_len.load(Ordering::Relaxed) != 0 && wanted.is_given_up() != given_up {
            wanted.give_up(given_up);
        }
    }

    /// Waits by calling `wait`, which must do nothing else, and tests whether the kernel marks a thread as switched out.
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

    /// The processes that are about to become another program, or did and were not heard of again.
    pub fn gone(&self) -> impl Iterator<Item = u32> {
        self.shared().gone()
    }

    /// Number of processes that were not fully observed.
    pub fn unobserved(&self) -> Unobserved {
        self.shared().unobserved()
    }

    /// True if no ring has an event.
    pub fn drained(&self) -> bool {
        self.lanes.are_drained(self.shared())
    }

    /// True if a ring may soon be full.
    pub fn filling(&self) -> bool {
        self.lanes.are_filling(self.shared())
    }

    /// Passes on reported events in the order of their starts, and shows the programs that the supervisor is alive. Accesses that continue
    /// each other come together, unless others come between them. When `each` returns false, the rest is left for the next poll. Returns
    /// the number of events, each access counted separately.
    pub fn poll(&mut self, each: &mut impl FnMut(RawEvent) -> bool) -> usize {
        let area = self.area.get();
        let shared = &area.shared;
        shared.header.heartbeat.0.fetch_add(1, Ordering::Relaxed);
        let cutoff = self.calibration.tick();
        let count = self.lanes.poll(area, cutoff, &self.calibration, each);
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            self.lanes.sweep(shared, is_gone);
        }
        count
    }
}

/// True if a thread has ended. In doubt (a /proc that hides other users' processes) the result is false: a ring kept too long is idle, one
/// freed too early has two writers.
fn is_gone(pid: u32, tid: u32) -> bool {
    if Path::new(&format!("/proc/{pid}")).exists() {
        return !Path::new(&format!("/proc/{pid}/task/{tid}")).exists();
    }
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(pid) => test_kill_process(pid) == Err(Errno::SRCH),
        None => true,
    }
}

/// The place where this process's threads are marked as switched out.
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
