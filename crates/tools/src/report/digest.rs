//! A record condensed for a report: when its reads waited, for which files, in which processes.
//!
//! The record is read twice: first for its duration and its files, then for everything in bins.
//!
//! Invariant: memory is bounded by [`BINS`], [`FILES`], [`LANES`], [`COLUMNS`] and [`ROWS`], for records of any length.
//!
//! Data flow: record, and the fate of its files' pages in the last run → [`Digest`]. Pure except for the reading.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use foreread_plan::format::Reader;
use foreread_plan::{Access, FileId, ThreadId};
use foreread_run::{Fate, FileFates};
use foreread_words::units::cut;
use foreread_words::{plain, shown};
use serde::Serialize;

/// Number of bins of time.
pub(crate) const BINS: usize = 480;
/// Number of files with a map.
pub(crate) const FILES: usize = 10;
/// Number of files that are listed individually, at most.
const ALONE: usize = 4;
/// Waits below `1 / SMALL` of the run are not mentioned.
pub(crate) const SMALL: u64 = 50;
/// Number of processes with a lane, and bins of time per lane.
pub(crate) const LANES: usize = 24;
pub(crate) const LANE_BINS: usize = BINS / 2;
/// Longest path, in characters.
const PATH: usize = 240;
/// Cells of a map.
pub(crate) const COLUMNS: usize = 96;
pub(crate) const ROWS: usize = 32;

/// A condensed record. Times in ns, sizes in bytes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Digest {
    /// Time that all bins span, and length of one bin.
    pub(crate) span_ns: u64,
    pub(crate) bin_ns: u64,
    /// Waiting of reads and names, by start time, summed over threads.
    pub(crate) waited_ns: Vec<u64>,
    /// Bytes read.
    pub(crate) read_bytes: Vec<u64>,
    /// Number of reads, and of reads that waited.
    pub(crate) reads: u64,
    pub(crate) reads_waited: u64,
    pub(crate) read_waited_ns: u64,
    /// Number of uses of names that waited, and their waiting.
    pub(crate) names_waited: u64,
    pub(crate) name_waited_ns: u64,
    /// Time without waiting. An estimate: threads may wait one after another or at the same time.
    pub(crate) busy_ns: u64,
    /// The files with most waiting.
    pub(crate) files: Vec<File>,
    pub(crate) files_in_all: usize,
    /// All other files with waiting, together.
    pub(crate) others: Option<Others>,
    /// The processes with most waiting, in the order of their starts.
    pub(crate) processes: Vec<Lane>,
    pub(crate) processes_in_all: usize,
    /// The reason why the record ends early, if it does.
    pub(crate) damage: Option<String>,
}

/// A file with waiting reads.
#[derive(Debug, Default, Serialize)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) reads: u64,
    pub(crate) reads_waited: u64,
    pub(crate) waited_ns: u64,
    pub(crate) bytes: u64,
    /// Share of the reads' waiting in reads that began where the file's previous read ended.
    pub(crate) onward_share: f64,
    /// True if no read began before the end of the file's previous read.
    pub(crate) goes_on: bool,
    /// True if a read began beyond the end of the file's previous read.
    pub(crate) has_gaps: bool,
    /// True if the file is listed individually.
    #[serde(skip)]
    pub(crate) alone: bool,
    /// Bytes of each fate in the last run, in the order of [`Fate::ALL`], if known.
    pub(crate) fates: Option<[u64; Fate::ALL.len()]>,
    pub(crate) map: Map,
}

/// The order of a file's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most of the waiting is in reads that began where the previous read ended.
    Onward,
    /// Each read began at or beyond the end of the previous read.
    Gaps,
    /// Any other.
    Scattered,
}

impl File {
    /// The order of the file's reads; `None` if at most one read waited, or if the file was read front to back and only the first read
    /// waited long.
    pub(crate) fn order(&self) -> Option<Order> {
        match self.onward_share > 0.5 {
            _ if self.reads_waited <= 1 => None,
            true => Some(Order::Onward),
            false if !self.goes_on => Some(Order::Scattered),
            false => self.has_gaps.then_some(Order::Gaps),
        }
    }
}

/// Files with little waiting each, taken together.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Others {
    /// The folder with nine tenths of the waiting; for a single file, its path.
    pub(crate) place: String,
    /// Files in the folder with waiting, their waiting reads, and the waiting.
    pub(crate) files: u64,
    pub(crate) reads_waited: u64,
    pub(crate) waited_ns: u64,
}

