//! Redacted command lines: each word is replaced by a keyed hash, so the same command is recognised.
//!
//! Invariant: of a redacted command line nothing but the program's name goes into the store, and who has a record but not
//! the key cannot try words out. The key never leaves the store's folder.

use std::io;

use anyhow::{Context, Result};
use foreread_plan::Identity;
use foreread_plan::format::Place;

/// Bytes of a key.
const KEY: usize = 32;
/// Hexadecimal digits of the hash that stands for a word: two words of one store with one hash are as good as impossible.
const DIGITS: usize = 16;
/// Prefix of a redacted word.
const MARK: &str = "redacted:";

/// The key of a store.
#[derive(Clone)]
pub struct Key([u8; KEY]);

impl Key {
    /// The key at this place; a new one if there is none.
    pub(super) fn at(place: &Place) -> Result<Self> {
        let told = || {
            format!(
                "{}: no key to redact the command line by",
                place.path().display()
            )
        };
        if let Some(key) = read(place).with_context(told)? {
            return Ok(Self(key));
        }
        let mut fresh = [0; KEY];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| io::Read::read_exact(&mut source, &mut fresh))
            .with_context(told)?;
        place.put(&fresh).with_context(told)?;
        // Another run may have put one there a moment later.
        let kept = read(place).with_context(told)?;
        Ok(Self(kept.unwrap_or(fresh)))
    }

    /// The identity with each word but the program's name left out.
    pub fn redacted(&self, identity: &Identity) -> Identity {
        let words = identity.argv.iter().enumerate();
        let argv = words.map(|(place, word)| match place {
            0 => word.clone(),
            _ => self.stand_in(word),
        });
        Identity {
            argv: argv.collect(),
            ..identity.clone()
        }
    }

    fn stand_in(&self, word: &str) -> String {
        let hash = blake3::keyed_hash(&self.0, word.as_bytes()).to_hex();
        format!("{MARK}{}", &hash[..DIGITS])
    }
}

/// Reads the key; `None` if there is none, or the file is no key.
fn read(place: &Place) -> io::Result<Option<[u8; KEY]>> {
    let file = match place.open() {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    super::check_owner(&file)?;
    let mut key = Vec::with_capacity(KEY + 1);
    io::Read::read_to_end(&mut io::Read::take(file, KEY as u64 + 1), &mut key)?;
    Ok(key.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_stand_in_in_a_store_and_another_in_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| Place::at(&folder.path().join(name)).unwrap();
        let identity = |words: &[&str]| Identity {
            exe: "/bin/tool".into(),
            argv: words.iter().map(|&word| word.into()).collect(),
            cwd: "/".into(),
            rank: None,
        };
        let given = identity(&["tool", "-p", "secret", "-p"]);
        let redacted = Key::at(&place("a")).unwrap().redacted(&given);
        assert_eq!(redacted, Key::at(&place("a")).unwrap().redacted(&given));
        let words = &redacted.argv;
        assert_eq!((&*words[0], words.len()), ("tool", 4));
        assert_eq!(words[1], words[3]);
        assert_ne!(words[1], words[2]);
        assert!(words[1..].iter().all(|word| word.starts_with(MARK)));
        assert_ne!(redacted, Key::at(&place("b")).unwrap().redacted(&given));
        // A file that is no key is replaced by one.
        std::fs::write(folder.path().join("a"), "short").unwrap();
        let anew = Key::at(&place("a")).unwrap().redacted(&given);
        assert_ne!(redacted, anew);
        assert_eq!(anew, Key::at(&place("a")).unwrap().redacted(&given));
    }
}
