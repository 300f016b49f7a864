//! Measures one case on one disk: the modes alternate in rounds.
//!
//! A round has a plain run and one with foreread's help, both cold and in alternating order, a hot run and the deep read. `runs`
//! has the single runs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::busy::Busy;
use crate::case::{Case, Cold, Group, Purpose, Size, Start};
use crate::deep::{FileExtents, Way};
use crate::device::{DEFAULT_READ_AHEAD_KB, Facts};
use crate::disk::Disk;
use crate::fitting;
use crate::foreread::Account;
use crate::peer::Peer;
use crate::runs::{Help, Needs, Runs, Settings};
use crate::sample::{Sample, seconds};
use crate::scratch::Scratch;
use crate::stats;
use crate::tools::Tools;
use crate::translated::Build;
use crate::watch::Watch;

/// Runs of a case with only its files out of memory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FilesOnly {
    /// Plain runs.
    pub plain: Vec<Sample>,
    /// Runs with foreread's help, paired with `plain` by index.
    pub foreread: Vec<Sample>,
    /// Reading the files' bytes at full depth.
    pub deep: Vec<Sample>,
    /// The way `deep` was read.
    pub deep_way: Option<Way>,
}

/// Everything measured of one case on one disk.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The case.
    pub case: String,
    /// The disk.
    pub disk: String,
    /// True if the case shows that foreread does no harm.
    pub no_harm: bool,
    /// True if runs started with everything in memory.
    pub hot_start: bool,
    /// The device below the data, before the benchmarks changed it.
    pub device: Option<Facts>,
    /// The command.
    pub command: String,
    /// The table that the case belongs to.
    pub group: Group,
    /// The memory that the program may use, in bytes.
    pub memory_limit: Option<u64>,
    /// Plain runs, cold unless `hot_start`.
    pub plain: Vec<Sample>,
    /// Plain runs, each after one WILLNEED on every whole file.
    pub willneed: Vec<Sample>,
    /// Plain runs, each after `vmtouch -t`.
    pub vmtouch: Vec<Sample>,
    /// Runs with foreread's help, by a record or by the program itself, paired with `plain` by index.
    pub foreread: Vec<Sample>,
    /// Runs of the plain program under `foreread run` with a record, next to those of a translated program or to first runs.
    pub recorded: Vec<Sample>,
    /// Plain runs with everything in memory.
    pub hot: Vec<Sample>,
    /// Hot times of the original program and of the translated one without its prefetch thread, both with the least computation.
    pub hot_pairs: Vec<(f64, f64)>,
    /// Reading the program's bytes at full depth.
    pub deep: Vec<Sample>,
    /// The way `deep` was read, the fastest of those tried.
    pub deep_way: Option<Way>,
    /// Runs with only the case's files out of memory, for cases whose other runs start as after a reboot.
    pub files_only: Option<FilesOnly>,
    /// The run that recorded.
    pub recording: Option<Sample>,
    /// The computation per block, in the program's own unit, if it was fitted.
    pub work: Option<u64>,
    /// Time and size of the program's translation.
    pub build: Option<Build>,
    /// Unique bytes of the case's files that the program reads, in whole pages.
    pub footprint_bytes: Option<u64>,
    /// The number of names that the program asks about, if they are out of memory.
    pub names: Option<usize>,
    /// Starts repeated because the files were still in memory.
    pub discarded: usize,
    /// Anything unusual, as text.
    pub notes: Vec<String>,
}

/// The time that all rounds of a case on a disk should take, in seconds. A short case runs more rounds than asked for, for a good
/// median, and a long one fewer.
const ROUNDS_SECONDS: f64 = 12.0;
/// The fewest pairs for which a ratio means anything.
const FEWEST_PAIRS: usize = 3;

