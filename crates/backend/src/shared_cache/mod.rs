//! A rank's part of the collective prefetch cache (paper 003, section V.B): files of a parallel program are read into shared memory if
//! ranks share no page cache for them, and all others are left to the page cache.
//!
//! Each file system is tested once: a page of the first file that is accessed through MPI is read, and then searched in the page cache.
//! Nothing depends on names. Files that are not accessed through MPI always belong to the page cache, because they are read from there
//! only.
//!
//! Foretold, unread pages stay in the segment. Requests wait for room there ([`fillers`]), and [`Backend::room`] keeps the engine from
//! requesting more than fits.
//!
//! Data flow: `submit` → the page cache, or [`fillers`] → the segment (`foreread_segment`) → the rank. `ask` → the segment's table.

mod collective;
mod filled;
mod fillers;
mod part;
mod peers;
mod sharing;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use foreread_plan::{FileId, FileMeta, Kind, Request};
use foreread_segment::{Mode, PARTS};

use crate::{Backend, DeviceFacts, Event, PageCache, Question};
pub use collective::Collective;
use collective::lock;
use filled::Filled;
use fillers::{CacheTrial, Fillers};
pub use part::RankCache;

/// Share of the segment's pages that may be unread. A page may be in two sets of 8 slots, and waits if both are full: of 512 pages, 413
/// were stored before the first had to wait.
const UNREAD: (u64, u64) = (3, 4);

/// The backend of a rank.
pub struct SharedCache {
    page_cache: PageCache,
    collective: Collective,
    /// Devices whose keeping of pages is being tested, with the requests that wait for the result.
    tried: HashMap<u64, Vec<Request>>,
    /// Devices whose place was reported, with true for files that are read past the page cache.
    said: HashSet<(u64, bool)>,
    /// Files that were reported as [`Event::Unaided`].
    unaided: HashSet<FileId>,
    /// Files for the segment that the page-cache backend was told to prepare.
    prepared: HashSet<FileId>,
    /// Number of files accessed through MPI that this backend has heard of.
    asked: usize,
    /// Those of them whose place is still to be looked for, because they are not known yet.
    waiting: Vec<FileId>,
    filled: Arc<Mutex<Filled>>,
    fillers: Fillers,
    events: Receiver<Event>,
    found: Receiver<CacheTrial>,
}

impl SharedCache {
    /// A backend that uses `page_cache` for files that belong to the page cache, and the segment for the others.
    pub fn new(page_cache: PageCache, collective: &Collective) -> Self {
        let (event, events) = channel();
        let (find, found) = channel();
        let filled = Arc::default();
        Self {
            fillers: Fillers::new(collective, &filled, page_cache.shared(), (event, find)),
            page_cache,
            collective: collective.clone(),
            tried: HashMap::new(),
            said: HashSet::new(),
            unaided: HashSet::new(),
            prepared: HashSet::new(),
            asked: 0,
            waiting: Vec::new(),
            filled,
            events,
            found,
        }
    }

    /// The place for a file's pages, and its device; the place is `None` if it has to be found out.
    fn home(&mut self, file: FileId) -> (Option<Mode>, u64) {
        let dev = self.page_cache.device(file).unwrap_or(0);
        let ino = self.page_cache.shared().0.place(file).1;
        let opened = self.collective.segment().opened(dev, ino);
        if !self.collective.is_asked(file) && opened.is_none() {
            return (Some(Mode::Plain), dev);
        }
        let direct = opened.is_some_and(|file| file.direct);
        let keeps = match direct {
            true => Some(false),
            false => self.page_cache.devices().keeps(dev),
        };
        let found = keeps.map(|keeps| if keeps { Mode::Plain } else { Mode::Collective });
        let mode = self.collective.decided().or(found);
        if let Some(mode) = mode
            && self.said.insert((dev, direct))
        {
            let name = self.page_cache.facts(dev).name;
            self.collective.found(name, direct, mode);
        }
        if mode == Some(Mode::Collective) && self.unaided.insert(file) {
            self.fillers.answer(Event::Unaided { file });
        }
        (mode, dev)
    }

    /// Passes a request to the segment's fillers.
    fn fill(&mut self, request: &Request) {
        if self.prepared.insert(request.file) {
            // This reports the file's difference from its record.
            self.page_cache.prepare(request.file);
        }
        self.fillers.fill(request);
    }

