//! `foreread import`: makes a list, a trace or a record from elsewhere the record of a command.
//!
//! A record keeps its times and its remarks about its run. The times of a list or a trace are of unknown origin, and it may be incomplete.
//! Its record is marked `partial` and `imported`, so it is not given up for reads that it does not have.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use foreread_lists::{FileState, Format, Line, Lines};
use foreread_plan::format::{MAX_ID, Place, Reader};
use foreread_plan::{Access, Extent, FileId, Kind, PathMap, Summary, ThreadId, ThreadMeta};
use foreread_run::Making;
use foreread_traces::{Names, Operation, Trace, Who};
use foreread_words::{counted, plain, shown};
use rustc_hash::FxHashMap;

use super::here::{Here, Wanted};
use super::{From, Goal, say_left_out};
use crate::args;
use crate::chosen::or_underway_at;
use crate::command_line::short_command_line;
use crate::output::output;

/// First bytes of a record.
const MAGIC: &[u8] = b"FOREREAD";
/// Bytes by which a format is detected.
const HEAD: usize = 64 << 10;

/// The imported data.
enum Source {
    Record(Box<Reader>),
    List(Format, BufReader<File>),
    Trace(Box<Trace>),
}

impl Source {
    /// Opens a file in this format, or in the detected one.
    fn open(path: &Path, from: Option<From>) -> Result<Self> {
        let file = File::open(path)
            .with_context(|| path.display().to_string())
            .map_err(|why| or_underway_at(path, why))?;
        let is_pipe = !file.metadata().is_ok_and(|meta| meta.is_file());
        let mut input = BufReader::with_capacity(HEAD, file);
        let from = match from {
            Some(from) => from,
            None => {
                let head = input.fill_buf();
                let head = head.with_context(|| path.display().to_string())?;
                if head.is_empty() {
                    bail!("{}: the file is empty", path.display());
                }
                if head.starts_with(MAGIC) {
                    From::Record
                } else {
                    match Lines::<BufReader<File>>::format_of(head) {
                        Some(list) => From::List(list),
                        // Standard input cannot be read twice.
                        None if is_pipe => bail!(
                            "{}: say what it is, by --from: a pipe is read once",
                            path.display()
                        ),
                        // The trace readers know this format, or name the first bytes in their error.
                        None => return Ok(Self::Trace(Box::new(Trace::open(path, None)?))),
                    }
                }
            }
        };
        Ok(match from {
            From::Record => Self::Record(Box::new(Reader::open(path)?)),
            From::List(format) => Self::List(format, input),
            From::Trace(format) => Self::Trace(Box::new(Trace::open(path, Some(format))?)),
        })
    }

    /// Its format in words.
    fn title(&self) -> String {
        match self {
            Self::Record(_) => "a record".to_owned(),
            Self::List(Format::Estargz, _) => "an estargz list".to_owned(),
            Self::List(format, _) => format!("a {format} list"),
            Self::Trace(trace) => format!("a trace ({})", trace.format()),
        }
    }
}

