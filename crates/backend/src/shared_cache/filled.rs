//! What was filled of which files: by that it is told what has gone again.

use std::collections::HashMap;
use std::ops::Range;

use foreread_plan::FileId;
use foreread_segment::{Key, PART, PARTS, Segment};

use crate::{Answer, Question, Standing};

/// A file, as it was when it was last looked at.
#[derive(Debug)]
struct Seen {
    dev: u64,
    ino: u64,
    /// In bytes.
    size: u64,
    /// What was done with its pages, by the page's number.
    pages: HashMap<u64, Parts>,
}

/// Parts of a page.
#[derive(Debug, Default)]
struct Parts {
    /// That became valid.
    filled: u16,
    /// That were read, whether for this rank or beside that, and those of them that were told to be issued.
    begun: u16,
    issued: u16,
}

/// All files met.
#[derive(Debug, Default)]
pub(super) struct Filled(HashMap<FileId, Seen>);

impl Filled {
    /// A file was looked at.
    pub(super) fn met(&mut self, file: FileId, (dev, ino): (u64, u64), size: u64) {
        let seen = self.0.entry(file).or_insert_with(|| Seen {
            dev,
            ino,
            size,
            pages: HashMap::new(),
        });
        if (seen.dev, seen.ino) != (dev, ino) {
            // Another file has its name.
            (seen.dev, seen.ino) = (dev, ino);
            seen.pages.clear();
        }
        seen.size = size;
    }

    /// The pages of a file that these of its 4 KiB pages lie in, with the parts of each; `None` of a file that was not met.
    pub(super) fn keys(&self, file: FileId, pages: &Range<u64>) -> Option<Vec<(Key, u16)>> {
        let seen = self.0.get(&file)?;
        Some(Key::pages(seen.dev, seen.ino, pages.clone()).collect())
    }

    /// These parts of a page became valid.
    pub(super) fn filled(&mut self, file: FileId, page: u64, parts: u16) {
        if let Some(seen) = self.0.get_mut(&file) {
            seen.pages.entry(page).or_default().filled |= parts;
        }
    }

    /// These parts of a page are about to be read, of which those `wanted` are told to be issued.
    pub(super) fn begun(&mut self, file: FileId, page: u64, (parts, wanted): (u16, u16)) {
        if let Some(seen) = self.0.get_mut(&file) {
            let page = seen.pages.entry(page).or_default();
            page.begun |= parts;
            page.issued |= wanted;
        }
    }

    /// These parts of a page, which need not be read, are wanted; which of them were read beside others before: those are issued now.
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

    /// These are given back.
    pub(super) fn discarded(&mut self, file: FileId, page: u64, parts: u16) {
        if let Some(seen) = self.0.get_mut(&file)
            && let Some(page) = seen.pages.get_mut(&page)
        {
            page.filled &= !parts;
            page.begun &= !parts;
            page.issued &= !parts;
        }
    }

    /// What is known of a file's pages; `None` of a file that was not met.
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
        // What no page holds in full is never fetched, and so is never missing.
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
