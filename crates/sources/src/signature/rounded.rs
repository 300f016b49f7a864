//! Loops whose offsets are rounded down to a grid: a program that reads elements through a library's buffer reads the blocks that contain
//! them (netCDF: 8 KiB). A constant stride of 57,600 bytes then appears mostly as 7 blocks, and as 8 every 32nd time.
//!
//! The reads of such a loop are `floor((start + stride × iteration) / block) × block`, with a start for each term of its body. A read of
//! iteration `k` at `offset` implies `offset ≤ start + stride × k < offset + block`. For each term those bounds are kept that can still
//! matter (the convex hulls of the lower and of the upper bounds, O'Rourke, "An on-line algorithm for fitting straight lines between data
//! ranges", CACM 1981). Every two of them bound the stride, which all terms share. So the possible strides are an exact interval of whole
//! numbers, which narrows with the square of the iterations, and an impossible read ends the loop.
//!
//! The stride is assumed to be the number in its interval that is divisible by the largest power of two, like the sizes of elements. Each
//! start is assumed to be in the middle of its range.
//!
//! Invariant: `least ≤ most`, and for each stride between them each term has a start that yields all reads whose bounds are kept.

use foreread_plan::Extent;
use smallvec::SmallVec;

/// Terms that the body of a loop may have.
const GROUP: usize = 16;
/// Iterations that a loop must have shown to be found. With three, random reads form one too often.
const SHOWN: usize = 4;
/// Reads remembered to find a loop in: a power of two.
const RECENT: usize = GROUP * SHOWN;
/// The smallest block, in bytes: a sector. Libraries' buffers are larger.
const BLOCK: i64 = 512;
/// Bounds kept of each kind and term. The hulls of a rounded line have 2 to 8 corners; a bound that is dropped only widens the
/// interval.
const BOUNDS: usize = 12;

/// A bound: an iteration, and the offset that the true one is at least, or at most.
type Bound = (i64, i64);

/// A term of the body.
#[derive(Clone, Debug)]
struct Term {
    len: u64,
    /// Origin of the grid's blocks, less than one block.
    origin: i64,
    lows: SmallVec<[Bound; 4]>,
    highs: SmallVec<[Bound; 4]>,
}

/// The relation of a read to a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The one that was predicted.
    Predicted,
    /// Another that the loop can read here: the stride is better known now.
    Possible,
    /// None of the loop's.
    Strange,
}

/// A loop with rounded offsets, and the place in it.
#[derive(Clone, Debug)]
pub(super) struct Rounded {
    block: i64,
    /// The smallest and the largest stride that give all reads.
    least: i64,
    most: i64,
    terms: Vec<Term>,
    /// The next read.
    index: i64,
    term: usize,
    /// Reads that the same loop had elsewhere before it ended. It is not predicted beyond that until it proves longer.
    row: Option<i64>,
}

impl Rounded {
    /// The loop of `group` terms whose last iterations these reads are, the oldest first; `None` if they do not fit a rounded loop, or fit
    /// an exact one.
    fn of(reads: &[Extent], group: usize) -> Option<Self> {
        let strides = || {
            let pairs = reads.iter().zip(&reads[group..]);
            pairs.map(|(one, next)| next.offset as i64 - one.offset as i64)
        };
        let (least, most) = (strides().min()?, strides().max()?);
        let block = most - least;
        if block < BLOCK || (least <= 0 && most >= 0) || least % block != 0 {
            return None;
        }
        if strides().any(|stride| stride != least && stride != most) {
            return None;
        }
        Self::with(reads, group, block, (least + 1, most - 1))
    }

    /// The same, where the block and bounds of the stride are known.
    fn with(reads: &[Extent], group: usize, block: i64, (least, most): (i64, i64)) -> Option<Self> {
        let terms = reads[..group].iter().map(|read| Term {
            len: read.len,
            origin: read.offset as i64 % block,
            lows: SmallVec::new(),
            highs: SmallVec::new(),
        });
        let mut made = Self {
            block,
            least,
            most,
            terms: terms.collect(),
            index: 0,
            term: 0,
            row: None,
        };
        let fits = reads.iter().all(|&read| made.note(read));
        fits.then_some(made)
    }

    /// The next read.
    fn read(&mut self, read: Extent) -> Fit {
        let predicted = self.expected();
        if !self.note(read) {
            return Fit::Strange;
        }
        if predicted == Some(read) {
            Fit::Predicted
        } else {
            Fit::Possible
        }
    }

