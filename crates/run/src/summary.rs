//! The outcome of a run, in one line, in full, or as JSON.

mod ahead;
mod explain;
mod json;
mod line;
mod reason;
mod stored;
mod unobserved;
mod why;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use foreread_backend::Change;
use foreread_engine::Ledger;
use foreread_plan::{Advice, FileId, PAGE, Rank, Summary};
use foreread_store::Found;
use foreread_sys::process::End;
use foreread_sys::{replace, usage};
use foreread_words::units::bytes;
use foreread_words::{counted, plain, shown};
use serde::{Deserialize, Serialize};

use super::cache::CacheAccount;
use super::files::Recorded;
use super::helper::Finished;
use super::ranks::{self, RankRun};
use super::record::Recorder;
use super::record::part::LeftOut;
use super::report::{FileFates, Phase, REPLAY, Report, Strand};
use super::unseen::MATTERS;
use super::{FORESEEN_ENOUGH, RunArgs};
pub use why::Why;

/// With fewer reads a run says nothing about whether its record still fits. It is the number of reads after which a plan may count as lost.
/// If 95 % of the reads are foreseen, fewer than nine tenths of 32 reads are foreseen in one of fourteen runs (binomial).
const FEW_READS: u64 = 32;
/// Names, without any read, that are not worth a record: each saves a read or two of the device, and `sh -c
/// true` looks up four.
const FEW_NAMES: u64 = 16;

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Recorded for the next time.
    Recorded,
    /// Kept ahead of.
    Prefetched,
    /// Neither: foreread stood aside.
    Aside,
}

/// The account of a run, completed step by step.
#[derive(Debug)]
pub(super) struct Account {
    program: String,
    /// Failures of foreread, and reasons why it could not help.
    notes: Vec<String>,
    /// Other remarks on the run, which are no reasons for its gain or the lack of it.
    remarks: Vec<String>,
    pub(super) followed: Option<Found>,
    /// The foot of the record followed.
    pub(super) baseline: Option<Summary>,
    /// Bytes of its files that are not fetched, because the program drops them from memory itself.
    dropped: u64,
    report: Option<Report>,
    /// Sentences on files that differ from the record or are gone.
    files: Vec<String>,
    wall_ns: u64,
    status: i32,
    /// True if a signal ended the program.
    killed: bool,
    device_bytes: Option<u64>,
    cpu_ns: Option<u64>,
    /// Processor time of everybody on the machine when the program was started.
    pub(super) all_cpu: Option<Duration>,
    /// Bytes of these that no observed read explains, if they matter.
    unseen_bytes: Option<u64>,
    /// Bytes that the program read past the page cache.
    direct_bytes: u64,
    /// Why the program was left alone, if its plan was looked for in memory.
    pub(super) alone: Option<Why>,
    /// The point at which the program left its record, if it did: the read, its file and offset.
    pub(super) left: Option<(u64, String, u64)>,
    /// True if the program waited mostly for reads that began where the previous read of their file ended.
    pub(super) is_onward: bool,
    /// Unobserved parts of the program, in sentences.
    unobserved: Vec<String>,
    /// True if the kernel observed the program, because the preload library would see too little.
    pub(super) by_kernel: bool,
    pub(super) lost: u64,
    pub(super) observed: bool,
    /// The kind of program, if the preload library was not loaded because of it.
    pub(super) hidden: Option<&'static str>,
    pub(super) without_stdio: bool,
    /// True if the record goes to the user's own file, so later runs do not use it.
    apart: bool,
    /// True if the run was to be prefetched; true if it was to be recorded.
    prefetch: bool,
    record: bool,
    /// The place of the new record.
    pub(super) recorded: Option<PathBuf>,
    reads_recorded: u64,
    names_recorded: u64,
    /// The rank in a parallel program, as given by the launcher.
    pub(super) rank: Option<Rank>,
    /// The account of its part of the collective cache.
    pub(super) cache: Option<CacheAccount>,
    /// Reads, names and maps.
    accesses_recorded: u64,
    /// The part left out of the record because of its limits.
    pub(super) left_out: Option<LeftOut>,
    /// Fates of the pages of the files with most waiting in the recorded run.
    pub(super) fates: Vec<FileFates>,
}

