//! The cost of following a pattern, in ns a read, disclosing included: to be at most 30 where reads are predicted.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foreread_plan::{Access, Extent, FileId, Kind, Seen, Sequence, ThreadId};
use foreread_sources::signature::Signatures;
use foreread_sources::{Outlook, Source};

const READS: u64 = 100_000;

fn random(n: u64) -> u64 {
    fastrand::Rng::with_seed(n).u64(..)
}

/// Reads by cursors in no order.
fn interleaved(cursors: u64, threads: bool) -> Vec<Seen> {
    let mut at = vec![0; cursors as usize];
    let read = |n| {
        let cursor = random(n) % cursors;
        let step = &mut at[cursor as usize];
        *step += 1;
        let thread = if threads { cursor as u32 } else { 0 };
        seen(
            thread,
            (cursor << 36) + cursor * cursor * 53_248 + *step * 65_536,
        )
    };
    (0..READS).map(read).collect()
}

fn seen(thread: u32, offset: u64) -> Seen {
    Seen::Read(Sequence::from(Access {
        file: FileId(0),
        extent: Extent::new(offset, 4096),
        thread: ThreadId(thread),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }))
}

fn follow(criterion: &mut Criterion) {
    let one = |offset: fn(u64) -> u64| (0..READS).map(|n| seen(0, offset(n))).collect();
    let series: [(&str, Vec<Seen>); 8] = [
        ("sequential", one(|n| n * 4096)),
        ("stride", one(|n| n * 65_536)),
        ("backward", one(|n| (READS - n) * 4096)),
        ("rows of 16", one(|n| ((n / 16) << 22) + n % 16 * 8192)),
        (
            "8 cursors in turn",
            one(|n| ((n % 8) << 36) + n / 8 * 65_536),
        ),
        ("8 cursors in any order", interleaved(8, false)),
        ("8 threads in any order", interleaved(8, true)),
        ("random", one(|n| random(n) >> 30 << 12)),
    ];
    let mut group = criterion.benchmark_group("follow");
    group.throughput(Throughput::Elements(READS));
    for (name, reads) in series {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut source = Signatures::new();
                source.see(&Seen::File {
                    file: FileId(0),
                    size: 1 << 62,
                    written: false,
                });
                let mut out = Vec::new();
                for read in &reads {
                    source.see(black_box(read));
                    while source.disclose(256, &mut out) != Outlook::Later {}
                    out.clear();
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, follow);
criterion_main!(benches);
