//! Darshan DXT, as the text that darshan-dxt-parser prints.
//!
//! The accesses of one rank to one file stand together, below comments that name the file, the rank and how many there
//! are: first the writes, then the reads. A line is
//!
//! ```text
//! MODULE RANK write|read SEGMENT OFFSET LENGTH START END [OST …] [THREAD]
//! ```
//!
//! with the times in seconds since the job began. The accesses of a program with MPI-IO may be there twice: as the program made them
//! (`X_MPIIO`) and as they reached the file system (`X_POSIX`). The list that comes first is read, which is POSIX if there is one.

use std::collections::VecDeque;

use foreread_plan::FileId;

use crate::fields::{Fields, extent};
use crate::lines::Lines;
use crate::problem::{Fault, quoted};
use crate::{Access, Names, Operation, Who};

/// Prefix of a file's name.
const FILE: &str = ", file_name: ";

/// True for a line that only DXT text has.
pub(crate) fn recognises(line: &str) -> bool {
    line.starts_with("# DXT,") || line.starts_with("# darshan log version:")
}

/// The decoder.
#[derive(Default)]
pub(crate) struct Dxt {
    /// The file of the following accesses.
    file: Option<FileId>,
    /// Accesses that a comment has announced.
    announced: u64,
    /// Number of these accesses so far.
    came: u64,
    /// The operation of the next access, if it is the first of its list.
    first: Option<Operation>,
    /// When the last access began, in ns.
    last: u64,
    /// The module whose accesses are read.
    module: Option<Box<str>>,
    /// Accesses of another module.
    other: u64,
}

impl Dxt {
    fn comment(&mut self, comment: &str, names: &mut Names) -> Result<(), Fault> {
        if comment.starts_with("file_id: ") {
            let missing = self.missing();
            self.file = match comment.split_once(FILE) {
                Some((_, name)) => Some(names.meet_file(name)?),
                None => None,
            };
            (self.announced, self.came, self.first) = (0, 0, None);
            return missing;
        }
        if let Some(counts) = comment.strip_prefix("write_count: ") {
            let mut sum = 0u64;
            for count in counts.split(", read_count: ") {
                let count = crate::fields::unsigned(count.trim_ascii())
                    .map_err(|_| Fault::new(0, format!("{} is not a count", quoted(count))))?;
                sum = sum.saturating_add(count);
            }
            self.announced = sum;
        }
        Ok(())
    }

    /// A fault where fewer accesses came than were announced.
    fn missing(&self) -> Result<(), Fault> {
        if self.came < self.announced {
            return Err(Fault::kept(
                0,
                format!(
                    "{} accesses to a file were announced before this place, and {} came",
                    self.announced, self.came
                ),
            ));
        }
        Ok(())
    }
}

impl Lines for Dxt {
    fn line(
        &mut self,
        line: &str,
        raw: u32,
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        if let Some(comment) = line.strip_prefix('#') {
            let comment = comment.trim_ascii_start();
            return match comment.strip_prefix("DXT, ") {
                Some(comment) => self.comment(comment, names),
                None => Ok(()),
            };
        }
        let mut fields = Fields::new(line);
        let Some(module) = fields.next() else {
            return Ok(());
        };
        if !module.text.starts_with("X_") {
            return Err(module.fault("is no module of DXT, such as X_POSIX"));
        }
        self.came += 1;
        let read = self.module.get_or_insert_with(|| module.text.into());
        if **read != *module.text {
            self.other += 1;
            return Ok(());
        }
        let Some(file) = self.file else {
            return Err(Fault::new(0, "no comment before it names the file"));
        };
        let rank = fields.need("the rank")?.signed("rank")?;
        let word = fields.need("read or write")?;
        let operation = match word.text {
            "read" => Operation::Read,
            "write" => Operation::Write,
            _ => return Err(word.fault("is neither read nor write")),
        };
        fields.need("the segment")?.unsigned("segment")?;
        let offset = fields.need("the offset")?.unsigned("offset")?;
        let len = fields.need("the length")?;
        let extent = extent(offset, len.unsigned("length")?, len.column)?;
        let begin = fields.need("the start")?;
        let start = begin.seconds("start")?;
        let end = fields.need("the end")?;
        let took = end.seconds("end")?.checked_sub(start);
        let thread = match fields.last() {
            Some(last) if last.text != "N/A" && !last.text.starts_with('[') => {
                last.unsigned("thread")?
            }
            _ => 0,
        };
        out.push_back(Access {
            who: names.meet(Who::Rank { rank, thread })?,
            file,
            operation,
            extent,
            start,
            took,
            raw,
        });
        let goes_on = self.first.replace(operation) == Some(operation);
        let before = std::mem::replace(&mut self.last, start);
        if took.is_none() {
            return Err(end.kept("is an end before the start"));
        }
        if goes_on && start < before {
            return Err(begin.kept("is a start before that of the access before"));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.missing()
    }

    fn left_out(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.other > 0 {
            let module = self.module.as_deref().unwrap_or_default();
            said.push(format!(
                "{} accesses of another module than {module}: the same, seen at another level",
                self.other
            ));
        }
        said
    }
}
