//! The notation of I/O signatures, as printed (`docs/signatures.md` has the grammar).
//!
//! A [`Signature`] is one term of a trace with the operation. It prints as the paper's trace signature:
//!
//! ```text
//! {READ, 0, 1, ([8192, 4096, 100]), 1}
//! ```
//!
//! Invariant: [`parse`](super::parse) accepts this output and returns an equal signature.

use std::fmt::{self, Display, Formatter};

use super::pattern::{Affine, Loop, Operation, Read, Term};

/// The trace signature of one pattern: the accesses themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Read or write.
    pub operation: Operation,
    /// The accesses.
    pub term: Term,
    /// Time from one access to the next in microseconds, if it is regular.
    pub period: Option<u64>,
}

/// The printed form of a term.
pub(crate) enum Form<'a> {
    /// `([stride, size, count]), 1`: strides from one access to the next.
    Strides(Vec<Stride<'a>>, Option<u64>),
    /// `([{start, dimensions, [{strides}, size, count]}], ...), count`: each part with its own start.
    Parts(&'a Loop),
}

/// Accesses that are followed by the same stride.
pub(crate) struct Stride<'a> {
    pub(crate) stride: i64,
    pub(crate) size: &'a Affine,
    pub(crate) count: u64,
}

impl Signature {
    /// The signature of reads.
    pub fn reads(term: Term) -> Self {
        Self {
            operation: Operation::Read,
            term,
            period: None,
        }
    }

    /// First byte of the first access.
    pub fn position(&self) -> i64 {
        self.term.head()
    }

    /// The paper's dimension: how many strides the pattern has.
    pub fn dimension(&self) -> usize {
        dimension(&self.term)
    }

    /// Number of occurrences of the whole pattern: the last number of the notation.
    pub fn repetitions(&self) -> u64 {
        match form(&self.term) {
            Form::Strides(..) => 1,
            Form::Parts(nest) => nest.count.base.max(0) as u64,
        }
    }
}

/// Number of a term's strides.
pub(crate) fn dimension(term: &Term) -> usize {
    let Term::Loop(nest) = term else {
        return 1;
    };
    let sum = nest.body.iter().map(dimension).sum::<usize>();
    match &nest.body[..] {
        [Term::Loop(_)] => 1 + sum,
        _ => sum,
    }
}

/// The printed form of a term: the short form if that is complete.
pub(crate) fn form(term: &Term) -> Form<'_> {
    let nest = match term {
        Term::Read(read) => {
            let once = Stride {
                stride: 0,
                size: &read.len,
                count: 0,
            };
            return Form::Strides(vec![once], None);
        }
        Term::Loop(nest) => nest,
    };
    let mut reads = Vec::new();
    for term in &nest.body {
        match term {
            Term::Read(read) => reads.push(read),
            Term::Loop(_) => return Form::Parts(nest),
        }
    }
    let count = nest.count.base;
    match &reads[..] {
        [only] if count > 0 => {
            let stride = Stride {
                stride: only.offset.step(0),
                size: &only.len,
                count: count as u64,
            };
            Form::Strides(vec![stride], None)
        }
        [first, .., last] if count > 0 && alike(&reads) => {
            let step = first.offset.step(0);
            let back = first.offset.base.wrapping_add(step);
            let strides = reads.windows(2).map(|pair| (pair[0], pair[1].offset.base));
            let strides = strides.chain([(*last, back)]).map(|(read, next)| Stride {
                stride: next.wrapping_sub(read.offset.base),
                size: &read.len,
                count: 1,
            });
            Form::Strides(strides.collect(), Some(count as u64))
        }
        _ => Form::Parts(nest),
    }
}

/// True if all reads move by the same stride and have fixed sizes.
fn alike(reads: &[&Read]) -> bool {
    let step = reads.first().map(|read| read.offset.step(0));
    reads
        .iter()
        .all(|read| Some(read.offset.step(0)) == step && read.len.is_constant())
}

impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (position, dimension) = (self.position(), self.dimension());
        write!(f, "{{{}, {position}, {dimension}, (", self.operation.word())?;
        let mut period = self.period;
        let end = match form(&self.term) {
            Form::Strides(strides, repeated) => {
                for (number, part) in strides.iter().enumerate() {
                    separate(f, number)?;
                    write!(f, "[{}, {}, {}", part.stride, Value(part.size), part.count)?;
                    time(f, &mut period)?;
                    f.write_str("]")?;
                }
                if let Some(repeated) = repeated {
                    write!(f, ", {repeated}")?;
                }
                1
            }
            Form::Parts(nest) => {
                parts(f, &nest.body, &mut period)?;
                nest.count.base
            }
        };
        write!(f, "), {end}}}")
    }
}

/// Several signatures, separated by commas.
pub fn join<'a>(signatures: impl IntoIterator<Item = &'a Signature>) -> String {
    let words: Vec<String> = signatures.into_iter().map(Signature::to_string).collect();
    words.join(", ")
}

fn parts(f: &mut Formatter<'_>, body: &[Term], period: &mut Option<u64>) -> fmt::Result {
    for (number, term) in body.iter().enumerate() {
        separate(f, number)?;
        let one = Affine::constant(1);
        match term {
            Term::Read(read) => run(f, read, &one, period)?,
            Term::Loop(nest) => match &nest.body[..] {
                [Term::Read(read)] if nest.count != one => run(f, read, &nest.count, period)?,
                body => {
                    f.write_str("[(")?;
                    parts(f, body, period)?;
                    write!(f, "), {}]", Value(&nest.count))?;
                }
            },
        }
    }
    Ok(())
}

/// A read or a run of reads.
fn run(
    f: &mut Formatter<'_>,
    read: &Read,
    count: &Affine,
    period: &mut Option<u64>,
) -> fmt::Result {
    let Affine { base, steps } = &read.offset;
    write!(f, "[{{{base}, {}, [{{", steps.len().max(1))?;
    match &steps[..] {
        [] => f.write_str("0")?,
        steps => list(f, steps)?,
    }
    write!(f, "}}, {}, {}", Value(&read.len), Value(count))?;
    time(f, period)?;
    f.write_str("]}]")
}

fn separate(f: &mut Formatter<'_>, number: usize) -> fmt::Result {
    if number > 0 {
        f.write_str(", ")
    } else {
        Ok(())
    }
}

/// The temporal pattern, which the first part has.
fn time(f: &mut Formatter<'_>, period: &mut Option<u64>) -> fmt::Result {
    match period.take() {
        Some(period) => write!(f, ", {period}"),
        None => Ok(()),
    }
}

fn list(f: &mut Formatter<'_>, numbers: &[i64]) -> fmt::Result {
    for (at, number) in numbers.iter().enumerate() {
        separate(f, at)?;
        write!(f, "{number}")?;
    }
    Ok(())
}

/// A number that may follow a pattern.
struct Value<'a>(&'a Affine);

impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Affine { base, steps } = self.0;
        if steps.is_empty() {
            return write!(f, "{base}");
        }
        write!(f, "{{{base}, {}, (", steps.len())?;
        list(f, steps)?;
        f.write_str(")}")
    }
}
