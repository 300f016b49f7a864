//! A record cut to a size or a number of files: the reads that waited longest are kept, in their order.
//!
//! Files are kept in the order of their total waiting. In these files, pieces of [`PIECE`] bytes are kept in the order of their waiting
//! divided by the room of their accesses in the record. Reads that did not wait are dropped first.
//!
//! Invariant: the new record keeps to the limits. If no part does, the earlier record stays.
//!
//! Data flow: a whole record, not yet in its place → waiting of each piece → a new record of the kept pieces ([`Making`]).

use std::cmp::Reverse;

use anyhow::{Result, bail};
use foreread_plan::format::{Ended, Place, Reader};
use foreread_plan::{Access, FileId, Summary};
use foreread_words::counted;
use foreread_words::units::{bytes, duration};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::making::{Made, Making};

/// Bytes of a file that are kept together or left out together.
const PIECE: u64 = 2 << 20;
/// Number of attempts to make the part smaller until its record fits: its compressed size is not known before.
const TRIES: u32 = 12;
/// Bytes of a file's definition in a record, besides its path.
const DEFINED: u64 = 32;

/// Limits of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that it takes.
    pub size: Option<u64>,
    /// Files.
    pub files: Option<u64>,
}

impl Limits {
    /// True if there are no limits.
    pub fn is_empty(&self) -> bool {
        self.size.is_none() && self.files.is_none()
    }
}

/// The part left out of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Files left out entirely.
    pub files: u64,
    /// Reads and uses of names.
    pub accesses: u64,
    /// Waiting of these accesses for devices, in ns.
    pub waited_ns: u64,
    /// Waiting of all accesses of the whole record, in ns.
    pub all_waited_ns: u64,
}

impl LeftOut {
    /// The same in words.
    pub fn in_words(&self) -> String {
        let files = match self.files {
            0 => String::new(),
            files => format!("{} and ", counted(files, "file", "files")),
        };
        format!(
            "{files}{} left out, which waited {} of {}",
            counted(self.accesses, "access", "accesses"),
            duration(self.waited_ns),
            duration(self.all_waited_ns)
        )
    }
}

/// A piece of a file; its uses of names are one by themselves.
type Piece = (FileId, Option<u64>);

fn piece(access: &Access) -> Piece {
    let at = access.extent.offset / PIECE;
    (access.file, (!access.kind.names()).then_some(at))
}

/// The sums of the accesses of a piece, or of a file.
#[derive(Clone, Copy, Default)]
struct Sum {
    /// Position of the piece in the order of first accesses.
    order: usize,
    accesses: u64,
    waited_ns: u64,
}

