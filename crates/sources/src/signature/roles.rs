//! Roles: the kind of a file, independent of its name in one run.
//!
//! A role is a normal form of the path: each number in a name becomes one placeholder digit, a temporary name any name, and an argument of
//! the program the argument of that place and kind. Files of one role are expected to be read alike, in this run and from run to run.
//!
//! A file whose name is unlike all known names has a second role: the first, second, ... file with this extension that the program has
//! opened.

use std::hash::Hasher;
use std::path::{Component, Path, PathBuf};

use foreread_plan::Role;
use rustc_hash::{FxHashMap, FxHasher};

/// Letters and digits at the end of a name that mkstemp(3) puts there.
const TEMPORARY: usize = 6;

/// Number of extensions whose files are counted: a program may open files of any names.
const KINDS: usize = 1 << 12;

/// The roles of one run's files.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// Files among the arguments, each with the number of its argument.
    arguments: Vec<(PathBuf, usize)>,
    /// Files met, by the hashes of their extensions.
    met: FxHashMap<u64, u64>,
}

impl Roles {
    /// The roles of the files of a program with these arguments, started in this folder.
    pub fn new<'a>(argv: impl IntoIterator<Item = &'a str>, cwd: &Path) -> Self {
        let arguments = argv
            .into_iter()
            .enumerate()
            .skip(1)
            .filter_map(|(number, word)| {
                // `--input=FILE`, `if=FILE`
                let name = match word.split_once('=') {
                    Some((_, value)) => value,
                    None => word,
                };
                let is_name = !name.is_empty() && !name.starts_with('-');
                is_name.then(|| (plain(&cwd.join(name)), number))
            });
        Self {
            arguments: arguments.collect(),
            met: FxHashMap::default(),
        }
    }

    /// The role that the next file which the program opens has by its turn: asked once for each file, in their order. Numbers
    /// in extensions count as one.
    pub fn turn(&mut self, path: &Path) -> Role {
        let kind = path.extension().unwrap_or_default().as_encoded_bytes();
        let mut hasher = FxHasher::default();
        hasher.write(&normal(kind));
        // No path and no argument begins so.
        hasher.write(b"turn");
        let kind = hasher.finish();
        if self.met.len() >= KINDS {
            return Role::default();
        }
        let met = self.met.entry(kind).or_default();
        *met += 1;
        hasher.write_u64(*met);
        Role(hasher.finish().max(1))
    }

    /// The role of the file of this absolute path.
    pub fn of(&self, path: &Path) -> Role {
        let path = plain(path);
        let mut hasher = FxHasher::default();
        let kind = path.extension().unwrap_or_default().as_encoded_bytes();
        if let Some((_, number)) = self.arguments.iter().find(|(name, _)| *name == path) {
            hasher.write_usize(*number);
            hasher.write(kind);
        } else {
            for part in path.components() {
                hasher.write(&normal(part.as_os_str().as_encoded_bytes()));
                hasher.write_u8(0);
            }
        }
        // 0 is no role.
        Role(hasher.finish().max(1))
    }
}

/// A path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// A name with each number in it as one `#`, and the random end of a temporary name as `?`.
fn normal(name: &[u8]) -> Vec<u8> {
    let mut normal = Vec::with_capacity(name.len());
    let parts = name.split_inclusive(|byte| !byte.is_ascii_alphanumeric());
    for part in parts {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
        let letters = part.iter().take_while(|byte| is_word(byte)).count();
        let (word, rest) = part.split_at(letters);
        if is_random(word) {
            normal.push(b'?');
        } else if let Some(kept) = without_random(word) {
            normal.extend_from_slice(kept);
            normal.push(b'?');
        } else {
            let mut in_number = false;
            for &byte in word {
                if !byte.is_ascii_digit() {
                    normal.push(byte);
                } else if !in_number {
                    normal.push(b'#');
                }
                in_number = byte.is_ascii_digit();
            }
        }
        normal.extend_from_slice(rest);
    }
    normal
}

