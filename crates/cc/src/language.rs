//! The languages of units, and their compilers.

use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A language that is sliced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// C.
    #[serde(rename = "c")]
    C,
    /// C++.
    #[serde(rename = "c++")]
    Cxx,
}

impl Language {
    /// Its name for `-x`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cxx => "c++",
        }
    }

    /// The variable that names its compiler, and the compiler's name otherwise.
    pub(super) fn compiler(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("FOREREAD_CC", "cc"),
            Self::Cxx => ("FOREREAD_CXX", "c++"),
        }
    }

    /// The variable that names folders of its headers.
    pub(super) fn include_path(self) -> &'static str {
        match self {
            Self::C => "C_INCLUDE_PATH",
            Self::Cxx => "CPLUS_INCLUDE_PATH",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::C => Self::Cxx,
            Self::Cxx => Self::C,
        }
    }

    /// The language in which the compiler of `driver` compiles a source, given the value of `-x`; `None` for languages that are not sliced.
    pub(super) fn of(path: &Path, said: Option<&OsStr>, driver: Self) -> Option<Self> {
        if let Some(said) = said {
            let languages = [Self::C, Self::Cxx];
            return languages
                .into_iter()
                .find(|language| said == language.name());
        }
        match path.extension()?.to_str()? {
            "c" => Some(driver),
            "cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" => Some(Self::Cxx),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_in_the_language_its_compiler_takes_it_for() {
        let of = |name, said: Option<&str>, driver| {
            Language::of(Path::new(name), said.map(OsStr::new), driver)
        };
        let (c, cxx) = (Some(Language::C), Some(Language::Cxx));
        assert_eq!(of("a.c", None, Language::C), c);
        assert_eq!(of("a.c", None, Language::Cxx), cxx);
        assert_eq!(of("a.cpp", None, Language::C), cxx);
        assert_eq!(of("a.C", None, Language::C), cxx);
        assert_eq!(of("a.in", Some("c++"), Language::C), cxx);
        assert_eq!(of("a.cc", Some("c"), Language::Cxx), c);
        assert_eq!(of("a.c", Some("assembler"), Language::C), None);
        assert_eq!(of("a.s", None, Language::Cxx), None);
    }
}
