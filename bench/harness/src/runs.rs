//! The single runs of one case on one disk: cold or hot, with foreread's help or without.
//!
//! A cold run counts only if its files were proved to be out of memory before it. Every run's output must equal the first run's.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cache;
use crate::case::{Case, Cold, Group, Job, Size, Start};
use crate::cgroup::MemoryGroup;
use crate::deep::{self, FileExtents, Needed, Way};
use crate::device::{Device, Facts, ReadAhead};
use crate::disk::Disk;
use crate::foreread::Foreread;
use crate::names::Names;
use crate::peer::Peer;
use crate::process::{self, Invocation, Outcome, Run};
use crate::sample::Sample;
use crate::tools::Tools;

/// The plain program's runs.
const PLAIN: &str = "plain";

/// The folder of programs and libraries.
const PROGRAMS: &str = "/usr";

/// A note is made if more than one in this many of the bytes read stay in memory.
const NOTEWORTHY: u64 = 20;

/// How many times a cold start is tried before the case is given up.
const COLD_ATTEMPTS: u32 = 7;

/// How a case is measured.
#[derive(Clone)]
pub struct Settings {
    /// Rounds asked for; short cases run more, long ones fewer.
    pub rounds: usize,
    /// True if long cases run all these rounds as well.
    pub exact_rounds: bool,
    /// Data sizes.
    pub size: Size,
    /// True if the group files has runs under strace.
    pub strace: bool,
    /// The foreread binary; `None` leaves its columns out.
    pub foreread: Option<PathBuf>,
}

/// A case ready to run on a disk.
pub struct Runs<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its commands, with the data on the disk.
    pub job: Job,
    /// The device below the data.
    pub device: Option<Device>,
    /// The device below the system's programs, if it is a different one.
    programs: Option<Device>,
    /// The way in which foreread helps the program.
    pub help: Option<Help>,
    /// `foreread run` with a record, if it is measured.
    pub recorder: Option<Foreread>,
    /// `foreread run` without a record of the program, if first runs are measured.
    newcomer: Option<Foreread>,
    /// Starts that were not cold and so were not counted.
    pub discarded: Cell<usize>,
    /// Finished rounds.
    pub round: Cell<usize>,
    disk: &'a Disk,
    scratch: &'a Path,
    memory: Option<MemoryGroup>,
    /// The outcome of the first run, which every other run must have as well.
    expected: Cell<Option<Outcome>>,
}

/// The bytes and names that a case's program reads from the disks.
#[derive(Default)]
pub struct Needs {
    /// The bytes of the case's files.
    pub files: Needed,
    /// After a reboot: the bytes of the case's files, those of the program itself, and all names.
    pub everything: Option<Needed>,
    /// Anything unusual, as text.
    pub notes: Vec<String>,
}

/// A need of these bytes and of no names.
fn of_files(files: Vec<FileExtents>) -> Needed {
    Needed {
        names: Names::default(),
        files,
    }
}

/// A way in which foreread helps a case's program.
pub enum Help {
    /// `foreread run` starts the program.
    Run,
    /// The program itself uses the library.
    Aware,
    /// `foreread cc` gave the program a prefetch thread.
    Translated,
    /// `foreread run` starts the program without a record, or with the record of another input.
    First,
}

impl<'a> Runs<'a> {
    /// The runs of `job`, with its data in `data`.
    pub fn new(
        case: &'a Case,
        disk: &'a Disk,
        job: Job,
        data: &Path,
        scratch: &'a Path,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<Self> {
        let help =
            settings
                .foreread
                .as_ref()
                .map(|_| match (&job.aware, &job.translated, case.group) {
                    (Some(_), _, _) => Help::Aware,
                    (None, Some(_), _) => Help::Translated,
                    (None, None, Group::Signature) => Help::First,
                    (None, None, _) => Help::Run,
                });
        let recorder = settings.foreread.as_ref().filter(|_| job.aware.is_none());
        let with_store = |binary: &Path, name: &str| {
            Foreread::new(binary, &tools.root.join("records").join(name), scratch)
        };
        let device = Device::holding(data)?;
        let programs = Device::holding(Path::new(PROGRAMS))?;
        Ok(Self {
            case,
            disk,
            programs: programs.filter(|programs| Some(programs) != device.as_ref()),
            device,
            recorder: recorder.map(|binary| with_store(binary, case.name)),
            newcomer: recorder
                .filter(|_| matches!(help, Some(Help::First)))
                .map(|binary| with_store(binary, &format!("{}-first", case.name))),
            help,
            memory: job
                .memory_limit
                .map(|bytes| MemoryGroup::new(case.name, bytes))
                .transpose()?,
            job,
            discarded: Cell::new(0),
            round: Cell::new(0),
            scratch,
            expected: Cell::new(None),
        })
    }

