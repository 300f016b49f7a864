//! The kernel's calls: names, descriptors, reads with read-ahead, faults with fault-around, hints.
//!
//! Read-ahead is that of Linux 6.18 (`mm/readahead.c`, `mm/filemap.c`): windows grow fourfold, then twofold, up to the maximum; the next
//! one is requested when the program reaches the marked page of the last. A fault at a mapped page maps the resident pages of the 64 KiB
//! around it, and reads the window around it if it is not resident.
//!
//! Invariant: a page is requested once, by the first task that needs it; others wait for that request.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::device::Part;
use crate::machine::{Machine, park};

/// Pages of one request, at most.
const REQUEST: u64 = 256;
/// Pages that one fault maps, at most (`fault_around_bytes`).
const AROUND: u64 = 16;
/// Faults that miss, beyond those that hit, after which nothing is read around them (`MMAP_LOTSAMISS`).
const MISSES: u32 = 100;
/// Hints that are given in one call, at most, before requests go to the device (`BLK_MAX_REQUEST_COUNT`).
const TOGETHER: usize = 32;
/// Inodes in a block.
const INODES: u64 = 16;
/// Pseudo-files for the blocks of inodes and of folders, with their places on the device, in pages.
const INODE_BLOCKS: u32 = u32::MAX;
const FOLDERS: u32 = u32::MAX - 1;
const FOLDERS_AT: u64 = 1 << 20;

/// A file.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// Its inode.
    pub ino: u64,
    /// Its folder, by number.
    pub folder: u64,
    /// Number of pages.
    pub pages: u64,
    /// Its place on the device, in pages.
    pub at: u64,
}

/// A process: its descriptors and mappings.
#[derive(Default)]
pub struct Process {
    limit: u64,
    open: Cell<u64>,
    mapped: RefCell<FxHashSet<(u32, u64)>>,
    misses: RefCell<FxHashMap<u32, u32>>,
    touched: RefCell<Vec<(u32, u64)>>,
}

/// An open file.
pub struct Fd {
    machine: Machine,
    process: Rc<Process>,
    file: u32,
    window: Cell<Window>,
    is_random: Cell<bool>,
}

/// The read-ahead window of an open file, in pages.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: u64,
    size: u64,
    /// Pages from the end at which the next one is requested.
    early: u64,
    /// The last page read.
    last: Option<u64>,
}

/// A request for pages of several files that lie one after the other from `at` to `end` of the device, in pages.
struct Joined {
    at: u64,
    end: u64,
    parts: Vec<Part>,
}

impl Process {
    /// A process with this limit of open files.
    pub fn new(limit: u64) -> Rc<Self> {
        Rc::new(Self {
            limit,
            ..Self::default()
        })
    }

    /// Pages mapped since the last call, including neighbours, by file.
    pub fn touched(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut *self.touched.borrow_mut())
    }

    fn map(&self, file: u32, page: u64) {
        if self.mapped.borrow_mut().insert((file, page)) {
            self.touched.borrow_mut().push((file, page));
        }
    }

    fn has_mapped(&self, file: u32, page: u64) -> bool {
        self.mapped.borrow().contains(&(file, page))
    }
}

impl Machine {
    fn file(&self, file: u32) -> FileSpec {
        let meta = |at| FileSpec {
            ino: 0,
            folder: 0,
            pages: u64::MAX,
            at,
        };
        match file {
            INODE_BLOCKS => meta(0),
            FOLDERS => meta(FOLDERS_AT),
            file => self.spec.files[file as usize].clone(),
        }
    }

    /// Puts pages into memory, together with the file's name and inode.
    pub fn warm(&self, file: u32, pages: Range<u64>) {
        let FileSpec { ino, folder, .. } = self.file(file);
        let cache = &mut self.world().cache;
        let blocks = [(INODE_BLOCKS, ino / INODES), (FOLDERS, folder)];
        let blocks = blocks.into_iter().chain(pages.map(|page| (file, page)));
        for (file, page) in blocks {
            if !cache.has(file, page) {
                cache.asked(file, page..page + 1, None);
            }
        }
    }

