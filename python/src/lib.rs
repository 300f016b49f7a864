//! The native part of the Python package `foreread`: lists from Python iterables, reads into `bytes`, and between them
//! the session of `foreread-client`.
//!
//! - [`guard`]: `foreread.prefetch`, a list and the calls that report the program's position.
//! - [`reader`]: `foreread.read`, an iterator that reads a list in its order.
//! - [`session`]: the common part of both. [`feed`] takes entries from the iterable, [`files`] has the names of files.
//!
//! Invariants: Python code runs only on the calling threads, and never while a lock of this module is held. The
//! session's own threads run no Python code. A guard inherited through `fork` does not prefetch, but its reads still
//! work.
//!
//! Data flow: iterable → [`feed`] → `Client::request` → page cache; calls → [`session`] → `Client::reading`.

mod error;
mod feed;
mod files;
mod fork;
mod guard;
mod miss;
mod reader;
mod session;
mod stats;

/// Prefetching by a list of the program's next reads: the native part.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::guard::{Guard, prefetch};
    #[pymodule_export]
    use crate::miss::Miss;
    #[pymodule_export]
    use crate::reader::{Reader, read};
    #[pymodule_export]
    use crate::stats::Stats;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::watch(module.py())
    }
}