    /// Sets the computation per block of the program, from the next run on.
    pub fn compute(&mut self, work: u64) {
        self.job.compute(work);
        // The program's output depends on it.
        self.expected.set(None);
    }

    /// Sets the read-ahead of the disks to `kb` until the returned guards are dropped.
    pub fn set_read_ahead(&self, kb: u64) -> Result<Vec<ReadAhead>> {
        let set = |device: &Device| device.set_read_ahead(kb);
        self.devices().map(set).collect()
    }

    /// The disks that the program reads from.
    fn devices(&self) -> impl Iterator<Item = &Device> {
        self.device.iter().chain(&self.programs)
    }

    /// A run of the plain program from the case's starting state.
    pub fn plain(&self, cold: Cold) -> Result<Sample> {
        self.cold(&self.job.command, PLAIN, cold)
    }

    /// A run with foreread's help from the case's starting state.
    pub fn helped(&self, help: &Help, cold: Cold) -> Result<Sample> {
        match (help, &self.job.aware, &self.job.translated) {
            (Help::Aware, Some(command), _) => self.cold(command, "foreread", cold),
            (Help::Translated, _, Some(translated)) => {
                let sample = self.cold(&translated.command, "foreread cc", cold)?;
                Ok(Sample {
                    prefetch_thread: Some(translated.account()?),
                    ..sample
                })
            }
            (Help::First, _, _) => self.first(cold),
            _ => self.recorded(cold),
        }
    }

    /// A run under `foreread run` from the case's starting state; foreread knows only the records of the case's other input, if
    /// it has one.
    fn first(&self, cold: Cold) -> Result<Sample> {
        let foreread = self.newcomer.as_ref();
        let foreread = foreread.context("this case is not measured on its first run")?;
        foreread.forget()?;
        if let Some(learn) = &self.job.learn {
            self.prepared(cold)?;
            self.job.clear_outputs()?;
            let _inside = self.memory.as_ref().map(MemoryGroup::enter).transpose()?;
            let run = process::run(&foreread.wrap(learn), self.scratch, &[])?;
            if run.outcome.status != self.job.status {
                bail!(
                    "`{}` ended with status {}: {}",
                    learn.line(),
                    run.outcome.status,
                    run.stderr
                );
            }
            foreread.account()?;
        }
        self.under(foreread, cold)
    }

    /// A run under `foreread run` that has no record, from the case's starting state.
    pub fn recording(&self) -> Result<Sample> {
        self.recorder()?.forget()?;
        self.recorded(self.case.cold())
    }

    /// A run under `foreread run`, with the records that there are, from the case's starting state.
    pub fn recorded(&self, cold: Cold) -> Result<Sample> {
        self.under(self.recorder()?, cold)
    }

    /// A run under this `foreread run` from the case's starting state, with its account.
    fn under(&self, foreread: &Foreread, cold: Cold) -> Result<Sample> {
        let sample = self.cold(&foreread.wrap(&self.job.command), "foreread", cold)?;
        Ok(Sample {
            account: Some(foreread.account()?),
            ..sample
        })
    }

    fn recorder(&self) -> Result<&Foreread> {
        self.recorder
            .as_ref()
            .context("this case does not run under foreread run")
    }

    /// One run of `command` from the case's starting state, within its memory limit.
    pub fn cold(&self, command: &Invocation, mode: &str, cold: Cold) -> Result<Sample> {
        self.prepared(cold)?;
        let ready = || self.disk.turn(self.round.get());
        let _inside = self.memory.as_ref().map(MemoryGroup::enter).transpose()?;
        self.timed(ready, command, mode)
    }

    /// A run of `command` after a reboot's start and without a memory limit. Nothing checks that the start is cold: the check
    /// opens each file, and a watching daemon would learn those opens and prefetch what follows them. [`Self::prove`] has shown
    /// before the daemon's start that memory can be emptied.
    pub fn cold_unseen(&self, command: &Invocation, mode: &str) -> Result<Sample> {
        self.job.restore()?;
        self.empty(Cold::Reboot)?;
        self.timed(|| self.disk.turn(self.round.get()), command, mode)
    }

    /// Shows that the case's files can be removed from memory.
    pub fn prove(&self) -> Result<()> {
        self.prepared(Cold::Reboot)
    }