impl Account {
    pub(super) fn new(args: &RunArgs) -> Self {
        Self {
            program: program_of(args),
            notes: Vec::new(),
            remarks: Vec::new(),
            followed: None,
            baseline: None,
            dropped: 0,
            report: None,
            files: Vec::new(),
            wall_ns: 0,
            status: 0,
            killed: false,
            device_bytes: None,
            cpu_ns: None,
            all_cpu: None,
            unseen_bytes: None,
            direct_bytes: 0,
            alone: None,
            left: None,
            is_onward: false,
            unobserved: Vec::new(),
            by_kernel: false,
            lost: 0,
            observed: false,
            hidden: None,
            without_stdio: false,
            apart: args.output.is_some(),
            prefetch: args.prefetch,
            record: args.record,
            recorded: None,
            reads_recorded: 0,
            names_recorded: 0,
            rank: None,
            cache: None,
            accesses_recorded: 0,
            left_out: None,
            fates: Vec::new(),
        }
    }

    /// The account of a run that foreread could do nothing for.
    pub(super) fn aside(args: &RunArgs, why: String) -> Self {
        let mut account = Self::new(args);
        account.rank = foreread_store::rank();
        account.say(why);
        account
    }

    /// Writes and prints the account from the process that the shell started, if there is no helper.
    pub(super) fn print(&self, args: &RunArgs) {
        let front = std::process::id();
        let alone = |rank, part| ranks::line(None, front, rank, part);
        let text = self.report(&args.of_this_rank(), Path::to_path_buf, alone);
        if !text.is_empty() {
            print(&text);
        }
    }

