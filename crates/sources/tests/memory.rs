//! Memory of following, counted by the allocator.

use std::alloc::System;

use foreread_plan::{Access, Extent, FileId, Kind, Role, Seen, Sequence, ThreadId};
use foreread_sources::signature::Signatures;
use foreread_sources::{Outlook, Source};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MOST: usize = 16 << 20;

fn read(thread: u32, file: u32, offset: u64, len: u64) -> Seen {
    Seen::Read(Sequence::from(Access {
        file: FileId(file),
        extent: Extent::new(offset, len),
        thread: ThreadId(thread),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }))
}

/// Offsets of a program's reads, by the number of the read.
type Way = fn(u64) -> u64;

/// One test, because the allocator counts for all threads.
#[test]
fn following_takes_at_most_16_mib_whatever_the_program_does() {
    let ways: [(&str, Way); 5] = [
        ("strides", |n| n * 65_536),
        ("nested rows", |n| {
            (n % 3) * 4096 + (n / 3 % 5) * 65_536 + (n / 15 % 7) * (1 << 22) + (n / 105) * (1 << 30)
        }),
        ("eight cursors", |n| {
            ((n % 8) << 40) + (n % 8) * (n % 8) * 53_248 + n / 8 * 65_536
        }),
        ("random", |n| fastrand::Rng::with_seed(n).u64(..1 << 40)),
        ("changing strides", |n| n * n / 64 * 4096),
    ];
    let before = Region::new(ALLOCATOR);
    let mut source = Signatures::new();
    let mut out = Vec::with_capacity(256);
    let mut peak = 0;
    // Each file is read in another way, and three at the same time.
    for file in 0..3_000_u32 {
        let (name, way) = ways[file as usize % ways.len()];
        let id = FileId(file);
        source.see(&Seen::File {
            file: id,
            size: 1 << 50,
            written: false,
        });
        source.see(&Seen::Role {
            file: id,
            role: Role(u64::from(file) + 1),
            turn: Role::default(),
        });
        for number in 0..60 {
            for other in [file, file.saturating_sub(1), file / 2] {
                let len = 4096 + u64::from(file % 7);
                source.see(&read(other % 1500, other, way(number), len));
            }
            while source.disclose(256, &mut out) != Outlook::Later {
                out.clear();
            }
            out.clear();
        }
        let change = before.change();
        let held = change.bytes_allocated - change.bytes_deallocated;
        assert!(held <= MOST, "{held} bytes at file {file}, {name}");
        peak = peak.max(held);
    }
    // Sizes alone, of more files than are remembered.
    for file in 0..200_000 {
        source.see(&Seen::File {
            file: FileId(file),
            size: 1,
            written: false,
        });
    }
    let change = before.change();
    let held = change.bytes_allocated - change.bytes_deallocated;
    assert!(held <= MOST, "{held} bytes");
    eprintln!(
        "at most {:.1} MiB",
        peak.max(held) as f64 / f64::from(1 << 20)
    );
    // A test that counts nothing would pass as well.
    assert!(peak > 1 << 20, "{peak} bytes");
}
