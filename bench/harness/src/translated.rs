//! Programs that `foreread cc` gave a prefetch thread, and the account of that thread.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::foreread::Ledger;
use crate::process::Invocation;
use crate::tools::Tools;
use crate::tools::succeed;

/// The files that `make slicer` leaves beside this program; translation needs all of them.
const NEEDED: &[&str] = &[
    "foreread-slice",
    "libforeread_preexec.a",
    "libforeread.so.1",
];
/// The variable with the path of a prefetch thread's account.
const REPORT: &str = "FOREREAD_PREEXEC_REPORT";
/// How long after its program's end a prefetch thread may write its account.
const REPORT_LIMIT: Duration = Duration::from_secs(3);

/// A program compiled by `foreread cc`.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The command, with the variable that has the thread write its account.
    pub command: Invocation,
    /// The path of the account.
    report: PathBuf,
    /// Time and size of the compilation.
    pub build: Build,
}

/// Time and size of a program's compilation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Build {
    /// The program's name in slicer/programs.
    pub program: String,
    /// Seconds the compiler takes.
    pub plain_s: f64,
    /// Seconds that `foreread cc` takes; it runs the compiler first.
    pub translated_s: f64,
    /// Machine code and constants of the original program, in bytes.
    pub plain_code: u64,
    /// The same for the program with its prefetch thread and the library that runs it.
    pub translated_code: u64,
}

/// A prefetch thread's account (`FOREREAD_PREEXEC_REPORT`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrefetchThread {
    /// Why the thread ended, or why there was none.
    pub ended: String,
    /// The program's reads.
    pub program_calls: u64,
    /// Processor seconds of the prefetch thread.
    pub cpu_s: f64,
    /// Processor seconds of the whole process, foreread's engine included.
    pub process_cpu_s: f64,
    /// The fate of the bytes issued.
    #[serde(flatten)]
    pub ledger: Ledger,
}

impl PrefetchThread {
    /// True if the thread finished its work, worked until the program's end, or had no work.
    pub fn ended_in_order(&self) -> bool {
        [
            "finished",
            "exit",
            "with the program",
            "the program did not wait",
        ]
        .contains(&self.ended.as_str())
    }
}

/// A program in its original and translated form, with the time and size of its compilation.
pub struct Program {
    /// Compiled by cc.
    pub plain: PathBuf,
    /// Compiled by `foreread cc`.
    pub translated: PathBuf,
    build: Build,
}

impl Program {
    /// Compiles the C program `name` of slicer/programs both ways, with the same options.
    pub fn compile(name: &str, tools: &Tools) -> Result<Self> {
        let source = tools.checkout(&format!("slicer/programs/{name}.c"))?;
        let folder = tools.root.join("bin");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let (plain, translated) = (folder.join(name), folder.join(format!("{name}-translated")));
        let compile = |compiler: &mut Command, binary: &Path| {
            compiler.args(["-std=gnu11", "-O2", "-o"]).arg(binary);
            compiler.arg(&source).arg("-lm");
            let began = Instant::now();
            succeed(compiler)?;
            Ok::<_, anyhow::Error>(began.elapsed().as_secs_f64())
        };
        let plain_s = compile(&mut Command::new("cc"), &plain)?;
        let explained = folder.join(format!("{name}.explained.jsonl"));
        remove(&explained)?;
        let mut driver = Command::new(tools.beside("foreread")?);
        driver.arg("cc").env("FOREREAD_CC_EXPLAIN", &explained);
        let translated_s = compile(&mut driver, &translated)?;
        refused(&explained)?;
        let build = Build {
            program: name.to_owned(),
            plain_s,
            translated_s,
            plain_code: code(&plain)?,
            translated_code: code(&translated)?,
        };
        Ok(Self {
            plain,
            translated,
            build,
        })
    }

