//! `foreread merge`: joins several records.
//!
//! For runs of one command, a page or a name is kept if more than half of the runs read it. The first run's accesses keep their order. An
//! access of another run is inserted after the access that preceded it in its run.
//!
//! For different commands everything is kept, one command after the other.
//!
//! Data flow: records → pages of each → list of accesses → merged record ([`Making`]).

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use foreread_plan::format::Reader;
use foreread_plan::{Access, FileId, FileMeta, Kind, Summary, ThreadId};
use foreread_run::Making;
use foreread_words::{counted, shown};
use rustc_hash::FxHashMap;

use super::Goal;
use crate::command_line::short_command_line;
use crate::output::output;
use crate::{args, chosen};

/// Pages and names compared at most: 32 GiB of data. Each takes about 40 bytes of memory.
const PAGES: usize = 1 << 23;
/// The number under which a file's names are counted, beyond all pages.
const NAMES: u64 = 1 << 60;

/// Merges records.
pub(crate) fn merge(args: &args::travel::Merge) -> Result<ExitCode> {
    let mut records = Vec::new();
    for name in &args.records {
        records.push(chosen::record(Some(name), false, &[])?);
    }
    let first = records[0].meta().identity.clone();
    let is_one_command = records.iter().all(|one| one.meta().identity == first);
    if !is_one_command && args.command.is_empty() && args.output.is_none() {
        bail!(
            "the records are of different commands: say which command starts them, -- COMMAND, or name a file, -o FILE"
        );
    }
    let goal = Goal::of(&args.command, Some(first), args.output.as_deref())?;
    let mut merging = Merging::new(Making::new(&goal.place, goal.meta())?);
    let files: Vec<_> = records.iter().map(|one| one.files().clone()).collect();
    let (summary, kept, all) = if is_one_command {
        let runs = merging.runs(&mut records, &files)?;
        let summary = records[0].summary().cloned().unwrap_or_default();
        (summary, runs.0, runs.1)
    } else {
        let kept = merging.in_turn(&mut records, &files)?;
        (sum(records.iter().filter_map(Reader::summary)), kept, kept)
    };
    if kept == 0 {
        bail!("the records have nothing in common that most of them read");
    }
    merging.making.end(summary)?.take_place()?;
    goal.settle()?;
    let mut out = output();
    let records = counted(records.len() as u64, "record", "records");
    let how = match is_one_command {
        true => format!("{kept} of {all} accesses, which most of {records} have"),
        false => format!(
            "{} of {records}, one after the other",
            counted(kept, "access", "accesses")
        ),
    };
    let command = short_command_line(&goal.identity);
    match &goal.store {
        Some(_) => writeln!(out, "{how}; followed by: foreread run -- {command}")?,
        None => writeln!(
            out,
            "{how}; in {}",
            shown(&goal.place.path().to_string_lossy())
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The summary of several commands that run one after the other: the sums of their figures.
fn sum<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Summary {
    let feet = || summaries.clone();
    // A record is untrusted input: no sum overflows.
    let sum = |of: fn(&Summary) -> u64| feet().map(of).fold(0, u64::saturating_add);
    let all = |of: fn(&Summary) -> Option<u64>| {
        let mut each = feet().map(of);
        each.try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    };
    Summary {
        wall_ns: sum(|foot| foot.wall_ns),
        read_ns: sum(|foot| foot.read_ns),
        rewritten_ns: sum(|foot| foot.rewritten_ns),
        cpu_ns: all(|foot| foot.cpu_ns),
        others_ns: all(|foot| foot.others_ns),
        device_bytes: all(|foot| foot.device_bytes),
        cold_wall_ns: all(|foot| foot.cold_wall_ns),
        lost: sum(|foot| foot.lost),
        helped: feet().any(|foot| foot.helped),
        by_kernel: feet().any(|foot| foot.by_kernel),
        partial: feet().any(|foot| foot.partial),
        exit_status: feet().filter_map(|foot| foot.exit_status).max(),
        ..Summary::default()
    }
}

/// An access of the merged runs, with the index of its successor.
struct Node {
    access: Access,
    next: Option<usize>,
}

/// Number of runs that read a page or a name, the last of these runs, and the access kept for it.
#[derive(Clone, Copy)]
struct Count {
    runs: u32,
    last: u32,
    node: u32,
}

/// Marks a page or name without an access.
const NONE: u32 = u32::MAX;

/// The merged record while it is made.
struct Merging {
    making: Making,
    /// Files by path. Size and time come from the record whose access comes first.
    files: FxHashMap<PathBuf, FileId>,
    /// Threads, by the record's number and the thread's own.
    threads: FxHashMap<(usize, ThreadId), ThreadId>,
}

type Files = std::collections::BTreeMap<FileId, FileMeta>;

impl Merging {
    fn new(making: Making) -> Self {
        Self {
            making,
            files: FxHashMap::default(),
            threads: FxHashMap::default(),
        }
    }

    /// The merged record's number of a file in one of the records; `None` if that record does not name the file.
    fn file(&mut self, id: FileId, files: &Files) -> Option<FileId> {
        let meta = files.get(&id)?;
        if let Some(&known) = self.files.get(&meta.path) {
            return Some(known);
        }
        let next = FileId(self.files.len() as u32);
        self.files.insert(meta.path.clone(), next);
        Some(next)
    }

    /// Defines the file of an access, if it is new, and its thread.
    fn define(
        &mut self,
        record: usize,
        reader: &Reader,
        access: &Access,
        file: FileId,
    ) -> Result<ThreadId> {
        if !self.making.has(file)
            && let Some(meta) = reader.files().get(&access.file)
        {
            self.making.file(file, meta)?;
        }
        let next = ThreadId(self.threads.len() as u32);
        let key = (record, access.thread);
        if let Some(&known) = self.threads.get(&key) {
            return Ok(known);
        }
        self.threads.insert(key, next);
        if let Some(meta) = reader.threads().get(&access.thread) {
            self.making.thread(next, meta)?;
        }
        Ok(next)
    }

    /// All accesses of the records, one record after the other.
    fn in_turn(&mut self, records: &mut [Reader], files: &[Files]) -> Result<u64> {
        let (mut begin, mut kept) = (0_u64, 0);
        for (number, reader) in records.iter_mut().enumerate() {
            let mut end = begin;
            while let Some(access) = reader.next_access() {
                let access = access?;
                let Some(file) = self.file(access.file, &files[number]) else {
                    continue;
                };
                let thread = self.define(number, reader, &access, file)?;
                let start = begin.saturating_add(access.start);
                end = end.max(start.saturating_add(access.took));
                self.making.access(&Access {
                    file,
                    thread,
                    start,
                    ..access
                })?;
                kept += 1;
            }
            let wall = reader.summary().map_or(0, |foot| foot.wall_ns);
            begin = end.max(begin.saturating_add(wall));
        }
        Ok(kept)
    }

    /// Writes the accesses that most runs have. Returns their number and the number of all.
    fn runs(&mut self, records: &mut [Reader], files: &[Files]) -> Result<(u64, u64)> {
        let mut counts: FxHashMap<(FileId, u64), Count> = FxHashMap::default();
        let mut all = 0;
        for (number, reader) in records.iter_mut().enumerate() {
            let run = number as u32 + 1;
            while let Some(access) = reader.next_access() {
                let access = access?;
                all += 1;
                let Some(file) = self.file(access.file, &files[number]) else {
                    continue;
                };
                let places = places(&access);
                if counts.len() as u64 + (places.end - places.start) > PAGES as u64 {
                    bail!(
                        "{}: the runs read more than can be compared ({PAGES} pages)",
                        reader.path().display()
                    );
                }
                for place in places {
                    let count = counts.entry((file, place)).or_insert(Count {
                        runs: 0,
                        last: 0,
                        node: NONE,
                    });
                    count.runs += u32::from(count.last != run);
                    count.last = run;
                }
            }
            reader.rewind();
        }
        let most = records.len() as u32;
        let mut nodes: Vec<Node> = Vec::new();
        let mut first = None;
        for (number, reader) in records.iter_mut().enumerate() {
            // The access after which this run's next access is inserted.
            let mut before: Option<usize> = None;
            while let Some(access) = reader.next_access() {
                let access = access?;
                let Some(file) = self.file(access.file, &files[number]) else {
                    continue;
                };
                let places = places(&access);
                let of_most = |place: &u64| {
                    let count = counts.get(&(file, *place));
                    count.is_some_and(|count| 2 * count.runs > most)
                };
                let common = places.clone().filter(of_most).count() as u64;
                if 2 * common <= places.end - places.start {
                    continue;
                }
                let stands = places.clone().find_map(|place| {
                    let count = counts.get(&(file, place))?;
                    Some(count.node).filter(|&node| node != NONE)
                });
                // The first run keeps repeated reads of a page; other runs add new pages only.
                if let Some(node) = stands.filter(|_| number > 0) {
                    before = Some(node as usize);
                    continue;
                }
                let thread = self.define(number, reader, &access, file)?;
                let node = nodes.len();
                let next = match before {
                    Some(before) => nodes[before].next.replace(node),
                    None => first.replace(node),
                };
                nodes.push(Node {
                    access: Access {
                        file,
                        thread,
                        ..access
                    },
                    next,
                });
                for place in places {
                    if let Some(count) = counts.get_mut(&(file, place))
                        && count.node == NONE
                    {
                        count.node = u32::try_from(node).unwrap_or(NONE);
                    }
                }
                before = Some(node);
            }
        }
        let mut at = first;
        while let Some(node) = at {
            self.making.access(&nodes[node].access)?;
            at = nodes[node].next;
        }
        Ok((nodes.len() as u64, all))
    }
}

/// The pages of an access, or the place of a name.
fn places(access: &Access) -> std::ops::Range<u64> {
    match access.kind {
        Kind::List => NAMES + 1..NAMES + 2,
        kind if kind.names() => NAMES..NAMES + 1,
        _ => {
            let pages = access.extent.pages();
            // An empty mapping, or a read at the end of the file, counts as one place.
            pages.start..pages.end.max(pages.start + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_commands_are_summed_and_do_not_overflow() {
        let of = |ns| Summary {
            wall_ns: ns,
            read_ns: ns,
            rewritten_ns: ns,
            lost: ns,
            cpu_ns: Some(ns),
            others_ns: Some(ns),
            device_bytes: Some(ns),
            cold_wall_ns: Some(ns),
            ..Summary::default()
        };
        assert_eq!(sum([of(3), of(4)].iter()), of(7));
        assert_eq!(sum([of(3), of(u64::MAX)].iter()), of(u64::MAX));
        let unknown = Summary {
            cpu_ns: None,
            ..of(0)
        };
        assert_eq!(sum([of(3), unknown].iter()).cpu_ns, None);
    }
}
