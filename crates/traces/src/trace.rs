//! A trace of any format, an access at a time.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::darshan::Darshan;
use crate::input::{self, Content, LineReader};
use crate::lines::Lines;
use crate::problem::{Problems, Then, TraceError, TracePlace, quoted};
use crate::record::Record;
use crate::{Access, Names, dxt, fio, recorder, strace};

/// Number of lines examined to recognise a text.
const RECOGNISED_LINES: usize = 200;

/// The formats of traces that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The output of `strace -f -ttt`, with or without `-y` and `-T`.
    Strace,
    /// A fio iolog of version 2 or 3.
    Fio,
    /// A binary Darshan log with DXT records.
    Darshan,
    /// The text that darshan-dxt-parser makes of a Darshan log.
    Dxt,
    /// The text that recorder2text makes of a Recorder trace.
    Recorder,
    /// A record of foreread's own.
    Record,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Strace,
        Format::Fio,
        Format::Darshan,
        Format::Dxt,
        Format::Recorder,
        Format::Record,
    ];

    /// The name of the format on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Strace => "strace",
            Format::Fio => "fio",
            Format::Darshan => "darshan",
            Format::Dxt => "dxt",
            Format::Recorder => "recorder",
            Format::Record => "record",
        }
    }

    /// The format in words.
    pub const fn title(self) -> &'static str {
        match self {
            Format::Strace => "strace text",
            Format::Fio => "fio iolog",
            Format::Darshan => "Darshan log with DXT records",
            Format::Dxt => "Darshan DXT text",
            Format::Recorder => "Recorder text",
            Format::Record => "foreread's record",
        }
    }

    /// The part of this format that [`Access::raw`] counts, in words.
    pub const fn raw(self) -> &'static str {
        match self {
            Format::Darshan => "its DXT records, decompressed",
            Format::Record => "its accesses, as they are stored",
            _ => "its lines, decompressed",
        }
    }

    /// The format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(crate) fn list() -> String {
        Self::ALL.map(Format::name).join(", ")
    }

    /// The format of content that begins like this.
    fn of(head: &[u8]) -> Option<Self> {
        if Record::recognises(head) {
            return Some(Format::Record);
        }
        if Darshan::recognises(head) {
            return Some(Format::Darshan);
        }
        let text = String::from_utf8_lossy(head);
        // The last line may be cut by the end of the head.
        let whole = if head.len() < input::HEAD {
            &text
        } else {
            text.rsplit_once('\n').map_or("", |(lines, _)| lines)
        };
        let lines: Vec<&str> = whole.lines().take(RECOGNISED_LINES).collect();
        let first = lines.first()?;
        if fio::recognises(first) {
            return Some(Format::Fio);
        }
        if lines.iter().any(|line| dxt::recognises(line)) {
            return Some(Format::Dxt);
        }
        if lines.iter().any(|line| recorder::recognises(line)) {
            return Some(Format::Recorder);
        }
        let calls = lines.iter().any(|line| strace::recognises(line));
        calls.then_some(Format::Strace)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

enum Source {
    Text {
        lines: LineReader,
        decoder: Box<dyn Lines>,
    },
    Binary(Box<Darshan>),
    Record(Box<Record>),
}

/// A trace that is being read.
pub struct Trace {
    path: PathBuf,
    format: Format,
    source: Source,
    out: VecDeque<Access>,
    accesses: u64,
    problems: Problems,
    done: bool,
}

impl Trace {
    /// Opens a trace of `format`, or of the format detected from its content.
    ///
    /// A file that cannot be opened, is empty, or of no known format, is an error that names the file.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, TraceError> {
        let (content, head) = input::open(path)?;
        Self::of(path, content, &head, format)
    }

    /// Reads a trace from bytes; `path` is the name that messages give it.
    pub fn from_bytes(
        bytes: Vec<u8>,
        path: &Path,
        format: Option<Format>,
    ) -> Result<Self, TraceError> {
        let stream: Content = Box::new(std::io::Cursor::new(bytes));
        let (content, head) = input::decompressed(stream).map_err(|source| TraceError::Io {
            path: path.to_path_buf(),
            source,
        })?;
        Self::of(path, content, &head, format)
    }

    fn of(
        path: &Path,
        content: Content,
        head: &[u8],
        format: Option<Format>,
    ) -> Result<Self, TraceError> {
        if head.is_empty() {
            return Err(TraceError::Empty {
                path: path.to_path_buf(),
            });
        }
        let format = match format.or_else(|| Format::of(head)) {
            Some(format) => format,
            None => {
                return Err(TraceError::Unknown {
                    path: path.to_path_buf(),
                    begins: quoted(&String::from_utf8_lossy(head)),
                });
            }
        };
        let unsupported = |what| TraceError::Unsupported {
            path: path.to_path_buf(),
            what,
        };
        let text = |decoder, content| Source::Text {
            lines: LineReader::new(content),
            decoder,
        };
        let source = match format {
            Format::Darshan => {
                Source::Binary(Box::new(Darshan::open(content).map_err(unsupported)?))
            }
            Format::Strace => text(Box::new(strace::Strace::new(path)), content),
            Format::Fio => text(Box::new(fio::Fio::new(path)), content),
            Format::Dxt => text(Box::<dxt::Dxt>::default(), content),
            Format::Recorder => text(Box::new(recorder::Recorder::new(path)), content),
            Format::Record => Source::Record(Box::new(Record::open(path)?)),
        };
        Ok(Self {
            path: path.to_path_buf(),
            format,
            source,
            out: VecDeque::new(),
            accesses: 0,
            problems: Problems::default(),
            done: false,
        })
    }

    /// The trace's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The trace's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next access; `None` after the last one that can be read. Names that the trace has are added to `names`.
    pub fn next(&mut self, names: &mut Names) -> Option<Access> {
        while self.out.is_empty() && !self.done {
            self.step(names);
        }
        let access = self.out.pop_front();
        self.accesses += u64::from(access.is_some());
        access
    }

    /// The problems so far.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Calls that were parsed and left out, in sentences. Complete once [`Trace::next`] has returned `None`.
    pub fn left_out(&self) -> Vec<String> {
        match &self.source {
            Source::Text { decoder, .. } => decoder.left_out(),
            Source::Binary(darshan) => darshan.left_out(),
            Source::Record(_) => Vec::new(),
        }
    }

    fn step(&mut self, names: &mut Names) {
        let (fault, place) = match &mut self.source {
            Source::Text { lines, decoder } => {
                let done = match lines.next() {
                    Ok(None) => {
                        self.done = true;
                        decoder.end()
                    }
                    Ok(Some((line, raw))) => decoder.line(&line, raw, names, &mut self.out),
                    Err(fault) => Err(fault),
                };
                let Err(fault) = done else { return };
                let place = TracePlace::Line {
                    line: lines.number,
                    column: fault.column,
                };
                (fault, place)
            }
            Source::Binary(darshan) => match darshan.next(names) {
                Ok(Some(access)) => {
                    self.out.push_back(access);
                    return;
                }
                Ok(None) => {
                    self.done = true;
                    return;
                }
                Err((fault, kept)) => {
                    self.out.extend(kept);
                    (fault, TracePlace::Byte(darshan.at()))
                }
            },
            Source::Record(record) => match record.next(names) {
                Ok(Some(access)) => {
                    self.out.push_back(access);
                    return;
                }
                Ok(None) => {
                    self.done = true;
                    return;
                }
                Err(fault) => (fault, TracePlace::Byte(0)),
            },
        };
        let read = self.accesses + self.out.len() as u64;
        let what = match fault.then {
            Then::Skip => format!("{}; left out", fault.what),
            Then::Keep => fault.what,
            Then::End => format!("{}; the {read} accesses before it stand", fault.what),
        };
        let ended = fault.then == Then::End;
        self.done |= ended;
        self.problems.add(&self.path, place, what, ended);
    }
}
