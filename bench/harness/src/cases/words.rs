//! Commands of fixed words with a few placeholders.
//!
//! In the words, the environment and the paths `{dir}` stands for the data's folder, `{scratch}` for a folder in memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::case::{Job, Size, Workload};
use crate::process::Invocation;
use crate::tools::Tools;
use crate::tree::files_below;

/// A command of fixed words.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The program and its arguments.
    pub run: &'static [&'static str],
    /// The same with another input, from which a first run learns; empty if there is none.
    pub learn: &'static [&'static str],
    pub env: &'static [(&'static str, &'static str)],
    /// Output files to compare, besides standard output.
    pub outputs: &'static [&'static str],
    /// A folder that must be empty before every run.
    pub fresh: Option<&'static str>,
    /// The exit status that every run has to end with.
    pub status: i32,
    /// The memory that it may use, in bytes.
    pub memory: Option<u64>,
    /// True if the data's files are the case's own, to be evicted and examined; otherwise they are in memory after the first run.
    pub files: bool,
}

/// Neither options nor outputs.
pub(super) const PLAIN: Words = Words {
    run: &[],
    learn: &[],
    env: &[],
    outputs: &[],
    fresh: None,
    status: 0,
    memory: None,
    files: true,
};

/// A script, with an empty folder in `$OUT` for each run.
pub(super) const OUT: Words = Words {
    env: &[("OUT", "{scratch}/out")],
    fresh: Some("{scratch}/out"),
    ..PLAIN
};

impl Workload for Words {
    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let filled = |text: &&str| {
            let text = text.replace("{dir}", &dir.to_string_lossy());
            text.replace("{scratch}", &scratch.to_string_lossy())
        };
        let command = |words: &[&str]| -> Result<Invocation> {
            let (program, args) = words.split_first().context("a command has words")?;
            let env = self.env.iter();
            Ok(Invocation {
                program: filled(program).into(),
                args: args.iter().map(|word| filled(word).into()).collect(),
                cwd: dir.to_owned(),
                env: env
                    .map(|(name, value)| (name.into(), filled(value).into()))
                    .collect(),
            })
        };
        let fresh: Option<PathBuf> = self.fresh.as_ref().map(|fresh| filled(fresh).into());
        let mut files = if self.files {
            files_below(dir)?
        } else {
            Vec::new()
        };
        files.retain(|file| fresh.as_ref().is_none_or(|fresh| !file.starts_with(fresh)));
        Ok(Job {
            command: command(self.run)?,
            learn: (!self.learn.is_empty())
                .then(|| command(self.learn))
                .transpose()?,
            files,
            outputs: self
                .outputs
                .iter()
                .map(|path| filled(path).into())
                .collect(),
            fresh_dir: fresh,
            status: self.status,
            memory_limit: self.memory,
            ..Job::default()
        })
    }
}

/// A command that a function makes.
pub(super) struct Made(pub fn(&Path, &Path, Size, &Tools) -> Result<Job>);

impl Workload for Made {
    fn job(&self, dir: &Path, scratch: &Path, size: Size, tools: &Tools) -> Result<Job> {
        (self.0)(dir, scratch, size, tools)
    }
}

/// A command with arguments in the folder `cwd`, its environment as it is.
pub(super) fn command(
    program: impl Into<PathBuf>,
    args: impl IntoIterator<Item = impl Into<OsString>>,
    cwd: &Path,
) -> Invocation {
    Invocation {
        program: program.into(),
        args: args.into_iter().map(Into::into).collect(),
        cwd: cwd.to_owned(),
        env: Vec::new(),
    }
}
