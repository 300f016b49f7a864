//! The program of a command, and the id of its record.
//!
//! Invariant: an id depends on the identity alone, and on nothing of the machine or the
//! version of foreread, so that records outlive both.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use foreread_plan::{Identity, Rank};
use foreread_sys::way;

use super::{EXE_DIGITS, ID_DIGITS, rank};

/// The identity of a command as it would run now, in this folder.
///
/// A command that is not found keeps the name it was given: it cannot run either.
pub fn identity_of(command: &[OsString]) -> Identity {
    let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    Identity {
        exe: text(
            executable(name, env::var_os("PATH").as_deref())
                .unwrap_or_else(|| PathBuf::from(name))
                .as_os_str(),
        ),
        argv: command.iter().map(|argument| text(argument)).collect(),
        cwd: env::current_dir().map_or_else(|_| String::new(), |cwd| text(cwd.as_os_str())),
        rank: rank::rank(),
    }
}

/// The same from the kernel's caches only; `None` if they do not suffice. No file system is called.
pub(super) fn identity_in_memory(command: &[OsString]) -> Option<Identity> {
    let name = command.first().filter(|name| !name.is_empty())?;
    let exe = if name.as_encoded_bytes().contains(&b'/') {
        way::real_in_memory(Path::new(name))?.ok()?
    } else {
        let path = env::var_os("PATH");
        let path = path.as_deref().unwrap_or(OsStr::new("/bin:/usr/bin"));
        let mut folders = env::split_paths(path);
        folders.find_map(|folder| match way::real_in_memory(&folder.join(name)) {
            // The helper process looks into this folder.
            None => Some(None),
            Some(Err(_)) => None,
            Some(Ok(found)) => Some(Some(found)),
        })??
    };
    Some(Identity {
        exe: text(exe.as_os_str()),
        argv: command.iter().map(|argument| text(argument)).collect(),
        cwd: text(env::current_dir().ok()?.as_os_str()),
        rank: rank::rank(),
    })
}

/// A word as text. A byte that is no UTF-8 becomes U+FFFD and its hexadecimal value, so different words stay different.
fn text(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\u{FFFD}{byte:02x}");
        }
    }
    text
}

/// The file a command's name stands for, symbolic links resolved, as `execvp` finds it.
fn executable(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.as_encoded_bytes().contains(&b'/') {
        return fs::canonicalize(name).ok();
    }
    env::split_paths(path.unwrap_or(OsStr::new("/bin:/usr/bin")))
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
        .and_then(|candidate| fs::canonicalize(candidate).ok())
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The id of a program's record, in hexadecimal digits.
pub(super) fn id(identity: &Identity) -> String {
    let exe = hash([identity.exe.as_str()].into_iter());
    let rank = identity
        .rank
        .map(|Rank { rank, of }| format!("rank {rank} of {of}"));
    let all = hash(
        [identity.exe.as_str(), identity.cwd.as_str()]
            .into_iter()
            .chain(identity.argv.iter().map(String::as_str))
            .chain(rank.as_deref()),
    );
    format!("{}{}", &exe[..EXE_DIGITS], &all[..ID_DIGITS - EXE_DIGITS])
}

/// True if two ids have the same executable, as far as their digits show.
pub(super) fn same_exe(a: &str, b: &str) -> bool {
    a.get(..EXE_DIGITS) == b.get(..EXE_DIGITS)
}

/// A hash of a list of words, each with its length, so that no two lists run together.
fn hash<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut state = blake3::Hasher::new();
    for word in words {
        state.update(&(word.len() as u64).to_le_bytes());
        state.update(word.as_bytes());
    }
    state.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn identity(exe: &str, argv: &[&str], cwd: &str) -> Identity {
        Identity {
            exe: exe.into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: cwd.into(),
            rank: None,
        }
    }

    #[test]
    fn an_id_never_changes_between_versions() {
        let cat = identity("/usr/bin/cat", &["cat", "a"], "/home");
        assert_eq!(id(&cat), "ccfc7cee1f0c79bb");
    }

    #[test]
    fn every_part_of_the_identity_changes_the_id() {
        let first = id(&identity("/bin/x", &["x", "ab"], "/"));
        for other in [
            identity("/bin/y", &["x", "ab"], "/"),
            identity("/bin/x", &["x", "a", "b"], "/"),
            identity("/bin/x", &["xa", "b"], "/"),
            identity("/bin/x", &["x", "ab"], "/tmp"),
        ] {
            assert_ne!(id(&other), first, "{other:?}");
        }
    }

    #[test]
    fn each_rank_has_an_id_of_its_own() {
        let of = |rank| {
            let plain = identity("/bin/x", &["x"], "/");
            id(&Identity { rank, ..plain })
        };
        let ranks = [(0, 2), (1, 2), (0, 4), (1, 4)].map(|(rank, of)| Rank { rank, of });
        let mut ids: Vec<_> = ranks.map(Some).map(of).into();
        ids.push(of(None));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5);
        assert!(ids.iter().all(|id| same_exe(id, &ids[0])));
    }

    #[test]
    fn words_that_are_no_text_tell_commands_apart() {
        let of = |word: &[u8]| identity_of(&["cat".into(), OsStr::from_bytes(word).into()]);
        let (one, other) = (of(b"u\xff"), of(b"u\xfe"));
        assert_ne!(one, other);
        assert_ne!(id(&one), id(&other));
        assert_eq!(one.argv[1], "u\u{FFFD}ff");
        assert_eq!(of("ü\u{FFFD}".as_bytes()).argv[1], "ü\u{FFFD}");
    }

    #[test]
    fn ids_of_one_executable_begin_alike() {
        let a = id(&identity("/bin/x", &["x", "1"], "/"));
        let b = id(&identity("/bin/x", &["x", "2"], "/tmp"));
        let c = id(&identity("/bin/y", &["x", "1"], "/"));
        assert!(same_exe(&a, &b) && !same_exe(&a, &c));
    }

    #[test]
    fn a_name_is_looked_up_as_the_shell_would() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        for place in [&first, &second] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("tool"), "").unwrap();
        }
        // Not executable in the first folder, and a link in the second.
        let real = second.join("real");
        fs::rename(second.join("tool"), &real).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&real, second.join("tool")).unwrap();
        let path = env::join_paths([&first, &second]).unwrap();
        let found = executable(OsStr::new("tool"), Some(&path)).unwrap();
        assert_eq!(found, fs::canonicalize(&real).unwrap());
        assert_eq!(executable(OsStr::new("no-such-tool"), Some(&path)), None);
        assert_eq!(executable(OsStr::new(""), Some(&path)), None);
    }
}
