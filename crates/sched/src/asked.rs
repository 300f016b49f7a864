//! What was asked of a device for the program.

use std::ops::Range;

use foreread_plan::Request;
use smallvec::SmallVec;

/// A request whose entries the program has not all passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// Pages of it that no entry asked for.
    pub infill: SmallVec<[Range<u64>; 1]>,
    /// Whether the infill is held in the budget.
    pub(crate) held: bool,
}

impl Asked {
    /// The pages that some entry asked for.
    pub fn wanted(&self) -> impl Iterator<Item = Range<u64>> {
        let pages = &self.request.pages;
        let starts = std::iter::once(pages.start).chain(self.infill.iter().map(|gap| gap.end));
        let ends = self.infill.iter().map(|gap| gap.start);
        starts
            .zip(ends.chain(std::iter::once(pages.end)))
            .map(|(start, end)| start..end)
    }

    /// Pages to release from the budget, once.
    pub(crate) fn let_go(&mut self) -> u64 {
        if std::mem::take(&mut self.held) {
            self.infill.iter().map(|gap| gap.end - gap.start).sum()
        } else {
            0
        }
    }
}
