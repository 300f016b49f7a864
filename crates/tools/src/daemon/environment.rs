//! `foreread daemon env`: the environment in which programs are observed by the user's own daemon.
//!
//! Data flow: the daemon's ring and the path of the preload library → commands for a shell.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use foreread_daemon::cli::Where;
use foreread_daemon::control::ask;
use foreread_daemon::control::wire::{Said, Subject};
use foreread_run::{find_preload, preload_variables};

use super::asking::{to_ask, unexpected};
use crate::output::output;

/// Prints the commands, for a POSIX shell.
pub(super) fn print(place: &Where) -> Result<ExitCode> {
    let variable = match ask(&to_ask(place), &Subject::Environment)?.said {
        Said::Environment { variable } => variable,
        other => return Err(unexpected(&other)),
    };
    let (name, value) =
        variable.ok_or_else(|| anyhow!("the daemon sees all programs without this"))?;
    let library = find_preload().map_err(|why| anyhow!("no preload library: {why}"))?;
    let [library, options] = preload_variables(&[library]);
    let mut commands = Vec::new();
    for (name, value) in [library, options, (name.as_str(), OsString::from(value))] {
        commands.extend_from_slice(&command(name, &value));
    }
    output().write_all(&commands)?;
    Ok(ExitCode::SUCCESS)
}

/// The command that sets a variable to any bytes.
fn command(name: &str, value: &OsStr) -> Vec<u8> {
    let mut command = format!("export {name}='").into_bytes();
    for byte in value.as_bytes() {
        match byte {
            b'\'' => command.extend_from_slice(b"'\\''"),
            other => command.push(*other),
        }
    }
    command.extend_from_slice(b"'\n");
    command
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_has_the_value_whatever_its_bytes() {
        for value in ["/lib/x.so:$LIB/y.so", "it's \\ `x` \n\"$(y)\"", "", "'"] {
            let set = String::from_utf8(command("VALUE", OsStr::new(value))).expect("text");
            let said = Command::new("sh")
                .args(["-c", &format!("{set}printf %s \"$VALUE\"")])
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&said.stdout), value);
        }
    }
}
