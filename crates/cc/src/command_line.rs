//! A C or C++ compiler's command line, as far as the driver must understand it.
//!
//! Invariant: parsing never changes the compiler's arguments. The compiler gets them verbatim. The parsed words decide the driver's
//! additional work, and an unknown word counts as a flag.
//!
//! Data flow: arguments → [`response::expand`](super::response::expand) → [`CommandLine`] → [`Task`], and the words that matter for
//! compiling or linking again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::language::Language;
use super::options::{
    ASIDE, ASIDE_WITH_VALUE, LEFT_WHOLE, LINKER, LINKER_WITH_VALUE, NO_PROGRAM, TELLS, WITH_VALUE,
};

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A C or C++ source to compile.
    Source,
    /// An object, archive or library for the linker, or a source in another language.
    Input,
    /// `-o`, or its value.
    Output,
    /// Selects the stage after which to stop.
    Stage,
    /// Makes the compiler write a file beside the object (dependencies, listings, dumps), or says how.
    Aside,
    /// The language of the inputs that follow.
    Language,
    /// For the linker alone.
    Linker,
    /// Anything else: matters to a compilation.
    Flag,
}

/// A word and its kind.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: OsString,
    pub(super) role: Role,
    /// The language named by the last `-x` before it, if any.
    pub(super) language: Option<OsString>,
}

/// The task of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A task without work for the driver.
    Other,
    /// To leave an object for each of these sources (indices of words).
    Compile(Vec<(usize, PathBuf)>),
    /// To leave a program.
    Link(PathBuf),
}

/// A command line that was read.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    pub(super) words: Vec<Word>,
    /// True if a part came from response files.
    pub(super) from_file: bool,
    /// When it was read: before anything was compiled.
    pub(super) begun: SystemTime,
    /// The language of the driver's compiler.
    driver: Language,
    output: Option<PathBuf>,
    last_stage: Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Object,
    Link,
    Other,
}

impl CommandLine {
    /// Reads a command line without its first word, response files expanded.
    pub(super) fn read(expanded: Vec<OsString>, from_file: bool, driver: Language) -> Self {
        let mut line = Self {
            words: Vec::with_capacity(expanded.len()),
            from_file,
            begun: SystemTime::now(),
            driver,
            output: None,
            last_stage: Last::Link,
        };
        let mut language = None;
        let mut rest = expanded.into_iter();
        while let Some(text) = rest.next() {
            let (role, takes_next) = line.role(&text, &mut language);
            let word = |text, role| Word {
                text,
                role,
                language: language.clone(),
            };
            line.words.push(word(text, role));
            if !takes_next {
                continue;
            }
            let Some(value) = rest.next() else { break };
            match role {
                Role::Output => line.output = Some(PathBuf::from(&value)),
                Role::Language => language = in_force(&value),
                _ => {}
            }
            line.words.push(Word {
                text: value,
                role,
                language: language.clone(),
            });
        }
        line
    }

    /// The kind of a word, and true if the next word is its value.
    fn role(&mut self, text: &OsStr, language: &mut Option<OsString>) -> (Role, bool) {
        let bytes = text.as_bytes();
        if bytes == b"-" || !bytes.starts_with(b"-") {
            let source = Language::of(Path::new(text), language.as_deref(), self.driver);
            let role = source.map_or(Role::Input, |_| Role::Source);
            return (role, false);
        }
        let Some(option) = text.to_str() else {
            return (Role::Flag, false);
        };
        if option == "-c" || option == "--compile" {
            if self.last_stage != Last::Other {
                self.last_stage = Last::Object;
            }
            return (Role::Stage, false);
        }
        let tells = ["-print-", "--print-", "--help="];
        if TELLS.contains(&option) || tells.iter().any(|start| option.starts_with(start)) {
            self.last_stage = Last::Other;
            return (Role::Stage, false);
        }
        if let Some(value) = option.strip_prefix("--output=") {
            self.output = Some(PathBuf::from(value));
            return (Role::Output, false);
        }
        if let Some(joined) = option.strip_prefix("-o") {
            // -objc… is nothing a C compiler knows; gcc reads it as -o bjc….
            if !joined.is_empty() {
                self.output = Some(PathBuf::from(joined));
            }
            return (Role::Output, joined.is_empty());
        }
        if option == "--output" {
            return (Role::Output, true);
        }
        if let Some(joined) = option.strip_prefix("-x") {
            if !joined.is_empty() {
                *language = in_force(OsStr::new(joined));
            }
            return (Role::Language, joined.is_empty());
        }
        if ASIDE_WITH_VALUE.contains(&option) {
            return (Role::Aside, true);
        }
        if ASIDE.iter().any(|start| option.starts_with(start)) {
            return (Role::Aside, false);
        }
        if LINKER_WITH_VALUE.contains(&option) {
            return (Role::Linker, true);
        }
        let linker = ["-Wl,", "-l", "-L", "-fuse-ld"];
        if LINKER.contains(&option) || linker.iter().any(|start| option.starts_with(start)) {
            return (Role::Linker, false);
        }
        (Role::Flag, WITH_VALUE.contains(&option))
    }

