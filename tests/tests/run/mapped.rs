//! Mapped files, whose reads make no call: the touched pages are found by looking at the program from outside.

use std::collections::BTreeSet;
use std::path::Path;

use foreread_plan::Kind;
use foreread_plan::format::Reader;
use foreread_tests::Lab;

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    ("touched_pages_of_mappings_are_recorded", ALL, &[], pages),
    (
        "objects_loaded_at_the_start_and_later_are_recorded_with_their_touched_pages",
        ALL,
        &[],
        objects,
    ),
];

const PAGE: u64 = 4096;

/// Mapped and touched pages of a file in a record.
#[derive(Debug, Default)]
struct Pages {
    mapped: BTreeSet<u64>,
    touched: BTreeSet<u64>,
}

/// The recorded pages of a file in a run of `mapped`. The program pauses long enough to be sampled; if it waited for its processor all
/// that time, the run is repeated.
fn recorded(lab: &Lab, mode: &str, name: &str, enough: impl Fn(&Pages) -> bool) -> Pages {
    let mut found = Pages::default();
    for _ in 0..10 {
        let outcome = lab.foreread(&["record", "-o", "kept.fr", "--", "./mapped", mode, "data"]);
        assert!(outcome.status.success(), "{outcome:?}");
        let mut record = Reader::open(&lab.path("kept.fr")).expect("a record");
        let ours = |path: &Path| path.file_name().is_some_and(|file| file == name);
        let files: Vec<_> = record
            .files()
            .iter()
            .filter(|(_, meta)| ours(&meta.path))
            .map(|(id, _)| *id)
            .collect();
        found = Pages::default();
        for access in record.accesses().map(|access| access.expect("an access")) {
            let pages = access.extent.offset / PAGE..access.extent.end().div_ceil(PAGE);
            match access.kind {
                _ if !files.contains(&access.file) => {}
                Kind::Map => found.mapped.extend(pages),
                Kind::Touch => found.touched.extend(pages),
                _ => {}
            }
        }
        if enough(&found) {
            break;
        }
    }
    assert!(enough(&found), "{name}: {found:?}");
    found
}

fn pages() {
    let lab = Lab::new();
    lab.program("mapped", &[]);
    lab.data("data", 4);
    let wanted = [40, 41, 257, 289, 600, 801, 802, 803];
    let found = recorded(&lab, "pages", "data", |found| {
        wanted.iter().all(|page| found.touched.contains(page))
            && (512..528).all(|page| found.touched.contains(&page))
    });
    // The kernel may also map pages near a touched one that are in memory already, within the mapping.
    assert!(found.touched.is_subset(&found.mapped), "{found:?}");
    let mapped = [0..256, 256..320, 512..528, 600..604, 801..804];
    assert!(
        found
            .mapped
            .iter()
            .copied()
            .eq(mapped.into_iter().flatten())
    );
}

fn objects() {
    let lab = Lab::new();
    lab.program("mapped", &["-ldl"]);
    lab.data("data", 1);
    for name in ["mapped", "libc.so.6", "libm.so.6"] {
        let found = recorded(&lab, "objects", name, |found| !found.touched.is_empty());
        assert!(found.touched.is_subset(&found.mapped), "{name}: {found:?}");
    }
}
