//! The nearest record of an executable, when only arguments or folder differ.
//!
//! The similarity of two command lines is the share of common words (Dice's coefficient over words, each as often as it occurs;
//! [`super::facts`]). More than half must be common: otherwise a record says more about its own command than about this one. In another
//! folder relative names lead to other files, so an absolute path must be among the common words.
//!
//! Files that the record's command was given to read, by words or by folder, and this one was not, will not be read ([`foreign`]). The rest
//! of the record may still be right.
//!
//! Invariant: never a record of another executable.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use foreread_plan::format::Reader;
use foreread_plan::{FileId, Identity, Rank};
use foreread_words::units::cut;

/// Accesses of another rank's record that are examined: 40 ms of work at most.
const LOOKED_AT: usize = 1 << 22;
/// Words of a difference that are printed on each side, and the characters of each.
const TOLD_WORDS: usize = 2;
const TOLD_CHARS: usize = 30;

/// The files of a record that the `wanted` command will not read.
pub fn foreign(wanted: &Identity, record: &mut Reader) -> HashSet<FileId> {
    let mut foreign = unnamed(wanted, record);
    if wanted.rank != record.meta().identity.rank {
        foreign.extend(by_rank(record));
    }
    foreign
}

/// The files of a record that only its own command names, or that lie in folders only it names.
fn unnamed(wanted: &Identity, record: &Reader) -> HashSet<FileId> {
    let here = named(wanted);
    let there = named(&record.meta().identity);
    let is_foreign = |path: &Path| {
        // The most specific name decides.
        let by = path
            .ancestors()
            .find(|&path| here.contains(path) || there.contains(path));
        by.is_some_and(|path| !here.contains(path))
    };
    let files = record.files().iter();
    let foreign = files.filter(|(_, meta)| is_foreign(&meta.path));
    foreign.map(|(&id, _)| id).collect()
}

/// The files of a record that its rank accessed through MPI: another rank uses other offsets in them. Patterns apply to such files, and the
/// record's reads do not.
fn by_rank(record: &mut Reader) -> HashSet<FileId> {
    let accesses = record.accesses().map_while(Result::ok).take(LOOKED_AT);
    let asked = accesses.filter(|access| access.kind.asks());
    let files = asked.map(|access| access.file).collect();
    record.rewind();
    files
}

/// The files and folders that arguments name, also as in `--file=NAME`.
fn named(identity: &Identity) -> HashSet<PathBuf> {
    let folder = Path::new(&identity.cwd);
    let words = identity.argv.iter().skip(1);
    let names =
        words.flat_map(|word| [Some(&word[..]), word.split_once('=').map(|(_, name)| name)]);
    let paths = names.flatten().filter(|name| !name.is_empty());
    paths
        .filter_map(|name| folder.join(name).canonicalize().ok())
        .collect()
}

/// For each word, how many times more it occurs in `wanted` than in `other`; 0 is left out.
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

/// The difference between the record's command `other` and this one, as a phrase for the former: words, rank and folder.
pub(super) fn difference(wanted: &Identity, other: &Identity) -> String {
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
    match other.rank.filter(|_| wanted.rank != other.rank) {
        Some(Rank { rank, of }) => text.push_str(&format!(" as rank {rank} of {of}")),
        None if wanted.rank != other.rank => text.push_str(" by itself"),
        None => {}
    }
    if wanted.cwd != other.cwd {
        text.push_str(&format!(" in {}", cut(&other.cwd, TOLD_CHARS, true)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::format::Writer;
    use foreread_plan::{FileMeta, Meta, Summary};

    fn of(cwd: &str, argv: &[&str]) -> Identity {
        Identity {
            exe: "/usr/bin/tool".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: cwd.into(),
            rank: None,
        }
    }

    #[test]
    fn files_named_by_the_records_command_alone_are_foreign() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for (folder, files) in [("a", 2), ("b", 2), ("a/deep", 1)] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            for n in 0..files {
                std::fs::write(root.join(folder).join(format!("{n}")), "").unwrap();
            }
        }
        let paths = ["a/0", "a/1", "a/deep/0", "b/0", "b/1", "gone"];
        let foreign_of = |there: (&str, &[&str]), here: (&str, &[&str])| -> Vec<&str> {
            let in_root = |(cwd, argv)| of(root.join(cwd).to_str().unwrap(), argv);
            let mut record = record_of(in_root(there), paths.map(|path| root.join(path)));
            let foreign = foreign(&in_root(here), &mut record);
            let mut ids: Vec<_> = foreign.into_iter().map(|id| id.0 as usize).collect();
            ids.sort_unstable();
            ids.into_iter().map(|id| paths[id]).collect()
        };
        let same = ("", &["tool", "-v", "a/0"][..]);
        assert!(foreign_of(same, same).is_empty());
        assert_eq!(
            foreign_of(("", &["tool", "a/0"]), ("", &["tool", "a/1"])),
            ["a/0"]
        );
        assert_eq!(
            foreign_of(("", &["tool", "--db=a/0"]), ("", &["tool", "--db=b/0"])),
            ["a/0"]
        );
        assert_eq!(
            foreign_of(("a", &["tool", "0"]), ("b", &["tool", "0"])),
            ["a/0"]
        );
        assert_eq!(
            foreign_of(("", &["tool", "a"]), ("", &["tool", "b"])),
            ["a/0", "a/1", "a/deep/0"]
        );
        assert_eq!(
            foreign_of(("", &["tool", "a"]), ("", &["tool", "a/deep"])),
            ["a/0", "a/1"]
        );
        assert!(foreign_of(("", &["tool", "a/deep"]), ("", &["tool", "a"])).len() == 1);
        assert!(foreign_of(("", &["tool", "gone"]), ("", &["tool", "none"])).is_empty());
    }

    fn record_of<const N: usize>(identity: Identity, paths: [PathBuf; N]) -> Reader {
        let meta = Meta {
            identity,
            recorded_at: 0,
            writer: "test".into(),
        };
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &meta).unwrap();
        for (id, path) in (0..).map(FileId).zip(paths) {
            let meta = FileMeta::regular(path, (1, 1), 0, 0);
            writer.file(id, meta).unwrap();
        }
        writer.finish(Summary::default()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Reader::open(file.path()).unwrap()
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
        let rank = Some(Rank { rank: 1, of: 4 });
        let same = of("/w", &["tool", "db", "new"]);
        let by_rank = Identity {
            rank,
            ..same.clone()
        };
        assert_eq!(told(by_rank.clone()), "the same command as rank 1 of 4");
        assert_eq!(difference(&by_rank, &same), "the same command by itself");
    }
}