/// Reads of a file by time and offset: each cell counts reads that waited and reads that did not.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Map {
    pub(crate) waited: Vec<u32>,
    pub(crate) at_once: Vec<u32>,
    /// The worst fate in the last run, by cell; empty if not known.
    pub(crate) fates: Vec<Option<Fate>>,
}

/// A process, with its waiting over time.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Lane {
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) reads: u64,
    pub(crate) waited_ns: u64,
    /// Waiting in ns and bytes read, by time.
    pub(crate) bins: Vec<u64>,
    pub(crate) read_bytes: Vec<u64>,
}

/// A file's totals in the first pass.
#[derive(Default)]
struct Met {
    reads: u64,
    reads_waited: u64,
    waited_ns: u64,
    onward_ns: u64,
    went_back: bool,
    has_gaps: bool,
    bytes: u64,
    end: u64,
    most: u64,
}

/// Number of reads of a file that waited, and their waiting.
#[derive(Clone, Copy)]
struct Wait<'a> {
    path: &'a Path,
    reads: u64,
    waited_ns: u64,
}

/// Condenses a record. The maps show the fate of the files' pages in the last run.
pub(crate) fn digest(reader: &mut Reader, fates: &[FileFates]) -> Digest {
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
    let known = reader.files();
    let waits: Vec<Wait<'_>> = worst
        .iter()
        .map(|(id, met)| Wait {
            path: known.get(id).map_or(Path::new(""), |meta| &meta.path),
            reads: met.reads_waited,
            waited_ns: met.waited_ns,
        })
        .collect();
    let (alone, others) = apart(&waits, digest.span_ns / SMALL);
    digest.others = others;
    worst.truncate(FILES);
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
        lane.bins = vec![0; LANE_BINS];
        lane.read_bytes = vec![0; LANE_BINS];
        lane.program = programs.get(&lane.pid).cloned().unwrap_or_default();
    }
    let places: HashMap<FileId, (usize, u64)> = worst
        .iter()
        .enumerate()
        .map(|(place, (file, met))| (*file, (place, met.most.max(1))))
        .collect();
    let fates: Vec<Option<&FileFates>> = worst
        .iter()
        .map(|(file, _)| {
            let path = shown(&known.get(file)?.path.to_string_lossy()).into_owned();
            fates.iter().find(|one| one.path == path)
        })
        .collect();
    let mut maps: Vec<Map> = fates.iter().map(|one| Map::new(one.is_some())).collect();
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
            let fate = fates[place].and_then(|of| fate(&of.runs, access.extent.pages()));
            maps[place].enter(&access, digest.span_ns, size, fate);
        }
        let lane = pids.get(&access.thread).and_then(|pid| lanes_of.get(pid));
        if let Some(lane) = lane.map(|place| &mut lanes[*place]) {
            lane.enter(&access, digest.span_ns);
        }
    }
    digest.busy_ns = digest
        .waited_ns
        .iter()
        .fold(wall.max(last), |busy, waited| {
            busy.saturating_sub((*waited).min(digest.bin_ns))
        });
    let known = reader.files();
    digest.files = worst
        .into_iter()
        .zip(maps)
        .enumerate()
        .map(|(place, ((id, met), map))| File {
            path: known.get(&id).map_or_else(String::new, |meta| {
                cut(&shown(&meta.path.to_string_lossy()), PATH, true)
            }),
            size: known.get(&id).map_or(met.most, |meta| meta.size),
            reads: met.reads,
            reads_waited: met.reads_waited,
            waited_ns: met.waited_ns,
            bytes: met.bytes,
            onward_share: met.onward_ns as f64 / met.waited_ns as f64,
            goes_on: !met.went_back,
            has_gaps: met.has_gaps,
            alone: alone.contains(&place),
            fates: fates[place].map(|one| one.bytes),
            map,
        })
        .collect();
    digest.processes = lanes;
    digest
}

