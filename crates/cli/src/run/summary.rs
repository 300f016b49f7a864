//! What came of a run, in one line, in full, or as JSON.

mod explain;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use foreread_backend::Change;
use foreread_engine::{Ledger, Phase, Report};
use foreread_plan::{FileId, FileMeta, Summary};
use serde::Serialize;

use super::child::{Ended, Ending};
use super::record::Recorder;
use super::{FORESEEN_ENOUGH, RunArgs};
use crate::store::Found;
use crate::units::{bytes, duration};
use crate::words::{counted, plain, shown};

/// Reads below which a run says nothing about whether its record still fits.
const FEW_READS: u64 = 32;

/// What kind of run it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// Recorded for the next time.
    Recorded,
    /// Kept ahead of.
    Prefetched,
    /// Neither: foreread stood aside.
    Aside,
}

/// The account of one run, filled in as it goes.
#[derive(Debug)]
pub(super) struct Account {
    program: String,
    /// What went wrong on foreread's side, or kept it from helping.
    notes: Vec<String>,
    pub(super) followed: Option<Found>,
    /// The foot of the record followed.
    pub(super) baseline: Option<Summary>,
    report: Option<Report>,
    /// Sentences on files that differ from the record or are gone.
    files: Vec<String>,
    pub(super) wall_ns: u64,
    status: i32,
    /// Whether a signal ended the program.
    killed: bool,
    device_bytes: Option<u64>,
    pub(super) lost: u64,
    pub(super) observed: bool,
    pub(super) without_stdio: bool,
    /// Whether the record is for a file of the user's own, so that no later run goes by it.
    apart: bool,
    /// Whether the run was to be prefetched, and whether it was to be recorded.
    prefetch: bool,
    record: bool,
    /// Where the record was put.
    pub(super) recorded: Option<PathBuf>,
    reads_recorded: u64,
    /// Reads, opens and maps.
    accesses_recorded: u64,
}

/// The account as scripts read it. Times in ns, sizes in bytes.
#[derive(Serialize)]
struct Json<'a> {
    mode: Outcome,
    reason: Option<String>,
    exit_status: i32,
    wall_ns: u64,
    /// Of the recorded run; a cold one where it is known to have been.
    cold_wall_ns: Option<u64>,
    recorded_wall_ns: Option<u64>,
    device_bytes: Option<u64>,
    read_bytes: Option<u64>,
    ledger: Option<Ledger>,
    /// Reads that were reported and set against the plan: not those of a program that was left to itself by then.
    reads_seen: Option<u64>,
    foreseen: Option<u64>,
    found_again: Option<u64>,
    devices: &'a [String],
    followed: Option<&'a Path>,
    recorded: Option<&'a Path>,
    lost: u64,
    notes: &'a [String],
    files: &'a [String],
}

impl Account {
    pub(super) fn new(args: &RunArgs) -> Self {
        let program = Path::new(&args.command[0]);
        Self {
            program: shown(
                &program
                    .file_name()
                    .unwrap_or(program.as_os_str())
                    .to_string_lossy(),
            )
            .into_owned(),
            notes: Vec::new(),
            followed: None,
            baseline: None,
            report: None,
            files: Vec::new(),
            wall_ns: 0,
            status: 0,
            killed: false,
            device_bytes: None,
            lost: 0,
            observed: false,
            without_stdio: false,
            apart: args.output.is_some(),
            prefetch: args.prefetch,
            record: args.record,
            recorded: None,
            reads_recorded: 0,
            accesses_recorded: 0,
        }
    }

