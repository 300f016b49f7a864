//! Selects the next pending entry, and the entries fetched together with it.
//!
//! In program order it is the earliest entry, then those of small files that probably lie next to its own. In order of position it is the
//! next entry in the direction of the head, starting again at the beginning (C-LOOK), so reading `n` scattered pages costs one pass over
//! the device and not `n` seeks: libprefetch's reordering. In both orders neighbours, whenever they are due, form one request with it. Gaps
//! up to the profile's infill are read, because skipping them would cost more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use foreread_plan::{FileId, Kin, PAGE};
use smallvec::SmallVec;

use crate::gaps::is_on_the_way;
use crate::{Order, Profile};

/// A run of pages to fetch with one request, and the entries it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of its file's kin, where it was asked for in turn.
    pub kin: Option<Kin>,
    /// The file.
    pub file: FileId,
    /// The pages, gaps included.
    pub pages: Range<u64>,
    /// Ordinals of the entries served.
    pub ordinals: SmallVec<[u64; 4]>,
    /// Pages read only because they lie between others.
    pub infill: SmallVec<[Range<u64>; 1]>,
}

/// An entry's place among the pending ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepPlace {
    /// At this position on the device, in bytes.
    At(u64),
    /// In its turn; its neighbours are found by this.
    InTurn(Beside),
}

/// The key by which an entry in program order is found by its neighbours: for small files their kin, otherwise the file, and the first
/// page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beside {
    /// The number of its file's kin ([`Devices::kin`](crate::Devices::kin)).
    pub kin: Option<Kin>,
    /// The file.
    pub file: FileId,
    /// The first page.
    pub page: u64,
}

/// The pending entries of one device: their pages stay in the queue, which is asked by ordinal.
///
/// Some 34 bytes an entry by position, and two and a half times that in turn.
#[derive(Debug, Default)]
pub struct Sweep {
    /// In program order, by ordinal.
    in_turn: BTreeMap<u64, Beside>,
    /// The same, and the ordinal.
    neighbours: BTreeSet<(Beside, u64)>,
    /// By position: (position, ordinal).
    by_position: BTreeSet<(u64, u64)>,
    head: u64,
    /// From this ordinal on, entries by position are of a later pass.
    pass_ends: Option<u64>,
    /// These entries by ordinal: position and pages.
    later: BTreeMap<u64, (u64, u64)>,
}

impl Sweep {
    /// A sweep that serves nothing by position before [`Sweep::begin_pass`].
    pub(crate) fn in_passes() -> Self {
        Self {
            pass_ends: Some(0),
            ..Self::default()
        }
    }

