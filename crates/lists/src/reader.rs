//! Reading a list.
//!
//! Invariant: a line takes at most [`LINE`] bytes of memory, a list of SOCI, which is one value, [`ARRAY`].

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::rc::Rc;

use crate::fault::Fault;
use crate::table::{self, Rows};
use crate::{Format, Line, jsonl, names};

/// Bytes of a line.
const LINE: u64 = 1 << 20;
/// Bytes of a list of SOCI.
const ARRAY: u64 = 256 << 20;

/// A list, a line at a time.
pub struct Lines<R: BufRead> {
    form: Form<R>,
    is_over: bool,
}

enum Form<R: BufRead> {
    Table(Box<Rows<Bounded<R>>>, Rc<Cell<u64>>),
    Text {
        input: R,
        format: Format,
        /// The byte that ends a line.
        end: Option<u8>,
        line: Vec<u8>,
        number: u64,
    },
    /// Present after the array was read.
    Array(R, Option<std::vec::IntoIter<Result<PathBuf, Fault>>>),
}

impl<R: BufRead> Lines<R> {
    /// Reads a list of this format; `None` for fio, which `foreread-traces` reads.
    pub fn new(format: Format, input: R) -> Option<Self> {
        let form = match format {
            Format::Fio => return None,
            Format::Csv => {
                let taken = Rc::new(Cell::new(0));
                let input = Bounded {
                    input,
                    taken: Rc::clone(&taken),
                };
                Form::Table(Box::new(Rows::new(input)), taken)
            }
            Format::Soci => Form::Array(input, None),
            Format::Vmtouch | Format::Estargz | Format::Jsonl => Form::Text {
                input,
                format,
                end: None,
                line: Vec::new(),
                number: 0,
            },
        };
        Some(Self {
            form,
            is_over: false,
        })
    }

    /// The format of a list with this beginning; `None` if it cannot be detected.
    pub fn format_of(head: &[u8]) -> Option<Format> {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
        let begin = head.trim_ascii_start();
        match begin.first()? {
            b'[' if matches!(
                begin[1..].trim_ascii_start().first(),
                None | Some(b'"' | b']')
            ) =>
            {
                Some(Format::Soci)
            }
            b'{' => {
                let object = begin.split(|byte| *byte == b'\n').next().unwrap_or(begin);
                let value: serde_json::Value = serde_json::from_slice(object).ok()?;
                if value.get("path_bytes").is_some() {
                    return Some(Format::Jsonl);
                }
                let path = value.get("path")?.as_str()?;
                let of_image = ["manifestDigest", "layerIndex"];
                let is_of_image = of_image.iter().any(|name| value.get(name).is_some());
                Some(match is_of_image || !path.starts_with('/') {
                    true => Format::Estargz,
                    false => Format::Jsonl,
                })
            }
            _ if table::recognises(first) => Some(Format::Csv),
            // Each complete line is an absolute path.
            b'/' => {
                let end = if head.contains(&0) { 0 } else { b'\n' };
                let mut lines = head.split(|byte| *byte == end);
                let is_path = |line: &[u8]| line.is_empty() || line.starts_with(b"/");
                lines.all(is_path).then_some(Format::Vmtouch)
            }
            _ => None,
        }
    }

    /// The next access; `None` at the end. Empty lines are skipped.
    fn step(&mut self) -> Option<Result<Line, Fault>> {
        match &mut self.form {
            Form::Table(rows, taken) => {
                taken.set(0);
                rows.next()
            }
            Form::Text {
                input,
                format,
                end,
                line,
                number,
            } => loop {
                let end = *end.get_or_insert_with(|| {
                    let head = input.fill_buf().unwrap_or_default();
                    let by_zero = *format == Format::Vmtouch && head.contains(&0);
                    if by_zero { 0 } else { b'\n' }
                });
                line.clear();
                *number += 1;
                match input.by_ref().take(LINE).read_until(end, line) {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(why) => return Some(Err(Fault::end(*number, why))),
                }
                if line.last() == Some(&end) {
                    line.pop();
                } else if line.len() as u64 == LINE {
                    let why = format!("the line is longer than {LINE} bytes");
                    return Some(Err(Fault::end(*number, why)));
                }
                if line.is_empty() {
                    continue;
                }
                let read = match format {
                    Format::Jsonl => jsonl::read(line),
                    Format::Estargz => names::of_estargz(line).map(Line::whole),
                    _ => names::of_vmtouch(line).map(Line::whole),
                };
                return Some(read.map_err(|what| Fault::line(*number, what)));
            },
            Form::Array(input, read) => {
                if read.is_none() {
                    let mut text = Vec::new();
                    if let Err(why) = input.by_ref().take(ARRAY).read_to_end(&mut text) {
                        return Some(Err(Fault::end(0, why)));
                    }
                    *read = Some(names::of_soci(&text).into_iter());
                }
                let path = read.as_mut()?.next()?;
                Some(path.map(Line::whole))
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.step();
        self.is_over = match &next {
            None => true,
            Some(Err(fault)) => fault.is_end,
            Some(Ok(_)) => false,
        };
        next
    }
}

/// An input that ends with an error at a row that is too long: an unclosed quotation mark would otherwise consume everything.
struct Bounded<R> {
    input: R,
    /// Bytes since the last row.
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken.get() > LINE {
            let why = format!("the row is longer than {LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let count = self.input.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}
