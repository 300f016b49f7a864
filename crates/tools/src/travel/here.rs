//! The files of a list, looked for on this machine.
//!
//! A file fits if it has the size that the list says, or if the list says none. One that is read is opened, so that nothing gets into a
//! record that the user may not read; it has the path that leads to it without links, as an observed one has. What is only named is looked
//! up.
//!
//! Data flow: path and state of the list → what is there → [`FileMeta`], or why not.

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

/// How many files there were, and how many fit.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// Of the size and time that the list says.
    by_time: u64,
    /// Of the size, and another time.
    by_size: u64,
    /// The list does not say.
    unsaid: u64,
    /// Directories and links, which are only looked up.
    names: u64,
    /// Those left out, each with the reason.
    pub(super) left_out: Vec<String>,
}

impl Fit {
    /// Files that fit.
    pub(super) fn fitting(&self) -> u64 {
        self.by_time + self.by_size + self.unsaid + self.names
    }

    /// The same in words.
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

/// What is wanted of a file of a list.
pub(super) struct Wanted<'a> {
    pub(super) path: &'a Path,
    pub(super) state: FileState,
    pub(super) advice: Advice,
    pub(super) written: bool,
    /// Whether its bytes are read.
    pub(super) is_read: bool,
}

/// The files of a list, as they are here.
pub(super) struct Here {
    map: PathMap,
    /// What paths that are not absolute begin at.
    folder: PathBuf,
    /// The list's paths, each with its file.
    known: HashMap<PathBuf, Option<FileId>>,
    /// The files, by their paths here.
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

    /// The file of a list, entered into the record that is made of it; `None` if it does not fit.
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

    /// The size of a file that was found.
    pub(super) fn size(&self, id: FileId) -> u64 {
        self.sizes.get(id.0 as usize).copied().unwrap_or(0)
    }
}

/// By what a file fits.
#[derive(Clone, Copy)]
enum Fits {
    ByTime,
    BySize,
    Unsaid,
    ByName,
}

/// What is at a path, or why that does not fit.
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
