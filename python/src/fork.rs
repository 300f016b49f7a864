//! Detects that a process is a forked child.
//!
//! Threads do not survive `fork`: a child (mostly a `multiprocessing` worker) inherits guards without their engine. Python
//! calls a function after each fork, which counts them. So the check costs one load, and no system call.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

/// Forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which an object was made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Home(u64);

impl Home {
    /// This process.
    pub fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// True if this is still that process.
    pub fn is_here(self) -> bool {
        self == Self::here()
    }
}

/// Registers the function that counts forks.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let count = PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let options = PyDict::new(py);
    options.set_item("after_in_child", count)?;
    py.import("os")?
        .call_method("register_at_fork", (), Some(&options))?;
    Ok(())
}
