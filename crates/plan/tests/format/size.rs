//! Size of records, in bytes per access, including header and definitions.

use crate::support::{pread, read, written};
use fastrand::Rng;
use foreread_plan::{Access, PAGE, ThreadId};

const COUNT: u64 = 200_000;

/// Accesses of one thread with the timing of real cold reads: 80±20 µs each, 3±1 µs apart.
fn timed(mut place: impl FnMut(u64, &mut Rng) -> (u32, u64, u64)) -> Vec<Access> {
    let mut noise = Rng::with_seed(1);
    let mut now = 0;
    (0..COUNT)
        .map(|n| {
            let (file, offset, len) = place(n, &mut noise);
            now += noise.u64(2..=4);
            let took = noise.u64(60..=100);
            let access = pread(file, offset, len, now, took);
            now += took;
            access
        })
        .collect()
}

fn per_access(name: &str, accesses: &[Access]) -> f64 {
    let bytes = written(accesses);
    assert_eq!(read(&bytes), accesses);
    let size = bytes.len() as f64 / accesses.len() as f64;
    println!("{name}: {size:.3} bytes an access");
    size
}

#[test]
fn regular_traces_take_under_three_bytes_an_access() {
    let traces = [
        ("sequential", timed(|n, _| (0, n * 65_536, 65_536))),
        ("strided", timed(|n, _| (0, n * 1_048_576, PAGE))),
        ("backward", timed(|n, _| (0, (COUNT - n) * PAGE, PAGE))),
        ("unaligned records", timed(|n, _| (0, 100 + n * 2_760, 920))),
        (
            "three files interleaved",
            timed(|n, _| ((n % 3) as u32, n / 3 * 8_192, 8_192)),
        ),
        (
            "many files, each read through",
            timed(|n, _| ((n / 16) as u32, n % 16 * 16_384, 16_384)),
        ),
        (
            "four threads, each its own part",
            timed(|n, _| (0, ((n % 4) << 30) + n / 4 * PAGE, PAGE))
                .into_iter()
                .zip(0..)
                .map(|(access, n)| Access {
                    thread: ThreadId(n % 4),
                    ..access
                })
                .collect(),
        ),
    ];
    for (name, trace) in &traces {
        let size = per_access(name, trace);
        assert!(size < 3.0, "{name} takes {size} bytes an access");
    }
}

#[test]
fn random_pages_take_little_more_than_their_entropy() {
    // 2^18 pages: 18 bits of place; 41 values of 80±20 and 3 of 3±1: 6.94 bits of time.
    let trace = timed(|_, noise| (0, noise.u64(..1 << 18) * PAGE, PAGE));
    let size = per_access("random pages of 1 GiB", &trace);
    let entropy = (18.0 + 41f64.log2() + 3f64.log2()) / 8.0;
    println!("entropy: {entropy:.3}");
    assert!(size < entropy * 1.06, "{size} bytes for {entropy}");
}

#[test]
fn without_noise_a_regular_trace_takes_next_to_nothing() {
    let trace: Vec<_> = (0..COUNT)
        .map(|n| pread(0, n * PAGE, PAGE, n * 83, 80))
        .collect();
    let size = per_access("sequential, steady", &trace);
    assert!(size < 0.05, "{size}");
}
