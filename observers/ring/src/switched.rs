//! Whether a thread has been switched out, told without asking the kernel.
//!
//! Each thread has an area through which the kernel tells it of restartable sequences (rseq(2)); the C library has
//! registered it. A pointer in it names the sequence the thread is in. When the kernel finds on a thread's return from
//! another's turn that the thread is not inside that sequence, it clears the pointer. So a thread that leaves a sequence
//! there which it is never inside, and still finds it after a call, has not waited in that call for anything.
//!
//! A kernel need not clear the pointer in a system call, where no sequence may be; whether this one does, the supervisor
//! sees whenever it waits ([`Shared::tells_switches`](crate::Shared::tells_switches)).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// As `rseq_cs` of rseq(2).
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: *const u32,
    length: usize,
    abort: *const u32,
}

// SAFETY: never written to; the kernel reads what it points to.
unsafe impl Sync for Sequence {}

/// What the C library has registered with the kernel on this architecture: it stands before the place to go on at.
const SIGNATURE: u32 = 0x5305_3053;

/// Data in the place of code: no thread is ever inside.
static NOWHERE: [u32; 3] = [0, SIGNATURE, 0];

static OUTSIDE: Sequence = Sequence {
    version: 0,
    flags: 0,
    start: &NOWHERE[0],
    length: 4,
    abort: &NOWHERE[2],
};

/// Offset of `rseq_cs` in the area.
const POINTER: isize = 8;

/// Where a process's threads have their area.
#[derive(Clone, Copy, Debug)]
pub struct Switches(isize);

impl Switches {
    /// Nowhere: every thread counts as switched out.
    pub const UNKNOWN: Self = Self(0);

    /// The area is `offset` bytes (`__rseq_offset`) from each thread's pointer; of `size` bytes, 0 if none is
    /// registered (`__rseq_size`).
    ///
    /// # Safety
    /// Both must be what this process's C library says.
    pub const unsafe fn at(offset: isize, size: u32) -> Self {
        if cfg!(target_arch = "x86_64") && size > 0 {
            Self(offset + POINTER)
        } else {
            Self::UNKNOWN
        }
    }

    /// The bytes from a thread's pointer, for [`Switches::from_raw`]; 0 for nowhere.
    pub const fn raw(self) -> isize {
        self.0
    }

    /// What [`Switches::raw`] was called on.
    ///
    /// # Safety
    /// It must have been so in this process.
    #[inline(always)]
    pub const unsafe fn from_raw(raw: isize) -> Self {
        Self(raw)
    }

    /// From now on is looked whether this thread is switched out.
    #[inline(always)]
    pub fn mark(self) {
        if let Some(pointer) = self.pointer() {
            pointer.store(&raw const OUTSIDE as u64, Ordering::Relaxed);
        }
    }

    /// Whether this thread has certainly not been switched out since its last [`Switches::mark`].
    #[inline(always)]
    pub fn is_marked(self) -> bool {
        self.pointer()
            .is_some_and(|pointer| pointer.load(Ordering::Relaxed) == &raw const OUTSIDE as u64)
    }

    #[inline(always)]
    fn pointer(self) -> Option<&'static AtomicU64> {
        if self.0 == 0 {
            return None;
        }
        // SAFETY: the thread's own area, as long as the thread lives, and only it and the kernel write there.
        Some(unsafe { &*thread()?.as_ptr().offset(self.0).cast::<AtomicU64>() })
    }
}

/// This thread's pointer, which no other thread of the process has while it lives; `None` where there is no quick way to
/// it.
#[inline(always)]
pub fn thread() -> Option<NonNull<u8>> {
    #[cfg(target_arch = "x86_64")]
    {
        let thread: *mut u8;
        // SAFETY: the thread's pointer is the first word of what it points to.
        unsafe {
            core::arch::asm!(
                "mov {}, fs:[0]",
                out(reg) thread,
                options(nostack, pure, readonly, preserves_flags)
            );
            Some(NonNull::new_unchecked(thread))
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
