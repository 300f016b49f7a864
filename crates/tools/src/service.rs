//! `foreread service`: a drop-in with which systemd starts a service under `foreread run`.
//!
//! Invariant: the unit itself is never changed; only the drop-in is written or removed. Unit files are read without asking systemd, so the
//! command works in an image that is not running (`--root`) and can show its result beforehand (`--dry-run`).
//!
//! Data flow: name → the unit's files ([`unit`]) → its commands → the drop-in.

mod unit;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use foreread_sys::own;

use crate::args::{Service, ServiceUnit};
use crate::output::output;
use unit::{Places, Unit};

/// Name of the drop-in. systemd reads drop-ins by name, so it comes after those that set the command.
const DROP_IN: &str = "zz-foreread.conf";

/// Enables or disables foreread for a service.
pub(crate) fn service(service: &Service) -> Result<ExitCode> {
    match service {
        Service::Enable(given) => enable(given),
        Service::Disable(given) => disable(given),
    }
}

fn enable(given: &ServiceUnit) -> Result<ExitCode> {
    let name = unit_name(&given.name)?;
    let places = Places::new(given.user, given.root.as_deref())?;
    let unit = Unit::read(&places, &name, DROP_IN)?;
    let foreread = own::part("foreread", "../bin").context("foreread itself")?;
    let text = drop_in(&given.name, given.user, &foreread, &unit)?;
    let path = drop_in_path(&places, &name);
    if given.dry_run {
        write!(output(), "# {}\n{text}", path.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    writeln!(output(), "wrote {}", path.display())?;
    said_next(given, &name)
}

fn disable(given: &ServiceUnit) -> Result<ExitCode> {
    let name = unit_name(&given.name)?;
    let places = Places::new(given.user, given.root.as_deref())?;
    let path = drop_in_path(&places, &name);
    ensure!(
        path.exists(),
        "{name} is not enabled: no {}",
        path.display()
    );
    if given.dry_run {
        writeln!(output(), "would remove {}", path.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    fs::remove_file(&path).with_context(|| path.display().to_string())?;
    // The folder may contain other drop-ins.
    let _ = path.parent().map(fs::remove_dir);
    writeln!(output(), "removed {}", path.display())?;
    said_next(given, &name)
}

/// The remaining steps for the user.
fn said_next(given: &ServiceUnit, name: &str) -> Result<ExitCode> {
    if given.root.is_none() {
        let systemctl = if given.user {
            "systemctl --user"
        } else {
            "systemctl"
        };
        let next = format!("{systemctl} daemon-reload && {systemctl} restart {name}");
        writeln!(output(), "To use it: {next}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn drop_in_path(places: &Places, name: &str) -> PathBuf {
    places.own().join(format!("{name}.d")).join(DROP_IN)
}

/// The unit's full name.
fn unit_name(given: &str) -> Result<String> {
    let allowed = |one: char| one.is_ascii_alphanumeric() || ":-_.\\@".contains(one);
    let is_name = !given.is_empty() && !given.starts_with(['.', '@']) && given.chars().all(allowed);
    ensure!(is_name, "{given}: not a name of a service");
    const OTHERS: [&str; 9] = [
        "socket", "timer", "target", "mount", "path", "slice", "scope", "device", "swap",
    ];
    match given.rsplit_once('.') {
        Some((_, "service")) => Ok(given.to_owned()),
        Some((_, kind)) if OTHERS.contains(&kind) => bail!("{given}: not a service, but a {kind}"),
        _ => Ok(format!("{given}.service")),
    }
}

/// Text of the drop-in.
fn drop_in(name: &str, is_user: bool, foreread: &Path, unit: &Unit) -> Result<String> {
    ensure!(
        !unit.commands.is_empty(),
        "{}: no ExecStart=",
        unit.path.display()
    );
    let user = if is_user { " --user" } else { "" };
    let mut text = format!(
        "# Written by: foreread service enable{user} {name}\n\
         # Removed by: foreread service disable{user} {name}\n[Service]\n"
    );
    if !is_user && !unit.has_user {
        // systemd sets HOME only for units with User=.
        text += "# The records are in root's home.\nEnvironment=HOME=%h\n";
    }
    if matches!(&*unit.kind, "" | "simple" | "exec" | "idle" | "dbus") && !unit.has_access {
        // On a stop systemd sends signals to both foreread and the program; foreread would forward its own as well.
        text += "# The program takes foreread's place: it is the process that systemd watches.\nNotifyAccess=main\n";
    }
    text += "ExecStart=\n";
    for command in &unit.commands {
        text += &format!("ExecStart={}\n", prefixed(command, foreread, &unit.path)?);
    }
    Ok(text)
}

/// A command of `ExecStart=` with foreread before it. Its special prefixes stay in front.
fn prefixed(command: &str, foreread: &Path, unit: &Path) -> Result<String> {
    let rest = command.trim_start_matches(['-', '@', ':', '+', '!', '|']);
    let signs = &command[..command.len() - rest.len()];
    let refused = |why: &str| format!("{}: ExecStart={command}: {why}", unit.display());
    ensure!(
        !signs.contains('@'),
        refused(
            "the @ gives the program another name than its file's, which foreread run cannot pass on"
        )
    );
    let first = rest.split_whitespace().next().unwrap_or_default();
    ensure!(!first.is_empty(), refused("no program is named"));
    let is_foreread = Path::new(first.trim_matches(['"', '\''])).file_name();
    ensure!(
        is_foreread != Some("foreread".as_ref()),
        refused("foreread runs it already")
    );
    let foreread = foreread
        .to_str()
        .filter(|path| !path.contains(|one: char| one.is_whitespace() || "\"'\\%$".contains(one)));
    let foreread =
        foreread.with_context(|| refused("foreread's own path has signs that need quoting"))?;
    Ok(format!("{signs}{foreread} run --quiet -- {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signs_before_a_command_stay_before_it() {
        let with =
            |command: &str| prefixed(command, Path::new("/usr/bin/foreread"), Path::new("unit"));
        for signs in ["", "-", "+", "!!", ":-"] {
            assert_eq!(
                with(&format!("{signs}/bin/server -a \"b c\" %i $MORE")).unwrap(),
                format!("{signs}/usr/bin/foreread run --quiet -- /bin/server -a \"b c\" %i $MORE")
            );
        }
        for refused in ["@/bin/server other", "-", "/usr/bin/foreread run -- true"] {
            let why = with(refused).unwrap_err().to_string();
            assert!(
                why.starts_with(&format!("unit: ExecStart={refused}: ")),
                "{why}"
            );
        }
    }

    #[test]
    fn a_service_that_systemd_would_signal_twice_takes_the_process_of_foreread() {
        let of_kind = |kind: &str, has_access| {
            let unit = Unit {
                path: "unit".into(),
                commands: vec!["/bin/server".to_owned()],
                has_user: true,
                kind: kind.to_owned(),
                has_access,
            };
            drop_in("server", false, Path::new("/bin/foreread"), &unit).unwrap()
        };
        for (kind, has_access, is_set) in [
            ("", false, true),
            ("exec", false, true),
            ("exec", true, false),
            ("notify", false, false),
            ("forking", false, false),
        ] {
            let text = of_kind(kind, has_access);
            assert_eq!(text.contains("\nNotifyAccess=main\n"), is_set, "{text}");
            let command = "\nExecStart=\nExecStart=/bin/foreread run --quiet -- /bin/server\n";
            assert!(text.ends_with(command), "{text}");
        }
    }

    #[test]
    fn names_are_services_and_no_paths() {
        assert_eq!(
            unit_name("postgresql@15-main").unwrap(),
            "postgresql@15-main.service"
        );
        assert_eq!(unit_name("nginx.service").unwrap(), "nginx.service");
        for refused in ["", "../passwd", "a/b", "ssh.socket", ".hidden", "a b"] {
            assert!(unit_name(refused).is_err(), "{refused}");
        }
    }
}
