//! Files and program starts as symbols: by identity that survives rename and rewrite.
//!
//! A known name keeps its symbol, whatever inode it leads to: editors and compilers write a new file and rename it over the old one. An
//! unknown name of a known inode gets that inode's symbol: the file was renamed. It keeps its former name as well until one of the two
//! turns out to be another file: an editor that keeps a backup renames the file away and writes a new one under the old name.
//!
//! A temporary file has another name each time: in a folder of temporary files, the names that mkstemp makes of one
//! pattern are one symbol, which stands for the latest of them.
//!
//! Invariant: there are at most as many symbols as the limit; those longest unused are forgotten, and their numbers are
//! not given again.

use std::borrow::Cow;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::Symbol;
use super::contexts::Bounded;

/// Folders of temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Letters and digits at the end of a name that mkstemp(3) puts there.
const RANDOM: usize = 6;
/// Placeholder of temporary parts in the name of a symbol: no file's name contains it.
const ANY: &str = "\0";

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SymbolKind {
    /// A file that is opened.
    File,
    /// A program that is started.
    Start,
}

/// The identity of a file: device, inode and creation time, because a file system reuses the inodes of deleted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device's number.
    pub device: u64,
    /// The inode's number.
    pub inode: u64,
    /// When the inode was made, in ns since 1970; 0 if the file system does not say.
    pub made: u64,
}

#[derive(Clone, Debug)]
struct SymbolNames {
    kind: SymbolKind,
    path: Box<Path>,
    /// The former name, while it may still be this file's.
    former: Option<Box<Path>>,
    identity: Option<Identity>,
    /// For a pattern of temporary names, the latest one.
    latest: Option<Box<Path>>,
}

/// The symbols of all files and programs met.
#[derive(Clone, Debug)]
pub struct Symbols {
    known: Bounded<Symbol, SymbolNames>,
    paths: [FxHashMap<Box<Path>, Symbol>; 2],
    identities: FxHashMap<(SymbolKind, Identity), Symbol>,
    next: u32,
}

impl Symbols {
    /// A table with this limit of files and programs.
    pub fn new(limit: usize) -> Self {
        Self {
            known: Bounded::new(limit),
            paths: Default::default(),
            identities: FxHashMap::default(),
            next: Symbol::SYSTEM_START.0 + 1,
        }
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// True if there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which the file was met last.
    pub fn path(&self, symbol: Symbol) -> Option<&Path> {
        let known = self.known.get(symbol)?;
        Some(known.latest.as_deref().unwrap_or(&known.path))
    }

    /// The symbol of a name that is known; it does not count as met.
    pub fn find(&self, kind: SymbolKind, path: &Path) -> Option<Symbol> {
        self.paths(kind).get(&*pattern(path)).copied()
    }

    /// The program whose start this symbol is, if it is one.
    pub fn program(&self, symbol: Symbol) -> Option<&Path> {
        let known = self.known.get(symbol);
        known
            .filter(|known| known.kind == SymbolKind::Start)
            .map(|known| &*known.path)
    }

    /// The kind of a symbol.
    pub fn kind(&self, symbol: Symbol) -> Option<SymbolKind> {
        self.known.get(symbol).map(|known| known.kind)
    }

    /// All symbols: number, kind and name.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, SymbolKind, &Path)> {
        self.known
            .iter()
            .map(|(symbol, known)| (symbol, known.kind, &*known.path))
    }

    /// Restores a symbol of an earlier session. `false` if its number or name is in use.
    pub fn restore(&mut self, symbol: Symbol, kind: SymbolKind, path: &Path) -> bool {
        let taken = self.known.get(symbol).is_some() || self.paths(kind).contains_key(path);
        if taken || symbol == Symbol::SYSTEM_START || symbol.0 == u32::MAX {
            return false;
        }
        self.next = self.next.max(symbol.0 + 1);
        self.add(symbol, kind, path, None);
        true
    }

    /// The symbol of a file or program with this name, and with this identity if it is known.
    pub fn meet(&mut self, kind: SymbolKind, path: &Path, identity: Option<Identity>) -> Symbol {
        let name = pattern(path);
        let symbol = self.meet_named(kind, &name, identity);
        if let Cow::Owned(_) = name
            && let Some(known) = self.known.used(symbol)
        {
            known.latest = Some(path.into());
        }
        symbol
    }

