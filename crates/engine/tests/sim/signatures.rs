//! The first run of a program with a pattern of reads, compared with a run that follows its record.

use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::{Access, Extent, PAGE, Seen};
use foreread_sources::Source;
use foreread_sources::signature::Signatures;

use super::{FILE, Sim, compare, machine, page_read, run, scattered};

pub(super) const ROOMY: usize = 1 << 20;
pub(super) const BUDGET: u64 = 1 << 16;
pub(super) const COMPUTE: u64 = 20_000;
pub(super) const MIB: u64 = 1 << 20;

pub(super) fn at(offset: u64) -> Access {
    Access {
        extent: Extent::new(offset, PAGE),
        ..page_read(0)
    }
}

/// Duration of a first run with signatures, in ns, and its report.
pub(super) fn first_run(
    model: Model,
    program: &[Access],
    compute: u64,
) -> (u64, foreread_engine::Report) {
    let shared = machine(model, ROOMY);
    let config = Config {
        budget_pages: BUDGET,
        ..Config::default()
    };
    let source: Box<dyn Source> = Box::new(Signatures::new());
    let mut engine =
        Engine::new(Sim::new(shared.clone()), config).with_strand("signatures", source);
    let end = program
        .iter()
        .map(|one| one.extent.end())
        .max()
        .unwrap_or(0);
    engine.see(&Seen::File {
        file: FILE,
        size: end,
        written: false,
    });
    let time = run(&shared, Some(&mut engine), program, compute);
    let report = engine.finish(time);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    (time, report)
}

/// Reads by cursors that take turns in no order.
pub(super) fn cursors(count: u64) -> Vec<Access> {
    let mut steps = vec![0; count as usize];
    let turns = scattered(count * 800, 1 << 30);
    let read = |turn: u64| {
        let cursor = turn % count;
        let step = &mut steps[cursor as usize];
        *step += 1;
        at(cursor * 512 * MIB + cursor * cursor * 53_248 + *step * 131_072)
    };
    turns.into_iter().map(read).collect()
}

#[test]
fn the_first_run_of_a_pattern_gains_nearly_what_the_second_does() {
    let tile = (0..48).flat_map(|z| (0..16).flat_map(move |y| (0..16).map(move |x| (x, y, z))));
    let cases: [(&str, Vec<Access>); 7] = [
        ("backward", (0..4000).rev().map(|n| at(n * PAGE)).collect()),
        ("stride 64 KiB", (0..4000).map(|n| at(n * 65_536)).collect()),
        ("stride 2 MiB", (0..2000).map(|n| at(n * 2 * MIB)).collect()),
        (
            "nested",
            (0..3000)
                .map(|n| at(n / 2 * 131_072 + n % 2 * 16_384))
                .collect(),
        ),
        (
            "3-D tile",
            tile.map(|(x, y, z)| at(z * 64 * MIB + y * 2 * MIB + x * 65_536))
                .collect(),
        ),
        ("2 cursors", cursors(2)),
        ("8 cursors", cursors(8)),
    ];
    for model in [Model::NetworkSsd, Model::Hdd7200] {
        for (name, program) in &cases {
            let second = compare(model, program.clone(), program, COMPUTE, BUDGET);
            let (first, report) = first_run(model, program, COMPUTE);
            let gain = |time: u64| second.plain as f64 - time as f64;
            let share = 100.0 * gain(first) / gain(second.ahead);
            println!(
                "{} {name}: plain {} ms, first run {}, second {}: {share:.1} %; {:?}",
                model.name(),
                second.plain / 1_000_000,
                first / 1_000_000,
                second.ahead / 1_000_000,
                report.ledger
            );
            // If there is nothing to gain, the loss is at most the few guesses of learning: 0.1 s of a disk.
            let least = 0.85 * gain(second.ahead) - second.plain as f64 / 50.0;
            assert!(
                gain(first) >= least,
                "{} {name}: {share:.1} %",
                model.name()
            );
        }
    }
}

#[test]
fn random_reads_are_fetched_by_the_program_itself() {
    let program: Vec<_> = scattered(20_000, 1 << 20)
        .into_iter()
        .map(|page| at(page * PAGE))
        .collect();
    let plain = run(&machine(Model::NetworkSsd, ROOMY), None, &program, COMPUTE);
    let (time, report) = first_run(Model::NetworkSsd, &program, COMPUTE);
    assert!(report.ledger.issued < 200 * PAGE, "{:?}", report.ledger);
    assert!(time < plain + plain / 100, "{time} ns against {plain}");
}
