//! Finds out whether a thread has been switched out, without calling the kernel.
//!
//! Each thread has an area for restartable sequences (rseq(2)), registered by the C library. A pointer in it names the sequence in which
//! the thread is. When the kernel resumes a thread after another one's turn and finds it outside that sequence, it clears the pointer. So a
//! thread that stores a sequence in which it never is, and still finds the pointer after a call, has not waited in that call.
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

/// The signature that the C library has registered with the kernel on this architecture: it precedes the abort address.
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

/// The place of the area in each of a process's threads.
#[derive(Clone, Copy, Debug)]
pub struct Switches(isize);

impl Switches {
    /// Nowhere: every thread counts as switched out.
    pub const UNKNOWN: Self = Self(0);

    /// The area is `offset` bytes (`__rseq_offset`) from each thread's pointer; of `size` bytes, 0 if none is
    /// registered (`__rseq_size`).
    ///
    /// # Safety
    /// Both must be the values of this process's C library.
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

    /// The argument of [`Switches::raw`].
    ///
    /// # Safety
    /// Both must have been valid in this process.
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

    /// True if this thread has certainly not been switched out since its last [`Switches::mark`].
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

/// This thread's pointer, unique in the process while the thread lives; `None` if there is no quick way to read it.
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