    fn meet_named(&mut self, kind: SymbolKind, path: &Path, identity: Option<Identity>) -> Symbol {
        if let Some(symbol) = self.paths(kind).get(path).copied() {
            self.same_name(symbol, path, identity);
            return symbol;
        }
        let renamed = identity.and_then(|is| self.identities.get(&(kind, is)).copied());
        if let Some(symbol) = renamed {
            self.rename(symbol, path);
            return symbol;
        }
        let symbol = Symbol(self.next);
        // The last number is given again and again: 2^32 files have been met by then.
        self.next = self.next.saturating_add(1);
        self.add(symbol, kind, path, identity);
        symbol
    }

    fn paths(&self, kind: SymbolKind) -> &FxHashMap<Box<Path>, Symbol> {
        &self.paths[kind as usize]
    }

    fn add(&mut self, symbol: Symbol, kind: SymbolKind, path: &Path, identity: Option<Identity>) {
        let known = SymbolNames {
            kind,
            path: path.into(),
            former: None,
            identity,
            latest: None,
        };
        let (paths, identities) = (&mut self.paths, &mut self.identities);
        self.known.insert(symbol, known, |symbol, known| {
            let paths = &mut paths[known.kind as usize];
            for path in [Some(known.path), known.former].into_iter().flatten() {
                if paths.get(&path) == Some(&symbol) {
                    paths.remove(&path);
                }
            }
            if let Some(is) = known.identity {
                identities.remove(&(known.kind, is));
            }
        });
        self.paths[kind as usize].insert(path.into(), symbol);
        if let Some(is) = identity {
            self.identities.insert((kind, is), symbol);
        }
    }

    /// A known name was met: its symbol has this identity from now on.
    fn same_name(&mut self, symbol: Symbol, path: &Path, identity: Option<Identity>) {
        let Some(known) = self.known.used(symbol) else {
            return;
        };
        let Some(now) = identity.filter(|_| identity != known.identity) else {
            return;
        };
        let kind = known.kind;
        let before = known.identity.replace(now);
        if let Some(before) = before {
            self.identities.remove(&(kind, before));
            // Its other name is another file's: of the inode that this symbol has given up.
            let other = match &known.former {
                Some(former) if **former == *path => {
                    let other = std::mem::replace(&mut known.path, path.into());
                    known.former = None;
                    Some(other)
                }
                _ => known.former.take(),
            };
            if let Some(other) = other {
                self.paths[kind as usize].remove(&other);
            }
        }
        let former = self.identities.insert((kind, now), symbol);
        if let Some(former) = former.filter(|former| *former != symbol)
            && let Some(former) = self.known.used(former)
        {
            former.identity = None;
        }
    }

    /// A known inode was met under a new name.
    fn rename(&mut self, symbol: Symbol, path: &Path) {
        let Some(known) = self.known.used(symbol) else {
            return;
        };
        let kind = known.kind;
        let before = std::mem::replace(&mut known.path, path.into());
        if let Some(oldest) = known.former.replace(before) {
            self.paths[kind as usize].remove(&oldest);
        }
        self.paths[kind as usize].insert(path.into(), symbol);
    }
}

/// The name that a file is known by: its own, or the pattern of a temporary file's.
fn pattern(path: &Path) -> Cow<'_, Path> {
    let own = Cow::Borrowed(path);
    let temporary = |folder: &Path| TEMPORARY.iter().any(|known| folder == Path::new(known));
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return own;
    };
    let Some(name) = name.to_str().filter(|_| temporary(folder)) else {
        return own;
    };
    let (stem, end) = match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    };
    let Some((kept, random)) = stem
        .len()
        .checked_sub(RANDOM)
        .and_then(|at| stem.split_at_checked(at))
    else {
        return own;
    };
    if !is_random(random.as_bytes()) {
        return own;
    }
    Cow::Owned(folder.join(format!("{kept}{ANY}{end}")))
}

