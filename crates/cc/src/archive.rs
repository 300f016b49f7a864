//! Static libraries: which members a program was linked with, and copies with members replaced.
//!
//! The linker itself says which members it took (`-t -t`); a copy holds the same members under the same
//! names in the same order, so that it takes the same ones again.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use object::read::archive::ArchiveFile;

use super::compiler::first_errors;
use super::response;

/// First bytes of static libraries, ordinary and thin.
const MAGIC: [&[u8]; 2] = [b"!<arch>\n", b"!<thin>\n"];

/// A static library.
#[derive(Debug)]
pub(super) struct Archive {
    /// Its canonical path.
    pub(super) path: PathBuf,
    pub(super) members: Vec<Member>,
}

/// An object in a static library.
#[derive(Debug)]
pub(super) struct Member {
    /// Without folders.
    pub(super) name: OsString,
    pub(super) bytes: Vec<u8>,
    /// The member's own file, of a thin library.
    file: Option<PathBuf>,
}

impl Archive {
    /// The library at `path`; `None` if the file is none, or cannot be read.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let bytes = fs::read(&path).ok()?;
        if !MAGIC.iter().any(|magic| bytes.starts_with(magic)) {
            return None;
        }
        let parsed = ArchiveFile::parse(&*bytes).ok()?;
        let mut members = Vec::new();
        for member in parsed.members() {
            let member = member.ok()?;
            let named = Path::new(OsStr::from_bytes(member.name()));
            let thin = member.is_thin();
            let file = thin.then(|| path.parent().unwrap_or(Path::new("/")).join(named));
            members.push(Member {
                name: named.file_name()?.to_owned(),
                bytes: match &file {
                    Some(file) => fs::read(file).ok()?,
                    None => member.data(&*bytes).ok()?.to_vec(),
                },
                file,
            });
        }
        Some(Self { path, members })
    }

    /// The members that the linker used. Several members with one name cannot be distinguished, and count as unused.
    pub(super) fn taken<'a>(
        &'a self,
        trace: &'a Trace,
    ) -> impl Iterator<Item = (usize, &'a Member)> {
        let taken = move |member: &Member| match &member.file {
            Some(file) => file
                .canonicalize()
                .is_ok_and(|file| trace.files.contains(&file)),
            None => {
                let alike = self
                    .members
                    .iter()
                    .filter(|other| other.name == member.name);
                alike.count() == 1 && trace.took(&self.path, &member.name)
            }
        };
        self.members
            .iter()
            .enumerate()
            .filter(move |(_, member)| taken(member))
    }

    /// Writes a copy, some members of which are other objects, into `folder`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn copy(&self, replaced: &HashMap<usize, &Path>, folder: &Path) -> Result<PathBuf> {
        let copy = folder.join(self.path.file_name().context("a library's name")?);
        let mut words = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            // A folder each: names may come more than once.
            let own = folder.join(index.to_string());
            fs::create_dir_all(&own)?;
            let file = own.join(&member.name);
            match replaced.get(&index) {
                Some(object) => drop(fs::copy(object, &file)?),
                None => fs::write(&file, &member.bytes)?,
            }
            words.push(file.into_os_string());
        }
        let list = folder.join("members");
        fs::write(&list, response::write(&words))?;
        let mut at_list = OsString::from("@");
        at_list.push(&list);
        let output = Command::new("ar")
            .arg("qcs")
            .args([copy.as_os_str(), &at_list])
            .stdin(Stdio::null())
            .output()
            .context("ar")?;
        ensure!(
            output.status.success(),
            "ar: {}",
            first_errors(&output.stderr)
        );
        Ok(copy)
    }
}

/// Members used by the linker, from its output.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Files, each once, in the linker's order.
    pub(super) files: Vec<PathBuf>,
    members: Vec<(PathBuf, OsString)>,
}

