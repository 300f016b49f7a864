//! The native half of the Python package `foreread`: lists out of Python iterables, reads into
//! `bytes`, and the engine session of `foreread-client` between them.
//!
//! - [`guard`]: `foreread.prefetch`, a list and the means to say where the program is.
//! - [`reader`]: `foreread.read`, an iterator that reads a list in its order.
//! - [`session`]: what both share; [`feed`] draws entries from the iterable, [`files`] names files.
//!
//! Invariants: Python code runs only on the threads that call, and never while a lock of this
//! module is held; the session's own threads know nothing of Python. A guard inherited through `fork`
//! does nothing, and its reads still read.
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

/// Prefetching by the list of coming reads: the native half.
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
