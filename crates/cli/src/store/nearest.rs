//! The nearest record of an executable, when only its arguments or folder differ.
//!
//! Two command lines are as similar as they have words in common (Dice's coefficient over
//! words, each as often as it occurs). More than half must be common: otherwise a record
//! tells more of the program it was taken from than of this one. In another folder relative
//! names stand for other files, so there an absolute path must be among the common words.
//!
//! Invariant: never a record of another executable.

use std::collections::HashMap;

use foreread_plan::Identity;
use foreread_plan::format::Reader;

use super::Entry;
use crate::units::cut;

/// Similarity a record must exceed.
const ENOUGH: f64 = 0.5;
/// Words a difference is told with, on each side, and how much of each.
const TOLD_WORDS: usize = 2;
const TOLD_CHARS: usize = 30;

/// The usable candidate most like `wanted`, open, and what it differs in, as a phrase. Of two
/// equally near ones, the one that comes first.
pub(super) fn nearest(
    wanted: &Identity,
    candidates: impl Iterator<Item = Entry>,
) -> Option<(Entry, Reader, String)> {
    let mut best: Option<(f64, Entry, Reader)> = None;
    for entry in candidates {
        // What cannot be read is reported by `list`, and tells nothing here.
        let Ok(reader) = entry.reader() else {
            continue;
        };
        let identity = &reader.meta().identity;
        let Some(nearness) = nearness(wanted, identity) else {
            continue;
        };
        let nearer = best.as_ref().is_none_or(|(most, ..)| nearness > *most);
        if nearer && !reader.files().is_empty() {
            best = Some((nearness, entry, reader));
        }
    }
    best.map(|(_, entry, reader)| {
        let differs = difference(wanted, &reader.meta().identity);
        (entry, reader, differs)
    })
}

/// How near one identity is to another; `None` if not near enough to be of use.
fn nearness(wanted: &Identity, other: &Identity) -> Option<f64> {
    if wanted.exe != other.exe {
        return None;
    }
    let surplus = surplus(wanted, other);
    let words = (wanted.argv.len() + other.argv.len()) as f64;
    let common = words
        - surplus
            .values()
            .map(|count| count.unsigned_abs() as f64)
            .sum::<f64>();
    let similarity = common / words;
    let same_folder = wanted.cwd == other.cwd;
    let same_files = wanted
        .argv
        .iter()
        .skip(1)
        .any(|word| word.starts_with('/') && other.argv.contains(word));
    let near = similarity > ENOUGH && (same_folder || same_files);
    // Folders decide between records whose arguments are equally near.
    near.then_some(similarity + if same_folder { 1e-6 } else { 0.0 })
}

/// How many times more each word occurs in `wanted` than in `other`; 0 is left out.
fn surplus<'a>(wanted: &'a Identity, other: &'a Identity) -> HashMap<&'a str, i64> {
    let mut surplus: HashMap<&str, i64> = HashMap::new();
    for word in &wanted.argv {
        *surplus.entry(word).or_default() += 1;
    }
    for word in &other.argv {
        *surplus.entry(word).or_default() -= 1;
    }
    surplus.retain(|_, count| *count != 0);
    surplus
}

/// What the record's program has that this one has not, as a phrase.
fn difference(wanted: &Identity, other: &Identity) -> String {
    let surplus = surplus(wanted, other);
    let only = |identity: &Identity, sign: i64| -> Vec<String> {
        identity
            .argv
            .iter()
            .filter(|word| {
                surplus
                    .get(word.as_str())
                    .is_some_and(|n| n.signum() == sign)
            })
            .map(|word| format!("'{}'", cut(word, TOLD_CHARS, false)))
            .collect()
    };
    let (here, there) = (only(wanted, 1), only(other, -1));
    let told = |words: &[String]| {
        let more = if words.len() > TOLD_WORDS { " …" } else { "" };
        format!("{}{more}", words[..words.len().min(TOLD_WORDS)].join(" "))
    };
    let mut text = match (here.is_empty(), there.is_empty()) {
        (true, true) if wanted.argv == other.argv => "the same command".to_owned(),
        (true, true) => "the same words in another order".to_owned(),
        (true, false) => format!("the command with {} added", told(&there)),
        (false, true) => format!("the command without {}", told(&here)),
        (false, false) => format!("the command with {} for {}", told(&there), told(&here)),
    };
    if wanted.cwd != other.cwd {
        text.push_str(&format!(" in {}", cut(&other.cwd, TOLD_CHARS, true)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cwd: &str, argv: &[&str]) -> Identity {
        Identity {
            exe: "/usr/bin/tool".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: cwd.into(),
        }
    }

    #[test]
    fn another_executable_is_never_near() {
        let mut other = of("/", &["tool", "a"]);
        other.exe = "/usr/bin/other".into();
        assert_eq!(nearness(&of("/", &["tool", "a"]), &other), None);
    }

    #[test]
    fn more_than_half_of_the_words_must_be_common() {
        let wanted = of("/", &["tool", "db", "first query"]);
        assert!(nearness(&wanted, &of("/", &["tool", "db", "second query"])).is_some());
        assert!(nearness(&wanted, &of("/", &["tool", "x", "y"])).is_none());
        let one = of("/", &["tool", "a"]);
        assert!(nearness(&one, &of("/", &["tool", "b"])).is_none());
    }

    #[test]
    fn the_fewer_words_differ_the_nearer() {
        let wanted = of("/", &["tool", "-v", "a", "b"]);
        let one = nearness(&wanted, &of("/", &["tool", "-v", "a", "c"])).unwrap();
        let none = nearness(&wanted, &of("/", &["tool", "a", "-v", "b"])).unwrap();
        assert!(none > one);
    }

    #[test]
    fn in_another_folder_only_an_absolute_path_names_the_same_file() {
        let wanted = of("/home/a", &["tool", "-j2", "data"]);
        assert!(nearness(&wanted, &of("/home/b", &["tool", "-j2", "data"])).is_none());
        let wanted = of("/home/a", &["tool", "/srv/data"]);
        let elsewhere = nearness(&wanted, &of("/home/b", &["tool", "/srv/data"])).unwrap();
        let here = nearness(&wanted, &of("/home/a", &["tool", "/srv/data"])).unwrap();
        assert!(here > elsewhere);
    }

    #[test]
    fn a_repeated_word_counts_as_often_as_it_occurs() {
        let wanted = of("/", &["tool", "a"]);
        assert!(nearness(&wanted, &of("/", &["tool", "a", "a", "a", "a", "a", "a"])).is_none());
    }

    #[test]
    fn the_difference_is_told_in_words() {
        let wanted = of("/w", &["tool", "db", "new"]);
        let told = |other: Identity| difference(&wanted, &other);
        assert_eq!(
            told(of("/w", &["tool", "db", "old"])),
            "the command with 'old' for 'new'"
        );
        assert_eq!(told(of("/w", &["tool", "db"])), "the command without 'new'");
        assert_eq!(
            told(of("/x", &["tool", "db", "new", "-v"])),
            "the command with '-v' added in /x"
        );
        assert_eq!(
            told(of("/x", &["tool", "db", "new"])),
            "the same command in /x"
        );
    }
}
