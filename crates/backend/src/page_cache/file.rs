//! An open file of the page-cache backend.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use foreread_plan::{FileMeta, PAGE, Request};
use foreread_sys::cache::CacheStat;
use foreread_sys::file::FileFacts;
use foreread_sys::residency::Residency;
use foreread_sys::{cache, file, latency};

use super::files::CachedFile;
use crate::{Change, Event, Placed, Standing};

/// A hint that no kernel cuts, in bytes, whatever its device. A file that is not longer is a small one: where each operation has its
/// price, a longer one gains little by sharing it.
pub(super) const SMALL_HINT: u64 = 128 << 10;

/// An open file, with the means to request its pages and to check their arrival.
pub(crate) struct Opened {
    fd: Arc<OwnedFd>,
    /// Size at the last examination, in bytes.
    pub(crate) size: u64,
    /// Its device, and its inode there.
    pub(crate) place: (u64, u64),
    owner: u32,
    /// True if the device has fewer blocks for it than its size: it may have holes.
    sparse: bool,
    /// Its difference from the record.
    pub(crate) change: Option<Change>,
    watch: Option<Residency>,
    /// True if residency is found by reading one byte of each page.
    probed: bool,
    /// True if `cachestat` does not work for it.
    hidden: bool,
}

impl Opened {
    /// Opens a file, or uses its descriptor if it is kept open. Only regular files that the user may read are opened.
    pub(crate) fn open(known: CachedFile) -> io::Result<Self> {
        let meta = known.meta;
        let (fd, facts) = match known.kept {
            Some(fd) => {
                let facts = FileFacts::of(&fd)?;
                (fd, facts)
            }
            None => {
                let (fd, facts) = match known.exact {
                    true => file::open_exactly(&meta.path, meta.dev, meta.ino)?,
                    false => file::open_regular(&meta.path)?,
                };
                (Arc::new(fd), facts)
            }
        };
        let change = changed(&meta, &facts);
        Ok(Self {
            hidden: cache::is_hidden(&fd, facts.dev),
            fd,
            size: facts.size,
            place: (facts.dev, facts.ino),
            owner: facts.uid,
            sparse: is_sparse(&facts),
            change,
            watch: None,
            probed: false,
        })
    }

    /// Its descriptor.
    pub(crate) fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Look how long the file is by now: it may grow and shrink under a plan.
    pub(crate) fn look_again(&mut self) {
        let Ok(facts) = FileFacts::of(&self.fd) else {
            return;
        };
        self.sparse = is_sparse(&facts);
        if facts.size != self.size {
            self.size = facts.size;
            // The mapping covers the file's earlier size.
            self.watch = None;
        }
    }

    /// Whether a page stays in the page cache after a read, tested by reading one byte; `None` if the kernel does not show it. Direct I/O
    /// of a client in user space leaves no pages.
    pub(crate) fn keeps(&mut self, page: u64) -> Option<bool> {
        let one = page..page + 1;
        if page >= self.pages() {
            return None;
        }
        if self.standing(&one, false).resident? == 0 {
            let mut byte = [0];
            rustix::io::pread(&*self.fd, &mut byte, page * PAGE).ok()?;
        }
        Some(self.standing(&one, false).resident? > 0)
    }

    /// The layout of the file on its device; empty if the file system does not report it.
    pub(crate) fn layout(&self) -> Arc<[Placed]> {
        file::fiemap(&self.fd, 0..self.size)
            .unwrap_or_default()
            .into_iter()
            .map(|extent| Placed {
                logical: extent.logical,
                physical: extent.physical,
                len: extent.len,
            })
            .collect()
    }

    /// A second descriptor of the file, for another thread.
    pub(crate) fn twin(&self) -> Self {
        Self {
            fd: Arc::clone(&self.fd),
            size: self.size,
            place: self.place,
            owner: self.owner,
            sparse: self.sparse,
            change: self.change.clone(),
            watch: None,
            probed: false,
            hidden: self.hidden,
        }
    }

    /// Whether a read far from the previous one takes at least `limit` on the file's device; `None` if it cannot be measured.
    pub(crate) fn is_slow(&self, limit: Duration) -> Option<bool> {
        latency::is_slow(&self.fd, self.size, limit).ok().flatten()
    }

    /// Counts of the range in the page cache; pages on their way count as cached.
    pub(crate) fn cached(&self, bytes: &Range<u64>) -> io::Result<CacheStat> {
        if self.hidden {
            return Err(io::ErrorKind::Unsupported.into());
        }
        cache::stat(&self.fd, bytes.clone())
    }

