//! The clients and descriptors that this process has registered.
//!
//! Invariant: a [`Process`] is used only by the process that made it. A child made by `fork` finds its parent's, with
//! locks in any state. The child recognises it ([`Birth`]), does not touch it, and makes one of its own when it
//! registers a client. Handles are numbers that are never given twice and never dereferenced, so a wrong one is
//! recognised.
//!
//! Data flow: [`calls`](crate::calls) add and find clients here; the interposers find descriptors.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_sys::thread::Birth;

use crate::descriptors::Descriptors;
use crate::handle::Handle;

/// The process whose memory this is. A child made by `vfork` runs in its parent's.
static OWNER: AtomicU32 = AtomicU32::new(0);
static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
/// The next handle; 0 stands for none.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The calling process has memory of its own.
pub fn own_memory() {
    OWNER.store(std::process::id(), Ordering::Relaxed);
}

/// True if the caller runs in the process whose memory this is, and not in a child made by `vfork`.
pub fn in_own_memory() -> bool {
    OWNER.load(Ordering::Relaxed) == std::process::id()
}

/// The clients and descriptors of one process.
pub struct Process {
    birth: Birth,
    /// The first handle of this process; lower ones belong to its ancestors.
    first: usize,
    clients: Mutex<HashMap<usize, Arc<Handle>>>,
    /// The descriptors whose reads are matched.
    pub descriptors: Descriptors,
}

impl Process {
    /// The registrations of this process; `None` if it has registered nothing.
    pub fn current() -> Option<&'static Self> {
        // SAFETY: null, or a leaked box.
        let process = unsafe { CURRENT.load(Ordering::Acquire).as_ref()? };
        process.birth.is_here().then_some(process)
    }

    /// The registrations of this process, made if there are none yet.
    ///
    /// # Errors
    /// `-EAGAIN` if there is no memory, or no way to recognise a child ([`Birth::new`]).
    pub fn begin() -> Result<&'static Self, c_int> {
        if let Some(process) = Self::current() {
            return Ok(process);
        }
        let birth = Birth::new().map_err(|_| -libc::EAGAIN)?;
        let before = CURRENT.load(Ordering::Acquire);
        let new = Box::into_raw(Box::new(Self {
            birth,
            first: NEXT.load(Ordering::Relaxed),
            clients: Mutex::default(),
            descriptors: Descriptors::default(),
        }));
        match CURRENT.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                if !before.is_null() {
                    // The parent's descriptors are in no region of this process.
                    crate::descriptors::unflag_all();
                }
                // A child made by a direct system call is not known before.
                own_memory();
                // SAFETY: registers a function without arguments. Failing costs the report only.
                unsafe { libc::atexit(at_exit) };
                // SAFETY: a leaked box.
                Ok(unsafe { &*new })
            }
            Err(other) => {
                // SAFETY: made above, and never published.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread of this process has published it: a leaked box.
                Ok(unsafe { &*other })
            }
        }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<usize, Arc<Handle>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client. Returns its handle.
    pub fn add(&self, handle: Handle) -> usize {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.clients().insert(number, Arc::new(handle));
        number
    }

    /// Removes a client and its descriptors. If several threads do so at once, one of them succeeds. The client's
    /// session ends when its last user has dropped it.
    ///
    /// # Errors
    /// As [`find`].
    pub fn remove(number: usize) -> Result<Arc<Handle>, c_int> {
        find(number)?;
        let process = Self::current().ok_or(-libc::ECHILD)?;
        let handle = process.clients().remove(&number);
        let handle = handle.ok_or(-libc::EINVAL)?;
        process.descriptors.leave(&handle);
        Ok(handle)
    }
}

/// The client with this handle.
///
/// # Errors
/// `-ECHILD` if it belongs to an ancestor of this process, `-EINVAL` if there is none.
pub fn find(number: usize) -> Result<Arc<Handle>, c_int> {
    let issued = 1..NEXT.load(Ordering::Relaxed);
    match Process::current() {
        Some(process) if number >= process.first => {
            let found = process.clients().get(&number).cloned();
            found.ok_or(-libc::EINVAL)
        }
        _ if issued.contains(&number) => Err(-libc::ECHILD),
        _ => Err(-libc::EINVAL),
    }
}

/// At the end of the process, restores the kernel's read-ahead, because other processes may share the openings, and
/// writes the reports of clients that the program has not ended.
extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(|| {
        let Ok(_inside) = crate::inside::enter() else {
            return;
        };
        let Some(process) = Process::current() else {
            return;
        };
        process.descriptors.restore_all();
        // Another thread may hold the lock and never release it.
        if let Ok(clients) = process.clients.try_lock() {
            for handle in clients.values() {
                handle.client.write_check();
            }
        }
    });
}
