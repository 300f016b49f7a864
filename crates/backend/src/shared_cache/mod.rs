//! A rank's part of the collective prefetch cache (paper 003, section V.B): files of a parallel program that lie where ranks share
//! no page cache are read into shared memory, and everything else is left to the page cache.
//!
//! Which it is for a file system is found out once, by reading a page of the first file that MPI is asked for and looking
//! whether it is in the page cache then; nothing depends on names. Files that MPI is not asked for always belong into the
//! page cache: nobody takes them from anywhere else.
//!
//! What is foretold and unread keeps its place in the segment; requests wait for room there ([`fillers`]), and
//! [`Backend::room`] keeps the engine from asking for more than fits.
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

/// Of the pages that the segment holds, the part that may be unread. A page has two sets to lie in, of 8 each, and waits where both are
/// full: of 512, 413 went in before the first had to wait.
const UNREAD: (u64, u64) = (3, 4);

/// The backend of a rank.
pub struct SharedCache {
    page_cache: PageCache,
    collective: Collective,
    /// Devices of which it is being found out whether they keep pages, and the requests that wait for that.
    tried: HashMap<u64, Vec<Request>>,
    /// Devices of which it was said where their files belong, and whether those are read past the page cache.
    said: HashSet<(u64, bool)>,
    /// Files of which it was said that the kernel reads none of them ahead.
    unaided: HashSet<FileId>,
    /// Files for the segment that the page cache's side has been told to look at.
    prepared: HashSet<FileId>,
    filled: Arc<Mutex<Filled>>,
    fillers: Fillers,
    events: Receiver<Event>,
    found: Receiver<CacheTrial>,
}

impl SharedCache {
    /// `page_cache` for what it is good for, and the segment for the rest.
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
            filled,
            events,
            found,
        }
    }

    /// Where a file belongs, and its device; `None` where that has to be found out.
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

    /// A request for the segment.
    fn fill(&mut self, request: &Request) {
        if self.prepared.insert(request.file) {
            // It tells how the file differs from what was recorded.
            self.page_cache.prepare(request.file);
        }
        self.fillers.fill(request);
    }

    /// Pass a request on to where it belongs.
    fn hand_on(&mut self, request: Request, mode: Mode) {
        match mode {
            Mode::Collective => self.fill(&request),
            Mode::Plain | Mode::Undecided => self.page_cache.submit(request),
        }
    }

    /// Find out where files of a device belong, unless that is being done.
    fn try_out(&mut self, dev: u64, file: FileId, page: u64) {
        if let Entry::Vacant(tried) = self.tried.entry(dev) {
            tried.insert(Vec::new());
            self.fillers.try_out(dev, file, page);
        }
    }

    /// A device was tried.
    fn found(&mut self, found: CacheTrial) {
        let CacheTrial { dev, file, keeps } = found;
        let mut waiting = self.tried.remove(&dev).unwrap_or_default();
        match keeps {
            Some(keeps) => self.page_cache.devices().found(dev, keeps),
            // The file told nothing: the next one is tried, and this one's pages are for the page cache.
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
        // Said at once, whether anything is asked of it or not.
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
        // It may be another file than the one of that number before.
        self.unaided.remove(&file);
        // Something may be wanted of it soon, and would wait for that.
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
        // How long a file is by now, the file system has to say.
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
