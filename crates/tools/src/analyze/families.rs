//! Families: signatures that differ in a few numbers only, joined.
//!
//! The ranks of a parallel program do the same at different offsets, so their signatures are the same text with different numbers. A
//! [`Family`] is this text with a parameter (`$1`) in place of each differing number, and the values of the parameters. A number with a
//! constant difference from an earlier parameter is written as a sum (`$1+4096`). Nothing is lost: [`Family::signature`] restores each
//! signature.

use std::collections::HashMap;

use foreread_traces::Operation;

use super::signature::signature;
use super::streams::{Stream, Streams};

/// A number in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// A number that is equal in all members.
    Constant(i64),
    /// A parameter plus a constant.
    Parameter { index: usize, plus: i64 },
}

/// Signatures with the same text and differing numbers.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) operation: Operation,
    /// The pattern signature.
    pub(crate) pattern: String,
    /// The text between the numbers.
    between: Vec<String>,
    slots: Vec<Slot>,
    /// Numbers of the member streams.
    pub(crate) members: Vec<usize>,
    /// The values of each parameter, by member.
    pub(crate) values: Vec<Vec<i64>>,
    /// The accesses that returned no bytes, by member; members without such accesses are absent.
    pub(crate) empty: Vec<(usize, String)>,
}

/// The key of a family: operation, text between the numbers, pattern signature.
type Key = (Operation, Vec<String>, String);

/// Groups streams into families. Streams without a signature form one family per operation.
pub(crate) fn group(streams: &Streams) -> Vec<Family> {
    let mut groups: HashMap<Key, Vec<(usize, Vec<i64>)>> = HashMap::new();
    for (number, stream) in streams.all.iter().enumerate() {
        let (text, pattern) = signature(stream);
        let (between, numbers) = taken_apart(&text);
        let group = groups.entry((stream.operation, between, pattern));
        group.or_default().push((number, numbers));
    }
    let mut families: Vec<Family> = groups
        .into_iter()
        .map(|((operation, between, pattern), members)| {
            let mut family = Family::new(operation, between, pattern, members);
            family.note_empty(streams);
            family
        })
        .collect();
    let sum = |family: &Family, of: fn(&Stream) -> u64| -> u64 {
        let members = family.members.iter().map(|number| &streams.all[*number]);
        members.map(of).fold(0, u64::saturating_add)
    };
    families.sort_by_cached_key(|family| {
        std::cmp::Reverse((
            sum(family, |stream| stream.bytes),
            sum(family, |stream| stream.count),
            std::cmp::Reverse(family.members[0]),
        ))
    });
    families
}

impl Family {
    fn new(
        operation: Operation,
        between: Vec<String>,
        pattern: String,
        members: Vec<(usize, Vec<i64>)>,
    ) -> Self {
        let columns = members[0].1.len();
        let mut values: Vec<Vec<i64>> = Vec::new();
        let mut slots = Vec::with_capacity(columns);
        for column in 0..columns {
            let of = |member: &(usize, Vec<i64>)| member.1[column];
            let first = of(&members[0]);
            let slot = if members.iter().all(|member| of(member) == first) {
                Slot::Constant(first)
            } else {
                let known = values.iter().enumerate().find_map(|(index, known)| {
                    let plus = first.checked_sub(known[0])?;
                    let same = |(member, known): (&(usize, Vec<i64>), &i64)| {
                        known.checked_add(plus) == Some(of(member))
                    };
                    let holds = members.iter().zip(known).all(same);
                    holds.then_some(Slot::Parameter { index, plus })
                });
                known.unwrap_or_else(|| {
                    values.push(members.iter().map(of).collect());
                    let index = values.len() - 1;
                    Slot::Parameter { index, plus: 0 }
                })
            };
            slots.push(slot);
        }
        Self {
            operation,
            pattern,
            between,
            slots,
            members: members.into_iter().map(|(number, _)| number).collect(),
            values,
            empty: Vec::new(),
        }
    }

    /// True if its streams have a signature.
    pub(crate) fn is_signed(&self) -> bool {
        !self.slots.is_empty() || self.between.iter().any(|text| !text.is_empty())
    }

    fn note_empty(&mut self, streams: &Streams) {
        let members = self.members.iter().enumerate();
        self.empty = members
            .map(|(member, number)| (member, ranges(&streams.all[*number].empty)))
            .filter(|(_, empty)| !empty.is_empty())
            .collect();
    }

    /// The text, with its parameters.
    pub(crate) fn text(&self) -> String {
        self.with(|slot| match slot {
            Slot::Constant(number) => number.to_string(),
            Slot::Parameter { index, plus: 0 } => format!("${}", index + 1),
            Slot::Parameter { index, plus } => format!("${}{plus:+}", index + 1),
        })
    }

    /// A member's own signature.
    #[cfg(test)]
    fn signature(&self, member: usize) -> String {
        self.with(|slot| match slot {
            Slot::Constant(number) => number.to_string(),
            Slot::Parameter { index, plus } => (self.values[index][member] + plus).to_string(),
        })
    }

    fn with(&self, number: impl Fn(Slot) -> String) -> String {
        let mut text = String::new();
        for (index, between) in self.between.iter().enumerate() {
            text.push_str(between);
            if let Some(slot) = self.slots.get(index) {
                text.push_str(&number(*slot));
            }
        }
        text
    }

    /// The values of a parameter in the form in which they are counted and printed: all of them, or the first and the common step.
    pub(crate) fn values(&self, parameter: usize) -> String {
        let values = &self.values[parameter];
        let step = values
            .get(1)
            .and_then(|second| second.checked_sub(values[0]));
        let even = |pair: &[i64]| pair[1].checked_sub(pair[0]) == step;
        match step {
            Some(step) if values.len() > 2 && values.windows(2).all(even) => {
                format!("{} and {step:+} each", values[0])
            }
            _ => {
                let words: Vec<String> = values.iter().map(ToString::to_string).collect();
                words.join(" ")
            }
        }
    }

