//! A benchmark case: its data, a command over the data, and the disks it is worth running on.
//!
//! A case's data is generated once on the machine's own disk, below the data
//! directory, deterministically; slow disks get a copy. The command is told where
//! its data is at run time, so that the same case runs on every disk.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::deep::FileExtents;
use crate::disk::DiskKind;
use crate::mpi::launch::Launch;
use crate::peer::Peer;
use crate::process::Invocation;
use crate::tools::Tools;
use crate::translated::Translated;
use crate::want::Want;

/// Amount of data: `quick` runs in minutes, `full` is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For `--quick`.
    Quick,
    /// For everything.
    Full,
}

impl Size {
    /// The size's name in folder names and reports.
    pub fn name(self) -> &'static str {
        match self {
            Size::Quick => "quick",
            Size::Full => "full",
        }
    }

    /// The figure for this size.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Size::Quick => quick,
            Size::Full => full,
        }
    }
}

/// The purpose of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Foreread should make it faster.
    Gain,
    /// Foreread must not make it slower: judged by the ratios of pairs, with more rounds.
    NoHarm,
}

/// The contents of memory when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing of the case's files is in memory.
    Cold,
    /// Everything that the command reads is in memory.
    Hot,
}

/// The files that are out of memory at a cold start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// Everything, as after a reboot: pages, directories and inodes, of the program and its libraries too.
    Reboot,
    /// The pages of the case's files alone.
    Files,
}

/// The way in which foreread helps a case's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Unmodified programs under `foreread run`.
    Main,
    /// Starts of programs and walks over many files, under `foreread run`.
    Start,
    /// Programs that pass their list to the library, beside other means.
    Api,
    /// Programs that `foreread cc` gave a prefetch thread, beside `foreread run`.
    Slice,
    /// Everyday commands with everything in memory, under `foreread run`: nothing to gain, and little to lose.
    Hot,
    /// Programs whose reads follow a pattern, under `foreread run` for the first time.
    Signature,
    /// Programs that open many files, beside `foreread daemon` with each of its models.
    Files,
    /// Parallel programs, with each rank under `foreread run`.
    Mpi,
}

/// One benchmark case: a row of `cases/table.rs`.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name, as in `--case`.
    pub name: &'static str,
    /// The table that it belongs to.
    pub group: Group,
    /// A description in a few words.
    pub about: &'static str,
    /// Its data.
    pub data: &'static Data,
    /// Its command.
    pub work: &'static dyn Workload,
    /// The disks it runs on.
    pub disks: &'static [DiskKind],
    /// The disks that it runs on with `--quick`.
    pub quick: &'static [DiskKind],
    /// Programs that it needs, as found in PATH, with the Debian package of each.
    pub needs: &'static [(&'static str, &'static str)],
    /// Its purpose.
    pub purpose: Purpose,
    /// The contents of memory when a run starts.
    pub start: Start,
    /// Targets besides those of its group.
    pub floors: &'static [(DiskKind, Want)],
}

impl Case {
    /// The files that are out of memory at a cold start. Programs under `foreread run` start as after a reboot.
    pub fn cold(&self) -> Cold {
        match (self.start, self.group) {
            (Start::Cold, Group::Main | Group::Start | Group::Files) => Cold::Reboot,
            _ => Cold::Files,
        }
    }

    /// True if every processor has a busy loop beside the runs.
    pub fn busy(&self) -> bool {
        self.group == Group::Hot && self.name.starts_with("busy-")
    }
}

/// The data of a case; cases may share it.
pub struct Data {
    /// The folder's name.
    pub name: &'static str,
    /// Fills the empty folder.
    pub make: fn(&Path, Size, &Tools) -> Result<()>,
}

/// The command of a case.
pub trait Workload: Sync {
    /// The command over data in `dir`, its outputs in `scratch` (in memory).
    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job>;
}

