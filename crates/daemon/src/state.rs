//! The models on disk: loaded when the daemon starts, saved now and then and when it ends.
//!
//! | file | what |
//! | --- | --- |
//! | `trees.models` | symbols, and the models of process trees |
//! | `machine.models` | the model of the whole machine's sequence |
//! | `trails` | what came next the last time, of both ([`Trails`]) |
//! | `start-ups` | the files that each program begins with ([`StartUps`]) |
//! | `files` | what is known of each file ([`files`](crate::files)) |
//! | `proofs` | how often each program's predictions came true ([`proofs`](crate::proofs)) |
//! | `boot` | which start of the system the last daemon ran after, as the kernel names it |
//!
//! Invariants: each file is replaced as a whole, so a kill or a full disk leaves the old one; what is damaged is moved aside under its name
//! and `.damaged`, said, and begun anew, with the others whose symbols mean nothing without it: `proofs` and `boot` have none. Nothing that
//! goes wrong here ends the daemon.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use foreread_sources::files::{
    Epcm, Folded, LastSuccessor, Levels, Model as Learns, Pager, Pcm, Shape, StartUps, Symbol,
    Symbols, Trails,
};
use foreread_store::ModelFile;
use foreread_sys::file::open_regular;

use crate::files::{FileFacts, Files, RANGES, USERS};
use crate::proofs::{Proofs, take};
use crate::trees::SEQUENCES;
use crate::{Model, PartitionLimits};

/// Files and programs that are known: a Debian system with a desktop has some 300,000 files, of which few are opened.
pub(crate) const SYMBOLS: usize = 1 << 16;
/// Partitions of each model in memory, at most 1.3 KiB each: 21 MiB. Others are read when their file is met.
const PARTITIONS: usize = 1 << 14;
/// Bytes of partitions of each model on disk.
const ON_DISK: u64 = 64 << 20;
/// Events by which EPCM jumps from one partition to the next (docs/models.md).
const JUMP: usize = 8;
/// As published, it does not.
const NO_JUMP: usize = 0;
/// Limits of partitions (docs/models.md).
const PCM: PartitionLimits = PartitionLimits {
    nodes: 64,
    order: 8,
};
const EPCM: PartitionLimits = PartitionLimits {
    nodes: 64,
    order: Epcm::usual_order(64),
};

const TREES: &str = "trees.models";
const MACHINE: &str = "machine.models";
const TRAILS: &str = "trails";
const START_UPS: &str = "start-ups";
const FILES: &str = "files";
const PROOFS: &str = "proofs";
const BOOT: &str = "boot";
/// The beginnings of the files of trails, of start-ups, of files, of proofs and of the system's start, their last digits the version.
const TRAILS_MAGIC: [u8; 8] = *b"FRTRLS01";
const START_UPS_MAGIC: [u8; 8] = *b"FRSTUP01";
const FILES_MAGIC: [u8; 8] = *b"FRFILE02";
const PROOFS_MAGIC: [u8; 8] = *b"FRPROV01";
const BOOT_MAGIC: [u8; 8] = *b"FRBOOT01";
/// The longest file of files: [`SYMBOLS`] with all ranges.
const MOST: u64 = 32 << 20;

/// The state's folder.
pub(crate) struct StateFolder {
    folder: PathBuf,
    trees: ModelFile,
    machine: ModelFile,
    /// The trails of process trees, and those of the machine.
    trails: [Trails; 2],
    start_ups: StartUps,
}

/// The loaded state.
pub(crate) struct Loaded {
    pub(crate) state: StateFolder,
    pub(crate) symbols: Symbols,
    pub(crate) files: Files,
    pub(crate) proofs: Proofs,
    /// Which start of the system the last daemon ran after; empty if there was none.
    pub(crate) boot: Vec<u8>,
    /// Problems, in sentences.
    pub(crate) problems: Vec<String>,
}