    /// Passes a request on to the segment or the page cache.
    fn hand_on(&mut self, request: Request, mode: Mode) {
        match mode {
            Mode::Collective => self.fill(&request),
            Mode::Plain | Mode::Undecided => self.page_cache.submit(request),
        }
    }

    /// Tests a device, unless a test is in progress.
    fn try_out(&mut self, dev: u64, file: FileId, page: u64) {
        if let Entry::Vacant(tried) = self.tried.entry(dev) {
            tried.insert(Vec::new());
            self.fillers.try_out(dev, file, page);
        }
    }

    /// Looks for the place of the files that are accessed through MPI since the last call. A file that was known before the rank opened it
    /// through MPI may never be requested before its place is known: sequential reads are left to the kernel until then.
    fn place_asked(&mut self) {
        let new = self.collective.asked_after(self.asked);
        self.asked += new.len();
        self.waiting.extend(new);
        for file in std::mem::take(&mut self.waiting) {
            if self.page_cache.device(file).is_none() {
                self.waiting.push(file);
            } else if let (None, dev) = self.home(file) {
                self.try_out(dev, file, 0);
            }
        }
    }

    /// Handles the result of a test.
    fn found(&mut self, found: CacheTrial) {
        let CacheTrial { dev, file, keeps } = found;
        let mut waiting = self.tried.remove(&dev).unwrap_or_default();
        match keeps {
            Some(keeps) => self.page_cache.devices().found(dev, keeps),
            // The file gave no result: another one is tried, and this one's requests go to the page cache.
            None => {
                let of = |request: &mut Request| request.file == file;
                for request in waiting.extract_if(.., of).collect::<Vec<_>>() {
                    self.page_cache.submit(request);
                }
            }
        }
        for request in waiting {
            self.submit(request);
        }
        // Reported at once, even without a request for it.
        self.home(file);
    }
}

impl Backend for SharedCache {
    fn add(&mut self, file: FileId, meta: FileMeta) {
        let is_opened = self
            .collective
            .segment()
            .opened(meta.dev, meta.ino)
            .is_some();
        self.page_cache.add(file, meta);
        // The number may have been another file's before.
        self.unaided.remove(&file);
        // A request may come soon, and would wait for the test.
        if is_opened && let (None, dev) = self.home(file) {
            self.try_out(dev, file, 0);
        }
    }

    fn device(&mut self, file: FileId) -> Option<u64> {
        self.page_cache.device(file)
    }

    fn block(&mut self, file: FileId) -> Option<u64> {
        self.page_cache.block(file)
    }

    fn facts(&mut self, device: u64) -> DeviceFacts {
        self.page_cache.facts(device)
    }

    fn assume(&mut self, device: u64, positions: bool) {
        self.page_cache.assume(device, positions);
    }

    fn prepare(&mut self, file: FileId) {
        self.page_cache.prepare(file);
    }

    fn submit(&mut self, request: Request) {
        match self.home(request.file) {
            (Some(mode), _) => self.hand_on(request, mode),
            (None, dev) => {
                self.try_out(dev, request.file, request.pages.start);
                self.tried.entry(dev).or_default().push(request);
            }
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        self.place_asked();
        while let Ok(found) = self.found.try_recv() {
            self.found(found);
        }
        self.page_cache.poll(events);
        events.extend(self.events.try_iter());
    }

    fn look(&mut self, names: &[(FileId, Kind)]) {
        self.page_cache.look(names);
    }

    fn ask(&mut self, question: Question) {
        // Only the file system knows a file's present length.
        if !question.parts.is_empty()
            && self.home(question.file).0 == Some(Mode::Collective)
            && let Some(answer) = lock(&self.filled).answer(&question, self.collective.segment())
        {
            let ticket = question.ticket;
            return self.fillers.answer(Event::Answered { ticket, answer });
        }
        self.page_cache.ask(question);
    }

    fn room(&self) -> Option<u64> {
        let (part, whole) = UNREAD;
        let pages = u64::from(self.collective.segment().slots()) * PARTS;
        self.collective.is_used().then_some(pages * part / whole)
    }

    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        if self.home(file).0 != Some(Mode::Collective) {
            return self.page_cache.discard(file, pages);
        }
        let mut filled = lock(&self.filled);
        for (key, parts) in filled.keys(file, &pages).unwrap_or_default() {
            self.collective.segment().discard(&key, parts);
            filled.discarded(file, key.page, parts);
        }
    }
}
