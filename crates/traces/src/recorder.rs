//! Recorder, as the text that recorder2text prints, a file a rank.
//!
//! A line is
//!
//! ```text
//! START END FUNCTION LEVEL TYPE ( ARGUMENT … )
//! ```
//!
//! with the times in seconds. Some versions put a thread's number after the end. An access by descriptor or stream has the file's name in
//! place of the descriptor. Only the name may contain spaces, so it is what remains beside the other arguments. Returned values are not in
//! the text: a read counts with its requested length, and the position of a file follows from these lengths and from seeks. After a seek
//! from the end the position is unknown until the next absolute one.

use std::collections::VecDeque;
use std::path::Path;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;

use crate::fields::{Field, Fields, extent};
use crate::lines::Lines;
use crate::problem::Fault;
use crate::{Access, Names, Operation, Who};

/// True for a line that only recorder2text prints.
pub(crate) fn recognises(line: &str) -> bool {
    Call::parse(line).is_ok_and(|call| call.numbers > 0) && line.ends_with(')')
}

/// A parsed line.
struct Call<'a> {
    start: Field<'a>,
    end: Field<'a>,
    thread: Option<Field<'a>>,
    function: Field<'a>,
    /// Number of numbers between the function and the parenthesis.
    numbers: usize,
    /// The text between the parentheses, and its place.
    arguments: &'a str,
    column: usize,
}

impl<'a> Call<'a> {
    fn parse(line: &'a str) -> Result<Self, Fault> {
        let Some((head, rest)) = line.split_once('(') else {
            return Err(Fault::new(0, "the line has no ( and so no arguments"));
        };
        let Some(arguments) = rest.trim_ascii_end().strip_suffix(')') else {
            return Err(Fault::new(line.len(), "the line does not end with )"));
        };
        let mut fields = Fields::new(head);
        let start = fields.need("the start")?;
        start.seconds("start")?;
        let end = fields.need("the end")?;
        end.seconds("end")?;
        let mut function = fields.need("the function")?;
        let mut thread = None;
        while function.text.bytes().all(|byte| byte.is_ascii_digit()) {
            thread = Some(function);
            function = fields.need("the function")?;
        }
        let mut numbers = 0;
        for field in fields {
            field.signed("level")?;
            numbers += 1;
        }
        Ok(Self {
            start,
            end,
            thread,
            function,
            numbers,
            arguments,
            column: head.len() + 2,
        })
    }

    /// The arguments: `before` of them, the file's name, and `after` of them.
    fn around_name<const B: usize, const A: usize>(
        &self,
    ) -> Result<([Field<'a>; B], &'a str, [Field<'a>; A]), Fault> {
        let fields: Vec<Field<'a>> = Fields::new(self.arguments)
            .map(|field| Field {
                column: field.column + self.column - 1,
                ..field
            })
            .collect();
        let found = fields
            .len()
            .checked_sub(A)
            .filter(|end| *end > B)
            .and_then(|end| {
                let before = fields[..B].try_into().ok()?;
                let after = fields[end..].try_into().ok()?;
                let begin = fields[B].column - self.column;
                let last = fields[end - 1];
                let stop = last.column - self.column + last.text.len();
                Some((before, &self.arguments[begin..stop], after))
            });
        found.ok_or_else(|| {
            Fault::new(
                self.column,
                format!(
                    "{} has {} arguments, and at least {} were expected",
                    self.function.text,
                    fields.len(),
                    A + B + 1
                ),
            )
        })
    }
}

/// The decoder.
pub(crate) struct Recorder {
    rank: i64,
    /// Offset of the next read or write without an offset; `None` if it is unknown.
    positions: FxHashMap<FileId, Option<u64>>,
    /// When the last call began, in ns.
    last: u64,
    /// Accesses with unknown position.
    unplaced: u64,
}

impl Recorder {
    /// `path` is named for the rank: `_text/17.txt`.
    pub(crate) fn new(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let digits = stem.split('.').next().unwrap_or_default();
        Self {
            rank: digits.parse().unwrap_or(0),
            positions: FxHashMap::default(),
            last: 0,
            unplaced: 0,
        }
    }

    /// The extent of `len` bytes at the position of `file`; moves the position past them.
    fn here(&mut self, file: FileId, len: u64) -> Option<u64> {
        let position = self.positions.entry(file).or_insert(Some(0));
        let here = *position;
        *position = here.and_then(|here| here.checked_add(len));
        self.unplaced += u64::from(here.is_none());
        here
    }
}

/// An access that a call makes: the file, the operation, the offset (`None` for the file's position), the length.
type Made<'a> = (&'a str, Operation, Option<u64>, (u64, usize));

/// The access that a call makes, if it makes one.
fn made<'a>(call: &Call<'a>) -> Result<Option<Made<'a>>, Fault> {
    let name = call.function.text;
    let operation = if name.contains("read") {
        Operation::Read
    } else {
        Operation::Write
    };
    Ok(Some(match name {
        "read" | "write" => {
            let ([], file, [_, len]) = call.around_name()?;
            let len = (len.unsigned("length")?, len.column);
            (file, operation, None, len)
        }
        "readv" | "writev" => {
            let ([], file, [len, _]) = call.around_name()?;
            let len = (len.unsigned("length")?, len.column);
            (file, operation, None, len)
        }
        "pread" | "pread64" | "pwrite" | "pwrite64" => {
            let ([], file, [_, len, offset]) = call.around_name()?;
            let offset = offset.unsigned("offset")?;
            let len = (len.unsigned("length")?, len.column);
            (file, operation, Some(offset), len)
        }
        "fread" | "fwrite" => {
            let ([_, size, count], file, []) = call.around_name()?;
            let len = size.unsigned("size")?.checked_mul(count.unsigned("count")?);
            let len = len.ok_or_else(|| count.fault("is too large a count"))?;
            (file, operation, None, (len, count.column))
        }
        "mmap" | "mmap64" => {
            let ([_, len, _, _], file, [offset]) = call.around_name()?;
            let offset = offset.unsigned("offset")?;
            let len = (len.unsigned("length")?, len.column);
            (file, Operation::Map, Some(offset), len)
        }
        _ => return Ok(None),
    }))
}

