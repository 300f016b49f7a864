//! Tables (CSV, RFC 4180): the first row names the columns.
//!
//! All columns are written, in one order. Columns are read in any order; only `path` is required. Other columns are ignored.

use std::io::{self, Read, Write};

use csv::ByteRecord;
use foreread_plan::Kind;

use crate::escape::{escaped, unescaped};
use crate::fault::Fault;
use crate::{Line, extent, kind, mark, marks};

/// The columns.
const COLUMNS: [&str; 11] = [
    "path", "offset", "length", "kind", "start_ns", "took_ns", "pid", "tid", "size", "mtime_ns",
    "marks",
];

/// Writes a table.
pub(crate) struct Table<W: Write>(csv::Writer<W>);

impl<W: Write> Table<W> {
    pub(crate) fn new(out: W) -> io::Result<Self> {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(COLUMNS)?;
        Ok(Self(table))
    }

    pub(crate) fn line(&mut self, line: &Line) -> io::Result<()> {
        let number = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
        let mtime = line.state.mtime_ns;
        self.0.write_record([
            escaped(&line.path),
            number(line.extent.map(|extent| extent.offset)),
            number(line.extent.map(|extent| extent.len)),
            line.kind.name().to_owned(),
            line.start_ns.to_string(),
            line.took_ns.to_string(),
            line.pid.to_string(),
            line.tid.to_string(),
            number(line.state.size),
            mtime.map_or(String::new(), |time| time.to_string()),
            marks(line),
        ])?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        // With the original error, not as text.
        self.0.flush()?;
        self.0.into_inner().map_err(|failed| {
            let why = failed.error();
            io::Error::new(why.kind(), why.to_string())
        })
    }
}

/// True if a list with this first line is a table.
pub(crate) fn recognises(first: &[u8]) -> bool {
    let first = first.trim_ascii_end();
    let mut cells = first.split(|byte| *byte == b',');
    cells.any(|cell| cell == b"path" || cell == b"\"path\"")
}

/// Reads a table.
pub(crate) struct Rows<R: Read> {
    table: csv::Reader<R>,
    row: ByteRecord,
    /// The places of the columns, once the first row is read.
    places: Option<[Option<usize>; COLUMNS.len()]>,
}

impl<R: Read> Rows<R> {
    pub(crate) fn new(input: R) -> Self {
        let mut table = csv::ReaderBuilder::new();
        table.has_headers(false).flexible(true);
        Self {
            table: table.from_reader(input),
            row: ByteRecord::new(),
            places: None,
        }
    }

    /// The next access; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Result<Line, Fault>> {
        loop {
            match self.table.read_byte_record(&mut self.row) {
                Ok(false) => return None,
                Ok(true) => {}
                Err(why) => return Some(Err(Fault::end(self.table.position().line(), why))),
            }
            let number = self.row.position().map_or(0, csv::Position::line);
            let Some(places) = &self.places else {
                let at = |name: &str| self.row.iter().position(|cell| cell == name.as_bytes());
                let places = COLUMNS.map(at);
                if places[0].is_none() {
                    let why = "the first row names no column path";
                    return Some(Err(Fault::end(number, why)));
                }
                self.places = Some(places);
                continue;
            };
            let line = line(&self.row, places);
            return Some(line.map_err(|what| Fault::line(number, what)));
        }
    }
}

/// The access of a row.
fn line(row: &ByteRecord, places: &[Option<usize>; COLUMNS.len()]) -> Result<Line, String> {
    let cell = |column: usize| {
        let cell = places[column].and_then(|place| row.get(place));
        let cell = cell.filter(|cell| !cell.is_empty());
        cell.map(|cell| {
            std::str::from_utf8(cell).map_err(|_| format!("the {} is no text", COLUMNS[column]))
        })
        .transpose()
    };
    let number = |column: usize| -> Result<Option<u64>, String> {
        let wrong = |text: &str| format!("the {} {text:?} is no number", COLUMNS[column]);
        let text = cell(column)?;
        text.map(|text| text.parse().map_err(|_| wrong(text)))
            .transpose()
    };
    let short = |column: usize| -> Result<u32, String> {
        let number = number(column)?.unwrap_or(0);
        let wrong = |_| format!("the {} {number} is too large", COLUMNS[column]);
        number.try_into().map_err(wrong)
    };
    let path = places[0].and_then(|place| row.get(place));
    let mut line = Line::whole(unescaped(path.unwrap_or_default())?);
    line.extent = match (number(1)?, number(2)?) {
        (None, None) => None,
        (offset, Some(len)) => Some(extent(offset.unwrap_or(0), len)?),
        (Some(offset), None) => return Err(format!("the offset {offset} has no length")),
    };
    line.kind = match cell(3)? {
        Some(name) => kind(name)?,
        None if line.extent.is_some() => Kind::Pread,
        None => Kind::Touch,
    };
    line.start_ns = number(4)?.unwrap_or(0);
    line.took_ns = number(5)?.unwrap_or(0);
    (line.pid, line.tid) = (short(6)?, short(7)?);
    line.state.size = number(8)?;
    line.state.mtime_ns = match cell(9)? {
        None => None,
        Some(text) => Some(
            text.parse()
                .map_err(|_| format!("the mtime_ns {text:?} is no number"))?,
        ),
    };
    mark(&mut line, cell(10)?.unwrap_or(""))?;
    Ok(line)
}
