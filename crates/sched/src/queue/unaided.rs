//! Streams that turn out to be read ahead by nobody.

use foreread_plan::FileId;

use super::{PATTERN, Queue};

impl Queue {
    /// The kernel reads nothing of this file ahead: what is marked as a stream of it is read like anything else.
    pub fn scatter(&mut self, file: FileId) {
        for entry in self.entries.iter_mut().filter(|entry| entry.file == file) {
            let old = entry.pattern();
            let new = old.unaided();
            entry.what ^= (old as u64 ^ new as u64) << PATTERN;
        }
    }
}
