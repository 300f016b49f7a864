//! A source that knows nothing.

use foreread_plan::{Access, Expected};

use crate::Source;

/// Discloses nothing, finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Source for Null {
    fn disclose(&mut self, _: usize, _: &mut Vec<Expected>) {}

    fn rewind(&mut self) {}

    fn resync(&mut self, _: &[Access]) -> bool {
        false
    }
}
