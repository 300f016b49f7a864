//! Many quick reads in a row: most of them skip the clock, and each of them is seen.

use std::os::unix::process::ExitStatusExt;

use foreread_plan::Kind::{Pread, Read as AtCursor};
use foreread_tests::suite::{ALL, Test};
use foreread_tests::{Lab, Need, Slow, check};

use super::harness::{Read, Stage, check_end, observe};

pub const TESTS: &[Test] = &[
    (
        "a_read_that_waits_among_quick_ones_is_measured",
        ALL,
        &[Need::Command("cc")],
        waits,
    ),
    (
        "a_stream_of_quick_reads_is_seen_to_the_last_before_a_kill",
        ALL,
        &[Need::Command("cc")],
        stream,
    ),
    (
        "whatever_comes_between_many_reads_alike_each_is_seen",
        ALL,
        &[Need::Command("cc")],
        streak,
    ),
];

/// Computing between quick reads that may be counted as part of a waiting read, in ns.
const BETWEEN: u64 = 20_000;

fn waits() {
    let stage = Stage::new();
    // Some virtual disks answer before a reader is switched out.
    let lab = Lab::new();
    let can_mount = Need::Root
        .missing()
        .or_else(|| Need::Fuse.missing())
        .is_none();
    let mounted = can_mount.then(|| Slow::mount(&lab, "network-ssd"));
    let file = match mounted {
        Some(_) => lab.path("mnt/cold"),
        None => stage.path("cold"),
    };
    std::fs::write(&file, vec![1; 240 * 4096]).expect("a file");
    let written = std::fs::File::open(&file).expect("the file");
    written.sync_all().expect("a disk");
    let program = stage.cc("waits", &[]);
    let seen = observe(program, |command| {
        command.arg(&file);
    });
    check_end(&seen, 0);
    let times = seen.times(&file);
    let (mut waited, mut measured) = (0, 0);
    for line in String::from_utf8_lossy(&seen.output.stdout).lines() {
        let numbers = line.split(' ').map(|number| number.parse().unwrap_or(0));
        let numbers: Vec<u64> = numbers.collect();
        let &[offset, own, 1] = &numbers[..] else {
            continue;
        };
        let took = |&(at, _, took): &(u64, u64, u64)| (at == offset).then_some(took);
        let took = times.iter().find_map(took).expect("the read");
        waited += 1;
        measured += i32::from((own / 2..own + BETWEEN).contains(&took));
    }
    // Little of the program's own measurement lies between its clock and the call, and little of the reported duration lies before the
    // call, unless another process has the processor then.
    check!(
        waited >= 20 && measured >= waited * 9 / 10,
        "{measured} of {waited} that waited"
    );
    // The quick reads skipped the clock.
    let spared = times.windows(2).filter(|two| two[0].2 == two[1].2);
    let spared = spared.count();
    if seen.tells_switches {
        check!(spared > times.len() / 2, "{spared}");
    } else {
        eprintln!("skipped: this kernel does not tell a thread that it was switched out");
    }
}

fn stream() {
    seen_to_the_last(&[], |n| (AtCursor, n * 512, 512));
    seen_to_the_last(&["scattered"], |n| (Pread, n * 617 % 1000 * 512, 512));
}

fn streak() {
    let stage = Stage::new();
    let program = stage.cc("streak", &[]);
    for number in ["1", "2", "3", "4"] {
        let seen = observe(program.clone(), |command| {
            command.args([stage.data(), stage.other()]).arg(number);
        });
        assert_eq!(seen.output.status.code(), Some(0), "{:?}", seen.output);
        // Reads of the handler, from the other file, that came while an event was being written.
        check!(seen.lost < 100, "{} events were lost", seen.lost);
        let said = String::from_utf8_lossy(&seen.output.stdout);
        let made: Vec<String> = said.lines().map(str::to_owned).collect();
        let reads = seen.reads_by(&stage.data());
        let own = reads.first().expect("a read").0;
        // The place of a child's reads among the program's is not reported exactly.
        let reported: Vec<String> = reads
            .iter()
            .filter(|(pid, _)| *pid == own)
            .map(|(_, (_, offset, len))| format!("{offset} {len}"))
            .collect();
        if let Some(at) = made.iter().zip(&reported).position(|(one, two)| one != two) {
            let around = at.saturating_sub(3)..(at + 5).min(made.len().min(reported.len()));
            panic!(
                "number {number}, read {at}: {:?} and not {:?}",
                &reported[around.clone()],
                &made[around]
            );
        }
        assert_eq!(made.len(), reported.len(), "number {number}");
    }
}

fn seen_to_the_last(how: &[&str], nth: impl Fn(u64) -> Read) {
    const PIECE: u64 = 512;
    const PIECES: u64 = 1000;
    const PAUSE: u64 = 300_000_000;
    let stage = Stage::new();
    let file = stage.path("streamed");
    std::fs::write(&file, vec![1; (PIECES * PIECE) as usize]).expect("a file");
    let program = stage.cc("stream", &[]);
    let seen = observe(program, |command| {
        command.args(how).arg(&file);
    });
    assert_eq!(seen.output.status.signal(), Some(9), "{:?}", seen.output);
    let reads: Vec<Read> = (0..PIECES).map(nth).collect();
    assert_eq!(seen.reads(&file), reads);
    // The program slept before the last hundred reads, for at least the pause.
    let starts: Vec<u64> = seen.times(&file).iter().map(|read| read.1).collect();
    assert!(starts.is_sorted());
    let longest = starts.windows(2).map(|two| two[1] - two[0]);
    let longest = longest
        .enumerate()
        .max_by_key(|&(_, gap)| gap)
        .expect("a gap");
    // Unless another read had to wait longer for the processor.
    check!(longest.0 as u64 == PIECES - 101, "{longest:?}");
    // The processor's clock is calibrated against the kernel's: on a loaded machine to one part in ten thousand.
    assert!(longest.1 >= PAUSE - PAUSE / 1000, "{longest:?}");
}
