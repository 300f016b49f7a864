//! Cost of recognition per read, in ns: at most 30, for any reads.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foreread_plan::Extent;
use foreread_sources::signature::{Builder, Limits};

fn push(criterion: &mut Criterion) {
    const READS: u64 = 100_000;
    let offsets = |offset: fn(u64) -> u64| -> Vec<Extent> {
        (0..READS).map(|n| Extent::new(offset(n), 4096)).collect()
    };
    let scatter = |n: u64| {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31)
            .wrapping_mul(n | 1)
            >> 30
            << 12
    };
    let series = [
        ("stride", offsets(|n| n * 65_536)),
        (
            "rows of 10",
            offsets(|n| n / 10 * 1_000_000 + n % 10 * 8192),
        ),
        (
            "cursors in turn",
            offsets(|n| ((n % 8) << 33) | (n / 8 * 8192)),
        ),
        ("random", offsets(scatter)),
        (
            "noise in a stride",
            offsets(|n| if n % 8 == 0 { (n * n) << 12 } else { n << 20 }),
        ),
    ];
    let mut group = criterion.benchmark_group("push");
    group.throughput(Throughput::Elements(READS));
    for (name, reads) in series {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut builder = Builder::new(Limits::ONLINE);
                for read in &reads {
                    builder.push(black_box(*read));
                }
                builder.confirmed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, push);
criterion_main!(benches);
