//! Reads blocks of a file in a random order that is known beforehand, and sums their bytes.
//!
//! ```text
//! cargo run --release -p foreread-client --example random_blocks -- FILE        prefetched
//! cargo run --release -p foreread-client --example random_blocks -- FILE plain  as ever, for comparison
//! ```

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

const BLOCK: u64 = 4096;
const READS: u64 = 20_000;

/// The block that is read `n`-th, of so many: scattered, and the same every time.
fn block(n: u64, blocks: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let plain = arguments.next().is_some();
    let file = File::open(&path)?;
    let blocks = file.metadata()?.len() / BLOCK;
    if blocks == 0 {
        return Err(format!("{path} is shorter than a block of {BLOCK} bytes").into());
    }

    // What will be read, in order: the file's number among those given, and the bytes.
    let list = (0..READS).map(move |n| {
        let start = block(n, blocks) * BLOCK;
        (0, start..start + BLOCK)
    });
    let begun = Instant::now();
    let guard = match plain {
        false => Some(foreread_client::prefetch([&path], list)?),
        true => None,
    };

    let mut buffer = [0; BLOCK as usize];
    let mut sum = 0u64;
    for n in 0..READS {
        if let Some(guard) = &guard {
            guard.at(n)?;
        }
        file.read_exact_at(&mut buffer, block(n, blocks) * BLOCK)?;
        sum += buffer.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }

    println!(
        "{READS} blocks in {:.3} s, sum {sum}",
        begun.elapsed().as_secs_f64()
    );
    if let Some(guard) = guard {
        let ledger = guard.finish().stats.ledger;
        println!(
            "fetched ahead {} KiB: useful {}, late {}, wasted {}, evicted {}, infill {}",
            ledger.issued >> 10,
            ledger.useful >> 10,
            ledger.late >> 10,
            ledger.wasted >> 10,
            ledger.evicted >> 10,
            ledger.infill >> 10
        );
    }
    Ok(())
}
