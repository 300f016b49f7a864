//! Finds the files of a list on this machine.
//!
//! A file fits if its size equals the size in the list, or if the list has no size. A file that is read is opened, so the record has no
//! file that the user may not read. Its path is resolved to one without links, as for an observed file. A file that is only named is only
//! looked up.
//!
//! Data flow: path and state in the list → the file here → [`FileMeta`], or the reason why it does not fit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use foreread_lists::FileState;
use foreread_plan::{Advice, FileId, FileMeta, PathMap};
use foreread_run::Making;
use foreread_sys::file::{FileFacts, open_regular};
use foreread_sys::way::{self, Links};
use foreread_words::units::bytes;
use foreread_words::{counted, shown};
use rustix::fs::FileType;

/// Number of files in the list, and of files that fit, by kind.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// Same size and modification time as in the list.
    by_time: u64,
    /// Same size, other modification time.
    by_size: u64,
    /// The list has no size.
    unsaid: u64,
    /// Directories and links, which are only looked up.
    names: u64,
    /// Files that do not fit, each with the reason.
    pub(super) left_out: Vec<String>,
}

impl Fit {
    /// Number of files that fit.
    pub(super) fn fitting(&self) -> u64 {
        self.by_time + self.by_size + self.unsaid + self.names
    }

    /// The same counts as text.
    pub(super) fn in_words(&self) -> String {
        let all = self.fitting() + self.left_out.len() as u64;
        let ways = [
            (self.by_time, "by size and time"),
            (self.by_size, "by size alone"),
            (self.unsaid, "by path, without a size to compare"),
            (self.names, "by name"),
        ];
        let ways: Vec<_> = ways
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, way)| format!("{count} {way}"))
            .collect();
        let how = if ways.is_empty() {
            String::new()
        } else {
            format!(": {}", ways.join(", "))
        };
        let all = counted(all, "file", "files");
        format!("{} of {all} fit here{how}", self.fitting())
    }
}

/// A file of a list, with its use.
pub(super) struct Wanted<'a> {
    pub(super) path: &'a Path,
    pub(super) state: FileState,
    pub(super) advice: Advice,
    pub(super) written: bool,
    /// True if its bytes are read.
    pub(super) is_read: bool,
}

/// The files of a list on this machine.
pub(super) struct Here {
    map: PathMap,
    /// The folder for relative paths.
    folder: PathBuf,
    /// The list's paths, each with its file.
    known: HashMap<PathBuf, Option<FileId>>,
    /// The files, by their resolved paths.
    places: HashMap<PathBuf, FileId>,
    sizes: Vec<u64>,
    pub(super) fit: Fit,
}

impl Here {
    pub(super) fn new(map: PathMap, folder: PathBuf) -> Self {
        Self {
            map,
            folder,
            known: HashMap::new(),
            places: HashMap::new(),
            sizes: Vec::new(),
            fit: Fit::default(),
        }
    }

    /// The file of a list, added to the new record; `None` if it does not fit.
    pub(super) fn find(
        &mut self,
        wanted: &Wanted<'_>,
        making: &mut Making,
    ) -> Result<Option<FileId>> {
        if let Some(&known) = self.known.get(wanted.path) {
            return Ok(known);
        }
        let path = self.folder.join(wanted.path);
        let found = look(&self.map.of(&path), wanted);
        let id = match found {
            Err(why) => {
                let path = wanted.path.to_string_lossy();
                self.fit
                    .left_out
                    .push(format!("{}: {why}; left out", shown(&path)));
                None
            }
            Ok((meta, fits)) => {
                match fits {
                    Fits::ByTime => self.fit.by_time += 1,
                    Fits::BySize => self.fit.by_size += 1,
                    Fits::Unsaid => self.fit.unsaid += 1,
                    Fits::ByName => self.fit.names += 1,
                }
                let next = FileId(self.sizes.len() as u32);
                let id = *self.places.entry(meta.path.clone()).or_insert(next);
                if id == next {
                    self.sizes.push(meta.size);
                    making.file(id, &meta)?;
                }
                Some(id)
            }
        };
        self.known.insert(wanted.path.to_owned(), id);
        Ok(id)
    }

    /// The size of a found file.
    pub(super) fn size(&self, id: FileId) -> u64 {
        self.sizes.get(id.0 as usize).copied().unwrap_or(0)
    }
}

/// The reason why a file fits.
#[derive(Clone, Copy)]
enum Fits {
    ByTime,
    BySize,
    Unsaid,
    ByName,
}

/// Looks up a path: the file, or the reason why it does not fit.
fn look(path: &Path, wanted: &Wanted<'_>) -> Result<(FileMeta, Fits), String> {
    let said = |why: std::io::Error| why.to_string();
    let of = |path: PathBuf, facts: FileFacts, directory: bool| FileMeta {
        written: wanted.written,
        advice: wanted.advice,
        directory,
        ..FileMeta::regular(path, (facts.dev, facts.ino), facts.size, facts.mtime_ns)
    };
    if !wanted.is_read {
        let found = way::find(path, Links::Refused).map_err(said)?;
        let stat = rustix::fs::fstat(&found).map_err(|why| said(why.into()))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            let facts = FileFacts::of(&found).map_err(said)?;
            let directory = kind == FileType::Directory;
            return Ok((of(path.to_owned(), facts, directory), Fits::ByName));
        }
    }
    let real = way::real(path).map_err(said)?;
    let (_, facts) = open_regular(&real).map_err(said)?;
    let fits = match (wanted.state.size, wanted.state.mtime_ns) {
        (Some(size), _) if size != facts.size => {
            let (here, there) = (bytes(facts.size), bytes(size));
            return Err(match here == there {
                true => format!("it has {} bytes here, not {size}", facts.size),
                false => format!("it has {here} here, not {there}"),
            });
        }
        (Some(_), Some(time)) if time == facts.mtime_ns => Fits::ByTime,
        (Some(_), _) => Fits::BySize,
        (None, _) => Fits::Unsaid,
    };
    Ok((of(real, facts, false), fits))
}
