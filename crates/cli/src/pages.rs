//! `foreread completions` and `foreread man`: made from the command line's declaration.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
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
    let command = Args::command();
    let Some(folder) = out else {
        Man::new(command).render(&mut stdout())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
