//! A small file per executable with the commands of its records, so that the nearest record is found without opening them all.
//!
//! The file `nearest/XXXXXX` beside the folder of records is named by the digits of the executable. For each record it has hashes of the
//! facts by which its command is compared. A record's id is derived from all of these, so an entry never becomes outdated. Records that are
//! deleted, or have no entry yet, are found when the store is tidied.
//!
//! Invariant: the file is only a cache of facts about the records. If it is missing, damaged, of another version or of another user, it is
//! made again from them, and an entry is compared with its record before that is followed.

use std::collections::HashMap;
use std::io::{self, Read};

use foreread_plan::Identity;
use foreread_plan::format::Place;

const MAGIC: [u8; 8] = *b"FORENEAR";
const VERSION: u16 = 1;
/// Magic, version, reserved, count; and at the end a checksum.
const HEAD: usize = 16;
const FOOT: usize = 8;
/// Words of a command that is compared with others at all: a hundred times as many as people type.
const WORDS: usize = 4096;
/// Bytes of a file that is read: the words of 1,500 commands of 500 words each.
const LIMIT: u64 = 8 << 20;
/// Similarity a record must exceed.
const ENOUGH: f64 = 0.5;
/// Marks the hash of a word that names a file wherever the command runs.
const ABSOLUTE: u64 = 1;

/// The facts by which a record's command is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandFacts {
    /// The record's id, as a number.
    pub(super) id: u64,
    exe: u64,
    cwd: u64,
    /// Sorted.
    words: Vec<u64>,
}

impl CommandFacts {
    /// The facts of a command; `None` if it has too many words to be compared.
    pub(super) fn of(id: &str, identity: &Identity) -> Option<Self> {
        if identity.argv.len() > WORDS {
            return None;
        }
        let words = identity.argv.iter().enumerate().map(|(place, word)| {
            let absolute = place > 0 && word.starts_with('/');
            hash(word) & !ABSOLUTE | if absolute { ABSOLUTE } else { 0 }
        });
        let mut words: Vec<u64> = words.collect();
        words.sort_unstable();
        Some(Self {
            id: u64::from_str_radix(id, 16).ok()?,
            exe: hash(&identity.exe),
            cwd: hash(&identity.cwd),
            words,
        })
    }

    /// Similarity of two commands; `None` if it is too small to be useful.
    pub(super) fn nearness(&self, other: &Self) -> Option<f64> {
        if self.exe != other.exe {
            return None;
        }
        let (mut common, mut same_files) = (0_usize, false);
        let (mut here, mut there) = (self.words.iter().peekable(), other.words.iter().peekable());
        while let (Some(&a), Some(&b)) = (here.peek(), there.peek()) {
            if a <= b {
                here.next();
            }
            if b <= a {
                there.next();
            }
            if a == b {
                common += 2;
                same_files |= a & ABSOLUTE != 0;
            }
        }
        let similarity = common as f64 / (self.words.len() + other.words.len()) as f64;
        let same_folder = self.cwd == other.cwd;
        let near = similarity > ENOUGH && (same_folder || same_files);
        // The folder decides between records with equally similar arguments.
        near.then_some(similarity + if same_folder { 1e-6 } else { 0.0 })
    }
}

fn hash(word: &str) -> u64 {
    checksum(word.as_bytes())
}

/// The facts of an executable's records, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index(pub(super) Vec<CommandFacts>);

impl Index {
    /// Reads the file at this place; `None` if it is of no use.
    pub(super) fn read(place: &Place) -> Option<Self> {
        let file = place.open().ok()?;
        super::check_owner(&file).ok()?;
        let mut bytes = Vec::new();
        file.take(LIMIT + 1).read_to_end(&mut bytes).ok()?;
        Self::decode(&bytes)
    }

    /// Notes it at this place.
    pub(super) fn write(&self, place: &Place) -> io::Result<()> {
        place.put(&self.encode()).map_err(io::Error::other)
    }

    /// Adds facts, or replaces those of the same record. True if that changes anything.
    pub(super) fn add(&mut self, facts: CommandFacts) -> bool {
        if self.0.contains(&facts) {
            return false;
        }
        self.0.retain(|known| known.id != facts.id);
        self.0.push(facts);
        true
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend((self.0.len() as u32).to_le_bytes());
        for facts in &self.0 {
            bytes.extend(facts.id.to_le_bytes());
            bytes.extend(facts.exe.to_le_bytes());
            bytes.extend(facts.cwd.to_le_bytes());
            bytes.extend((facts.words.len() as u32).to_le_bytes());
            bytes.extend(facts.words.iter().flat_map(|word| word.to_le_bytes()));
        }
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<FOOT>()?;
        let fresh = checksum(body) == u64::from_le_bytes(*sum);
        let mut rest = Numbers(body);
        let magic: [u8; 8] = *rest.take()?;
        let version = u16::from_le_bytes(*rest.take()?);
        if !fresh || magic != MAGIC || version != VERSION {
            return None;
        }
        rest.take::<2>()?;
        let count = u32::from_le_bytes(*rest.take()?);
        let mut index = HashMap::new();
        for place in 0..count {
            let [id, exe, cwd] = [rest.long()?, rest.long()?, rest.long()?];
            let count = u32::from_le_bytes(*rest.take()?) as usize;
            // The allocation is bounded by the bytes that exist.
            let words = rest.0.get(..count.checked_mul(8)?)?;
            rest.0 = &rest.0[words.len()..];
            let words: Vec<u64> = words
                .as_chunks()
                .0
                .iter()
                .map(|word| u64::from_le_bytes(*word))
                .collect();
            index.insert(
                id,
                (
                    place,
                    CommandFacts {
                        id,
                        exe,
                        cwd,
                        words,
                    },
                ),
            );
        }
        let mut index: Vec<_> = index.into_values().collect();
        index.sort_unstable_by_key(|(place, _)| *place);
        rest.0
            .is_empty()
            .then(|| Self(index.into_iter().map(|(_, facts)| facts).collect()))
    }
}

