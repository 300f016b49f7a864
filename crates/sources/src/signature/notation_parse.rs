//! Reads the notation of I/O signatures (`docs/signatures.md` has the grammar).
//!
//! Besides the output of [`Signature`], forms that occur only in the paper's own signatures are accepted. The text is untrusted: for any
//! content the parser ends with a value or an [`Error`] that names line and column. Nesting is bounded by [`DEPTH`].

use thiserror::Error;

use super::classify::{PatternSignature, Repetition, Size, Spatial, Temporal, Variation};
use super::notation::Signature;
use super::pattern::{Affine, Loop, Operation, Read, Term};

/// Nests in each other, at most.
const DEPTH: usize = 32;

/// Why a text is no signature.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {trouble}")]
pub struct Error {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The expected input at that place.
    pub trouble: String,
}

/// Reads trace signatures separated by commas. A name in the place of a number, such as the paper's `initial position`, is
/// looked up in `names`.
pub fn parse(text: &str, names: &[(&str, i64)]) -> Result<Vec<Signature>, Error> {
    let mut reader = Reader { text, at: 0, names };
    let mut signatures = vec![reader.signature()?];
    while reader.found(',') {
        signatures.push(reader.signature()?);
    }
    reader.end()?;
    Ok(signatures)
}

/// Reads one pattern signature.
pub fn parse_pattern(text: &str) -> Result<PatternSignature, Error> {
    let names = &[];
    let mut reader = Reader { text, at: 0, names };
    let signature = reader.pattern_signature()?;
    reader.end()?;
    Ok(signature)
}

/// A part of a trace signature.
enum Element {
    /// `[stride, size, count]`
    Stride(i64, Affine, u64),
    /// With a start of its own.
    Term(Term),
    /// `[{start, stride, 1}, size, count]`, which must be the whole term.
    Run(Term),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    names: &'a [(&'a str, i64)],
}

impl<'a> Reader<'a> {
    fn signature(&mut self) -> Result<Signature, Error> {
        self.expect('{')?;
        let operation = self.operation()?;
        self.expect(',')?;
        let position = self.number()?;
        self.expect(',')?;
        let place = self.at;
        let dimension = self.number()?;
        self.expect(',')?;
        self.expect('(')?;
        let mut period = None;
        let start = self.at;
        let mut parts = vec![self.part(0, &mut period)?];
        let mut inside = None;
        while self.found(',') {
            if self.sees('[') {
                parts.push(self.part(0, &mut period)?);
            } else {
                inside = Some(self.count()?);
                break;
            }
        }
        self.expect(')')?;
        self.expect(',')?;
        let outside = self.count()?;
        self.expect('}')?;
        let term = self.joined(start, position, parts, inside, outside)?;
        if !fits(&term, 0) {
            return Err(self.error(start, "more strides or steps than there are loops around"));
        }
        let signature = Signature {
            operation,
            term,
            period,
        };
        if usize::try_from(dimension) != Ok(signature.dimension()) {
            let trouble = format!(
                "{dimension} dimensions, where the parts have {}",
                signature.dimension()
            );
            return Err(self.error(place, &trouble));
        }
        Ok(signature)
    }

