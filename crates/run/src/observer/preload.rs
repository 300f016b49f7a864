//! Finding the preload library and asking a program to load it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foreread_sys::own;

/// The library's file name.
const LIBRARY: &str = "libforeread_preload.so";
/// Names the library explicitly.
const OVERRIDE: &str = "FOREREAD_PRELOAD";
/// The loader's variable for libraries that are loaded first.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable with AddressSanitizer's options, and the option that permits other libraries before its own.
const SANITIZER: &str = "ASAN_OPTIONS";
const ANY_ORDER: &str = "verify_asan_link_order=0";

/// Finds the library: at `FOREREAD_PRELOAD`, beside the executable (build tree), or in `../lib/foreread` from there (installation). The
/// error has the reason, or the places searched.
pub fn find() -> Result<PathBuf, String> {
    look().and_then(loadable)
}

/// Refuses a path that the loader's variable cannot hold.
fn loadable(path: PathBuf) -> Result<PathBuf, String> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.iter().any(|byte| matches!(byte, b' ' | b':')) {
        let path = path.display();
        return Err(format!(
            "{path}: LD_PRELOAD ends a path at a space or colon; install foreread where there is none"
        ));
    }
    Ok(path)
}

fn look() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(OVERRIDE) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("{}: no such file ({OVERRIDE})", path.display()))
        };
    }
    own::part(LIBRARY, "../lib/foreread").map_err(|why| why.to_string())
}

/// The library as each loader is to find it. Beside it may be laid out one for each kind of loader
/// (`observers/preload/loaders.sh`): one that finds a library of another kind says so on the program's standard error.
fn by_loader(library: &Path) -> PathBuf {
    let tree = library.with_file_name("loaders");
    if tree.is_dir() {
        tree.join("$LIB")
            .join(library.file_name().unwrap_or_default())
    } else {
        library.to_owned()
    }
}

/// Environment variables for the program: the libraries, in front of those that the user preloads already. A program built with gcc's
/// AddressSanitizer would otherwise end at once, because its library must be the first. If the environment has these values already, it
/// does not change.
pub fn variables(libraries: &[PathBuf]) -> [(&'static str, OsString); 2] {
    let given = |name| std::env::var_os(name);
    let ours: Vec<OsString> = libraries.iter().map(|one| by_loader(one).into()).collect();
    let others = given(PRELOAD).map(|list| without(&list, &ours));
    let options = given(SANITIZER);
    let is_last = |list: &OsString| list.as_bytes().ends_with(ANY_ORDER.as_bytes());
    // If an option is given twice, the last value counts.
    let option = (!options.as_ref().is_some_and(is_last)).then(|| ANY_ORDER.into());
    [
        (PRELOAD, joined(ours.into_iter().map(Some).chain([others]))),
        (SANITIZER, joined([options, option])),
    ]
}

/// A list without these parts.
fn without(list: &OsStr, parts: &[OsString]) -> OsString {
    let left = list.as_bytes().split(|byte| *byte == b':');
    let left = left.map(OsStr::from_bytes);
    left.filter(|part| !parts.iter().any(|one| one == part))
        .collect::<Vec<_>>()
        .join(OsStr::new(":"))
}

/// The parts of a list that there are.
fn joined(parts: impl IntoIterator<Item = Option<OsString>>) -> OsString {
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_preloads_are_kept() {
        let library = || Some("/lib/x.so".into());
        assert_eq!(joined([library(), None]), "/lib/x.so");
        assert_eq!(joined([library(), Some("".into())]), "/lib/x.so");
        assert_eq!(
            joined([library(), Some("/a.so:/b.so".into())]),
            "/lib/x.so:/a.so:/b.so"
        );
        let ours = ["/lib/x.so".into()];
        for (list, left) in [
            ("/lib/x.so", ""),
            ("/a.so:/lib/x.so:/b c.so", "/a.so:/b c.so"),
        ] {
            assert_eq!(without(OsStr::new(list), &ours), left);
        }
    }

    #[test]
    fn each_loader_is_told_where_its_own_library_is_if_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(LIBRARY);
        assert_eq!(by_loader(&library), library);
        std::fs::create_dir(folder.path().join("loaders")).unwrap();
        let told = folder.path().join("loaders/$LIB").join(LIBRARY);
        assert_eq!(by_loader(&library), told);
    }

    #[test]
    fn a_path_the_loader_would_split_is_refused() {
        for path in ["/my lib/x.so", "/a:b/x.so"] {
            let refused = loadable(path.into()).unwrap_err();
            assert!(refused.starts_with(path), "{refused}");
        }
        assert!(loadable("/lib/x.so".into()).is_ok());
    }
}
