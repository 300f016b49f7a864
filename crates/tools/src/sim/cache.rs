//! A cache of whole files with a limit of memory, which drops the least recently used file.
//!
//! Invariant: a file takes whole pages and at least one, for its inode, so the memory limits the number of files as well. There is also a
//! separate limit of files.

use foreread_sources::files::Symbol;
use lru::LruCache;

/// Bytes of a page.
const PAGE: u64 = 4096;

#[derive(Debug)]
struct Entry {
    size: u64,
    ahead: bool,
}

/// Number of files, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Sum {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Sum {
    pub(super) fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// A simulated cache.
#[derive(Debug)]
pub(super) struct Cache {
    files: LruCache<Symbol, Entry>,
    bytes: u64,
    limit: u64,
    most: usize,
    /// Prefetched and dropped unread.
    pub(super) wasted: Sum,
    /// Prefetched.
    pub(super) issued: Sum,
}

impl Cache {
    /// A cache of this many bytes and files.
    pub(super) fn new(limit: u64, most: usize) -> Self {
        Self {
            files: LruCache::unbounded(),
            bytes: 0,
            limit,
            most,
            wasted: Sum::default(),
            issued: Sum::default(),
        }
    }

    /// Reads a file. Returns whether it was in the cache, and whether this is its first read after being prefetched.
    pub(super) fn read(&mut self, symbol: Symbol, size: u64) -> (bool, bool) {
        if let Some(entry) = self.files.get_mut(&symbol) {
            let ahead = std::mem::take(&mut entry.ahead);
            return (true, ahead);
        }
        self.insert(symbol, size, false);
        (false, false)
    }

    /// Prefetches a file; false if the cache has the file already, or if the file is larger than the cache.
    pub(super) fn fetch(&mut self, symbol: Symbol, size: u64) -> bool {
        let is_new = !self.files.contains(&symbol) && taken(size) <= self.limit;
        if is_new {
            self.issued.add(size);
            self.insert(symbol, size, true);
        }
        is_new
    }

    fn insert(&mut self, symbol: Symbol, size: u64, ahead: bool) {
        self.files.put(symbol, Entry { size, ahead });
        self.bytes += taken(size);
        while (self.bytes > self.limit || self.files.len() > self.most)
            && let Some((_, dropped)) = self.files.pop_lru()
        {
            self.bytes -= taken(dropped.size);
            if dropped.ahead {
                self.wasted.add(dropped.size);
            }
        }
    }

    /// Prefetched and still unread: wasted if nothing more is read.
    pub(super) fn unread(&self) -> Sum {
        let mut sum = Sum::default();
        for (_, entry) in &self.files {
            if entry.ahead {
                sum.add(entry.size);
            }
        }
        sum
    }
}

/// Memory of a file with this size.
fn taken(size: u64) -> u64 {
    size.div_ceil(PAGE).max(1) * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_ahead_counts_until_it_is_read_or_dropped() {
        let mut cache = Cache::new(3 * PAGE, 100);
        assert_eq!(cache.read(Symbol(1), 10), (false, false));
        cache.fetch(Symbol(2), 10);
        cache.fetch(Symbol(1), 10);
        assert_eq!(
            cache.issued,
            Sum {
                files: 1,
                bytes: 10
            }
        );
        assert_eq!(cache.read(Symbol(2), 10), (true, true));
        assert_eq!(cache.read(Symbol(2), 10), (true, false));
        cache.fetch(Symbol(3), 10);
        assert_eq!(cache.unread().files, 1);
        for symbol in 4..7 {
            cache.read(Symbol(symbol), 10);
        }
        assert_eq!(
            cache.wasted,
            Sum {
                files: 1,
                bytes: 10
            }
        );
        assert_eq!(cache.unread(), Sum::default());
        assert_eq!(cache.read(Symbol(1), 10), (false, false));
        cache.fetch(Symbol(9), 3 * PAGE + 1);
        assert_eq!(cache.issued.files, 2, "larger than the memory");
    }

    #[test]
    fn empty_files_take_memory_too_and_files_are_bounded() {
        for (bytes, files, kept) in [(10 * PAGE, 100, 10), (1 << 40, 7, 7)] {
            let mut cache = Cache::new(bytes, files);
            (0..1000).for_each(|symbol| {
                cache.fetch(Symbol(symbol), 0);
            });
            assert_eq!(cache.unread().files, kept);
        }
    }
}
