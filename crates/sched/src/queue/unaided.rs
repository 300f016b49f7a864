//! Streams that turn out to be read ahead by nobody.

use foreread_plan::FileId;

use super::{PATTERN, Queue};

impl Queue {
    /// The kernel does not read this file ahead: its entries marked as streams are treated like all others.
    pub fn scatter(&mut self, file: FileId) {
        for entry in self.entries.iter_mut().filter(|entry| entry.file == file) {
            let old = entry.pattern();
            let new = old.unaided();
            entry.what ^= (old as u64 ^ new as u64) << PATTERN;
        }
    }
}