/// Measures `case` on `disk` with the data in `original`; `say` receives the current step.
pub fn measure(
    case: &Case,
    disk: &Disk,
    original: &Path,
    settings: &Settings,
    tools: &Tools,
    say: &dyn Fn(&str),
) -> Result<Measurement> {
    say("copying");
    let data = disk.holding(original)?;
    let scratch = Scratch::new(case.name, tools)?;
    let job = case.work.job(&data, &scratch.0, settings.size, tools)?;
    let mut runs = Runs::new(case, disk, job, &data, &scratch.0, settings, tools)?;
    let needs = if case.start == Start::Cold {
        say("what it reads");
        Some(runs.needs(original, settings, tools)?)
    } else {
        None
    };
    let mut notes = disk.notes();
    notes.extend(needs.iter().flat_map(|needs| needs.notes.clone()));
    if runs.device.is_none() {
        notes.push("no block device below: read-ahead and device bytes unknown".into());
    }
    let _read_ahead = runs.set_read_ahead(DEFAULT_READ_AHEAD_KB)?;
    let hot_pairs = if matches!(runs.help, Some(Help::Translated)) {
        say("hot, as it is and translated");
        fitting::hot_pairs(&runs)?
    } else {
        Vec::new()
    };
    let work = fitting::computing(case, disk.kind)
        .map(|share| {
            say("how much it has to compute");
            fitting::fit(&mut runs, share)
        })
        .transpose()?;
    let _busy = case.busy().then(Busy::start).transpose()?;
    let watch = Watch::begin();
    let mut result = Measurement {
        case: case.name.to_owned(),
        disk: disk.kind.name().to_owned(),
        no_harm: case.purpose == Purpose::NoHarm,
        hot_start: case.start == Start::Hot,
        device: runs.facts(),
        command: runs.job.command.line(),
        group: case.group,
        memory_limit: runs.job.memory_limit,
        plain: Vec::new(),
        willneed: Vec::new(),
        vmtouch: Vec::new(),
        foreread: Vec::new(),
        recorded: Vec::new(),
        hot: Vec::new(),
        hot_pairs,
        deep: Vec::new(),
        deep_way: None,
        files_only: (case.cold() == Cold::Reboot).then(FilesOnly::default),
        recording: None,
        work,
        build: runs
            .job
            .translated
            .as_ref()
            .map(|translated| translated.build.clone()),
        footprint_bytes: needs
            .as_ref()
            .map(|needs| needs.files.files.iter().map(FileExtents::bytes).sum()),
        names: needs
            .as_ref()
            .and_then(|needs| Some(needs.everything.as_ref()?.names.count())),
        discarded: 0,
        notes,
    };
    rounds(&runs, &mut result, needs.as_ref(), settings, tools, say)?;
    result.discarded = runs.discarded.get();
    // A busy case's load is this process's own and so no disturbance.
    if case.start == Start::Hot
        && let Some(disturbed) = watch.disturbed()
    {
        result.notes.push(format!("not alone: {disturbed}"));
    }
    Ok(result)
}

/// Records once, then runs the rounds.
fn rounds(
    runs: &Runs,
    result: &mut Measurement,
    needs: Option<&Needs>,
    settings: &Settings,
    tools: &Tools,
    say: &dyn Fn(&str),
) -> Result<()> {
    if runs.recorder.is_some() {
        say("recording");
        let sample = runs.recording()?;
        if let Some(account) = &sample.account
            && account.mode != "recorded"
        {
            result
                .notes
                .push(format!("the recording run ended as {}", words(account)));
        }
        result.recording = Some(sample);
    }
    let cold = runs.case.cold();
    let all = needs.map(|needs| needs.everything.as_ref().unwrap_or(&needs.files));
    if let Some(needed) = all {
        say("the best way to read it");
        result.deep_way = Some(runs.best_way(needed, cold)?);
    }
    if let (Some(files_only), Some(needs)) = (&mut result.files_only, needs) {
        files_only.deep_way = Some(runs.best_way(&needs.files, Cold::Files)?);
    }
    let peers = runs.peers(&mut result.notes, tools);
    let mut rounds = settings.rounds;
    let mut round = 0;
    while round < rounds {
        let began = Instant::now();
        let label = |mode: &str| format!("round {}/{rounds} {mode}", round + 1);
        pair(runs, result, round, &|mode| say(&label(mode)))?;
        files_only(runs, result, needs, &|mode| say(&label(mode)))?;
        if matches!(runs.help, Some(Help::Translated | Help::First)) {
            say(&label("foreread run"));
            let sample = runs.recorded(cold)?;
            remark(&sample, runs.case, &mut result.notes);
            result.recorded.push(sample);
        }
        for (peer, command) in &peers {
            say(&label(peer.name()));
            let sample = runs.cold(command, peer.name(), cold)?;
            match peer {
                Peer::WillNeed => result.willneed.push(sample),
                Peer::Vmtouch => result.vmtouch.push(sample),
            }
        }
        if runs.case.start == Start::Cold {
            say(&label("hot"));
            result.hot.push(runs.hot()?);
        }
        if let (Some(needed), Some(way)) = (all, result.deep_way) {
            say(&label("deep"));
            result.deep.push(runs.deep(needed, way, cold)?);
        }
        round += 1;
        runs.round.set(round);
        if round == 1 {
            rounds = rounds_for(runs.case.purpose, settings, began.elapsed().as_secs_f64());
        }
    }
    if runs.case.purpose == Purpose::NoHarm && runs.help.is_some() && !settings.exact_rounds {
        let began = Instant::now();
        while began.elapsed() < more_pairs_within(settings.size) && !is_told(result) {
            pair(runs, result, round, &|mode| {
                say(&format!("pair {} {mode}", round + 1));
            })?;
            round += 1;
            runs.round.set(round);
        }
    }
    Ok(())
}

