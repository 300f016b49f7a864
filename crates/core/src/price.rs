//! The cost of a device's requests compared with the pages that they transfer. It decides whether reading a gap between two wants is
//! cheaper than making two requests.
//!
//! A busy device is limited by the number of requests or by the number of pages. Its counters show how many of each it completes in an
//! interval. An interval with small requests shows the time of a request. The interval with the least time per page shows an upper bound of
//! the time of a page: while larger requests take no longer than small ones, pages take less than that. Some requests are made large to
//! find out.
//!
//! No threads, clocks or system calls. Data flow: [`Sight`]s → [`Price::saw`] → [`Price::reach`].

use crate::wants::JOINED;

/// A device's counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Time of the reading, in ns.
    pub(crate) at: u64,
    /// Requests completed since it appeared.
    pub(crate) requests: u64,
    /// Pages of them.
    pub(crate) pages: u64,
    /// Requests that it has.
    pub(crate) waiting: u64,
}

/// Requests between two looks at a device.
const LOOKS: u64 = 32;
/// Requests that a device completes in a stretch of time, at least.
const STRETCH: u64 = 128;
/// Requests per [`PERIOD`] of a busy device that are made large, to measure the cost of pages: 2 MiB at most.
const TRIED: u64 = 16;
const PERIOD: u64 = 8192;
/// Requests in flight from which on a device counts as busy.
const BUSY: u64 = 16;
/// Ratio up to which two sizes or times count as equal.
const ALIKE: f64 = 1.1;
/// Pages of a request with its gaps, at most.
const SPAN: u64 = 256;

/// Largest extension of a request, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Over a gap.
    pub(crate) gap: u64,
    /// From its first page of a file to its last.
    pub(crate) span: u64,
}

impl Reach {
    /// Over no gap.
    pub(crate) const NEAR: Self = Self { gap: 0, span: SPAN };
}

/// The prices of a device, as far as measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Price {
    made: u64,
    /// The number of the last request that is to be made large; `None` before the device was busy for the first time.
    tried: Option<u64>,
    /// The beginning of a stretch of time in which the device is busy.
    since: Option<Sight>,
    /// A stretch of small requests, and one of the least time for a page.
    seen: Option<(Stretch, Stretch)>,
}

/// An interval of a device's work: the mean time and size of its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    /// Time per request, in ns.
    request: f64,
    /// Pages per request.
    size: f64,
}

impl Stretch {
    /// Time per page, in ns.
    fn page(&self) -> f64 {
        self.request / self.size
    }

    /// The one with smaller requests, or with less time for them where they are as small.
    fn smaller(self, other: Self) -> Self {
        let is_less = if self.size.max(other.size) < ALIKE * self.size.min(other.size) {
            other.request < self.request
        } else {
            other.size < self.size
        };
        if is_less { other } else { self }
    }

    /// The one with less time for a page.
    fn quicker(self, other: Self) -> Self {
        if other.page() < self.page() {
            other
        } else {
            self
        }
    }
}

impl Price {
    /// Counts a request. True if the device's counters are to be read.
    pub(crate) fn made(&mut self) -> bool {
        self.made += 1;
        self.made.is_multiple_of(LOOKS)
    }

    /// A look at the device.
    pub(crate) fn saw(&mut self, now: Sight) {
        if now.waiting < BUSY {
            self.since = None;
            return;
        }
        if self.tried.is_none_or(|last| self.made >= last + PERIOD) {
            self.tried = Some(self.made + TRIED);
        }
        let since = *self.since.get_or_insert(now);
        let requests = now.requests.saturating_sub(since.requests);
        if requests < STRETCH {
            return;
        }
        let count = |now: u64, since: u64| now.saturating_sub(since).max(1) as f64;
        let stretch = Stretch {
            request: count(now.at, since.at) / requests as f64,
            size: count(now.pages, since.pages) / requests as f64,
        };
        let (small, quick) = self.seen.unwrap_or((stretch, stretch));
        self.seen = Some((small.smaller(stretch), quick.quicker(stretch)));
        self.since = Some(now);
    }

    /// Largest extension of the next request.
    pub(crate) fn reach(&self) -> Reach {
        match self.worth() {
            0 if self.tried.is_some_and(|last| self.made <= last) => Reach {
                gap: JOINED,
                span: JOINED,
            },
            gap => Reach { gap, span: SPAN },
        }
    }

    /// Number of pages transferred in the fixed time of a request.
    fn worth(&self) -> u64 {
        let Some((small, quick)) = self.seen else {
            return 0;
        };
        let pages = small.request / quick.page() - small.size;
        let is_free = quick.size > ALIKE * small.size && quick.request < ALIKE * small.request;
        let pages = if is_free { 2.0 * pages } else { pages };
        (pages.max(0.0) as u64).min(SPAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that was seen to complete these (requests, pages) at a time, busy, each in `time` of them, in ns.
    fn priced(time: impl Fn(u64, u64) -> u64, done: &[(u64, u64)]) -> Price {
        let mut sight = Sight {
            at: 0,
            requests: 0,
            pages: 0,
            waiting: BUSY,
        };
        let mut price = Price::default();
        price.saw(sight);
        for &(requests, pages) in done {
            sight.at += time(requests, pages);
            sight.requests += requests;
            sight.pages += pages;
            price.saw(sight);
        }
        price
    }

    #[test]
    fn a_gap_is_worth_what_a_request_takes_beside_its_page() {
        let mixed = [(128, 128), (128, 4096), (128, 256)];
        // A volume limited to 3,000 requests and to 30,000 pages a second.
        let volume = |requests: u64, pages: u64| (requests * 333_000).max(pages * 33_300);
        assert_eq!(priced(volume, &mixed).worth(), 9);
        // A device that takes 8 µs per request and 4 µs per page.
        let disk = |requests: u64, pages: u64| requests * 8_000 + pages * 4_000;
        assert_eq!(priced(disk, &mixed).worth(), 1);
        // A few large requests among small ones show only an upper bound of the time of a page.
        assert_eq!(priced(volume, &[(128, 128), (128, 512)]).worth(), 6);
        let pages = |_: u64, pages: u64| pages * 40_000;
        assert_eq!(priced(pages, &mixed).worth(), 0);
        // Requests of two pages, which take 2 us more than their pages.
        let pairs = |requests: u64, pages: u64| requests * 2_000 + pages * 5_000;
        assert_eq!(priced(pairs, &[(128, 256), (128, 4096)]).worth(), 0);
    }

    #[test]
    fn requests_of_one_size_tell_nothing_and_some_are_made_larger() {
        let mut price = priced(|requests: u64, _| requests * 333_000, &[(128, 128); 8]);
        assert_eq!(price.worth(), 0);
        let tried = (0..PERIOD).filter(|_| {
            price.made();
            price.reach().gap > 0
        });
        assert_eq!(tried.count() as u64, TRIED);
    }

    #[test]
    fn a_device_that_is_not_busy_tells_nothing() {
        let mut price = Price::default();
        for at in 1..10 {
            price.saw(Sight {
                at: at * 1_000_000,
                requests: at * 128,
                pages: at * at * 128,
                waiting: BUSY - 1,
            });
        }
        assert_eq!(price.seen, None);
    }
}
