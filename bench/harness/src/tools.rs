//! The programs and folders that cases need: installed programs, programs compiled or built beside the harness, and commands that
//! are run untimed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::signals;

/// Helper programs and folders that all cases share.
pub struct Tools {
    /// The data directory.
    pub root: PathBuf,
    /// The checkout, which has the library's header, its examples and integrations.
    pub checkout: PathBuf,
}

impl Tools {
    /// The C program `name` with this source, compiled into the data directory if it is not there yet.
    pub fn compiled(&self, name: &str, source: &str) -> Result<PathBuf> {
        self.compiled_with(name, source, &[])
    }

    /// As [`Tools::compiled`], with further arguments for the compiler. The program is compiled again if a library among them is
    /// newer.
    pub fn compiled_with(
        &self,
        name: &str,
        source: &str,
        arguments: &[OsString],
    ) -> Result<PathBuf> {
        self.compiled_by("cc", name, source, arguments)
    }

    /// As [`Tools::compiled_with`], with this compiler.
    pub fn compiled_by(
        &self,
        compiler: &str,
        name: &str,
        source: &str,
        arguments: &[OsString],
    ) -> Result<PathBuf> {
        let folder = self.root.join("bin");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let (binary, kept) = (folder.join(name), folder.join(format!("{name}.c")));
        let same = fs::read_to_string(&kept).is_ok_and(|kept| kept == source);
        let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let built = changed(&binary);
        let stale = |argument: &OsString| changed(Path::new(argument)) > built;
        if !same || built.is_none() || arguments.iter().any(stale) {
            if built.is_some() {
                // If the compiler is interrupted, the new source is left without a program, not with an old one.
                fs::remove_file(&binary)
                    .with_context(|| format!("removing {}", binary.display()))?;
            }
            fs::write(&kept, source).with_context(|| format!("writing {}", kept.display()))?;
            let mut compiler = Command::new(compiler);
            compiler
                .args(["-O2", "-Wall", "-o"])
                .arg(&binary)
                .arg(&kept)
                .args(arguments);
            succeed(&mut compiler)?;
        }
        Ok(binary)
    }

    /// The file `name` that `make build` leaves beside this program.
    pub fn beside(&self, name: &str) -> Result<PathBuf> {
        let program = std::env::current_exe().context("finding this program's own folder")?;
        let path = program.with_file_name(name);
        if !path.is_file() {
            bail!("{} is missing: build it with `make build`", path.display());
        }
        Ok(path)
    }

    /// A file or folder of the checkout.
    pub fn checkout(&self, path: &str) -> Result<PathBuf> {
        let found = self.checkout.join(path);
        if !found.exists() {
            bail!(
                "{} is missing: build it with `make bench-build`, or name the checkout with --checkout",
                found.display()
            );
        }
        Ok(found)
    }
}

/// True if `program` is found in PATH.
pub fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a set-up command without output; if it fails, its standard error is in the message.
pub fn succeed(command: &mut Command) -> Result<()> {
    signals::check()?;
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        bail!(
            "{shown} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// As [`succeed`], with a script for `sh -e` in `dir`.
pub fn shell(dir: &Path, script: &str) -> Result<()> {
    succeed(
        Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(dir),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_compiler_was_interrupted_is_not_the_one_before() {
        if !in_path("cc") {
            eprintln!("skipped: there is no C compiler");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let tools = Tools {
            root: root.path().to_owned(),
            checkout: root.path().to_owned(),
        };
        let compiled = |compiler: &str, source: &str| {
            let program = tools.compiled_by(compiler, "program", source, &[])?;
            anyhow::Ok(std::process::Command::new(program).status()?.code())
        };
        let (before, after) = (
            "int main(void) { return 1; }",
            "int main(void) { return 2; }",
        );
        assert_eq!(compiled("cc", before).unwrap(), Some(1));
        for _ in 0..2 {
            assert!(compiled("false", after).is_err());
        }
        assert_eq!(compiled("cc", after).unwrap(), Some(2));
    }
}