/// One plain run and one with foreread's help, in alternating order.
fn pair(runs: &Runs, result: &mut Measurement, round: usize, say: &dyn Fn(&str)) -> Result<()> {
    let foreread_first = round % 2 == 1;
    let cold = runs.case.cold();
    for foreread_turn in [foreread_first, !foreread_first] {
        if !foreread_turn {
            say("plain");
            result.plain.push(runs.plain(cold)?);
        } else if let Some(help) = &runs.help {
            say("foreread");
            let sample = runs.helped(help, cold)?;
            if !matches!(help, Help::First) {
                remark(&sample, runs.case, &mut result.notes);
            }
            result.foreread.push(sample);
        }
    }
    Ok(())
}

/// A pair with only the case's files out of memory, and the deep read of those files, for cases whose other runs start as after a
/// reboot.
fn files_only(
    runs: &Runs,
    result: &mut Measurement,
    needs: Option<&Needs>,
    say: &dyn Fn(&str),
) -> Result<()> {
    let (Some(files_only), Some(needs)) = (&mut result.files_only, needs) else {
        return Ok(());
    };
    if let Some(way) = files_only.deep_way {
        say("deep, files only");
        let sample = runs.deep(&needs.files, way, Cold::Files)?;
        files_only.deep.push(sample);
    }
    if let Some(help) = &runs.help {
        say("foreread, files only");
        files_only.foreread.push(runs.helped(help, Cold::Files)?);
    }
    // Last, because the hot run that follows needs the program's files in memory.
    say("plain, files only");
    files_only.plain.push(runs.plain(Cold::Files)?);
    Ok(())
}

/// How long further pairs may be begun after the rounds.
pub fn more_pairs_within(size: Size) -> Duration {
    Duration::from_secs(size.pick(20, 60))
}

/// True if the pairs give foreread's cost precisely enough.
fn is_told(result: &Measurement) -> bool {
    let (with, without) = (seconds(&result.foreread), seconds(&result.plain));
    match result.group {
        Group::Hot => stats::is_added_told(&with, &without),
        _ => stats::is_told(&with, &without),
    }
}

/// Adds a note about anything unusual in a run with foreread's help.
fn remark(sample: &Sample, case: &Case, notes: &mut Vec<String>) {
    let mut note = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    if let Some(account) = &sample.account
        && account.mode != "prefetched"
        && case.start == Start::Cold
    {
        note(format!("a run under foreread was {}", words(account)));
    }
    if let Some(thread) = &sample.prefetch_thread
        && !thread.ended_in_order()
    {
        note(format!("a prefetch thread ended early: {}", thread.ended));
    }
}

/// The number of rounds: more for short cases, for a meaningful median; fewer for long ones.
fn rounds_for(purpose: Purpose, settings: &Settings, round_seconds: f64) -> usize {
    let fit = (ROUNDS_SECONDS / round_seconds) as usize;
    let (mut least, most) = match purpose {
        Purpose::NoHarm => (FEWEST_PAIRS, 25),
        Purpose::Gain => (1, settings.rounds * 3),
    };
    if settings.exact_rounds {
        least = settings.rounds;
    }
    fit.min(most).max(least)
}

/// An account's mode and reason in one phrase.
fn words(account: &Account) -> String {
    match &account.reason {
        Some(reason) => format!("`{}`: {reason}", account.mode),
        None => format!("`{}`", account.mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_cases_get_more_rounds_and_long_ones_fewer_unless_asked_for() {
        let settings = Settings {
            rounds: 3,
            exact_rounds: false,
            size: Size::Quick,
            strace: true,
            foreread: None,
        };
        assert_eq!(rounds_for(Purpose::Gain, &settings, 60.0), 1);
        assert_eq!(rounds_for(Purpose::Gain, &settings, 5.0), 2);
        assert_eq!(rounds_for(Purpose::NoHarm, &settings, 60.0), 3);
        assert_eq!(rounds_for(Purpose::Gain, &settings, 0.1), 9);
        assert_eq!(rounds_for(Purpose::NoHarm, &settings, 0.1), 25);
        let asked = Settings {
            exact_rounds: true,
            ..settings
        };
        assert_eq!(rounds_for(Purpose::Gain, &asked, 60.0), 3);
    }
}