    /// A run of the plain program with everything in memory.
    pub fn hot(&self) -> Result<Sample> {
        self.hot_run(&self.job.command)
    }

    /// Hot times of the original program and of the translated one without its prefetch thread.
    pub fn hot_pair(&self, translated_first: bool) -> Result<(f64, f64)> {
        let translated = self.job.translated.as_ref();
        let alone = translated.context("the case is not translated")?.alone();
        let ours = |command| Ok::<_, anyhow::Error>(self.hot_run(command)?.seconds);
        if translated_first {
            let translated = ours(&alone)?;
            return Ok((ours(&self.job.command)?, translated));
        }
        Ok((ours(&self.job.command)?, ours(&alone)?))
    }

    /// A run of `command`, a variation of the plain one, with everything in memory.
    pub fn hot_run(&self, command: &Invocation) -> Result<Sample> {
        self.job.restore()?;
        if self.memory.is_some() || self.job.translated.is_some() {
            // A limited run leaves only some of its files in memory, and a run of another program may have evicted others.
            cache::warm(&self.job.files)?;
        }
        self.timed(|| (), command, "hot")
    }

    /// Tries every way to read the needed bytes and returns the fastest.
    pub fn best_way(&self, needed: &Needed, cold: Cold) -> Result<Way> {
        let rotational = self.facts().is_some_and(|facts| facts.rotational);
        let ways = Way::worth_trying(rotational);
        let mut best = (f64::INFINITY, ways[0]);
        for &way in ways {
            self.empty(cold)?;
            if let Some(seconds) = deep::read_within(needed, way, best.0)? {
                best = (seconds, way);
            }
        }
        Ok(best.1)
    }

    /// The properties of the device below the data, as the kernel reports them.
    pub fn facts(&self) -> Option<Facts> {
        self.device.as_ref().map(Device::facts)
    }

    /// One deep read from cold.
    pub fn deep(&self, needed: &Needed, way: Way, cold: Cold) -> Result<Sample> {
        self.empty(cold)?;
        self.disk.turn(self.round.get());
        let (seconds, device_bytes) = self.counted(|| deep::read(needed, way))?;
        Ok(Sample {
            seconds,
            device_bytes,
            cpu_seconds: None,
            account: None,
            prefetch_thread: None,
        })
    }

