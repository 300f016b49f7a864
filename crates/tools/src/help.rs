//! The first page of help: the commands in groups, and the environment variables.
//!
//! Data flow: the declarations ([`Args`]) → the same declarations with their own first page.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::args::Args;

/// The groups, and the commands in each.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Every day",
        &[
            "run", "record", "list", "show", "explain", "report", "export", "import", "merge",
            "forget", "prune", "doctor",
        ],
    ),
    ("Your own program", &["cc", "c++", "slice"]),
    (
        "The whole machine",
        &["top", "daemon", "cache", "predict", "service"],
    ),
    ("Research", &["analyze", "sim", "slowdisk", "calibrate"]),
    ("This program", &["completions", "man", "help"]),
];
const VARIABLES: &str = "Environment (man foreread has all):
  FOREREAD_STORE_LIMIT  Limit of the size of all records [default: 1G]
  FOREREAD_REDACT       1: no record holds the words of a command line
  FOREREAD_CACHE_SIZE   Size of the collective cache per MPI rank [default: 32M]
  FOREREAD_CC, FOREREAD_CXX, FOREREAD_CC_EXPLAIN
                        Compilers of cc and c++; 1: explain what was sliced
  XDG_DATA_HOME         Folder of the records [default: ~/.local/share]";

/// Variables, each with its effect and the commands that read it.
const HEEDED: [(&str, &str, &[&str]); 7] = [
    (
        "FOREREAD_STORE_LIMIT",
        "Limit of the size of all records [default: 1G]",
        &[
            "run", "record", "list", "show", "explain", "report", "forget", "prune",
        ],
    ),
    ("FOREREAD_REDACT", "1: as --redact", &["run", "record"]),
    ("FOREREAD_CACHE_SIZE", "As --cache [default: 32M]", &["run"]),
    (
        "FOREREAD_PRELOAD",
        "The preload library [default: beside foreread]",
        &["run", "record", "doctor"],
    ),
    (
        "XDG_DATA_HOME",
        "Folder of records and models [default: ~/.local/share]",
        &[
            "run",
            "record",
            "list",
            "show",
            "explain",
            "report",
            "forget",
            "prune",
            "calibrate",
            "daemon",
            "predict",
        ],
    ),
    (
        "XDG_RUNTIME_DIR",
        "Folder of a user's daemon's control socket",
        &["daemon", "predict", "top"],
    ),
    ("TERM", "dumb: nothing is drawn", &["top"]),
];

/// The variables that a command reads.
fn variables(name: &str) -> Option<String> {
    let heeded = HEEDED.iter().filter(|(_, _, by)| by.contains(&name));
    let lines: Vec<String> = heeded
        .map(|(variable, does, _)| format!("  {variable:<20}  {does}"))
        .collect();
    (!lines.is_empty()).then(|| format!("Environment:\n{}", lines.join("\n")))
}

/// The declarations, with the first page of help.
pub(crate) fn command() -> Command {
    let command = Args::command();
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let _ = write!(page, "\n{group}:\n");
        for name in names {
            let one = command.find_subcommand(name);
            let about = one.and_then(Command::get_about);
            let about = about.map_or(
                "Print this page, or the help of a command".to_owned(),
                |about| about.to_string(),
            );
            let _ = writeln!(page, "  {name:<11} {about}");
        }
    }
    page += "\nOptions:\n{options}{after-help}";
    let command = command.help_template(page).after_help(VARIABLES);
    command.mut_subcommands(|one| match variables(one.get_name()) {
        Some(variables) => one.after_long_help(variables),
        None => one,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_a_command_has_the_variables_that_it_heeds() {
        let mut command = command();
        for (variable, _, by) in HEEDED {
            for name in by {
                let one = command.find_subcommand_mut(name).expect("a command");
                let page = one.render_long_help().to_string();
                assert!(page.contains(variable), "{name}: {page}");
                let variables = variables(name).expect("variables");
                assert!(page.ends_with(&format!("{variables}\n")), "{page}");
                let mut lines = variables.lines();
                assert!(lines.all(|line| line.chars().count() <= 80), "{variables}");
            }
        }
    }

    #[test]
    fn each_command_is_in_one_group_and_each_line_fits_a_terminal() {
        let all = GROUPS.iter().flat_map(|(_, names)| *names);
        let mut grouped: Vec<&str> = all.copied().filter(|name| *name != "help").collect();
        grouped.sort_unstable();
        let command = command();
        let mut declared: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        declared.sort_unstable();
        assert_eq!(grouped, declared);
        let page = { command }.render_long_help().to_string();
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for (group, _) in GROUPS {
            assert!(page.contains(&format!("\n{group}:\n")), "{page}");
        }
        assert!(page.contains("FOREREAD_STORE_LIMIT"), "{page}");
    }
}
