//! Prefixes of paths that stand for others: the same files lie elsewhere in a container image, or on another machine.
//!
//! Invariant: a prefix ends at the end of a component: `/data` is no prefix of `/database`. If several match, the first given one is used.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{FileId, FileMeta, Identity};

/// Prefixes, each with its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMap(Vec<(PathBuf, PathBuf)>);

impl PathMap {
    /// Parses a text `OLD=NEW`. The first `=` separates the two.
    ///
    /// # Errors
    /// The fault of the text, in words.
    pub fn parse(text: &OsStr) -> Result<Self, String> {
        let shown = text.to_string_lossy();
        let bytes = text.as_bytes();
        let Some(middle) = bytes.iter().position(|byte| *byte == b'=') else {
            return Err(format!("{shown:?} is not OLD=NEW"));
        };
        let [old, new] =
            [&bytes[..middle], &bytes[middle + 1..]].map(|part| Path::new(OsStr::from_bytes(part)));
        for part in [old, new] {
            if !part.is_absolute() {
                return Err(format!("{part:?} in {shown:?} is not an absolute path"));
            }
        }
        // Without slashes that mean nothing.
        Ok(Self(vec![(
            old.components().collect(),
            new.components().collect(),
        )]))
    }

    /// True if there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of another map, to be tried after these.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The same the other way round.
    pub fn reversed(&self) -> Self {
        let pairs = self.0.iter().cloned();
        Self(pairs.map(|(old, new)| (new, old)).collect())
    }

    /// The path after replacing its prefix.
    pub fn of<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        let found = self.0.iter().find_map(|(old, new)| {
            let rest = path.strip_prefix(old).ok()?;
            // Joined to nothing, a path would end in a slash.
            Some(match rest.as_os_str().is_empty() {
                true => new.clone(),
                false => new.join(rest),
            })
        });
        found.map_or(Cow::Borrowed(path), Cow::Owned)
    }

    /// The same files, where they lie by this map.
    pub fn files(&self, files: Arc<BTreeMap<FileId, FileMeta>>) -> Arc<BTreeMap<FileId, FileMeta>> {
        let mut files = files;
        if !self.is_empty() {
            for meta in Arc::make_mut(&mut files).values_mut() {
                meta.path = self.of(&meta.path).into_owned();
            }
        }
        files
    }

    /// The same command, its executable, its folder and those of its words that are paths by this map; also in words like
    /// `--file=PATH`.
    pub fn identity(&self, identity: &Identity) -> Identity {
        let path = |text: &str| match self.of(Path::new(text)) {
            Cow::Borrowed(_) => text.to_owned(),
            Cow::Owned(path) => path.to_string_lossy().into_owned(),
        };
        let word = |word: &String| match word.split_once('=') {
            Some((name, value)) if !word.starts_with('/') => format!("{name}={}", path(value)),
            _ => path(word),
        };
        Identity {
            exe: path(&identity.exe),
            argv: identity.argv.iter().map(word).collect(),
            cwd: path(&identity.cwd),
            rank: identity.rank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(all: &[&str]) -> PathMap {
        let mut map = PathMap::default();
        for text in all {
            map.extend(PathMap::parse(OsStr::new(text)).unwrap());
        }
        map
    }

    #[test]
    fn a_prefix_is_replaced_where_it_ends_with_a_component() {
        let map = map(&["/data/=/mnt/data", "/data=/never", "/=/image"]);
        let of = |path: &str| map.of(Path::new(path)).to_str().unwrap().to_owned();
        assert_eq!(of("/data/a/b"), "/mnt/data/a/b");
        assert_eq!(of("/data"), "/mnt/data");
        assert_eq!(of("/database"), "/image/database");
        assert_eq!(of("relative"), "relative");
        let back = map.reversed();
        assert_eq!(back.of(Path::new("/image/x")), Path::new("/x"));
        assert_eq!(back.of(Path::new("/mnt/data/a")), Path::new("/data/a"));
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let path = Path::new(OsStr::from_bytes(b"/a/\xff\n"));
        let mapped = map(&["/a=/b"]).of(path).into_owned();
        assert_eq!(mapped.as_os_str().as_bytes(), b"/b/\xff\n");
    }

    #[test]
    fn a_map_that_is_none_is_refused_with_its_text() {
        for text in ["/a", "a=/b", "/a=b", "=/b", "/a="] {
            let why = PathMap::parse(OsStr::new(text)).unwrap_err();
            assert!(why.contains(text), "{why}");
        }
        assert!(PathMap::parse(OsStr::new("/a=/b=c")).is_ok());
    }

    #[test]
    fn a_command_is_the_same_elsewhere() {
        let identity = Identity {
            exe: "/app/bin/x".into(),
            argv: ["x", "/data/a", "--in=/data/b", "data"]
                .map(String::from)
                .into(),
            cwd: "/data".into(),
            rank: None,
        };
        let there = map(&["/data=/mnt", "/app=/opt/app"]).identity(&identity);
        assert_eq!(there.exe, "/opt/app/bin/x");
        assert_eq!(there.argv, ["x", "/mnt/a", "--in=/mnt/b", "data"]);
        assert_eq!(there.cwd, "/mnt");
    }
}
