//! The five dimensions of a pattern (the paper, section IV and Figure 2), and the pattern signature that names them.
//!
//! ```text
//! {READ, <Non-contiguous, 3d strided>, <repetitive>, <variable size, large>, <random>}
//! ```
//!
//! A stream of accesses is classified by its terms: the kind with the most accesses names the pattern. Nothing is expanded; the work is
//! linear in the number of terms.

use std::fmt::{self, Display, Formatter};

use super::notation::{Form, Signature, dimension, form};
use super::pattern::{Affine, Loop, Operation, Read, Term};

/// Bytes up to which a request is small: a page. The paper's prose says "a fraction of a page", and its PIO-Bench
/// signatures call 4096 bytes small.
const SMALL: u64 = 4096;
/// Bytes up to which a request is medium: sixteen pages. The paper's prose says that large requests are "multiple times
/// larger than a page", and its IOR signature calls 32768 bytes medium.
const MEDIUM: u64 = 65_536;
/// Share of the accesses, in percent, that a kind of pattern needs to give the whole its name.
const NAMING: u64 = 80;

/// The spatial pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spatial {
    /// A single access has no spatial pattern.
    None,
    /// Each access begins where the previous one ended.
    Contiguous,
    /// At one stride.
    Fixed,
    /// Strides in this many dimensions.
    Dimensions(usize),
    /// At one stride, backward.
    Negative,
    /// Anywhere.
    Random,
    /// Several of these.
    Combination,
}

/// Repetition of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It occurs once.
    Single,
    /// It occurs several times.
    Repetitive,
}

/// Variation of request sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// All have one size.
    Fixed,
    /// They differ.
    Variable,
}

/// Mean size of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// At most a page.
    Small,
    /// Up to sixteen pages.
    Medium,
    /// More.
    Large,
}

/// When the accesses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporal {
    /// A single access has no temporal pattern.
    None,
    /// At fixed intervals, each or in bursts.
    Periodic,
    /// Irregularly, which the paper calls random.
    Random,
}

impl Spatial {
    /// The pattern that these small letters name.
    pub(crate) fn named(words: &str) -> Option<Self> {
        let dimensions = || {
            let number = words.strip_suffix(" strided")?.strip_suffix('d')?;
            number.parse().ok().filter(|number| *number > 1)
        };
        match words {
            "no spatial pattern" => Some(Self::None),
            "contiguous" => Some(Self::Contiguous),
            "fixed strided" => Some(Self::Fixed),
            "negative strided" => Some(Self::Negative),
            "random" => Some(Self::Random),
            "combination" => Some(Self::Combination),
            _ => dimensions().map(Self::Dimensions),
        }
    }
}

impl Display for Spatial {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("No spatial pattern"),
            Self::Contiguous => f.write_str("Contiguous"),
            Self::Fixed => f.write_str("Non-contiguous, fixed strided"),
            Self::Dimensions(number) => write!(f, "Non-contiguous, {number}d strided"),
            Self::Negative => f.write_str("Non-contiguous, negative strided"),
            Self::Random => f.write_str("Non-contiguous, random"),
            Self::Combination => f.write_str("Combination"),
        }
    }
}

impl Repetition {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Repetitive];

    /// The words in a signature.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Single => "single occurrence",
            Self::Repetitive => "repetitive",
        }
    }
}

impl Variation {
    pub(crate) const ALL: [Self; 2] = [Self::Fixed, Self::Variable];

    /// The words in a signature.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed size",
            Self::Variable => "variable size",
        }
    }
}

impl Size {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The word in a signature.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    /// The class of a request with this many bytes.
    pub const fn of(bytes: u64) -> Self {
        if bytes <= SMALL {
            Self::Small
        } else if bytes <= MEDIUM {
            Self::Medium
        } else {
            Self::Large
        }
    }
}

impl Temporal {
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Periodic, Self::Random];

    /// The words in a signature.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "no temporal pattern",
            Self::Periodic => "periodic",
            Self::Random => "random",
        }
    }
}

/// A pattern signature: the kind of the accesses, without the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternSignature {
    /// The operation.
    pub operation: Operation,
    /// The spatial pattern.
    pub spatial: Spatial,
    /// The repetition.
    pub repetition: Repetition,
    /// The variation of request sizes.
    pub variation: Variation,
    /// The size of requests.
    pub size: Size,
    /// When.
    pub temporal: Temporal,
}

impl Display for PatternSignature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            operation,
            spatial,
            repetition,
            variation,
            size,
            temporal,
        } = self;
        let (operation, repetition) = (operation.word(), repetition.word());
        let (variation, size, temporal) = (variation.word(), size.word(), temporal.word());
        write!(
            f,
            "{{{operation}, <{spatial}>, <{repetition}>, <{variation}, {size}>, <{temporal}>}}"
        )
    }
}

impl PatternSignature {
    /// The kind of pattern that one stream's signatures have together.
    pub fn of(signatures: &[Signature], temporal: Temporal) -> Self {
        let mut total = Sum::default();
        for (place, signature) in signatures.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| &signatures[place].term);
            let after = signatures.get(place + 1).map(|next| &next.term);
            total.add(signature, goes_on(before, &signature.term, after));
        }
        let spatial = total.spatial();
        let operations = |one| {
            signatures
                .iter()
                .any(|signature| signature.operation == one)
        };
        let operation = match (operations(Operation::Read), operations(Operation::Write)) {
            _ if operations(Operation::ReadWrite) => Operation::ReadWrite,
            (true, true) => Operation::ReadWrite,
            (false, true) => Operation::Write,
            _ => Operation::Read,
        };
        let repeats = signatures.iter().map(Signature::repetitions).max();
        Self {
            operation,
            spatial,
            repetition: match repeats {
                Some(2..) => Repetition::Repetitive,
                _ => Repetition::Single,
            },
            variation: if total.varies {
                Variation::Variable
            } else {
                Variation::Fixed
            },
            size: Size::of((total.bytes / total.accesses.max(1) as f64) as u64),
            temporal: if total.accesses <= 1 {
                Temporal::None
            } else {
                temporal
            },
        }
    }
}

