//! What stands in for the kernel's side where it was not built. There is none of it, ever.

use std::convert::Infallible;

use crate::Event;
use crate::decide::{Refused, Seen};

/// An observation that cannot be begun.
#[derive(Debug)]
pub struct Observation(Infallible);

#[expect(missing_docs, reason = "as the kernel's side has them")]
impl Observation {
    pub(crate) fn begin(_: u32, _: u32) -> Result<Self, String> {
        Err(Refused::NotBuilt.to_string())
    }

    pub fn seen(&self) -> Seen {
        match self.0 {}
    }

    pub fn follow(&mut self, _: u32) {
        match self.0 {}
    }

    pub fn want(&mut self, _: bool) {
        match self.0 {}
    }

    pub fn poll(&mut self, _: &mut dyn FnMut(Event)) -> usize {
        match self.0 {}
    }

    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        match self.0 {}
    }

    pub fn elsewhere(&self) -> u64 {
        match self.0 {}
    }
}