impl Lines for Recorder {
    fn line(
        &mut self,
        line: &str,
        raw: u32,
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        let call = Call::parse(line)?;
        let start = call.start.seconds("start")?;
        let took = call.end.seconds("end")?.checked_sub(start);
        let thread = call
            .thread
            .map_or(Ok(0), |thread| thread.unsigned("thread"))?;
        let who = Who::Rank {
            rank: self.rank,
            thread,
        };
        let mut add = |file, operation, extent, names: &mut Names| {
            out.push_back(Access {
                who: names.meet(who.clone())?,
                file,
                operation,
                extent,
                start,
                took,
                raw,
            });
            Ok::<(), Fault>(())
        };
        match call.function.text {
            "open" | "open64" | "creat" | "creat64" | "fopen" | "fopen64" | "fdopen" => {
                // A name with spaces is distinguished from the flags after it, which have none.
                let name = match call.around_name::<0, 2>() {
                    Ok((_, name, [flags, mode]))
                        if flags.signed("flags").is_ok() && mode.signed("mode").is_ok() =>
                    {
                        name
                    }
                    _ => call
                        .around_name::<0, 1>()
                        .map(|(_, name, _)| name)
                        .or_else(|_| call.around_name::<0, 0>().map(|(_, name, _)| name))?,
                };
                let file = names.meet_file(name)?;
                self.positions.insert(file, Some(0));
                add(file, Operation::Open, Default::default(), names)?;
            }
            "lseek" | "lseek64" | "fseek" | "fseeko" => {
                let ([], name, [offset, whence]) = call.around_name()?;
                let file = names.meet_file(name)?;
                let by = offset.signed("offset")?;
                let position = self.positions.entry(file).or_insert(Some(0));
                *position = match whence.text {
                    "0" | "SEEK_SET" => u64::try_from(by).ok(),
                    "1" | "SEEK_CUR" => position.and_then(|here| here.checked_add_signed(by)),
                    _ => None,
                };
            }
            _ => {
                if let Some((name, operation, offset, (len, column))) = made(&call)? {
                    let file = names.meet_file(name)?;
                    let offset = offset.or_else(|| self.here(file, len));
                    if let Some(offset) = offset {
                        add(file, operation, extent(offset, len, column)?, names)?;
                    }
                }
            }
        }
        let before = std::mem::replace(&mut self.last, start);
        if took.is_none() {
            return Err(call.end.kept("is an end before the start"));
        }
        if start < before {
            return Err(call.start.kept("is a start before that of the line before"));
        }
        Ok(())
    }

    fn left_out(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.unplaced > 0 {
            said.push(format!(
                "{} accesses after a seek from the end of a file, whose size the trace does not have",
                self.unplaced
            ));
        }
        said
    }
}