    /// True if a page is in memory; the question takes no time.
    pub fn has(&self, file: u32, page: u64) -> bool {
        self.world().cache.has(file, page)
    }

    /// True if a file's name and inode are in memory; the question takes no time.
    pub fn knows(&self, file: u32) -> bool {
        let FileSpec { ino, folder, .. } = self.file(file);
        let cache = &self.world().cache;
        cache.is_there(FOLDERS, folder) && cache.is_there(INODE_BLOCKS, ino / INODES)
    }

    /// Looks a name up. True if that needed the device.
    pub async fn stat(&self, file: u32) -> bool {
        self.compute(self.spec.costs.stat).await;
        self.find(file).await
    }

    async fn find(&self, file: u32) -> bool {
        let FileSpec { ino, folder, .. } = self.file(file);
        let folder = self.bring(FOLDERS, folder).await;
        let inode = self.bring(INODE_BLOCKS, ino / INODES).await;
        folder || inode
    }

    /// Opens a file; `None` where the process has too many open.
    pub async fn open(&self, process: &Rc<Process>, file: u32) -> Option<Fd> {
        self.compute(self.spec.costs.open).await;
        self.find(file).await;
        let open = process.open.get();
        if open >= process.limit {
            return None;
        }
        process.open.set(open + 1);
        Some(Fd {
            machine: self.clone(),
            process: Rc::clone(process),
            file,
            window: Cell::default(),
            is_random: Cell::new(false),
        })
    }

    /// Waits until a page is in memory, and requests it if no other task has. True if that needed the device.
    async fn bring(&self, file: u32, page: u64) -> bool {
        let mut waited = false;
        loop {
            let found = self.world().cache.page(file, page);
            match found.map(|page| page.request) {
                Some(None) => {
                    self.world().cache.used(file, page);
                    return waited;
                }
                Some(Some(request)) => {
                    self.await_request(request).await;
                    waited = true;
                }
                None => self.request(file, page..page + 1, None).await,
            }
        }
    }

    async fn await_request(&self, request: u64) {
        let task = self.current();
        let waits = self.world().device.await_request(request, task);
        if waits {
            park().await;
            self.compute(self.spec.costs.switch).await;
        }
    }

    /// Requests missing pages, and marks one of them.
    async fn request(&self, file: u32, pages: Range<u64>, mark: Option<u64>) {
        let spec = self.file(file);
        let end = pages.end.min(spec.pages);
        let mut next = pages.start;
        loop {
            let run = self.missing_run(file, next..end);
            if run.is_empty() {
                return;
            }
            let costs = &self.spec.costs;
            let len = run.end - run.start;
            self.compute(costs.page * len + costs.request).await;
            self.await_room().await;
            // Others may have asked for them meanwhile.
            let run = self.missing_run(file, run);
            next = run.end;
            if run.is_empty() {
                continue;
            }
            let mut world = self.world();
            let request = world.send(spec.at + run.start, vec![(file, run.clone())]);
            world.cache.asked(file, run.clone(), Some(request));
            if let Some(mark) = mark.filter(|mark| run.contains(mark)) {
                world.cache.mark(file, mark);
            }
        }
    }

    async fn await_room(&self) {
        loop {
            let task = self.current();
            {
                let device = &mut self.world().device;
                if device.has_room() {
                    return;
                }
                device.await_room(task);
            }
            park().await;
            self.compute(self.spec.costs.switch).await;
        }
    }

    /// The first of these pages that are missing, one after the other, as many as fit into a request. If none are, nothing at the end.
    fn missing_run(&self, file: u32, pages: Range<u64>) -> Range<u64> {
        let cache = &self.world().cache;
        let start = pages.clone().find(|&page| !cache.has(file, page));
        let Some(start) = start else {
            return pages.end..pages.end;
        };
        let most = pages.end.min(start + REQUEST);
        let end = (start..most).find(|&page| cache.has(file, page));
        start..end.unwrap_or(most)
    }

