//! Any bytes as a trace: it is read to its end, in bounded steps, and accesses before the damage are valid.

use std::fmt::Write as _;
use std::path::Path;

use foreread_traces::{Access, Format, Names, Operation, Trace};
use proptest::prelude::*;

fn read(bytes: &[u8], format: Option<Format>) -> Option<(Vec<(String, Access)>, Trace)> {
    let mut trace = Trace::from_bytes(bytes.to_vec(), Path::new("t"), format).ok()?;
    let mut names = Names::new();
    let mut accesses = Vec::new();
    while let Some(access) = trace.next(&mut names) {
        assert!(
            access
                .extent
                .offset
                .checked_add(access.extent.len)
                .is_some()
        );
        assert!(names.who(access.who).is_some());
        accesses.push((names.file(access.file).to_owned(), access));
    }
    assert!(trace.next(&mut names).is_none());
    Some((accesses, trace))
}

/// Reads and writes: file, true for a write, offset, length.
fn some_accesses() -> impl Strategy<Value = Vec<(u8, bool, u32, u16)>> {
    prop::collection::vec((0u8..4, any::<bool>(), any::<u32>(), 1u16..), 1..40)
}

/// The same accesses in each of the text formats.
fn texts(accesses: &[(u8, bool, u32, u16)]) -> Vec<(Format, String)> {
    let (mut fio, mut dxt, mut recorder, mut strace) = (
        "fio version 3 iolog\n".to_owned(),
        "# darshan log version: 3.41\n".to_owned(),
        String::new(),
        String::new(),
    );
    for file in 0..4 {
        let _ = writeln!(
            strace,
            "7 0.5 openat(AT_FDCWD, \"/f {file}\", O_RDWR) = {}",
            3 + file
        );
    }
    for (at, (file, write, offset, len)) in accesses.iter().enumerate() {
        let word = if *write { "write" } else { "read" };
        let _ = writeln!(fio, "{at} /f {file} {word} {offset} {len}");
        let _ = writeln!(
            dxt,
            "# DXT, file_id: {file}, file_name: /f {file}\n X_POSIX 3 {word} 0 {offset} {len} {at}.0 {at}.5 N/A"
        );
        let call = if *write { "pwrite" } else { "pread" };
        let _ = writeln!(
            recorder,
            "{at}.0 {at}.5 {call} 0 0 ( /f {file} 0x7f {len} {offset} )"
        );
        let _ = writeln!(
            strace,
            "7 {at}.6 {call}64({}, \"\\\")\"..., {len}, {offset}) = {len} <0.000010>",
            3 + file
        );
    }
    vec![
        (Format::Fio, fio),
        (Format::Dxt, dxt),
        (Format::Recorder, recorder),
        (Format::Strace, strace),
    ]
}

proptest! {
    #[test]
    fn all_formats_say_the_same(accesses in some_accesses()) {
        for (format, text) in texts(&accesses) {
            let (read, trace) = read(text.as_bytes(), None).expect("a trace");
            prop_assert_eq!(trace.format(), format);
            prop_assert_eq!(trace.problems().count(), 0, "{:?}", trace.problems());
            let moved = read.iter().filter(|(_, access)| access.operation.has_bytes());
            let moved: Vec<_> = moved
                .map(|(file, access)| {
                    let write = access.operation == Operation::Write;
                    (file.clone(), write, access.extent.offset, access.extent.len)
                })
                .collect();
            let expected: Vec<_> = accesses
                .iter()
                .map(|(file, write, offset, len)| {
                    (format!("/f {file}"), *write, u64::from(*offset), u64::from(*len))
                })
                .collect();
            prop_assert_eq!(moved, expected);
        }
    }

    #[test]
    fn what_comes_before_a_cut_stands(accesses in some_accesses(), cut in 0.0f64..1.0) {
        for (format, text) in texts(&accesses) {
            let at = (text.len() as f64 * cut) as usize;
            let (whole, _) = read(text.as_bytes(), Some(format)).expect("a trace");
            let Some((before, _)) = read(&text.as_bytes()[..at], Some(format)) else {
                prop_assert_eq!(at, 0);
                continue;
            };
            let lines = text[..at].matches('\n').count();
            let complete = text.lines().take(lines);
            let others = ["#", "fio version"];
            let complete = complete.filter(|line| !others.iter().any(|other| line.starts_with(other)));
            prop_assert_eq!(before.len(), complete.count());
            prop_assert_eq!(&whole[..before.len()], &before[..]);
        }
    }

    #[test]
    fn damage_to_a_trace_panics_nowhere(
        accesses in some_accesses(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        for (format, text) in texts(&accesses) {
            let mut bytes = text.into_bytes();
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            read(&bytes, Some(format));
            read(&bytes, None);
        }
    }

    #[test]
    fn any_bytes_panic_nowhere(bytes in prop::collection::vec(any::<u8>(), 0..2000), text in "(?s).{0,500}") {
        for format in Format::ALL.into_iter().map(Some).chain([None]) {
            read(&bytes, format);
            read(text.as_bytes(), format);
        }
    }
}
