//! The filled pages of each file, from which lost pages are found.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use foreread_plan::FileId;
use foreread_segment::{Key, PART, PARTS, Segment, version};
use foreread_sys::file::FileFacts;

use crate::{Answer, Question, Standing};

/// Time stamps of whole seconds differ after this time, with as much again for clocks of hosts that differ.
const COARSE: Duration = Duration::from_secs(2);
/// Other time stamps differ after this time: they are as coarse as a tick of the kernel's clock, 10 ms at most.
const FINE: Duration = Duration::from_millis(20);

/// The state of a file: its size and times.
#[derive(Clone, Copy, Debug)]
struct State {
    version: u64,
    /// When it was first seen.
    since: Instant,
    /// Time after that from which each change leads to another state.
    settles: Duration,
}

impl State {
    fn of(facts: &FileFacts) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let changed = Duration::from_nanos(facts.ctime_ns.max(0).cast_unsigned());
        let settles = match facts.ctime_ns % 1_000_000_000 {
            _ if now.is_ok_and(|now| now > changed + COARSE) => Duration::ZERO,
            0 => COARSE,
            _ => FINE,
        };
        Self {
            version: version(facts.size, facts.mtime_ns, facts.ctime_ns),
            since: Instant::now(),
            settles,
        }
    }
}

/// A file in its state at the last examination.
#[derive(Debug)]
struct Seen {
    dev: u64,
    ino: u64,
    /// In bytes.
    size: u64,
    state: State,
    /// Its pages, by number.
    pages: HashMap<u64, Parts>,
}

/// The result of examining a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    /// Its state.
    pub(super) version: u64,
    /// Time for which a change may still leave the file in this state.
    pub(super) unsettled: Duration,
}

impl Met {
    /// True if it is worth waiting until each change leads to another state.
    pub(super) fn settles_soon(self) -> bool {
        self.unsettled <= FINE
    }
}

/// Parts of a page.
#[derive(Debug, Default)]
struct Parts {
    /// Parts that became valid.
    filled: u16,
    /// Parts that were read, for this rank or beside its own, and those of them that were reported as issued.
    begun: u16,
    issued: u16,
}

/// All examined files.
#[derive(Debug, Default)]
pub(super) struct Filled(HashMap<FileId, Seen>);

impl Filled {
    /// Notes an examined file. Returns its state.
    pub(super) fn met(&mut self, file: FileId, facts: &FileFacts) -> Met {
        let (dev, ino, state) = (facts.dev, facts.ino, State::of(facts));
        let seen = self.0.entry(file).or_insert_with(|| Seen {
            dev,
            ino,
            size: facts.size,
            state,
            pages: HashMap::new(),
        });
        if (seen.dev, seen.ino) != (dev, ino) {
            // Another file has its name.
            (seen.dev, seen.ino) = (dev, ino);
            seen.pages.clear();
        }
        seen.size = facts.size;
        if seen.state.version != state.version {
            seen.state = state;
        }
        let settles = seen.state.settles.min(state.settles);
        Met {
            version: state.version,
            unsettled: settles.saturating_sub(seen.state.since.elapsed()),
        }
    }

    /// The segment's pages with these 4 KiB pages of a file, and the parts of each; `None` for a file that was not examined.
    pub(super) fn keys(&self, file: FileId, pages: &Range<u64>) -> Option<Vec<(Key, u16)>> {
        let seen = self.0.get(&file)?;
        Some(Key::pages(seen.dev, seen.ino, pages.clone()).collect())
    }

    /// Notes that these parts of a page became valid.
    pub(super) fn filled(&mut self, file: FileId, page: u64, parts: u16) {
        if let Some(seen) = self.0.get_mut(&file) {
            seen.pages.entry(page).or_default().filled |= parts;
        }
    }

    /// Notes that these parts of a page are about to be read, and that those `wanted` are reported as issued.
    pub(super) fn begun(&mut self, file: FileId, page: u64, (parts, wanted): (u16, u16)) {
        if let Some(seen) = self.0.get_mut(&file) {
            let page = seen.pages.entry(page).or_default();
            page.begun |= parts;
            page.issued |= wanted;
        }
    }

    /// These parts of a page are wanted, and need not be read. Returns those that were read beside others before: they count as issued from
    /// now on.
    pub(super) fn found(&mut self, file: FileId, page: u64, wanted: u16) -> u16 {
        let page = self
            .0
            .get_mut(&file)
            .and_then(|seen| seen.pages.get_mut(&page));
        page.map_or(0, |page| {
            let new = wanted & page.begun & !page.issued;
            page.issued |= new;
            new
        })
    }

    /// Notes that the memory of these parts was freed.
    pub(super) fn discarded(&mut self, file: FileId, page: u64, parts: u16) {
        if let Some(seen) = self.0.get_mut(&file)
            && let Some(page) = seen.pages.get_mut(&page)
        {
            page.filled &= !parts;
            page.begun &= !parts;
            page.issued &= !parts;
        }
    }

    /// The state of a file's pages; `None` for a file that was not examined.
    pub(super) fn answer(&self, question: &Question, segment: &Segment) -> Option<Answer> {
        let seen = self.0.get(&question.file)?;
        let parts = question.parts.iter();
        Some(Answer {
            length: Some(seen.size.div_ceil(PART)),
            parts: parts
                .map(|part| seen.standing(part, question.which, segment))
                .collect(),
        })
    }
}

impl Seen {
    fn standing(&self, pages: &Range<u64>, which: bool, segment: &Segment) -> Standing {
        // A page that the file does not fill is never fetched, so it is never missing.
        let end = pages.end.min(self.size / PART).max(pages.start);
        let mut resident = pages.end - end;
        let mut evicted = 0;
        let mut gone: Vec<Range<u64>> = Vec::new();
        for (key, parts) in Key::pages(self.dev, self.ino, pages.start..end) {
            let there = segment.resident(&key) & parts;
            let filled = self.pages.get(&key.page).map_or(0, |page| page.filled);
            let lost = filled & parts & !there;
            resident += u64::from(there.count_ones());
            evicted += u64::from(lost.count_ones());
            for part in (0..PARTS).filter(|part| which && lost >> part & 1 == 1) {
                let page = key.page * PARTS + part;
                match gone.last_mut() {
                    Some(last) if last.end == page => last.end = page + 1,
                    _ => gone.push(page..page + 1),
                }
            }
        }
        Standing {
            resident: Some(resident),
            evicted: Some(evicted),
            gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_settles_as_soon_as_time_stamps_of_its_kind_differ() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let settles = |ctime: Duration| {
            let ctime_ns = ctime.as_nanos() as i64;
            let facts = FileFacts {
                dev: 1,
                ino: 2,
                size: 3,
                allocated: 0,
                mtime_ns: 0,
                ctime_ns,
                uid: 0,
            };
            State::of(&facts).settles
        };
        let second = Duration::from_secs(now.as_secs());
        let nano = Duration::from_nanos(1);
        // The file server's clock may be behind this one's or ahead of it.
        for ahead in [0, 5, 1000] {
            assert_eq!(settles(second + Duration::from_secs(ahead) + nano), FINE);
            assert_eq!(settles(second + Duration::from_secs(ahead)), COARSE);
        }
        assert_eq!(settles(second - Duration::from_secs(10)), Duration::ZERO);
    }
}
