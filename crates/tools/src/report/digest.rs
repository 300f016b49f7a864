//! A record as a report shows it: when its reads waited, for which files, in which processes.
//!
//! The record is gone through twice: first for its span and its files, then for everything that has bins.
//!
//! Invariant: what is kept is bounded by [`BINS`], [`FILES`], [`LANES`] and a map's [`COLUMNS`] and [`ROWS`], however long the record.
//!
//! Data flow: record → [`Digest`]; pure but for the reading.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use foreread_plan::format::Reader;
use foreread_plan::{Access, FileId, ThreadId};
use foreread_words::units::cut;
use foreread_words::{plain, shown};
use serde::Serialize;

/// Bins of time.
pub(crate) const BINS: usize = 480;
/// Files that get a map.
pub(crate) const FILES: usize = 10;
/// Processes that get a lane.
pub(crate) const LANES: usize = 24;
/// Characters of a path.
const PATH: usize = 240;
/// Cells of a map.
pub(crate) const COLUMNS: usize = 96;
pub(crate) const ROWS: usize = 32;

/// A record, digested. Times in ns, sizes in bytes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Digest {
    /// Time that the bins span, and the length of one.
    pub(crate) span_ns: u64,
    pub(crate) bin_ns: u64,
    /// Time that reads and names waited, by when they began, summed over threads.
    pub(crate) waited_ns: Vec<u64>,
    /// Bytes read.
    pub(crate) read_bytes: Vec<u64>,
    /// Reads, and reads that waited.
    pub(crate) reads: u64,
    pub(crate) reads_waited: u64,
    pub(crate) read_waited_ns: u64,
    /// Uses of names that waited, and how long.
    pub(crate) names_waited: u64,
    pub(crate) name_waited_ns: u64,
    /// Time in which nothing had to wait: an estimate, for threads may wait one after another or together.
    pub(crate) busy_ns: u64,
    /// The files that were waited for longest.
    pub(crate) files: Vec<File>,
    pub(crate) files_in_all: usize,
    /// All other files together, if they were waited for.
    pub(crate) others: Option<Others>,
    /// The processes that waited longest, in the order of their start.
    pub(crate) processes: Vec<Lane>,
    pub(crate) processes_in_all: usize,
    /// Why the record ends early, if it does.
    pub(crate) damage: Option<String>,
}

/// A file that reads waited for.
#[derive(Debug, Default, Serialize)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) reads: u64,
    pub(crate) reads_waited: u64,
    pub(crate) waited_ns: u64,
    pub(crate) bytes: u64,
    /// Of the time that reads waited, the share of reads that went on where the file's last read ended.
    pub(crate) onward_share: f64,
    pub(crate) map: Map,
}

/// Files of which none was waited for long, but all of them together may have been.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Others {
    /// The folder in which nine tenths of the waiting were.
    pub(crate) folder: String,
    /// Files in it that were waited for, reads of them that waited, and how long.
    pub(crate) files: u64,
    pub(crate) reads_waited: u64,
    pub(crate) waited_ns: u64,
}

/// Reads of a file by time and offset: in each cell, reads that waited and reads that did not.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Map {
    pub(crate) waited: Vec<u32>,
    pub(crate) at_once: Vec<u32>,
}

/// A process and when it waited.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Lane {
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) reads: u64,
    pub(crate) waited_ns: u64,
    pub(crate) bins: Vec<u64>,
}

/// A file, in the first pass.
#[derive(Default)]
struct Met {
    reads: u64,
    reads_waited: u64,
    waited_ns: u64,
    onward_ns: u64,
    bytes: u64,
    end: u64,
    most: u64,
}

