use std::collections::{HashMap, VecDeque};

use foreread_plan::{Access, PAGE, Sequence};
use proptest::prelude::*;

use super::*;

mod breaks;
mod learnt;
mod random;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A read of a trace: thread, file, extent.
type One = (u32, u32, Extent);

fn read(offset: u64, len: u64) -> One {
    (0, 0, Extent::new(offset, len))
}

fn seen((thread, file, extent): One) -> Seen {
    Seen::Read(Sequence::from(Access {
        file: FileId(file),
        extent,
        thread: ThreadId(thread),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }))
}

/// Result of a trace.
#[derive(Debug, Default)]
struct Told {
    /// Reads, those of them predicted, and those that the kernel reads ahead of.
    reads: u64,
    predicted: u64,
    kernel: u64,
    /// Reads between telling and reading, in all.
    lead: u64,
    /// Pages fetched, each once, and those of them that were read.
    pages: u64,
    useful: u64,
    voids: u64,
}

impl Told {
    /// Share of predicted reads among those not served by the kernel's read-ahead, in percent.
    fn share(&self) -> f64 {
        100.0 * self.predicted as f64 / (self.reads - self.kernel).max(1) as f64
    }

    fn precision(&self) -> f64 {
        100.0 * self.useful as f64 / self.pages.max(1) as f64
    }
}

/// Reads fetched ahead of the program: as many as a fast device has on the way.
const HORIZON: usize = 128;

/// A page that was disclosed.
struct Page {
    when: u64,
    fetched: bool,
    read: bool,
}

/// Runs a program. The first [`HORIZON`] disclosed pages that the program has not read are fetched.
fn run(source: &mut Signatures, trace: &[One]) -> Told {
    let mut disclosed = Told::default();
    let mut pages: HashMap<(u32, u64), Page> = HashMap::new();
    let mut queue = VecDeque::new();
    let mut ahead = 0;
    let mut streams: HashMap<(u32, u32), Stream> = HashMap::new();
    let mut out = Vec::new();
    for (at, &one) in trace.iter().enumerate() {
        let (thread, file, extent) = one;
        disclosed.reads += 1;
        let stream = streams.entry((thread, file)).or_default();
        stream.next(extent);
        let mut all = true;
        let mut since = at as u64;
        for page in extent.pages() {
            match pages.get_mut(&(file, page)) {
                Some(page) => {
                    if page.fetched && !page.read {
                        disclosed.useful += 1;
                        ahead -= 1;
                    }
                    page.read = true;
                    since = since.min(page.when);
                }
                None => all = false,
            }
        }
        if all {
            disclosed.predicted += 1;
            disclosed.lead += at as u64 - since;
        } else {
            disclosed.kernel += u64::from(stream.served().is_some());
        }
        source.see(&seen(one));
        loop {
            out.clear();
            let outlook = source.disclose(256, &mut out);
            for (file, page) in out
                .iter()
                .flat_map(|one| one.pages.clone().map(|page| (one.file.0, page)))
            {
                pages.entry((file, page)).or_insert_with(|| {
                    queue.push_back((file, page));
                    let (fetched, read) = (false, false);
                    Page {
                        when: at as u64,
                        fetched,
                        read,
                    }
                });
            }
            match outlook {
                Outlook::Void => {
                    assert!(out.is_empty());
                    disclosed.voids += 1;
                    queue.clear();
                    pages.retain(|_, page| page.fetched);
                }
                Outlook::More => {}
                _ => break,
            }
        }
        while ahead < HORIZON.max(2 * extent.pages().count())
            && let Some(key) = queue.pop_front()
        {
            let page = pages.get_mut(&key).expect("it was disclosed");
            if !page.read {
                page.fetched = true;
                disclosed.pages += 1;
                ahead += 1;
            }
        }
    }
    disclosed
}

fn with_files(source: &mut Signatures, files: u32, size: u64) {
    for file in 0..files {
        let file = FileId(file);
        source.see(&Seen::File {
            file,
            size,
            written: false,
        });
    }
}

/// Predicts a trace whose files end with it, and checks that enough was predicted.
fn predicts(name: &str, trace: &[One]) -> Told {
    let disclosed = predicted(name, trace);
    assert!(disclosed.share() >= 85.0, "{name}: {disclosed:?}");
    assert!(disclosed.precision() >= 90.0, "{name}: {disclosed:?}");
    disclosed
}