    /// Adds a read as the next one of the loop, if possible.
    fn note(&mut self, read: Extent) -> bool {
        let (index, low) = (self.index, read.offset as i64);
        let term = &mut self.terms[self.term];
        if read.len != term.len || low % self.block != term.origin {
            return false;
        }
        let high = low.saturating_add(self.block - 1);
        let (mut least, mut most) = (self.least, self.most);
        for &(at, bound) in &term.highs {
            if low - bound > least.saturating_mul(index - at) {
                least = -(bound - low).div_euclid(index - at);
            }
        }
        for &(at, bound) in &term.lows {
            if high - bound < most.saturating_mul(index - at) {
                most = (high - bound).div_euclid(index - at);
            }
        }
        if least > most {
            return false;
        }
        (self.least, self.most) = (least, most);
        keep(&mut term.lows, (index, low), 1, most);
        keep(&mut term.highs, (index, high), -1, least);
        self.term += 1;
        if self.term == self.terms.len() {
            (self.term, self.index) = (0, index + 1);
        }
        true
    }

    /// Reads so far.
    fn reads(&self) -> i64 {
        self.index * self.terms.len() as i64 + self.term as i64
    }

    /// The next expected read, whether or not the loop's end is known.
    fn expected(&self) -> Option<Extent> {
        let stride = roundest(self.least, self.most);
        self.terms[self.term]
            .at(stride)
            .read(stride, self.index, self.block)
    }

    /// The reads expected next, in order.
    pub(super) fn ahead(&self) -> Ahead {
        let stride = roundest(self.least, self.most);
        Ahead {
            block: self.block,
            stride,
            lines: self.terms.iter().map(|term| term.at(stride)).collect(),
            index: self.index,
            term: self.term,
            left: self
                .row
                .map(|row| row - self.reads())
                .filter(|&left| left > 0),
        }
    }
}

impl Term {
    /// The line of its true offsets with this stride.
    fn at(&self, stride: i64) -> Line {
        let at =
            |&(index, offset): &Bound| i128::from(offset) - i128::from(index) * i128::from(stride);
        let low = self.lows.iter().map(at).max().unwrap_or(0);
        let high = self.highs.iter().map(at).min().unwrap_or(low);
        Line {
            start: low + (high - low) / 2,
            origin: self.origin,
            len: self.len,
        }
    }
}

/// Keeps a lower bound (`side` 1) with those that can still bind a line no steeper than `limit`; of upper bounds (`side`
/// -1), which are lower ones upside down, a line no flatter.
fn keep(bounds: &mut SmallVec<[Bound; 4]>, new: Bound, side: i128, limit: i64) {
    let rise = |one: Bound, next: Bound| side * (i128::from(next.1) - i128::from(one.1));
    let run = |one: Bound, next: Bound| i128::from(next.0 - one.0);
    while let [.., before, last] = bounds[..]
        && rise(before, last) * run(last, new) <= rise(last, new) * run(before, last)
    {
        bounds.pop();
    }
    bounds.push(new);
    while let [first, second, ..] = bounds[..]
        && rise(first, second) >= side * i128::from(limit) * run(first, second)
    {
        bounds.remove(0);
    }
    if bounds.len() > BOUNDS {
        bounds.remove(1);
    }
}

/// The number in this range, including both ends, that is divisible by the largest power of two.
fn roundest(least: i64, most: i64) -> i64 {
    if least <= 0 && most >= 0 {
        return 0;
    }
    if most < 0 {
        return -roundest(-most, -least);
    }
    // The highest bit in which the number below the first and the last differ, and all above it.
    let bit = 63 - ((least - 1) ^ most).leading_zeros();
    most >> bit << bit
}

/// The continuation of a rounded loop.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    block: i64,
    stride: i64,
    lines: Vec<Line>,
    index: i64,
    term: usize,
    /// Number of reads left, if the loop's end is known.
    left: Option<i64>,
}

impl Iterator for Ahead {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).filter(|&left| left >= 0)?;
        }
        let read = self.lines[self.term].read(self.stride, self.index, self.block)?;
        self.term += 1;
        if self.term == self.lines.len() {
            (self.term, self.index) = (0, self.index + 1);
        }
        Some(read)
    }
}

/// The reads of one term, for one stride.
#[derive(Clone, Copy, Debug)]
struct Line {
    start: i128,
    /// Origin of the grid's blocks.
    origin: i64,
    len: u64,
}