    /// The task of the compiler, as far as it concerns the driver.
    pub(super) fn task(&self) -> Task {
        let sources = || self.of(Role::Source).filter(|(_, word)| word.text != "-");
        let inputs = || self.of(Role::Input).chain(self.of(Role::Source));
        match self.last_stage {
            Last::Other => Task::Other,
            Last::Object => {
                let objects = sources().map(|(index, word)| {
                    let object = self.output.clone().unwrap_or_else(|| object_of(&word.text));
                    (index, object)
                });
                match objects.collect::<Vec<_>>() {
                    none if none.is_empty() => Task::Other,
                    objects => Task::Compile(objects),
                }
            }
            Last::Link if inputs().next().is_none() => Task::Other,
            // Standard input can be read once, and headers become precompiled ones.
            Last::Link if inputs().any(|(_, word)| word.text == "-" || word.is_header()) => {
                Task::Other
            }
            Last::Link => {
                let output = self.output.clone();
                Task::Link(output.unwrap_or_else(|| PathBuf::from("a.out")))
            }
        }
    }

    /// The words in a role, with their places.
    pub(super) fn of(&self, role: Role) -> impl Iterator<Item = (usize, &Word)> {
        let words = self.words.iter().enumerate();
        words.filter(move |(_, word)| word.role == role)
    }

    /// The language of a source.
    pub(super) fn language(&self, source: &Word) -> Language {
        let path = Path::new(&source.text);
        Language::of(path, source.language.as_deref(), self.driver).unwrap_or(self.driver)
    }

    /// The reason to leave a unit of this command line whole, if there is one.
    pub(super) fn compiled_whole(&self) -> Option<&str> {
        let flags = self.of(Role::Flag);
        let mut flags = flags.filter_map(|(_, word)| word.text.to_str());
        flags.find(|flag| LEFT_WHOLE.iter().any(|start| flag.starts_with(start)))
    }

    /// The reason why the linked output cannot have a prefetch thread, if there is one.
    pub(super) fn linked_whole(&self) -> Option<&str> {
        let words = self.words.iter().filter_map(|word| word.text.to_str());
        words.into_iter().find(|word| NO_PROGRAM.contains(word))
    }

    /// True if the compiler is to give no warnings.
    pub(super) fn is_quiet(&self) -> bool {
        self.of(Role::Flag).any(|(_, word)| word.text == "-w")
    }

    /// The arguments that determine a compilation's result: no inputs, outputs, stages or lists of dependencies, and nothing for the
    /// linker.
    pub(super) fn compiling(&self) -> Vec<OsString> {
        let flags = self.of(Role::Flag);
        flags
            .filter_map(|(_, word)| without_dependencies(&word.text))
            .collect()
    }
}

/// The words passed on by `-Wp`, without those that make a list of dependencies.
fn without_dependencies(text: &OsStr) -> Option<OsString> {
    let Some(passed) = text.to_str().and_then(|text| text.strip_prefix("-Wp,")) else {
        return Some(text.to_owned());
    };
    let mut kept = String::from("-Wp");
    let mut words = passed.split(',');
    while let Some(word) = words.next() {
        if ["-MD", "-MMD", "-MF", "-MT", "-MQ"].contains(&word) {
            words.next();
        } else if !word.starts_with("-M") {
            kept.push(',');
            kept.push_str(word);
        }
    }
    (kept != "-Wp").then(|| kept.into())
}

/// The language that `-x` puts in force.
fn in_force(name: &OsStr) -> Option<OsString> {
    (name != "none").then(|| name.to_owned())
}

impl Word {
    /// True if the input is a header, of which the compiler makes a precompiled one.
    fn is_header(&self) -> bool {
        match &self.language {
            Some(language) => language.as_bytes().ends_with(b"-header"),
            None => {
                let suffix = Path::new(&self.text).extension().and_then(OsStr::to_str);
                suffix.is_some_and(|suffix| ["h", "H", "hh", "hpp", "hxx"].contains(&suffix))
            }
        }
    }
}