    /// The bytes and names that the command needs from the case's disk and from the system's, measured on the machine's own disk.
    pub fn needs(&self, original: &Path, settings: &Settings, tools: &Tools) -> Result<Needs> {
        let cold = self.case.cold();
        if let (Some(given), Cold::Files) = (&self.job.footprint, cold) {
            return Ok(Needs {
                files: of_files(given.clone()),
                ..Needs::default()
            });
        }
        let own_disk = Disk::own();
        let bare = Settings {
            foreread: None,
            ..settings.clone()
        };
        let job = Job {
            memory_limit: None,
            ..self
                .case
                .work
                .job(original, self.scratch, settings.size, tools)?
        };
        let own = Runs::new(
            self.case,
            &own_disk,
            job,
            original,
            self.scratch,
            &bare,
            tools,
        )?;
        let mut notes = Vec::new();
        let names = match cold {
            Cold::Files => Names::default(),
            Cold::Reboot => {
                own.job.clear_outputs()?;
                Names::of(&own.job.command, self.scratch).unwrap_or_else(|error| {
                    notes.push(format!("the limit is without names: {error:#}"));
                    Names::default()
                })
            }
        };
        // Pages of shared libraries that other processes use stay in memory, so no run has to read them.
        let all: BTreeSet<PathBuf> = names.opened.iter().chain(&own.job.files).cloned().collect();
        let all: Vec<PathBuf> = all.into_iter().collect();
        let _no_read_ahead = own.set_read_ahead(0)?;
        own.prepared(cold)?;
        let stayed = cache::resident_extents(&all)?;
        own.prepared(cold)?;
        own.job.clear_outputs()?;
        process::run(&own.job.command, self.scratch, &[])?;
        let mut read = cache::resident_extents(&all)?;
        deep::take_away(&mut read, &stayed);
        let moved = |path: &Path| self.disk.moved(path, original);
        for list in &mut read {
            list.path = moved(&list.path)?;
        }
        let ours: BTreeSet<&PathBuf> = self.job.files.iter().collect();
        let (mut files, others): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|list| ours.contains(&list.path));
        if let Some(given) = &self.job.footprint {
            files.clone_from(given);
        }
        let mut everything = Needed {
            names: names.moved(moved)?,
            files: [files.clone(), others].concat(),
        };
        everything.names.order_by_inode();
        deep::order_by_place(&mut everything.files);
        let bytes = |files: &[FileExtents]| files.iter().map(FileExtents::bytes).sum::<u64>();
        let (stayed, needed) = (bytes(&stayed), bytes(&everything.files));
        if stayed > needed / NOTEWORTHY {
            notes.push(format!(
                "{} MiB that running processes use stay in memory, beside {} MiB that are read",
                stayed >> 20,
                needed >> 20
            ));
        }
        Ok(Needs {
            files: of_files(files),
            everything: (cold == Cold::Reboot).then_some(everything),
            notes,
        })
    }

    /// The other ways that this case is compared with; a missing program becomes a note.
    pub fn peers(&self, notes: &mut Vec<String>, tools: &Tools) -> Vec<(Peer, Invocation)> {
        let mut found = Vec::new();
        for &peer in self.job.peers {
            match peer.before(&self.job.command, &self.job.files, tools) {
                Ok(command) => found.push((peer, command)),
                Err(error) => notes.push(format!("without {}: {error:#}", peer.name())),
            }
        }
        found
    }

    /// Makes the start cold or hot, as the case requires; false if the files were not proved cold.
    fn prepare(&self, cold: Cold) -> Result<bool> {
        match self.case.start {
            Start::Hot if self.job.files.is_empty() => self.warm_up().map(|()| true),
            Start::Hot => cache::warm(&self.job.files).map(|()| true),
            Start::Cold => {
                self.job.restore()?;
                cache::warm(&self.job.code)?;
                for foreread in self.recorder.iter().chain(&self.newcomer) {
                    if foreread.store().exists() {
                        cache::evict(&crate::tree::files_below(foreread.store())?)?;
                    }
                }
                let proved = match cold {
                    Cold::Files => {
                        cache::evict(&self.job.files)?;
                        cache::is_cold(&self.job.files)?
                    }
                    Cold::Reboot => {
                        // Checking the files brings their names back into memory, so the names are dropped last.
                        cache::drop_pages()?;
                        let proved = cache::is_cold(&self.job.files)?;
                        cache::drop_everything()?;
                        proved
                    }
                };
                self.disk.forget()?;
                Ok(proved)
            }
        }
    }

    /// Empties memory and the disk's cache.
    pub fn empty(&self, cold: Cold) -> Result<()> {
        match cold {
            Cold::Files => cache::evict(&self.job.files)?,
            Cold::Reboot => cache::drop_everything()?,
        }
        self.disk.forget()
    }

    /// Brings all that the command reads into memory, by a plain run that is not timed.
    fn warm_up(&self) -> Result<()> {
        self.job.clear_outputs()?;
        process::run(&self.job.command, self.scratch, &[]).map(|_| ())
    }

    /// Prepares until the start is as required, and counts the failures.
    fn prepared(&self, cold: Cold) -> Result<()> {
        for attempt in 0..COLD_ATTEMPTS {
            if self.prepare(cold)? {
                return Ok(());
            }
            self.discarded.set(self.discarded.get() + 1);
            // The kernel holds pages just copied elsewhere for some tenths of a second.
            std::thread::sleep(std::time::Duration::from_millis(10 << attempt));
        }
        bail!(
            "the files of {} would not leave memory: is somebody else using them?",
            self.case.name
        )
    }

    /// One run of `command` from the present state of memory.
    fn timed(&self, ready: impl FnOnce(), command: &Invocation, mode: &str) -> Result<Sample> {
        self.job.clear_outputs()?;
        let outputs = &self.job.outputs;
        let (run, device_bytes) =
            self.counted(|| process::run_when(ready, command, self.scratch, outputs))?;
        self.same(&run, mode)?;
        Ok(Sample {
            seconds: run.seconds,
            device_bytes,
            cpu_seconds: Some(run.cpu_seconds),
            account: None,
            prefetch_thread: None,
        })
    }

    /// Runs `work` and returns its result with the bytes read from the disks meanwhile.
    fn counted<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<u64>)> {
        let read = || self.devices().map(Device::bytes_read).sum::<Result<u64>>();
        let before = read()?;
        let done = work()?;
        let bytes = read()?.saturating_sub(before);
        Ok((done, self.device.as_ref().map(|_| bytes)))
    }

    /// Fails if a run's outcome differs from the first one's.
    fn same(&self, run: &Run, mode: &str) -> Result<()> {
        let first = self.expected.get().unwrap_or(run.outcome);
        self.expected.set(Some(first));
        if first.status != self.job.status {
            bail!(
                "`{}` ended with status {}: {}",
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
}
