//! Pages of files in memory, and on their way.
//!
//! If memory is full, pages leave it in the order of their arrival. Pages used twice stay, up to half of the memory, as on the kernel's two
//! lists.
//!
//! Invariant: a page that is on its way does not leave.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The request that brings it; `None` once it has arrived.
    pub(crate) request: Option<u64>,
    /// True if the kernel reads further ahead when a program reaches this page.
    pub(crate) is_marked: bool,
    uses: u8,
}

/// Uses of a page that has moved to the list of those that stay.
const STAYS: u8 = 2;

pub(crate) struct Cache {
    pages: FxHashMap<(u32, u64), Page>,
    /// Pages in the order in which they came, and those of them that stay.
    order: VecDeque<(u32, u64)>,
    staying: VecDeque<(u32, u64)>,
    room: u64,
}

impl Cache {
    pub(crate) fn new(room: u64) -> Self {
        Self {
            pages: FxHashMap::default(),
            order: VecDeque::new(),
            staying: VecDeque::new(),
            room,
        }
    }

    pub(crate) fn page(&self, file: u32, page: u64) -> Option<Page> {
        self.pages.get(&(file, page)).copied()
    }

    /// True if a page is in memory or on its way.
    pub(crate) fn has(&self, file: u32, page: u64) -> bool {
        self.pages.contains_key(&(file, page))
    }

    /// True if a page is in memory.
    pub(crate) fn is_there(&self, file: u32, page: u64) -> bool {
        let page = self.page(file, page);
        page.is_some_and(|page| page.request.is_none())
    }

    /// Notes the use of a page. True if the kernel was to read further ahead from here, which it does once.
    pub(crate) fn used(&mut self, file: u32, page: u64) -> bool {
        let Some(page) = self.pages.get_mut(&(file, page)) else {
            return false;
        };
        page.uses = page.uses.saturating_add(1);
        std::mem::take(&mut page.is_marked)
    }

    /// Pages are on their way by a request.
    pub(crate) fn asked(&mut self, file: u32, pages: Range<u64>, request: Option<u64>) {
        for page in pages {
            let new = Page {
                request,
                is_marked: false,
                uses: 0,
            };
            if self.pages.insert((file, page), new).is_none() {
                self.order.push_back((file, page));
            }
        }
        while self.pages.len() as u64 > self.room && self.leave() {}
    }

    pub(crate) fn mark(&mut self, file: u32, page: u64) {
        if let Some(page) = self.pages.get_mut(&(file, page)) {
            page.is_marked = true;
        }
    }

    pub(crate) fn arrived(&mut self, file: u32, pages: Range<u64>) {
        for page in pages {
            if let Some(page) = self.pages.get_mut(&(file, page)) {
                page.request = None;
            }
        }
    }

    /// Others take memory: this share of the pages, in percent, leaves.
    pub(crate) fn press(&mut self, share: u64) {
        for _ in 0..self.pages.len() as u64 * share / 100 {
            self.leave();
        }
    }

    /// Evicts one page; false if none can leave.
    fn leave(&mut self) -> bool {
        for _ in 0..2 * self.pages.len() {
            if 2 * self.staying.len() > self.pages.len()
                && let Some(first) = self.staying.pop_front()
            {
                self.order.push_back(first);
                if let Some(page) = self.pages.get_mut(&first) {
                    page.uses = 0;
                }
            }
            let Some(first) = self.order.pop_front() else {
                return false;
            };
            match self.pages.get(&first) {
                Some(page) if page.request.is_some() => self.order.push_back(first),
                Some(page) if page.uses >= STAYS => self.staying.push_back(first),
                _ => {
                    self.pages.remove(&first);
                    return true;
                }
            }
        }
        false
    }
}