    /// Keep what can be had, and why the rest cannot.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|why| self.say(format!("{why:#}"))).ok()
    }

    pub(super) fn say(&mut self, note: String) {
        self.notes.push(plain(&note));
    }

    pub(super) fn ended(&mut self, ended: &Ended) {
        self.status = ended.ending.status();
        self.killed = matches!(ended.ending, Ending::Signal(_));
        self.device_bytes = ended.io.map(|io| io.read_bytes);
    }

    pub(super) fn followed_to(&mut self, report: Report, files: &BTreeMap<FileId, FileMeta>) {
        let name = |id: FileId| {
            files.get(&id).map_or_else(
                || "a file".to_owned(),
                |meta| shown(&meta.path.to_string_lossy()).into_owned(),
            )
        };
        for (file, change) in &report.changed {
            let what = match change {
                Change::Replaced => "is another file than the one recorded".to_owned(),
                Change::Resized(size) => {
                    format!("has changed since it was recorded, to {}", bytes(*size))
                }
                Change::Modified => "was modified since it was recorded".to_owned(),
            };
            self.files.push(format!("{}: {what}", name(*file)));
        }
        for (file, why) in &report.gone {
            self.files.push(format!("{}: {}", name(*file), plain(why)));
        }
        // Each thread that gave hints about a file has its say.
        let mut said = HashSet::new();
        self.files.retain(|line| said.insert(line.clone()));
        self.report = Some(report);
    }

    /// Whether what was recorded beside following is to replace the record that was followed.
    pub(super) fn worth_recording(&mut self, recorder: &Recorder) -> bool {
        self.reads_recorded = recorder.reads();
        self.accesses_recorded = recorder.accesses();
        let Some(report) = &self.report else {
            return recorder.reads() > 0;
        };
        let fits = report.reads < FEW_READS
            || report.foreseen as f64 >= report.reads as f64 * FORESEEN_ENOUGH;
        let more = self
            .baseline
            .as_ref()
            .is_none_or(|baseline| recorder.accesses() > baseline.accesses);
        // What a run read that waited for next to nothing tells less than what a cold one did.
        let keep = (fits || !self.was_cold())
            && (self.has_lasting_record() || self.has_own_record() && !more);
        recorder.reads() > 0 && self.lost == 0 && !keep
    }

    /// Enter what is wrong with the record that was followed: it is to be replaced.
    pub(super) fn damaged(&mut self, trouble: String) {
        self.say(trouble);
        self.baseline = None;
    }

    /// The record followed, if the program by now reads mostly what it does not tell of: all it
    /// tells of was in memory before the first read, and yet the program waited for a device. Only
    /// the next run can be recorded, as this one was not observed.
    pub(super) fn outgrown(&mut self) -> Option<PathBuf> {
        let report = self.report.as_ref()?;
        let hot = report.was_hot && report.foreseen == 0 && report.ledger.issued == 0;
        let told = self.baseline.as_ref().map_or(0, |baseline| baseline.bytes);
        // A program that was faster than the look at its plan has brought that into memory by itself: its first
        // reads waited.
        let before = report.ledger.missed - report.missed_hot;
        let elsewhere = self.device_bytes.unwrap_or(0).saturating_sub(before);
        if !hot || !self.has_lasting_record() || !self.was_cold() || elsewhere < told / 2 {
            return None;
        }
        let path = self.followed.as_ref()?.path.clone();
        self.say(format!(
            "{} came from elsewhere than the record {} tells; the next run is recorded anew",
            bytes(elsewhere),
            path.display()
        ));
        Some(path)
    }

    /// The record followed, if it is this command's own and the next run goes by it as well.
    pub(super) fn goes_on_with(&self) -> Option<&Path> {
        let followed = self.followed.as_ref().filter(|_| self.has_own_record())?;
        let left = self.report.as_ref()?.phase == Phase::GaveUp || self.recorded.is_some();
        (!left).then_some(&followed.path)
    }

    /// Whether what was followed is a record of this very command that a run like the recorded
    /// one adds nothing to: it is whole, and the program was not killed before its end.
    pub(super) fn has_lasting_record(&self) -> bool {
        self.has_own_record() && !self.baseline.as_ref().is_some_and(was_killed)
    }

    /// Whether what was followed is a whole record of this very command.
    pub(super) fn has_own_record(&self) -> bool {
        self.baseline.is_some() && self.followed.as_ref().is_some_and(|found| found.exact)
    }

    /// The foot of the new record.
    pub(super) fn record_summary(&self, recorder: &Recorder) -> Summary {
        Summary {
            wall_ns: self.wall_ns,
            read_ns: recorder.read_ns(),
            device_bytes: self.device_bytes,
            lost: self.lost,
            // A run that was helped tells nothing about how long an unhelped one takes.
            cold_wall_ns: (self.report.is_none() && self.was_cold()).then_some(self.wall_ns),
            exit_status: Some(self.status),
            ..Summary::default()
        }
    }

    /// Whether at least a megabyte came from a device: less is start-up noise.
    fn was_cold(&self) -> bool {
        self.device_bytes.is_some_and(|bytes| bytes >= 1 << 20)
    }

    fn outcome(&self) -> Outcome {
        let helped = self
            .report
            .as_ref()
            .is_some_and(|report| report.ledger.issued > 0);
        match (helped, &self.recorded) {
            (true, _) => Outcome::Prefetched,
            (false, Some(_)) => Outcome::Recorded,
            (false, None) => Outcome::Aside,
        }
    }

    /// Why foreread could not help, or not fully, in plain words.
    fn reason(&self) -> Option<String> {
        if let Some(note) = self.notes.first() {
            return Some(note.clone());
        }
        if let Some(report) = &self.report {
            match report.phase {
                Phase::Hot if report.ledger.issued > 0 => {
                    return Some("its other reads hardly waited".into());
                }
                Phase::Hot if report.reads > 0 => return Some("its reads hardly waited".into()),
                Phase::Hot if !self.was_cold() => {
                    let changed = self.files.first().cloned();
                    return changed.or_else(|| Some("all of it was in memory already".into()));
                }
                // Other content leads a program elsewhere.
                Phase::GaveUp if !self.files.is_empty() => {}
                Phase::GaveUp => {
                    return Some(format!(
                        "after {} {} went its own way",
                        counted(report.foreseen, "read", "reads"),
                        self.program
                    ));
                }
                _ => {}
            }
            if report.ledger.issued == 0 && report.phase != Phase::GaveUp {
                return Some("nothing was missing that it could have fetched".into());
            }
            return self.files.first().cloned();
        }
        if !self.record {
            return Some(if self.prefetch {
                format!(
                    "nothing is known of {}, and it was not to be recorded",
                    self.program
                )
            } else {
                "neither prefetching nor recording was asked for".into()
            });
        }
        if !self.observed {
            return Some(format!(
                "{} could not be observed: it is statically linked, privileged, or clears its environment",
                self.program
            ));
        }
        if self.recorded.is_none() && self.reads_recorded == 0 {
            // What it did just before it was killed, nobody may have been told.
            let read = if self.killed {
                "was killed before it was seen to read a regular file"
            } else {
                "read no regular file"
            };
            return Some(format!("{} {read}", self.program));
        }
        None
    }

    /// One line in plain words.
    fn line(&self) -> String {
        let mut line = String::from("foreread: ");
        match self.outcome() {
            Outcome::Prefetched => {
                let ledger = self.ledger();
                let _ = write!(
                    line,
                    "{} ahead of {}: {} useful, {} late, {} wasted",
                    bytes(ledger.issued),
                    self.program,
                    bytes(ledger.useful),
                    bytes(ledger.late),
                    bytes(ledger.wasted)
                );
                if ledger.evicted > 0 {
                    let _ = write!(line, ", {} evicted", bytes(ledger.evicted));
                }
                if ledger.infill > 0 {
                    let _ = write!(line, ", {} infill", bytes(ledger.infill));
                }
                let _ = write!(line, "; {}", duration(self.wall_ns));
                line.push_str(&self.against());
                if let Some(found) = self.followed.as_ref().filter(|found| !found.exact) {
                    let _ = write!(line, ", by the record of {}", found.differs);
                }
            }
            Outcome::Recorded => {
                let _ = write!(
                    line,
                    "recorded {} of {} in {}",
                    counted(self.reads_recorded, "read", "reads"),
                    self.program,
                    duration(self.wall_ns)
                );
                if self.lost > 0 {
                    let all = self.accesses_recorded.saturating_add(self.lost);
                    let _ = write!(
                        line,
                        " ({} of {} came too fast to be recorded)",
                        self.lost,
                        counted(all, "access", "accesses")
                    );
                }
                match self.recorded.as_ref().filter(|_| self.apart) {
                    Some(path) => {
                        let _ = write!(line, ", to {}", path.display());
                    }
                    None => line.push_str(", to keep ahead of the next run"),
                }
            }
            Outcome::Aside => {
                let _ = write!(line, "stood aside");
            }
        }
        if let Some(reason) = self.reason() {
            // What it did is not for that reason.
            let joint = match self.outcome() {
                Outcome::Recorded | Outcome::Prefetched => ";",
                Outcome::Aside => ":",
            };
            let _ = write!(line, "{joint} {reason}");
        }
        shown(&line).into_owned()
    }

    /// The time against the recorded run's.
    fn against(&self) -> String {
        let Some(baseline) = self.baseline.as_ref().filter(|_| self.has_own_record()) else {
            return String::new();
        };
        match baseline.cold_wall_ns {
            _ if was_killed(baseline) => format!(
                ", by the record of a run that was killed after {}",
                duration(baseline.wall_ns)
            ),
            Some(cold) => format!(" against {} recorded cold", duration(cold)),
            None => format!(
                " against {} when recorded, partly in memory",
                duration(baseline.wall_ns)
            ),
        }
    }

    fn ledger(&self) -> Ledger {
        self.report
            .as_ref()
            .map_or_else(Ledger::default, |report| report.ledger)
    }

    fn json(&self) -> Json<'_> {
        let report = self.report.as_ref();
        Json {
            mode: self.outcome(),
            reason: self.reason(),
            exit_status: self.status,
            wall_ns: self.wall_ns,
            cold_wall_ns: self.baseline.as_ref().and_then(|base| base.cold_wall_ns),
            recorded_wall_ns: self.baseline.as_ref().map(|base| base.wall_ns),
            device_bytes: self.device_bytes,
            read_bytes: self.baseline.as_ref().map(|base| base.bytes),
            ledger: report.map(|report| report.ledger),
            reads_seen: report.map(|report| report.reads),
            foreseen: report.map(|report| report.foreseen),
            found_again: report.map(|report| report.found_again),
            devices: report.map_or(&[], |report| &report.devices),
            followed: self.followed.as_ref().map(|found| found.path.as_path()),
            recorded: self.recorded.as_deref(),
            lost: self.lost,
            notes: &self.notes,
            files: &self.files,
        }
    }

    /// Say what came of it, as asked for. That the JSON could not be written is said even where nothing else is to be.
    pub(super) fn print(&self, args: &RunArgs) {
        let failed = args.json.as_ref().and_then(|path| self.write(path).err());
        let failed = failed.map(|why| plain(&format!("no account was written: {why:#}")));
        let text = match (failed, args.quiet) {
            (None, true) => return,
            (Some(failed), true) => format!("foreread: {failed}"),
            (failed, false) => {
                let (mut text, joint) = if args.explain {
                    (self.full(), "\nforeread:   ")
                } else {
                    (self.line(), "; ")
                };
                if let Some(failed) = failed {
                    text.extend([joint, &failed]);
                }
                text
            }
        };
        // Standard error may be closed; the program had it first.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
    }

    /// Write the account to a file as JSON.
    fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json())?;
        std::fs::write(path, text + "\n").with_context(|| path.display().to_string())
    }
}

