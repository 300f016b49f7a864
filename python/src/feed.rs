//! Entries taken from the program's iterable, a batch at a time.
//!
//! Data flow: iterable → [`Feed::draw`] → `pending` → the session's list. An item is `(file, offset,
//! length)` or `(file, offset, length, marked)`.
//!
//! Invariant: no more entries are taken than the list has room for, so the iterable may be endless. An error in the
//! iterable ends it, and is reported once, after the entries before it.

use std::fmt;

use foreread_client::{Client, Entry, Extent};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyString, PyTuple};

use crate::error;
use crate::files::Files;

/// One past the last byte a file can have.
const LIMIT: u64 = i64::MAX as u64;

/// The rest of an iterable of accesses.
pub struct Feed {
    accesses: Option<Py<PyIterator>>,
    /// The number of the next item, for errors.
    number: u64,
    /// Entries that were taken and that the list has not accepted yet.
    pub pending: Vec<Entry>,
    /// The exception that ended the iterable early.
    pub failed: Option<PyErr>,
}

impl Feed {
    /// Begins to take from `accesses`.
    ///
    /// # Errors
    /// `TypeError` if it is not iterable.
    pub fn new(accesses: &Bound<'_, PyAny>) -> PyResult<Self> {
        if accesses.is_instance_of::<PyString>() || accesses.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(format!(
                "accesses is {}, not an iterable of (file, offset, length)",
                accesses.repr()?
            )));
        }
        Ok(Self {
            accesses: Some(accesses.try_iter()?.unbind()),
            number: 0,
            pending: Vec::new(),
            failed: None,
        })
    }

    /// True if the iterable is at its end. Entries may still be pending.
    pub fn is_exhausted(&self) -> bool {
        self.accesses.is_none()
    }

    /// True if the iterable is at its end and no entry is pending.
    pub fn is_drained(&self) -> bool {
        self.accesses.is_none() && self.pending.is_empty()
    }

    /// Shows the iterable to Python's garbage collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.accesses)
    }

    /// Takes entries until `count` are pending, or the iterable ends.
    pub fn draw(&mut self, py: Python<'_>, count: usize, files: &Files, client: &Client) {
        let Some(accesses) = &self.accesses else {
            return;
        };
        let mut accesses = accesses.bind(py).clone();
        while self.pending.len() < count {
            let entry = match accesses.next() {
                Some(item) => item.and_then(|item| entry(&item, self.number, files, client)),
                None => {
                    self.accesses = None;
                    return;
                }
            };
            match entry {
                Ok(entry) => self.pending.push(entry),
                Err(exception) => {
                    self.failed = Some(exception);
                    self.accesses = None;
                    return;
                }
            }
            self.number += 1;
        }
    }

    /// The next entry or item, for a reader in a child, where no client gives numbers to files.
    pub fn next_plainly(&mut self, py: Python<'_>) -> PyResult<Next> {
        if !self.pending.is_empty() {
            return Ok(Next::Read(self.pending.remove(0)));
        }
        let Some(accesses) = &self.accesses else {
            return Ok(Next::End);
        };
        let Some(item) = accesses.bind(py).clone().next() else {
            self.accesses = None;
            return Ok(Next::End);
        };
        let item = Item::new(&item?, self.number)?;
        self.number += 1;
        Ok(Next::Plain(item.file.unbind(), item.extent))
    }
}

/// The next action of a reader.
pub enum Next {
    /// Read this entry.
    Read(Entry),
    /// Read this item of the iterable without a session, in a child.
    Plain(Py<PyAny>, Extent),
    /// The list is at its end.
    End,
}

/// The beginning of an error's text, as in "access 5".
struct Number(u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "access {}", self.0)
    }
}

/// The parts of an item of the iterable.
struct Item<'py> {
    file: Bound<'py, PyAny>,
    extent: Extent,
    marked: bool,
}

impl<'py> Item<'py> {
    fn new(item: &Bound<'py, PyAny>, number: u64) -> PyResult<Self> {
        let whose = Number(number);
        let made;
        let parts = match item.cast::<PyTuple>() {
            Ok(parts) => parts,
            Err(_) => {
                made = tuple(item, &whose)?;
                &made
            }
        };
        if !matches!(parts.len(), 3 | 4) {
            return Err(shape(item, &whose));
        }
        Ok(Self {
            file: parts.get_item(0)?,
            extent: extent(&parts.get_item(1)?, &parts.get_item(2)?, &whose)?,
            marked: parts.len() == 4 && parts.get_item(3)?.is_truthy()?,
        })
    }
}

fn entry(item: &Bound<'_, PyAny>, number: u64, files: &Files, client: &Client) -> PyResult<Entry> {
    let Item {
        file,
        extent,
        marked,
    } = Item::new(item, number)?;
    Ok(Entry {
        file: files.id(&file, client, &Number(number))?,
        extent,
        marked,
    })
}

/// Converts another sequence to a tuple.
fn tuple<'py>(item: &Bound<'py, PyAny>, whose: &Number) -> PyResult<Bound<'py, PyTuple>> {
    let sequence = item.cast::<pyo3::types::PySequence>();
    match sequence {
        Ok(sequence) if !item.is_instance_of::<PyString>() => sequence.to_tuple(),
        _ => Err(shape(item, whose)),
    }
}

fn shape(item: &Bound<'_, PyAny>, whose: &Number) -> PyErr {
    let text = item
        .repr()
        .map_or_else(|_| "?".into(), |text| text.to_string());
    PyTypeError::new_err(format!(
        "{whose} is {text}, not (file, offset, length) or (file, offset, length, marked)"
    ))
}

/// A byte range from Python.
///
/// # Errors
/// `ValueError` or `TypeError`, with `whose` at the beginning of the text.
pub fn extent(
    offset: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
    whose: &dyn fmt::Display,
) -> PyResult<Extent> {
    let offset = error::number(offset, whose, "offset")?;
    let length = error::number(length, whose, "length")?;
    match offset.checked_add(length) {
        Some(end) if end <= LIMIT => Ok(Extent::new(offset, length)),
        _ => Err(PyValueError::new_err(format!(
            "{whose}: {length} bytes at offset {offset} end past 2**63 - 1"
        ))),
    }
}
