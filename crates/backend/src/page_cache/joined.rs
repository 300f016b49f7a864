//! Hints about several small files, given so that the kernel makes one operation of what lies together.
//!
//! Invariant: each missing page is hinted about. Where a file system ignores hints given together, each of its files has a hint of
//! its own, for these requests and for all later ones.

use std::collections::HashSet;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Instant;

use foreread_plan::Request;
use foreread_sys::together::Together;

use super::SMALL_HINT;
use super::worker::Worker;

/// How hints are given together, where they can be.
#[derive(Default)]
pub(super) struct Joined {
    /// `None` before the first, and where the kernel offers no io_uring.
    way: Option<Together>,
    /// Whether the kernel was asked for io_uring.
    asked: bool,
    /// Devices whose file systems ignore such hints.
    deaf: HashSet<u64>,
}

impl Joined {
    fn way(&mut self) -> Option<&mut Together> {
        if !std::mem::replace(&mut self.asked, true) {
            self.way = Together::new(SMALL_HINT as u32).ok();
        }
        self.way.as_mut()
    }
}

impl Worker {
    /// Fetch what is missing of these, which are of small files.
    pub(super) fn fetch_together(&mut self, requests: &[Request]) {
        let missing: Vec<_> = requests
            .iter()
            .map(|request| {
                self.held.requested(request.file, Instant::now());
                let events = self.events.clone();
                let opened = self.open_for(request)?;
                Some(opened.announce_missing(request, &events))
            })
            .map(Option::unwrap_or_default)
            .collect();
        let joined = self.hint_together(requests, &missing);
        for (request, mut parts) in requests.iter().zip(missing) {
            if !joined && let Some(opened) = self.held.get(request.file) {
                parts.retain(|part| opened.hint(part, SMALL_HINT).is_ok());
            }
            self.watch(request, parts);
            self.held.settle(request.file);
        }
    }

    /// Hint about these parts; whether anything came of it.
    fn hint_together(&mut self, requests: &[Request], missing: &[Vec<Range<u64>>]) -> bool {
        let held = &self.held;
        let asked = requests.iter().zip(missing);
        let asked = asked.filter_map(|(request, parts)| Some((held.get(request.file)?, parts)));
        let parts: Vec<_> = asked
            .clone()
            .flat_map(|(opened, parts)| {
                parts
                    .iter()
                    .map(move |part| (opened.fd().as_fd(), opened.bytes(part)))
            })
            .collect();
        let Some((last, pages)) = asked.rev().find(|(_, parts)| !parts.is_empty()) else {
            return false;
        };
        let dev = last.place.0;
        let is_long = |(_, bytes): &(_, Range<u64>)| bytes.end - bytes.start > SMALL_HINT;
        // A file may have grown.
        if parts.len() < 2 || parts.iter().any(is_long) || self.together.deaf.contains(&dev) {
            return false;
        }
        let Some(way) = self.together.way() else {
            return false;
        };
        if way.will_need(&parts).is_err() {
            self.together.way = None;
            return false;
        }
        // One that is on its way shows that the file system has listened.
        let bytes = pages.first().map(|part| last.bytes(part));
        let heard = bytes.is_some_and(|bytes| last.cached(&bytes).is_ok_and(|now| now.cached > 0));
        if !heard {
            self.together.deaf.insert(dev);
        }
        heard
    }
}
