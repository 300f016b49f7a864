//! What detecting patterns costs: time for a read, by pattern, of the recogniser alone and of the source that follows what it
//! recognises, and memory of as many recognisers as a run may have. All in memory and without system calls, so that only the recogniser's own work is measured.

use std::time::Instant;

use anyhow::{Context, Result};
use foreread_plan::{Access, Extent, FileId, Kind, Seen, Sequence, ThreadId};
use foreread_sources::Source;
use foreread_sources::signature::{Builder, Limits, Signatures};

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
    let mut out = format!(
        "what detecting a pattern costs a read: median of {PASSES} passes of {READS} reads; shortest..longest\n\n"
    );
    out += &format!(
        "{:<12} {:>11} {:>14} {:>11} {:>14} {:>9}\n",
        "reads", "recognised", "", "followed", "", "to reach"
    );
    // Kept until the end: what one pattern's recognisers leave, the next one's must not be given again.
    let (mut held, mut memory) = (Vec::new(), 0.0_f64);
    for (name, reads) in patterns() {
        let timed = |pass: fn(&[Extent]) -> f64| {
            let times = (0..PASSES).map(|_| pass(&reads));
            Spread::of(times.collect::<Vec<_>>()).context("no pass was timed")
        };
        let (recognised, followed) = (timed(recognise)?, timed(follow)?);
        let range = |ns: Spread| format!("{:.1}..{:.1}", ns.min, ns.max);
        out += &format!(
            "{name:<12} {:>8.1} ns {:>14} {:>8.1} ns {:>14} {:>9}\n",
            recognised.median,
            range(recognised),
            followed.median,
            range(followed),
            verdict(followed.median <= READ_NS),
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

/// One pass by a recogniser that has seen nothing; ns a read.
fn recognise(reads: &[Extent]) -> f64 {
    let mut builder = Builder::new(Limits::ONLINE);
    each_took(reads, |read, _| builder.push(read))
}

/// Reads of which a session tells its sources at a time, before it asks them for what comes next.
const TOLD: usize = 32;
/// Entries asked for at a time.
const ROOM: usize = 256;

/// One pass by the source, one thread reading one file, which is long enough for all of it; ns a read.
fn follow(reads: &[Extent]) -> f64 {
    let mut source = Signatures::new();
    let (file, thread) = (FileId(0), ThreadId(0));
    source.see(&Seen::File {
        file,
        size: i64::MAX as u64,
        written: false,
    });
    let mut disclosed = Vec::with_capacity(ROOM);
    each_took(reads, |extent, number| {
        source.see(&Seen::Read(Sequence::from(Access {
            file,
            extent,
            thread,
            kind: Kind::Pread,
            start: 0,
            took: 0,
        })));
        if number % TOLD == 0 {
            disclosed.clear();
            source.disclose(ROOM, &mut disclosed);
        }
    })
}

fn each_took(reads: &[Extent], mut tell: impl FnMut(Extent, usize)) -> f64 {
    let began = Instant::now();
    for (number, &read) in reads.iter().enumerate() {
        tell(read, number);
    }
    began.elapsed().as_nanos() as f64 / reads.len() as f64
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
