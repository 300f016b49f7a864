//! The units a program was linked of: where each stands, and the command line with other objects there.
//!
//! Invariant: an object is replaced where the linker finds it (its word, its member of a library), so
//! that symbols resolve, constructors run and libraries are searched in the same order as before.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::archive::{Archive, Trace};
use super::command_line::{CommandLine, Role};
use super::compiler::{Compiler, linker_said};
use super::explain::UnitReport;
use super::record::Record;

/// The place of a unit's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ObjectPlace {
    /// A word of the command line: a source or an object.
    Word(usize),
    /// A member of one of the libraries.
    Member { archive: usize, member: usize },
}

/// A unit that can be compiled again.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) record: Record,
    pub(super) place: ObjectPlace,
    /// Its place in [`Units::reports`].
    pub(super) report: usize,
}

/// The units of a program.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) known: Vec<Unit>,
    archives: Vec<Archive>,
    /// Remarks on each unit, including those left whole.
    pub(super) reports: Vec<UnitReport>,
}

impl Units {
    /// Finds the units that this command line links. `scratch` is a folder for a trial link.
    ///
    /// # Errors
    /// When the linker does not report which members of libraries it used.
    pub(super) fn find(compiler: &Compiler, line: &CommandLine, scratch: &Path) -> Result<Self> {
        let mut units = Self::default();
        for (index, word) in line.of(Role::Source) {
            let record = Record::new(line, word, compiler);
            units.add(Path::new(&word.text), record, ObjectPlace::Word(index));
        }
        for (index, word) in line.of(Role::Input) {
            let path = Path::new(&word.text);
            // A source in another language, a linker script or a shared library is left unchanged.
            let object = path
                .extension()
                .is_some_and(|suffix| suffix == "o" || suffix == "lo");
            let Some(bytes) = fs::read(path)
                .ok()
                .filter(|bytes| bytes.starts_with(b"\x7fELF"))
            else {
                continue;
            };
            match Record::of_object(&bytes, compiler) {
                Err(_) if !object => {}
                record => units.add(path, record, ObjectPlace::Word(index)),
            }
        }
        if names_libraries(line) {
            let trace = trace(compiler, line, scratch)?;
            let libraries = trace
                .files
                .iter()
                .filter(|file| names(line, file).next().is_some());
            units.archives = libraries.filter_map(|file| Archive::read(file)).collect();
            units.add_members(&trace, compiler);
        }
        Ok(units)
    }

    fn add_members(&mut self, trace: &Trace, compiler: &Compiler) {
        let archives = std::mem::take(&mut self.archives);
        for (archive, library) in archives.iter().enumerate() {
            for (member, taken) in library.taken(trace) {
                let record = Record::of_object(&taken.bytes, compiler);
                let mut name = library.path.clone().into_os_string();
                name.push("(");
                name.push(&taken.name);
                name.push(")");
                self.add(
                    Path::new(&name),
                    record,
                    ObjectPlace::Member { archive, member },
                );
            }
        }
        self.archives = archives;
    }

    fn add(&mut self, object: &Path, record: Result<Record>, place: ObjectPlace) {
        let (name, why) = match &record {
            Ok(record) => (&*record.source, None),
            Err(why) => (object, Some(format!("{why:#}"))),
        };
        self.reports.push(UnitReport {
            name: name.display().to_string(),
            state: if why.is_none() {
                "unchanged"
            } else {
                "left whole"
            },
            why,
        });
        if let Ok(record) = record {
            let report = self.reports.len() - 1;
            self.known.push(Unit {
                record,
                place,
                report,
            });
        }
    }

    /// The words that link the program with these objects in place of the units', without those that name the output.
    ///
    /// # Errors
    /// When a library cannot be copied to `scratch`.
    pub(super) fn words(
        &self,
        line: &CommandLine,
        objects: &HashMap<ObjectPlace, PathBuf>,
        scratch: &Path,
    ) -> Result<Vec<OsString>> {
        let mut copies = HashMap::new();
        for (archive, library) in self.archives.iter().enumerate() {
            let changed: HashMap<usize, &Path> = (0..library.members.len())
                .filter_map(|member| {
                    let object = objects.get(&ObjectPlace::Member { archive, member })?;
                    Some((member, object.as_path()))
                })
                .collect();
            if changed.is_empty() {
                continue;
            }
            let folder = scratch.join(format!("library-{archive}"));
            fs::create_dir_all(&folder)?;
            let copy = library.copy(&changed, &folder)?;
            for (word, part) in names(line, &library.path) {
                copies.insert((word, part), copy.clone());
            }
        }
        let mut words = Vec::new();
        for (index, word) in line.words.iter().enumerate() {
            if matches!(word.role, Role::Output | Role::Aside) {
                continue;
            }
            if let Some(object) = objects.get(&ObjectPlace::Word(index)) {
                in_place_of_source(&mut words, object, word.language.as_deref());
            } else if let Some(copy) = copies.get(&(index, LibraryWord::Whole)) {
                in_place_of_source(&mut words, copy, word.language.as_deref());
            } else if let Some(copy) = copies.get(&(index, LibraryWord::Library)) {
                // `-l NAME` in two words: the first of them goes.
                if !word.text.as_bytes().starts_with(b"-l") {
                    words.pop();
                }
                words.push(copy.into());
            } else {
                words.push(passed_on(&word.text, |part| {
                    copies.get(&(index, LibraryWord::Passed(part)))
                }));
            }
        }
        Ok(words)
    }
}

/// The part of a word that names a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LibraryWord {
    /// The whole word: a path.
    Whole,
    /// `-lNAME`, or the name after `-l`.
    Library,
    /// The part with this number in the value of `-Wl`.
    Passed(usize),
}

