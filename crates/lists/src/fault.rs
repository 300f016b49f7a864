//! Faults of a list.

use std::fmt;

/// Something wrong with a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1; 0 for the list as a whole.
    pub line: u64,
    /// The fault, with its value.
    pub what: String,
    /// True if nothing after it can be read.
    pub is_end: bool,
}

impl Fault {
    pub(crate) fn line(line: u64, what: String) -> Self {
        Self {
            line,
            what,
            is_end: false,
        }
    }

    pub(crate) fn end(line: u64, what: impl fmt::Display) -> Self {
        Self {
            line,
            what: what.to_string(),
            is_end: true,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, what, is_end } = self;
        if *line > 0 {
            write!(f, "line {line}: ")?;
        }
        let then = if *is_end {
            "; what comes before stands"
        } else {
            "; left out"
        };
        write!(f, "{what}{then}")
    }
}
