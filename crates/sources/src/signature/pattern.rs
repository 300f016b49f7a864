//! The representation of a series of reads: nested loops.
//!
//! A [`Term`] is one read or a [`Loop`]. A loop has a count and a body of terms. Offsets, lengths and counts are
//! [`Affine`]: a constant plus a step for each enclosing loop, times the index of that loop. Fixed and negative
//! strides, strides in any number of dimensions, sizes and counts that vary by a fixed step, runs with gaps and
//! repetitions are all loops of this one kind. The out-of-core LU decomposition (the paper's Table 1) is
//!
//! ```text
//! 125 times, j = 0, 1, ..
//!     read 524544 bytes at 1049088 + 524544 j
//!     1 + j times, i = 0, 1, ..
//!         read 518272 - 4096 i bytes at 524544 + 524544 i
//!     read 522368 bytes at 0
//! ```
//!
//! Invariant: arithmetic wraps at 64 bits, so that any series of extents can be written down and is given back
//! exactly ([`Trace::expand`]), whatever its numbers are.

use foreread_plan::Extent;

/// The operation of a series of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Both.
    ReadWrite,
}

impl Operation {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::ReadWrite];

    /// The word in a signature.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::ReadWrite => "READ/WRITE",
        }
    }
}

/// A constant plus a step for each enclosing loop, times that loop's index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The value where all indices are 0.
    pub base: i64,
    /// The step per iteration of each enclosing loop, the innermost first. Loops beyond the last entry have a step of 0; the last entry is
    /// never 0.
    pub steps: Vec<i64>,
}

impl Affine {
    /// A constant.
    pub const fn constant(base: i64) -> Self {
        let steps = Vec::new();
        Self { base, steps }
    }

    /// The step per iteration of the enclosing loop at this depth; 0 is the innermost.
    pub fn step(&self, depth: usize) -> i64 {
        self.steps.get(depth).copied().unwrap_or(0)
    }

    /// True if the value is the same in all iterations.
    pub fn is_constant(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds the step of a new outermost loop, which is at this depth.
    pub(crate) fn enclose(&mut self, depth: usize, step: i64) {
        if step != 0 {
            self.steps.resize(depth, 0);
            self.steps.push(step);
        }
    }

    /// The value with these indices, the outermost loop's first.
    pub(crate) fn at(&self, indices: impl DoubleEndedIterator<Item = u64>) -> i64 {
        let products = self.steps.iter().zip(indices.rev());
        products.fold(self.base, |sum, (step, index)| {
            sum.wrapping_add(step.wrapping_mul(index as i64))
        })
    }

    /// The value where `local` loops inside keep their indices, and the loops outside have these.
    fn resolved(&self, local: usize, outer: &[u64]) -> Self {
        let mut base = self.base;
        let outside = self.steps.iter().skip(local);
        for (step, index) in outside.zip(outer.iter().rev()) {
            base = base.wrapping_add(step.wrapping_mul(*index as i64));
        }
        let inside = &self.steps[..self.steps.len().min(local)];
        let kept = inside
            .iter()
            .rposition(|step| *step != 0)
            .map_or(0, |last| last + 1);
        let steps = inside[..kept].to_vec();
        Self { base, steps }
    }

    /// The value where the index of the loop at this depth counts from `by`.
    fn shift(&mut self, depth: usize, by: i64) {
        self.base = self.base.wrapping_add(self.step(depth).wrapping_mul(by));
    }
}

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// First byte.
    pub offset: Affine,
    /// Length in bytes.
    pub len: Affine,
}

/// Terms that are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Number of iterations; a count below 1 means none.
    pub count: Affine,
    /// The repeated terms.
    pub body: Vec<Term>,
}

/// One read or a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// One read.
    Read(Read),
    /// Terms that are repeated.
    Loop(Loop),
}

impl Term {
    /// A single read of these bytes.
    pub const fn read(extent: Extent) -> Self {
        Self::Read(Read {
            offset: Affine::constant(extent.offset as i64),
            len: Affine::constant(extent.len as i64),
        })
    }

    /// The offset of the first read, with all indices 0.
    pub(crate) fn head(&self) -> i64 {
        match self {
            Self::Read(read) => read.offset.base,
            Self::Loop(inner) => inner.begins(0),
        }
    }

    /// Nesting depth, including this term's own loop.
    pub fn depth(&self) -> usize {
        match self {
            Self::Read(_) => 0,
            Self::Loop(inner) => 1 + inner.body.iter().map(Self::depth).max().unwrap_or(0),
        }
    }

    /// The term where `local` loops inside keep their indices, and the loops outside have these.
    pub(crate) fn resolved(&self, local: usize, outer: &[u64]) -> Self {
        match self {
            Self::Read(read) => Self::Read(Read {
                offset: read.offset.resolved(local, outer),
                len: read.len.resolved(local, outer),
            }),
            Self::Loop(inner) => Self::Loop(Loop {
                count: inner.count.resolved(local, outer),
                body: (inner.body.iter())
                    .map(|term| term.resolved(local + 1, outer))
                    .collect(),
            }),
        }
    }

    /// Changes the index of the enclosing loop at this depth to start at `by`.
    pub(crate) fn shift(&mut self, depth: usize, by: i64) {
        match self {
            Self::Read(read) => {
                read.offset.shift(depth, by);
                read.len.shift(depth, by);
            }
            Self::Loop(inner) => {
                inner.count.shift(depth, by);
                for term in &mut inner.body {
                    term.shift(depth + 1, by);
                }
            }
        }
    }

    /// Appends the term as it is outside all loops: fewer than three repetitions are written out, as the recogniser leaves them.
    pub(crate) fn settle(self, out: &mut Vec<Term>) {
        match self {
            Self::Loop(inner) if inner.count.is_constant() && inner.count.base < 3 => {
                for index in 0..inner.count.base.max(0) as u64 {
                    for term in &inner.body {
                        term.resolved(0, &[index]).settle(out);
                    }
                }
            }
            term => out.push(term),
        }
    }
}

impl Loop {
    /// Iteration `index` outside the loop, by terms of the body.
    pub(crate) fn iteration(&self, index: i64) -> Vec<Vec<Term>> {
        let parts = self.body.iter().map(|term| {
            let mut part = Vec::new();
            term.resolved(0, &[index as u64]).settle(&mut part);
            part
        });
        parts.collect()
    }

    /// The offset of the first read of iteration `index`, unless loops in it are empty.
    pub(crate) fn begins(&self, index: u64) -> i64 {
        let mut body = &self.body;
        for depth in 0.. {
            match body.first() {
                Some(Term::Read(read)) => {
                    let step = read.offset.step(depth).wrapping_mul(index as i64);
                    return read.offset.base.wrapping_add(step);
                }
                Some(Term::Loop(inner)) => body = &inner.body,
                None => break,
            }
        }
        0
    }

    /// Changes the index to start at `by`.
    pub(crate) fn shift(&mut self, by: i64) {
        for term in &mut self.body {
            term.shift(0, by);
        }
    }
}

/// A series of reads, as terms one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The terms, in order. None of them has enclosing loops.
    pub terms: Vec<Term>,
}
