//! Requests of the scheduler to a backend.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::{Extent, FileId, PAGE};

/// A request's number within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A number that small files have in common which are likely to lie next to each other on their device.
pub type Kin = NonZeroU32;

/// A contiguous run of pages of one file to bring into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the request in the backend's answers.
    pub id: RequestId,
    /// The file.
    pub file: FileId,
    /// Page numbers `[start, end)`; never empty.
    pub pages: Range<u64>,
}

impl Request {
    /// The bytes the request covers, page aligned.
    pub fn extent(&self) -> Extent {
        Extent::new(
            self.pages.start * PAGE,
            (self.pages.end - self.pages.start) * PAGE,
        )
    }
}
