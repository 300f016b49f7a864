//! Writing a list.
//!
//! In a list of whole files, each file is written once, at the first read of it. Uses of names are in `csv` and `jsonl` only: the other
//! formats have none.

use std::io::{self, Write};
use std::path::PathBuf;

use foreread_plan::Kind;
use rustc_hash::FxHashSet;

use crate::fio::Log;
use crate::table::Table;
use crate::{Format, Line, jsonl, names};

/// A file that the format cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: &'static str,
}

enum Form<W: Write> {
    Table(Box<Table<W>>),
    Rows(W),
    Log(W, Box<Log>),
    Names(W, Format),
}

/// A list being written.
pub struct Writer<W: Write> {
    form: Form<W>,
    /// Files already seen: for lists of files those written or refused, for others those refused.
    met: FxHashSet<PathBuf>,
    written: u64,
    refused: Vec<Refused>,
}

impl<W: Write> Writer<W> {
    /// Begins a list.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(format: Format, mut out: W) -> io::Result<Self> {
        let form = match format {
            Format::Csv => Form::Table(Box::new(Table::new(out)?)),
            Format::Jsonl => Form::Rows(out),
            Format::Fio => {
                let log = Log::new(&mut out)?;
                Form::Log(out, Box::new(log))
            }
            Format::Soci => {
                out.write_all(b"[")?;
                Form::Names(out, format)
            }
            Format::Vmtouch | Format::Estargz => Form::Names(out, format),
        };
        Ok(Self {
            form,
            met: FxHashSet::default(),
            written: 0,
            refused: Vec::new(),
        })
    }

    /// Writes an access, if the format has such.
    ///
    /// # Errors
    /// The errors of the list's `out`.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        // In a list of whole files a mapping counts as a read.
        let is_read = line.kind.reads() && line.extent.is_none_or(|extent| !extent.is_empty());
        // Files of no size, as in /proc, are in no page cache.
        let has_bytes = (is_read || line.kind == Kind::Map) && line.state.size != Some(0);
        match &mut self.form {
            Form::Table(table) => table.line(line)?,
            Form::Rows(out) => jsonl::write(out, line)?,
            Form::Log(..) if !is_read || line.written => return Ok(()),
            Form::Log(out, log) => {
                if let Some(why) = Log::refuses(&line.path) {
                    self.refuse(line, why);
                    return Ok(());
                }
                log.line(out, line)?;
            }
            Form::Names(..) if !has_bytes || line.written || self.met.contains(&line.path) => {
                return Ok(());
            }
            Form::Names(out, format) => match names::entry(*format, &line.path) {
                Ok(entry) => {
                    if *format == Format::Soci {
                        let between: &[u8] = if self.written == 0 { b"\n  " } else { b",\n  " };
                        out.write_all(between)?;
                    }
                    out.write_all(&entry)?;
                    if *format != Format::Soci {
                        out.write_all(b"\n")?;
                    }
                    self.met.insert(line.path.clone());
                }
                Err(why) => {
                    self.refuse(line, why);
                    return Ok(());
                }
            },
        }
        self.written += 1;
        Ok(())
    }

    fn refuse(&mut self, line: &Line, why: &'static str) {
        if self.met.insert(line.path.clone()) {
            let path = line.path.clone();
            self.refused.push(Refused { path, why });
        }
    }

    /// Lines written: files in lists of files, accesses in others.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Ends the list. Returns the files that it could not hold, and the output.
    ///
    /// # Errors
    /// The errors of the list's `out`.
    pub fn finish(self) -> io::Result<(Vec<Refused>, W)> {
        let mut out = match self.form {
            Form::Table(table) => table.finish()?,
            Form::Rows(out) => out,
            Form::Log(mut out, mut log) => {
                log.finish(&mut out)?;
                out
            }
            Form::Names(mut out, Format::Soci) => {
                out.write_all(b"\n]\n")?;
                out
            }
            Form::Names(out, _) => out,
        };
        out.flush()?;
        Ok((self.refused, out))
    }
}
