//! The argument of the program's `on_miss`, and its exceptions.
//!
//! Data flow: the session calls `on_miss` on the reading thread, inside the call that announced the read. An exception
//! of `on_miss` is stored in [`RAISED`], and that call returns it.

use std::cell::RefCell;

use foreread_client::{FileId, Missed};
use pyo3::prelude::*;

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores an exception, which this thread's call will return to Python.
pub fn raise(exception: PyErr) {
    RAISED.with(|raised| raised.replace(Some(exception)));
}

/// Returns the stored exception of this thread as an error, if there is one.
pub fn raised() -> PyResult<()> {
    RAISED.with(RefCell::take).map_or(Ok(()), Err)
}

/// A read that is not on the list, or the one that used up the list.
#[pyclass(frozen, get_all, module = "foreread")]
pub struct Miss {
    /// The file about to be read, as it was first named.
    file: Py<PyAny>,
    /// Its offset, in bytes.
    offset: u64,
    /// The file of the most recent marked access, or `None`.
    marked_file: Py<PyAny>,
    /// The offset of that access in bytes, or `None`.
    marked_offset: Option<u64>,
    /// True if the list has run out; if false, the read is not on it.
    ran_out: bool,
}

impl Miss {
    /// The program's view of a miss; `named` returns the program's names of files.
    pub fn new<'py>(
        py: Python<'py>,
        missed: &Missed,
        named: impl Fn(FileId) -> Bound<'py, PyAny>,
    ) -> Self {
        let (file, offset) = missed.requested;
        Self {
            file: named(file).unbind(),
            offset,
            marked_file: missed
                .marked
                .map_or_else(|| py.None(), |(file, _)| named(file).unbind()),
            marked_offset: missed.marked.map(|(_, offset)| offset),
            ran_out: missed.ran_out,
        }
    }
}

#[pymethods]
impl Miss {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let why = if self.ran_out {
            "ran out"
        } else {
            "not listed"
        };
        Ok(format!(
            "Miss({} at {}, {why})",
            self.file.bind(py).repr()?,
            self.offset
        ))
    }
}
