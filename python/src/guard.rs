//! `foreread.prefetch`: a list that is prefetched, and the calls that report the program's position.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::feed::extent;
use crate::files::read_plainly;
use crate::session::{Choices, Session};
use crate::stats::Stats;

/// Entries that a list holds ahead of the program if `window` is not given: 24 bytes each.
pub const WINDOW: u64 = 1 << 20;
/// The beginning of errors about the file, offset and length of a call.
const WHOSE: &str = "a read";

/// A list being prefetched. Made by `prefetch`; best used in a `with` statement.
#[pyclass(frozen, weakref, module = "foreread")]
pub struct Guard(Arc<Session>);

/// Prefetch the accesses that `accesses` yields, in that order, until the guard is closed.
///
/// `accesses` is any iterable of `(file, offset, length)` or `(file, offset, length, marked)`. A file is a
/// path, an open file or a descriptor. Entries are taken as the list is used up, so the iterable may be endless.
///
/// `budget` is the memory for pages that are fetched and not yet read, in bytes; by default most of the free
/// memory. `window` is the number of entries that are known ahead. `on_miss(miss)` is called before a read that is
/// not on the list, and when the list has run out. An iterable that it returns is the new list, or the continuation
/// of the list that ran out. `check` is a file that receives a report of the differences between list and reads.
#[pyfunction]
#[pyo3(signature = (accesses, *, budget=None, window=None, on_miss=None, check=None))]
pub fn prefetch(
    accesses: &Bound<'_, PyAny>,
    budget: Option<&Bound<'_, PyAny>>,
    window: Option<&Bound<'_, PyAny>>,
    on_miss: Option<Bound<'_, PyAny>>,
    check: Option<PathBuf>,
) -> PyResult<Guard> {
    if let Some(on_miss) = &on_miss
        && !on_miss.is_callable()
    {
        return Err(PyTypeError::new_err(format!(
            "on_miss is {}, not callable",
            on_miss.repr()?
        )));
    }
    let choices = Choices {
        budget: positive(budget, "prefetch", "budget")?,
        window: positive(window, "prefetch", "window")?.unwrap_or(WINDOW) as usize,
        check,
        on_miss: on_miss.map(Bound::unbind),
        keep: false,
    };
    Session::start(accesses, choices).map(Guard)
}

/// A number of bytes or entries that is at least one, from the argument `what` of `function`, which errors name.
pub fn positive(
    value: Option<&Bound<'_, PyAny>>,
    function: &str,
    what: &str,
) -> PyResult<Option<u64>> {
    let Some(value) = value else { return Ok(None) };
    match error::number(value, &function, what)? {
        0 => Err(PyValueError::new_err(format!(
            "{function}: {what} is 0, not at least 1"
        ))),
        value => Ok(Some(value)),
    }
}

#[pymethods]
impl Guard {
    /// Report that the program is about to make access `n`, counted from 0; earlier ones count as passed.
    fn at(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.at(py, error::number(n, &"at", "n")?)
    }

    /// Report that the program is about to read these bytes, by any means.
    fn reading(
        &self,
        file: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        length: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let extent = extent(offset, length, &WHOSE)?;
        let Some(client) = self.0.client()? else {
            return Ok(());
        };
        let id = self.0.files.id(file, &client, &WHOSE)?;
        self.0.announce(file.py(), id, extent)
    }

    /// Read `length` bytes of `file` at `offset`, fewer only at its end, and report the read.
    fn pread<'py>(
        &self,
        file: &Bound<'py, PyAny>,
        length: &Bound<'py, PyAny>,
        offset: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let extent = extent(offset, length, &WHOSE)?;
        let Some(client) = self.0.client()? else {
            return read_plainly(file, extent);
        };
        let id = self.0.files.id(file, &client, &WHOSE)?;
        self.0.reading(file.py(), id, extent)?;
        self.0.read(file.py(), Some(file), id, extent)
    }

    /// The session's present statistics; after the end, the final ones, with a closed account.
    fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Files that could not be fetched, and why. Empty before the guard is closed.
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
