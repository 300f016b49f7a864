//! Names the commit that this program is built from, for `foreread --version`. Sources without their own git repository, those of a
//! tarball or of a package, have a plain version.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=FOREREAD_COMMIT= ({commit})");
    } else {
        println!("cargo::rustc-env=FOREREAD_COMMIT=");
    }
}

/// The commit's short name. Cargo asks again after a commit or a change of branches, and at no other time.
fn commit() -> Option<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = git(&["rev-parse", "--show-toplevel"])?;
    // Sources may lie in somebody else's repository, whose commits say nothing of them.
    if top.canonicalize().ok()? != Path::new(&root) {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let file = top.join(git(&["rev-parse", "--git-path", file])?);
        // Cargo takes a file that is missing for a changed one, and would compile this crate on each build.
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(&["rev-parse", "--short=8", "HEAD"])
}

/// What git answers at the top of the sources.
fn git(question: &[&str]) -> Option<String> {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut ask = Command::new("git");
    let answer = ask.arg("-C").arg(top).args(question).output().ok()?;
    let line = String::from_utf8(answer.stdout).ok()?;
    let line = line.trim();
    (answer.status.success() && !line.is_empty()).then(|| line.to_owned())
}
