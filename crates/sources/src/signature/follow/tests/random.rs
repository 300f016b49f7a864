use super::*;

#[test]
fn random_reads_are_left_alone() {
    for (blocks, seed) in [(1_000, 1), (25_000, 2), (1 << 20, 3)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let trace: Vec<_> = (0..100_000)
            .map(|_| read(random.u64(..blocks) * 4 * KIB, 4 * KIB))
            .collect();
        let mut source = Signatures::new();
        with_files(&mut source, 1, blocks * 4 * KIB);
        let mut out = Vec::new();
        let mut disclosed = 0;
        for one in trace {
            source.see(&seen(one));
            loop {
                out.clear();
                let outlook = source.disclose(256, &mut out);
                disclosed += out.len();
                if outlook == Outlook::Later {
                    break;
                }
            }
        }
        println!("{blocks} blocks: {disclosed} disclosed of 100000 reads");
        assert!(
            disclosed < 1000,
            "{disclosed} disclosed of random reads of {blocks} blocks"
        );
    }
}

#[test]
fn a_pattern_after_random_reads_is_still_found() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut trace: Vec<_> = (0..20_000)
        .map(|_| read(random.u64(..100_000) * 4 * KIB, 4 * KIB))
        .collect();
    trace.extend((0..40_000).map(|n| read(n * 32 * KIB, 4 * KIB)));
    let mut source = Signatures::new();
    with_files(&mut source, 1, 4000 * MIB);
    let disclosed = run(&mut source, &trace);
    assert!(disclosed.predicted > 30_000, "{disclosed:?}");
}

fn anything() -> impl Strategy<Value = Seen> {
    let number = prop_oneof![
        4 => (0u64..64).prop_map(|n| n * 4096),
        1 => any::<u64>(),
        1 => (0u64..3).prop_map(|n| u64::MAX - n),
        1 => (0u64..3).prop_map(|n| i64::MAX as u64 - n),
    ];
    let len = prop_oneof![4 => Just(4096), 1 => Just(0), 1 => any::<u64>()];
    prop_oneof![
        8 => (0u32..3, 0u32..3, number.clone(), len, 0u16..4).prop_map(|(thread, file, offset, len, more)| {
            let Seen::Read(mut sequence) = seen((thread, file, Extent::new(offset, len))) else {
                unreachable!()
            };
            sequence.more = more;
            Seen::Read(sequence)
        }),
        2 => (0u32..3, number).prop_map(|(file, size)| Seen::File { file: FileId(file), size, written: false }),
        1 => (0u32..3, 0u64..3).prop_map(|(file, role)| Seen::Role { file: FileId(file), role: Role(role), turn: Role(role + 3) }),
        1 => (0u32..3).prop_map(|thread| Seen::Exit { thread: ThreadId(thread) }),
    ]
}

/// Runs of equal strides among anything else, so that something is disclosed.
fn runs() -> impl Strategy<Value = Vec<Seen>> {
    let run = (
        0u32..2,
        0u32..3,
        0u64..1000,
        -40i64..40,
        1u64..3,
        1usize..40,
    )
        .prop_map(|(thread, file, start, stride, pages, count)| {
            (0..count as i64)
                .map(|n| {
                    let offset = (start as i64 + 2000 + n * stride) as u64 * PAGE;
                    seen((thread, file, Extent::new(offset, pages * PAGE)))
                })
                .collect::<Vec<_>>()
        });
    let piece = prop_oneof![3 => run, 1 => anything().prop_map(|one| vec![one])];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// For any reads, nothing is disclosed beyond the end of a file, nor for a file of unknown size.
    #[test]
    fn nothing_past_the_end_is_told(sizes in proptest::collection::vec(0u64..6000, 3), all in runs(), room in 1usize..40) {
        let mut source = Signatures::new();
        let mut known: HashMap<FileId, u64> = HashMap::new();
        let begin = sizes.iter().enumerate().map(|(file, &pages)| Seen::File {
            file: FileId(file as u32),
            size: pages * PAGE / 2,
            written: false,
        });
        let mut queue: Vec<Expected> = Vec::new();
        for one in begin.chain(all) {
            if let Seen::File { file, size, .. } = one {
                known.insert(file, size);
            }
            source.see(&one);
            for _ in 0..10_000 {
                let mut out = Vec::new();
                let outlook = source.disclose(room, &mut out);
                prop_assert!(out.len() <= room);
                if outlook == Outlook::Void {
                    prop_assert!(out.is_empty());
                    queue.clear();
                }
                queue.append(&mut out);
                if outlook == Outlook::Later {
                    break;
                }
            }
            // All pending reads, not only new ones: a file that shrinks makes them void.
            for one in &queue {
                let size = known.get(&one.file).copied().unwrap_or(0);
                prop_assert!(!one.pages.is_empty() && one.pages.end <= size.div_ceil(PAGE), "{one:?} {size}");
            }
        }
    }
}