/// A command ready to be measured.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The command.
    pub command: Invocation,
    /// The files it may read: evicted before cold runs, and examined for the pages it read.
    pub files: Vec<PathBuf>,
    /// The exit status that every run has to end with.
    pub status: i32,
    /// Output files to compare between modes, besides standard output.
    pub outputs: Vec<PathBuf>,
    /// A folder that must be empty before every run.
    pub fresh_dir: Option<PathBuf>,
    /// A file that the command writes into, and its original, of which it is made a copy before every run.
    pub rewritten: Option<Rewritten>,
    /// The extents that the command reads, if the case knows them; otherwise a run is observed.
    pub footprint: Option<Vec<FileExtents>>,
    /// The command that uses the library itself, to be run in place of `foreread run`.
    pub aware: Option<Invocation>,
    /// The program with another input, from which a first run may have learnt.
    pub learn: Option<Invocation>,
    /// The program with a sliced prefetch thread, run beside `foreread run`.
    pub translated: Option<Translated>,
    /// Other means to compare with.
    pub peers: &'static [Peer],
    /// The memory the command may use, page cache included, in bytes.
    pub memory_limit: Option<u64>,
    /// The commands from which a daemon learns, if one is measured.
    pub lesson: Lesson,
    /// How the command is started as ranks, in the group mpi.
    pub launch: Option<Launch>,
    /// Notes about unusual circumstances.
    pub notes: Vec<String>,
    /// Code that the program loads: in memory before every run, like the program itself. Under a memory limit a run could evict
    /// it.
    pub code: Vec<PathBuf>,
}

/// The commands that run beside the measured one, for a daemon that learns from every program.
#[derive(Clone, Debug, Default)]
pub struct Lesson {
    /// The commands of each warm-up run; the command itself if there are none.
    pub teach: Vec<Invocation>,
    /// Number of warm-up runs, if it is not the usual one.
    pub times: Option<usize>,
    /// The command that restores the data before a run.
    pub before: Option<Invocation>,
    /// The command that runs after each run.
    pub between: Option<Invocation>,
}

/// A file that is changed by a run.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The path that the command gets.
    pub file: PathBuf,
    /// The file with its contents before each run.
    pub pristine: PathBuf,
}

impl Rewritten {
    /// Restores the file's contents in place, so that its blocks on the disk stay where they were.
    pub fn restore(&self) -> Result<()> {
        let content = fs::read(&self.pristine)
            .with_context(|| format!("reading {}", self.pristine.display()))?;
        let write = || -> std::io::Result<()> {
            let mut file = fs::File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&self.file)?;
            file.write_all(&content)?;
            file.set_len(content.len() as u64)?;
            file.sync_all()
        };
        write().with_context(|| format!("writing {}", self.file.display()))
    }
}

impl Job {
    /// Restores the files that the run before has changed; they are in memory afterwards.
    pub fn restore(&self) -> Result<()> {
        self.rewritten.as_ref().map_or(Ok(()), Rewritten::restore)
    }

    /// Sets the computing time per block for a translated program and its original: their arguments begin with `-k WORK`.
    pub fn compute(&mut self, work: u64) {
        self.command.args[1] = work.to_string().into();
        if let Some(translated) = &mut self.translated {
            translated.command.args[1] = work.to_string().into();
        }
    }

    /// Empties the folder that must be empty before a run.
    pub fn clear_outputs(&self) -> Result<()> {
        let Some(dir) = &self.fresh_dir else {
            return Ok(());
        };
        if dir.exists() {
            fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
        }
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))
    }
}

impl Data {
    /// The folder with the data, which is generated the first time.
    pub fn folder(&self, size: Size, tools: &Tools) -> Result<PathBuf> {
        let dir = tools
            .root
            .join("data")
            .join(format!("{}-{}", self.name, size.name()));
        let stamp = dir.with_extension("complete");
        if stamp.exists() && dir.is_dir() {
            return Ok(dir);
        }
        if dir.exists() {
            fs::remove_dir_all(&dir)
                .with_context(|| format!("removing unfinished {}", dir.display()))?;
        }
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        (self.make)(&dir, size, tools).with_context(|| format!("generating {}", dir.display()))?;
        fs::write(&stamp, "").with_context(|| format!("writing {}", stamp.display()))?;
        Ok(dir)
    }
}
