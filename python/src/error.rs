//! Python exceptions: the cause determines the class, and the text has the file and the value.

use std::fmt::Display;
use std::io;

use foreread_client::Error;
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// `EINVAL`: the number of an error that has none.
const EINVAL: i32 = 22;

/// An `OSError` (or the subclass for its number) that names the file.
pub fn os(py: Python<'_>, file: Bound<'_, PyAny>, error: &io::Error) -> PyErr {
    let number = error.raw_os_error();
    let text = number
        .and_then(|number| {
            let text = py.import("os").ok()?.call_method1("strerror", (number,));
            text.ok()?.extract::<String>().ok()
        })
        .unwrap_or_else(|| error.to_string());
    PyOSError::new_err((number.unwrap_or(EINVAL), text, file.unbind()))
}

/// An error of the client; `file` is the file's name in the program.
pub fn client(py: Python<'_>, file: Option<&Bound<'_, PyAny>>, error: Error) -> PyErr {
    match (error, file) {
        (Error::File { why, .. }, Some(file)) => os(py, file.clone(), &why),
        (error @ Error::NoEntry { .. }, _) => PyIndexError::new_err(error.to_string()),
        (Error::Threads(source), _) => {
            PyRuntimeError::new_err(format!("cannot start the prefetching threads: {source}"))
        }
        (error, _) => PyValueError::new_err(error.to_string()),
    }
}

/// The error of a call after the end of the session.
pub fn closed() -> PyErr {
    PyValueError::new_err("the guard is closed")
}

/// A whole number from Python that is not negative, such as an offset or a number of bytes.
///
/// # Errors
/// `ValueError` or `TypeError`, in whose text `whose` and `what` name the number, as in "access 3: offset is -1".
pub fn number(value: &Bound<'_, PyAny>, whose: &dyn Display, what: &str) -> PyResult<u64> {
    value.extract::<u64>().map_err(|_| match describe(value) {
        // Too large or negative, but a whole number.
        (text, true) => PyValueError::new_err(format!(
            "{whose}: {what} is {text}, not between 0 and 2**63 - 1"
        )),
        (text, false) => {
            PyTypeError::new_err(format!("{whose}: {what} is {text}, not a whole number"))
        }
    })
}

/// The text of a value in Python, and true if it is a whole number.
fn describe(value: &Bound<'_, PyAny>) -> (String, bool) {
    let text = value
        .repr()
        .map_or_else(|_| "?".into(), |text| text.to_string());
    let index = value
        .py()
        .import("operator")
        .and_then(|operator| operator.call_method1("index", (value,)));
    (text, index.is_ok())
}
