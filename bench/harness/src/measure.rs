//! Measuring one case on one disk: modes interleaved in rounds.
//!
//! A round is plain cold, foreread cold, hot and the deep read, plain and foreread
//! taking turns at going first. A cold run counts only if the files are proved to be
//! out of memory before it; every run's output must be the first one's.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::cache;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Tools};
use crate::cgroup::MemoryGroup;
use crate::deep::{self, FileExtents, Way};
use crate::device::{DEFAULT_READ_AHEAD_KB, Device, Facts};
use crate::disk::Disk;
use crate::foreread::{Account, Foreread};
use crate::peer::Peer;
use crate::process::{self, Invocation, Outcome, Run};

/// How a case is to be measured.
pub struct Settings {
    /// Rounds asked for; short cases run more, long ones fewer.
    pub rounds: usize,
    /// Whether long cases run that many all the same.
    pub exact_rounds: bool,
    /// Data sizes.
    pub size: Size,
    /// The foreread binary; none leaves those columns out.
    pub foreread: Option<PathBuf>,
}

/// One timed run.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Wall-clock time, in seconds.
    pub seconds: f64,
    /// Bytes read from the device meanwhile, by anyone; none where it cannot be told.
    pub device_bytes: Option<u64>,
    /// What foreread said, if it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// Everything measured of one case on one disk.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The case.
    pub case: String,
    /// The disk.
    pub disk: String,
    /// Whether the case is there to show that foreread does no harm.
    pub no_harm: bool,
    /// Whether runs started with everything in memory.
    pub hot_start: bool,
    /// The device below the data, as it was before.
    pub device: Option<Facts>,
    /// The command.
    pub command: String,
    /// Which table it belongs to.
    pub group: Group,
    /// The memory it may use, in bytes.
    pub memory_limit: Option<u64>,
    /// Plain runs, cold unless `hot_start`.
    pub plain: Vec<Sample>,
    /// WILLNEED on the whole files first.
    pub willneed: Vec<Sample>,
    /// `vmtouch -t` first.
    pub vmtouch: Vec<Sample>,
    /// Runs under foreread with a record, paired with `plain` by index.
    pub foreread: Vec<Sample>,
    /// Plain runs with everything in memory.
    pub hot: Vec<Sample>,
    /// Reading the program's bytes at full depth.
    pub deep: Vec<Sample>,
    /// The way `deep` was read, the fastest of those tried.
    pub deep_way: Option<Way>,
    /// The run that recorded.
    pub recording: Option<Sample>,
    /// Unique bytes the program reads of the case's files, in whole pages.
    pub footprint_bytes: Option<u64>,
    /// Runs thrown away because the files were not out of memory.
    pub discarded: usize,
    /// Plain words about anything out of the ordinary.
    pub notes: Vec<String>,
}

/// The time all rounds of a case on a disk should take, in seconds: short ones run more
/// rounds than asked for, for a good median, and long ones fewer.
const ROUNDS_SECONDS: f64 = 12.0;
/// Pairs without which a ratio means nothing.
const FEWEST_PAIRS: usize = 3;
/// How often a cold start is tried before the case is given up.
const COLD_ATTEMPTS: u32 = 7;

/// Measures `case` on `disk` with the data in `original`; `say` is told what is being done.
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
    let bench = Bench {
        case,
        disk,
        job: &job,
        scratch: &scratch.0,
        device: Device::holding(&data)?,
        foreread: settings.foreread.as_ref().map(|binary| match &job.aware {
            Some(command) => Help::Aware(command),
            None => {
                let records = tools.root.join("records").join(case.name);
                Help::Run(Foreread::new(binary, &records, &scratch.0))
            }
        }),
        memory: job
            .memory_limit
            .map(|bytes| MemoryGroup::new(case.name, bytes))
            .transpose()?,
    };
    let mut result = Measurement {
        case: case.name.to_owned(),
        disk: disk.kind.name().to_owned(),
        no_harm: case.purpose == Purpose::NoHarm,
        hot_start: case.start == Start::Hot,
        device: bench.device.as_ref().map(Device::facts),
        command: job.command.line(),
        group: case.group,
        memory_limit: job.memory_limit,
        plain: Vec::new(),
        willneed: Vec::new(),
        vmtouch: Vec::new(),
        foreread: Vec::new(),
        hot: Vec::new(),
        deep: Vec::new(),
        deep_way: None,
        recording: None,
        footprint_bytes: None,
        discarded: 0,
        notes: disk.notes(),
    };
    let footprint = if case.start == Start::Cold {
        say("what it reads");
        let footprint = bench.footprint(case, disk, original, &job, settings, tools)?;
        result.footprint_bytes = Some(footprint.iter().map(FileExtents::bytes).sum());
        Some(footprint)
    } else {
        None
    };
    let _read_ahead = match &bench.device {
        Some(device) => Some(device.set_read_ahead(DEFAULT_READ_AHEAD_KB)?),
        None => {
            result
                .notes
                .push("no block device below: read-ahead and device bytes unknown".into());
            None
        }
    };
    bench.rounds(&mut result, footprint.as_deref(), settings, tools, say)?;
    Ok(result)
}

