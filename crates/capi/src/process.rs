//! What this process has registered.
//!
//! Invariant: what a process registered is reached only by that process. A child made by `fork`
//! finds its parent's [`Process`] with locks in any state; it recognises it ([`Birth`]), leaves
//! it alone, and starts one of its own when it registers a client. Handles are numbers that are
//! never given twice, so that a wrong one is recognised and never followed.
//!
//! Data flow: [`calls`](crate::calls) add and find clients here; the interposers find descriptors.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_sys::thread::Birth;

use crate::descriptors::Descriptors;
use crate::handle::Handle;

static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
/// The next handle; 0 stands for none.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The clients and descriptors of one process.
pub struct Process {
    birth: Birth,
    id: u32,
    /// Handles below this are an ancestor's.
    first: usize,
    clients: Mutex<HashMap<usize, Arc<Handle>>>,
    /// Whose reads count.
    pub descriptors: Descriptors,
}

impl Process {
    /// What this process has registered; `None` if nothing.
    pub fn current() -> Option<&'static Self> {
        // SAFETY: null, or a leaked box.
        let process = unsafe { CURRENT.load(Ordering::Acquire).as_ref()? };
        process.birth.is_here().then_some(process)
    }

    /// Whether the caller runs in this process, and not in a child made by `vfork`, which shares
    /// its memory.
    pub fn runs_here() -> bool {
        Self::current().is_some_and(|process| process.id == std::process::id())
    }

    /// What this process has registered, begun if it is nothing yet.
    ///
    /// # Errors
    /// `-EAGAIN` without the memory for it.
    pub fn begin() -> Result<&'static Self, c_int> {
        if let Some(process) = Self::current() {
            return Ok(process);
        }
        let birth = Birth::new().map_err(|_| -libc::EAGAIN)?;
        let before = CURRENT.load(Ordering::Acquire);
        let new = Box::into_raw(Box::new(Self {
            birth,
            id: std::process::id(),
            first: NEXT.load(Ordering::Relaxed),
            clients: Mutex::default(),
            descriptors: Descriptors::default(),
        }));
        match CURRENT.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                if !before.is_null() {
                    // What was the parent's belongs to no region of ours.
                    crate::descriptors::unflag_all();
                }
                // SAFETY: registers a function without arguments. Failing costs the report only.
                unsafe { libc::atexit(at_exit) };
                // SAFETY: a leaked box.
                Ok(unsafe { &*new })
            }
            Err(other) => {
                // SAFETY: ours, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread of this process has published it: a leaked box.
                Ok(unsafe { &*other })
            }
        }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<usize, Arc<Handle>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client; the number by which it is found again.
    pub fn add(&self, handle: Handle) -> usize {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.clients().insert(number, Arc::new(handle));
        number
    }

    /// Takes a client out, with its descriptors; of several threads that do so, for one of them. Its
    /// session ends when nobody uses it any more.
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

/// The client of a number.
///
/// # Errors
/// `-ECHILD` if it is an ancestor's, `-EINVAL` if it is nobody's.
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

/// Clients that the program leaves to the end of the process still report, and whoever shares its openings has the
/// kernel's read-ahead back.
extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(|| {
        let Ok(_inside) = crate::inside::enter() else {
            return;
        };
        let Some(process) = Process::current() else {
            return;
        };
        process.descriptors.restore_all();
        // Another thread may have been stopped with the lock held.
        if let Ok(clients) = process.clients.try_lock() {
            for handle in clients.values() {
                handle.client.write_check();
            }
        }
    });
}