    /// Returns the value, or notes the error and returns `None`.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|why| self.say(format!("{why:#}"))).ok()
    }

    pub(super) fn say(&mut self, note: String) {
        self.notes.push(plain(&note));
    }

    /// Adds a remark that is no reason for the gain or the lack of it.
    pub(super) fn remark(&mut self, remark: String) {
        self.remarks.push(plain(&remark));
    }

    /// Bytes that the program itself read from devices.
    pub(super) fn device_bytes(&self) -> Option<u64> {
        self.device_bytes
    }

    pub(super) fn ended(&mut self, finished: &Finished) {
        let ending = finished.ending();
        self.status = ending.status();
        self.killed = matches!(ending, End::Killed(_));
        self.device_bytes = finished.device_bytes;
        self.cpu_ns = finished.cpu_ns;
        self.wall_ns = finished.wall_ns;
    }

    /// The program was seen to read this much with `O_DIRECT`; `None` if it was not observed, and did as when it was recorded. That counts
    /// neither as waited for nor as unseen: nothing of it could have been fetched.
    pub(super) fn passed_cache_by(&mut self, seen: Option<u64>) {
        let recorded = self.baseline.as_ref().filter(|_| self.has_own_record());
        let recorded = recorded.map_or(0, |recorded| recorded.direct_bytes);
        self.direct_bytes = seen.unwrap_or(recorded);
        if self.direct_bytes > 0 {
            self.device_bytes = self
                .device_bytes
                .map(|all| all.saturating_sub(self.direct_bytes));
            self.remark(format!(
                "{} read with O_DIRECT{}, past the page cache: nothing to fetch",
                bytes(self.direct_bytes),
                seen.map_or(" when recorded", |_| "")
            ));
        }
    }

    pub(super) fn followed_to(&mut self, report: Report, files: &Recorded) {
        let dropped = files.at_hand();
        let dropped = dropped.filter(|meta| meta.advice == Advice::Dropped);
        self.dropped = dropped.map(|meta| meta.size).sum();
        if self.dropped > 0 {
            self.remark(format!(
                "{} left alone, which the program drops from memory itself",
                bytes(self.dropped)
            ));
        }
        if files.spared() > 0 {
            let spared = counted(files.spared() as u64, "file", "files");
            self.remark(format!(
                "{spared} left alone, which a file system in user space may have to compute"
            ));
        }
        let copied = report.copied.len();
        if copied > 0 {
            let differ = report.changed.iter().map(|(file, _)| file);
            let differ = differ.chain(report.gone.iter().map(|(file, _)| file));
            let all = copied + differ.collect::<HashSet<_>>().len();
            let all = counted(all as u64, "file", "files");
            self.remark(format!(
                "its record was made elsewhere: of {all} {copied} fit, by size and time"
            ));
        }
        // Only recorded files: a program may delete files of its own.
        let name = |id: FileId| {
            let meta = files.get(id)?;
            Some(shown(&meta.path.to_string_lossy()).into_owned())
        };
        for (file, change) in &report.changed {
            let Some(name) = name(*file) else {
                continue;
            };
            let what = match change {
                Change::Replaced => "is another file than the one recorded".to_owned(),
                Change::Resized(size) => {
                    format!("has changed since it was recorded, to {}", bytes(*size))
                }
                Change::Modified => "was modified since it was recorded".to_owned(),
            };
            self.files.push(format!("{name}: {what}"));
        }
        for (file, why) in &report.gone {
            if let Some(name) = name(*file) {
                self.files
                    .push(format!("{name}: was not fetched: {}", plain(why)));
            }
        }
        // Each thread that gave hints about a file has its say.
        let mut said = HashSet::new();
        self.files.retain(|line| said.insert(line.clone()));
        self.report = Some(report);
    }

    /// True if the accesses recorded while following are to replace the followed record.
    pub(super) fn worth_recording(&mut self, recorder: &Recorder) -> bool {
        self.reads_recorded = recorder.reads();
        self.names_recorded = recorder.names();
        self.accesses_recorded = recorder.accesses();
        // Even a short record says which observer the next run needs, and whether the program waits at all.
        let tells = self.tells() || self.unseen_bytes.is_some() || self.by_kernel;
        let Some((_, plan)) = self.of_plan() else {
            return tells;
        };
        let fits = plan.reads < FEW_READS
            || plan.foreseen as f64 >= plan.reads as f64 * FORESEEN_ENOUGH
            // A partial record is replaced only if none of it is valid.
            || plan.foreseen > 0 && self.follows_part();
        // A run that equals the run before it ends the trial of their record.
        let more = self.baseline.as_ref().is_none_or(|baseline| {
            baseline.left_plan || !baseline.partial && recorder.accesses() > baseline.accesses
        });
        // The record of a hot run says less than that of a cold one.
        let keep = (fits || !self.was_cold())
            && (self.has_lasting_record() || self.has_own_record() && !more);
        tells && self.lost == 0 && !keep
    }

    /// True if the new record has enough content for prefetching.
    pub(super) fn tells(&self) -> bool {
        self.reads_recorded > 0 || self.names_recorded >= FEW_NAMES
    }

    /// True if the followed record is damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.followed.is_some() && self.baseline.is_none()
    }

    /// Enters the damage of the record that was followed: it will be replaced.
    pub(super) fn damaged(&mut self, trouble: String) {
        self.say(trouble);
        self.baseline = None;
    }

    /// True if the program reads more than its own record has: all recorded files were in memory before the first read, yet the program
    /// waited for a device. The next run is recorded, because this one was not observed.
    ///
    /// The recorded run, too, may have read bytes that no observer sees: a file that is mapped for a millisecond, folders, read-ahead. A
    /// new record would lack them as well, so only bytes beyond them count.
    pub(super) fn outgrown(&mut self) -> bool {
        let (Some((report, plan)), Some(followed)) = (self.of_plan(), &self.followed) else {
            return false;
        };
        let hot = report.was_hot && plan.foreseen == 0 && plan.ledger.issued == 0;
        let (told, untold) = self.baseline.as_ref().map_or((0, 0), told_by);
        // A program that was faster than the look at its plan has brought that into memory by itself: its first
        // reads waited.
        let before = report.ledger.missed;
        // Bytes fetched by guesses came from devices, too.
        let fetched = self.device_bytes.unwrap_or(0) + report.ledger.issued;
        let elsewhere = fetched.saturating_sub(before);
        let elsewhere = elsewhere.saturating_sub(untold + self.dropped);
        if !hot
            || self.follows_part()
            || !self.has_lasting_record()
            || !self.was_cold()
            || elsewhere < told / 2
        {
            return false;
        }
        self.say(format!(
            "{} came from elsewhere than the record {} tells; the next run is recorded anew",
            bytes(elsewhere),
            followed.path.display()
        ));
        true
    }

    /// True if the followed record is this command's own and remains in use.
    pub(super) fn goes_on_with_own(&self) -> bool {
        let plan = self.of_plan();
        let left =
            plan.is_none_or(|(_, plan)| plan.phase == Phase::GaveUp) || self.recorded.is_some();
        self.has_own_record() && !left
    }

    /// True if a repetition of this run would add nothing to the followed record: it is this command's own and whole, the recorded run was
    /// not killed, equalled an earlier run, and was observed equally well.
    pub(super) fn has_lasting_record(&self) -> bool {
        // The kernel's observer sees more than the preload library.
        let is_partial = |foot: &Summary| self.by_kernel && !foot.by_kernel;
        let is_passing = |foot: &Summary| was_killed(foot) || is_partial(foot) || foot.left_plan;
        self.has_own_record() && !self.baseline.as_ref().is_some_and(is_passing)
    }

    /// True if the followed record is this command's own and whole.
    pub(super) fn has_own_record(&self) -> bool {
        self.baseline.is_some() && self.followed.as_ref().is_some_and(|found| found.exact)
    }

    /// True if the followed record has only a part of the command's reads.
    fn follows_part(&self) -> bool {
        self.baseline.as_ref().is_some_and(|foot| foot.partial)
    }

    /// The foot of the new record.
    pub(super) fn record_summary(&self, recorder: &Recorder) -> Summary {
        Summary {
            wall_ns: self.wall_ns,
            read_ns: recorder.read_ns(),
            device_bytes: self.device_bytes,
            cpu_ns: self.cpu_ns,
            others_ns: self.others_ns(),
            lost: self.lost,
            // The time of a prefetched run says nothing about a plain one.
            cold_wall_ns: (self.of_plan().is_none() && !self.was_helped() && self.was_cold())
                .then_some(self.wall_ns),
            helped: self.was_helped(),
            exit_status: Some(self.status),
            unseen_bytes: self.unseen_bytes,
            direct_bytes: self.direct_bytes,
            unobserved: self.unobserved.clone(),
            by_kernel: self.by_kernel,
            left_plan: self.has_own_record() && self.has_left(),
            ..Summary::default()
        }
    }

    /// True if the program has left its record.
    fn has_left(&self) -> bool {
        let plan = self.of_plan();
        plan.is_some_and(|(_, plan)| plan.phase == Phase::GaveUp)
    }

    /// Processor time of everybody but the program since it was started.
    fn others_ns(&self) -> Option<u64> {
        let all = usage::of_all().ok()?.saturating_sub(self.all_cpu?);
        Some((all.as_nanos() as u64).saturating_sub(self.cpu_ns?))
    }

    /// True if at least a megabyte came from a device: less is the noise of a start.
    fn was_cold(&self) -> bool {
        self.device_bytes.is_some_and(|bytes| bytes >= MATTERS)
    }

    /// The result of following the record, if there was one.
    fn of_plan(&self) -> Option<(&Report, &Strand)> {
        let report = self.report.as_ref()?;
        let plan = report.strands.iter().find(|one| one.name == REPLAY)?;
        Some((report, plan))
    }

    /// True if anything was fetched ahead of the program.
    fn was_helped(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|report| report.ledger.issued + report.names.fetched > 0)
    }

    fn outcome(&self) -> Outcome {
        // The first run of a command is a recording, even if guesses helped: the ledger shows that.
        let is_first = self.followed.is_none() && self.recorded.is_some();
        match (self.was_helped() && !is_first, &self.recorded) {
            (true, _) => Outcome::Prefetched,
            (false, Some(_)) => Outcome::Recorded,
            (false, None) => Outcome::Aside,
        }
    }

    fn ledger(&self) -> Ledger {
        self.report
            .as_ref()
            .map_or_else(Ledger::default, |report| report.ledger)
    }

    /// All notes and remarks.
    fn told_beside(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().chain(&self.remarks).map(String::as_str)
    }

    /// Returns the outcome in the requested form, to be printed; empty if nothing is to be printed. The JSON is written where `place`
    /// resolves the user's path; a failure to write it is always reported. If there are several ranks, `together` makes the line out of
    /// this rank's part.
    pub(super) fn report(
        &self,
        args: &RunArgs,
        place: impl Fn(&Path) -> PathBuf,
        together: impl FnOnce(Rank, RankRun) -> String,
    ) -> String {
        let path = args.json.as_ref();
        let failed = path.and_then(|path| {
            let written = self.write(&place(path));
            written.with_context(|| path.display().to_string()).err()
        });
        let failed = failed.map(|why| plain(&format!("no account was written: {why:#}")));
        match (failed, args.quiet) {
            (None, true) => String::new(),
            (Some(failed), true) => format!("foreread: {failed}"),
            (failed, false) => {
                let (mut text, joint) = if args.explain {
                    (self.full(), "\nforeread:   ")
                } else if let Some(rank) = self.rank.filter(|rank| rank.of > 1) {
                    (together(rank, self.part(rank)), "; ")
                } else {
                    (self.line(), "; ")
                };
                match failed {
                    Some(failed) if text.is_empty() => text = format!("foreread: {failed}"),
                    Some(failed) => text.extend([joint, &failed]),
                    None => {}
                }
                text
            }
        }
    }

    /// This run's part of the account of all ranks.
    fn part(&self, Rank { rank, .. }: Rank) -> RankRun {
        RankRun {
            rank,
            program: self.program.clone(),
            wall_ns: self.wall_ns,
            ledger: self.ledger(),
            recorded: self.recorded.as_ref().map(|_| self.reads_recorded),
            // Launchers give each job files of its own, which the next one does not find: no news to anybody.
            reason: self
                .reason()
                .filter(|reason| !self.files.iter().any(|file| reason.starts_with(file))),
        }
    }

    /// Writes the account as JSON: into a device or pipe at the path, else as a new file that replaces any other, whole or not at all.
    fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json())? + "\n";
        match replace::file(path, &text) {
            // No file, or one in a folder in which nothing can be made, or only its owner may replace it.
            Err(why)
                if matches!(
                    why.kind(),
                    ErrorKind::AlreadyExists
                        | ErrorKind::PermissionDenied
                        | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(std::fs::write(path, text)?)
            }
            replaced => Ok(replaced?),
        }
    }
}

