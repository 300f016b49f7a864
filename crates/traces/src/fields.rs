//! Fields of a line, separated by white space, and the numbers in them. Every error has the column and the value.

use foreread_plan::Extent;

use crate::problem::{Fault, quoted};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A piece of a line, and where it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) text: &'a str,
    /// The first byte's place in the line, from 1.
    pub(crate) column: usize,
}

/// The fields of a line, from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// The required field called `what`.
    pub(crate) fn need(&mut self, what: &str) -> Result<Field<'a>, Fault> {
        self.next()
            .ok_or_else(|| Fault::new(self.line.len() + 1, format!("{what} is missing")))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let rest = &self.line[self.at..];
        let begin = self.at + (rest.len() - rest.trim_ascii_start().len());
        let rest = &self.line[begin..];
        let len = rest
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        self.at = begin + len;
        (len > 0).then(|| Field {
            text: &rest[..len],
            column: begin + 1,
        })
    }
}

impl Field<'_> {
    pub(crate) fn fault(&self, why: &str) -> Fault {
        Fault::new(self.column, format!("{} {why}", quoted(self.text)))
    }

    /// A fault of a value that is accepted unchanged.
    pub(crate) fn kept(&self, why: &str) -> Fault {
        Fault::kept(self.column, format!("{} {why}", quoted(self.text)))
    }

    /// An unsigned number called `what`: decimal, or hexadecimal after `0x`.
    pub(crate) fn unsigned(&self, what: &str) -> Result<u64, Fault> {
        unsigned(self.text).map_err(|why| self.wrong(what, why))
    }

    /// A number with or without sign.
    pub(crate) fn signed(&self, what: &str) -> Result<i64, Fault> {
        signed(self.text).map_err(|why| self.wrong(what, why))
    }

    /// A time in seconds with a decimal fraction, in ns.
    pub(crate) fn seconds(&self, what: &str) -> Result<u64, Fault> {
        seconds(self.text).map_err(|why| self.wrong(what, why))
    }

    fn wrong(&self, what: &str, why: Wrong) -> Fault {
        let why = match why {
            Wrong::NoNumber => "is not a number",
            Wrong::Negative => "is negative",
            Wrong::Overflow => "is too large",
        };
        Fault::new(self.column, format!("{what} {} {why}", quoted(self.text)))
    }
}

/// The reason why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    NoNumber,
    Negative,
    Overflow,
}

pub(crate) fn unsigned(text: &str) -> Result<u64, Wrong> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if let Some(rest) = text.strip_prefix('-') {
        let number = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        return Err(if number {
            Wrong::Negative
        } else {
            Wrong::NoNumber
        });
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(Wrong::NoNumber);
    }
    u64::from_str_radix(digits, radix).map_err(|_| Wrong::Overflow)
}

pub(crate) fn signed(text: &str) -> Result<i64, Wrong> {
    let size = unsigned(text.strip_prefix('-').unwrap_or(text))?;
    let size = i64::try_from(size).map_err(|_| Wrong::Overflow)?;
    Ok(if text.starts_with('-') { -size } else { size })
}

/// Seconds in decimal, in ns; digits beyond the ninth of the fraction are cut off.
pub(crate) fn seconds(text: &str) -> Result<u64, Wrong> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole = unsigned(whole)?;
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::NoNumber);
    }
    let mut ns = 0;
    for place in 0..9 {
        let digit = fraction.as_bytes().get(place).map_or(0, |b| b - b'0');
        ns = ns * 10 + u64::from(digit);
    }
    whole
        .checked_mul(SECOND)
        .and_then(|whole| whole.checked_add(ns))
        .ok_or(Wrong::Overflow)
}

/// The extent of `len` bytes at `offset`. A file ends at 2^63 bytes at the latest.
pub(crate) fn extent(offset: u64, len: u64, column: usize) -> Result<Extent, Fault> {
    match offset.checked_add(len) {
        Some(end) if end <= i64::MAX as u64 => Ok(Extent::new(offset, len)),
        _ => Err(Fault::new(
            column,
            format!("{len} bytes at {offset} end beyond the end of any file"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_their_columns() {
        let fields: Vec<_> = Fields::new("  a  bc\td ")
            .map(|f| (f.text, f.column))
            .collect();
        assert_eq!(fields, [("a", 3), ("bc", 6), ("d", 9)]);
    }

    #[test]
    fn numbers_that_overflow_are_told_from_ones_that_are_none() {
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(unsigned("18446744073709551616"), Err(Wrong::Overflow));
        assert_eq!(unsigned("0x1000"), Ok(4096));
        assert_eq!(unsigned("-5"), Err(Wrong::Negative));
        for none in ["", "-", "0x", "1x", "+1", "--1", "0x-1", " 1"] {
            assert_eq!(unsigned(none), Err(Wrong::NoNumber), "{none:?}");
        }
        assert_eq!(signed("-9223372036854775807"), Ok(-i64::MAX));
        assert_eq!(signed("9223372036854775808"), Err(Wrong::Overflow));
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(seconds("1795680996.221239"), Ok(1_795_680_996_221_239_000));
        assert_eq!(seconds("0.0000000019"), Ok(1));
        assert_eq!(seconds("7"), Ok(7 * SECOND));
        assert_eq!(seconds("18446744073.709551616"), Err(Wrong::Overflow));
        assert_eq!(seconds("-1.5"), Err(Wrong::Negative));
        for none in ["nan", "1.", ".", "1e5", "1.x", "inf"] {
            assert_eq!(seconds(none), Err(Wrong::NoNumber), "{none:?}");
        }
    }
}