impl Line {
    /// The read of this iteration; none where no file can have it.
    fn read(self, stride: i64, index: i64, block: i64) -> Option<Extent> {
        let offset = self.start + i128::from(stride) * i128::from(index);
        let below = (offset - i128::from(self.origin)).rem_euclid(i128::from(block));
        let read = Extent::new(u64::try_from(offset - below).ok()?, self.len);
        (read.offset.checked_add(self.len)? <= i64::MAX as u64).then_some(read)
    }
}

/// Finds rounded loops in a series of reads, and follows them.
#[derive(Clone, Debug)]
pub(super) struct Rounding {
    /// The last reads, a ring.
    recent: Box<[Extent; RECENT]>,
    reads: usize,
    followed: Option<Rounded>,
    /// The latest loop, and the number of reads before the one that ended it.
    ended: Option<(Rounded, usize)>,
}

impl Default for Rounding {
    fn default() -> Self {
        Self {
            recent: Box::new([Extent::default(); RECENT]),
            reads: 0,
            followed: None,
            ended: None,
        }
    }
}

impl Rounding {
    /// The loop that is followed.
    pub(super) fn followed(&self) -> Option<&Rounded> {
        self.followed.as_ref()
    }

    /// Adds a read; `exact`: an exact loop predicted it. Returns its relation to the followed loop, if there was one.
    #[inline]
    pub(super) fn read(&mut self, read: Extent, exact: bool) -> Option<Fit> {
        self.recent[self.reads % RECENT] = read;
        self.reads += 1;
        if self.followed.is_none() && exact {
            return None;
        }
        self.follow(read)
    }

    fn follow(&mut self, read: Extent) -> Option<Fit> {
        let Some(mut followed) = self.followed.take() else {
            self.followed = self.again(read).or_else(|| self.find());
            if self.followed.is_some() {
                self.ended = None;
            }
            return None;
        };
        let fit = followed.read(read);
        match fit {
            // A row that ends may be the iteration of a loop that has been shown by now.
            Fit::Strange => {
                self.followed = self.find();
                self.ended = Some((followed, self.reads - 1));
            }
            Fit::Predicted | Fit::Possible => self.followed = Some(followed),
        }
        Some(fit)
    }

    /// The read this many reads ago.
    fn back(&self, back: usize) -> Extent {
        self.recent[(self.reads - 1 - back) % RECENT]
    }

    /// The last `count` reads, the oldest first.
    fn last(&self, count: usize) -> Vec<Extent> {
        (0..count).rev().map(|back| self.back(back)).collect()
    }

    /// The distance from a read to its counterpart in the next iteration, if they have the same length.
    fn stride(&self, back: usize, group: usize) -> Option<i64> {
        let (one, next) = (self.back(back + group), self.back(back));
        (one.len == next.len).then(|| next.offset as i64 - one.offset as i64)
    }

    /// The ended loop, continued where it was left, or begun elsewhere: there its second iteration shows that its stride holds.
    fn again(&mut self, read: Extent) -> Option<Rounded> {
        let (ended, at) = self.ended.as_mut()?;
        let (since, group) = (self.reads - *at, ended.terms.len());
        if since > RECENT {
            self.ended = None;
            return None;
        }
        if ended.note(read) {
            return self.ended.take().map(|(ended, _)| ended);
        }
        let (block, bounds) = (ended.block, (ended.least, ended.most));
        let row = (since == group + 1).then(|| ended.reads());
        if since <= group || self.stride(0, group)? % block != 0 {
            return None;
        }
        let again = Rounded::with(&self.last(group + 1), group, block, bounds)?;
        Some(Rounded { row, ..again })
    }

    /// The loop whose last iterations the latest reads are.
    fn find(&self) -> Option<Rounded> {
        let known = self.reads.min(RECENT);
        for group in 1..=known / SHOWN {
            let Some(one) = self.stride(0, group) else {
                continue;
            };
            // Strides may have two values.
            let mut other = one;
            let mut fits = |stride: i64| {
                if other == one {
                    other = stride;
                }
                stride == one || stride == other
            };
            let pairs = (1..known - group)
                .take_while(|&back| self.stride(back, group).is_some_and(&mut fits));
            let shown = group * (SHOWN - 1);
            let pairs = 1 + pairs.count();
            if pairs < shown {
                continue;
            }
            let of = |pairs| Rounded::of(&self.last(pairs + group), group);
            if let Some(found) = of(pairs).or_else(|| of(shown)) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