/// Divides files, sorted by waiting, into individually listed ones and all others together. A file with one wait, no longer than those of
/// its folder, belongs to the others: of many small files some always take longest.
fn apart(files: &[Wait<'_>], small: u64) -> (Vec<usize>, Option<Others>) {
    let long = files.iter().take(ALONE);
    let long = long.take_while(|file| file.waited_ns >= small).count();
    let (long, short) = files.split_at(long);
    let (folder, inside) = crowd(short);
    let crowded: u64 = inside.iter().map(|file| file.waited_ns).sum();
    let is_alone = |file: &Wait<'_>| {
        let is_near = folder.parent().is_some() && file.path.starts_with(&folder);
        !is_near || file.reads > 1 || file.waited_ns >= crowded
    };
    let alone: Vec<usize> = (0..long.len()).filter(|n| is_alone(&long[*n])).collect();
    let one_of_many = long.iter().filter(|file| !is_alone(file));
    let others: Vec<Wait<'_>> = one_of_many.chain(short).copied().collect();
    (alone, together(&others))
}

/// The deepest folder with nine tenths of these files' waiting, and its files.
fn crowd<'a>(files: &[Wait<'a>]) -> (PathBuf, Vec<Wait<'a>>) {
    let all = files.iter().map(|file| file.waited_ns).sum::<u64>();
    let mut inside = files.to_vec();
    let mut folder = PathBuf::new();
    loop {
        let mut below = BTreeMap::<&OsStr, u64>::new();
        for file in &inside {
            let rest = file.path.strip_prefix(&folder).unwrap_or(file.path);
            let mut rest = rest.components();
            // The last part is the name of the file itself.
            if let (Some(next), Some(_)) = (rest.next(), rest.next()) {
                *below.entry(next.as_os_str()).or_default() += file.waited_ns;
            }
        }
        let most = below.into_iter().max_by_key(|(_, waited)| *waited);
        let Some((name, _)) = most.filter(|(_, waited)| *waited >= all / 10 * 9) else {
            break;
        };
        folder.push(name);
        inside.retain(|file| file.path.starts_with(&folder));
    }
    (folder, inside)
}

/// The waiting for these files together, with the folder that has most of it.
fn together(files: &[Wait<'_>]) -> Option<Others> {
    let (folder, inside) = crowd(files);
    let place = match inside[..] {
        [] => return None,
        [one] => one.path,
        _ => &folder,
    };
    Some(Others {
        place: cut(&shown(&place.to_string_lossy()), PATH, true),
        files: inside.len() as u64,
        reads_waited: inside.iter().map(|file| file.reads).sum(),
        waited_ns: inside.iter().map(|file| file.waited_ns).sum(),
    })
}

/// Waiting of an access, in ns; 0 if it took no longer than an access to memory.
fn waited(access: &Access) -> u64 {
    let counts = access.kind.reads() || access.kind.names();
    if counts && access.waited() {
        access.took
    } else {
        0
    }
}

/// Adds a wait to all bins that it spans.
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
        count_bytes(&mut self.read_bytes, self.bin_ns, access);
    }
}

impl Lane {
    fn enter(&mut self, access: &Access, span_ns: u64) {
        let bin_ns = span_ns.div_ceil(LANE_BINS as u64);
        spread(&mut self.bins, bin_ns, access.start, waited(access));
        count_bytes(&mut self.read_bytes, bin_ns, access);
    }
}

/// Adds the bytes of an access to the bin of its start.
fn count_bytes(bins: &mut [u64], width: u64, access: &Access) {
    if access.kind.reads() {
        let bin = ((access.start / width) as usize).min(bins.len() - 1);
        bins[bin] = bins[bin].saturating_add(access.extent.len);
    }
}

impl Met {
    fn enter(&mut self, access: &Access) {
        let waited = waited(access);
        self.reads += 1;
        self.reads_waited += u64::from(waited > 0);
        self.waited_ns = self.waited_ns.saturating_add(waited);
        // The first read of a file continues no other read.
        if access.extent.offset == self.end && self.reads > 1 {
            self.onward_ns = self.onward_ns.saturating_add(waited);
        }
        self.went_back |= access.extent.offset < self.end;
        self.has_gaps |= access.extent.offset > self.end && self.reads > 1;
        self.end = access.extent.end();
        self.most = self.most.max(self.end);
        self.bytes = self.bytes.saturating_add(access.extent.len);
    }
}

impl Map {
    fn new(has_fates: bool) -> Self {
        Self {
            waited: vec![0; COLUMNS * ROWS],
            at_once: vec![0; COLUMNS * ROWS],
            fates: vec![None; if has_fates { COLUMNS * ROWS } else { 0 }],
        }
    }

    fn enter(&mut self, access: &Access, span: u64, size: u64, fate: Option<Fate>) {
        let column = cell(access.start, span, COLUMNS);
        let row = cell(access.extent.offset, size, ROWS);
        let cells = match access.waited() {
            true => &mut self.waited,
            false => &mut self.at_once,
        };
        let at = row * COLUMNS + column;
        cells[at] = cells[at].saturating_add(1);
        if let Some(known) = self.fates.get_mut(at) {
            *known = worse(*known, fate);
        }
    }
}

