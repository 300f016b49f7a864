//! A rank's part of the collective cache for callers with a whole plan: they pass pages on when these are wanted, and the pages wait here
//! for room.
//!
//! Invariant: passing pages on never waits for a file system; only [`RankCache::takes`] may.
//!
//! Data flow: pages → [`RankCache::bring`] → the fillers → the segment; at the end [`RankCache::brought`].

use std::ops::Range;
use std::sync::Mutex;

use foreread_plan::{FileId, Request, RequestId};
use foreread_segment::Mode;

use super::{Collective, SharedCache, lock};
use crate::page_cache::file::Opened;
use crate::{Backend, Event, PageCache};

/// Pages of the segment that may wait for room: a bound on memory, 0.6 MiB.
const WAITING: usize = 1 << 14;

/// A rank's part of the cache.
pub struct RankCache(Mutex<SharedCache>);

impl RankCache {
    /// The part for files that `page_cache` knows.
    pub fn new(page_cache: PageCache, collective: &Collective) -> Self {
        Self(Mutex::new(SharedCache::new(page_cache, collective)))
    }

    /// True if pages of the file go to the segment. On an untested file system a page is read to find out.
    pub fn takes(&self, file: FileId) -> bool {
        let (home, dev) = lock(&self.0).home(file);
        if let Some(mode) = home {
            return mode == Mode::Collective;
        }
        let meta = lock(&self.0).page_cache.shared().0.get(file);
        let opened = meta.and_then(|meta| Opened::open(meta).ok());
        let Some(keeps) = opened.and_then(|mut opened| opened.keeps(0)) else {
            return false;
        };
        let mut cache = lock(&self.0);
        cache.page_cache.devices().found(dev, keeps);
        cache.home(file).0 == Some(Mode::Collective)
    }

    /// Requests these pages for the segment; they are read when there is room.
    pub fn bring(&self, file: FileId, pages: Range<u64>) {
        let id = RequestId(0);
        lock(&self.0).fillers.fill(&Request { id, file, pages });
    }

    /// True if enough pages wait for room.
    pub fn is_full(&self) -> bool {
        lock(&self.0).fillers.waiting() >= WAITING
    }

    /// Drops all waiting pages.
    pub fn stop(&self) {
        lock(&self.0).fillers.clear();
    }

    /// The pages that were read since the last call.
    pub fn brought(&self) -> Vec<(FileId, Range<u64>)> {
        let mut events = Vec::new();
        lock(&self.0).poll(&mut events);
        let brought = events.into_iter().filter_map(|event| match event {
            Event::Issued { file, pages, .. } => Some((file, pages)),
            _ => None,
        });
        brought.collect()
    }
}