/// Foretell a trace of files that end where it does.
fn predicted(name: &str, trace: &[One]) -> Told {
    let size = trace.iter().map(|(_, _, extent)| extent.end()).max();
    let mut source = Signatures::new();
    let files = trace.iter().map(|(_, file, _)| file + 1).max();
    with_files(&mut source, files.unwrap_or(0), size.unwrap_or(0));
    let disclosed = run(&mut source, trace);
    println!(
        "{name}: {:.1} % predicted, {:.0} reads ahead, {:.1} % precise, {} left to the kernel, {} voids of {} reads",
        disclosed.share(),
        disclosed.lead as f64 / disclosed.predicted.max(1) as f64,
        disclosed.precision(),
        disclosed.kernel,
        disclosed.voids,
        disclosed.reads
    );
    disclosed
}

/// Cursors that read by turns, or in any order, each through a part of its own.
fn interleaved(cursors: u64, in_turn: bool, stride: u64, threads: bool) -> Vec<One> {
    let mut random = fastrand::Rng::with_seed(cursors);
    let mut at = vec![0; cursors as usize];
    (0..cursors * 1000)
        .map(|number| {
            let cursor = match in_turn {
                true => number % cursors,
                false => random.u64(..cursors),
            };
            let step = at[cursor as usize];
            at[cursor as usize] += 1;
            let own = stride + cursor * 4 * KIB;
            let thread = if threads { cursor as u32 } else { 0 };
            (
                thread,
                0,
                Extent::new(
                    cursor * 1000 * MIB + cursor * cursor * 52 * KIB + step * own,
                    4 * KIB,
                ),
            )
        })
        .collect()
}

#[test]
fn backward_reads_are_predicted() {
    let blocks = 2000;
    let one: Vec<_> = (0..blocks)
        .rev()
        .map(|n| read(n * 4 * KIB, 4 * KIB))
        .collect();
    predicts("backward 1", &one);
    let two: Vec<_> = (0..blocks)
        .rev()
        .map(|n| read(n * 8 * KIB, 4 * KIB))
        .collect();
    predicts("backward 2", &two);
    let small: Vec<_> = (0..20_000).rev().map(|n| read(n * 700, 700)).collect();
    predicts("backward, less than a page", &small);
}

#[test]
fn strides_are_predicted() {
    for stride in [8 * KIB, 64 * KIB, 2 * MIB] {
        let trace: Vec<_> = (0..1000).map(|n| read(n * stride, 4 * KIB)).collect();
        let disclosed = predicts(&format!("stride {} KiB", stride / KIB), &trace);
        assert!(disclosed.lead / disclosed.predicted > 100, "{disclosed:?}");
    }
}

#[test]
fn nests_are_predicted() {
    let nested: Vec<_> = (0..1000)
        .flat_map(|n| {
            [
                read(n * 16 * KIB, 4 * KIB),
                read(n * 16 * KIB + 4 * KIB, 4 * KIB),
            ]
        })
        .collect();
    predicts("nested", &nested);
    let column: Vec<_> = (0..4)
        .flat_map(|column| {
            (0..500).map(move |row| read(row * 64 * KIB + column * 4 * KIB, 4 * KIB))
        })
        .collect();
    predicts("columns of a matrix", &column);
    let tile: Vec<_> = (0..16)
        .flat_map(|z| (0..16).flat_map(move |y| (0..8).map(move |x| (x, y, z))))
        .map(|(x, y, z)| read(z * 16 * MIB + y * 256 * KIB + x * 8 * KIB, 4 * KIB))
        .collect();
    predicts("3-D tile", &tile);
}

