//! What the recogniser of signatures costs: time for a read, by pattern, and memory of as many recognisers as a run may
//! have. All in memory and without system calls, so that only the recogniser's own work is measured.

use std::time::Instant;

use anyhow::{Context, Result};
use foreread_plan::Extent;
use foreread_sources::signature::{Builder, Limits};

use crate::cases::Random;
use crate::stats::Spread;

/// Reads pushed in one pass over a pattern, and passes, of which the median counts.
const READS: usize = 1 << 18;
const PASSES: usize = 9;
/// Recognisers of a run whose memory is looked at, and the reads each is given.
const RECOGNISERS: usize = 512;
const GIVEN: usize = 4096;
/// What detection may cost at most.
const READ_NS: f64 = 30.0;
const MEMORY_MIB: f64 = 16.0;

/// A pattern's name and the reads of one pass.
type Pattern = (&'static str, Vec<Extent>);

/// Measures time and memory; a table.
pub fn measure() -> Result<String> {
    let mut out =
        format!("the recogniser of signatures, {READS} reads a pass, {PASSES} passes\n\n");
    out += &format!(
        "{:<12} {:>8} {:>16} {:>10} {:>8}\n",
        "reads", "ns", "shortest..", "foretold", "to reach"
    );
    // Kept until the end: what one pattern's recognisers leave, the next one's must not be given again.
    let (mut held, mut memory) = (Vec::new(), 0.0_f64);
    for (name, reads) in patterns() {
        let mut foretold = 0;
        let times: Vec<f64> = (0..PASSES)
            .map(|_| {
                let (ns, right) = pass(&reads);
                foretold = right;
                ns
            })
            .collect();
        let ns = Spread::of(times).context("no pass was timed")?;
        let share = foretold as f64 / reads.len() as f64 * 100.0;
        out += &format!(
            "{name:<12} {:>8.1} {:>16} {share:>9.1}% {:>8}\n",
            ns.median,
            format!("{:.1}..{:.1}", ns.min, ns.max),
            verdict(ns.median <= READ_NS),
        );
        let before = resident()?;
        held.push(recognisers(&reads));
        memory = memory.max((resident()?.saturating_sub(before)) as f64 / (1 << 20) as f64);
    }
    out += &format!(
        "\n{RECOGNISERS} recognisers of {GIVEN} reads each: {memory:.1} MiB at most, {:.1} KiB each: {}\n",
        memory * 1024.0 / RECOGNISERS as f64,
        verdict(memory <= MEMORY_MIB),
    );
    Ok(out + &format!("\nto reach: {READ_NS} ns a read and {MEMORY_MIB} MiB\n"))
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// One pass by a recogniser that has seen nothing: ns a read, and the reads foretold rightly since the last wrong one.
fn pass(reads: &[Extent]) -> (f64, u64) {
    let mut builder = Builder::new(Limits::ONLINE);
    let began = Instant::now();
    for &read in reads {
        builder.push(read);
    }
    let ns = began.elapsed().as_nanos() as f64 / reads.len() as f64;
    (ns, builder.confirmed())
}

/// As many recognisers as a run may have, each given the first of these reads.
fn recognisers(reads: &[Extent]) -> Vec<Builder> {
    let one = || {
        let mut builder = Builder::new(Limits::ONLINE);
        for &read in reads.iter().take(GIVEN) {
            builder.push(read);
        }
        builder
    };
    std::iter::repeat_with(one).take(RECOGNISERS).collect()
}

/// Bytes of this process that are in memory.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").context("reading /proc/self/statm")?;
    let pages = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let pages: u64 = pages.context("/proc/self/statm is not as expected")?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// The patterns of the group `signature` in one series of reads each.
fn patterns() -> Vec<Pattern> {
    let mut random = Random(1);
    let by_chance: Vec<u64> = (0..READS).map(|_| random.below(1 << 20)).collect();
    let each = |at: &dyn Fn(u64) -> Extent| (0..READS as u64).map(at).collect::<Vec<_>>();
    let mut done = [0_u64; 8];
    vec![
        ("sequential", each(&|i| Extent::new(i * 4096, 4096))),
        ("strided", each(&|i| Extent::new(i * 65_536, 4096))),
        (
            "backward",
            each(&|i| Extent::new((READS as u64 - i) * 4096, 4096)),
        ),
        (
            "nested",
            each(&|i| Extent::new(i / 2 * 16_384 + i % 2 * 4096, 4096)),
        ),
        (
            "tile",
            each(&|i| Extent::new(i / 28 * 4_194_304 + i % 28 * 65_536, 8192)),
        ),
        ("lu", lu()),
        (
            "8 in turn",
            each(&|i| Extent::new(i % 8 * (1 << 32) + i / 8 * 16_384, 4096)),
        ),
        (
            "8 by chance",
            by_chance
                .iter()
                .map(|chance| {
                    let cursor = chance % 8;
                    done[cursor as usize] += 1;
                    Extent::new(cursor * (1 << 32) + done[cursor as usize] * 16_384, 4096)
                })
                .collect(),
        ),
        (
            "1 in 8 stray",
            by_chance
                .iter()
                .enumerate()
                .map(|(i, chance)| match chance % 8 {
                    0 => Extent::new(chance * 4096, 4096),
                    _ => Extent::new(i as u64 * 65_536, 4096),
                })
                .collect(),
        ),
        (
            "random",
            by_chance
                .iter()
                .map(|chance| Extent::new(chance * 4096, 4096))
                .collect(),
        ),
    ]
}

/// The LU decomposition of the signature paper's table 1, again and again in further files' place.
fn lu() -> Vec<Extent> {
    const SLAB: u64 = 524_544;
    let steps = (0..125_u64).flat_map(|step| {
        let before = (0..=step).map(|i| Extent::new((i + 1) * SLAB, 518_272 - 4096 * i));
        std::iter::once(Extent::new((step + 2) * SLAB, SLAB))
            .chain(before)
            .chain(std::iter::once(Extent::new(0, 522_368)))
    });
    let once: Vec<Extent> = steps.collect();
    once.iter().copied().cycle().take(READS).collect()
}
