//! Decides which reads concern a list.

use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{Extent, FileId};

/// A region's number; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// Byte ranges of files, which may overlap.
#[derive(Debug, Default)]
pub(super) struct Regions {
    files: BTreeMap<FileId, Vec<(RegionId, Range<u64>)>>,
    next: u32,
}

impl Regions {
    pub(super) fn add(&mut self, file: FileId, bytes: Range<u64>) -> RegionId {
        let id = RegionId(self.next);
        self.next += 1;
        self.files.entry(file).or_default().push((id, bytes));
        id
    }

    /// Removes a region. True if it existed.
    pub(super) fn remove(&mut self, region: RegionId) -> bool {
        let found = self.files.iter_mut().find_map(|(&file, regions)| {
            let at = regions.iter().position(|&(id, _)| id == region)?;
            regions.swap_remove(at);
            Some((file, regions.is_empty()))
        });
        if let Some((file, true)) = found {
            self.files.remove(&file);
        }
        found.is_some()
    }

    pub(super) fn remove_file(&mut self, file: FileId) {
        self.files.remove(&file);
    }

    /// True if a read shares a byte with a region.
    pub(super) fn touch(&self, file: FileId, extent: Extent) -> bool {
        !extent.is_empty()
            && self.files.get(&file).is_some_and(|regions| {
                regions
                    .iter()
                    .any(|(_, bytes)| bytes.start < extent.end() && extent.offset < bytes.end)
            })
    }
}
