//! Programs of the tests, each compiled once: an output is kept under `target/tests` by the content of its inputs.
//!
//! Invariant: a kept output was made by the same compiler command from the same source and the same headers beside it.
//!
//! Data flow: source, compiler, options → [`compiled`] → a copy in the test's own folder.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::root;

/// Compiles `source` to `to`, or copies the kept output of an equal compilation. The options must not name files of the test's own.
///
/// # Panics
///
/// With the compiler's messages, if it fails.
#[track_caller]
pub fn compiled(compiler: &str, options: &[&str], source: &Path, to: &Path) {
    try_compiled(compiler, options, source, to).unwrap_or_else(|why| panic!("{why}"));
}

/// As [`compiled`], for a compiler or a dependency that may be missing.
///
/// # Errors
///
/// The compiler's messages, or that there is no compiler.
#[track_caller]
pub fn try_compiled(
    compiler: &str,
    options: &[&str],
    source: &Path,
    to: &Path,
) -> Result<(), String> {
    let kept = kept(compiler, options, source);
    if !kept.exists() {
        let folder = kept.parent().expect("a folder");
        fs::create_dir_all(folder).expect("the build directory");
        let new = tempfile::tempdir_in(folder).expect("a directory");
        let made = new.path().join("made");
        let mut command = Command::new(compiler);
        // Libraries come after the objects that use them.
        command.arg("-o").arg(&made).arg(source).args(options);
        command.current_dir(new.path());
        let output = command.output();
        let output = output.map_err(|why| format!("{compiler}: {why}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{command:?}: {errors}"));
        }
        fs::rename(made, &kept).expect("the build directory");
    }
    copy(&kept, to);
    Ok(())
}

fn kept(compiler: &str, options: &[&str], source: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (compiler, options).hash(&mut hasher);
    let content = fs::read(source).unwrap_or_else(|why| panic!("{}: {why}", source.display()));
    content.hash(&mut hasher);
    let folder = source.parent().expect("a folder");
    let mut headers: Vec<PathBuf> = fs::read_dir(folder)
        .expect("our own folder")
        .map(|entry| entry.expect("our own folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "h"))
        .collect();
    headers.sort();
    for header in headers {
        fs::read(header).expect("our own header").hash(&mut hasher);
    }
    let name = source.file_stem().expect("a name").to_string_lossy();
    root().join(format!("target/tests/{name}-{:016x}", hasher.finish()))
}

/// Copies a file that will be executed. A separate process does it: a program that another test starts meanwhile may inherit a
/// descriptor of this process, and a file that is open for writing cannot be executed.
///
/// # Panics
///
/// If that fails.
#[track_caller]
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cp to {}",
        to.display()
    );
}

/// Writes an executable script, by a separate process for the same reason.
#[track_caller]
pub(crate) fn script(to: &Path, text: &str) {
    let mut child = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(to)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, text.as_bytes()).expect("a shell that reads");
    drop(input);
    let status = child.wait().expect("our child");
    assert!(status.success(), "{}", to.display());
}
