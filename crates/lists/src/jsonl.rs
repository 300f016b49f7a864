//! JSON lines: an object a line.
//!
//! A path that is no UTF-8 is in `path_bytes`, as a list of numbers, in place of `path`. Fields that are not there are unknown, and others
//! none of ours.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use foreread_plan::Kind;
use serde::{Deserialize, Serialize};

use crate::escape::path;
use crate::names::in_line;
use crate::{FileState, Line, extent, kind, mark, marks};

/// A line as it is written and read.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default)]
    start_ns: u64,
    #[serde(default)]
    took_ns: u64,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    marks: String,
}

/// Writes a line.
pub(crate) fn write(out: &mut impl Write, line: &Line) -> io::Result<()> {
    let text = line.path.to_str();
    let row = Row {
        path: text.map(str::to_owned),
        path_bytes: text
            .is_none()
            .then(|| line.path.as_os_str().as_bytes().to_vec()),
        offset: line.extent.map(|extent| extent.offset),
        length: line.extent.map(|extent| extent.len),
        kind: Some(line.kind.name().to_owned()),
        start_ns: line.start_ns,
        took_ns: line.took_ns,
        pid: line.pid,
        tid: line.tid,
        size: line.state.size,
        mtime_ns: line.state.mtime_ns,
        marks: marks(line),
    };
    serde_json::to_writer(&mut *out, &row)?;
    out.write_all(b"\n")
}

/// The access of a line.
pub(crate) fn read(text: &[u8]) -> Result<Line, String> {
    let row: Row = serde_json::from_slice(text).map_err(|why| in_line(&why))?;
    let bytes = match (row.path, row.path_bytes) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(bytes)) => bytes,
        (None, None) => return Err("the object has no path".to_owned()),
    };
    let mut line = Line::whole(path(bytes)?);
    line.extent = match (row.offset, row.length) {
        (None, None) => None,
        (offset, Some(len)) => Some(extent(offset.unwrap_or(0), len)?),
        (Some(offset), None) => return Err(format!("the offset {offset} has no length")),
    };
    line.kind = match row.kind {
        Some(name) => kind(&name)?,
        None if line.extent.is_some() => Kind::Pread,
        None => Kind::Touch,
    };
    (line.start_ns, line.took_ns) = (row.start_ns, row.took_ns);
    (line.pid, line.tid) = (row.pid, row.tid);
    line.state = FileState {
        size: row.size,
        mtime_ns: row.mtime_ns,
    };
    mark(&mut line, &row.marks)?;
    Ok(line)
}
