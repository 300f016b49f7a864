//! What the program's `on_miss` is told, and the way its exceptions take.
//!
//! Data flow: the session calls back on the reading thread, inside the call that announced the
//! read; an exception raised in there waits in [`RAISED`] until that call returns it.

use std::cell::RefCell;

use foreread_client::{FileId, Missed};
use pyo3::prelude::*;

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keep an exception until this thread is back in Python's hands.
pub fn raise(exception: PyErr) {
    RAISED.with(|raised| raised.replace(Some(exception)));
}

/// The exception kept on this thread, if any.
pub fn raised() -> PyResult<()> {
    RAISED.with(RefCell::take).map_or(Ok(()), Err)
}

/// A read that is not on the list, or the one that used up the list.
#[pyclass(frozen, get_all, module = "foreread")]
pub struct Miss {
    /// The file about to be read, as it was first named.
    file: Py<PyAny>,
    /// Where in it, in bytes.
    offset: u64,
    /// The file of the most recent marked access, or `None`.
    marked_file: Py<PyAny>,
    /// Where in it, in bytes, or `None`.
    marked_offset: Option<u64>,
    /// Whether the list has run out; if not, the read is not on it.
    ran_out: bool,
}

impl Miss {
    /// What the session missed, with files `named` as the program knows them.
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