/// Accesses counted by kind.
#[derive(Debug, Default)]
struct Sum {
    accesses: u64,
    bytes: f64,
    varies: bool,
    size: Option<i64>,
    /// Accesses by kind of pattern.
    kinds: Vec<(Spatial, u64)>,
}

impl Sum {
    /// A signature, and whether its accesses go on from those before, or those after from them.
    fn add(&mut self, signature: &Signature, goes_on: bool) {
        let (accesses, bytes) = volume(&signature.term);
        self.accesses = self.accesses.saturating_add(accesses);
        self.bytes += bytes;
        self.sizes(&signature.term);
        let kind = match spatial(&signature.term) {
            Spatial::None if goes_on => Spatial::Contiguous,
            kind => kind,
        };
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count = count.saturating_add(accesses),
            None => self.kinds.push((kind, accesses)),
        }
    }

    /// Looks whether sizes differ.
    fn sizes(&mut self, term: &Term) {
        match term {
            Term::Read(read) => {
                let other = self
                    .size
                    .replace(read.len.base)
                    .is_some_and(|size| size != read.len.base);
                self.varies |= other || !read.len.is_constant();
            }
            Term::Loop(nest) => nest.body.iter().for_each(|term| self.sizes(term)),
        }
    }

    fn spatial(&self) -> Spatial {
        if self.accesses <= 1 {
            return Spatial::None;
        }
        let common = self.kinds.iter().max_by_key(|(_, count)| *count);
        match common {
            // Single accesses one after the other.
            Some((Spatial::None, count)) if share(*count, self.accesses) >= NAMING => {
                Spatial::Random
            }
            Some((kind, count)) if share(*count, self.accesses) >= NAMING => *kind,
            _ => Spatial::Combination,
        }
    }
}

/// In percent.
fn share(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(whole.max(1))) as u64
}

/// The kind of pattern that one term is.
fn spatial(term: &Term) -> Spatial {
    let Term::Loop(nest) = term else {
        return Spatial::None;
    };
    if contiguous(nest) {
        return Spatial::Contiguous;
    }
    match form(term) {
        Form::Strides(strides, None) => match strides.first() {
            Some(only) if only.stride < 0 => Spatial::Negative,
            _ => Spatial::Fixed,
        },
        _ => Spatial::Dimensions(dimension(term).max(2)),
    }
}

/// True if a term begins where the previous one ends, or ends where the next one begins.
fn goes_on(before: Option<&Term>, term: &Term, after: Option<&Term>) -> bool {
    let joins = |one: &Term, next: &Term| end(one).is_some_and(|end| end == next.head());
    before.is_some_and(|before| joins(before, term))
        || after.is_some_and(|after| joins(term, after))
}

/// The end of a term's last access; `None` for a loop without iterations.
fn end(term: &Term) -> Option<i64> {
    match term {
        Term::Read(read) => Some(read.offset.base.wrapping_add(read.len.base)),
        Term::Loop(nest) => {
            let last = u64::try_from(nest.count.base).ok()?.checked_sub(1)?;
            end(&nest.body.last()?.resolved(0, &[last]))
        }
    }
}

/// True if each access of a loop begins where the previous one ended.
fn contiguous(nest: &Loop) -> bool {
    let mut reads: Vec<&Read> = Vec::new();
    for term in &nest.body {
        match term {
            Term::Read(read) => reads.push(read),
            Term::Loop(_) => return false,
        }
    }
    let (Some(first), Some(last)) = (reads.first(), reads.last()) else {
        return false;
    };
    let ends = |read: &Read| read.offset.base.wrapping_add(read.len.base);
    reads
        .windows(2)
        .all(|pair| ends(pair[0]) == pair[1].offset.base)
        && reads.iter().all(|read| read.len.is_constant())
        && ends(last) == first.offset.base.wrapping_add(first.offset.step(0))
}

/// Number of a term's accesses, and of their bytes. If inner counts vary, the middle iteration represents all: exact for numbers that
/// change by fixed steps in one loop.
fn volume(term: &Term) -> (u64, f64) {
    fn middle(number: &Affine, halves: &[f64]) -> f64 {
        let steps = number.steps.iter().zip(halves.iter().rev());
        steps.fold(number.base as f64, |sum, (step, half)| {
            sum + *step as f64 * half
        })
    }
    fn sum(term: &Term, halves: &mut Vec<f64>) -> (f64, f64) {
        match term {
            Term::Read(read) => (1.0, middle(&read.len, halves).max(0.0)),
            Term::Loop(nest) => {
                let count = middle(&nest.count, halves).max(0.0);
                halves.push((count - 1.0).max(0.0) / 2.0);
                let mut all = (0.0, 0.0);
                for term in &nest.body {
                    let (accesses, bytes) = sum(term, halves);
                    all = (all.0 + accesses, all.1 + bytes);
                }
                halves.pop();
                (all.0 * count, all.1 * count)
            }
        }
    }
    let (accesses, bytes) = sum(term, &mut Vec::new());
    (accesses.round() as u64, bytes)
}

/// About how many accesses a signature stands for, and how many bytes.
pub fn weight(signature: &Signature) -> (u64, f64) {
    volume(&signature.term)
}
