//! `foreread list`: one line per record.

use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use foreread_plan::format::Reader;
use foreread_plan::{FileId, Identity, Rank, Summary};
use foreread_store::{Store, StoredRecord};
use foreread_words::units::{ago, bytes, cut, wrapped};
use foreread_words::{counted, plain, shown};
use serde::Serialize;

use crate::args;
use crate::chosen::first_run;
use crate::command_line::short_command_line;
use crate::output::{columns, narrow, output, width};

/// A record as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    id: &'a str,
    path: String,
    /// Size of the record, in bytes.
    record_bytes: u64,
    /// Seconds since the epoch.
    used_at: u64,
    recorded_at: Option<u64>,
    identity: Option<&'a Identity>,
    /// True if the record is complete and undamaged.
    complete: bool,
    summary: Option<&'a Summary>,
    /// The reason why the record, or a part of it, cannot be used.
    problem: Option<String>,
}

/// A record, opened or not.
struct ListedRecord {
    entry: StoredRecord,
    reader: Result<Reader>,
    /// The damage of a record that could be opened.
    damage: Option<String>,
    /// Number of its files, counted as in `show`.
    files: usize,
}

impl ListedRecord {
    /// Opens a record and checks all of it for damage, at about 3 MB/ms.
    fn open(entry: StoredRecord) -> Self {
        let mut reader = entry.reader();
        let damage = reader.as_mut().ok().and_then(|reader| reader.check().err());
        let files = reader.as_mut().map_or(0, |reader| {
            if damage.is_none() && reader.is_complete() {
                reader.files().len()
            } else {
                files_met(reader)
            }
        });
        Self {
            damage: damage.map(|why| why.to_string()),
            files,
            reader,
            entry,
        }
    }

    /// The rank and the number of ranks, for a parallel program.
    fn rank(&self) -> Option<String> {
        let reader = self.reader.as_ref().ok()?;
        let Rank { rank, of } = reader.meta().identity.rank?;
        Some(format!("{rank}/{of}"))
    }
}

/// Files with accesses. A record that lost its end may name others.
fn files_met(reader: &mut Reader) -> usize {
    let met: HashSet<FileId> = reader
        .accesses()
        .map_while(Result::ok)
        .map(|access| access.file)
        .collect();
    met.len()
}

/// Lists all records. A record that cannot be used is listed with the reason.
pub(crate) fn list(args: &args::List) -> Result<ExitCode> {
    let store = Store::open()?;
    let records: Vec<ListedRecord> = store
        .entries()?
        .into_iter()
        .map(ListedRecord::open)
        .collect();
    let mut out = output();
    if args.json {
        let listed: Vec<Listed<'_>> = records.iter().map(listed).collect();
        serde_json::to_writer_pretty(&mut out, &listed).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if records.is_empty() {
        match &store.underway()[..] {
            [] => writeln!(
                out,
                "Nothing is known yet. foreread run -- COMMAND records it."
            )?,
            runs => writeln!(out, "{}", first_run(runs))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let columns = Columns::of(&records);
    let rank = columns.rank("RANK");
    let titles = format!(
        "{:<16}  {:<11}  {:>8}  {:>9}  {rank}COMMAND",
        "ID", "LAST USED", "FILES", "READ"
    );
    // A terminal too narrow for the table wraps its lines, so nothing is cut.
    let width = width().filter(|width| *width >= titles.chars().count());
    let note = narrow().filter(|_| width.is_none());
    for line in note.iter().flat_map(|said| wrapped(said, self::columns())) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{titles}")?;
    let now = SystemTime::now();
    for known in &records {
        writeln!(out, "{}", line(known, &columns, width, now))?;
    }
    let size = records.iter().map(|known| known.entry.size).sum();
    writeln!(
        out,
        "{} of {} in {}",
        bytes(size),
        counted(records.len() as u64, "record", "records"),
        shown(&store.folder().to_string_lossy())
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Optional columns.
struct Columns {
    /// Width of the longest rank, if there are records of parallel programs.
    rank: Option<usize>,
}

impl Columns {
    fn of(records: &[ListedRecord]) -> Self {
        let ranks = records.iter().filter_map(ListedRecord::rank);
        Self {
            rank: ranks.map(|rank| rank.len().max("RANK".len())).max(),
        }
    }

    /// The cell in the column of ranks, with the gap to the next column.
    fn rank(&self, rank: &str) -> String {
        let whole = |room| format!("{rank:>room$}  ");
        self.rank.map(whole).unwrap_or_default()
    }
}

/// A record's line, cut to a width if there is one.
fn line(known: &ListedRecord, columns: &Columns, width: Option<usize>, now: SystemTime) -> String {
    let (files, read, command) = match &known.reader {
        Ok(reader) => (
            known.files.to_string(),
            match (&known.damage, reader.summary()) {
                (Some(_), _) => "damaged".to_owned(),
                (None, None) => "cut short".to_owned(),
                (None, Some(summary)) => bytes(summary.bytes),
            },
            short_command_line(&reader.meta().identity),
        ),
        Err(error) => (
            "-".to_owned(),
            "-".to_owned(),
            format!("unusable: {}", brief(error)),
        ),
    };
    let head = format!(
        "{:<16}  {:<11}  {files:>8}  {read:>9}  {}",
        known.entry.id,
        ago(known.entry.used, now),
        columns.rank(known.rank().as_deref().unwrap_or("-"))
    );
    match width {
        None => head + &command,
        Some(width) => {
            let room = width.saturating_sub(head.chars().count()).max(1);
            head + &cut(&command, room, false)
        }
    }
}

/// The damage, without the path: the line has the path already.
fn brief(error: &anyhow::Error) -> String {
    use foreread_plan::format::ReadError;

    match error.downcast_ref::<ReadError>() {
        Some(ReadError::Foreign { .. }) => "not a record".to_owned(),
        Some(ReadError::Future { version, .. }) => format!("of version {version}"),
        Some(ReadError::Headless { .. }) => "cut short".to_owned(),
        Some(ReadError::Damaged { .. }) => "damaged".to_owned(),
        Some(ReadError::Limit { .. }) => "too large".to_owned(),
        Some(ReadError::Io { source, .. }) => plain(&source.to_string()),
        _ => plain(&format!("{error:#}")),
    }
}

fn listed(known: &ListedRecord) -> Listed<'_> {
    let ListedRecord {
        entry,
        reader,
        damage,
        ..
    } = known;
    let usable = reader.as_ref().ok();
    Listed {
        id: &entry.id,
        path: entry.path.display().to_string(),
        record_bytes: entry.size,
        used_at: entry
            .used
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        recorded_at: usable.map(|reader| reader.meta().recorded_at),
        identity: usable.map(|reader| &reader.meta().identity),
        complete: damage.is_none() && usable.is_some_and(Reader::is_complete),
        summary: usable.and_then(Reader::summary),
        problem: match reader {
            Ok(_) => damage.clone(),
            Err(error) => Some(plain(&format!("{error:#}"))),
        },
    }
}