/// True if these letters do not form a word: capitals, small letters and digits are mixed. A leading capital, and a number after small
/// letters at the end, also occur in words.
fn is_random(letters: &[u8]) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'a'..=b'z' => Some(2),
        _ => None,
    };
    let changes = letters.windows(2).enumerate().filter(|(at, pair)| {
        let (one, next) = (kind(pair[0]), kind(pair[1]));
        let number_at_end =
            pair[0].is_ascii_lowercase() && letters[at + 1..].iter().all(u8::is_ascii_digit);
        let begins_word = *at == 0 && (one, next) == (Some(1), Some(2));
        one != next && !number_at_end && !begins_word
    });
    letters.iter().all(|byte| kind(*byte).is_some()) && changes.count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(inode: u64) -> Option<Identity> {
        Some(Identity {
            device: 1,
            inode,
            made: 0,
        })
    }

    fn file(symbols: &mut Symbols, path: &str, inode: u64) -> Symbol {
        symbols.meet(SymbolKind::File, Path::new(path), is(inode))
    }

    #[test]
    fn a_renamed_file_keeps_its_symbol() {
        let mut symbols = Symbols::new(100);
        let first = file(&mut symbols, "/a", 1);
        assert_eq!(file(&mut symbols, "/b", 1), first);
        assert_eq!(symbols.path(first), Some(Path::new("/b")));
        assert_ne!(
            symbols.meet(SymbolKind::Start, Path::new("/b"), is(1)),
            first
        );
    }

    #[test]
    fn a_file_written_anew_under_its_name_keeps_its_symbol() {
        // A compiler, or an editor that writes a new file and renames it over the old one.
        let mut symbols = Symbols::new(100);
        let first = file(&mut symbols, "/a", 1);
        let beside = file(&mut symbols, "/a.new", 2);
        assert_eq!(file(&mut symbols, "/a", 2), first);
        assert_ne!(beside, first);
        // An editor that moves the old file aside first, and somebody looks at that.
        assert_eq!(file(&mut symbols, "/a~", 2), first);
        assert_eq!(file(&mut symbols, "/a", 3), first);
        let backup = file(&mut symbols, "/a~", 2);
        assert_ne!(backup, first);
        assert_eq!(file(&mut symbols, "/a", 3), first);
        assert_eq!(symbols.path(first), Some(Path::new("/a")));
    }

    #[test]
    fn temporary_names_of_one_pattern_are_one_symbol() {
        let mut symbols = Symbols::new(100);
        let first = temporary(&mut symbols, "/tmp/ccLNSUS1.s");
        assert_eq!(temporary(&mut symbols, "/tmp/cclxmidN.s"), first);
        assert_ne!(temporary(&mut symbols, "/tmp/cclxmidN.o"), first);
        for word in [
            "/tmp/notes.txt",
            "/tmp/Foobar",
            "/tmp/data2024",
            "/home/cclxmidN.s",
            "/tmp/a",
        ] {
            let known = temporary(&mut symbols, word);
            assert_ne!(known, first);
            assert_eq!(symbols_path(&symbols, known), word);
        }
        assert_eq!(symbols_path(&symbols, first), "/tmp/cclxmidN.s");
    }

    fn temporary(symbols: &mut Symbols, path: &str) -> Symbol {
        symbols.meet(SymbolKind::File, Path::new(path), None)
    }

    fn symbols_path(symbols: &Symbols, symbol: Symbol) -> &str {
        symbols.path(symbol).and_then(Path::to_str).expect("a name")
    }

    #[test]
    fn symbols_are_bounded_and_never_given_again() {
        let mut symbols = Symbols::new(8);
        let mut met = Vec::new();
        for number in 0..1000 {
            met.push(file(&mut symbols, &format!("/f{number}"), number));
            assert!(symbols.len() <= 8);
        }
        met.dedup();
        assert_eq!(met.len(), 1000);
        let maps = symbols.paths[0].len() + symbols.identities.len();
        assert_eq!(maps, 2 * symbols.len(), "nothing is left of the forgotten");
        let mut later = Symbols::new(8);
        for (symbol, kind, path) in symbols.iter() {
            assert!(later.restore(symbol, kind, path));
            assert!(!later.restore(symbol, kind, path));
        }
        let new = file(&mut later, "/new", 1);
        assert!(met.iter().all(|known| *known < new));
    }
}
