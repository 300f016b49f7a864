//! The single runs of one case on one disk: from cold, from hot, with help and without.
//!
//! A cold run counts only if the files are proved to be out of memory before it; every run's
//! output must be the first one's.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cache;
use crate::case::{Case, Group, Job, Start, Tools};
use crate::cgroup::MemoryGroup;
use crate::deep::{self, FileExtents, Way};
use crate::device::Device;
use crate::disk::Disk;
use crate::foreread::Foreread;
use crate::measure::{Sample, Settings};
use crate::peer::Peer;
use crate::process::{self, Invocation, Outcome, Run};

/// The plain program's runs.
const PLAIN: &str = "plain";

/// How often a cold start is tried before the case is given up.
const COLD_ATTEMPTS: u32 = 7;

/// A case ready to run on a disk.
pub struct Runs<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its commands, over data on the disk.
    pub job: Job,
    /// The device below the data.
    pub device: Option<Device>,
    /// How the program gets foreread's help.
    pub help: Option<Help>,
    /// `foreread run`, where it is measured.
    pub recorder: Option<Foreread>,
    /// `foreread run` that knows nothing of the program's run, where that is measured.
    newcomer: Option<Foreread>,
    /// Starts that were not cold, and not counted.
    pub discarded: Cell<usize>,
    /// Rounds that are over.
    pub round: Cell<usize>,
    disk: &'a Disk,
    scratch: &'a Path,
    memory: Option<MemoryGroup>,
    /// What the first run did, and every other has to do.
    expected: Cell<Option<Outcome>>,
}

/// How a case's program gets foreread's help.
pub enum Help {
    /// `foreread run` around it.
    Run,
    /// The program's own use of the library.
    Aware,
    /// A prefetch thread that `foreread cc` gave it.
    Translated,
    /// `foreread run` around it, with no record, or with one of another input.
    First,
}

