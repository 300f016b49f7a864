//! The readers of other tools' lists, on bytes nobody vouches for.
//!
//! The first byte chooses the format. What is read of a table or of JSON lines is written and read again, and is the same.
//!
//!     cargo +nightly fuzz run list_decode

#![no_main]

use foreread_lists::{Format, Line, Lines, Writer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let format = Format::ALL[usize::from(*choice) % Format::ALL.len()];
    let _ = Lines::<&[u8]>::format_of(rest);
    let Some(lines) = Lines::new(format, rest) else {
        return;
    };
    let all: Vec<_> = lines.collect();
    // A line takes at least a byte, and what ends the list may be one more.
    assert!(all.len() <= rest.len() + 1);
    let good: Vec<Line> = all.into_iter().filter_map(Result::ok).collect();
    for format in [Format::Csv, Format::Jsonl] {
        let mut writer = Writer::new(format, Vec::new()).expect("memory");
        for line in &good {
            writer.line(line).expect("memory");
        }
        let (_, text) = writer.finish().expect("memory");
        let again: Result<Vec<Line>, _> = Lines::new(format, &text[..]).expect("read").collect();
        assert_eq!(again.as_ref(), Ok(&good));
    }
});