const _: () = assert!(HEAD == MAGIC.len() + 8);

/// The first bytes of a hash.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    let first = hash.as_bytes().first_chunk();
    u64::from_le_bytes(*first.expect("32 bytes"))
}

/// Bytes read from the front.
struct Numbers<'b>(&'b [u8]);

impl<'b> Numbers<'b> {
    fn take<const N: usize>(&mut self) -> Option<&'b [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cwd: &str, argv: &[&str]) -> CommandFacts {
        let identity = Identity {
            exe: "/usr/bin/tool".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            cwd: cwd.into(),
            rank: None,
        };
        CommandFacts::of("1f", &identity).unwrap()
    }

    #[test]
    fn another_executable_is_never_near() {
        let mut other = of("/", &["tool", "a"]);
        other.exe += 1;
        assert_eq!(of("/", &["tool", "a"]).nearness(&other), None);
    }

    #[test]
    fn more_than_half_of_the_words_must_be_common() {
        let wanted = of("/", &["tool", "db", "first query"]);
        assert!(
            wanted
                .nearness(&of("/", &["tool", "db", "second query"]))
                .is_some()
        );
        assert!(wanted.nearness(&of("/", &["tool", "x", "y"])).is_none());
        assert!(
            of("/", &["tool", "a"])
                .nearness(&of("/", &["tool", "b"]))
                .is_none()
        );
        assert!(of("/", &[]).nearness(&of("/", &[])).is_none());
    }

    #[test]
    fn the_fewer_words_differ_the_nearer() {
        let wanted = of("/", &["tool", "-v", "a", "b"]);
        let one = wanted
            .nearness(&of("/", &["tool", "-v", "a", "c"]))
            .unwrap();
        let none = wanted
            .nearness(&of("/", &["tool", "a", "-v", "b"]))
            .unwrap();
        assert!(none > one);
    }

    #[test]
    fn in_another_folder_only_an_absolute_path_names_the_same_file() {
        let wanted = of("/home/a", &["tool", "-j2", "data"]);
        assert!(
            wanted
                .nearness(&of("/home/b", &["tool", "-j2", "data"]))
                .is_none()
        );
        let wanted = of("/home/a", &["tool", "/srv/data"]);
        let elsewhere = wanted
            .nearness(&of("/home/b", &["tool", "/srv/data"]))
            .unwrap();
        let here = wanted
            .nearness(&of("/home/a", &["tool", "/srv/data"]))
            .unwrap();
        assert!(here > elsewhere);
        // The program's own path is no file that it reads.
        assert!(
            of("/a", &["/bin/tool", "x", "y"])
                .nearness(&of("/b", &["/bin/tool", "x", "y"]))
                .is_none()
        );
    }

    #[test]
    fn a_repeated_word_counts_as_often_as_it_occurs() {
        let wanted = of("/", &["tool", "a"]);
        assert!(
            wanted
                .nearness(&of("/", &["tool", "a", "a", "a", "a", "a", "a"]))
                .is_none()
        );
    }

    #[test]
    fn what_is_noted_is_read_again_and_what_is_spoilt_is_not() {
        let mut index = Index::default();
        for (id, words) in [(1, &["tool", "/a"][..]), (2, &["tool"]), (3, &[])] {
            assert!(index.add(CommandFacts {
                id,
                ..of("/", words)
            }));
        }
        assert!(!index.add(CommandFacts {
            id: 2,
            ..of("/", &["tool"])
        }));
        let bytes = index.encode();
        assert_eq!(Index::decode(&bytes), Some(index.clone()));
        for at in 0..bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 0x40;
            assert_eq!(Index::decode(&spoilt), None, "byte {at}");
            assert_eq!(Index::decode(&bytes[..at]), None, "{at} bytes");
        }
        // With a correct checksum: lengths are compared with the bytes that exist.
        for at in 0..bytes.len() - FOOT {
            let mut forged = bytes[..bytes.len() - FOOT].to_vec();
            forged[at] = 0xff;
            forged.extend(checksum(&forged).to_le_bytes());
            let _ = Index::decode(&forged);
        }
        assert_eq!(
            Index::decode(&Index::default().encode()),
            Some(Index::default())
        );
    }
}
