//! The system's compiler: finding it, and running it unchanged.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, anyhow, ensure};
use foreread_sys::own;
use foreread_sys::process::End;
use foreread_words::{counted, plain};

use super::language::Language;

/// The system's compiler, as a command with arguments of its own (`ccache gcc`).
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    pub(super) command: Vec<String>,
    /// The compiler of the other language, for other units of a program.
    other: Vec<String>,
}

impl Compiler {
    /// The compiler of a language: `FOREREAD_CC` or `FOREREAD_CXX`, or else cc or c++.
    pub(super) fn find(language: Language) -> Self {
        Self {
            command: command(language),
            other: command(language.other()),
        }
    }

    /// True if units compiled by this command can be compiled again.
    pub(super) fn knows(&self, command: &[String]) -> bool {
        command == self.command || command == self.other
    }

    /// The compiler with these arguments.
    pub(super) fn with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        started(&self.command, args)
    }

    /// The compiler with these arguments, for the driver's own use: variables that make compilers write files apply to the program's
    /// commands only.
    pub(super) fn aside<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        aside(&self.command, args)
    }

    /// Becomes the compiler. Returns only when it could not be started.
    pub(super) fn become_it(&self, args: &[OsString]) -> End {
        let why = self.with(args).exec();
        self.not_started(&why)
    }

    /// Runs the compiler with the streams of this process.
    pub(super) fn run(&self, args: &[OsString]) -> End {
        match self.with(args).status() {
            Ok(status) => ending(status),
            Err(why) => self.not_started(&why),
        }
    }

    fn not_started(&self, why: &io::Error) -> End {
        eprintln!(
            "foreread: {}",
            plain(&format!("{}: {why}", self.command[0]))
        );
        let missing = why.kind() == io::ErrorKind::NotFound;
        End::Exited(if missing { 127 } else { 126 })
    }
}

/// The command of a language's compiler.
fn command(language: Language) -> Vec<String> {
    let (variable, default) = language.compiler();
    let named = std::env::var(variable).unwrap_or_default();
    let words = if named.trim().is_empty() {
        default
    } else {
        &named
    };
    words.split_whitespace().map(str::to_owned).collect()
}

fn started<A: AsRef<OsStr>>(words: &[String], args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(args);
    command
}

/// Variables that make compilers write the headers of their units.
const WRITES: [&str; 2] = ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES"];

/// The command `words` with these arguments, for the driver's own use: see [`Compiler::aside`].
pub(super) fn aside<A: AsRef<OsStr>>(
    words: &[String],
    args: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = started(words, args);
    for variable in WRITES {
        command.env_remove(variable);
    }
    command
}

/// The way in which this process must end after the compiler ended with this status.
pub(super) fn ending(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Killed(signal),
        // A status that was waited for is one or the other.
        (None, None) => End::Exited(1),
    }
}

/// The first errors in a command's output, or the start of the output, for a message.
pub(super) fn first_errors(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = || said.lines().filter(|line| !line.trim().is_empty());
    let errors: Vec<_> = lines()
        .filter(|line| line.contains("error: "))
        .take(2)
        .collect();
    let start: Vec<_> = lines().take(2).collect();
    match (&*errors, &*start) {
        ([], []) => "it failed without a word".to_owned(),
        ([], start) => start.join("; "),
        (errors, _) => errors.join("; "),
    }
}

/// The linker's messages, or the first lines of them, one per line: the error comes before the line in which the linker's caller sums up.
pub(super) fn linker_said(said: &[u8]) -> String {
    const LINES: usize = 12;
    let said = String::from_utf8_lossy(said);
    let lines: Vec<_> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let mut told: Vec<_> = lines.iter().take(LINES).map(|&line| line.into()).collect();
    if lines.is_empty() {
        told.push("it failed without a word".to_owned());
    } else if lines.len() > LINES {
        let more = (lines.len() - LINES) as u64;
        told.push(format!("and {}", counted(more, "more line", "more lines")));
    }
    format!("\n    {}", told.join("\n    "))
}

/// The places of the slicer's tools.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// The slicer.
    pub(super) slicer: PathBuf,
    /// The runtime, a static library.
    pub(super) runtime: PathBuf,
    /// The folder of the runtime's header.
    pub(super) headers: PathBuf,
    /// The runtime's library, if its place is known; the loader may find one by itself.
    pub(super) library: Option<PathBuf>,
}

/// Names the slicer.
const SLICER_VARIABLE: &str = "FOREREAD_SLICE";
const SLICER: &str = "foreread-slice";
const RUNTIME: &str = "libforeread_preexec.a";
const HEADER: &str = "foreread_preexec.h";
const LIBRARY: &str = "libforeread.so.1";

/// The context of an error: a part of the translator is not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoTranslator;

impl Display for NoTranslator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the translator is missing")
    }
}

impl Tools {
    /// Beside this executable (a build tree), or in `../lib` and `../include` (an installation);
    /// the slicer where `FOREREAD_SLICE` says.
    ///
    /// # Errors
    /// [`NoTranslator`]: which one is missing, and where it was looked for.
    pub(super) fn find() -> Result<Self> {
        Self::look().context(NoTranslator)
    }

    fn look() -> Result<Self> {
        let folder = |name, installed: &str| {
            let path = beside_us(name, installed)?;
            Ok::<_, anyhow::Error>(path.parent().unwrap_or(Path::new("/")).to_owned())
        };
        Ok(Self {
            slicer: slicer()?,
            runtime: beside_us(RUNTIME, "../lib")?,
            headers: folder(HEADER, "../include")?,
            library: beside_us(LIBRARY, "../lib").ok(),
        })
    }
}

/// The slicer.
///
/// # Errors
/// The error names the places searched.
pub(super) fn slicer() -> Result<PathBuf> {
    match std::env::var_os(SLICER_VARIABLE) {
        Some(named) => {
            let named = PathBuf::from(named);
            // A bare name is searched in PATH when it is run.
            let is_there = named.components().count() == 1 || named.is_file();
            ensure!(
                is_there,
                "{} is no file ({SLICER_VARIABLE} names it)",
                named.display()
            );
            Ok(named)
        }
        None => beside_us(SLICER, "../lib/foreread"),
    }
}

fn beside_us(name: &str, installed: &str) -> Result<PathBuf> {
    own::part(name, installed)
        .map_err(|why| anyhow!("{why} (make slicer builds it, with Clang 19)"))
}