    /// The term that the parts are.
    fn joined(
        &self,
        start: usize,
        position: i64,
        parts: Vec<Element>,
        inside: Option<i64>,
        outside: i64,
    ) -> Result<Term, Error> {
        let mut strides = Vec::new();
        let mut body = Vec::new();
        let mut run = None;
        for part in parts {
            match part {
                Element::Stride(stride, size, count) => strides.push((stride, size, count)),
                Element::Term(term) => body.push(term),
                Element::Run(term) => {
                    run = Some(());
                    body.push(term);
                }
            }
        }
        if let (Some(_), [only]) = (&run, &body[..])
            && inside.is_none()
            && outside == 1
        {
            return Ok(only.clone());
        }
        if strides.is_empty() {
            // If both counts are printed, the repetitions are their product.
            let count = Affine::constant(match inside {
                Some(inside) => self.product(start, inside, outside)?,
                None => outside,
            });
            return Ok(Term::Loop(Loop { count, body }));
        }
        if !body.is_empty() {
            return Err(self.error(
                start,
                "parts with a start of their own among parts without one",
            ));
        }
        let count = self.product(start, inside.unwrap_or(1), outside)?;
        let whole: i64 = strides.iter().fold(0, |sum: i64, (stride, _, count)| {
            sum.wrapping_add(stride.wrapping_mul((*count).max(1) as i64))
        });
        let mut offset = position;
        let several = strides.len() > 1;
        let mut terms = Vec::new();
        for (stride, size, times) in strides {
            let mut steps = Affine::constant(offset);
            let mut size = size;
            offset = offset.wrapping_add(stride.wrapping_mul(times.max(1) as i64));
            if times > 1 || (times == 1 && !several && inside.is_none() && count == 1) {
                steps.enclose(0, stride);
                if several || count != 1 {
                    steps.enclose(1, whole);
                }
                let read = Read {
                    offset: steps,
                    len: size,
                };
                let count = Affine::constant(times as i64);
                terms.push(Term::Loop(Loop {
                    count,
                    body: vec![Term::Read(read)],
                }));
            } else {
                if times == 0 && !several && count == 1 && inside.is_none() {
                    size.steps.clear();
                } else {
                    steps.enclose(0, whole);
                }
                terms.push(Term::Read(Read {
                    offset: steps,
                    len: size,
                }));
            }
        }
        if !several && count == 1 && inside.is_none() {
            return Ok(terms.remove(0));
        }
        Ok(Term::Loop(Loop {
            count: Affine::constant(count),
            body: terms,
        }))
    }

    fn product(&self, place: usize, a: i64, b: i64) -> Result<i64, Error> {
        let product = a.checked_mul(b);
        product.ok_or_else(|| self.error(place, "repetitions beyond 64 bits"))
    }

    fn part(&mut self, depth: usize, period: &mut Option<u64>) -> Result<Element, Error> {
        self.expect('[')?;
        if depth > DEPTH {
            return Err(self.error(self.at, "too many nests in each other"));
        }
        if self.found('(') {
            let mut body = Vec::new();
            loop {
                let start = self.at;
                match self.part(depth + 1, period)? {
                    Element::Term(term) | Element::Run(term) => body.push(term),
                    Element::Stride(..) => {
                        return Err(self.error(start, "a part of a nest needs a start of its own"));
                    }
                }
                if !self.found(',') {
                    break;
                }
            }
            self.expect(')')?;
            self.expect(',')?;
            let count = self.value()?;
            self.expect(']')?;
            return Ok(Element::Term(Term::Loop(Loop { count, body })));
        }
        if !self.found('{') {
            let stride = self.number()?;
            self.expect(',')?;
            let size = self.value()?;
            self.expect(',')?;
            let count = self.count()?;
            self.time(period)?;
            self.expect(']')?;
            return Ok(Element::Stride(stride, size, count as u64));
        }
        let base = self.number()?;
        self.expect(',')?;
        let place = self.at;
        let second = self.number()?;
        self.expect(',')?;
        if !self.sees('[') {
            // IOR's: {start, stride, 1}, size, count
            self.expect('1')?;
            self.expect('}')?;
            self.expect(',')?;
            let len = self.value()?;
            self.expect(',')?;
            let count = Affine::constant(self.count()?);
            self.time(period)?;
            self.expect(']')?;
            let mut offset = Affine::constant(base);
            offset.enclose(0, second);
            return Ok(Element::Run(Term::Loop(Loop {
                count,
                body: vec![Term::Read(Read { offset, len })],
            })));
        }
        self.expect('[')?;
        // LU's third part has all in parentheses.
        let all = self.found('(');
        let steps = self.strides()?;
        if usize::try_from(second) != Ok(steps.len()) {
            let trouble = format!(
                "{second} dimensions, where there are {} strides",
                steps.len()
            );
            return Err(self.error(place, &trouble));
        }
        let offset = trimmed(base, steps);
        self.expect(',')?;
        let len = self.value()?;
        let mut count = Affine::constant(1);
        if self.found(',') {
            count = self.value()?;
            self.time(period)?;
            if all {
                self.expect(')')?;
            }
            self.expect(']')?;
        } else {
            // LU's first part has the count behind the bracket.
            self.expect(']')?;
            if self.found(',') {
                count = self.value()?;
            }
        }
        self.expect('}')?;
        self.expect(']')?;
        let read = Term::Read(Read { offset, len });
        Ok(Element::Term(match count == Affine::constant(1) {
            true => read,
            false => Term::Loop(Loop {
                count,
                body: vec![read],
            }),
        }))
    }