/// The places of a command line that name this library; its path is canonical.
fn names<'a>(
    line: &'a CommandLine,
    library: &'a Path,
) -> impl Iterator<Item = (usize, LibraryWord)> + 'a {
    let is = move |path: &OsStr| {
        Path::new(path)
            .canonicalize()
            .is_ok_and(|path| path == library)
    };
    let called = move |name: &[u8]| {
        let file = library.file_name().unwrap_or_default().as_bytes();
        match name.strip_prefix(b":") {
            Some(exactly) => file == exactly,
            None => file == [b"lib", name, b".a"].concat(),
        }
    };
    let mut found = Vec::new();
    let mut after_l = false;
    for (index, word) in line.words.iter().enumerate() {
        let bytes = word.text.as_bytes();
        match word.role {
            Role::Input if is(&word.text) => found.push((index, LibraryWord::Whole)),
            Role::Linker if after_l && called(bytes) => found.push((index, LibraryWord::Library)),
            Role::Linker if bytes.starts_with(b"-l") && called(&bytes[2..]) => {
                found.push((index, LibraryWord::Library));
            }
            Role::Linker if bytes.starts_with(b"-Wl,") => {
                let parts = bytes.split(|&byte| byte == b',').enumerate();
                let parts = parts.filter(|(_, part)| is(OsStr::from_bytes(part)));
                found.extend(parts.map(|(part, _)| (index, LibraryWord::Passed(part))));
            }
            _ => {}
        }
        after_l = bytes == b"-l" && !after_l;
    }
    found.into_iter()
}

/// A word with some parts of `-Wl`'s value replaced.
fn passed_on<'a>(text: &OsStr, replaced: impl Fn(usize) -> Option<&'a PathBuf>) -> OsString {
    if !text.as_bytes().starts_with(b"-Wl,") {
        return text.to_owned();
    }
    let mut word = OsString::new();
    for (part, bytes) in text.as_bytes().split(|&byte| byte == b',').enumerate() {
        if part > 0 {
            word.push(",");
        }
        match replaced(part) {
            Some(path) => word.push(path),
            None => word.push(OsStr::from_bytes(bytes)),
        }
    }
    word
}

/// An object or library where a source may have stood: not in the source's language.
fn in_place_of_source(words: &mut Vec<OsString>, object: &Path, language: Option<&OsStr>) {
    match language {
        None => words.push(object.into()),
        Some(language) => {
            words.extend(["-x", "none"].map(OsString::from));
            words.extend([object.into(), "-x".into(), language.to_owned()]);
        }
    }
}

/// True if the command line has libraries that may contain units, unlike the system's.
fn names_libraries(line: &CommandLine) -> bool {
    let named = |word: &[u8]| word.ends_with(b".a");
    let searched = line
        .words
        .iter()
        .any(|word| word.text.as_bytes().starts_with(b"-L"));
    line.words.iter().any(|word| {
        let bytes = word.text.as_bytes();
        match word.role {
            Role::Input => named(bytes),
            Role::Linker if bytes.starts_with(b"-Wl,") => {
                bytes.split(|&byte| byte == b',').any(named)
            }
            Role::Linker => searched && bytes.starts_with(b"-l"),
            _ => false,
        }
    })
}

/// Links once more, for the linker's report.
fn trace(compiler: &Compiler, line: &CommandLine, scratch: &Path) -> Result<Trace> {
    let untouched = Units::default().words(line, &HashMap::new(), scratch)?;
    let mut args = untouched;
    args.extend(["-Wl,-t,-t", "-w", "-o"].map(OsString::from));
    args.push(scratch.join("traced").into());
    let output = compiler.aside(&args).output()?;
    ensure!(
        output.status.success(),
        "the linker does not say what it takes:{}",
        linker_said(&output.stderr)
    );
    Ok(Trace::read(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn line(text: &str) -> CommandLine {
        let words = text.split(' ').map(OsString::from).collect();
        CommandLine::read(words, false, Language::C)
    }

    /// The command line with object `new.o` in place of word `index`.
    fn replaced(text: &str, index: usize) -> String {
        let objects = HashMap::from([(ObjectPlace::Word(index), PathBuf::from("new.o"))]);
        let words = Units::default()
            .words(&line(text), &objects, Path::new("/nowhere"))
            .unwrap();
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn an_object_stands_where_the_unit_stood() {
        assert_eq!(replaced("-g a.o b.o -lm -o prog", 1), "-g new.o b.o -lm");
        assert_eq!(replaced("-o prog a.c -MMD -MF a.d b.c", 2), "new.o b.c");
        assert_eq!(
            replaced("-x c a.in b.in", 2),
            "-x c -x none new.o -x c b.in"
        );
    }

    #[test]
    fn a_library_is_found_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("libx.a");
        fs::write(&path, "").unwrap();
        let shown = path.display();
        let line = line(&format!(
            "{shown} -L. -lx -ly -l x -l:libx.a -Wl,--start-group,{shown},-s"
        ));
        let found: Vec<_> = names(&line, &path).collect();
        let wanted = [
            (0, LibraryWord::Whole),
            (2, LibraryWord::Library),
            (5, LibraryWord::Library),
            (6, LibraryWord::Library),
            (7, LibraryWord::Passed(2)),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_systems_libraries_are_not_looked_into() {
        assert!(!names_libraries(&line("a.o -lm -lz -Wl,-s")));
        assert!(names_libraries(&line("a.o -L. -lx")));
        assert!(names_libraries(&line("a.o sub/libx.a")));
        assert!(names_libraries(&line("a.o -Wl,--whole-archive,libx.a")));
    }
}
