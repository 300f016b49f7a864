//! Other ways to bring files into memory before a program reads them.
//!
//! Each is a command that runs before the program's own, and its time is included, because the user waits for both.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process::Invocation;
use crate::tools::{Tools, in_path};

/// Another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// One `posix_fadvise(POSIX_FADV_WILLNEED)` on each whole file, then the program.
    WillNeed,
    /// `vmtouch -t` on all files, then the program.
    Vmtouch,
}

impl Peer {
    /// Both.
    pub const ALL: &[Peer] = &[Peer::WillNeed, Peer::Vmtouch];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Peer::WillNeed => "WILLNEED",
            Peer::Vmtouch => "vmtouch",
        }
    }

    /// `command` with `files` brought into memory first.
    pub fn before(
        self,
        command: &Invocation,
        files: &[PathBuf],
        tools: &Tools,
    ) -> Result<Invocation> {
        let paths = files.iter().map(|file| file.clone().into());
        match self {
            Peer::WillNeed => {
                let source = include_str!("../../programs/willneed.c");
                let program = tools.compiled("willneed", source)?;
                let mut leading: Vec<_> = paths.collect();
                leading.push("--".into());
                Ok(command.under(&program, leading))
            }
            Peer::Vmtouch => {
                if !in_path("vmtouch") {
                    bail!("vmtouch is missing: install the package vmtouch (or run --install)");
                }
                // The number of files, the files, then the command.
                let script = "n=$1; shift; \
                    for i in $(seq \"$n\"); do vmtouch -q -t \"$1\" || exit 1; shift; done; exec \"$@\"";
                let mut leading = vec![
                    "-c".into(),
                    script.into(),
                    "vmtouch".into(),
                    files.len().to_string().into(),
                ];
                leading.extend(paths);
                Ok(command.under("/bin/sh".as_ref(), leading))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_in_memory_when_the_program_starts_and_its_status_is_kept() {
        let dir = crate::cache::build_dir();
        let file = tempfile::NamedTempFile::new_in(&dir).unwrap();
        std::fs::write(file.path(), vec![1; 16 * 4096]).unwrap();
        let files = [file.path().to_owned()];
        let scratch = tempfile::tempdir().unwrap();
        let tools = Tools {
            root: scratch.path().to_owned(),
            checkout: scratch.path().to_owned(),
        };
        let command = Invocation {
            program: "sh".into(),
            args: vec!["-c".into(), "exit 3".into()],
            cwd: dir,
            env: Vec::new(),
        };
        for peer in Peer::ALL {
            crate::cache::evict(&files).unwrap();
            let command = match peer.before(&command, &files, &tools) {
                Ok(command) => command,
                Err(error) => {
                    eprintln!("skipped: {error:#}");
                    continue;
                }
            };
            let run = crate::process::run(&command, scratch.path(), &[]).unwrap();
            assert_eq!(run.outcome.status, 3, "{peer:?}: {}", run.stderr);
            assert!(!crate::cache::is_cold(&files).unwrap(), "{peer:?}");
        }
    }
}