    /// `{s, ..}`, or the paper's `{(s, 1)}` and, in LU's third part, `s`.
    fn strides(&mut self) -> Result<Vec<i64>, Error> {
        if !self.found('{') {
            return Ok(vec![self.number()?]);
        }
        if self.found('(') {
            let stride = self.number()?;
            self.expect(',')?;
            self.expect('1')?;
            self.expect(')')?;
            self.expect('}')?;
            return Ok(vec![stride]);
        }
        let steps = self.numbers()?;
        self.expect('}')?;
        Ok(steps)
    }

    /// A number, or `{base, steps, (step, ..)}`; the number of steps may be left out.
    fn value(&mut self) -> Result<Affine, Error> {
        if !self.found('{') {
            return Ok(Affine::constant(self.number()?));
        }
        let base = self.number()?;
        self.expect(',')?;
        let place = self.at;
        let mut stated = None;
        if !self.sees('(') {
            stated = Some(self.number()?);
            self.expect(',')?;
        }
        self.expect('(')?;
        let steps = self.numbers()?;
        if stated.is_some_and(|stated| usize::try_from(stated) != Ok(steps.len())) {
            return Err(self.error(place, &format!("there are {} steps", steps.len())));
        }
        self.expect(')')?;
        self.expect('}')?;
        Ok(trimmed(base, steps))
    }

    fn numbers(&mut self) -> Result<Vec<i64>, Error> {
        let mut numbers = vec![self.number()?];
        while self.found(',') {
            numbers.push(self.number()?);
        }
        Ok(numbers)
    }

    /// Parses the temporal pattern, if there is one.
    fn time(&mut self, period: &mut Option<u64>) -> Result<(), Error> {
        if self.found(',') {
            *period = Some(self.count()? as u64);
        }
        Ok(())
    }

    /// A number that is not negative.
    fn count(&mut self) -> Result<i64, Error> {
        self.space();
        let place = self.at;
        let number = self.number()?;
        if number < 0 {
            return Err(self.error(place, "a count is not negative"));
        }
        Ok(number)
    }

