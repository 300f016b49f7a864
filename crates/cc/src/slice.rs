//! Running the slicer over the units of a program.
//!
//! Data flow: records → `compile_commands.json` → `foreread-slice --json` → [`Slice`].

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::compiler::{first_errors, slicer};
use super::record::Record;

/// A slicer that takes longer than this is given up on: the program is linked already.
const PATIENCE: Duration = Duration::from_secs(600);

/// The slicer's result for a program.
#[derive(Debug, Deserialize)]
pub(super) struct Slice {
    /// A unit for each record, in any order; one that is not named is unchanged.
    units: Vec<Unit>,
    /// Results by function.
    #[serde(default)]
    pub(super) functions: Vec<Function>,
    /// The files that the program opens.
    #[serde(default)]
    pub(super) files: Vec<Opened>,
    /// Assumptions, with their places.
    #[serde(default)]
    pub(super) assumed: Vec<String>,
    /// Loads from mapped files that are not announced: places, and why.
    #[serde(default)]
    pub(super) unannounced: Vec<String>,
    /// Places where the prefetch thread waits for the program.
    #[serde(default)]
    pub(super) sync_points: u64,
}

#[derive(Debug, Deserialize)]
struct Unit {
    index: usize,
    output: Option<PathBuf>,
    /// The headers whose text is in it.
    #[serde(default)]
    headers: Vec<PathBuf>,
    /// True if its prefetch functions use private members of classes.
    #[serde(default)]
    names_private: bool,
    /// The reason why the slicer could not process it.
    #[serde(default)]
    why: Option<String>,
}

/// The new text of a unit.
#[derive(Debug)]
pub(super) struct Changed {
    /// Its path.
    pub(super) text: PathBuf,
    /// The headers whose text is in it.
    pub(super) headers: Vec<PathBuf>,
    /// True if it uses private members, which a compiler with access checks refuses.
    pub(super) names_private: bool,
}

/// The result for a function.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    #[serde(default)]
    pub(super) file: String,
    #[serde(default)]
    pub(super) line: u64,
    /// `sliced`, `whole` (nothing to slice), `pure` (called unchanged) or `refused`.
    pub(super) status: String,
    #[serde(default)]
    pub(super) why: Option<String>,
}

/// The treatment of a file that the program opens.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Opened {
    /// A constant path, or the opening expression.
    pub(super) path: String,
    /// The place of the open.
    pub(super) place: String,
    /// `data`, `configuration`, `output`, `input` or `unused`.
    pub(super) kind: String,
    #[serde(default)]
    pub(super) why: Option<String>,
}

impl Slice {
    /// Slices the program that consists of these units, the changed ones going into `folder`; of these alone,
    /// or of `others`, too, of which nothing is known.
    ///
    /// # Errors
    /// When the slicer fails, takes too long, or prints invalid output.
    pub(super) fn of<'a>(
        slicer: &Path,
        records: impl Iterator<Item = &'a Record>,
        others: bool,
        folder: &Path,
    ) -> Result<Self> {
        let commands: Vec<_> = records
            .map(|record| {
                let mut arguments = vec!["cc".to_owned()];
                arguments.extend(for_parsing(&record.arguments));
                let language = record.language.name();
                arguments.extend(["-w", "-x", language, "-c"].map(str::to_owned));
                let source = record.source.to_string_lossy().into_owned();
                arguments.push(source.clone());
                json!({"directory": record.directory, "file": source, "arguments": arguments})
            })
            .collect();
        let count = commands.len();
        let database = folder.join("compile_commands.json");
        fs::write(&database, serde_json::to_vec(&commands)?)?;
        let (said, errors) = (folder.join("slice.json"), folder.join("slice.errors"));
        let mut child = Command::new(slicer)
            .arg("--json")
            .arg("--out-dir")
            .arg(folder)
            .arg("--compile-commands")
            .arg(&database)
            .args(others.then_some("--others"))
            .stdin(Stdio::null())
            .stdout(File::create(&said)?)
            .stderr(File::create(&errors)?)
            .spawn()
            .with_context(|| slicer.display().to_string())?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                bail!("the slicer was not done after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let errors = fs::read(&errors)?;
        ensure!(
            status.success(),
            "the slicer: {status}: {}",
            first_errors(&errors)
        );
        let slice: Self =
            serde_json::from_slice(&fs::read(&said)?).context("the slicer's answer")?;
        let named = slice.units.iter().all(|unit| unit.index < count);
        ensure!(
            named,
            "the slicer's answer names a unit that it was not given"
        );
        Ok(slice)
    }

    /// The changed units and their text.
    pub(super) fn changed(&self) -> impl Iterator<Item = (usize, Changed)> {
        self.units.iter().filter_map(|unit| {
            let changed = Changed {
                text: unit.output.clone()?,
                headers: unit.headers.clone(),
                names_private: unit.names_private,
            };
            Some((unit.index, changed))
        })
    }

    /// The units that the slicer could make nothing of, and why.
    pub(super) fn left_whole(&self) -> impl Iterator<Item = (usize, &str)> {
        let units = self.units.iter();
        units.filter_map(|unit| Some((unit.index, unit.why.as_deref()?)))
    }
}

/// Options that decide how a source is parsed and that Clang understands as GCC does; the rest
/// would only be refused.
const PARSING: &[&str] = &[
    "-D",
    "-U",
    "-I",
    "-std",
    "-ansi",
    "-O",
    "-m32",
    "-m64",
    "-mx32",
    "-march=",
    "-msse",
    "-mavx",
    "-mfma",
    "-mbmi",
    "-maes",
    "-mpclmul",
    "-pthread",
    "-fopenmp",
    "-nostdinc",
    "-fno-builtin",
    "-funsigned-char",
    "-fsigned-char",
    "-fshort-enums",
    "-fshort-wchar",
    "-fms-extensions",
    "-fgnu89-inline",
    "-nostdinc++",
    "-fno-exceptions",
    "-fno-rtti",
    "-fchar8_t",
    "-fno-char8_t",
    "-fsigned-bitfields",
    "-fPIC",
    "-fPIE",
    "-fpic",
    "-fpie",
    "-fno-pie",
];

/// Parsing options whose value is the next word.
const PARSING_WITH_VALUE: &[&str] = &[
    "-D",
    "-U",
    "-I",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "--sysroot",
];

fn for_parsing(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if PARSING_WITH_VALUE.contains(&argument.as_str()) {
            kept.push(argument.clone());
            kept.extend(rest.next().cloned());
        } else if PARSING
            .iter()
            .chain(PARSING_WITH_VALUE)
            .any(|start| argument.starts_with(start))
        {
            kept.push(argument.clone());
        }
    }
    kept
}

/// `foreread slice`: becomes the slicer.
///
/// # Errors
/// When it is missing.
pub fn slice(args: &[std::ffi::OsString]) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    let slicer = slicer()?;
    let why = Command::new(&slicer).args(args).exec();
    Err(why).with_context(|| slicer.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slicer_is_given_what_decides_parsing() {
        let given = "-O2 -fstack-clash-protection -D A=1 -DB -I inc -isystem/x -include y.h --param a -std=gnu99 -Wall -g3";
        let given: Vec<_> = given.split(' ').map(str::to_owned).collect();
        let kept = "-O2 -D A=1 -DB -I inc -isystem/x -include y.h -std=gnu99";
        assert_eq!(for_parsing(&given).join(" "), kept);
    }
}
