//! The decoders of other tools' traces, on bytes nobody vouches for.
//!
//! The first byte chooses the format, or leaves it to be recognised. For a Darshan log the rest is put into the regions of
//! a log with a right header, so that fuzzing reaches the records behind the compression.
//!
//!     cargo +nightly fuzz run trace_decode

#![no_main]

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use foreread_traces::{Format, Names, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let formats = Format::ALL.map(Some);
    match usize::from(*choice) % 7 {
        6 => read(&log(rest), Some(Format::Darshan)),
        number => read(rest, formats.get(number).copied().flatten()),
    }
});

/// Reads all there is: each access is within a file, and by somebody.
fn read(bytes: &[u8], format: Option<Format>) {
    let Ok(mut trace) = Trace::from_bytes(bytes.to_vec(), Path::new("fuzzed"), format) else {
        return;
    };
    let mut names = Names::new();
    let mut count = 0;
    while let Some(access) = trace.next(&mut names) {
        assert!(
            access
                .extent
                .offset
                .checked_add(access.extent.len)
                .is_some()
        );
        assert!(names.who(access.who).is_some());
        count += 1;
    }
    // An access takes at least a byte of the trace, and a call makes two at most.
    assert!(count <= 2 * bytes.len().max(1) || format == Some(Format::Darshan));
}

/// A log of version 3.21 whose names and records are these bytes.
fn log(rest: &[u8]) -> Vec<u8> {
    const HEADER: u64 = 24 + 16 + 16 * 20;
    let zlib = |bytes: &[u8]| {
        let mut to = ZlibEncoder::new(Vec::new(), Compression::fast());
        to.write_all(bytes)
            .and_then(|()| to.finish())
            .unwrap_or_default()
    };
    let (names, records) = rest.split_at(rest.len().min(24));
    let (names, records) = (zlib(names), zlib(records));
    let mut log = b"3.21\0\0\0\0".to_vec();
    log.extend(6_567_223u64.to_le_bytes());
    log.extend([0; 8]);
    let region = |log: &mut Vec<u8>, at: u64, len: usize| {
        log.extend(at.to_le_bytes());
        log.extend((len as u64).to_le_bytes());
    };
    region(&mut log, HEADER, names.len());
    for module in 0..16 {
        match module {
            9 => region(&mut log, HEADER + names.len() as u64, records.len()),
            _ => region(&mut log, 0, 0),
        }
    }
    for module in 0..16u32 {
        log.extend(u32::from(module == 9).to_le_bytes());
    }
    log.extend(names);
    log.extend(records);
    log
}
