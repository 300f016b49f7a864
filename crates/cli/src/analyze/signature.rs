//! The signatures of a stream, as text.

use foreread_sources::signature::{Affine, Term};
use foreread_traces::Operation;

use super::streams::Stream;

/// The names of loop indices, the outermost loop's first.
const INDICES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "p", "q"];

/// The trace signature and the pattern signature; the former is empty where it was given up.
pub(crate) fn signature(stream: &Stream) -> (String, String) {
    let Some(trace) = &stream.trace else {
        return (String::new(), "no pattern".to_owned());
    };
    let operation = match stream.operation {
        Operation::Write => "WRITE",
        _ => "READ",
    };
    let mut text = format!("{{{operation}");
    for term in &trace.terms {
        text.push_str(", ");
        write(term, 0, &mut text);
    }
    text.push('}');
    let depth = trace.terms.iter().map(Term::depth).max().unwrap_or(0);
    (text, format!("<{operation}, {depth}d>"))
}

fn write(term: &Term, depth: usize, text: &mut String) {
    match term {
        Term::Read(read) => {
            text.push_str(&format!(
                "({}, {})",
                affine(&read.offset, depth),
                affine(&read.len, depth)
            ));
        }
        Term::Loop(inner) => {
            text.push_str(&format!("{} times [", affine(&inner.count, depth)));
            for (index, term) in inner.body.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write(term, depth + 1, text);
            }
            text.push(']');
        }
    }
}

fn affine(value: &Affine, depth: usize) -> String {
    let mut text = value.base.to_string();
    for (inward, step) in value.steps.iter().enumerate() {
        if *step != 0 && inward < depth {
            let index = INDICES[(depth - 1 - inward) % INDICES.len()];
            text.push_str(&format!(" {step:+}{index}"));
        }
    }
    text
}
