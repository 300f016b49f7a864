//! Requests pages of several small files so that the kernel makes one operation of adjacent ones.
//!
//! Invariant: each missing page is requested. If a file system ignores joint requests, each of its files gets a request of its own, now and
//! later.

use std::collections::HashSet;
use std::ops::Range;
use std::os::fd::AsFd;

use foreread_plan::Request;
use foreread_sys::together::Together;

use super::file::SMALL_HINT;
use super::held::Held;

/// The means of joint requests, if there are any.
#[derive(Default)]
pub(super) struct Joined {
    /// `None` before the first, and where the kernel offers no io_uring.
    way: Option<Together>,
    /// True if the kernel was asked for io_uring.
    asked: bool,
    /// Devices whose file systems ignore joint requests.
    deaf: HashSet<u64>,
}

impl Joined {
    fn way(&mut self) -> Option<&mut Together> {
        if !std::mem::replace(&mut self.asked, true) {
            self.way = Together::new(SMALL_HINT as u32).ok();
        }
        self.way.as_mut()
    }

    /// Requests the missing parts of these requests, whose files are open in `held`. False if no joint request was possible, or if the file
    /// system ignored it.
    pub(super) fn hint(
        &mut self,
        held: &Held,
        requests: &[Request],
        missing: &[Vec<Range<u64>>],
    ) -> bool {
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
        let Some((last, _)) = asked.rev().find(|(_, parts)| !parts.is_empty()) else {
            return false;
        };
        let dev = last.place.0;
        let is_long = |(_, bytes): &(_, Range<u64>)| bytes.end - bytes.start > SMALL_HINT;
        // A file may have grown.
        if parts.len() < 2 || parts.iter().any(is_long) || self.deaf.contains(&dev) {
            return false;
        }
        let Some(way) = self.way() else {
            return false;
        };
        let Ok(heard) = way.will_need(&parts) else {
            self.way = None;
            return false;
        };
        if !heard {
            self.deaf.insert(dev);
        }
        heard
    }
}
