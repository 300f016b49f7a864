//! The events of a trace: which process used which file, when.
//!
//! An event is the opening of a file, the start of a program, or a read or mapping of a file that the process has not used lately. The last
//! kind covers files without an open in the trace, such as the libraries of a program that was observed from its main function on.
//!
//! Invariant: a trace is read once, front to back, and the number of remembered names and processes is bounded.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use anyhow::{Result, bail};
use foreread_plan::format::Reader;
use foreread_plan::{FileId, Kind as Call};
use foreread_sources::files::{Context, Identity, Symbol, SymbolKind, Symbols};
use foreread_traces::{Format, Names, Operation, Trace, Who, WhoId};
use foreread_words::plain;

/// Files remembered per process.
const REMEMBERED: usize = 64;
/// Processes whose files are remembered.
const PROCESSES: usize = 1 << 16;
/// Suffix of foreread's records.
const RECORD: &str = "fr";

/// One event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) context: Context,
    pub(super) symbol: Symbol,
    pub(super) kind: SymbolKind,
    /// Size of the file in bytes, as far as the trace shows it.
    pub(super) size: Option<u64>,
    /// Time in ns since the beginning of the trace; `None` in a trace without times.
    pub(super) time: Option<u64>,
}

/// A trace after reading.
#[derive(Debug, serde::Serialize)]
pub(super) struct TraceRead {
    pub(super) path: String,
    pub(super) events: u64,
    /// Problems of the trace, in sentences.
    pub(super) problems: Vec<String>,
}

/// The files that each process used lately.
#[derive(Default)]
struct Visits {
    processes: HashMap<Context, VecDeque<FileId>>,
}

impl Visits {
    /// True if this use is an event. An open (`announced`) always is.
    fn new_to(&mut self, context: Context, file: FileId, announced: bool) -> bool {
        if self.processes.len() >= PROCESSES && !self.processes.contains_key(&context) {
            self.processes.clear();
        }
        let files = self.processes.entry(context).or_default();
        let known = files.contains(&file);
        if !known {
            if files.len() == REMEMBERED {
                files.pop_front();
            }
            files.push_back(file);
        }
        announced || !known
    }
}

/// Reads a trace or a record, and passes on its events.
pub(super) fn read(
    path: &Path,
    symbols: &mut Symbols,
    take: &mut dyn FnMut(Event),
) -> Result<TraceRead> {
    let record = path.extension().is_some_and(|end| end == RECORD);
    if record {
        of_record(path, symbols, take)
    } else {
        of_trace(path, symbols, take)
    }
}

fn of_trace(path: &Path, symbols: &mut Symbols, take: &mut dyn FnMut(Event)) -> Result<TraceRead> {
    let mut trace = Trace::open(path, None)?;
    // fio logs have no processes, and most name only one file.
    if trace.format() == Format::Fio {
        bail!(
            "{}: a fio iolog does not say which file follows which",
            path.display()
        );
    }
    let mut names = Names::new();
    let mut visits = Visits::default();
    let mut numbers: Vec<[Option<Symbol>; 2]> = Vec::new();
    let mut sizes: HashMap<FileId, u64> = HashMap::new();
    let mut first = None;
    let mut told = TraceRead::of(path);
    while let Some(access) = trace.next(&mut names) {
        let end = access.extent.end();
        if end > 0 {
            let size = sizes.entry(access.file).or_default();
            *size = end.max(*size);
        }
        let kind = match access.operation {
            Operation::Start => SymbolKind::Start,
            Operation::Write => continue,
            Operation::Open | Operation::Read | Operation::Map => SymbolKind::File,
        };
        let context = context(&names, access.who);
        let announced = !access.operation.has_bytes();
        if !visits.new_to(context, access.file, announced) {
            continue;
        }
        let place = access.file.0 as usize;
        if numbers.len() <= place {
            numbers.resize(place + 1, [None; 2]);
        }
        let symbol = *numbers[place][kind as usize]
            .get_or_insert_with(|| symbols.meet(kind, Path::new(names.file(access.file)), None));
        // In a trace without times all accesses have the same time.
        let time = (access.start > 0).then_some(access.start);
        first = first.or(time);
        told.events += 1;
        take(Event {
            context,
            symbol,
            kind,
            size: sizes.get(&access.file).copied(),
            time: time
                .zip(first)
                .map(|(time, first)| time.saturating_sub(first)),
        });
    }
    let problems = trace.problems().kept().iter();
    told.problems = problems.map(|one| plain(&one.to_string())).collect();
    told.checked()
}

/// The process of an access, for all its threads.
fn context(names: &Names, who: WhoId) -> Context {
    match names.who(who) {
        Some(Who::Process { pid, .. }) => Context(*pid),
        Some(Who::Rank { rank, .. }) => Context(*rank as u64),
        Some(Who::Job(_)) | None => Context(who.0.into()),
    }
}

fn of_record(path: &Path, symbols: &mut Symbols, take: &mut dyn FnMut(Event)) -> Result<TraceRead> {
    let mut reader = Reader::open(path)?;
    let files = reader.shared_files();
    let threads = reader.threads().clone();
    let mut visits = Visits::default();
    let mut started: HashMap<Context, String> = HashMap::new();
    let mut told = TraceRead::of(path);
    while let Some(access) = reader.next_access() {
        let access = match access {
            Ok(access) => access,
            Err(error) => {
                told.problems.push(plain(&error.to_string()));
                break;
            }
        };
        let Some(file) = files.get(&access.file) else {
            continue;
        };
        // Looking up a name or listing a folder opens no file.
        let looks = access.kind.names() && access.kind != Call::Open;
        if looks || file.directory {
            continue;
        }
        let thread = threads.get(&access.thread);
        let context = Context(thread.map_or(0, |thread| thread.pid.into()));
        let mut event = |kind, path: &Path, identity, size| {
            told.events += 1;
            take(Event {
                context,
                symbol: symbols.meet(kind, path, identity),
                kind,
                size,
                time: Some(access.start),
            });
        };
        // The record has the last program of each process: one start per process.
        if let Some(exe) = thread.map(|thread| &thread.exe)
            && started.get(&context) != Some(exe)
        {
            if started.len() >= PROCESSES {
                started.clear();
            }
            started.insert(context, exe.clone());
            event(SymbolKind::Start, Path::new(exe), None, None);
        }
        if visits.new_to(context, access.file, access.kind == Call::Open) {
            let identity = Identity {
                device: file.dev,
                inode: file.ino,
                made: 0,
            };
            let identity = (file.ino != 0).then_some(identity);
            event(SymbolKind::File, &file.path, identity, Some(file.size));
        }
    }
    told.checked()
}

impl TraceRead {
    fn of(path: &Path) -> Self {
        Self {
            path: path.display().to_string(),
            events: 0,
            problems: Vec::new(),
        }
    }

    /// A trace in which nothing could be read is an error.
    fn checked(self) -> Result<Self> {
        match self.problems.first() {
            Some(first) if self.events == 0 => {
                bail!("{first} (nothing else in the trace could be read)")
            }
            _ => Ok(self),
        }
    }
}
