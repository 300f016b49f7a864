//! A source that knows nothing.

use foreread_plan::Expected;

use crate::{Nature, Outlook, Source};

/// Discloses nothing, finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Source for Null {
    fn nature(&self) -> Nature {
        Nature::Told
    }

    fn disclose(&mut self, _: usize, _: &mut Vec<Expected>) -> Outlook {
        Outlook::End
    }
}