/// Prints the summary of a run.
pub(super) fn print(text: &str) {
    // Standard error may be closed; the program had it first.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
}

/// Prints that the run has no account, with the reason.
pub(super) fn print_without(args: &RunArgs, why: &str) {
    match (&args.json, args.quiet) {
        (None, true) => {}
        (Some(_), true) => print(&plain(&format!("foreread: no account was written: {why}"))),
        (_, false) => {
            let program = program_of(args);
            print(&plain(&format!("foreread: no account of {program}: {why}")));
        }
    }
}

/// The program's name as the user gave it.
pub(super) fn program_of(args: &RunArgs) -> String {
    let program = Path::new(&args.command[0]);
    let name = program.file_name().unwrap_or(program.as_os_str());
    let name: Cow<'_, str> = name.to_string_lossy();
    shown(&name).into_owned()
}

/// Bytes from devices that a record explains, at most (those read, and a block for each name), and bytes that the recorded run had
/// from devices beyond them.
fn told_by(recorded: &Summary) -> (u64, u64) {
    let names = recorded.files.saturating_mul(PAGE);
    let fetched = recorded.device_bytes.unwrap_or(0);
    (
        recorded.bytes.saturating_add(names),
        fetched.saturating_sub(recorded.bytes),
    )
}

/// True if a signal ended the recorded run.
fn was_killed(recorded: &Summary) -> bool {
    recorded.exit_status.is_some_and(|status| status >= 128)
}

#[cfg(test)]
mod tests;