    /// The state of these pages, and the evicted ones if `which`. Pages beyond the end of a file that has shrunk are not missing.
    pub(crate) fn standing(&mut self, pages: &Range<u64>, which: bool) -> Standing {
        let end = pages.end.min(self.pages()).max(pages.start);
        let beyond = pages.end - end;
        let pages = pages.start..end;
        let Ok(now) = self.cached(&(pages.start * PAGE..pages.end * PAGE)) else {
            let there = self.there(&pages).ok();
            let count = |there: Vec<bool>| there.into_iter().filter(|&page| page).count() as u64;
            return Standing {
                resident: there.map(|there| count(there) + beyond),
                ..Standing::default()
            };
        };
        let mut gone = Vec::new();
        if which && now.evicted > 0 && self.find_evicted(pages, &mut gone).is_err() {
            gone.clear();
        }
        Standing {
            resident: Some(now.cached + beyond),
            evicted: Some(now.evicted),
            gone,
        }
    }

    /// Number of pages at the last examination.
    pub(crate) fn pages(&self) -> u64 {
        self.size.div_ceil(PAGE)
    }

    /// Halve a range until its parts are wholly evicted or not at all.
    fn find_evicted(&self, pages: Range<u64>, parts: &mut Vec<Range<u64>>) -> io::Result<()> {
        let count = pages.end - pages.start;
        let evicted = self
            .cached(&(pages.start * PAGE..pages.end * PAGE))?
            .evicted;
        if evicted >= count {
            add(parts, pages);
        } else if evicted > 0 {
            let middle = pages.start + count / 2;
            self.find_evicted(pages.start..middle, parts)?;
            self.find_evicted(middle..pages.end, parts)?;
        }
        Ok(())
    }

    /// The parts of a page range that are neither in memory nor on their way. Without `cachestat` pages on their way count as missing;
    /// without any information all pages do.
    pub(crate) fn missing(&mut self, pages: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        if self.split(pages.clone(), &mut parts).is_ok() {
            return parts;
        }
        parts.clear();
        match self.there(pages) {
            Ok(there) => {
                for (page, _) in pages.clone().zip(there).filter(|(_, there)| !there) {
                    add(&mut parts, page..page + 1);
                }
            }
            Err(_) => parts.push(pages.clone()),
        }
        parts
    }

    /// Residency by page without `cachestat`, which is missing before Linux 6.5, may be forbidden by a sandbox, and does not work for
    /// another user's file. For such a file `mincore` does not work either; then one byte of each page is read without waiting. This makes
    /// the kernel fetch an absent page, which does no harm because only planned pages are asked about.
    fn there(&mut self, pages: &Range<u64>) -> io::Result<Vec<bool>> {
        let mut there = Vec::new();
        if let Some(watch) = self.watch()? {
            watch.uptodate(pages.start * PAGE..pages.end * PAGE, &mut there)?;
            return Ok(there);
        }
        if !std::mem::replace(&mut self.probed, true) {
            // Only the page asked about, and none around it.
            cache::advise_random(&self.fd)?;
        }
        pages
            .clone()
            .map(|page| cache::was_uptodate(&self.fd, page * PAGE))
            .collect()
    }

    /// Halve a range until its parts are wholly missing or wholly there.
    fn split(&self, pages: Range<u64>, parts: &mut Vec<Range<u64>>) -> io::Result<()> {
        let count = pages.end - pages.start;
        let cached = self.cached(&(pages.start * PAGE..pages.end * PAGE))?.cached;
        if cached == 0 {
            add(parts, pages);
        } else if cached < count {
            let middle = pages.start + count / 2;
            self.split(pages.start..middle, parts)?;
            self.split(middle..pages.end, parts)?;
        }
        Ok(())
    }

    /// Ask the kernel to read these pages, in hints it will not cut silently.
    pub(crate) fn hint(&self, pages: &Range<u64>, max_hint: u64) -> io::Result<()> {
        let Range { start: mut at, end } = self.bytes(pages);
        while at < end {
            let to = end.min(at + max_hint);
            cache::will_need(&self.fd, at..to)?;
            at = to;
        }
        Ok(())
    }

    /// Requests the missing pages of a request, as far as the device has them, and reports the request. Returns the requested parts.
    pub(crate) fn hint_missing(
        &mut self,
        request: &Request,
        max_hint: u64,
        events: &Sender<Event>,
    ) -> Vec<Range<u64>> {
        let mut parts = self.announce_missing(request, events);
        parts.retain(|part| self.hint(part, max_hint).is_ok());
        parts
    }

