//! A source that knows nothing.

use foreread_plan::Access;

use crate::{Disclosed, Source};

/// Discloses nothing, finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Source for Null {
    fn disclose(&mut self, _: usize, _: &mut Vec<Disclosed>) {}

    fn resync(&mut self, _: &[Access]) -> bool {
        false
    }
}