    /// Requests several files' pages with one call: adjacent pages on the device are one request.
    pub async fn hint_together(&self, parts: &[(&Fd, Range<u64>)]) {
        let costs = self.spec.costs;
        for parts in parts.chunks(TOGETHER) {
            let pages: u64 = parts.iter().map(|(_, pages)| pages.end - pages.start).sum();
            let own = costs.hint * parts.len() as u64;
            self.compute(own + costs.page * pages).await;
            let mut joined: Vec<Joined> = Vec::new();
            for (fd, pages) in parts {
                let spec = self.file(fd.file);
                let run = self.missing_run(fd.file, pages.start..pages.end.min(spec.pages));
                if run.is_empty() {
                    continue;
                }
                let (at, len) = (spec.at + run.start, run.end - run.start);
                match joined.last_mut() {
                    Some(last) if last.end == at => {
                        last.parts.push((fd.file, run));
                        last.end = at + len;
                    }
                    _ => joined.push(Joined {
                        at,
                        end: at + len,
                        parts: vec![(fd.file, run)],
                    }),
                }
            }
            self.compute(costs.request * joined.len() as u64).await;
            for Joined { at, mut parts, .. } in joined {
                self.await_room().await;
                let mut world = self.world();
                // Others may have asked for them meanwhile.
                parts.retain(|(file, pages)| {
                    pages.clone().all(|page| !world.cache.has(*file, page))
                });
                if parts.is_empty() {
                    continue;
                }
                let request = world.send(at, parts.clone());
                for (file, pages) in parts {
                    world.cache.asked(file, pages, Some(request));
                }
            }
        }
    }
}

impl Fd {
    /// Switches the kernel's own read-ahead off, or on again.
    pub fn advise_random(&self, is_random: bool) {
        self.is_random.set(is_random);
    }

    /// Hints that pages will be read.
    pub async fn hint(&self, pages: Range<u64>) {
        self.machine.compute(self.machine.spec.costs.hint).await;
        self.machine.request(self.file, pages, None).await;
    }

    /// Asks which of these pages are neither in memory nor on their way.
    pub async fn missing(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        self.machine.compute(self.machine.spec.costs.ask).await;
        let mut parts = Vec::new();
        let mut next = pages.start;
        loop {
            let run = self.machine.missing_run(self.file, next..pages.end);
            if run.is_empty() {
                return parts;
            }
            next = run.end;
            parts.push(run);
        }
    }

    /// Reads pages.
    pub async fn read(&self, pages: Range<u64>) {
        let costs = &self.machine.spec.costs;
        self.machine.compute(costs.read).await;
        for page in pages.clone() {
            while !self.is_uptodate(page, pages.end - page).await {}
        }
        let mut window = self.window.get();
        window.last = Some(pages.end - 1);
        self.window.set(window);
        self.machine
            .compute(costs.copy * (pages.end - pages.start))
            .await;
    }

    /// Touches a page of a mapping; `is_random` if the program uses `MADV_RANDOM` for it. True if that was a fault.
    pub async fn touch(&self, page: u64, is_random: bool) -> bool {
        if self.process.has_mapped(self.file, page) {
            return false;
        }
        self.machine.compute(self.machine.spec.costs.fault).await;
        let mut is_there = self.machine.world().cache.is_there(self.file, page);
        self.miss(is_there);
        while !is_there {
            let found = self.machine.world().cache.page(self.file, page);
            match found.and_then(|page| page.request) {
                Some(request) => self.machine.await_request(request).await,
                None if found.is_none() => self.read_around(page, is_random).await,
                None => {}
            }
            is_there = self.machine.world().cache.is_there(self.file, page);
        }
        if self.machine.world().cache.used(self.file, page) {
            self.read_on(page, 1).await;
        }
        self.process.map(self.file, page);
        let first = page / AROUND * AROUND;
        for page in first..first + AROUND {
            let found = self.machine.world().cache.page(self.file, page);
            if found.is_some_and(|page| page.request.is_none() && !page.is_marked) {
                self.process.map(self.file, page);
            }
        }
        true
    }

