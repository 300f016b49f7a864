//! Resolves paths that the user gave.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use foreread_plan::format::Place;

/// As many links as the kernel follows.
const LINKS: usize = 40;

/// The place of a record at the user's `path`: there, or at the target of a link. Only its folder is opened.
///
/// # Errors
/// When something other than a regular file is at the path, or it cannot be examined: it must not be replaced.
pub fn destination(path: &Path) -> anyhow::Result<Place> {
    match path.metadata() {
        Ok(meta) if !meta.is_file() => bail!("{} is not a regular file", path.display()),
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            return Err(why).with_context(|| path.display().to_string());
        }
        _ => {}
    }
    let mut place = path.to_owned();
    // Each link leads to another path, existing or not. The kernel has refused circles already.
    for _ in 0..LINKS {
        let Ok(target) = place.read_link() else {
            break;
        };
        place = place.with_file_name("").join(target);
    }
    Ok(Place::at(&place)?)
}

/// A path that the user gave, as the front resolves it: the helper's own descriptors are not the user's.
pub(super) fn from_front(path: &Path, front: u32) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
            break;
        };
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let Ok(folder) = folder.canonicalize() else {
            break;
        };
        if let Ok(within) = folder.strip_prefix(&own) {
            return Path::new("/proc")
                .join(front.to_string())
                .join(within)
                .join(name);
        }
        match place.read_link() {
            Ok(target) => place = folder.join(target),
            Err(_) => break,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_descriptors_are_the_fronts() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
        for (given, meant) in [
            (Path::new("/dev/stdout"), "/proc/77/fd/1"),
            (Path::new("/dev/fd/63"), "/proc/77/fd/63"),
            (Path::new("/proc/self/fd/2"), "/proc/77/fd/2"),
            (&link, "/proc/77/fd/1"),
            (Path::new("account.json"), "account.json"),
            (Path::new("/none/account.json"), "/none/account.json"),
            (Path::new("/"), "/"),
        ] {
            assert_eq!(
                from_front(given, 77),
                Path::new(meant),
                "{}",
                given.display()
            );
        }
    }

    #[test]
    fn a_record_goes_where_links_lead_and_replaces_nothing_but_a_regular_file() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("dir")).unwrap();
        std::fs::write(at("dir/file"), "").unwrap();
        symlink("dir/file", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("dir/new", at("dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (given, place) in [
            ("dir/file", "dir/file"),
            ("none", "none"),
            ("link", "dir/file"),
            ("second", "dir/file"),
            ("dangling", "dir/new"),
        ] {
            assert_eq!(destination(&at(given)).unwrap().path(), at(place));
        }
        for refused in ["dir", "dir/.", "circle", "null", "socket", "dir/file/x"] {
            let why = destination(&at(refused)).unwrap_err();
            assert!(format!("{why:#}").contains(at(refused).to_str().unwrap()));
        }
        // As it was given.
        assert_eq!(
            destination(Path::new("x.fr")).unwrap().path(),
            Path::new("x.fr")
        );
        drop(socket);
    }
}