/// The worst fate of these pages.
fn fate(runs: &[(u64, Fate)], pages: Range<u64>) -> Option<Fate> {
    let before = runs.partition_point(|(page, _)| *page <= pages.start);
    let here = runs[before.saturating_sub(1)..].iter();
    let here = here.take_while(|(page, _)| *page < pages.end);
    here.map(|(_, fate)| Some(*fate)).fold(None, worse)
}

/// The worse of two fates; a read that waited is worse than all others.
fn worse(one: Option<Fate>, other: Option<Fate>) -> Option<Fate> {
    let order = [
        Fate::InMemory,
        Fate::Kernel,
        Fate::Useful,
        Fate::Unknown,
        Fate::Wasted,
        Fate::Late,
        Fate::Missed,
    ];
    let place = |fate: &Option<Fate>| order.iter().position(|one| Some(*one) == *fate);
    std::cmp::max_by_key(one, other, place)
}

/// The cell of a value below `whole`; larger values belong to the last cell.
fn cell(value: u64, whole: u64, cells: usize) -> usize {
    let cell = u128::from(value) * cells as u128 / u128::from(whole);
    (cell as usize).min(cells - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(path: &str, reads: u64, waited_ns: u64) -> Wait<'_> {
        Wait {
            path: Path::new(path),
            reads,
            waited_ns,
        }
    }

    #[test]
    fn files_are_told_of_by_the_deepest_folder_that_has_most_of_the_waiting() {
        let paths: Vec<_> = (0..100)
            .map(|n| format!("/srv/tree/{}/{n}", n % 7))
            .collect();
        let mut files: Vec<_> = paths.iter().map(|path| wait(path, 2, 50)).collect();
        files.push(wait("/etc/one", 1, 400));
        let others = together(&files).unwrap();
        assert_eq!((&*others.place, others.files), ("/srv/tree", 100));
        assert_eq!((others.reads_waited, others.waited_ns), (200, 5000));
        files.push(wait("/etc/two", 1, 4000));
        let others = together(&files).unwrap();
        assert_eq!((&*others.place, others.files), ("/", 102));
        assert_eq!(together(&[]), None);
        let one = together(&[wait("/etc/one", 1, 400)]).unwrap();
        assert_eq!((&*one.place, one.files), ("/etc/one", 1));
    }

    #[test]
    fn of_many_small_files_those_that_took_longest_are_not_told_of_by_themselves() {
        let paths: Vec<_> = (0..100)
            .map(|n| format!("/srv/tree/{}/{n}", n % 7))
            .collect();
        let mut files = vec![
            // Longer than all the others of its folder together.
            wait("/srv/tree/0/large", 1, 9000),
            wait("/srv/tree/0/index", 30, 900),
            wait("/etc/one", 1, 800),
            wait("/srv/tree/0/slow", 1, 700),
            // The fifth: at most four are listed individually.
            wait("/srv/tree/1/slow", 1, 600),
        ];
        files.extend(paths.iter().map(|path| wait(path, 1, 20)));
        let (alone, others) = apart(&files, 500);
        let others = others.unwrap();
        assert_eq!(alone, [0, 1, 2]);
        assert_eq!((&*others.place, others.files), ("/srv/tree", 102));
        assert_eq!(others.waited_ns, 700 + 600 + 2000);
        // Files without a common folder have no place.
        let apart_from_each_other = [
            wait("/a/1", 1, 90),
            wait("/b/2", 1, 50),
            wait("/c/3", 1, 50),
        ];
        assert_eq!(apart(&apart_from_each_other, 60).0, [0]);
    }

    #[test]
    fn what_became_of_a_read_is_the_worst_that_became_of_its_pages() {
        let runs = [(10, Fate::Useful), (20, Fate::Late), (21, Fate::InMemory)];
        let of = |pages| fate(&runs, pages);
        assert_eq!(of(0..10), None);
        assert_eq!(of(0..11), Some(Fate::Useful));
        assert_eq!(of(19..20), Some(Fate::Useful));
        assert_eq!(of(15..40), Some(Fate::Late));
        assert_eq!(of(100..101), Some(Fate::InMemory));
        assert_eq!(fate(&[], 0..1), None);
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
