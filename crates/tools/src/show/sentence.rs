//! A trace signature as a sentence: "reads 4 KiB every 16 KiB, 1024 times, from byte 0".
//!
//! A loop around one access is given by size, stride and count. A loop around loops is given by its count and its parts. Pure; the length
//! is proportional to the signature's terms.

use foreread_sources::signature::{Affine, Loop, Operation, Read, Signature, Term};
use foreread_words::counted;

/// Units; the largest that divides a number is printed.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A trace signature as a sentence.
pub(super) fn sentence(signature: &Signature) -> String {
    let verb = match signature.operation {
        Operation::Read => "reads",
        Operation::Write => "writes",
        Operation::ReadWrite => "reads or writes",
    };
    format!("{verb} {}", told(&signature.term))
}

fn told(term: &Term) -> String {
    match term {
        Term::Read(read) => format!("{}{}", amount(&read.len), from(read)),
        Term::Loop(nest) => match &nest.body[..] {
            [Term::Read(read)] => {
                let (size, pace) = (amount(&read.len), pace(read.offset.step(0), &read.len));
                format!("{size}{pace}, {},{}", times(&nest.count), from(read))
            }
            body => {
                let parts: Vec<String> = body.iter().map(told).collect();
                let parts = parts.join("; then ");
                format!("{}{}: {parts}", times(&nest.count), further(nest))
            }
        },
    }
}

/// Number of bytes of an access.
fn amount(len: &Affine) -> String {
    let changes = len.steps.iter().find(|step| **step != 0);
    match changes {
        None => size(len.base),
        Some(step) if *step < 0 => format!("{}, {} less each time,", size(len.base), size(-step)),
        Some(step) => format!("{}, {} more each time,", size(len.base), size(*step)),
    }
}

/// Stride from one access of a loop to the next.
fn pace(stride: i64, len: &Affine) -> String {
    match stride {
        0 => " at the same place".to_owned(),
        stride if len.is_constant() && stride == len.base => " after each other".to_owned(),
        1.. => format!(" every {}", size(stride)),
        _ => format!(" every {} backward", size(stride.wrapping_neg())),
    }
}

/// Stride from one round of a loop to the next, between their first accesses.
fn further(nest: &Loop) -> String {
    let (mut body, mut depth) = (&nest.body, 0);
    while let Some(Term::Loop(inner)) = body.first() {
        (body, depth) = (&inner.body, depth + 1);
    }
    let Some(Term::Read(first)) = body.first() else {
        return String::new();
    };
    match first.offset.step(depth) {
        0 => String::new(),
        step @ 1.. => format!(", {} further each time", size(step)),
        step => format!(", {} back each time", size(step.wrapping_neg())),
    }
}

fn times(count: &Affine) -> String {
    let base = count.base.max(0) as u64;
    let first = match base {
        1 => "once".to_owned(),
        _ => counted(base, "time", "times"),
    };
    match count.steps.iter().find(|step| **step != 0) {
        None => first,
        Some(step) if *step < 0 => format!("{first}, {} less each round", -step),
        Some(step) => format!("{first}, {step} more each round"),
    }
}

fn from(read: &Read) -> String {
    format!(" from byte {}", read.offset.base)
}

/// Bytes in the largest unit that divides them.
fn size(bytes: i64) -> String {
    let bytes = bytes.unsigned_abs();
    let unit = UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match unit {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => counted(bytes, "byte", "bytes"),
    }
}

#[cfg(test)]
mod tests {
    use foreread_sources::signature::parse;

    use super::*;

    /// The sentence of a trace signature given as text.
    fn of(signature: &str) -> String {
        let parsed = parse(signature, &[]).expect("a signature");
        let told: Vec<String> = parsed.iter().map(sentence).collect();
        told.join("; ")
    }

    #[test]
    fn strides_are_said_by_size_stride_and_count() {
        for (signature, said) in [
            (
                "{READ, 0, 1, ([16384, 4096, 1024]), 1}",
                "reads 4 KiB every 16 KiB, 1024 times, from byte 0",
            ),
            (
                "{READ, 4096, 1, ([4096, 4096, 10]), 1}",
                "reads 4 KiB after each other, 10 times, from byte 4096",
            ),
            (
                "{WRITE, 8192, 1, ([-2048, 1000, 4]), 1}",
                "writes 1000 bytes every 2 KiB backward, 4 times, from byte 8192",
            ),
        ] {
            assert_eq!(of(signature), said);
        }
    }

    #[test]
    fn nests_are_said_from_the_outside_in() {
        let lu = "{READ, 1049088, 3, ([{1049088, 1, [{524544}, 524544, 1]}],
            [{524544, 1, [{524544}, {518272, 1, (-4096)}, {1, 1, (1)}]}], [{0, 1, [{0}, 522368, 1]}]), 125}";
        assert_eq!(
            of(lu),
            "reads 125 times, 524544 bytes further each time: 524544 bytes from byte 1049088; then \
             518272 bytes, 4 KiB less each time, every 524544 bytes, once, 1 more each round, from byte \
             524544; then 522368 bytes from byte 0"
        );
    }
}