/// Digests a record.
pub(crate) fn digest(reader: &mut Reader) -> Digest {
    let mut digest = Digest::default();
    let (mut files, mut lanes) = (HashMap::<FileId, Met>::new(), BTreeMap::<u32, Lane>::new());
    let pids: HashMap<ThreadId, u32> = reader
        .threads()
        .iter()
        .map(|(id, meta)| (*id, meta.pid))
        .collect();
    let mut last = 0;
    for access in reader.accesses() {
        let access = match access {
            Ok(access) => access,
            Err(why) => {
                digest.damage = Some(plain(&why.to_string()));
                break;
            }
        };
        last = last.max(access.start.saturating_add(access.took));
        digest.enter(&access);
        if access.kind.reads() {
            files.entry(access.file).or_default().enter(&access);
        }
        let pid = pids.get(&access.thread).copied().unwrap_or(0);
        let lane = lanes.entry(pid).or_default();
        lane.pid = pid;
        lane.reads += u64::from(access.kind.reads());
        lane.waited_ns = lane.waited_ns.saturating_add(waited(&access));
    }
    let wall = reader.summary().map_or(0, |summary| summary.wall_ns);
    digest.span_ns = wall.max(last).max(1);
    digest.bin_ns = digest.span_ns.div_ceil(BINS as u64).max(1);
    digest.waited_ns = vec![0; BINS];
    digest.read_bytes = vec![0; BINS];
    digest.files_in_all = files.len();
    digest.processes_in_all = lanes.len();
    let mut worst: Vec<(FileId, Met)> = files.into_iter().collect();
    worst.retain(|(_, met)| met.waited_ns > 0);
    worst.sort_by_key(|(file, met)| (Reverse(met.waited_ns), *file));
    let others = worst.split_off(worst.len().min(FILES));
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    lanes.sort_by_key(|lane| (Reverse(lane.waited_ns), lane.pid));
    lanes.truncate(LANES);
    lanes.sort_by_key(|lane| lane.pid);
    let programs: HashMap<u32, String> = reader
        .threads()
        .values()
        .map(|meta| (meta.pid, shown(&meta.exe).into_owned()))
        .collect();
    for lane in &mut lanes {
        lane.bins = vec![0; BINS];
        lane.program = programs.get(&lane.pid).cloned().unwrap_or_default();
    }
    let places: HashMap<FileId, (usize, u64)> = worst
        .iter()
        .enumerate()
        .map(|(place, (file, met))| (*file, (place, met.most.max(1))))
        .collect();
    let mut maps = vec![Map::new(); worst.len()];
    let lanes_of: HashMap<u32, usize> = lanes
        .iter()
        .enumerate()
        .map(|(place, lane)| (lane.pid, place))
        .collect();
    for access in reader.accesses().map_while(Result::ok) {
        digest.bin(&access);
        if access.kind.reads()
            && let Some(&(place, size)) = places.get(&access.file)
        {
            maps[place].enter(&access, digest.span_ns, size);
        }
        let lane = pids.get(&access.thread).and_then(|pid| lanes_of.get(pid));
        if let Some(&lane) = lane {
            spread(
                &mut lanes[lane].bins,
                digest.bin_ns,
                access.start,
                waited(&access),
            );
        }
    }
    digest.busy_ns = digest
        .waited_ns
        .iter()
        .fold(wall.max(last), |busy, waited| {
            busy.saturating_sub((*waited).min(digest.bin_ns))
        });
    let known = reader.files();
    let others = others.iter().filter_map(|(id, met)| {
        let path = &known.get(id)?.path;
        Some((path.as_path(), met.reads_waited, met.waited_ns))
    });
    digest.others = together(&others.collect::<Vec<_>>());
    digest.files = worst
        .into_iter()
        .zip(maps)
        .map(|((id, met), map)| File {
            path: known.get(&id).map_or_else(String::new, |meta| {
                cut(&shown(&meta.path.to_string_lossy()), PATH, true)
            }),
            size: known.get(&id).map_or(met.most, |meta| meta.size),
            reads: met.reads,
            reads_waited: met.reads_waited,
            waited_ns: met.waited_ns,
            bytes: met.bytes,
            onward_share: met.onward_ns as f64 / met.waited_ns as f64,
            map,
        })
        .collect();
    digest.processes = lanes;
    digest
}

/// What these files (path, reads that waited, time waited in ns) were waited for together, in the deepest folder that has nine tenths of
/// that.
fn together(files: &[(&Path, u64, u64)]) -> Option<Others> {
    let all = files.iter().map(|(.., waited)| waited).sum::<u64>();
    let mut inside = files.to_vec();
    let mut folder = PathBuf::new();
    loop {
        let mut below = BTreeMap::<&OsStr, u64>::new();
        for (path, _, waited) in &inside {
            let mut rest = path.strip_prefix(&folder).unwrap_or(path).components();
            // The last part is the file's own name.
            if let (Some(next), Some(_)) = (rest.next(), rest.next()) {
                *below.entry(next.as_os_str()).or_default() += waited;
            }
        }
        let most = below.into_iter().max_by_key(|(_, waited)| *waited);
        let Some((name, _)) = most.filter(|(_, waited)| *waited >= all / 10 * 9) else {
            break;
        };
        folder.push(name);
        inside.retain(|(path, ..)| path.starts_with(&folder));
    }
    (all > 0).then(|| Others {
        folder: cut(&shown(&folder.to_string_lossy()), PATH, true),
        files: inside.len() as u64,
        reads_waited: inside.iter().map(|(_, reads, _)| reads).sum(),
        waited_ns: inside.iter().map(|(.., waited)| waited).sum(),
    })
}

