//! Where the bytes of files lie on the servers' disks.
//!
//! The model knows one line of bytes, striped over the servers. A file takes it in
//! rows, which are a stripe of each server: the next free row when a row of the file
//! is first written, or read, so that files written one after the other lie one after
//! the other. Invariant: no two rows of files have the same place, as long as files
//! have fewer rows than the disks.

use std::collections::{BTreeMap, BTreeSet};

use foreread_disk::striped::{SERVERS, STRIPE_BYTES};

/// A stripe of each server, bytes.
const ROW: u64 = SERVERS * STRIPE_BYTES;

/// Where a piece of a file lies: (place, length) in bytes, in the order of the file.
pub(super) type Places = Vec<(u64, u32)>;

pub(super) struct Rows {
    /// (file, row of it) to its place.
    places: BTreeMap<(u64, u64), u64>,
    free: BTreeSet<u64>,
    /// The first place that was never used.
    next: u64,
    all: u64,
}

impl Rows {
    pub(super) fn new(size: u64) -> Rows {
        Rows {
            places: BTreeMap::new(),
            free: BTreeSet::new(),
            next: 0,
            all: (size / ROW).max(1),
        }
    }

    /// Where `[offset, offset + len)` of a file lies.
    pub(super) fn find(&mut self, file: u64, offset: u64, len: u32) -> Places {
        let mut found = Places::new();
        let (mut at, mut left) = (offset, len);
        while left > 0 {
            let inside = at % ROW;
            let piece = u64::from(left).min(ROW - inside) as u32;
            let place = self.place(file, at / ROW) * ROW + inside;
            match found.last_mut() {
                Some((start, length)) if *start + u64::from(*length) == place => *length += piece,
                _ => found.push((place, piece)),
            }
            at += u64::from(piece);
            left -= piece;
        }
        found
    }

    /// Frees the content of a file from byte `len` on.
    pub(super) fn cut(&mut self, file: u64, len: u64) {
        let mut gone = self.places.split_off(&(file, len.div_ceil(ROW)));
        self.places.append(&mut gone.split_off(&(file + 1, 0)));
        self.free.extend(gone.into_values());
    }

    fn place(&mut self, file: u64, row: u64) -> u64 {
        *self.places.entry((file, row)).or_insert_with(|| {
            self.free.pop_first().unwrap_or_else(|| {
                self.next += 1;
                // Holes that are read can make more rows than there are.
                (self.next - 1) % self.all
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_order_lies_in_one_piece() {
        let mut rows = Rows::new(64 * ROW);
        assert_eq!(rows.find(7, 0, ROW as u32), [(0, ROW as u32)]);
        assert_eq!(rows.find(9, 0, 4096), [(ROW, 4096)]);
        assert_eq!(rows.find(7, ROW, 4096), [(2 * ROW, 4096)]);
        assert_eq!(
            rows.find(7, ROW - 4096, 8192),
            [(ROW - 4096, 4096), (2 * ROW, 4096)]
        );
        assert_eq!(
            rows.find(9, 0, 4096),
            [(ROW, 4096)],
            "a file stays where it is"
        );
    }

    #[test]
    fn what_a_file_gives_back_is_taken_again() {
        let mut rows = Rows::new(64 * ROW);
        rows.find(7, 0, 4 * ROW as u32);
        rows.find(8, 0, 1);
        rows.cut(7, ROW + 1);
        assert_eq!(rows.find(8, ROW, 1), [(2 * ROW, 1)]);
        assert_eq!(
            rows.find(7, ROW, 1),
            [(ROW, 1)],
            "the row that was cut in two stays"
        );
        rows.cut(7, 0);
        assert_eq!(rows.find(8, 2 * ROW, 1), [(0, 1)]);
    }
}
