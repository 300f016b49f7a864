//! Reads outside all loops: which stride mostly follows which (the paper's Figure 3, last resort).
//!
//! A first-order Markov chain over strides, from the start of one read to the start of the next. For each stride the
//! table has the few strides that followed it, with how often they did. A stride is predicted where it followed
//! in at least [`LIKELY`] of the cases, and a series of them while the product of their likelihoods is as large.
//!
//! Invariant: the table has a fixed size. A stride whose slot is occupied lowers the occupant's count, and replaces it when that is 0.

use foreread_plan::Extent;

/// Strides in the table (5 KiB of memory).
const PLACES: usize = 64;
/// Strides kept that may follow one.
const FOLLOWERS: usize = 4;
/// Least likelihood at which a stride is predicted, in percent. A wrong page costs one read of the device, a correct one
/// saves one wait: above one half a guess gains. Three quarters leave room for the other costs of fetching.
const LIKELY: u64 = 75;
/// Times a stride must have been seen before its successor is predicted. Two of two would be a guess.
const SEEN: u32 = 4;
/// Counts are halved at this number, so that the table follows a program that changes.
const MOST: u32 = 64;
/// Reads predicted at once, at most: an error in one makes all later ones wrong.
const SERIES: usize = 16;

/// A stride and its successors.
#[derive(Clone, Copy, Debug, Default)]
struct Followers {
    stride: i64,
    /// Number of occurrences of the stride.
    seen: u32,
    followers: [(i64, u32); FOLLOWERS],
}

/// The table of strides and their successors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markov {
    /// Allocated at the first stride.
    places: Vec<Followers>,
    last: Option<Extent>,
    stride: Option<i64>,
}

impl Markov {
    /// A read that no loop predicted. Returns whether the chain did.
    pub(crate) fn push(&mut self, read: Extent) -> bool {
        let Some(last) = self.last.replace(read) else {
            return false;
        };
        let stride = read.offset.wrapping_sub(last.offset) as i64;
        let right = self
            .likely(self.stride)
            .is_some_and(|(likely, _)| likely == stride);
        if self.places.is_empty() {
            self.places = vec![Followers::default(); PLACES];
        }
        if let Some(before) = self.stride.replace(stride) {
            self.places[slot(before)].note(before, stride);
        }
        right
    }

    /// Forgets the last read: others, which loops predicted, come between.
    pub(crate) fn part(&mut self) {
        self.last = None;
        self.stride = None;
    }

    /// The successor of a stride, and its likelihood in percent.
    fn likely(&self, stride: Option<i64>) -> Option<(i64, u64)> {
        let stride = stride?;
        let place = self.places.get(slot(stride))?;
        if place.stride != stride || place.seen < SEEN {
            return None;
        }
        let (next, count) = place.followers.iter().max_by_key(|(_, count)| *count)?;
        let percent = (u64::from(*count) * 100 / u64::from(place.seen)).min(100);
        (percent >= LIKELY).then_some((*next, percent))
    }

    /// True if a next read is expected.
    pub(crate) fn predicts(&self) -> bool {
        self.likely(self.stride).is_some()
    }

    /// The reads expected next, at most [`SERIES`], of the length of the last one.
    pub(crate) fn ahead(&self) -> Vec<Extent> {
        let mut reads = Vec::new();
        let Some(mut last) = self.last else {
            return reads;
        };
        let mut stride = self.stride;
        let mut likelihood = 100;
        while let Some((next, percent)) = self.likely(stride)
            && reads.len() < SERIES
        {
            likelihood = likelihood * percent / 100;
            let Some(offset) = last.offset.checked_add_signed(next) else {
                break;
            };
            if likelihood < LIKELY {
                break;
            }
            last = Extent::new(offset, last.len);
            reads.push(last);
            stride = Some(next);
        }
        reads
    }
}

impl Followers {
    /// `next` followed `stride`.
    fn note(&mut self, stride: i64, next: i64) {
        if self.stride != stride && self.seen > 0 {
            self.seen -= 1;
            return;
        }
        if self.seen == 0 {
            *self = Self::default();
            self.stride = stride;
        }
        self.seen += 1;
        let known = self
            .followers
            .iter()
            .position(|(one, count)| *one == next && *count > 0);
        let rarest = || {
            (0..FOLLOWERS)
                .min_by_key(|at| self.followers[*at].1)
                .unwrap_or(0)
        };
        match known {
            Some(at) => self.followers[at].1 += 1,
            None => {
                let at = rarest();
                // The rarest follower ages, and gives way once its count is 0.
                match self.followers[at].1 {
                    0 => self.followers[at] = (next, 1),
                    _ => self.followers[at].1 -= 1,
                }
            }
        }
        if self.seen >= MOST {
            self.seen /= 2;
            for (_, count) in &mut self.followers {
                *count /= 2;
            }
        }
    }
}

/// The slot of a stride in the table (Fibonacci hashing).
fn slot(stride: i64) -> usize {
    let hash = (stride as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 58) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_that_mostly_follow_each_other_are_predicted() {
        let mut markov = Markov::default();
        let mut offset = 0;
        let mut right = 0;
        for number in 0..400u64 {
            right += u64::from(markov.push(Extent::new(offset, 4096)));
            // After a stride of 8 KiB one of 64 KiB; after that, one of 8 KiB, but for one in ten.
            offset += if number % 2 == 0 { 8192 } else { 65_536 };
            offset += if number % 20 == 19 { 4096 } else { 0 };
        }
        assert!(right > 300, "{right} of 400");
        let ahead = markov.ahead();
        assert!(!ahead.is_empty() && ahead.len() < 8, "{ahead:?}");
    }

    #[test]
    fn of_a_random_series_nothing_is_said() {
        let mut markov = Markov::default();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            assert!(!markov.push(Extent::new(random.u64(..1 << 24) * 4096, 4096)));
            assert!(markov.ahead().is_empty());
        }
    }
}