/// Makes the folder of the state if there is none. Nothing is made in one that is not this user's alone.
///
/// # Errors
/// When the folder cannot be created, belongs to another user, or may be written to by others.
pub(crate) fn own_folder(folder: &Path) -> Result<()> {
    let within = || folder.display().to_string();
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            let what = format!("{}: cannot make the folder of models", within());
            return Err(why).context(what);
        }
        _ => {}
    }
    let about = std::fs::symlink_metadata(folder).with_context(within)?;
    ensure!(about.is_dir(), "{} is no folder", folder.display());
    ensure!(
        about.uid() == rustix::process::geteuid().as_raw(),
        "{}: it belongs to user {}",
        folder.display(),
        about.uid()
    );
    ensure!(
        about.mode() & 0o022 == 0,
        "{}: others may write to it",
        folder.display()
    );
    Ok(())
}

impl StateFolder {
    /// Loads what there is in a folder of this user alone, which is made if there is none.
    ///
    /// # Errors
    /// As [`own_folder`].
    pub(crate) fn load(folder: &Path) -> Result<Loaded> {
        own_folder(folder)?;
        let mut problems = Vec::new();
        let (mut state, known) = match Self::open(folder) {
            Ok(opened) => opened,
            Err(why) => {
                let why = foreread_words::plain(&format!("{why:#}"));
                problems.push(format!("the models are begun anew: {why}"));
                for name in [TREES, MACHINE, TRAILS, START_UPS, FILES] {
                    set_aside(&folder.join(name), &mut problems);
                }
                let new = |name| ModelFile::new(&folder.join(name), ON_DISK);
                let state = Self {
                    folder: folder.to_path_buf(),
                    trees: new(TREES),
                    machine: new(MACHINE),
                    trails: Default::default(),
                    start_ups: StartUps::default(),
                };
                (state, Vec::new())
            }
        };
        let mut saved = Saved {
            folder,
            problems: &mut problems,
        };
        let anew = "trails are begun anew";
        state.trails = saved.read(TRAILS, TRAILS_MAGIC, decode_trails, anew);
        let anew = "start-ups of programs are learnt anew";
        state.start_ups = saved.read(START_UPS, START_UPS_MAGIC, decode_start_ups, anew);
        let anew = "how often predictions came true is counted anew";
        let proofs = saved.read(PROOFS, PROOFS_MAGIC, Proofs::decode, anew);
        let anew = "whether the system has started is not known";
        let boot = saved.read(BOOT, BOOT_MAGIC, |body| Ok(body.to_vec()), anew);
        let symbols = state.symbols();
        let mut files = Files::new(SYMBOLS);
        for (symbol, facts) in known {
            if symbols.path(symbol).is_some() {
                files.restore(symbol, facts);
            }
        }
        Ok(Loaded {
            state,
            symbols,
            files,
            proofs,
            boot,
            problems,
        })
    }