/// How long an access waited, in ns; nothing if it took no longer than one from memory.
fn waited(access: &Access) -> u64 {
    let counts = access.kind.reads() || access.kind.names();
    if counts && access.waited() {
        access.took
    } else {
        0
    }
}

/// Adds a wait to all the bins that it lasted through.
fn spread(bins: &mut [u64], width: u64, start: u64, mut length: u64) {
    let mut bin = ((start / width) as usize).min(bins.len() - 1);
    let mut room = width - start % width;
    while length > room && bin + 1 < bins.len() {
        bins[bin] = bins[bin].saturating_add(room);
        length -= room;
        bin += 1;
        room = width;
    }
    bins[bin] = bins[bin].saturating_add(length);
}

impl Digest {
    fn enter(&mut self, access: &Access) {
        let waited = waited(access);
        if access.kind.reads() {
            self.reads += 1;
            self.reads_waited += u64::from(waited > 0);
            self.read_waited_ns = self.read_waited_ns.saturating_add(waited);
        } else if waited > 0 {
            self.names_waited += 1;
            self.name_waited_ns = self.name_waited_ns.saturating_add(waited);
        }
    }

    fn bin(&mut self, access: &Access) {
        spread(
            &mut self.waited_ns,
            self.bin_ns,
            access.start,
            waited(access),
        );
        if access.kind.reads() {
            let bin = ((access.start / self.bin_ns) as usize).min(BINS - 1);
            self.read_bytes[bin] = self.read_bytes[bin].saturating_add(access.extent.len);
        }
    }
}

impl Met {
    fn enter(&mut self, access: &Access) {
        let waited = waited(access);
        self.reads += 1;
        self.reads_waited += u64::from(waited > 0);
        self.waited_ns = self.waited_ns.saturating_add(waited);
        // Before a file's first read nobody can know that it will go on.
        if access.extent.offset == self.end && self.reads > 1 {
            self.onward_ns = self.onward_ns.saturating_add(waited);
        }
        self.end = access.extent.end();
        self.most = self.most.max(self.end);
        self.bytes = self.bytes.saturating_add(access.extent.len);
    }
}

impl Map {
    fn new() -> Self {
        Self {
            waited: vec![0; COLUMNS * ROWS],
            at_once: vec![0; COLUMNS * ROWS],
        }
    }

    fn enter(&mut self, access: &Access, span: u64, size: u64) {
        let column = cell(access.start, span, COLUMNS);
        let row = cell(access.extent.offset, size, ROWS);
        let cells = match access.waited() {
            true => &mut self.waited,
            false => &mut self.at_once,
        };
        let cell = &mut cells[row * COLUMNS + column];
        *cell = cell.saturating_add(1);
    }
}

/// Which of `cells` a value below `whole` falls into; one beyond falls into the last.
fn cell(value: u64, whole: u64, cells: usize) -> usize {
    let cell = u128::from(value) * cells as u128 / u128::from(whole);
    (cell as usize).min(cells - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_of_by_the_deepest_folder_that_has_most_of_the_waiting() {
        let paths: Vec<_> = (0..100)
            .map(|n| format!("/srv/tree/{}/{n}", n % 7))
            .collect();
        let mut files: Vec<_> = paths.iter().map(|path| (Path::new(path), 2, 50)).collect();
        files.push((Path::new("/etc/one"), 1, 400));
        let others = together(&files).unwrap();
        assert_eq!((&*others.folder, others.files), ("/srv/tree", 100));
        assert_eq!((others.reads_waited, others.waited_ns), (200, 5000));
        files.push((Path::new("/etc/two"), 1, 4000));
        let others = together(&files).unwrap();
        assert_eq!((&*others.folder, others.files), ("/", 102));
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn a_wait_fills_the_bins_that_it_lasts_through_and_none_is_lost() {
        let mut bins = [0; 4];
        spread(&mut bins, 10, 5, 12);
        assert_eq!(bins, [5, 7, 0, 0]);
        spread(&mut bins, 10, 35, 1000);
        assert_eq!(bins, [5, 7, 0, 1000]);
        spread(&mut bins, 10, u64::MAX, 1);
        assert_eq!(bins.iter().sum::<u64>(), 1013);
    }
}
