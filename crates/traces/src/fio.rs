//! fio iologs, as `write_iolog` writes them, of version 2 and 3.
//!
//! A line is `FILE ACTION` or `FILE ACTION OFFSET LENGTH`, in version 3 after a time in µs. A name may contain spaces, so a line is parsed
//! from its end. Version 2 has no times except the sums of its `wait` lines.

use std::collections::VecDeque;
use std::path::Path;

use foreread_plan::{Extent, FileId};

use crate::fields::{Field, Fields, extent};
use crate::lines::Lines;
use crate::problem::{Fault, quoted};
use crate::{Access, Names, Operation, Who};

const MICROSECOND: u64 = 1000;

/// True if a trace with this first line is an iolog.
pub(crate) fn recognises(first: &str) -> bool {
    version(first).is_some()
}

fn version(line: &str) -> Option<&str> {
    line.trim_ascii_end()
        .strip_prefix("fio version ")?
        .strip_suffix(" iolog")
}

/// The decoder.
pub(crate) struct Fio {
    job: String,
    version: Option<u8>,
    /// ns into the job.
    now: u64,
}

impl Fio {
    pub(crate) fn new(path: &Path) -> Self {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        Self {
            job: name.to_string_lossy().into_owned(),
            version: None,
            now: 0,
        }
    }

    fn access(
        &self,
        action: &Action<'_>,
        file: FileId,
        raw: u32,
        who: crate::WhoId,
    ) -> Option<Access> {
        let (operation, extent) = match *action {
            Action::Open => (Operation::Open, Extent::default()),
            Action::Read(extent) => (Operation::Read, extent),
            Action::Write(extent) => (Operation::Write, extent),
            Action::Wait(_) | Action::Other => return None,
        };
        Some(Access {
            who,
            file,
            operation,
            extent,
            start: self.now,
            took: None,
            raw,
        })
    }
}

/// The action of a line.
enum Action<'a> {
    Open,
    Read(Extent),
    Write(Extent),
    /// For this many µs.
    Wait(Field<'a>),
    /// Neither a read nor a write.
    Other,
}

/// The file's name and the action, from a line without its time.
fn parse<'a>(line: &'a str, fields: &[Field<'a>]) -> Result<(&'a str, Action<'a>), Fault> {
    let name_before = |action: &Field<'_>| {
        let begin = fields[0].column - 1;
        let name = line[begin..action.column - 1].trim_ascii_end();
        if name.is_empty() {
            return Err(action.fault("has no file name before it"));
        }
        Ok(name)
    };
    if let [.., action, offset, len] = fields
        && matches!(
            action.text,
            "read" | "write" | "sync" | "datasync" | "trim" | "wait"
        )
    {
        let place = || {
            let offset = offset.unsigned("offset")?;
            extent(offset, len.unsigned("length")?, len.column)
        };
        let action_of = match action.text {
            "read" => Action::Read(place()?),
            "write" => Action::Write(place()?),
            "wait" => Action::Wait(*offset),
            _ => Action::Other,
        };
        return Ok((name_before(action)?, action_of));
    }
    let Some(action) = fields.last() else {
        return Err(Fault::new(0, "the line is empty"));
    };
    match action.text {
        "open" => Ok((name_before(action)?, Action::Open)),
        "add" | "close" => Ok((name_before(action)?, Action::Other)),
        _ => {
            Err(action
                .fault("ends a line that is neither FILE ACTION nor FILE ACTION OFFSET LENGTH"))
        }
    }
}

impl Lines for Fio {
    fn line(
        &mut self,
        line: &str,
        raw: u32,
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        if let Some(version) = version(line) {
            self.version = match version {
                "2" => Some(2),
                "3" => Some(3),
                _ => {
                    let version = quoted(version);
                    return Err(Fault::end(format!(
                        "an iolog of version {version}; 2 and 3 can be read"
                    )));
                }
            };
            return Ok(());
        }
        let Some(version) = self.version else {
            return Err(Fault::end(
                "no line \"fio version 2 iolog\" or \"fio version 3 iolog\" comes first",
            ));
        };
        let mut fields = Fields::new(line);
        let mut backward = None;
        if version == 3 {
            let field = fields.need("the time")?;
            let time = field.unsigned("time")?.checked_mul(MICROSECOND);
            let time = time.ok_or_else(|| field.fault("is too large a time"))?;
            if time < self.now {
                let before = self.now / MICROSECOND;
                backward = Some(Fault::kept(
                    field.column,
                    format!(
                        "time {} runs backward: the line before has {before}",
                        field.text
                    ),
                ));
            }
            self.now = time;
        }
        let fields: Vec<Field<'_>> = fields.collect();
        let (name, action) = parse(line, &fields)?;
        if let Action::Wait(field) = action {
            let wait = field.unsigned("wait")?.checked_mul(MICROSECOND);
            let then = wait.and_then(|wait| self.now.checked_add(wait));
            self.now = then.ok_or_else(|| field.fault("is too long a wait"))?;
            return Ok(());
        }
        let file = names.meet_file(name)?;
        let who = names.meet(Who::Job(self.job.clone()))?;
        out.extend(self.access(&action, file, raw, who));
        backward.map_or(Ok(()), Err)
    }
}
