//! `foreread completions` and `foreread man`: made from the command line's declaration.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "foreread", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes all man pages to a folder, or foreread(1) to standard output.
pub(crate) fn man(out: Option<&Path>) -> Result<ExitCode> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let command = with_usage(command);
    let Some(folder) = out else {
        Man::new(command).render(&mut stdout())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// A command whose page, and its subcommands' pages, give the usage that `--help` gives: what is made of the
/// declarations by itself leaves out the `--` before a program's name.
fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_the_usage_that_help_gives() {
        let folder = tempfile::tempdir().unwrap();
        man(Some(folder.path())).unwrap();
        let synopsis = |page: &str| {
            let page = fs::read_to_string(folder.path().join(page)).unwrap();
            let line = page
                .lines()
                .skip_while(|line| *line != ".SH SYNOPSIS")
                .nth(1);
            line.unwrap().replace('\\', "")
        };
        for (page, usage) in [
            (
                "foreread-run.1",
                "fBforeread runfR [OPTIONS] -- <COMMAND>...",
            ),
            (
                "foreread-record.1",
                "fBforeread recordfR [OPTIONS] -- <COMMAND>...",
            ),
            (
                "foreread-show.1",
                "fBforeread showfR [OPTIONS] [RECORD] [-- <COMMAND>...]",
            ),
            (
                "foreread-slowdisk-mount.1",
                "fBforeread slowdisk mountfR [OPTIONS] <MODEL> <DIR>",
            ),
        ] {
            assert_eq!(synopsis(page), usage);
        }
    }
}