impl Trace {
    /// Parses a linker's output under `-t -t`: one file per line, with members as `(LIBRARY)MEMBER` (GNU ld) or `LIBRARY(MEMBER)` (gold,
    /// lld, mold).
    pub(super) fn read(printed: &[u8]) -> Self {
        let mut trace = Self::default();
        for line in printed.split(|&byte| byte == b'\n') {
            let member = match line.strip_prefix(b"(") {
                Some(rest) => split_at_last(rest, b')'),
                None => line
                    .strip_suffix(b")")
                    .and_then(|rest| split_at_last(rest, b'(')),
            };
            let real = |path: &[u8]| Path::new(OsStr::from_bytes(path)).canonicalize().ok();
            match member {
                Some((library, name)) => {
                    let name = OsStr::from_bytes(name).to_owned();
                    trace
                        .members
                        .extend(real(library).map(|library| (library, name)));
                }
                None => trace.files.extend(real(line)),
            }
        }
        // A library may be named twice, for the needs of another one between.
        let mut seen = HashSet::new();
        trace.files.retain(|file| seen.insert(file.clone()));
        let mut libraries: Vec<_> = trace
            .members
            .iter()
            .map(|(library, _)| library.clone())
            .collect();
        libraries.dedup();
        for library in libraries {
            if !trace.files.contains(&library) {
                trace.files.push(library);
            }
        }
        trace
    }

    fn took(&self, library: &Path, member: &OsStr) -> bool {
        self.members
            .iter()
            .any(|(path, name)| path == library && name == member)
    }
}

fn split_at_last(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().rposition(|&byte| byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ar(dir: &Path, args: &[&str]) {
        let status = Command::new("ar").args(args).current_dir(dir).status();
        assert!(status.unwrap().success());
    }

    /// A folder with a library of two members, one name twice, and a thin one.
    fn libraries() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        for (name, text) in [("a.o", "A"), ("b.o", "B"), ("sub/a.o", "other A")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        ar(dir.path(), &["qc", "lib.a", "a.o", "b.o"]);
        ar(dir.path(), &["qc", "twice.a", "a.o", "sub/a.o", "b.o"]);
        ar(dir.path(), &["qcT", "thin.a", "a.o", "sub/a.o"]);
        dir
    }

    fn names(archive: &Archive, trace: &Trace) -> Vec<usize> {
        archive.taken(trace).map(|(index, _)| index).collect()
    }

    #[test]
    fn the_members_that_the_linker_names_are_taken() {
        let dir = libraries();
        let lib = dir.path().join("lib.a");
        let archive = Archive::read(&lib).unwrap();
        for said in [
            format!("({})b.o\n", lib.display()),
            format!("{}(b.o)\n", lib.display()),
        ] {
            let trace = Trace::read(said.as_bytes());
            assert_eq!(names(&archive, &trace), [1], "{said}");
            assert_eq!(trace.files, [lib.canonicalize().unwrap()], "{said}");
        }
    }

    #[test]
    fn of_members_with_one_name_none_is_taken() {
        let dir = libraries();
        let archive = Archive::read(&dir.path().join("twice.a")).unwrap();
        let lib = archive.path.display();
        let trace = Trace::read(format!("({lib})a.o\n({lib})b.o\n").as_bytes());
        assert_eq!(names(&archive, &trace), [2]);
    }

    #[test]
    fn a_thin_librarys_members_are_files() {
        let dir = libraries();
        let archive = Archive::read(&dir.path().join("thin.a")).unwrap();
        assert_eq!(archive.members[1].bytes, b"other A");
        let said = dir.path().join("sub/a.o");
        let trace = Trace::read(format!("{}\n", said.display()).as_bytes());
        assert_eq!(names(&archive, &trace), [1]);
    }

    #[test]
    fn a_copy_keeps_names_and_order() {
        let dir = libraries();
        let archive = Archive::read(&dir.path().join("twice.a")).unwrap();
        let other = dir.path().join("new.o");
        fs::write(&other, "new").unwrap();
        let folder = dir.path().join("copy");
        fs::create_dir(&folder).unwrap();
        let copy = archive
            .copy(&HashMap::from([(1, &*other)]), &folder)
            .unwrap();
        let copy = Archive::read(&copy).unwrap();
        let members: Vec<_> = copy.members.iter().map(|m| (&*m.name, &*m.bytes)).collect();
        let wanted: [(&OsStr, &[u8]); 3] = [
            ("a.o".as_ref(), b"A"),
            ("a.o".as_ref(), b"new"),
            ("b.o".as_ref(), b"B"),
        ];
        assert_eq!(members, wanted);
    }

    #[test]
    fn what_is_no_library_is_none() {
        let dir = libraries();
        assert!(Archive::read(&dir.path().join("a.o")).is_none());
        fs::write(
            dir.path().join("bad.a"),
            b"!<arch>\nnonsense that is long enough to be a member header xxxxxxxxxxxx",
        )
        .unwrap();
        assert!(Archive::read(&dir.path().join("bad.a")).is_none());
    }
}