    /// True if nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.in_turn.is_empty() && self.pass_is_over() && self.later.is_empty()
    }

    /// True if an entry may be requested; in program order, one up to `reach`.
    pub(crate) fn is_due(&self, reach: u64) -> bool {
        let first = self.in_turn.first_key_value();
        first.is_some_and(|(&ordinal, _)| ordinal <= reach)
            || !self.pass_is_over()
            || !self.later.is_empty()
    }

    /// True if this pass over the device is over.
    pub(crate) fn pass_is_over(&self) -> bool {
        self.by_position.is_empty()
    }

    /// Begin a pass of about `pages` pages: the entries that will be read first, and those on the way to them. Entries added
    /// later and read after them wait for the next pass. Gaps of up to `largest` pages are read along. Returns the pages of the
    /// entries that will be read first.
    pub(crate) fn begin_pass(&mut self, pages: u64, largest: u64) -> u64 {
        self.pass_ends.get_or_insert(0);
        let mut taken = 0;
        let mut places = Vec::new();
        while taken < pages
            && let Some((ordinal, (position, pages))) = self.later.pop_first()
        {
            taken += pages;
            self.by_position.insert((position, ordinal));
            places.push(position..position + pages * PAGE);
            self.pass_ends = Some(ordinal + 1);
        }
        places.sort_unstable_by_key(|place| place.start);
        self.take_along(&places, largest);
        taken
    }

    /// Adds to this pass, which visits these places in turn, the entries of later passes between them, if they are on the way.
    fn take_along(&mut self, places: &[Range<u64>], largest: u64) {
        let mut later: Vec<_> = self.later.iter().collect();
        later.sort_unstable_by_key(|(_, (position, _))| *position);
        let later: Vec<_> = later
            .into_iter()
            .map(|(&ordinal, &(position, pages))| (position, pages, ordinal))
            .collect();
        for pair in places.windows(2) {
            let between = pair[0].end..pair[1].start;
            let first = later.partition_point(|one| one.0 < between.start);
            let on_the_way = later[first..].iter().take_while(|one| one.0 < between.end);
            let (mut wanted, mut to) = (0, between.start);
            for &(position, pages, _) in on_the_way.clone() {
                let end = (position + pages * PAGE).min(between.end);
                wanted += end.saturating_sub(position.max(to)) / PAGE;
                to = to.max(end);
            }
            let gap = between.end.saturating_sub(between.start) / PAGE;
            if is_on_the_way(gap, wanted, largest) {
                for &(position, _, ordinal) in on_the_way {
                    self.later.remove(&ordinal);
                    self.by_position.insert((position, ordinal));
                }
            }
        }
    }

    /// Puts all pending entries, and all that are added from now on, in one pass.
    pub(crate) fn pass_over_all(&mut self) {
        self.begin_pass(u64::MAX, 0);
        self.pass_ends = None;
    }

    /// Adds an entry of this many pages.
    pub fn push(&mut self, place: SweepPlace, pages: u64, ordinal: u64) {
        match place {
            SweepPlace::At(position) if self.pass_ends.is_some_and(|end| ordinal >= end) => {
                self.later.insert(ordinal, (position, pages));
            }
            SweepPlace::At(position) => {
                self.by_position.insert((position, ordinal));
            }
            SweepPlace::InTurn(beside) => {
                self.in_turn.insert(ordinal, beside);
                self.neighbours.insert((beside, ordinal));
            }
        }
    }

    /// Takes the next range. `wanted` returns an entry's pages, or `None` if it was read or has expired: such entries are dropped and
    /// returned in `dropped`. In program order, an entry beyond the ordinal `reach` only joins an earlier one.
    pub fn next(
        &mut self,
        profile: &Profile,
        reach: u64,
        wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        match profile.order {
            Order::Program => self.next_in_turn(profile, reach, wanted, dropped),
            Order::Position => self.next_by_position(profile, wanted, dropped),
        }
    }

    fn next_in_turn(
        &mut self,
        profile: &Profile,
        reach: u64,
        mut wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        let mut batch = loop {
            let earliest = self.in_turn.first_entry()?;
            if *earliest.key() > reach {
                return None;
            }
            let (ordinal, beside) = earliest.remove_entry();
            self.neighbours.remove(&(beside, ordinal));
            match wanted(ordinal) {
                Some((file, pages)) => break Batch::of(beside.kin, file, pages, ordinal),
                None => dropped.push(ordinal),
            }
        };
        self.take_neighbours(&mut batch, profile, wanted, dropped);
        Some(batch)
    }

    /// Takes the next range of a small file of this kin, whenever it is due. See [`Sweep::next`].
    pub fn next_of_kin(
        &mut self,
        profile: &Profile,
        kin: Kin,
        mut wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        let kin = Some(kin);
        let first = Beside {
            kin,
            file: FileId(0),
            page: 0,
        };
        let mut batch = loop {
            let key = self.neighbours.range((first, 0)..).next().copied();
            let key = key.filter(|(beside, _)| beside.kin == kin)?;
            let ordinal = key.1;
            self.neighbours.remove(&key);
            self.in_turn.remove(&ordinal);
            match wanted(ordinal) {
                Some((file, pages)) => break Batch::of(kin, file, pages, ordinal),
                None => dropped.push(ordinal),
            }
        };
        self.take_neighbours(&mut batch, profile, wanted, dropped);
        Some(batch)
    }

    /// Takes a batch's neighbours in its file, whenever they are due.
    fn take_neighbours(
        &mut self,
        batch: &mut Batch,
        profile: &Profile,
        mut wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) {
        for neighbour in [Self::ahead_of, Self::behind] {
            while let Some(key) = neighbour(self, batch) {
                let ordinal = key.1;
                match wanted(ordinal) {
                    None => dropped.push(ordinal),
                    Some((_, pages)) if batch.reaches(&pages, profile) => {
                        batch.join(&pages, ordinal);
                    }
                    Some(_) => break,
                }
                self.neighbours.remove(&key);
                self.in_turn.remove(&ordinal);
            }
        }
    }

    /// The first pending entry that begins in the batch or after it, in its file.
    fn ahead_of(&self, batch: &Batch) -> Option<(Beside, u64)> {
        let key = self.neighbours.range((batch.begin(), 0)..).next().copied();
        key.filter(|(beside, _)| beside.file == batch.file)
    }

    /// The last pending entry that begins before the batch, in its file.
    fn behind(&self, batch: &Batch) -> Option<(Beside, u64)> {
        let before = self.neighbours.range(..(batch.begin(), 0));
        let key = before.last().copied();
        key.filter(|(beside, _)| beside.file == batch.file)
    }

    fn next_by_position(
        &mut self,
        profile: &Profile,
        mut wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        let mut batch: Option<(Batch, u64)> = None;
        let mut from = (self.head, 0);
        while let Some(key) = self.candidate(from, batch.is_none()) {
            let (position, ordinal) = key;
            let Some((file, pages)) = wanted(ordinal) else {
                self.by_position.remove(&key);
                dropped.push(ordinal);
                from = key;
                continue;
            };
            match &mut batch {
                None => batch = Some((Batch::of(None, file, pages, ordinal), position)),
                Some((batch, start)) => {
                    // As near on the device as in the file.
                    let ahead = pages.start.checked_sub(batch.pages.start);
                    if batch.file != file
                        || ahead.map(|pages| pages * PAGE) != Some(position - *start)
                        || !batch.reaches(&pages, profile)
                    {
                        break;
                    }
                    batch.join(&pages, ordinal);
                }
            }
            self.by_position.remove(&key);
            from = (position, ordinal + 1);
        }
        let (batch, start) = batch?;
        self.head = start + (batch.pages.end - batch.pages.start) * PAGE;
        Some(batch)
    }

    /// The first entry at or after `from`, or past the far end the very first one.
    fn candidate(&self, from: (u64, u64), wrap: bool) -> Option<(u64, u64)> {
        match self.by_position.range(from..).next() {
            None if wrap => self.by_position.first().copied(),
            ahead => ahead.copied(),
        }
    }

    /// Drop everything pending; the ordinals, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = u64> + use<> {
        self.neighbours.clear();
        let in_turn = std::mem::take(&mut self.in_turn);
        let by_position = std::mem::take(&mut self.by_position);
        let placed = by_position.into_iter().map(|(_, ordinal)| ordinal);
        let later = std::mem::take(&mut self.later);
        in_turn.into_keys().chain(placed).chain(later.into_keys())
    }
}