/// The parts of a measurement that do not change between runs.
struct Bench<'a> {
    case: &'a Case,
    disk: &'a Disk,
    job: &'a Job,
    scratch: &'a Path,
    device: Option<Device>,
    foreread: Option<Help<'a>>,
    memory: Option<MemoryGroup>,
}

/// How the case's program gets foreread's help.
enum Help<'a> {
    /// `foreread run` around it.
    Run(Foreread),
    /// The program's own use of the library.
    Aware(&'a Invocation),
}

impl Bench<'_> {
    /// Records once, then runs the rounds.
    fn rounds(
        &self,
        result: &mut Measurement,
        footprint: Option<&[FileExtents]>,
        settings: &Settings,
        tools: &Tools,
        say: &dyn Fn(&str),
    ) -> Result<()> {
        let mut expected = None;
        if let Some(Help::Run(foreread)) = &self.foreread {
            say("recording");
            foreread.forget()?;
            let sample = self.recorded_run(foreread, &mut result.discarded, &mut expected)?;
            if let Some(account) = &sample.account
                && account.mode != "recorded"
            {
                result
                    .notes
                    .push(format!("the recording run ended as {}", words(account)));
            }
            result.recording = Some(sample);
        }
        if let Some(footprint) = footprint {
            say("the best way to read it");
            result.deep_way = Some(self.best_way(footprint)?);
        }
        let peers = self.peers(result, tools);
        let mut rounds = settings.rounds;
        let mut round = 0;
        while round < rounds {
            let began = std::time::Instant::now();
            let label = |mode: &str| format!("round {}/{rounds} {mode}", round + 1);
            let foreread_first = round % 2 == 1;
            for foreread_turn in [foreread_first, !foreread_first] {
                if !foreread_turn {
                    say(&label("plain"));
                    result.plain.push(self.cold_run(
                        &self.job.command,
                        "plain",
                        &mut result.discarded,
                        &mut expected,
                    )?);
                } else if let Some(help) = &self.foreread {
                    say(&label("foreread"));
                    let sample = match help {
                        Help::Run(foreread) => {
                            self.recorded_run(foreread, &mut result.discarded, &mut expected)?
                        }
                        Help::Aware(command) => self.cold_run(
                            command,
                            "foreread",
                            &mut result.discarded,
                            &mut expected,
                        )?,
                    };
                    if let Some(account) = &sample.account
                        && account.mode != "prefetched"
                        && self.case.start == Start::Cold
                    {
                        let note = format!("a run under foreread was {}", words(account));
                        if !result.notes.contains(&note) {
                            result.notes.push(note);
                        }
                    }
                    result.foreread.push(sample);
                }
            }
            for (peer, command) in &peers {
                say(&label(peer.name()));
                let sample =
                    self.cold_run(command, peer.name(), &mut result.discarded, &mut expected)?;
                match peer {
                    Peer::WillNeed => result.willneed.push(sample),
                    Peer::Vmtouch => result.vmtouch.push(sample),
                }
            }
            if self.case.start == Start::Cold {
                say(&label("hot"));
                if self.memory.is_some() {
                    // What a limited run leaves in memory is not all it needs.
                    cache::warm(&self.job.files)?;
                }
                result
                    .hot
                    .push(self.timed(&self.job.command, "hot", &mut expected)?);
            }
            if let (Some(footprint), Some(way)) = (footprint, result.deep_way) {
                say(&label("deep"));
                result.deep.push(self.deep_run(footprint, way)?);
            }
            round += 1;
            if round == 1 {
                rounds = rounds_for(self.case.purpose, settings, began.elapsed().as_secs_f64());
            }
        }
        Ok(())
    }

    /// Makes the start cold or hot, as the case has it; false when cold could not be proved.
    fn prepare(&self) -> Result<bool> {
        match self.case.start {
            Start::Hot => cache::warm(&self.job.files).map(|()| true),
            Start::Cold => {
                if let Some(Help::Run(foreread)) = &self.foreread {
                    cache::evict(&crate::case::files_below(foreread.store())?)?;
                }
                cache::evict(&self.job.files)?;
                if self.job.cold_metadata {
                    cache::evict_metadata(self.device.as_ref())?;
                }
                self.disk.forget()?;
                cache::is_cold(&self.job.files)
            }
        }
    }

    /// Prepares until it works, counting the failures.
    fn prepared(&self, discarded: &mut usize) -> Result<()> {
        for attempt in 0..COLD_ATTEMPTS {
            if self.prepare()? {
                return Ok(());
            }
            *discarded += 1;
            // Pages just copied elsewhere are held by the kernel for some tenths of a second.
            std::thread::sleep(std::time::Duration::from_millis(10 << attempt));
        }
        bail!(
            "the files of {} would not leave memory: is somebody else using them?",
            self.case.name
        )
    }

    /// The other means this case is compared with; what is missing becomes a note.
    fn peers(&self, result: &mut Measurement, tools: &Tools) -> Vec<(Peer, Invocation)> {
        let mut found = Vec::new();
        for &peer in self.job.peers {
            match peer.before(&self.job.command, &self.job.files, tools) {
                Ok(command) => found.push((peer, command)),
                Err(error) => result
                    .notes
                    .push(format!("without {}: {error:#}", peer.name())),
            }
        }
        found
    }

    /// One run of `command` from the case's starting state, within its memory limit.
    fn cold_run(
        &self,
        command: &Invocation,
        mode: &str,
        discarded: &mut usize,
        expected: &mut Option<Outcome>,
    ) -> Result<Sample> {
        self.prepared(discarded)?;
        match &self.memory {
            Some(group) => self.timed(&group.inside(command), mode, expected),
            None => self.timed(command, mode, expected),
        }
    }

    /// One run of `command` from whatever is in memory.
    fn timed(
        &self,
        command: &Invocation,
        mode: &str,
        expected: &mut Option<Outcome>,
    ) -> Result<Sample> {
        self.job.clear_outputs()?;
        let (run, device_bytes) =
            self.counted(|| process::run(command, self.scratch, &self.job.outputs))?;
        self.same(&run, expected, mode)?;
        Ok(Sample {
            seconds: run.seconds,
            device_bytes,
            account: None,
        })
    }

    /// One run under `foreread run` from the case's starting state.
    fn recorded_run(
        &self,
        foreread: &Foreread,
        discarded: &mut usize,
        expected: &mut Option<Outcome>,
    ) -> Result<Sample> {
        let command = foreread.wrap(&self.job.command);
        let sample = self.cold_run(&command, "foreread", discarded, expected)?;
        Ok(Sample {
            account: Some(foreread.account()?),
            ..sample
        })
    }

    /// Tries every way to read the footprint; the fastest.
    fn best_way(&self, footprint: &[FileExtents]) -> Result<Way> {
        let mut best = (f64::INFINITY, Way::ALL[0]);
        for way in Way::ALL {
            cache::evict(&self.job.files)?;
            self.disk.forget()?;
            if let Some(seconds) = deep::read_within(footprint, way, best.0)? {
                best = (seconds, way);
            }
        }
        Ok(best.1)
    }

    /// One deep read from cold.
    fn deep_run(&self, footprint: &[FileExtents], way: Way) -> Result<Sample> {
        cache::evict(&self.job.files)?;
        self.disk.forget()?;
        let (seconds, device_bytes) = self.counted(|| deep::read(footprint, way))?;
        Ok(Sample {
            seconds,
            device_bytes,
            account: None,
        })
    }

    /// Does `work` and says how many bytes were read from the device meanwhile.
    fn counted<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<u64>)> {
        let read = || self.device.as_ref().map(Device::bytes_read).transpose();
        let before = read()?;
        let done = work()?;
        let after = read()?;
        Ok((
            done,
            before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before)),
        ))
    }

    /// Holds a run's outcome against the first one's.
    fn same(&self, run: &Run, expected: &mut Option<Outcome>, mode: &str) -> Result<()> {
        let first = *expected.get_or_insert(run.outcome);
        if first.status != 0 {
            bail!(
                "`{}` failed with status {}: {}",
                self.job.command.line(),
                first.status,
                run.stderr
            );
        }
        if run.outcome != first {
            bail!(
                "`{}` gave another result in mode {mode}: status {} for {}, output hash {:x} for {:x}: {}",
                self.job.command.line(),
                run.outcome.status,
                first.status,
                run.outcome.output,
                first.output,
                run.stderr,
            );
        }
        Ok(())
    }

    /// What the command reads of the case's files: the case's own word, or what is in
    /// memory after a cold run without read-ahead on the machine's own disk.
    fn footprint(
        &self,
        case: &Case,
        disk: &Disk,
        original: &Path,
        job: &Job,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<Vec<FileExtents>> {
        if let Some(given) = &job.footprint {
            return Ok(given.clone());
        }
        let own_job = case
            .work
            .job(original, self.scratch, settings.size, tools)?;
        let own_disk = Disk::own();
        let own = Bench {
            case,
            disk: &own_disk,
            job: &own_job,
            scratch: self.scratch,
            device: Device::holding(original)?,
            foreread: None,
            memory: None,
        };
        let _no_read_ahead = own
            .device
            .as_ref()
            .map(|device| device.set_read_ahead(0))
            .transpose()?;
        own.prepared(&mut 0)?;
        own_job.clear_outputs()?;
        process::run(&own_job.command, self.scratch, &[])?;
        let mut footprint = cache::resident_extents(&own_job.files)?;
        for list in &mut footprint {
            list.path = disk.moved(&list.path, original)?;
        }
        Ok(footprint)
    }
}

/// More rounds for short cases, so that a median means something; fewer for long ones.
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

/// A folder for outputs, in memory where there is /dev/shm, removed on drop.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A fresh one for `name`.
    pub fn new(name: &str, tools: &Tools) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory } else { &tools.root };
        let path = parent.join(format!("foreread-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("could not remove {}: {error}", self.0.display());
        }
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
