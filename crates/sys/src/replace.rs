//! Files replaced as a whole: a reader sees the old text or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Checks that the file at `path` may be replaced: a device or a pipe must not be.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if it is no regular file.
pub fn check(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if !about.is_file() => {
            let why = "is no regular file, and is not replaced";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
        }
        _ => Ok(()),
    }
}

/// Replaces the file at `path` by one with this text, or makes it. Its permissions are those of a new file.
///
/// # Errors
/// The errors of [`check`]; [`io::ErrorKind::PermissionDenied`] or [`io::ErrorKind::ReadOnlyFilesystem`] if nothing can be created or
/// replaced in the folder; or a lack of room. The old file stays, and no other file is left.
pub fn file(path: &Path, text: &str) -> io::Result<()> {
    with(path, |file| file.write_all(text.as_bytes()))
}

/// The same with content from `write`; returns its result. If it fails, the old file stays.
///
/// # Errors
/// The errors of [`file`] and of `write`.
pub fn with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    check(path)?;
    let folder = path.parent().filter(|at| !at.as_os_str().is_empty());
    // By its own means tempfile would add the new file's name to each error.
    let make = |path: &Path| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).open(path)
    };
    let mut new = tempfile::Builder::new().make_in(folder.unwrap_or(Path::new(".")), make)?;
    let written = write(new.as_file_mut())?;
    new.persist(path).map_err(|failed| failed.error)?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_or_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foreread.prom");
        file(&path, "old\n").expect("room");
        file(&path, "new\n").expect("room");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(text, "new\n");
        let new = folder.path().join("new");
        std::fs::write(&new, "").expect("room");
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode(&path), mode(&new));
        let missing = folder.path().join("none/file");
        let why = file(&missing, "x").expect_err("no folder");
        assert_eq!(why.raw_os_error(), Some(libc::ENOENT), "{why}");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        std::fs::create_dir(folder.path().join("taken")).expect("a folder");
        for other in ["pipe", "taken"] {
            let why = file(&folder.path().join(other), "x").expect_err(other);
            assert_eq!(why.kind(), io::ErrorKind::AlreadyExists);
        }
        let kept = std::fs::symlink_metadata(&pipe).expect("it is there");
        assert!(!kept.is_file());
        // If a file cannot be replaced, no other file is left.
        let there = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(there, 4);
    }
}
