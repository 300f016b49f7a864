//! What a device's requests cost beside the pages that they transfer: whether it is cheaper to read a gap between two wants than to make
//! two requests.
//!
//! A device that has more to do than it can do at once is held up by the number of requests, or by the number of pages. Its own counts tell
//! how many of each it completes in a stretch of time. The least time for a request, measured while requests are small, and the least
//! time for a page, measured while they are large, give what a request costs, in pages. So some requests are made large to find out.
//!
//! No threads, clocks or system calls. Data flow: [`Sight`]s → [`Price::saw`] → [`Price::reach`].

use std::ops::Range;

use crate::wants::JOINED;

/// What a device has done, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// When it was looked at, in ns.
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
const STRETCH: u64 = 64;
/// Of each [`PERIOD`] requests, those that are made large where gaps are not known to be worth anything: 2 MiB at most.
const TRIED: Range<u64> = 128..144;
const PERIOD: u64 = 8192;
/// Requests that a device has when it is what is waited for.
const BUSY: u64 = 16;
/// Pages of a request with its gaps, at most.
const SPAN: u64 = 256;

/// How far a request may reach, in pages.
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

/// What is known of a device's prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Price {
    made: u64,
    /// The beginning of a stretch of time in which the device is busy.
    since: Option<Sight>,
    /// The least time for a request and for a page, in ns.
    least: Option<(u64, u64)>,
}

impl Price {
    /// One more request is made; whether the device is to be looked at.
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
        let since = *self.since.get_or_insert(now);
        let requests = now.requests.saturating_sub(since.requests);
        if requests < STRETCH {
            return;
        }
        let time = now.at.saturating_sub(since.at);
        let pages = now.pages.saturating_sub(since.pages).max(1);
        let (request, page) = (time / requests, time / pages);
        self.least = match self.least {
            None => Some((request, page)),
            Some(least) => Some((least.0.min(request), least.1.min(page))),
        };
        self.since = Some(now);
    }

    /// How far the next request may reach.
    pub(crate) fn reach(&self) -> Reach {
        match self.worth() {
            0 if self.since.is_some() && TRIED.contains(&(self.made % PERIOD)) => Reach {
                gap: JOINED,
                span: JOINED,
            },
            gap => Reach { gap, span: SPAN },
        }
    }

    /// How many pages are transferred in the time that a request takes more than its page.
    fn worth(&self) -> u64 {
        let (request, page) = self.least.unwrap_or_default();
        (request / page.max(1)).saturating_sub(1).min(SPAN)
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
        let mixed = [(64, 64), (64, 2048), (64, 128)];
        // A volume of 3,000 requests and 30,000 pages a second, whichever is reached first.
        let volume = |requests: u64, pages: u64| (requests * 333_000).max(pages * 33_300);
        assert_eq!(priced(volume, &mixed).worth(), 9);
        // A device whose requests take 12 us, and each page 4 us of it.
        let disk = |requests: u64, pages: u64| requests * 8_000 + pages * 4_000;
        assert_eq!(priced(disk, &mixed).worth(), 1);
        let pages = |_: u64, pages: u64| pages * 40_000;
        assert_eq!(priced(pages, &mixed).worth(), 0);
    }

    #[test]
    fn requests_of_one_size_tell_nothing_and_some_are_made_larger() {
        let mut price = priced(|requests: u64, _| requests * 333_000, &[(64, 64); 8]);
        assert_eq!(price.worth(), 0);
        let tried = (0..PERIOD).filter(|_| {
            price.made();
            price.reach().gap > 0
        });
        assert_eq!(tried.count(), 16);
    }

    #[test]
    fn a_device_that_is_not_busy_tells_nothing() {
        let mut price = Price::default();
        for at in 1..10 {
            price.saw(Sight {
                at: at * 1_000_000,
                requests: at * 64,
                pages: at * at * 64,
                waiting: BUSY - 1,
            });
        }
        assert_eq!(price.least, None);
    }
}