/// Cuts a record to the limits and puts it in its place. Returns what was left out, if anything.
///
/// # Errors
/// When the record cannot be read or written, or no part of it fits. The earlier record is unchanged then.
pub(super) fn cut(ended: Ended, place: &Place, limits: Limits) -> Result<Option<LeftOut>> {
    if limits.is_empty() {
        ended.take_place()?;
        return Ok(None);
    }
    let mut reader = ended.reader()?;
    let size = reader.size_bytes();
    let fits_size = limits.size.is_none_or(|limit| size <= limit);
    let fits_files = limits
        .files
        .is_none_or(|limit| reader.files().len() as u64 <= limit);
    if fits_size && fits_files {
        ended.take_place()?;
        return Ok(None);
    }
    let mut pieces: FxHashMap<Piece, Sum> = FxHashMap::default();
    let mut files: FxHashMap<FileId, Sum> = FxHashMap::default();
    for access in reader.accesses() {
        let access = access?;
        let waited = if access.waited() { access.took } else { 0 };
        let order = pieces.len();
        let add = |sum: &mut Sum| {
            sum.accesses += 1;
            sum.waited_ns += waited;
        };
        let piece = pieces.entry(piece(&access));
        add(piece.or_insert(Sum {
            order,
            ..Sum::default()
        }));
        let file = files.entry(access.file);
        add(file.or_insert(Sum {
            order,
            ..Sum::default()
        }));
    }
    let mut kept: Vec<_> = files.iter().collect();
    kept.sort_unstable_by_key(|(_, sum)| (Reverse(sum.waited_ns), sum.order));
    kept.truncate(limits.files.map_or(usize::MAX, |limit| limit as usize));
    let kept: FxHashSet<FileId> = kept.into_iter().map(|(&file, _)| file).collect();
    let mut ranked: Vec<(Piece, Sum)> = pieces.into_iter().collect();
    ranked.retain(|((file, _), _)| kept.contains(file));
    // By the time waited for each access, without a division.
    ranked.sort_unstable_by(|(_, a), (_, b)| {
        let cross = |a: &Sum, b: &Sum| u128::from(a.waited_ns) * u128::from(b.accesses);
        cross(b, a).cmp(&cross(a, b)).then(a.order.cmp(&b.order))
    });
    let accesses: u64 = files.values().map(|sum| sum.accesses).sum();
    let each = size as f64 / accesses.max(1) as f64;
    let mut room = limits.size.unwrap_or(u64::MAX) as f64;
    for _ in 0..TRIES {
        let chosen = chosen(&ranked, &reader, each, room);
        if chosen.is_empty() {
            break;
        }
        let made = written(place, &mut reader, &chosen)?;
        let size = made.size()?;
        let Some(limit) = limits.size.filter(|&limit| size > limit) else {
            let left = left_out(&files, &ranked, &chosen);
            made.take_place()?;
            return Ok(Some(left));
        };
        // The size of the chosen ones says how many more fit.
        room = room.min(limit as f64 * 4.0) * (limit as f64 / size as f64).min(0.9);
    }
    bail!(
        "{}: no part of the record fits into {}",
        place.path().display(),
        bytes(limits.size.unwrap_or(0))
    )
}

/// The pieces that fit into this room, in bytes, taken in the order of `ranked`. Each access takes `each` bytes.
fn chosen(ranked: &[(Piece, Sum)], reader: &Reader, each: f64, room: f64) -> FxHashSet<Piece> {
    let mut left = room;
    let mut files = FxHashSet::default();
    let mut chosen = FxHashSet::default();
    for (piece, sum) in ranked {
        let mut needs = sum.accesses as f64 * each;
        if !files.contains(&piece.0) {
            let path = reader.files().get(&piece.0);
            let path = path.map_or(0, |meta| meta.path.as_os_str().len());
            needs += (path as u64 + DEFINED) as f64;
        }
        if needs <= left {
            left -= needs;
            files.insert(piece.0);
            chosen.insert(*piece);
        }
    }
    chosen
}

/// The record of the chosen pieces, not yet in its place.
fn written(place: &Place, reader: &mut Reader, chosen: &FxHashSet<Piece>) -> Result<Made> {
    let mut making = Making::new(place, reader.meta().clone())?;
    let files: FxHashSet<FileId> = chosen.iter().map(|(file, _)| *file).collect();
    for (&thread, meta) in reader.threads() {
        making.thread(thread, meta)?;
    }
    let metas: Vec<_> = reader
        .files()
        .iter()
        .filter(|(id, _)| files.contains(id))
        .map(|(&id, meta)| (id, meta.clone()))
        .collect();
    for (id, meta) in &metas {
        making.file(*id, meta)?;
    }
    let summary = reader.summary().cloned();
    reader.rewind();
    for access in reader.accesses() {
        let access = access?;
        if chosen.contains(&piece(&access)) {
            making.access(&access)?;
        }
    }
    making.end(Summary {
        partial: true,
        ..summary.unwrap_or_default()
    })
}

fn left_out(
    files: &FxHashMap<FileId, Sum>,
    ranked: &[(Piece, Sum)],
    chosen: &FxHashSet<Piece>,
) -> LeftOut {
    let kept: FxHashSet<FileId> = chosen.iter().map(|(file, _)| *file).collect();
    let mut left = LeftOut {
        files: (files.len() - kept.len()) as u64,
        ..LeftOut::default()
    };
    for sum in files.values() {
        left.accesses += sum.accesses;
        left.all_waited_ns += sum.waited_ns;
    }
    left.waited_ns = left.all_waited_ns;
    for (_, sum) in ranked.iter().filter(|(piece, _)| chosen.contains(piece)) {
        left.accesses -= sum.accesses;
        left.waited_ns -= sum.waited_ns;
    }
    left
}
