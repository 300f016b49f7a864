use super::*;

/// Number of reads disclosed after a read, and true if it made earlier disclosures void.
fn after(source: &mut Signatures, one: One) -> (usize, bool) {
    source.see(&seen(one));
    let (mut out, mut is_void) = (Vec::new(), false);
    loop {
        match source.disclose(256, &mut out) {
            Outlook::Later => return (out.len(), is_void),
            Outlook::Void => is_void = true,
            _ => {}
        }
    }
}

#[test]
fn what_was_told_of_a_pattern_that_breaks_is_void_by_the_second_read_elsewhere() {
    let mut source = Signatures::new();
    with_files(&mut source, 1, 4000 * MIB);
    for n in 0..50 {
        assert!(!after(&mut source, read(n * 64 * KIB, 4 * KIB)).1);
    }
    let strays = [read(1000 * MIB, 4 * KIB), read(500 * MIB, 4 * KIB)];
    let voids = strays.map(|one| after(&mut source, one));
    assert!(voids.iter().any(|(_, is_void)| *is_void), "{voids:?}");
    assert!(
        voids.iter().all(|(disclosed, _)| *disclosed == 0),
        "{voids:?}"
    );
    assert_eq!(
        after(&mut source, read(3 * MIB, 4 * KIB)),
        (0, false),
        "said once"
    );
}

#[test]
fn what_still_holds_is_told_again() {
    let mut source = Signatures::new();
    with_files(&mut source, 2, 4000 * MIB);
    let other = |n: u64| (1, 1, Extent::new(n * 64 * KIB, 4 * KIB));
    for n in 0..50 {
        after(&mut source, read(n * 64 * KIB, 4 * KIB));
        after(&mut source, other(n));
    }
    let mut found = (0, false);
    for at in [1000, 500, 200] {
        let (disclosed, is_void) = after(&mut source, read(at * MIB, 4 * KIB));
        found = (found.0 + disclosed, found.1 | is_void);
    }
    assert!(found.1 && found.0 >= 8, "the other file's: {found:?}");
    let next = other(50).2.pages();
    let mut out = Vec::new();
    source.disclose(256, &mut out);
    assert!(out.is_empty(), "{out:?} beside {next:?}");
}

#[test]
fn patterns_that_break_again_and_again_do_not_make_others_costly() {
    let mut source = Signatures::new();
    with_files(&mut source, 2, 1 << 40);
    for n in 0..20_000 {
        after(&mut source, read(n * 64 * KIB, 4 * KIB));
    }
    let (mut disclosed, mut reads) = (0, 0);
    for row in 0..2000_u64 {
        // Rows of another thread that end when they are just believed.
        for n in 0..12 + row % 5 {
            let place = row * row % 1013 * MIB * 64 + n * 64 * KIB;
            disclosed += after(&mut source, (1, 1, Extent::new(place, 4 * KIB))).0;
            disclosed += after(&mut source, read((20_000 + reads) * 64 * KIB, 4 * KIB)).0;
            reads += 1;
        }
    }
    assert!(
        disclosed as u64 <= (CREDIT + 2) * 2 * reads,
        "{disclosed} disclosed in {reads} pairs of reads"
    );
}

#[test]
fn what_was_told_of_one_of_several_cursors_is_void_when_it_stays_away() {
    let mut source = Signatures::new();
    with_files(&mut source, 1, 4000 * MIB);
    let trace = interleaved(2, false, 64 * KIB, false);
    for &one in &trace[..400] {
        after(&mut source, one);
    }
    let goes_on = trace[400..].iter().filter(|one| one.2.offset < 1000 * MIB);
    let mut random = fastrand::Rng::with_seed(3);
    let mut voids = 0;
    // One pattern continues; the other is replaced by random reads.
    for &one in goes_on.take(100) {
        voids += u32::from(after(&mut source, one).1);
        let stray = read(random.u64(..500_000) * 4 * KIB, 4 * KIB);
        voids += u32::from(after(&mut source, stray).1);
    }
    assert!(voids > 0);
}

#[test]
fn what_is_not_read_any_more_is_not_told_for_ever() {
    let mut source = Signatures::new();
    with_files(&mut source, 2, 4000 * MIB);
    for n in 0..500 {
        after(&mut source, read(n * 64 * KIB, 4 * KIB));
    }
    let mut told_late = 0;
    for row in 0..100_u64 {
        for n in 0..20 {
            let place = row * row % 61 * 64 * MIB + n * 64 * KIB;
            source.see(&seen((1, 1, Extent::new(place, 4 * KIB))));
            let mut out = Vec::new();
            while source.disclose(256, &mut out) != Outlook::Later {}
            let of_first = out.iter().filter(|one| one.file == FileId(0)).count();
            told_late += if row > 20 { of_first } else { 0 };
        }
    }
    assert_eq!(told_late, 0);
}

#[test]
fn a_file_that_grows_is_told_as_far_as_it_goes() {
    for cursors in [1, 2] {
        let mut source = Signatures::new();
        let (mut predicted, mut out) = (0, Vec::new());
        let trace = interleaved(cursors, false, 64 * KIB, false);
        // The second cursor, far behind the end of the first reads, makes a nest impossible.
        for (at, &one) in trace.iter().enumerate().take(800) {
            let of_first = trace[..at]
                .iter()
                .filter(|one| one.2.offset < 1000 * MIB)
                .count() as u64;
            if at % 32 == 0 {
                let size = match cursors {
                    1 => (of_first + 36) * 64 * KIB,
                    // Ahead of the second cursor, which has all other reads.
                    _ => 1000 * MIB + (at as u64 - of_first + 36) * 68 * KIB,
                };
                let file = FileId(0);
                source.see(&Seen::File {
                    file,
                    size,
                    written: true,
                });
            }
            let pages = one.2.pages();
            let is_disclosed = |disclosed: &Expected| {
                disclosed.pages.start <= pages.start && pages.end <= disclosed.pages.end
            };
            predicted += u32::from(out.iter().any(is_disclosed));
            source.see(&seen(one));
            while source.disclose(256, &mut out) != Outlook::Later {}
        }
        assert!(predicted > 760, "{predicted} of 800");
    }
}

#[test]
fn sizes_that_shrink_to_nothing_end_what_is_told() {
    let mut source = Signatures::new();
    with_files(&mut source, 1, 4000 * MIB);
    let mut out = Vec::new();
    for n in 0..4 {
        source.see(&seen(read(n * MIB, (6 - n) * 4 * KIB)));
        while source.disclose(256, &mut out) != Outlook::Later {}
    }
    let disclosed: Vec<_> = out
        .iter()
        .map(|one| one.pages.end - one.pages.start)
        .collect();
    assert_eq!(disclosed, [3, 2, 1]);
}