impl<'a> Runs<'a> {
    /// The runs of `job`, whose data is in `data`.
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
        Ok(Self {
            case,
            disk,
            device: Device::holding(data)?,
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

    /// Has the program compute so much for each block it reads, from the next run on.
    pub fn compute(&mut self, work: u64) {
        self.job.compute(work);
        // What it prints depends on it.
        self.expected.set(None);
    }

    /// A run of the plain program from the case's starting state.
    pub fn plain(&self) -> Result<Sample> {
        self.cold(&self.job.command, PLAIN)
    }

    /// A run with foreread's help from the case's starting state.
    pub fn helped(&self, help: &Help) -> Result<Sample> {
        match (help, &self.job.aware, &self.job.translated) {
            (Help::Aware, Some(command), _) => self.cold(command, "foreread"),
            (Help::Translated, _, Some(translated)) => {
                let sample = self.cold(&translated.command, "foreread cc")?;
                Ok(Sample {
                    prefetch_thread: Some(translated.account()?),
                    ..sample
                })
            }
            (Help::First, _, _) => self.first(),
            _ => self.recorded(),
        }
    }

    /// A run under `foreread run` with nothing known but what the case's other input teaches, from the case's starting
    /// state.
    fn first(&self) -> Result<Sample> {
        let foreread = self.newcomer.as_ref();
        let foreread = foreread.context("this case is not measured on its first run")?;
        foreread.forget()?;
        if let Some(learn) = &self.job.learn {
            self.prepared()?;
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
        self.under(foreread)
    }

    /// A run under `foreread run` that has no record, from the case's starting state.
    pub fn recording(&self) -> Result<Sample> {
        self.recorder()?.forget()?;
        self.recorded()
    }

    /// A run under `foreread run` from the case's starting state.
    pub fn recorded(&self) -> Result<Sample> {
        self.under(self.recorder()?)
    }

    /// A run under this `foreread run`, from the case's starting state, with its account.
    fn under(&self, foreread: &Foreread) -> Result<Sample> {
        let sample = self.cold(&foreread.wrap(&self.job.command), "foreread")?;
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
    pub fn cold(&self, command: &Invocation, mode: &str) -> Result<Sample> {
        self.prepared()?;
        let ready = || self.disk.turn(self.round.get());
        let _inside = self.memory.as_ref().map(MemoryGroup::enter).transpose()?;
        self.timed(ready, command, mode)
    }

    /// A run of the plain program with everything in memory.
    pub fn hot(&self) -> Result<Sample> {
        self.hot_run(&self.job.command)
    }

    /// Hot times of the program as it is and translated, without its prefetch thread.
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

    fn hot_run(&self, command: &Invocation) -> Result<Sample> {
        self.job.restore()?;
        if self.memory.is_some() || self.job.translated.is_some() {
            // What a limited run leaves in memory is not all it needs; what another has read is gone.
            cache::warm(&self.job.files)?;
        }
        self.timed(|| (), command, "hot")
    }

    /// Tries every way to read the footprint; the fastest.
    pub fn best_way(&self, footprint: &[FileExtents]) -> Result<Way> {
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
    pub fn deep(&self, footprint: &[FileExtents], way: Way) -> Result<Sample> {
        cache::evict(&self.job.files)?;
        self.disk.forget()?;
        self.disk.turn(self.round.get());
        let (seconds, device_bytes) = self.counted(|| deep::read(footprint, way))?;
        Ok(Sample {
            seconds,
            device_bytes,
            account: None,
            prefetch_thread: None,
        })
    }

    /// What the command reads of the case's files: the case's own word, or what is in
    /// memory after a cold run without read-ahead on the machine's own disk.
    pub fn footprint(
        &self,
        original: &Path,
        settings: &Settings,
        tools: &Tools,
    ) -> Result<Vec<FileExtents>> {
        if let Some(given) = &self.job.footprint {
            return Ok(given.clone());
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
        let _no_read_ahead = own
            .device
            .as_ref()
            .map(|device| device.set_read_ahead(0))
            .transpose()?;
        own.prepared()?;
        own.job.clear_outputs()?;
        process::run(&own.job.command, self.scratch, &[])?;
        let mut footprint = cache::resident_extents(&own.job.files)?;
        for list in &mut footprint {
            list.path = self.disk.moved(&list.path, original)?;
        }
        Ok(footprint)
    }

    /// The other means this case is compared with; what is missing becomes a note.
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

    /// Makes the start cold or hot, as the case has it; false when cold could not be proved.
    fn prepare(&self) -> Result<bool> {
        match self.case.start {
            Start::Hot if self.job.files.is_empty() => self.warm_up().map(|()| true),
            Start::Hot => cache::warm(&self.job.files).map(|()| true),
            Start::Cold => {
                self.job.restore()?;
                cache::warm(&self.job.code)?;
                for foreread in self.recorder.iter().chain(&self.newcomer) {
                    if foreread.store().exists() {
                        cache::evict(&crate::case::files_below(foreread.store())?)?;
                    }
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

    /// Brings into memory whatever the command reads, by a plain run that is not timed.
    fn warm_up(&self) -> Result<()> {
        self.job.clear_outputs()?;
        process::run(&self.job.command, self.scratch, &[]).map(|_| ())
    }

    /// Prepares until it works, counting the failures.
    fn prepared(&self) -> Result<()> {
        for attempt in 0..COLD_ATTEMPTS {
            if self.prepare()? {
                return Ok(());
            }
            self.discarded.set(self.discarded.get() + 1);
            // Pages just copied elsewhere are held by the kernel for some tenths of a second.
            std::thread::sleep(std::time::Duration::from_millis(10 << attempt));
        }
        bail!(
            "the files of {} would not leave memory: is somebody else using them?",
            self.case.name
        )
    }

    /// One run of `command` from whatever is in memory.
    fn timed(&self, ready: impl FnOnce(), command: &Invocation, mode: &str) -> Result<Sample> {
        self.job.clear_outputs()?;
        let outputs = &self.job.outputs;
        let (run, device_bytes) =
            self.counted(|| process::run_when(ready, command, self.scratch, outputs))?;
        self.same(&run, mode)?;
        Ok(Sample {
            seconds: run.seconds,
            device_bytes,
            account: None,
            prefetch_thread: None,
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
