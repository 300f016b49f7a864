//! Reads a saved cache and finds the missing pages of unchanged files: same path, size and modification time.
//!
//! Data flow: record → pages of files, in order → files opened and compared → parts to be fetched, with their places on the device.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::Result;
use foreread_plan::format::{Ending, Reader};
use foreread_plan::{Access, FileId, FileMeta, Kind, PAGE};
use foreread_sys::file::{FileFacts, Opener, fiemap};
use foreread_sys::ready;

use super::LeftOut;
use super::mounts::Mounts;

/// Ranges of pages accepted at most, 16 bytes each: a hostile list could otherwise use up memory.
const RANGES: u64 = 1 << 24;

/// Pages of files, in order, each page once.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// Files in the order of their first entries.
    pub(super) files: Vec<(FileMeta, Vec<Range<u64>>)>,
    /// The reason why the list ends early, if it does.
    pub(super) trouble: Option<String>,
}

impl Saved {
    /// Reads a saved cache, or any record, up to its first damaged block.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut reader = Reader::open(path)?;
        let mut trouble = None;
        let mut order = Vec::new();
        let mut pages: HashMap<FileId, Vec<Range<u64>>> = HashMap::new();
        let mut left = RANGES;
        for access in reader.accesses() {
            let access = match access {
                Ok(access) => access,
                Err(why) => {
                    trouble = Some(why.to_string());
                    break;
                }
            };
            if left == 0 {
                trouble = Some(format!("{}: more than {RANGES} ranges", path.display()));
                break;
            }
            if !reads(&access) {
                continue;
            }
            let all = pages.entry(access.file).or_insert_with(|| {
                order.push(access.file);
                Vec::new()
            });
            let added = access.extent.pages();
            match all.last_mut().filter(|last| last.end == added.start) {
                Some(last) => last.end = added.end,
                None => {
                    left -= 1;
                    all.push(added);
                }
            }
        }
        if trouble.is_none()
            && let Ending::Truncated { at } = reader.ending()
        {
            trouble = Some(format!("{} ends early, at byte {at}", path.display()));
        }
        let metas = reader.files();
        let files = order.into_iter().filter_map(|id| {
            let meta = metas.get(&id)?;
            Some((meta.clone(), normal(pages.remove(&id)?)))
        });
        Ok(Self {
            files: files.collect(),
            trouble,
        })
    }
}

fn reads(access: &Access) -> bool {
    (access.kind.reads() || access.kind == Kind::Touch) && !access.extent.is_empty()
}

/// Sorts and joins ranges.
fn normal(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|pages| pages.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for pages in all {
        match joined.last_mut().filter(|last| last.end >= pages.start) {
            Some(last) => last.end = last.end.max(pages.end),
            None => joined.push(pages),
        }
    }
    joined
}

/// The pages of `all` that are not in `there`; both are sorted.
pub(super) fn without(all: &[Range<u64>], there: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut there = there.iter().peekable();
    for pages in all {
        let mut start = pages.start;
        while let Some(known) = there.peek() {
            if known.end <= start {
                there.next();
            } else if known.start >= pages.end {
                break;
            } else {
                if known.start > start {
                    left.push(start..known.start);
                }
                start = known.end.min(pages.end);
                if known.end >= pages.end {
                    break;
                }
            }
        }
        if start < pages.end {
            left.push(start..pages.end);
        }
    }
    left
}

pub(super) fn count(all: &[Range<u64>]) -> u64 {
    all.iter().map(|pages| pages.end - pages.start).sum()
}

/// The place of a part: device and position, or the position in the file if the former is unknown.
type Origin = (u64, Option<u64>, u64, u64);

/// The pages to be fetched.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The files, in their present state.
    pub(super) files: BTreeMap<FileId, FileMeta>,
    /// Pages to be fetched, by file.
    pub(super) missing: Vec<(FileId, Vec<Range<u64>>)>,
    /// These pages in parts, in their order on the devices.
    pub(super) parts: Vec<(FileId, Range<u64>)>,
    /// Pages already in memory.
    pub(super) there: u64,
    /// Pages to be fetched.
    pub(super) fetched: u64,
    /// Pages left out because memory is short.
    pub(super) beyond: u64,
    /// Unchanged files.
    pub(super) fitting: u64,
    pub(super) changed: LeftOut,
    pub(super) gone: LeftOut,
}

