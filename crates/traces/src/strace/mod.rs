//! `strace` text, with or without `-f`, `-t`, `-y`, `-T`: each thread's calls, the descriptors they are made with, and
//! the positions of open files, as the kernel keeps them.
//!
//! A call interrupted by another thread's line is in two lines; its text is joined. A child is identified by the result of its parent's
//! clone or, if the child's first line comes earlier, by the clone that has not returned.
//!
//! Invariant: an access is given only where the trace shows its file and its offset. Reads of descriptors that were
//! opened before the trace began are counted, and left out.
//!
//! Data flow: line → [`line`] parses it → the thread's [`Task`] → [`calls`] → accesses.

mod calls;
mod descriptors;
mod line;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::lines::Lines;
use crate::problem::{Fault, quoted};
use crate::{Access, Names, Who, WhoId};
use calls::Doing;
use descriptors::Table;
use line::Call;

/// Limit of threads alive at the same time.
const MAX_TASKS: usize = 1 << 20;
/// The end of a call that has not returned yet.
const UNFINISHED: &str = "<unfinished ...>";
/// strace's message about a new child, in the middle of another line if both go to standard error.
const ATTACHED: &str = "strace: Process ";
/// True for a line that only strace prints.
pub(crate) fn recognises(text: &str) -> bool {
    let Ok(head) = line::head(text) else {
        return false;
    };
    let rest = &text[head.rest..];
    line::name(rest).is_some() && (rest.ends_with(UNFINISHED) || Call::parse(rest, 1).is_ok())
}

/// A call that has not returned.
#[derive(Debug)]
struct Pending {
    text: String,
    /// When it began, in ns.
    start: Option<u64>,
    /// Bytes of its lines.
    raw: u32,
    /// Number of lines before it.
    order: u64,
    /// The child whose lines came before its parent's call returned.
    child: Option<u64>,
}

impl Pending {
    /// True if the call creates a child that is not known yet.
    fn awaits_child(&self) -> bool {
        self.child.is_none() && line::name(&self.text).is_some_and(makes_child)
    }
}

fn makes_child(call: &str) -> bool {
    matches!(call, "clone" | "clone3" | "fork" | "vfork")
}

/// A thread.
#[derive(Debug)]
struct Task {
    pid: u64,
    who: Option<WhoId>,
    table: Table,
    /// The folder that names are relative to; `None` if that is unknown.
    folder: Rc<RefCell<Option<String>>>,
    pending: Option<Pending>,
    /// When its last call began, in ns.
    last: u64,
}

impl Task {
    fn new(pid: u64, table: Table) -> Self {
        Self {
            pid,
            who: None,
            table,
            folder: Rc::default(),
            pending: None,
            last: 0,
        }
    }

    /// A child, created by the call with this text.
    fn child(&self, number: u64, call: &str) -> Result<Self, Fault> {
        let has = |flag| call.contains(flag);
        Ok(Self {
            pid: if has("CLONE_THREAD") {
                self.pid
            } else {
                number
            },
            folder: if has("CLONE_FS") {
                self.folder.clone()
            } else {
                Rc::new(RefCell::new(self.folder.borrow().clone()))
            },
            ..Self::new(
                number,
                if has("CLONE_FILES") {
                    self.table.clone()
                } else {
                    self.table.copy()?
                },
            )
        })
    }
}

/// The decoder.
pub(crate) struct Strace {
    /// By thread. A trace that names none has one, [`Strace::unnamed`].
    tasks: FxHashMap<u64, Task>,
    /// Threads that wait in a call that makes a child which is not known yet, by the order of these calls.
    awaiting: BTreeMap<u64, u64>,
    /// The number of a thread that lines do not name.
    unnamed: u64,
    /// The thread that was the last single one. strace does not name it until it has attached to the child that this thread has created,
    /// perhaps some calls later.
    only: u64,
    /// All tables come from this one.
    tables: Table,
    /// The thread whose line was broken off by a message of strace.
    broken_off: Option<u64>,
    /// The time before, in a trace whose times are differences.
    since: Option<u64>,
    lines: u64,
    /// Reads and writes without a known file or position.
    unplaced: u64,
}