/// True if these letters do not form a word: eight or more hexadecimal digits, both letters and numbers, or one to two times as many
/// characters as mkstemp uses, with at least two [`changes`].
fn is_random(word: &[u8]) -> bool {
    let hexadecimal = word.len() >= 8 && word.iter().all(u8::is_ascii_hexdigit);
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    if hexadecimal && digits > 0 && digits < word.len() {
        return true;
    }
    (TEMPORARY..=2 * TEMPORARY).contains(&word.len()) && changes(word) >= 2
}

/// The beginning of a word that ends in six random letters, as mkstemp leaves it without a separator.
fn without_random(word: &[u8]) -> Option<&[u8]> {
    let (kept, end) = word.split_at_checked(word.len().checked_sub(TEMPORARY)?)?;
    (changes(end) >= 2).then_some(kept)
}

/// Number of changes between capitals, small letters and digits, except from a capital to a small letter, as at the beginning of a word.
fn changes(word: &[u8]) -> usize {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    word.windows(2)
        .filter(|pair| {
            let (one, next) = (kind(pair[0]), kind(pair[1]));
            one != next && (one, next) != (1, 2)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(path: &str) -> Role {
        Roles::default().of(Path::new(path))
    }

    #[test]
    fn names_that_differ_from_run_to_run_have_one_role() {
        let alike = [
            ["/data/step-0001.nc", "/data/step-12.nc"],
            ["/tmp/gegl-4711-0/swap", "/tmp/gegl-815-17/swap"],
            ["/tmp/tmp.aB3xYz", "/tmp/tmp.Q9kLm2"],
            ["/tmp/sortaB3xYz", "/tmp/sortQ9kLm2"],
            ["/var/cache/3f2a9c4d1b.bin", "/var/cache/77be01f3aa.bin"],
            ["/data/2026-01-02T03:04.log", "/data/2025-12-31T23:59.log"],
        ];
        for [one, other] in alike {
            assert_eq!(role(one), role(other), "{one} {other}");
        }
    }

    #[test]
    fn names_that_say_something_else_have_another() {
        let apart = [
            ["/data/matrix.bin", "/data/vector.bin"],
            ["/data/a.nc", "/data/a.h5"],
            ["/one/a.nc", "/other/a.nc"],
            ["/usr/lib/libpython.so", "/usr/lib/libssl.so"],
            ["/data/ReadMe", "/data/ToDo"],
        ];
        for [one, other] in apart {
            assert_ne!(role(one), role(other), "{one} {other}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_turn_among_those_of_its_kind() {
        let turns = |paths: &[&str]| {
            let mut roles = Roles::default();
            let turns = paths.iter().map(|path| roles.turn(Path::new(path)));
            turns.collect::<Vec<_>>()
        };
        let one = turns(&[
            "/lib/a.so.6",
            "/in/matrix.bin",
            "/in/a.nc",
            "/in/vector.bin",
        ]);
        let other = turns(&["/in/b.nc", "/lib/b.so.5", "/new/x.bin", "/elsewhere/y.bin"]);
        assert_eq!(
            [one[0], one[1], one[2], one[3]],
            [other[1], other[2], other[0], other[3]]
        );
        assert_ne!(one[1], one[3], "the first and the second of a kind");
        let mut roles = Roles::default();
        for kind in 0..2 * KINDS {
            roles.turn(Path::new(&format!("/a.{}", "x".repeat(kind + 1))));
        }
        assert!(roles.met.len() <= KINDS);
    }

    #[test]
    fn an_argument_is_known_by_its_place_and_kind() {
        let of = |argv: &[&str], path: &str| {
            Roles::new(argv.iter().copied(), Path::new("/home/me")).of(Path::new(path))
        };
        let first = of(&["blur", "in.tif", "out.tif"], "/home/me/in.tif");
        assert_eq!(
            first,
            of(
                &["blur", "../you/other.tif", "x.tif"],
                "/home/you/other.tif"
            )
        );
        assert_eq!(
            of(&["dd", "if=a.raw"], "/home/me/a.raw"),
            of(&["dd", "if=b.raw"], "/home/me/b.raw")
        );
        assert_ne!(
            first,
            of(&["blur", "in.png"], "/home/me/in.png"),
            "another kind"
        );
        assert_ne!(
            first,
            of(&["blur", "-q", "in.tif"], "/home/me/in.tif"),
            "another place"
        );
    }
}