#[test]
fn strides_rounded_to_blocks_are_predicted() {
    let block = |offset: u64| read(offset / (8 * KIB) * (8 * KIB), 8 * KIB);
    let line: Vec<_> = (0..2000).map(|n| block(1000 + n * 57_600)).collect();
    predicts("7.03 blocks apart", &line);
    let backward: Vec<_> = (0..2000).rev().map(|n| block(1000 + n * 57_600)).collect();
    predicts("7.03 blocks apart, backward", &backward);
    let slabs: Vec<_> = (0..1000)
        .flat_map(|level| (0..5).map(move |row| block(144_720 + level * 518_400 + row * 57_600)))
        .collect();
    predicts("hyperslabs through a buffer", &slabs);
    let apart: Vec<_> = (0..8)
        .flat_map(|time| (0..30).flat_map(move |level| (0..5).map(move |row| (time, level, row))))
        .map(|(time, level, row)| block(time * 64_000_300 + level * 518_400 + row * 57_600))
        .collect();
    // After each jump, which nothing predicts, the stride appears with the second level, and the end is the same as before. Which of two
    // blocks has an element must be observed again.
    let disclosed = predicted("hyperslabs, three dimensions", &apart);
    assert!(disclosed.share() >= 85.0, "{disclosed:?}");
    assert!(disclosed.precision() >= 60.0, "{disclosed:?}");
}

#[test]
fn lu_is_predicted() {
    let mut trace = Vec::new();
    for j in 0..125 {
        trace.push(read(1_049_088 + j * 524_544, 524_544));
        trace.extend((0..=j).map(|i| read(524_544 * (i + 1), 518_272 - 4096 * i)));
        trace.push(read(0, 522_368));
    }
    predicts("LU", &trace);
}

#[test]
fn cursors_in_turn_are_predicted() {
    for cursors in 2..=8 {
        predicts(
            &format!("{cursors} cursors in turn"),
            &interleaved(cursors, true, 64 * KIB, false),
        );
    }
}

#[test]
fn cursors_in_any_order_are_predicted() {
    for cursors in 2..=8 {
        predicts(
            &format!("{cursors} cursors in any order"),
            &interleaved(cursors, false, 64 * KIB, false),
        );
        predicts(
            &format!("{cursors} threads in any order"),
            &interleaved(cursors, false, 64 * KIB, true),
        );
    }
}

#[test]
fn a_run_is_left_to_the_kernel_and_the_gap_after_it_predicted() {
    let run_and_gap: Vec<_> = (0..8)
        .flat_map(|run| (0..399).map(move |n| read((run * 498 + n) * MIB, MIB)))
        .collect();
    let mut source = Signatures::new();
    with_files(&mut source, 1, (7 * 498 + 399) * MIB);
    let disclosed = run(&mut source, &run_and_gap);
    println!("{disclosed:?}");
    // The first gap cannot be foreseen. The beginning of each run after the third is disclosed.
    assert!(disclosed.predicted >= 5, "{disclosed:?}");
    assert!(disclosed.predicted < 60, "{disclosed:?}");
    assert!(disclosed.precision() >= 90.0, "{disclosed:?}");
}

#[test]
fn a_sequential_program_is_left_alone() {
    let trace: Vec<_> = (0..10_000).map(|n| read(n * 16 * KIB, 16 * KIB)).collect();
    let mut source = Signatures::new();
    with_files(&mut source, 1, 160 * MIB);
    let disclosed = run(&mut source, &trace);
    assert_eq!(disclosed.pages, 0, "{disclosed:?}");
}

#[test]
fn a_sequential_program_is_told_of_where_the_kernel_reads_nothing_ahead() {
    let trace: Vec<_> = (0..10_000).map(|n| read(n * 16 * KIB, 16 * KIB)).collect();
    // Known before the first read, or after some, which were thought to be left to the kernel.
    for known_after in [0, 3, 100] {
        let mut source = Signatures::new();
        with_files(&mut source, 1, 160 * MIB);
        let (before, after) = trace.split_at(known_after);
        run(&mut source, before);
        source.see(&Seen::Unaided { file: FileId(0) });
        let disclosed = run(&mut source, after);
        assert!(disclosed.pages >= 39_000, "{known_after}: {disclosed:?}");
        assert!(
            disclosed.precision() >= 99.0,
            "{known_after}: {disclosed:?}"
        );
    }
    // However long its reads are.
    let trace: Vec<_> = (0..100).map(|n| read(n * MIB, MIB)).collect();
    let mut source = Signatures::new();
    with_files(&mut source, 1, 160 * MIB);
    source.see(&Seen::Unaided { file: FileId(0) });
    let disclosed = run(&mut source, &trace);
    assert!(disclosed.pages >= 96 * 256, "{disclosed:?}");
}