    /// Opens the saved state of a folder, which is not changed. Also returns the known files.
    ///
    /// # Errors
    /// When a part of it is damaged.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<(Symbol, FileFacts)>)> {
        let [trees, machine, files] = [TREES, MACHINE, FILES].map(|name| folder.join(name));
        let state = Self {
            folder: folder.to_path_buf(),
            trees: ModelFile::open(&trees, ON_DISK)?,
            machine: ModelFile::open(&machine, ON_DISK)?,
            trails: Default::default(),
            start_ups: StartUps::default(),
        };
        // Without the symbols that they were saved with, the others mean nothing.
        ensure!(
            trees.exists() || !machine.exists() && !files.exists(),
            "{}: it is gone",
            trees.display()
        );
        Ok((state, read(&files, FILES_MAGIC, decode)?))
    }

    /// The same, with the parts that are not essential to the models: for questions to the models, which are not saved again.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub(crate) fn open_whole(folder: &Path) -> Result<Self> {
        let (mut state, _) = Self::open(folder)?;
        state.trails = read(&folder.join(TRAILS), TRAILS_MAGIC, decode_trails)?;
        state.start_ups = read(&folder.join(START_UPS), START_UPS_MAGIC, decode_start_ups)?;
        Ok(state)
    }

    /// The symbols that were saved.
    pub(crate) fn symbols(&self) -> Symbols {
        self.trees.symbols(SYMBOLS)
    }

    /// The model, which knows what is on disk; its partitions have these limits.
    pub(crate) fn model(
        &self,
        model: Model,
        partitions: Option<PartitionLimits>,
    ) -> Box<dyn Learns> {
        let pagers = || -> [Box<dyn Pager>; 2] {
            [Box::new(self.trees.clone()), Box::new(self.machine.clone())]
        };
        let shape = |usual: PartitionLimits| {
            let PartitionLimits { nodes, order } = partitions.unwrap_or(usual);
            Shape {
                size: nodes,
                order,
                partitions: PARTITIONS,
                contexts: SEQUENCES,
            }
        };
        match model {
            Model::LastSuccessor => {
                let one = || LastSuccessor::new(SYMBOLS, SEQUENCES);
                Box::new(Levels::new(one(), one()))
            }
            Model::Pcm => {
                let [own, machine] = pagers().map(|pager| Pcm::with_pager(shape(PCM), pager));
                Box::new(Levels::new(own, machine))
            }
            Model::Epcm => {
                let shape = shape(EPCM);
                let [trees, machine] = self.trails.clone();
                let [own, all] = pagers().map(|pager| Epcm::with_pager(shape, JUMP, pager));
                let (own, all) = (own.looking_ahead_by(trees), all.looking_ahead_by(machine));
                let both = Levels::new(own, all);
                Box::new(Folded::new(both, self.start_ups.clone(), SEQUENCES))
            }
            Model::PublishedEpcm => {
                let [own, machine] =
                    pagers().map(|pager| Epcm::with_pager(shape(EPCM), NO_JUMP, pager));
                Box::new(Levels::new(own, machine))
            }
        }
    }

    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.trees.partitions() + self.machine.partitions()
    }

    /// Saves all: what the model has handed over, the symbols, and what is known of files.
    pub(crate) fn save(&self, symbols: &Symbols, files: &Files, proofs: &Proofs) -> Result<()> {
        // The one with the symbols that count first.
        self.trees.save(symbols)?;
        self.machine.save(symbols)?;
        self.write(TRAILS, TRAILS_MAGIC, &encode_trails(&self.trails))?;
        self.write(START_UPS, START_UPS_MAGIC, &self.start_ups.encode())?;
        self.write(FILES, FILES_MAGIC, &encode(symbols, files))?;
        self.write(PROOFS, PROOFS_MAGIC, &proofs.encode())
    }

    /// Saves which start of the system this daemon runs after.
    pub(crate) fn save_boot(&self, boot: &[u8]) -> Result<()> {
        self.write(BOOT, BOOT_MAGIC, boot)
    }

    /// Replaces a file: magic, CRC-32 of the rest, the rest.
    fn write(&self, name: &str, magic: [u8; 8], body: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let within = || path.display().to_string();
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).with_context(within)?;
        let crc = crc32fast::hash(body).to_le_bytes();
        for part in [&magic[..], &crc, body] {
            file.write_all(part).with_context(within)?;
        }
        file.as_file().sync_all().with_context(within)?;
        file.persist(&path).with_context(within)?;
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .with_context(within)
    }
}

/// The files that the models can do without.
struct Saved<'a> {
    folder: &'a Path,
    problems: &'a mut Vec<String>,
}

impl Saved<'_> {
    /// What the file of this name has. A damaged one is moved aside, and said in words that begin with `anew`.
    fn read<T: Default>(
        &mut self,
        name: &str,
        magic: [u8; 8],
        decode: impl FnOnce(&[u8]) -> Result<T>,
        anew: &str,
    ) -> T {
        let path = self.folder.join(name);
        read(&path, magic, decode).unwrap_or_else(|why| {
            let why = foreread_words::plain(&format!("{why:#}"));
            self.problems.push(format!("{anew}: {why}"));
            set_aside(&path, self.problems);
            T::default()
        })
    }
}

/// Moves what is at a path aside, in place of what was moved there before.
fn set_aside(path: &Path, problems: &mut Vec<String>) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    let moved = std::fs::rename(path, &aside)
        .and_then(|()| std::fs::set_permissions(&aside, Permissions::from_mode(0o600)));
    match moved {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            let why = foreread_words::plain(&why.to_string());
            problems.push(format!("{}: {why}", path.display()));
        }
        _ => {}
    }
}