    /// Reports the missing pages of a request, as far as the device has them, before they are requested. Returns these parts.
    pub(crate) fn announce_missing(
        &mut self,
        request: &Request,
        events: &Sender<Event>,
    ) -> Vec<Range<u64>> {
        let whole = self.pages();
        let end = request.pages.end.min(whole);
        if end < request.pages.end {
            // This backend has the other end.
            let _ = events.send(Event::Short {
                id: request.id,
                file: request.file,
                pages: request.pages.start.max(whole)..request.pages.end,
            });
        }
        if request.pages.start >= end {
            return Vec::new();
        }
        let missing = self.missing(&(request.pages.start..end));
        let parts = if self.sparse {
            self.without_holes(missing)
        } else {
            missing
        };
        for part in &parts {
            // Before they are hinted about: the program may read a page before the hint has returned.
            let _ = events.send(Event::Issued {
                id: request.id,
                file: request.file,
                pages: part.clone(),
            });
        }
        parts
    }

    /// The bytes of these pages, without those beyond the end.
    pub(crate) fn bytes(&self, pages: &Range<u64>) -> Range<u64> {
        pages.start * PAGE..(pages.end * PAGE).min(self.size)
    }

    /// The parts that have blocks on the device: pages of a hole need no fetching.
    fn without_holes(&self, parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
        let mut kept: Vec<Range<u64>> = Vec::new();
        for part in parts {
            let Ok(written) = file::written(&self.fd, part.start * PAGE..part.end * PAGE) else {
                // Unknown: the part is kept.
                add(&mut kept, part);
                continue;
            };
            for bytes in written {
                // Blocks may be smaller than pages.
                let after = kept.last().map_or(0, |last| last.end);
                let pages = (bytes.start / PAGE).max(after)..bytes.end.div_ceil(PAGE);
                if !pages.is_empty() {
                    add(&mut kept, pages);
                }
            }
        }
        kept
    }

    /// Removes pages that are neither in memory nor on their way any more, if `cachestat` works.
    pub(crate) fn leave_gone_out(&self, parts: &mut Vec<Range<u64>>) {
        let mut left = Vec::with_capacity(parts.len());
        for part in std::mem::take(parts) {
            let mut gone = Vec::new();
            if self.split(part.clone(), &mut gone).is_err() {
                gone.clear();
            }
            let mut from = part.start;
            for gap in gone {
                left.extend((from < gap.start).then_some(from..gap.start));
                from = gap.end;
            }
            left.extend((from < part.end).then_some(from..part.end));
        }
        *parts = left;
    }

    /// Makes the kernel drop these pages, except mapped and written ones.
    pub(crate) fn discard(&self, pages: &Range<u64>) {
        // Pages that stay cost memory and nothing else.
        let _ = cache::dont_need(&self.fd, pages.start * PAGE..pages.end * PAGE);
    }

    /// True if all these pages have arrived. The check must not change the kernel's order of eviction, so it uses `mincore` if that is
    /// truthful, and otherwise reads one byte without waiting.
    pub(crate) fn arrived(&mut self, pages: &Range<u64>) -> io::Result<bool> {
        match self.watch()? {
            Some(watch) => {
                let mut up_to_date = Vec::new();
                watch.uptodate(pages.start * PAGE..pages.end * PAGE, &mut up_to_date)?;
                Ok(up_to_date.iter().all(|&page| page))
            }
            None => cache::is_uptodate(&self.fd, (pages.end - 1) * PAGE),
        }
    }

    /// A mapping of the file for `mincore`, if that is truthful.
    fn watch(&mut self) -> io::Result<Option<&Residency>> {
        if self.watch.is_none() && Residency::permitted(&self.fd, self.owner)? {
            self.watch = Some(Residency::new(&self.fd, self.size)?);
        }
        Ok(self.watch.as_ref())
    }
}

fn is_sparse(facts: &FileFacts) -> bool {
    facts.allocated < facts.size
}

/// The difference between a file and its known state.
pub(crate) fn changed(meta: &FileMeta, facts: &FileFacts) -> Option<Change> {
    if (facts.dev, facts.ino) != (meta.dev, meta.ino) {
        Some(Change::Replaced)
    } else if facts.size != meta.size {
        Some(Change::Resized(facts.size))
    } else if facts.mtime_ns != meta.mtime_ns {
        Some(Change::Modified)
    } else {
        None
    }
}

/// Append a part, joined to the last if it follows it.
fn add(parts: &mut Vec<Range<u64>>, part: Range<u64>) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}