impl Wanted {
    /// Finds the pages of a saved cache that are to be fetched, up to this many pages.
    pub(super) fn of(saved: &Saved, mounts: &Mounts, opener: &Opener, most: u64) -> Self {
        let mut wanted = Self::default();
        let mut parts: Vec<(Origin, FileId, Range<u64>)> = Vec::new();
        for (number, (meta, pages)) in saved.files.iter().enumerate() {
            let id = FileId(number as u32);
            let Some((file, facts)) = wanted.find(meta, mounts, opener) else {
                continue;
            };
            wanted.fitting += 1;
            let size = facts.size.div_ceil(PAGE);
            let within = pages
                .iter()
                .map(|pages| pages.start.min(size)..pages.end.min(size));
            let pages: Vec<_> = within.filter(|pages| !pages.is_empty()).collect();
            let there = ready::pages(&file, &facts).unwrap_or_default();
            let mut missing = without(&pages, &there);
            let all = count(&missing);
            wanted.there += count(&pages) - all;
            cut(&mut missing, most - wanted.fetched);
            let fetched = count(&missing);
            wanted.fetched += fetched;
            wanted.beyond += all - fetched;
            if missing.is_empty() {
                continue;
            }
            place(&file, &facts, &missing, |place, pages| {
                parts.push((place, id, pages));
            });
            wanted.files.insert(
                id,
                FileMeta {
                    dev: facts.dev,
                    ino: facts.ino,
                    ..meta.clone()
                },
            );
            wanted.missing.push((id, missing));
        }
        parts.sort_unstable_by_key(|(place, _, _)| *place);
        wanted.parts = parts
            .into_iter()
            .map(|(_, id, pages)| (id, pages))
            .collect();
        wanted
    }

    /// Opens a file if it is unchanged.
    fn find(
        &mut self,
        meta: &FileMeta,
        mounts: &Mounts,
        opener: &Opener,
    ) -> Option<(OwnedFd, FileFacts)> {
        if let Some(kind) = mounts.refused(&meta.path) {
            self.gone
                .add(&meta.path, &format!("on {kind}, no local file system"));
            return None;
        }
        let (file, facts) = match opener.open(&meta.path) {
            Ok(found) => found,
            Err(why) => {
                self.gone.add(&meta.path, &why);
                return None;
            }
        };
        // Devices and inodes may have other numbers after a restart or on another machine.
        if (facts.size, facts.mtime_ns) != (meta.size, meta.mtime_ns) {
            self.changed.add(
                &meta.path,
                &match facts.size == meta.size {
                    true => "written to since".to_owned(),
                    false => format!("was {} bytes, is {}", meta.size, facts.size),
                },
            );
            return None;
        }
        Some((file, facts))
    }
}

/// Drops the pages beyond this number.
fn cut(all: &mut Vec<Range<u64>>, mut most: u64) {
    all.retain_mut(|pages| {
        pages.end = pages.end.min(pages.start.saturating_add(most));
        most -= pages.end - pages.start;
        !pages.is_empty()
    });
}

/// Splits a file's pages into parts that are contiguous on the device.
fn place(
    file: &OwnedFd,
    facts: &FileFacts,
    all: &[Range<u64>],
    mut put: impl FnMut(Origin, Range<u64>),
) {
    let extents = fiemap(file, 0..facts.size).unwrap_or_default();
    let FileFacts { dev, ino, .. } = *facts;
    for pages in all {
        let mut start = pages.start;
        let first = extents.partition_point(|extent| extent.logical + extent.len <= start * PAGE);
        for extent in &extents[first..] {
            let known = extent.logical / PAGE..(extent.logical + extent.len).div_ceil(PAGE);
            if known.start >= pages.end {
                break;
            }
            if known.start > start {
                put((dev, None, ino, start), start..known.start);
                start = known.start;
            }
            let end = known.end.min(pages.end);
            if end > start {
                let at = extent.physical + (start * PAGE).saturating_sub(extent.logical);
                put((dev, Some(at), ino, start), start..end);
                start = end;
            }
        }
        if start < pages.end {
            put((dev, None, ino, start), start..pages.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..200, 1u64..20), 0..30).prop_map(|all| {
            normal(
                all.into_iter()
                    .map(|(start, len)| start..start + len)
                    .collect(),
            )
        })
    }

    fn set(all: &[Range<u64>]) -> BTreeSet<u64> {
        all.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn what_is_missing_is_what_is_not_there(all in ranges(), there in ranges(), most in 0u64..300) {
            let mut left = without(&all, &there);
            let expected: BTreeSet<u64> = set(&all).difference(&set(&there)).copied().collect();
            prop_assert_eq!(&set(&left), &expected);
            prop_assert_eq!(count(&left), expected.len() as u64);
            cut(&mut left, most);
            prop_assert_eq!(count(&left), most.min(expected.len() as u64));
            prop_assert!(set(&left).into_iter().eq(expected.into_iter().take(most as usize)));
        }
    }
}
