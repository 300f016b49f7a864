//! `make install`: programs find the library by pkg-config, for each way of linking, and `make uninstall` removes all
//! files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;

use crate::headers::Test;
use crate::library::{here, scratch};
use crate::program::succeed;

/// The place of the installation, below the folder that stands for the file system.
const PREFIX: &str = "/opt/foreread";

/// The tests of this module.
pub fn tests() -> Vec<Test> {
    let title = "what is installed is found by pkg-config, and what is uninstalled is gone";
    vec![(title, missing(), installed)]
}

fn top() -> PathBuf {
    here().join("../..")
}

fn missing() -> Option<String> {
    let runs = |command: &str| Command::new(command).arg("--version").output().is_ok();
    if !runs("pkg-config") {
        return Some("no pkg-config".into());
    }
    let built = ["foreread", "libforeread_preload.so", "libforeread.so.1"];
    let is_missing = |name: &&str| !top().join("target/release").join(name).is_file();
    let missing = built.iter().find(|name| is_missing(name));
    missing.map(|name| format!("no {name}: make build comes first"))
}

/// Makes a target of the Makefile, in the folder that stands for the file system.
fn make(target: &str, root: &Path) -> Result<(), Failed> {
    let mut make = Command::new("make");
    make.arg("-C").arg(top()).args(["-s", target]);
    make.arg(format!("PREFIX={PREFIX}"));
    // Without the flags of an outer make.
    make.env_remove("MAKEFLAGS")
        .arg(format!("DESTDIR={}", root.display()));
    succeed(&mut make).map(drop)
}

/// The output of pkg-config.
fn flags(root: &Path, question: &[&str]) -> Result<Vec<String>, Failed> {
    let folder = root.join(&PREFIX[1..]).join("lib/pkgconfig");
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_PATH", folder)
        .env("PKG_CONFIG_SYSROOT_DIR", root)
        .args(question)
        .arg("foreread");
    let answer = String::from_utf8(succeed(&mut ask)?.stdout)?;
    Ok(answer.split_whitespace().map(str::to_owned).collect())
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failed> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn installed() -> Result<(), Failed> {
    let folder = tempfile::tempdir_in(scratch())?;
    let root = folder.path().join("root");
    make("install", &root)?;
    let version = String::from_utf8(fs::read(top().join("Cargo.toml"))?)?;
    let version = version
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let told = flags(&root, &["--modversion"])?;
    assert_eq!(version.map(|text| text.trim_matches('"')), Some(&*told[0]));

    let data = folder.path().join("data");
    fs::write(&data, vec![7; 1 << 20])?;
    let source = top().join("examples/c/random_blocks.c");
    let ways: [(&str, &[&str], &[&str]); 3] = [
        ("shared", &["--cflags", "--libs"], &[]),
        ("archive", &["--static", "--cflags", "--libs"], &["-static"]),
        ("plus", &["--cflags", "--libs"], &["-x", "c++"]),
    ];
    let mut answers = Vec::new();
    for (name, question, more) in ways {
        let program = folder.path().join(name);
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-o"]).arg(&program).args(more).arg(&source);
        cc.args(["-x", "none"]).args(flags(&root, question)?);
        let library = root.join(&PREFIX[1..]).join("lib");
        cc.arg(format!("-Wl,-rpath,{}", library.display()));
        succeed(&mut cc)?;
        answers.push(succeed(Command::new(&program).arg(&data))?.stdout);
    }
    assert!(answers[0].starts_with(b"checksum "));
    assert!(answers.iter().all(|answer| *answer == answers[0]));

    // The man pages refer to each other by their place.
    let page = root.join(&PREFIX[1..]).join("share/man/man3/foreread_at.3");
    assert!(fs::read_to_string(page)?.starts_with(".so man3/"));
    make("uninstall", &root)?;
    let mut left = Vec::new();
    files(&root, &mut left)?;
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}
