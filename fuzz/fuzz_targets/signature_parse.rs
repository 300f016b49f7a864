//! The reader of signatures, on text nobody vouches for.
//!
//! What is read must print as text that is read as the same, and its first accesses must be walked without end or harm.
//!
//!     cargo +nightly fuzz run signature_parse

#![no_main]

use foreread_sources::signature::{
    PatternSignature, Temporal, Trace, join, parse, parse_pattern,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(signatures) = parse(text, &[("initial position", 7)]) {
        assert_eq!(parse(&join(&signatures), &[]).as_ref(), Ok(&signatures));
        let pattern = PatternSignature::of(&signatures, Temporal::Random);
        assert_eq!(parse_pattern(&pattern.to_string()), Ok(pattern));
        let terms = signatures.into_iter().map(|one| one.term).collect();
        let trace = Trace { terms };
        assert!(trace.expand().take(1000).count() <= 1000);
    }
    if let Ok(pattern) = parse_pattern(text) {
        assert_eq!(parse_pattern(&pattern.to_string()), Ok(pattern));
    }
});