/// Whether the run that was recorded ended by a signal.
fn was_killed(recorded: &Summary) -> bool {
    recorded.exit_status.is_some_and(|status| status >= 128)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The account of `sh`, which recorded, with 20 reads seen.
    fn recorded() -> Account {
        let args = RunArgs {
            command: vec!["/bin/sh".into()],
            quiet: false,
            explain: false,
            json: None,
            prefetch: true,
            record: true,
            output: None,
        };
        Account {
            wall_ns: 2_430_000,
            observed: true,
            recorded: Some("/records/x.fr".into()),
            reads_recorded: 20,
            ..Account::new(&args)
        }
    }

    fn by_anothers_record(phase: Phase, issued: u64) -> Account {
        let ledger = Ledger {
            issued,
            ..Ledger::default()
        };
        Account {
            followed: Some(Found {
                path: "/records/y.fr".into(),
                exact: false,
                differs: "the command with 'exit 9' for 'exit 10'".into(),
                foreign: HashSet::new(),
                trouble: None,
            }),
            report: Some(Report {
                ledger,
                phase,
                reads: 0,
                foreseen: 0,
                missed_hot: 0,
                found_again: 0,
                was_hot: false,
                changed: Vec::new(),
                gone: Vec::new(),
                devices: Vec::new(),
            }),
            ..recorded()
        }
    }

    #[test]
    fn a_time_is_not_set_against_that_of_a_killed_run() {
        let mut helped = by_anothers_record(Phase::Ahead, 4096);
        helped.recorded = None;
        helped.followed.as_mut().unwrap().exact = true;
        let against = |status| Summary {
            wall_ns: 624_000_000,
            cold_wall_ns: Some(624_000_000),
            exit_status: Some(status),
            ..Summary::default()
        };
        helped.baseline = Some(against(0));
        assert_eq!(helped.against(), " against 624 ms recorded cold");
        helped.baseline = Some(against(137));
        let killed = ", by the record of a run that was killed after 624 ms";
        assert_eq!(helped.against(), killed);
    }

    #[test]
    fn a_recording_is_told_in_one_sentence_and_not_by_whose_record_nothing_was_fetched() {
        let told = "foreread: recorded 20 reads of sh in 2.43 ms, to keep ahead of the next run";
        assert_eq!(recorded().line(), told);
        let hot = by_anothers_record(Phase::Hot, 0);
        assert_eq!(
            hot.line(),
            format!("{told}; all of it was in memory already")
        );
        let mut unseen = recorded();
        unseen.say("1 process was not observed".into());
        assert_eq!(unseen.line(), format!("{told}; 1 process was not observed"));
    }

    #[test]
    fn the_whole_account_is_broken_between_words() {
        let mut told = by_anothers_record(Phase::Finished, 4096);
        let device =
            "sda (built-in profile: by position, at most 32 at once, gaps of 64 pages read along)";
        let devices = vec![device.to_owned(); 3];
        told.report.as_mut().unwrap().devices = devices.clone();
        let full = told.full();
        let rows: Vec<&str> = full.lines().skip(1).collect();
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{full}");
        let words = rows.iter().flat_map(|row| row[10..].split_whitespace());
        let words: Vec<&str> = words
            .skip_while(|word| *word != "devices")
            .skip(1)
            .collect();
        assert!(words.join(" ").starts_with(&devices.join(", ")), "{full}");
    }

    #[test]
    fn a_recording_tells_how_much_of_it_is_missing() {
        let lossy = Account {
            lost: 3,
            accesses_recorded: 22,
            ..recorded()
        };
        let told =
            " (3 of 25 accesses came too fast to be recorded), to keep ahead of the next run";
        assert!(lossy.line().ends_with(told), "{}", lossy.line());
    }

    #[test]
    fn what_was_fetched_by_anothers_record_is_told_to_be() {
        let line = by_anothers_record(Phase::Finished, 4096).line();
        let end = "; 2.43 ms, by the record of the command with 'exit 9' for 'exit 10'";
        assert!(line.ends_with(end), "{line}");
    }
}
