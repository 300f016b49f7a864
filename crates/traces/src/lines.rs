//! The face of a decoder of a text: lines in, accesses out.
//!
//! Invariant: a decoder keeps only calls that have begun and not ended, and names; each access comes out once its last line
//! was read.

use std::collections::VecDeque;

use crate::problem::Fault;
use crate::{Access, Names};

/// A decoder of a line-based format.
pub(crate) trait Lines {
    /// Decodes a line of `raw` bytes, and adds the accesses that it completes.
    fn line(
        &mut self,
        line: &str,
        raw: u32,
        names: &mut Names,
        out: &mut VecDeque<Access>,
    ) -> Result<(), Fault>;

    /// Handles the end of the trace: a fault if an announced part is missing.
    fn end(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Accesses that were understood and left out on purpose, in sentences, once the trace has ended.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }
}
