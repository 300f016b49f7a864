//! The effect of the environment: none in a set-user-ID program, and in others nothing that their user could not do.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::headers::Test;
use crate::program::{Link, compile, succeed};

/// A user without any rights.
const NOBODY: u32 = 65534;

/// The tests of this module.
pub fn tests() -> Vec<Test> {
    let missing = unless_set_uid_works();
    vec![
        (
            "a set-user-ID program ignores the environment",
            missing,
            set_uid,
        ),
        (
            "a report goes to a file of one's own, and its names are escaped",
            None,
            report,
        ),
        (
            "a report goes into nothing that another may have put there",
            None,
            hostile_reports,
        ),
        (
            "what is in the place of the measured devices keeps nobody waiting",
            None,
            hostile_profiles,
        ),
    ]
}

/// A folder that every user can enter.
fn folder() -> std::io::Result<TempDir> {
    let folder = tempfile::tempdir_in("/var/tmp")?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// The reason why set-user-ID programs do not work here; `None` if they do.
fn unless_set_uid_works() -> Option<String> {
    let run = || -> std::io::Result<bool> {
        let folder = folder()?;
        let id = folder.path().join("id");
        fs::copy("/usr/bin/id", &id)?;
        fs::set_permissions(&id, Permissions::from_mode(0o4755))?;
        let said = Command::new(&id)
            .arg("-u")
            .uid(NOBODY)
            .gid(NOBODY)
            .output()?;
        Ok(said.stdout == b"0\n")
    };
    match run() {
        Ok(true) => None,
        Ok(false) => {
            Some("the file system has no set-user-ID programs, or this is not root".into())
        }
        Err(error) => Some(format!("no program can be run as nobody: {error}")),
    }
}

/// The program and a file for it to read, in a folder of its own.
fn prepared(name: &OsStr) -> Result<(TempDir, PathBuf, PathBuf), Failed> {
    let folder = folder()?;
    let program = folder.path().join("program");
    // Linked with the archive, because user `nobody` may not be able to reach a shared library.
    fs::copy(compile("secure", Link::Archive, &[])?, &program)?;
    let data = folder.path().join(name);
    fs::write(&data, vec![7; 16384])?;
    Ok((folder, program, data))
}

/// A command that runs a program, and kills it if it hangs.
fn timed(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60"]).arg(program);
    command
}

fn make_fifo(path: &Path) -> Result<Output, Failed> {
    succeed(Command::new("mkfifo").arg(path))
}

fn set_uid() -> Result<(), Failed> {
    let (folder, program, data) = prepared(OsStr::new("data"))?;
    fs::set_permissions(&program, Permissions::from_mode(0o4755))?;
    let places = folder.path().join("places");
    fs::create_dir_all(places.join("foreread"))?;
    fs::set_permissions(&places, Permissions::from_mode(0o777))?;
    make_fifo(&places.join("foreread/devices.json"))?;
    let report = places.join("report");
    let mut run = timed(&program);
    run.arg(&data)
        .env("FOREREAD_CHECK", &report)
        .env("XDG_DATA_HOME", &places)
        .env("HOME", &places)
        // Threads with so little stack would end the program.
        .env("RUST_MIN_STACK", "1")
        .uid(NOBODY)
        .gid(NOBODY);
    let said = succeed(&mut run)?;
    assert_eq!(said.stdout, b"secure 1, euid 0\n");
    assert!(
        !report.exists(),
        "the environment named a file, and root made it"
    );
    assert!(said.stderr.is_empty(), "{said:?}");
    // Without more rights than its user's, the same program writes it.
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    succeed(&mut run)?;
    assert_eq!(fs::metadata(&report)?.uid(), NOBODY);
    Ok(())
}

fn report() -> Result<(), Failed> {
    let name = OsStr::from_bytes(b"a\nroot::0:0:\n\x1b[2J\xff");
    let (folder, program, data) = prepared(name)?;
    let report = folder.path().join("report");
    // With any umask of the program.
    let mut run = Command::new("sh");
    run.args(["-c", "umask 0; exec timeout 60 \"$@\"", "sh"]);
    run.arg(&program).arg(&data).env("FOREREAD_CHECK", &report);
    succeed(&mut run)?;
    let mode = fs::metadata(&report)?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let once = fs::read(&report)?;
    let text = String::from_utf8(once.clone())?;
    assert!(text.contains(r"a\nroot::0:0:\n\u{1b}[2J\xff"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("root")), "{text}");
    succeed(&mut run)?;
    assert!(fs::read(&report)?.len() > once.len(), "it is added to");
    Ok(())
}

fn hostile_reports() -> Result<(), Failed> {
    let (folder, program, data) = prepared(OsStr::new("data"))?;
    let place = folder.path().join("report");
    let refused = || -> Result<(), Failed> {
        let said = succeed(timed(&program).arg(&data).env("FOREREAD_CHECK", &place))?;
        assert!(String::from_utf8_lossy(&said.stderr).contains("no report: "));
        Ok(())
    };
    let other = folder.path().join("other");
    fs::write(&other, "kept")?;
    symlink(&other, &place)?;
    refused()?;
    fs::remove_file(&place)?;
    // A second name of somebody's file.
    fs::hard_link(&other, &place)?;
    refused()?;
    assert_eq!(fs::read(&other)?, b"kept");
    fs::remove_file(&place)?;
    make_fifo(&place)?;
    refused()?;
    fs::remove_file(&place)?;
    fs::write(&place, "kept")?;
    if std::os::unix::fs::chown(&place, Some(NOBODY), None).is_ok() {
        refused()?;
        assert_eq!(fs::read(&place)?, b"kept");
    }
    Ok(())
}

fn hostile_profiles() -> Result<(), Failed> {
    let (folder, program, data) = prepared(OsStr::new("data"))?;
    let devices = folder.path().join("foreread/devices.json");
    fs::create_dir(folder.path().join("foreread"))?;
    let starts = || -> Result<(), Failed> {
        let mut run = timed(&program);
        succeed(run.arg(&data).env("XDG_DATA_HOME", folder.path()))?;
        Ok(fs::remove_file(&devices)?)
    };
    make_fifo(&devices)?;
    starts()?;
    symlink("/dev/zero", &devices)?;
    starts()?;
    File::create(&devices)?.set_len(1 << 40)?;
    starts()
}
