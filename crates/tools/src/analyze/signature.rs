//! The signatures of a stream, as text.

use foreread_sources::signature::{self, PatternSignature, Signature, join};
use foreread_traces::Operation;

use super::streams::Stream;

/// The trace signature and the pattern signature. The former is empty if it grew too long.
pub(crate) fn signature(stream: &Stream) -> (String, String) {
    let Some(trace) = &stream.trace else {
        return (String::new(), "no pattern".to_owned());
    };
    let operation = match stream.operation {
        Operation::Write => signature::Operation::Write,
        _ => signature::Operation::Read,
    };
    let signatures: Vec<Signature> = trace
        .terms
        .iter()
        .map(|term| Signature {
            operation,
            term: term.clone(),
            period: stream.times.period(),
        })
        .collect();
    let pattern = PatternSignature::of(&signatures, stream.times.temporal());
    (join(&signatures), pattern.to_string())
}
