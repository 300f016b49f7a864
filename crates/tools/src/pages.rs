//! `foreread completions` and `foreread man`, made from the declarations of the command line. The folder `man/` adds exit statuses,
//! variables, files and examples.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;
use crate::output::{Unable, output};

/// Further sections of a page, by the page's name; they are placed before the version.
const SECTIONS: [(&str, &str); 4] = [
    ("foreread", include_str!("../man/foreread.1.in")),
    (
        "foreread-daemon",
        include_str!("../man/foreread-daemon.1.in"),
    ),
    ("foreread-run", include_str!("../man/foreread-run.1.in")),
    ("foreread-record", include_str!("../man/foreread-run.1.in")),
];

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "foreread", &mut script);
    output().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes all man pages to a folder, or foreread(1) to standard output.
pub(crate) fn man(out: Option<&Path>) -> Result<ExitCode> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let command = with_usage(command);
    let Some(folder) = out else {
        output().write_all(page(command)?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| Unable(folder.display().to_string()))?;
    write_pages(command, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: Command, folder: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(subcommand.clone(), folder)?;
    }
    let path = folder.join(Man::new(command.clone()).get_filename());
    fs::write(&path, page(command)?).with_context(|| Unable(path.display().to_string()))
}

/// The page of a command.
fn page(command: Command) -> Result<String> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let sections = SECTIONS.iter().find(|(page, _)| *page == name);
    let sections = sections.map_or("", |(_, sections)| sections);
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    let mut page = String::from_utf8(page)?;
    let end = page.find(".SH VERSION").unwrap_or(page.len());
    page.insert_str(end, sections);
    Ok(page)
}

/// A command whose page, and whose subcommands' pages, show the usage of `--help`. The generated usage leaves out the `--` before a
/// program's name.
fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_tell_of_statuses_variables_files_and_examples() {
        let folder = tempfile::tempdir().unwrap();
        man(Some(folder.path())).unwrap();
        let headings = |page: &str| -> Vec<String> {
            let page = fs::read_to_string(folder.path().join(page)).unwrap();
            let headings = page.lines().filter_map(|line| line.strip_prefix(".SH "));
            headings.map(|name| name.replace('"', "")).collect()
        };
        let all = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "SUBCOMMANDS",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "VERSION",
        ];
        assert_eq!(headings("foreread.1"), all);
        for page in ["foreread-run.1", "foreread-record.1"] {
            assert_eq!(headings(page), [&all[..4], &all[5..6]].concat(), "{page}");
        }
    }

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
            ("foreread-run.1", "fBforeread runfR [OPTIONS] <COMMAND>..."),
            (
                "foreread-record.1",
                "fBforeread recordfR [OPTIONS] <COMMAND>...",
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
