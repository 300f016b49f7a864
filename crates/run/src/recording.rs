//! A record as a trace: its accesses in order, up to the first damage; and advice to the kernel on its files.
//!
//! Data flow: record → [`Recording`] → the core, or a sample of the plan for a record that is being written.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use foreread_backend::Collective;
use foreread_core::Trace;
use foreread_plan::format::Reader;
use foreread_plan::{self as plan, Access, Extent, Kind, PAGE};
use foreread_ring::Advice;
use foreread_sys::device::Device;
use foreread_sys::memory;

use super::files::{Recorded, Trouble};

/// Pages of a touch that are disclosed at a time. A touch is disclosed page by page, and one of a record written to mislead
/// may be of all pages there are.
const TOUCHED: u64 = 1024;

/// A record as a source of accesses, read up to its first damage.
pub(super) struct Recording {
    /// Set at the first use.
    reader: Option<Box<Reader>>,
    /// The rest of a long touch.
    touched: Option<Access>,
    trouble: Trouble,
    files: Arc<Recorded>,
    collective: Option<Collective>,
    /// True if it has the accesses to files that the recorded run wrote itself, and no others.
    of_rewritten: bool,
}

impl Recording {
    /// The record with these files, for a rank with this part of the collective cache.
    pub(super) fn new(
        files: &Arc<Recorded>,
        trouble: &Trouble,
        collective: Option<Collective>,
    ) -> Self {
        Self {
            reader: None,
            touched: None,
            trouble: Arc::clone(trouble),
            files: Arc::clone(files),
            collective,
            of_rewritten: false,
        }
    }

    /// The accesses to files that the recorded run wrote itself.
    pub(super) fn of_rewritten(files: &Arc<Recorded>) -> Self {
        Self {
            reader: files.reader_anew(),
            of_rewritten: true,
            ..Self::new(files, &Trouble::default(), None)
        }
    }

    fn reader(&mut self) -> Option<&mut Reader> {
        if self.reader.is_none() && !self.of_rewritten {
            self.reader = self.files.reader();
        }
        self.reader.as_deref_mut()
    }

    /// Skip accesses before this share of the record (0 to 1), as far as skipping is cheaper than reading them.
    pub(super) fn skip_to(&mut self, share: f64) {
        self.touched = None;
        if let Some(reader) = self.reader() {
            reader.skip_to(share);
        }
    }

    /// The next access to one of its files.
    fn advance(&mut self) -> Option<Access> {
        loop {
            match self.reader()?.next_access()? {
                Ok(access) if self.of_rewritten => {
                    if self.files.is_rewritten(access.file) {
                        return Some(access);
                    }
                }
                Ok(access) if self.files.skips(access.file) => {}
                Ok(access) => return Some(access),
                Err(why) => {
                    self.trouble.get_or_init(|| why.to_string());
                    return None;
                }
            }
        }
    }
}

impl Trace for Recording {
    fn next(&mut self) -> Option<Access> {
        let mut access = match self.touched.take() {
            Some(rest) => rest,
            None => self.advance()?,
        };
        if access.kind == Kind::Touch {
            let (first, rest) = split(access.extent);
            access.extent = first;
            self.touched = rest.map(|extent| Access { extent, ..access });
        }
        if !self.of_rewritten {
            access.file = self.files.first_name(access.file);
        }
        if access.kind.asks()
            && let Some(collective) = &self.collective
        {
            collective.ask(access.file);
        }
        Some(access)
    }
}

/// The first of an extent's pages, as many as are disclosed at a time, and the rest.
fn split(extent: Extent) -> (Extent, Option<Extent>) {
    let first = extent.pages().start.saturating_add(TOUCHED);
    let at = first.saturating_mul(PAGE);
    if at >= extent.end() {
        return (extent, None);
    }
    (
        Extent::new(extent.offset, at - extent.offset),
        Some(Extent::new(at, extent.end() - at)),
    )
}

/// Advice to the kernel on the files of a record.
pub(super) fn advice(recorded: &Recorded) -> impl Iterator<Item = (&Path, Advice)> {
    let mut devices = HashMap::new();
    let mut has_room = move |dev| {
        *devices.entry(dev).or_insert_with(|| {
            memory::has_room_for_streams(memory::budget(), Device::of(dev).read_ahead)
        })
    };
    let read = recorded.at_hand();
    let read = read.filter(|meta| !meta.written);
    read.filter_map(move |meta| {
        let advice = match meta.advice {
            plan::Advice::Random => Advice::Random,
            plan::Advice::Sequential if has_room(meta.dev) => Advice::Sequential,
            _ => return None,
        };
        Some((meta.path.as_path(), advice))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_of_all_pages_is_disclosed_a_few_at_a_time() {
        let pages = |extent: Extent| extent.pages().end - extent.pages().start;
        let whole = Extent::new(5000, 1 << 40);
        let (first, rest) = split(whole);
        let rest = rest.unwrap();
        assert_eq!((first.offset, first.end()), (5000, rest.offset));
        assert_eq!(rest.end(), whole.end());
        assert_eq!(pages(first), TOUCHED);
        let few = Extent::new(100, TOUCHED * PAGE - 100);
        assert_eq!(split(few), (few, None));
        for odd in [Extent::new(u64::MAX - 5, 5), Extent::new(0, u64::MAX)] {
            let (first, rest) = split(odd);
            assert!(pages(first) <= TOUCHED && rest.is_none_or(|rest| !rest.is_empty()));
        }
    }
}