    /// A parameter as a formula of the rank, such as `4096 + 8192 * rank`, if the formula is exact for all members. `ranks` are the ranks
    /// of the members.
    pub(crate) fn of_rank(&self, parameter: usize, ranks: &[i64]) -> Option<String> {
        let mut points = ranks.iter().zip(&self.values[parameter]);
        let (&first, &value) = points.next()?;
        let (&second, &other) = points.find(|(rank, _)| **rank != first)?;
        let (rise, run) = (other.checked_sub(value)?, second.checked_sub(first)?);
        let step = rise
            .checked_div(run)
            .filter(|step| step.checked_mul(run) == Some(rise))?;
        let start = value.checked_sub(step.checked_mul(first)?)?;
        let holds = |(&rank, &value): (&i64, &i64)| {
            step.checked_mul(rank)
                .and_then(|part| start.checked_add(part))
                == Some(value)
        };
        let exact = ranks.iter().zip(&self.values[parameter]).all(holds);
        exact.then(|| {
            format!(
                "{start} {} {} * rank",
                if step < 0 { '-' } else { '+' },
                step.unsigned_abs()
            )
        })
    }

    /// Bytes of the text and the values. Names of files and processes are not counted, neither here nor in the trace.
    pub(crate) fn size(&self) -> u64 {
        let values = (0..self.values.len()).map(|parameter| self.values(parameter).len() + 1);
        let empty = self.empty.iter();
        let empty = empty.map(|(member, empty)| member.to_string().len() + empty.len() + 2);
        (self.text().len() + 1 + values.sum::<usize>() + empty.sum::<usize>()) as u64
    }
}

/// Ascending numbers as text: `0 33-35`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let words: Vec<String> = runs
        .map(|run| match run {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    words.join(" ")
}

/// Splits a text into its numbers and the text between them.
fn taken_apart(text: &str) -> (Vec<String>, Vec<i64>) {
    let bytes = text.as_bytes();
    let (mut between, mut numbers) = (Vec::new(), Vec::new());
    let (mut begin, mut at) = (0, 0);
    while at < bytes.len() {
        let signed = bytes[at] == b'-' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b')');
        if !(bytes[at].is_ascii_digit() || signed) || word {
            at += 1;
            continue;
        }
        let digits = bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let end = at + 1 + digits.count();
        // Digits with a leading zero or beyond the range stay text, because printing the number would change them.
        match text[at..end].parse::<i64>() {
            Ok(number) if number.to_string() == text[at..end] => {
                between.push(text[begin..at].to_owned());
                numbers.push(number);
                begin = end;
            }
            _ => {}
        }
        at = end;
    }
    between.push(text[begin..].to_owned());
    (between, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(texts: &[&str]) -> Family {
        let parts: Vec<_> = texts.iter().map(|text| taken_apart(text)).collect();
        let between = parts[0].0.clone();
        let members = parts.into_iter().enumerate();
        let members = members.map(|(number, part)| (number, part.1)).collect();
        Family::new(Operation::Read, between, String::new(), members)
    }

    #[test]
    fn numbers_that_differ_become_parameters_and_come_back() {
        let texts = [
            "{READ, 0, 2, ([4096, -512, 8]), a1}",
            "{READ, 100, 2, ([4196, -512, 9]), a1}",
            "{READ, 300, 2, ([4396, -512, 9]), a1}",
        ];
        let family = family(&texts);
        assert_eq!(family.text(), "{READ, $1, 2, ([$1+4096, -512, $2]), a1}");
        assert_eq!(family.values(0), "0 100 300");
        for (member, text) in texts.iter().enumerate() {
            assert_eq!(family.signature(member), *text);
        }
    }

    #[test]
    fn what_depends_on_the_rank_is_written_by_it_if_it_holds_for_all() {
        let family = family(&["{100}", "{8292}", "{16484}", "{24676}"]);
        let of = |ranks: &[i64]| family.of_rank(0, ranks);
        assert_eq!(of(&[0, 1, 2, 3]).as_deref(), Some("100 + 8192 * rank"));
        assert_eq!(of(&[3, 2, 1, 0]).as_deref(), Some("24676 - 8192 * rank"));
        assert_eq!(of(&[4, 6, 8, 10]).as_deref(), Some("-16284 + 4096 * rank"));
        assert_eq!(of(&[0, 1, 3, 2]), None);
        assert_eq!(of(&[0, 3, 6, 9]), None, "no whole step");
        assert_eq!(of(&[1, 1, 1, 1]), None, "one rank says nothing");
    }

    #[test]
    fn values_in_even_steps_are_the_first_and_the_step() {
        let family = family(&["{8}", "{6}", "{4}", "{2}"]);
        assert_eq!(
            (family.text(), family.values(0)),
            ("{$1}".into(), "8 and -2 each".into())
        );
        assert_eq!(family.size(), 5 + 14);
    }

    #[test]
    fn texts_come_back_whatever_is_in_them() {
        for text in [
            "",
            "007 1-2 3d -4",
            "(1)-2",
            "99999999999999999999 x",
            "é1é",
            "-",
            "--5",
        ] {
            let (between, numbers) = taken_apart(text);
            let mut back = between[0].clone();
            for (number, after) in numbers.iter().zip(&between[1..]) {
                back += &format!("{number}{after}");
            }
            assert_eq!(back, *text);
        }
    }
}
