//! The selection of cases and disks, the programs that they lack, and the list of all cases.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::case::{Case, Group, Purpose};
use crate::disk::DiskKind;
use crate::options::Cli;
use crate::tools::in_path;
use crate::{cases, curves};

/// The cases and disks the options ask for, in the order of the list.
pub fn choose<'a>(cases: &'a [Case], cli: &Cli) -> Result<Vec<(&'a Case, DiskKind)>> {
    if let Some(unknown) = cli.cases.iter().find(|name| {
        let curve = curves::ALL.iter().any(|curve| curve.name == **name);
        !curve && !cases.iter().any(|case| case.name == **name)
    }) {
        bail!("there is no case `{unknown}`; --list shows them");
    }
    let mut chosen = Vec::new();
    for case in cases {
        let asked_for = cli.cases.is_empty() || cli.cases.iter().any(|name| name == case.name);
        if !asked_for || cli.group.is_some_and(|group| group != case.group) {
            continue;
        }
        // A case or disk given by name runs even where --quick alone would leave it out.
        let named = !cli.cases.is_empty() || !cli.disks.is_empty();
        let disks = if cli.quick && !named {
            case.quick
        } else {
            case.disks
        };
        let wanted = |disk: &&DiskKind| cli.disks.is_empty() || cli.disks.contains(disk);
        chosen.extend(disks.iter().filter(wanted).map(|disk| (case, *disk)));
    }
    Ok(chosen)
}

/// The curves that the options ask for, with their disks; none with --quick alone.
pub fn choose_curves(cli: &Cli) -> Vec<(&'static curves::Curve, DiskKind)> {
    if cli.group.is_some_and(|group| group != Group::Api) {
        return Vec::new();
    }
    let wanted = |curve: &&curves::Curve| {
        if cli.cases.is_empty() {
            !cli.quick
        } else {
            cli.cases.iter().any(|name| name == curve.name)
        }
    };
    let on_disk = |disk: &DiskKind| cli.disks.is_empty() || cli.disks.contains(disk);
    let chosen = curves::ALL.iter().filter(wanted);
    chosen
        .flat_map(|curve| curve.disks.iter().map(move |&disk| (curve, disk)))
        .filter(|(_, disk)| on_disk(disk))
        .collect()
}

/// True if the options ask for the whole group main, which includes the cost of observation.
pub fn with_cost(cli: &Cli) -> bool {
    cli.cases.is_empty()
        && cli.disks.is_empty()
        && cli.group.is_none_or(|group| group == Group::Main)
        && !cli.no_foreread
}

/// The program that a case needs and this machine lacks, as text.
pub fn missing(case: &Case) -> Option<String> {
    let absent = case.needs.iter().find(|(program, _)| !in_path(program))?;
    Some(format!(
        "{} is missing: install the package {} (or run --install)",
        absent.0, absent.1
    ))
}

/// The cases and curves, one line each.
pub fn list() -> String {
    let mut out = String::new();
    for case in cases::all() {
        let disks: Vec<&str> = case.disks.iter().map(|disk| disk.name()).collect();
        let kind = if case.purpose == Purpose::NoHarm {
            "no harm"
        } else {
            "gain"
        };
        out += &format!(
            "{:<26} {:<8} {:<48} {}\n",
            case.name,
            kind,
            case.about,
            disks.join(" ")
        );
        if let Some(reason) = missing(case) {
            out += &format!("{:<26} {reason}\n", "");
        }
    }
    for curve in curves::ALL {
        let disks: Vec<&str> = curve.disks.iter().map(|disk| disk.name()).collect();
        out += &format!(
            "{:<26} {:<8} {:<48} {}\n",
            curve.name,
            "curve",
            curve.about,
            disks.join(" ")
        );
    }
    out
}

/// Installs bench/packages.txt with apt-get.
pub fn install() -> Result<()> {
    let packages = include_str!("../../packages.txt");
    let names = packages
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let status = Command::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(names)
        .status()
        .context("starting apt-get")?;
    if !status.success() {
        bail!("apt-get failed ({status}); `apt-get update` first?");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_cost_of_being_watched_belongs_to_a_whole_run_of_the_group_main() {
        let with = |options: &[&str]| {
            let words = ["foreread-bench"].iter().chain(options);
            with_cost(&Cli::parse_from(words))
        };
        assert!(with(&[]));
        assert!(with(&["--quick"]));
        assert!(with(&["--group", "main"]));
        for less in [
            ["--group", "api"],
            ["--case", "hot"],
            ["--disk", "own"],
            ["--quick", "--no-foreread"],
        ] {
            assert!(!with(&less), "{less:?}");
        }
    }
}