    /// A fault hit or missed.
    fn miss(&self, is_there: bool) {
        let mut misses = self.process.misses.borrow_mut();
        let misses = misses.entry(self.file).or_default();
        *misses = if is_there {
            misses.saturating_sub(1)
        } else {
            *misses + 1
        };
    }

    async fn read_around(&self, page: u64, is_random: bool) {
        let misses = self.process.misses.borrow().get(&self.file).copied();
        if is_random || misses.is_some_and(|misses| misses > MISSES) {
            return self.machine.request(self.file, page..page + 1, None).await;
        }
        let most = self.machine.spec.read_ahead;
        let window = Window {
            start: page.saturating_sub(most / 2),
            size: most,
            early: most / 4,
            ..self.window.get()
        };
        self.send(window).await;
    }

    /// True if a page is in memory; otherwise it is requested, or waited for.
    async fn is_uptodate(&self, page: u64, count: u64) -> bool {
        let found = self.machine.world().cache.page(self.file, page);
        let Some(found) = found else {
            self.read_ahead(page, count).await;
            return false;
        };
        if found.is_marked {
            self.machine.world().cache.used(self.file, page);
            if !self.is_random.get() {
                self.read_on(page, count).await;
            }
        }
        if let Some(request) = found.request {
            self.machine.await_request(request).await;
            return false;
        }
        self.machine.world().cache.used(self.file, page);
        true
    }

    /// A page is missing (`page_cache_sync_ra`).
    async fn read_ahead(&self, page: u64, count: u64) {
        let most = self.machine.spec.read_ahead;
        if self.is_random.get() {
            return (self.machine)
                .request(self.file, page..page + count, None)
                .await;
        }
        let mut window = self.window.get();
        let goes_on = window
            .last
            .is_some_and(|last| page >= last && page - last <= 1);
        if page == 0 || count > most || goes_on {
            window.start = page;
            window.size = first_size(count, most);
            window.early = if window.size > count {
                window.size - count
            } else {
                window.size / 2
            };
            return self.send(window).await;
        }
        let before = self.there_before(page, most);
        if before <= count {
            return (self.machine)
                .request(self.file, page..page + count, None)
                .await;
        }
        let before = if before >= page { 2 * before } else { before };
        window.start = page;
        window.size = (before + count).min(most);
        window.early = 1;
        self.send(window).await;
    }

    /// The program reaches the marked page (`page_cache_async_ra`).
    async fn read_on(&self, page: u64, count: u64) {
        let most = self.machine.spec.read_ahead;
        let mut window = self.window.get();
        if page == window.start + window.size - window.early.min(window.size) {
            window.start += window.size;
        } else {
            let missing =
                (page + 1..page + 1 + most).find(|&page| !self.machine.has(self.file, page));
            let Some(start) = missing else {
                return;
            };
            window.start = start;
            window.size = start - page + count;
        }
        window.size = next_size(window.size, most);
        window.early = window.size;
        self.send(window).await;
    }

    async fn send(&self, window: Window) {
        self.window.set(window);
        let end = window.start + window.size;
        let mark = Some(end - window.early.min(window.size));
        let pages = window.start..end;
        self.machine.request(self.file, pages, mark).await;
    }

    /// Number of consecutive resident pages before this one, at most `most`.
    fn there_before(&self, page: u64, most: u64) -> u64 {
        let before = (0..page).rev().take(most as usize);
        before
            .take_while(|&page| self.machine.has(self.file, page))
            .count() as u64
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        self.process.open.set(self.process.open.get() - 1);
    }
}

/// Pages of the first window (`get_init_ra_size`).
fn first_size(count: u64, most: u64) -> u64 {
    let size = count.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// Pages of the next window (`get_next_ra_size`).
fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        4 * size
    } else if size <= most / 2 {
        2 * size
    } else {
        most
    }
}