impl Strace {
    /// `path` may be named for the process, as `strace -ff` does: `trace.3177`.
    pub(crate) fn new(path: &Path) -> Self {
        let pid = path.extension().and_then(|end| end.to_str()?.parse().ok());
        Self {
            tasks: FxHashMap::default(),
            awaiting: BTreeMap::new(),
            unnamed: pid.unwrap_or(0),
            only: pid.unwrap_or(0),
            tables: Table::default(),
            broken_off: None,
            since: None,
            lines: 0,
            unplaced: 0,
        }
    }

    /// The thread that a line is of.
    fn thread(&mut self, named: Option<u64>, text: &str) -> Result<u64, Fault> {
        let Some(number) = named else {
            // If only one thread is left, strace stops naming it.
            let mut all = self.tasks.keys();
            if let (Some(only), None) = (all.next(), all.next()) {
                self.only = *only;
            }
            if !self.tasks.contains_key(&self.only) {
                self.only = self.unnamed;
                self.be_there(self.unnamed)?;
            }
            return Ok(self.only);
        };
        if self.tasks.contains_key(&number) {
            return Ok(number);
        }
        // The thread that was not named while it was alone.
        let alone = self.tasks.get(&self.unnamed).filter(|_| self.unnamed == 0);
        let resumes = text.starts_with("<...");
        let awaiting = self.awaiting.first_key_value().map(|(_, parent)| *parent);
        match (alone, awaiting) {
            (_, Some(parent)) if !resumes => self.adopt(parent, number)?,
            (Some(_), _) => {
                let pending = self.resume(self.unnamed);
                if let Some(task) = self.tasks.remove(&self.unnamed) {
                    self.tasks.insert(number, task);
                    self.only = number;
                }
                if let Some(pending) = pending {
                    self.suspend(number, pending);
                }
            }
            _ => self.be_there(number)?,
        }
        Ok(number)
    }

    fn be_there(&mut self, number: u64) -> Result<(), Fault> {
        if !self.tasks.contains_key(&number) {
            let task = Task::new(number, self.tables.beside());
            self.add(number, task)?;
        }
        Ok(())
    }

    fn add(&mut self, number: u64, task: Task) -> Result<(), Fault> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(Fault::end(format!(
                "there are more than {MAX_TASKS} threads at once"
            )));
        }
        self.tasks.insert(number, task);
        Ok(())
    }

    /// Makes the child of a call that has not returned.
    fn adopt(&mut self, parent: u64, number: u64) -> Result<(), Fault> {
        if let Some(mut pending) = self.resume(parent)
            && let Some(task) = self.tasks.get(&parent)
        {
            pending.child = Some(number);
            let child = task.child(number, &pending.text);
            self.suspend(parent, pending);
            self.add(number, child?)?;
        }
        Ok(())
    }

    /// A thread waits in a call.
    fn suspend(&mut self, thread: u64, call: Pending) {
        self.resume(thread);
        if let Some(task) = self.tasks.get_mut(&thread) {
            if call.awaits_child() {
                self.awaiting.insert(call.order, thread);
            }
            task.pending = Some(call);
        }
    }

    /// The call that a thread waits in, which it does no more.
    fn resume(&mut self, thread: u64) -> Option<Pending> {
        let call = self.tasks.get_mut(&thread)?.pending.take()?;
        self.awaiting.remove(&call.order);
        Some(call)
    }

    /// The time of a line, in ns of one clock. With `-r` each line has the time since the previous one, and the first line 0.
    fn time(&mut self, time: Option<u64>) -> Option<u64> {
        let time = time?;
        if self.since.is_none() && (self.lines > 1 || time > 0) {
            return Some(time);
        }
        let now = self.since.unwrap_or(0).saturating_add(time);
        self.since = Some(now);
        Some(now)
    }

    /// A call that has returned, whose text begins at `column` of the line.
    fn returned(
        &mut self,
        thread: u64,
        call: Pending,
        (now, column): (Option<u64>, usize),
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        let parsed = Call::parse(&call.text, column)?;
        let Some(task) = self.tasks.get_mut(&thread) else {
            return Ok(());
        };
        let start = call.start.unwrap_or(0);
        let waited = now.and_then(|now| now.checked_sub(call.start?));
        let took = parsed.took.or(waited.filter(|_| now != call.start));
        if makes_child(parsed.name) {
            let Some(number) = parsed.returned()? else {
                return Ok(());
            };
            if call.child != Some(number) {
                let child = task.child(number, &call.text)?;
                self.add(number, child)?;
            }
            return Ok(());
        }
        let who = match task.who {
            Some(who) => who,
            None => {
                let who = names.meet(Who::Process {
                    pid: task.pid,
                    thread,
                })?;
                *task.who.insert(who)
            }
        };
        let done = Doing {
            task,
            call: &parsed,
            names,
            out,
            unplaced: &mut self.unplaced,
            access: Access {
                who,
                file: foreread_plan::FileId(0),
                operation: crate::Operation::Open,
                extent: Default::default(),
                start,
                took,
                raw: call.raw,
            },
        }
        .act();
        let before = std::mem::replace(&mut task.last, start);
        done?;
        if start < before {
            return Err(Fault::kept(
                0,
                format!(
                    "time runs backward: the call begins at {start} ns, the one before it at {before} ns"
                ),
            ));
        }
        Ok(())
    }
}

