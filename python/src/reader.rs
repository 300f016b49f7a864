//! `foreread.read`: the bytes of each entry, in the order of the list.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::feed::Next;
use crate::files::read_plainly;
use crate::guard::{WINDOW, positive};
use crate::session::{Choices, Session};
use crate::stats::Stats;

/// An iterator of `bytes`, one for each access of the list. Made by `read`.
#[pyclass(frozen, weakref, module = "foreread")]
pub struct Reader(Arc<Session>);

/// Read the accesses that `accesses` yields, in that order, and prefetch the next ones meanwhile.
///
/// The arguments are as for `prefetch`. Yields the bytes of each access, fewer than its length only at the end of its
/// file. Several threads may share one reader; each access is read once.
#[pyfunction]
#[pyo3(signature = (accesses, *, budget=None, window=None))]
pub fn read(
    accesses: &Bound<'_, PyAny>,
    budget: Option<&Bound<'_, PyAny>>,
    window: Option<&Bound<'_, PyAny>>,
) -> PyResult<Reader> {
    let choices = Choices {
        budget: positive(budget, "read", "budget")?,
        window: positive(window, "read", "window")?.unwrap_or(WINDOW) as usize,
        check: None,
        on_miss: None,
        keep: true,
    };
    Session::start(accesses, choices).map(Reader)
}

#[pymethods]
impl Reader {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.0.next(py)? {
            Next::Read(entry) => self.0.read(py, None, entry.file, entry.extent).map(Some),
            Next::Plain(file, extent) => read_plainly(file.bind(py), extent).map(Some),
            Next::End => Ok(None),
        }
    }

    /// The session's present statistics; after the end, the final ones, with a closed account.
    fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Files that could not be fetched, and why. Empty before the reader is closed.
    fn problems(&self) -> Vec<String> {
        self.0.problems()
    }

    /// End the session. Fetched pages stay in memory.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }

    fn __clear__(&self) {
        self.0.clear();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }
}