/// The body of the file of trails: the number of bytes of the first, the first, the second.
fn encode_trails(trails: &[Trails; 2]) -> Vec<u8> {
    let [trees, machine] = trails.each_ref().map(Trails::encode);
    let length = trees.len() as u64;
    [&length.to_le_bytes()[..], &trees, &machine].concat()
}

fn decode_trails(mut body: &[u8]) -> Result<[Trails; 2]> {
    let length = u64::from_le_bytes(take(&mut body)?);
    let at = usize::try_from(length).unwrap_or(usize::MAX);
    let (trees, machine) = body.split_at_checked(at).context("it is cut")?;
    Ok([Trails::decode(trees)?, Trails::decode(machine)?])
}

fn decode_start_ups(body: &[u8]) -> Result<StartUps> {
    Ok(StartUps::decode(body)?)
}

/// The body of the file of files, each file: symbol, device, inode, size, the number of users and
/// of ranges, the users, the ranges. All numbers are little-endian.
fn encode(symbols: &Symbols, files: &Files) -> Vec<u8> {
    let mut body = Vec::new();
    for (symbol, facts) in files.iter() {
        if symbols.path(symbol).is_none() {
            continue;
        }
        body.extend(symbol.0.to_le_bytes());
        for number in [facts.device, facts.inode, facts.size] {
            body.extend(number.to_le_bytes());
        }
        body.push(facts.users.len() as u8);
        body.push(facts.pages.len() as u8);
        for user in &facts.users {
            body.extend(user.to_le_bytes());
        }
        for (from, to) in &facts.pages {
            body.extend(from.to_le_bytes());
            body.extend(to.to_le_bytes());
        }
    }
    body
}

/// The content of a file written by [`StateFolder::write`]; the default value if there is none.
fn read<T: Default>(
    path: &Path,
    magic: [u8; 8],
    decode: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    let within = || path.display().to_string();
    let mut bytes = Vec::new();
    match open_regular(path) {
        Ok((file, _)) => File::from(file).take(MOST + 1).read_to_end(&mut bytes),
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(T::default()),
        Err(why) => Err(why),
    }
    .with_context(within)?;
    body_of(&bytes, magic).and_then(decode).with_context(within)
}

fn body_of(bytes: &[u8], magic: [u8; 8]) -> Result<&[u8]> {
    let Some((begins, rest)) = bytes.split_first_chunk::<8>() else {
        bail!("it is too short");
    };
    ensure!(*begins == magic, "it is no file of this version");
    let (crc, body) = rest.split_first_chunk::<4>().context("it is too short")?;
    ensure!(
        crc32fast::hash(body) == u32::from_le_bytes(*crc),
        "it is damaged"
    );
    Ok(body)
}

fn decode(mut body: &[u8]) -> Result<Vec<(Symbol, FileFacts)>> {
    let mut known = Vec::new();
    while !body.is_empty() {
        let symbol = Symbol(u32::from_le_bytes(take(&mut body)?));
        let mut facts = FileFacts {
            device: u64::from_le_bytes(take(&mut body)?),
            inode: u64::from_le_bytes(take(&mut body)?),
            size: u64::from_le_bytes(take(&mut body)?),
            ..FileFacts::default()
        };
        let [users, ranges] = take(&mut body)?;
        ensure!(
            usize::from(users) <= USERS && usize::from(ranges) <= RANGES,
            "{users} users and {ranges} ranges"
        );
        for _ in 0..users {
            facts.users.push(u32::from_le_bytes(take(&mut body)?));
        }
        for _ in 0..ranges {
            let from = u32::from_le_bytes(take(&mut body)?);
            let to = u32::from_le_bytes(take(&mut body)?);
            ensure!(from < to, "pages from {from} to {to}");
            facts.pages.push((from, to));
        }
        known.push((symbol, facts));
    }
    Ok(known)
}

#[cfg(test)]
mod tests;