/// The object of a source without `-o`: in the working directory.
fn object_of(source: &OsStr) -> PathBuf {
    let name = Path::new(source).file_name().unwrap_or(source);
    Path::new(name).with_extension("o")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> CommandLine {
        let words = line.split_whitespace().map(OsString::from).collect();
        CommandLine::read(words, false, Language::C)
    }

    fn compiles(line: &str) -> Vec<(String, String)> {
        let read = read(line);
        let Task::Compile(objects) = read.task() else {
            panic!("{line}: {:?}", read.task());
        };
        let named = objects.into_iter().map(|(source, object)| {
            let source = read.words[source].text.to_string_lossy().into_owned();
            (source, object.to_string_lossy().into_owned())
        });
        named.collect()
    }

    fn links(line: &str) -> String {
        match read(line).task() {
            Task::Link(output) => output.to_string_lossy().into_owned(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn pair(source: &str, object: &str) -> Vec<(String, String)> {
        vec![(source.to_owned(), object.to_owned())]
    }

    #[test]
    fn an_object_is_where_the_compiler_leaves_it() {
        assert_eq!(compiles("-c src/a.c"), pair("src/a.c", "a.o"));
        assert_eq!(compiles("-c a.c -o b/a.lo"), pair("a.c", "b/a.lo"));
        assert_eq!(compiles("-ob.o a.c -c"), pair("a.c", "b.o"));
        assert_eq!(compiles("--output=b.o -c a.c"), pair("a.c", "b.o"));
        assert_eq!(compiles("-c -x c a.in"), pair("a.in", "a.o"));
        assert_eq!(compiles("-c -xc a.in -x none b.c").len(), 2);
        assert_eq!(compiles("-c src/a.cpp"), pair("src/a.cpp", "a.o"));
    }

    #[test]
    fn what_leaves_neither_object_nor_program_is_the_compilers_alone() {
        for line in [
            "",
            "-v",
            "--version",
            "-dumpmachine",
            "-print-prog-name=ld",
            "-E a.c",
            "-S a.c",
            "-M a.c",
            "-c -MM a.c",
            "-fsyntax-only a.c",
            "-### a.c",
            "-c a.s",
            "-c a.f90",
            "-c -",
            "-x c -c -",
            "a.h",
            "-x c-header all.hh",
            "-c -x assembler a.c",
            "--help=warnings",
            "-c -E a.c",
            "-E -c a.c",
        ] {
            assert_eq!(read(line).task(), Task::Other, "{line}");
        }
    }

    #[test]
    fn a_program_is_linked_of_sources_objects_and_libraries() {
        assert_eq!(links("a.c"), "a.out");
        assert_eq!(links("-g a.o b.o -lm -o prog"), "prog");
        assert_eq!(links("-L. a.o -l m -o prog"), "prog");
        assert_eq!(links("-include all.h a.c"), "a.out");
        assert_eq!(links("-x c a.h"), "a.out");
        assert_eq!(read("-x c -").task(), Task::Other);
    }

    #[test]
    fn the_value_of_an_option_is_no_input() {
        let line = read("-include a.c -D x.c -MF b.c -Xlinker c.o -I d.c -c e.c -T f.o");
        assert_eq!(line.of(Role::Source).count(), 1);
        assert_eq!(line.of(Role::Input).count(), 0);
        assert_eq!(compiles("-MT x.c -MD -MF x.d -c y.c"), pair("y.c", "y.o"));
    }

    #[test]
    fn what_decides_a_compilation_is_kept_in_order() {
        let line = read(
            "-MMD -MF a.d -O2 -I inc -Wp,-MD,x.d -Wp,-DA,-MMD,y.d -x c -c -o a.o a.c -L. -lm -DB -Wl,-s",
        );
        assert_eq!(line.compiling(), ["-O2", "-I", "inc", "-Wp,-DA", "-DB"]);
    }

    #[test]
    fn flags_that_forbid_slicing_are_named() {
        assert_eq!(
            read("-O2 -flto=auto -c a.c").compiled_whole(),
            Some("-flto=auto")
        );
        assert_eq!(
            read("-fsanitize=address a.c").compiled_whole(),
            Some("-fsanitize=address")
        );
        assert_eq!(read("-O2 -c a.c").compiled_whole(), None);
        assert_eq!(read("a.o -shared -o a.so").linked_whole(), Some("-shared"));
        assert_eq!(read("a.o -Wl,-r -o b.o").linked_whole(), Some("-Wl,-r"));
        assert_eq!(read("a.o -o prog").linked_whole(), None);
    }
}
