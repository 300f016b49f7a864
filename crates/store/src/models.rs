//! Models of file successors, stored on disk: the symbols, and the partitions of each model, in one file.
//!
//! Layout, all numbers little-endian: 8 bytes of magic with the version; the head's length (u32) and CRC-32 (u32); the
//! head: the number of saves, the numbers of symbols and of partitions, the symbols (number, kind, length of the name,
//! name), the index (symbol, last use, offset, length, CRC-32); then the partitions.
//!
//! Invariants: the file is replaced as a whole (a new file is written, synced and renamed), so a crash leaves the old or the new one. The
//! head is checked when the file is opened, a partition when it is read. Damage leads to an error or to a missing partition, never to a
//! panic. The file is bounded: the least recently used partitions are left out, and those not used in [`AGE`] saves.
//!
//! Data flow: [`ModelFile::open`] → [`Pager::page_in`], one partition at a time when its file is seen → [`Pager::page_out`] collects
//! changes → [`ModelFile::save`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use foreread_sources::files::{Pager, Partition, Symbol, SymbolKind, Symbols};
use rustix::fs::{Mode, OFlags};

/// The beginning of a file, its last digits the version.
const MAGIC: [u8; 8] = *b"FRMODL01";
/// Bytes before the head.
const BEGIN: usize = 16;
/// Bytes of an index entry.
const ENTRY: usize = 24;
/// The longest head: 2^20 symbols with names of 256 bytes.
const MOST_HEAD: u64 = 256 << 20;
/// Bytes of changed partitions that wait for a save, at most; further changes are lost.
const WAITING: usize = 64 << 20;
/// Number of saves after which an unused partition is left out.
const AGE: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SavedPartition {
    /// The save before which it was used last.
    used: u32,
    offset: u64,
    len: u32,
    crc: u32,
}

#[derive(Debug, Default)]
struct Head {
    saves: u32,
    symbols: Vec<(Symbol, SymbolKind, PathBuf)>,
    index: HashMap<Symbol, SavedPartition>,
}

struct Opened {
    file: Option<File>,
    head: Head,
    changed: HashMap<Symbol, Vec<u8>>,
    waiting: usize,
}

/// A file of models. Clones are the same file: one is the model's pager, another saves it.
#[derive(Clone)]
pub struct ModelFile {
    path: PathBuf,
    limit: u64,
    state: Arc<Mutex<Opened>>,
}

impl ModelFile {
    /// The file at `path`, with at most `limit` bytes of partitions; new if there is none. An unreadable file is an error and stays:
    /// [`ModelFile::new`] replaces it.
    pub fn open(path: &Path, limit: u64) -> Result<Self> {
        let new = Self::new(path, limit);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(new),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let head = read_head(&file).with_context(|| path.display().to_string())?;
        let mut state = new.state();
        state.head = head;
        state.file = Some(file);
        drop(state);
        Ok(new)
    }

    /// An empty file, which replaces the one at `path` when it is saved.
    pub fn new(path: &Path, limit: u64) -> Self {
        Self {
            path: path.to_path_buf(),
            limit,
            state: Arc::new(Mutex::new(Opened {
                file: None,
                head: Head::default(),
                changed: HashMap::new(),
                waiting: 0,
            })),
        }
    }

    /// The stored symbols, in a table with this limit.
    pub fn symbols(&self, limit: usize) -> Symbols {
        let mut symbols = Symbols::new(limit);
        for (symbol, kind, path) in &self.state().head.symbols {
            symbols.restore(*symbol, *kind, path);
        }
        symbols
    }

    /// Number of partitions, saved or not.
    pub fn partitions(&self) -> usize {
        let state = self.state();
        let new = |symbol: &&Symbol| !state.head.index.contains_key(symbol);
        state.head.index.len() + state.changed.keys().filter(new).count()
    }