    /// The translated program with the arguments of `command`; its account goes to `scratch`.
    pub fn instead(
        &self,
        command: &Invocation,
        scratch: &Path,
        tools: &Tools,
    ) -> Result<Translated> {
        let library = tools.beside("libforeread.so.1")?;
        let folder = library.parent().context("a library is in a folder")?;
        let report = scratch.join("prefetch-thread.json");
        let mut command = Invocation {
            program: self.translated.clone(),
            ..command.clone()
        };
        command.env.push(("LD_LIBRARY_PATH".into(), folder.into()));
        command.env.push((REPORT.into(), report.clone().into()));
        Ok(Translated {
            command,
            report,
            build: self.build.clone(),
        })
    }
}

impl Translated {
    /// The same command without the prefetch thread: only the program's own side.
    pub fn alone(&self) -> Invocation {
        let mut command = self.command.clone();
        command.env.retain(|(name, _)| name != REPORT);
        command.env.push(("FOREREAD_PREEXEC".into(), "0".into()));
        command
    }

    /// The account of the run just finished; reading it removes it.
    pub fn account(&self) -> Result<PrefetchThread> {
        let shown = self.report.display();
        let began = Instant::now();
        let text = loop {
            // A process that outlives the program writes the account.
            match fs::read_to_string(&self.report) {
                Ok(text) if text.ends_with('\n') => break text,
                _ if began.elapsed() > REPORT_LIMIT => bail!("no account came in {shown}"),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        remove(&self.report)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{shown} is not what was agreed: {text}"))
    }
}

/// The reason why programs cannot be translated here, if there is one.
pub fn missing(tools: &Tools) -> Option<String> {
    let absent = NEEDED.iter().find(|name| tools.beside(name).is_err())?;
    Some(format!(
        "{absent} is missing: build it with `make slicer`, which needs Clang 19 (libclang-19-dev)"
    ))
}

/// Fails if the driver left the program untranslated.
fn refused(explained: &Path) -> Result<()> {
    let text = fs::read_to_string(explained)
        .with_context(|| format!("reading {}", explained.display()))?;
    let told: serde_json::Value = text
        .lines()
        .last()
        .map_or(Ok(serde_json::Value::Null), serde_json::from_str)
        .with_context(|| format!("{} is not what was agreed", explained.display()))?;
    if told["sliced"] != true {
        bail!("foreread cc left it whole: {}", told["why"]);
    }
    Ok(())
}

/// Bytes of a program's machine code and constants, as reported by size(1).
fn code(program: &Path) -> Result<u64> {
    let output = Command::new("size")
        .arg(program)
        .output()
        .context("starting size, of the package binutils")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = text
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().next());
    figure
        .and_then(|figure| figure.parse().ok())
        .with_context(|| format!("size {}: {text}", program.display()))
}

/// Removes a file if it exists.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_the_ledger_among_its_other_figures() {
        let account: PrefetchThread = serde_json::from_str(
            r#"{"threads":1,"ended":"finished","calls":9,"program_calls":9,"issued":36864,"useful":36864,
            "late":4096,"wasted":0,"evicted":0,"infill":0,"cpu_s":0.002,"process_cpu_s":0.01,"lived_s":1.5}"#,
        )
        .unwrap();
        assert_eq!(account.ledger.issued, 36_864);
        assert!(account.ended_in_order());
        let none = r#"{"pid":7,"ended":"libforeread.so.1 not found"}"#;
        let none: PrefetchThread = serde_json::from_str(none).unwrap();
        assert!(!none.ended_in_order());
        assert_eq!(none.ledger, Ledger::default());
    }

    #[test]
    fn a_program_that_was_left_whole_is_an_error_with_the_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(
            file.path(),
            "{\"sliced\":false,\"why\":\"nothing is read\"}\n",
        )
        .unwrap();
        let error = refused(file.path()).unwrap_err().to_string();
        assert!(error.contains("nothing is read"), "{error}");
        fs::write(file.path(), "{\"sliced\":true,\"why\":null}\n").unwrap();
        refused(file.path()).unwrap();
    }
}
