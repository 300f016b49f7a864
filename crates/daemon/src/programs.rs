//! The programs that the daemon keeps figures of, and how many.

use std::sync::Arc;

/// Programs kept, each of one user: a desktop runs some hundred.
pub(crate) const PROGRAMS: usize = 256;

/// A program that opens files, and its user.
pub(crate) type Key = (Arc<str>, u32);