/// Imports the file asked for.
pub(crate) fn import(args: &args::travel::Import) -> Result<ExitCode> {
    let path = match args.file == Path::new("-") {
        true => Path::new("/dev/stdin"),
        false => &args.file,
    };
    let source = Source::open(path, args.from)?;
    let map = args.mapped.all();
    let own = match &source {
        Source::Record(reader) => Some(map.identity(&reader.meta().identity)),
        _ if args.command.is_empty() => bail!(
            "{}: {} does not say which command reads it: foreread import {} -- COMMAND",
            path.display(),
            source.title(),
            path.display()
        ),
        _ => None,
    };
    let goal =
        Goal::of(&args.command, own, args.output.as_deref()).context("nothing is imported")?;
    let title = source.title();
    let mut importing = Importing::new(&goal.place, &goal, map)?;
    let (summary, problems) = match source {
        Source::Record(mut reader) => (importing.record(&mut reader)?, Vec::new()),
        Source::List(format, input) => {
            let problems = importing.list(path, format, input)?;
            (importing.of_list(&title), problems)
        }
        Source::Trace(trace) => {
            let problems = importing.trace(*trace)?;
            (importing.of_list(&title), problems)
        }
    };
    say_left_out(&problems, ("line", "lines"));
    let fit = importing.here.fit;
    say_left_out(&fit.left_out, ("file", "files"));
    if importing.accesses == 0 {
        let stays = match goal.place.is_taken() {
            true => "; the record that is there stays as it is",
            false => "",
        };
        bail!(
            "{}: nothing in it can be followed here: {}{stays}",
            path.display(),
            fit.in_words()
        );
    }
    importing.making.end(summary)?.take_place()?;
    goal.settle()?;
    let mut out = output();
    let name = shown(&args.file.to_string_lossy()).into_owned();
    writeln!(out, "{name}: {title}; {}", fit.in_words())?;
    let accesses = counted(importing.accesses, "access", "accesses");
    let command = short_command_line(&goal.identity);
    match &goal.store {
        Some(_) => writeln!(out, "{accesses}, followed by: foreread run -- {command}")?,
        None => writeln!(
            out,
            "{accesses}, in {}",
            shown(&goal.place.path().to_string_lossy())
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A record while it is made of imported data.
struct Importing {
    making: Making,
    here: Here,
    exe: String,
    threads: FxHashMap<(u32, u32), ThreadId>,
    accesses: u64,
}

impl Importing {
    fn new(place: &Place, goal: &Goal, map: PathMap) -> Result<Self> {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Ok(Self {
            making: Making::new(place, goal.meta())?,
            here: Here::new(map, folder),
            exe: goal.identity.exe.clone(),
            threads: FxHashMap::default(),
            accesses: 0,
        })
    }

    /// The foot of a record made of a list: times of unknown origin, and perhaps incomplete.
    fn of_list(&self, title: &str) -> Summary {
        Summary {
            partial: true,
            imported: Some(title.to_owned()),
            ..Summary::default()
        }
    }

    /// The number of a thread; the first thread's, if there are more than a record can have.
    fn thread(&mut self, pid: u32, tid: u32) -> Result<ThreadId> {
        if let Some(&known) = self.threads.get(&(pid, tid)) {
            return Ok(known);
        }
        let number = self.threads.len() as u32;
        if number >= MAX_ID {
            return Ok(ThreadId(0));
        }
        let meta = ThreadMeta {
            pid,
            tid,
            ppid: 0,
            exe: self.exe.clone(),
        };
        self.making.thread(ThreadId(number), &meta)?;
        self.threads.insert((pid, tid), ThreadId(number));
        Ok(ThreadId(number))
    }

    fn access(&mut self, access: &Access) -> Result<()> {
        self.accesses += 1;
        self.making.access(access)
    }

    /// Imports a record. Returns its foot, adapted to this machine.
    fn record(&mut self, reader: &mut Reader) -> Result<Summary> {
        let read = |reader: &mut Reader| -> Result<std::collections::HashSet<FileId>> {
            let mut read = std::collections::HashSet::new();
            for access in reader.accesses() {
                let access = access?;
                if access.kind.reads() {
                    read.insert(access.file);
                }
            }
            reader.rewind();
            Ok(read)
        };
        let read = read(reader)?;
        let mut found: FxHashMap<FileId, FileId> = FxHashMap::default();
        let files: Vec<_> = reader
            .files()
            .iter()
            .map(|(id, meta)| (*id, meta.clone()))
            .collect();
        // A file that the run wrote itself is not followed.
        for (id, meta) in files.iter().filter(|(_, meta)| !meta.written) {
            let wanted = Wanted {
                path: &meta.path,
                state: FileState {
                    size: Some(meta.size),
                    mtime_ns: Some(meta.mtime_ns),
                },
                advice: meta.advice,
                written: false,
                is_read: read.contains(id),
            };
            if let Some(here) = self.here.find(&wanted, &mut self.making)? {
                found.insert(*id, here);
            }
        }
        for (&id, meta) in reader.threads() {
            self.making.thread(id, meta)?;
        }
        for access in reader.accesses() {
            let access = access?;
            if let Some(&file) = found.get(&access.file) {
                self.accesses += 1;
                self.making.access(&Access { file, ..access })?;
            }
        }
        Ok(reader.summary().cloned().unwrap_or_default())
    }

    /// Imports a list. Returns its problems.
    fn list(&mut self, path: &Path, format: Format, input: BufReader<File>) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let lines = Lines::new(format, input).context("lists of fio are traces")?;
        for line in lines {
            match line {
                Ok(line) => self.line(&line)?,
                Err(fault) => problems.push(format!("{}: {fault}", path.display())),
            }
        }
        Ok(problems)
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        let wanted = Wanted {
            path: &line.path,
            state: line.state,
            advice: line.advice,
            written: line.written,
            is_read: line.kind.reads(),
        };
        let Some(file) = self.here.find(&wanted, &mut self.making)? else {
            return Ok(());
        };
        let size = self.here.size(file);
        let extent = match line.kind.names() {
            true => Extent::default(),
            false => line.extent.unwrap_or(Extent::new(0, size)).clipped(size),
        };
        if line.kind.reads() && extent.is_empty() {
            return Ok(());
        }
        let thread = self.thread(line.pid, line.tid)?;
        self.access(&Access {
            file,
            extent,
            thread,
            kind: line.kind,
            start: line.start_ns,
            took: line.took_ns,
        })
    }

    /// Imports a trace. Returns its problems.
    fn trace(&mut self, mut trace: Trace) -> Result<Vec<String>> {
        let mut names = Names::new();
        let mut first = None;
        while let Some(access) = trace.next(&mut names) {
            let kind = match access.operation {
                Operation::Open | Operation::Start => Kind::Open,
                Operation::Read => Kind::Pread,
                Operation::Map => Kind::Map,
                Operation::Write => continue,
            };
            let name = names.file(access.file);
            let number = |number: u64| u32::try_from(number).unwrap_or(0);
            let (pid, tid) = match names.who(access.who) {
                Some(Who::Process { pid, thread }) => (number(*pid), number(*thread)),
                Some(Who::Rank { rank, thread }) => {
                    (u32::try_from(*rank).unwrap_or(0), number(*thread))
                }
                Some(Who::Job(_)) | None => (0, 0),
            };
            let begin = *first.get_or_insert(access.start);
            let line = Line {
                extent: Some(access.extent),
                kind,
                start_ns: access.start.saturating_sub(begin),
                took_ns: access.took.unwrap_or(0),
                pid,
                tid,
                ..Line::whole(PathBuf::from(OsStr::new(name)))
            };
            self.line(&line)?;
        }
        let problems = trace.problems();
        let kept = problems.kept().iter().map(|one| plain(&one.to_string()));
        let mut said: Vec<_> = kept.collect();
        said.extend(trace.left_out());
        Ok(said)
    }
}
