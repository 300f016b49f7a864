//! What stands in for the kernel's side where it was not built. There is none of it, ever.

use std::convert::Infallible;
use std::os::fd::BorrowedFd;

use super::Event;
use crate::decide::Refused;

/// An observation that cannot be begun.
#[derive(Debug)]
pub struct System(Infallible);

#[expect(missing_docs, reason = "as the kernel's side has them")]
impl System {
    pub(crate) fn begin() -> Result<Self, String> {
        Err(Refused::NotBuilt.to_string())
    }

    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn alarm_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn poll(&mut self, _: &mut dyn FnMut(Event)) -> bool {
        match self.0 {}
    }

    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        match self.0 {}
    }
}
