//! Files and program starts as symbols: by identity that survives rename and rewrite.
//!
//! A name that is known keeps its symbol, whatever inode it now leads to: editors and compilers write a new file and
//! rename it over the old one. A name that is not known, of an inode that is, is the symbol of that inode: the file was
//! renamed. It keeps its former name beside the new one until one of the two turns out to be another file: an editor
//! that keeps a backup renames the file away and writes a new one under the old name.
//!
//! Invariant: there are at most as many symbols as the limit; those longest unused are forgotten, and their numbers are
//! not given again.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::Symbol;
use super::contexts::Bounded;

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A file that is opened.
    File,
    /// A program that is started.
    Start,
}

/// Which file it is: device, inode and time of making tell it, because a file system gives the inode of a deleted file to
/// the next one.
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
struct Known {
    kind: Kind,
    path: Box<Path>,
    /// The name before that, as long as it may still be this file's.
    former: Option<Box<Path>>,
    identity: Option<Identity>,
}

/// The symbols of all files and programs met.
#[derive(Clone, Debug)]
pub struct Symbols {
    known: Bounded<Symbol, Known>,
    paths: [FxHashMap<Box<Path>, Symbol>; 2],
    identities: FxHashMap<(Kind, Identity), Symbol>,
    next: u32,
}

impl Symbols {
    /// For at most so many files and programs.
    pub fn new(limit: usize) -> Self {
        Self {
            known: Bounded::new(limit),
            paths: Default::default(),
            identities: FxHashMap::default(),
            next: Symbol::SYSTEM_START.0 + 1,
        }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which the file was met last.
    pub fn path(&self, symbol: Symbol) -> Option<&Path> {
        self.known.get(symbol).map(|known| &*known.path)
    }

    /// All symbols: number, kind and name.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, Kind, &Path)> {
        self.known
            .iter()
            .map(|(symbol, known)| (symbol, known.kind, &*known.path))
    }

    /// Puts back a symbol of an earlier session. `false` if its number or name is taken.
    pub fn restore(&mut self, symbol: Symbol, kind: Kind, path: &Path) -> bool {
        let taken = self.known.get(symbol).is_some() || self.paths(kind).contains_key(path);
        if taken || symbol == Symbol::SYSTEM_START || symbol.0 == u32::MAX {
            return false;
        }
        self.next = self.next.max(symbol.0 + 1);
        self.add(symbol, kind, path, None);
        true
    }

    /// The symbol of what is met under this name, with this identity if that is known.
    pub fn meet(&mut self, kind: Kind, path: &Path, identity: Option<Identity>) -> Symbol {
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

    fn paths(&self, kind: Kind) -> &FxHashMap<Box<Path>, Symbol> {
        &self.paths[kind as usize]
    }

    fn add(&mut self, symbol: Symbol, kind: Kind, path: &Path, identity: Option<Identity>) {
        let known = Known {
            kind,
            path: path.into(),
            former: None,
            identity,
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