    fn number(&mut self) -> Result<i64, Error> {
        self.space();
        let place = self.at;
        let rest = &self.text[place..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            self.at += sign + digits;
            let number = rest[..sign + digits].parse();
            return number.map_err(|_| self.error(place, "a number beyond 64 bits"));
        }
        let name = self.words();
        let known = self
            .names
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            Some((_, number)) => Ok(*number),
            None if name.is_empty() => Err(self.unexpected(place, "a number")),
            None => Err(self.error(place, &format!("`{name}` has no value"))),
        }
    }

    /// Letters, digits, underlines and blanks between them.
    fn words(&mut self) -> &'a str {
        self.space();
        let rest = &self.text[self.at..];
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == ' ' || c == '-' || c == '/';
        let words = &rest[..rest.find(|c| !inside(c)).unwrap_or(rest.len())];
        let words = words.trim_end();
        self.at += words.len();
        words
    }

    fn operation(&mut self) -> Result<Operation, Error> {
        self.space();
        let place = self.at;
        let word = self.words();
        let found = Operation::ALL
            .into_iter()
            .find(|one| one.word().eq_ignore_ascii_case(word));
        let found =
            found.ok_or_else(|| self.error(place, "READ, WRITE or READ/WRITE is expected"))?;
        // The paper's `Write (Read)` and `Write (or Read)`: one signature for both.
        if !self.found('(') {
            return Ok(found);
        }
        let other = self.words();
        let other = other.strip_prefix("or ").unwrap_or(other);
        self.expect(')')?;
        match other.eq_ignore_ascii_case(found.word()) {
            true => Ok(found),
            false => Ok(Operation::ReadWrite),
        }
    }

    fn pattern_signature(&mut self) -> Result<PatternSignature, Error> {
        self.expect('{')?;
        let operation = self.operation()?;
        self.expect(',')?;
        let (place, words) = self.attributes()?;
        let spatial = match &words[..] {
            [one] => Spatial::named(one),
            [one, other] if one == "non-contiguous" => Spatial::named(other),
            _ => None,
        };
        let spatial = spatial.ok_or_else(|| self.error(place, "a spatial pattern is expected"))?;
        self.expect(',')?;
        let (place, words) = self.attributes()?;
        let repetition = Repetition::ALL
            .into_iter()
            .find(|one| words == [one.word()]);
        let repetition = repetition
            .ok_or_else(|| self.error(place, "<single occurrence> or <repetitive> is expected"))?;
        self.expect(',')?;
        let (place, words) = self.attributes()?;
        let has = |word: &str| words.iter().any(|one| one == word);
        let variation = Variation::ALL.into_iter().find(|one| has(one.word()));
        let size = Size::ALL.into_iter().find(|one| has(one.word()));
        let (Some(variation), Some(size), 2) = (variation, size, words.len()) else {
            return Err(self.error(
                place,
                "a request size, such as <fixed size, small>, is expected",
            ));
        };
        self.expect(',')?;
        let (place, words) = self.attributes()?;
        let temporal = Temporal::ALL.into_iter().find(|one| words == [one.word()]);
        let temporal = temporal.ok_or_else(|| {
            self.error(
                place,
                "<periodic>, <random> or <no temporal pattern> is expected",
            )
        })?;
        self.expect('}')?;
        Ok(PatternSignature {
            operation,
            spatial,
            repetition,
            variation,
            size,
            temporal,
        })
    }

    /// Words in angle brackets, separated by commas, in small letters, and where they are.
    fn attributes(&mut self) -> Result<(usize, Vec<String>), Error> {
        self.expect('<')?;
        let place = self.at;
        let mut all = vec![self.words().to_ascii_lowercase()];
        while self.found(',') {
            all.push(self.words().to_ascii_lowercase());
        }
        self.expect('>')?;
        Ok((place, all))
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn sees(&mut self, what: char) -> bool {
        self.space();
        self.text[self.at..].starts_with(what)
    }

    fn found(&mut self, what: char) -> bool {
        let found = self.sees(what);
        if found {
            self.at += what.len_utf8();
        }
        found
    }

    fn expect(&mut self, what: char) -> Result<(), Error> {
        if self.found(what) {
            return Ok(());
        }
        Err(self.unexpected(self.at, &format!("`{what}`")))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.space();
        if self.at < self.text.len() {
            return Err(self.unexpected(self.at, "the end"));
        }
        Ok(())
    }

    fn unexpected(&self, place: usize, expected: &str) -> Error {
        let found = match self.text[place..].chars().next() {
            Some(found) => format!("`{}`", found.escape_debug()),
            None => "the end".to_owned(),
        };
        self.error(place, &format!("{expected} is expected, not {found}"))
    }

    fn error(&self, place: usize, trouble: &str) -> Error {
        let before = &self.text[..place];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Error {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            trouble: trouble.to_owned(),
        }
    }
}

/// True if no number has a step for a missing loop.
fn fits(term: &Term, loops: usize) -> bool {
    match term {
        Term::Read(read) => [&read.offset, &read.len]
            .iter()
            .all(|number| number.steps.len() <= loops),
        Term::Loop(nest) => {
            nest.count.steps.len() <= loops && nest.body.iter().all(|term| fits(term, loops + 1))
        }
    }
}

/// A number with these steps, of which the last is not 0.
fn trimmed(base: i64, mut steps: Vec<i64>) -> Affine {
    while steps.last() == Some(&0) {
        steps.pop();
    }
    Affine { base, steps }
}
