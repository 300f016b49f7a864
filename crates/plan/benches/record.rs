//! Speed of writing and reading a record: `cargo bench -p foreread-plan`.

use std::hint::black_box;
use std::io;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foreread_plan::format::{Reader, Writer};
use foreread_plan::{
    Access, Extent, FileId, Identity, Kind, Meta, PAGE, Sequence, Summary, ThreadId,
};

const COUNT: u64 = 500_000;

fn meta() -> Meta {
    Meta {
        identity: Identity {
            exe: "/usr/bin/bench".into(),
            argv: vec!["bench".into()],
            cwd: "/".into(),
            rank: None,
        },
        recorded_at: 0,
        writer: "bench".into(),
    }
}

/// Accesses 83 µs apart with noise; `place` gives the file, the page and the thread.
fn trace(place: impl Fn(u64, u64) -> (u32, u64, u32)) -> Vec<Access> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut now = 0;
    (0..COUNT)
        .map(|n| {
            let noise = random.u64(..1 << 31);
            let (file, page, thread) = place(n, noise);
            let took = 60_000 + noise % 41_000;
            now += took + 3_000;
            Access {
                file: FileId(file),
                extent: Extent::new(page * PAGE, PAGE),
                thread: ThreadId(thread),
                kind: Kind::Pread,
                start: now - took,
                took,
            }
        })
        .collect()
}

fn write(accesses: &[Access], out: impl io::Write) {
    let mut writer = Writer::new(out, &meta()).expect("a header");
    for access in accesses {
        writer.access(access).expect("an access");
    }
    writer.finish(Summary::default()).expect("an end");
}

/// Reads in pieces of a page that hardly take time, as the observer hands them on.
fn write_sequences(count: u64, out: impl io::Write) {
    let mut writer = Writer::new(out, &meta()).expect("a header");
    let (more, took) = (62, 900);
    let reads = u64::from(more) + 1;
    for n in 0..count / reads {
        let first = Access {
            file: FileId(0),
            extent: Extent::new(n * reads * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Read,
            start: n * (reads + 1) * took,
            took,
        };
        writer
            .sequence(Sequence { first, more })
            .expect("a sequence");
    }
    writer.finish(Summary::default()).expect("an end");
}

fn record(c: &mut Criterion) {
    let mut group = c.benchmark_group("sequences");
    group
        .throughput(Throughput::Elements(COUNT))
        .sample_size(10);
    group.bench_function("write", |b| b.iter(|| write_sequences(COUNT, io::sink())));
    group.finish();
    let traces = [
        ("sequential", trace(|n, _| (0, n, 0))),
        ("random", trace(|_, noise| (0, noise % (1 << 18), 0))),
        (
            "files and threads at random",
            trace(|n, noise| ((noise % 300) as u32, n, (noise % 7) as u32)),
        ),
    ];
    for (name, accesses) in &traces {
        let mut group = c.benchmark_group(*name);
        group
            .throughput(Throughput::Elements(COUNT))
            .sample_size(10);
        group.bench_function("write", |b| b.iter(|| write(accesses, io::sink())));
        let mut bytes = Vec::new();
        write(accesses, &mut bytes);
        group.bench_function("read", |b| {
            b.iter(|| {
                let mut reader = Reader::from_bytes(&bytes, Path::new("memory")).expect("a record");
                black_box(reader.accesses().filter(Result::is_ok).count())
            });
        });
        group.finish();
    }
}

criterion_group!(benches, record);
criterion_main!(benches);