impl Batch {
    fn of(kin: Option<Kin>, file: FileId, pages: Range<u64>, ordinal: u64) -> Self {
        Self {
            kin,
            file,
            pages,
            ordinals: SmallVec::from_slice(&[ordinal]),
            infill: SmallVec::new(),
        }
    }

    /// The key of its beginning.
    fn begin(&self) -> Beside {
        Beside {
            kin: self.kin,
            file: self.file,
            page: self.pages.start,
        }
    }

    /// True if these pages of the same file may join the batch: they overlap or are near enough, and the size stays within the limit.
    fn reaches(&self, pages: &Range<u64>, profile: &Profile) -> bool {
        let end = self.pages.end.max(pages.end);
        pages.start <= self.pages.end + profile.infill_pages
            && self.pages.start <= pages.end + profile.infill_pages
            && end - self.pages.start.min(pages.start) <= profile.request_pages
    }

    /// Adds an entry that [`Batch::reaches`] permits. Nearer entries must have been added before.
    fn join(&mut self, pages: &Range<u64>, ordinal: u64) {
        if pages.start > self.pages.end {
            self.infill.push(self.pages.end..pages.start);
        } else if pages.start < self.pages.start {
            // An earlier beginning may belong to a longer entry, which reaches over gaps of nearer ones.
            for gap in &mut self.infill {
                gap.start = gap.start.max(pages.end);
            }
            self.infill.retain(|gap| gap.start < gap.end);
            if pages.end < self.pages.start {
                self.infill.insert(0, pages.end..self.pages.start);
            }
        }
        self.pages.start = self.pages.start.min(pages.start);
        self.pages.end = self.pages.end.max(pages.end);
        self.ordinals.push(ordinal);
    }
}

#[cfg(test)]
mod tests;