impl Lines for Strace {
    fn line(
        &mut self,
        line: &str,
        raw: u32,
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        self.lines += 1;
        let head = line::head(line)?;
        let text = line[head.rest..].trim_ascii_end();
        let message = ["strace: ", "[ Process PID=", "Process ", "--- "];
        if text.is_empty() || message.iter().any(|begin| text.starts_with(begin)) {
            return Ok(());
        }
        let column = head.rest + 1;
        let goes_on = head.thread.is_none() && head.time.is_none() && line::name(text).is_none();
        if let Some(thread) = self.broken_off.take_if(|_| goes_on) {
            let now = self.tasks.get(&thread).map(|task| task.last);
            return self.go_on(thread, text, raw, (now, column), names, out);
        }
        let thread = self.thread(head.thread, text)?;
        let now = self.time(head.time);
        if text.starts_with("+++ ") {
            self.resume(thread);
            self.tasks.remove(&thread);
            return Ok(());
        }
        if let Some(resumed) = text.strip_prefix("<... ") {
            let Some((_, rest)) = resumed.split_once(" resumed>") else {
                return Err(Fault::new(column, format!("{} is no call", quoted(text))));
            };
            return self.go_on(thread, rest, raw, (now, column), names, out);
        }
        if line::name(text).is_none() {
            return Err(Fault::new(
                column,
                format!("{} is no system call", quoted(text)),
            ));
        }
        let call = |text: &str| Pending {
            text: text.to_owned(),
            start: now,
            raw,
            order: self.lines,
            child: None,
        };
        let (text, broken_off) = match text.split_once(ATTACHED) {
            Some((before, after)) if after.ends_with(" attached") => (before, true),
            _ => (text, false),
        };
        if let Some(begun) = text.strip_suffix(UNFINISHED).or(broken_off.then_some(text)) {
            let call = call(begun);
            self.suspend(thread, call);
            self.broken_off = broken_off.then_some(thread);
            return Ok(());
        }
        self.returned(thread, call(text), (now, column), names, out)
    }

    fn left_out(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.unplaced > 0 {
            said.push(format!(
                "{} reads and writes whose file or position the trace does not show: of descriptors that were opened \
                 before it began, or at the end of a file",
                self.unplaced
            ));
        }
        let waiting = |task: &&Task| task.pending.is_some();
        let unreturned = self.tasks.values().filter(waiting).count();
        if unreturned > 0 {
            said.push(format!(
                "{unreturned} calls that had not returned when the trace ended"
            ));
        }
        said
    }
}

impl Strace {
    /// The rest of a call whose beginning is in an earlier line.
    fn go_on(
        &mut self,
        thread: u64,
        rest: &str,
        raw: u32,
        (now, column): (Option<u64>, usize),
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault> {
        let Some(mut call) = self.resume(thread) else {
            return Err(Fault::new(
                column,
                format!("no call of {thread} had begun before this line goes on with one"),
            ));
        };
        call.raw = call.raw.saturating_add(raw);
        let begun = rest.strip_suffix(UNFINISHED);
        call.text.push_str(begun.unwrap_or(rest));
        if begun.is_some() {
            self.suspend(thread, call);
            return Ok(());
        }
        // The columns of a call that stands in two lines are those of neither.
        self.returned(thread, call, (now, column), names, out)
            .map_err(|fault| Fault { column: 0, ..fault })
    }
}

impl From<descriptors::Full> for Fault {
    fn from(descriptors::Full: descriptors::Full) -> Self {
        Fault::end("there are more than 1048576 open descriptors at once")
    }
}
