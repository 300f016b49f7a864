//! A record of a unit's compilation, stored in its object until the program is linked.
//!
//! An object carries one line of JSON in the section [`SECTION`]. The linker leaves the section out of
//! programs (`SHF_EXCLUDE`) and puts the lines of several objects one after another when it
//! makes one object of them. A record speaks for an object only while the object's code is what the
//! compiler left ([`Contents::digest`]): an object that was put together of several, or whose
//! symbols were changed, cannot be compiled again from a record.
//!
//! Records are untrusted input: units are compiled by the compiler that the user names now, and a record whose arguments start other
//! programs is refused.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::command_line::{CommandLine, Role, Word};
use super::compiler::Compiler;
use super::language::Language;
use super::object_file::{self, Contents, SECTION};

/// The version of the record that is written and read.
const VERSION: u32 = 3;

/// The compilation of one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// The working directory.
    pub(super) directory: PathBuf,
    /// The compiler's command.
    pub(super) compiler: Vec<String>,
    pub(super) language: Language,
    /// The source as named.
    pub(super) source: PathBuf,
    /// Start of the compilation, in nanoseconds since 1970: headers that have changed since differ from the compiled ones.
    begun_ns: u64,
    /// Digest of the source.
    source_digest: String,
    /// Digest of the object's code; empty for a unit that was never an object of its own.
    object_digest: String,
    /// The arguments that matter to the compilation.
    pub(super) arguments: Vec<String>,
}

impl Record {
    /// The record of compiling `source` in the present directory.
    ///
    /// # Errors
    /// When it cannot be written down: names that are not UTF-8, a source that cannot be read again.
    pub(super) fn new(line: &CommandLine, source: &Word, compiler: &Compiler) -> Result<Self> {
        if let Some(flag) = line.compiled_whole() {
            bail!("compiled with {flag}");
        }
        let language = line.language(source);
        let source = Path::new(&source.text);
        let mut arguments = Vec::new();
        for argument in line.compiling() {
            let Ok(argument) = argument.into_string() else {
                bail!("an argument is not UTF-8");
            };
            arguments.push(argument);
        }
        // The compiler searches these folders after those of the options, by its manual.
        for (variable, option) in [("CPATH", "-I"), (language.include_path(), "-isystem")] {
            let folders = std::env::var_os(variable).unwrap_or_default();
            for folder in folders.as_bytes().split(|&byte| byte == b':') {
                let folder = std::str::from_utf8(folder).context(variable)?;
                let set = !folders.is_empty();
                let here = if folder.is_empty() { "." } else { folder };
                arguments.extend(
                    set.then(|| [option.to_owned(), here.to_owned()])
                        .into_iter()
                        .flatten(),
                );
            }
        }
        let record = Self {
            version: VERSION,
            directory: std::env::current_dir().context("the working directory")?,
            compiler: compiler.command.clone(),
            language,
            source: source.to_owned(),
            begun_ns: since_1970(line.begun),
            source_digest: digest_of(source)?,
            object_digest: String::new(),
            arguments,
        };
        let utf8 = |path: &Path| path.to_str().is_some();
        ensure!(
            utf8(&record.directory) && utf8(source),
            "a path is not UTF-8"
        );
        Ok(record)
    }

    /// The source's path from anywhere.
    pub(super) fn source_path(&self) -> PathBuf {
        self.directory.join(&self.source)
    }

    /// True if the unit was compiled after the last change of a file's content or place.
    pub(super) fn is_younger_than(&self, file: &Path) -> bool {
        let changed = fs::metadata(file).ok().and_then(|file| {
            let seconds = u64::try_from(file.ctime()).ok()?;
            let rest = u64::try_from(file.ctime_nsec()).ok()?;
            Some(seconds * 1_000_000_000 + rest)
        });
        changed.is_some_and(|changed| changed <= self.begun_ns)
    }

    /// Puts the record into the object that the compiler left.
    ///
    /// # Errors
    /// When the object cannot hold it; the object is unchanged then.
    pub(super) fn attach(mut self, object: &Path) -> Result<()> {
        let object = object.canonicalize().context("the object")?;
        let bytes = fs::read(&object).context("the object")?;
        let Some(contents) = object_file::contents(&bytes) else {
            bail!("no ELF object with code in it");
        };
        self.object_digest = contents.digest;
        let beside = object.parent().unwrap_or(Path::new("/"));
        let mut text = tempfile::NamedTempFile::new()?;
        text.write_all(&serde_json::to_vec(&self)?)?;
        text.write_all(b"\n")?;
        text.flush()?;
        let result = tempfile::Builder::new()
            .prefix(".foreread-")
            .tempfile_in(beside)
            .context("a file beside the object")?
            .into_temp_path();
        let mut section = std::ffi::OsString::from(format!("{SECTION}="));
        section.push(text.path());
        let output = Command::new("objcopy")
            .arg("--add-section")
            .arg(section)
            .arg(format!("--set-section-flags={SECTION}=exclude,readonly"))
            .arg(&object)
            .arg(&result)
            .stdin(Stdio::null())
            .output()
            .context("objcopy")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "objcopy: {}", errors.trim());
        fs::set_permissions(&result, fs::metadata(&object)?.permissions())?;
        result.persist(&object)?;
        Ok(())
    }

    /// The record that speaks for an object.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn of_object(bytes: &[u8], compiler: &Compiler) -> Result<Self> {
        let Some(Contents { records, digest }) = object_file::contents(bytes) else {
            bail!("no ELF object with code in it");
        };
        ensure!(
            !records.is_empty(),
            "not compiled by foreread cc, or in a way that is left whole"
        );
        let line = records.strip_suffix(b"\n").unwrap_or(&records);
        let record: Self = match serde_json::from_slice(line) {
            Ok(record) => record,
            Err(_) if line.contains(&b'\n') => bail!("put together of several objects"),
            Err(why) => bail!("its record does not parse: {why}"),
        };
        ensure!(
            record.version == VERSION,
            "its record is of version {}",
            record.version
        );
        ensure!(
            record.object_digest == digest,
            "changed since it was compiled"
        );
        record.check(compiler)?;
        Ok(record)
    }

    /// Checks that `compiler` can compile the unit again with the same result.
    fn check(&self, compiler: &Compiler) -> Result<()> {
        ensure!(
            compiler.knows(&self.compiler),
            "compiled by {}, and linked by {}",
            self.compiler.join(" "),
            compiler.command.join(" ")
        );
        let words = self.arguments.iter().map(Into::into).collect();
        let line = CommandLine::read(words, false, self.language);
        if let Some(flag) = line.compiled_whole() {
            bail!("compiled with {flag}");
        }
        let other = line.words.iter().find(|word| word.role != Role::Flag);
        if let Some(word) = other {
            bail!("its record holds {}, which is no flag", word.text.display());
        }
        let digest = digest_of(&self.source_path())?;
        ensure!(self.source_digest == digest, "its source has changed");
        Ok(())
    }
}

fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn digest_of(source: &Path) -> Result<String> {
    let text = fs::read(source).with_context(|| source.display().to_string())?;
    Ok(blake3::hash(&text).to_hex().to_string())
}
