//! The library under test.
//!
//! cargo builds no archive for a package's own tests. So it is built here, in the profile and target directory of the
//! tests, and `link.sh` makes the shared library from it, as in `make build`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The places of the library.
#[derive(Debug)]
pub struct Library {
    /// The archive.
    pub archive: PathBuf,
    /// A directory with `libforeread.so`, `libforeread.so.1`, and nothing else.
    pub folder: PathBuf,
}

/// The package's directory.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder in which programs are compiled and run: on the file system of the build, not a tmpfs.
pub fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The library, built once.
pub fn built() -> &'static Library {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    match LIBRARY.get_or_init(build) {
        Ok(library) => library,
        Err(why) => panic!("{why}"),
    }
}

fn build() -> Result<Library, String> {
    let target = scratch().parent().expect("target/tmp is in target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "-p", "foreread-capi", "--message-format=json"])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(here().join("Cargo.toml"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let made = cargo.output().expect("cargo");
    let log = String::from_utf8_lossy(&made.stderr);
    if !made.status.success() {
        return Err(format!("building the library: {log}"));
    }
    let messages = String::from_utf8(made.stdout).expect("JSON");
    let archive = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "foreread")
        .find_map(|message| {
            let files = message["filenames"].as_array()?.iter();
            let mut paths = files.filter_map(|file| Some(PathBuf::from(file.as_str()?)));
            paths.find(|path| path.extension().is_some_and(|end| end == "a"))
        })
        .expect("an archive among what cargo has built");
    let folder = scratch().join("libforeread");
    std::fs::create_dir_all(&folder).expect("a directory");
    let shared = folder.join("libforeread.so.1");
    let linked = Command::new("sh")
        .arg(here().join("link.sh"))
        .arg(&archive)
        .arg(&shared)
        .output()
        .expect("sh");
    let log = String::from_utf8_lossy(&linked.stderr);
    if !linked.status.success() {
        return Err(format!("linking the library: {log}"));
    }
    let name = folder.join("libforeread.so");
    let _ = std::fs::remove_file(&name);
    std::os::unix::fs::symlink("libforeread.so.1", &name).expect("a link");
    Ok(Library { archive, folder })
}