    /// Replaces the file by one with all that has changed.
    pub fn save(&self, symbols: &Symbols) -> Result<()> {
        let mut state = self.state();
        let saves = state.head.saves.saturating_add(1);
        // (last use, symbol, length), the latest use first.
        let mut kept: Vec<(u32, Symbol, u64)> = Vec::new();
        for (symbol, bytes) in &state.changed {
            kept.push((saves, *symbol, bytes.len() as u64));
        }
        for (symbol, entry) in &state.head.index {
            if !state.changed.contains_key(symbol) && saves - entry.used.min(saves) < AGE {
                kept.push((entry.used, *symbol, entry.len.into()));
            }
        }
        kept.sort_by_key(|(used, symbol, _)| (std::cmp::Reverse(*used), *symbol));
        let mut room = self.limit;
        kept.retain(|(_, _, len)| {
            let fits = *len <= room;
            room = if fits { room - len } else { 0 };
            fits
        });
        let folder = self.path.parent().filter(|at| !at.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let within = || self.path.display().to_string();
        let file = tempfile::NamedTempFile::new_in(folder).with_context(within)?;
        let head = write(file.as_file(), &mut state, saves, symbols, &kept).with_context(within)?;
        file.as_file().sync_all().with_context(within)?;
        let file = file.persist(&self.path).with_context(within)?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .with_context(within)?;
        state.head = head;
        state.file = Some(file);
        state.changed.clear();
        state.waiting = 0;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, Opened> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pager for ModelFile {
    fn page_in(&mut self, symbol: Symbol, stamp: &mut dyn FnMut() -> u32) -> Option<Partition> {
        let mut state = self.state();
        if let Some(bytes) = state.changed.get(&symbol) {
            return Partition::decode(bytes, stamp).ok();
        }
        let bytes = state.saved(symbol)?;
        let now = state.head.saves.saturating_add(1);
        if let Some(entry) = state.head.index.get_mut(&symbol) {
            entry.used = now;
        }
        Partition::decode(&bytes, stamp).ok()
    }

    fn page_out(&mut self, symbol: Symbol, partition: &Partition) {
        let mut state = self.state();
        let bytes = partition.encode();
        let before = state.changed.get(&symbol).map_or(0, Vec::len);
        let waiting = state.waiting - before + bytes.len();
        if waiting <= WAITING {
            state.waiting = waiting;
            state.changed.insert(symbol, bytes);
        }
    }
}

impl Opened {
    /// A saved partition, if it is undamaged.
    fn saved(&self, symbol: Symbol) -> Option<Vec<u8>> {
        let entry = self.head.index.get(&symbol)?;
        let mut bytes = vec![0; entry.len as usize];
        let file = self.file.as_ref()?;
        file.read_exact_at(&mut bytes, entry.offset).ok()?;
        (crc32fast::hash(&bytes) == entry.crc).then_some(bytes)
    }
}

/// Writes a file, and returns its head.
fn write(
    file: &File,
    state: &mut Opened,
    saves: u32,
    symbols: &Symbols,
    kept: &[(u32, Symbol, u64)],
) -> Result<Head> {
    let mut head = Head {
        saves,
        symbols: Vec::new(),
        index: HashMap::new(),
    };
    let mut bytes = saves.to_le_bytes().to_vec();
    bytes.extend((symbols.len() as u32).to_le_bytes());
    bytes.extend((kept.len() as u32).to_le_bytes());
    for (symbol, kind, path) in symbols.iter() {
        let name = path.as_os_str().as_bytes();
        // Longer names cannot be opened.
        let len = u16::try_from(name.len()).unwrap_or(0);
        bytes.extend(symbol.0.to_le_bytes());
        bytes.push(kind as u8);
        bytes.extend(len.to_le_bytes());
        bytes.extend(&name[..len.into()]);
    }
    let start = (BEGIN + bytes.len() + kept.len() * ENTRY) as u64;
    let mut out = BufWriter::new(file);
    // The head comes first and names each partition's CRC: room for the head, the partitions, then the head.
    let mut offset = start;
    std::io::copy(&mut std::io::repeat(0).take(start), &mut out)?;
    for (used, symbol, len) in kept {
        let data = match state.changed.get(symbol) {
            Some(data) => Some(data.clone()),
            None => state.saved(*symbol),
        };
        // A damaged partition keeps its place, and its CRC shows the damage.
        let data = data.unwrap_or_else(|| vec![0; *len as usize]);
        let entry = SavedPartition {
            used: *used,
            offset,
            len: data.len() as u32,
            crc: crc32fast::hash(&data),
        };
        out.write_all(&data)?;
        offset += data.len() as u64;
        bytes.extend(symbol.0.to_le_bytes());
        bytes.extend(entry.used.to_le_bytes());
        bytes.extend(entry.offset.to_le_bytes());
        bytes.extend(entry.len.to_le_bytes());
        bytes.extend(entry.crc.to_le_bytes());
        head.index.insert(*symbol, entry);
    }
    out.flush()?;
    let mut begin = MAGIC.to_vec();
    begin.extend((bytes.len() as u32).to_le_bytes());
    begin.extend(crc32fast::hash(&bytes).to_le_bytes());
    file.write_all_at(&begin, 0)?;
    file.write_all_at(&bytes, BEGIN as u64)?;
    Ok(head)
}

/// Reads and checks the head of a file.
fn read_head(file: &File) -> Result<Head> {
    let meta = file.metadata()?;
    ensure!(meta.is_file(), "is no regular file");
    let mut begin = [0; BEGIN];
    file.read_exact_at(&mut begin, 0)
        .context("is no file of models: it is too short")?;
    let (magic, rest) = begin.split_at(MAGIC.len());
    if magic != MAGIC {
        bail!(
            "is no file of models of this version (it begins with {:?})",
            String::from_utf8_lossy(magic)
        );
    }
    let mut rest = Bytes(rest);
    let (len, crc) = (rest.u32()?, rest.u32()?);
    let fits = u64::from(len) <= MOST_HEAD.min(meta.len());
    ensure!(fits, "a head of {len} bytes does not fit");
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, BEGIN as u64)
        .context("the head is cut off")?;
    ensure!(crc32fast::hash(&bytes) == crc, "the head is damaged");
    decode_head(&bytes, meta.len())
}

/// The head that these bytes are, of a file of `size` bytes.
fn decode_head(bytes: &[u8], size: u64) -> Result<Head> {
    let mut bytes = Bytes(bytes);
    let mut head = Head {
        saves: bytes.u32()?,
        ..Head::default()
    };
    let (symbols, partitions) = (bytes.u32()?, bytes.u32()?);
    for _ in 0..symbols {
        let symbol = Symbol(bytes.u32()?);
        let kind = match bytes.take(1)?[0] {
            0 => SymbolKind::File,
            1 => SymbolKind::Start,
            other => bail!("{other} is no kind of symbol"),
        };
        let len = bytes.u16()?;
        let name = std::ffi::OsStr::from_bytes(bytes.take(len.into())?);
        head.symbols.push((symbol, kind, PathBuf::from(name)));
    }
    for _ in 0..partitions {
        let symbol = Symbol(bytes.u32()?);
        let entry = SavedPartition {
            used: bytes.u32()?,
            offset: bytes.u64()?,
            len: bytes.u32()?,
            crc: bytes.u32()?,
        };
        let end = entry.offset.checked_add(entry.len.into());
        ensure!(
            end.is_some_and(|end| end <= size),
            "the partition at {} is not in the file",
            entry.offset
        );
        head.index.insert(symbol, entry);
    }
    ensure!(bytes.0.is_empty(), "{} bytes too many", bytes.0.len());
    Ok(head)
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .context("the head is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use foreread_sources::files::{Context as Whose, Epcm, Model};

    use super::*;

    const WHOSE: Whose = Whose(1);

    fn model(file: &ModelFile) -> Epcm {
        Epcm::with_pager(Epcm::shape(64, 1000, 10), 4, Box::new(file.clone()))
    }

    fn learn(model: &mut Epcm, symbols: &mut Symbols, files: std::ops::Range<u32>) {
        for _ in 0..20 {
            model.end_all();
            for number in files.clone() {
                let name = format!("/f/{number}");
                let symbol = symbols.meet(SymbolKind::File, Path::new(&name), None);
                model.see(WHOSE, symbol, true);
            }
        }
        model.flush();
    }

    /// Number of files predicted after the first.
    fn ahead(model: &mut Epcm, symbols: &mut Symbols, first: u32) -> usize {
        let name = format!("/f/{first}");
        model.see(
            WHOSE,
            symbols.meet(SymbolKind::File, Path::new(&name), None),
            false,
        );
        let mut out = Vec::new();
        model.predict(WHOSE, 0.51, &mut out);
        out.len()
    }

    #[test]
    fn a_model_goes_on_where_it_was_saved() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("models");
        let file = ModelFile::open(&path, 1 << 20).expect("a new file");
        let mut symbols = file.symbols(1000);
        let mut before = model(&file);
        learn(&mut before, &mut symbols, 0..30);
        file.save(&symbols).expect("saved");
        let file = ModelFile::open(&path, 1 << 20).expect("a sound file");
        let mut symbols = file.symbols(1000);
        assert_eq!((symbols.len(), file.partitions()), (30, 30));
        let (mut after, known) = (model(&file), ahead(&mut before, &mut symbols, 3));
        assert!(known >= 8, "{known}");
        let paged = ahead(&mut after, &mut symbols, 3);
        // Partitions that a jump leads to are looked for in memory alone.
        assert!(paged >= 8, "{paged}");
        // The folder has only the new file.
        let names = std::fs::read_dir(folder.path()).expect("the folder");
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn the_file_is_bounded_and_what_is_longest_unused_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("models");
        let file = ModelFile::open(&path, 4000).expect("a new file");
        let mut symbols = file.symbols(1000);
        for round in 0..5 {
            let mut model = model(&file);
            learn(&mut model, &mut symbols, round * 20..round * 20 + 20);
            file.save(&symbols).expect("saved");
            assert!(file.partitions() < 60);
        }
        let mut last = model(&file);
        assert!(ahead(&mut last, &mut symbols, 80) > 0);
        assert_eq!(ahead(&mut last, &mut symbols, 0), 0);
    }

    #[test]
    fn a_damaged_file_is_an_error_or_lacks_partitions_and_never_a_panic() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("models");
        let file = ModelFile::open(&path, 1 << 20).expect("a new file");
        let mut symbols = file.symbols(1000);
        learn(&mut model(&file), &mut symbols, 0..10);
        file.save(&symbols).expect("saved");
        let whole = std::fs::read(&path).expect("the file");
        let (mut refused, mut read) = (0, 0);
        let cut = (0..whole.len()).step_by(7).map(|len| whole[..len].to_vec());
        let flipped = (0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            bytes
        });
        for bytes in cut.chain(flipped) {
            std::fs::write(&path, bytes).expect("written");
            let Ok(file) = ModelFile::open(&path, 1 << 20) else {
                refused += 1;
                continue;
            };
            read += 1;
            let mut model = model(&file);
            for number in 0..10 {
                ahead(&mut model, &mut symbols, number);
            }
            file.save(&symbols)
                .expect("a damaged partition is left behind");
        }
        assert!(
            refused > 100 && read > 100,
            "{refused} refused, {read} read"
        );
        std::fs::write(&path, "no models").expect("written");
        assert!(ModelFile::open(&path, 1 << 20).is_err());
        ModelFile::new(&path, 1 << 20)
            .save(&symbols)
            .expect("replaced");
        assert!(ModelFile::open(&path, 1 << 20).is_ok());
    }
}
