//! Disks with a moving head, served in passes or with all requests at once.

use std::sync::Arc;

use foreread_backend::Sim;
use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::Access;
use foreread_sources::Replay;

use super::{machine, reads, run, scattered};

/// Time of a program that computes for `compute` ns before each read of its plan; `computed` reports its computing.
fn time(
    plan: &[Access],
    compute: u64,
    passes: bool,
    computed: impl Fn() -> Option<u64> + Send + 'static,
) -> u64 {
    let machine = machine(Model::Hdd7200, 1 << 20);
    let config = Config {
        budget_pages: 1 << 18,
        passes,
        ..Config::default()
    };
    let source = Replay::new(plan.to_vec());
    let engine =
        Engine::new(Sim::new(Arc::clone(&machine)), config).with_strand("replay", Box::new(source));
    let mut engine = engine.with_computed(computed);
    run(&machine, Some(&mut engine), plan, compute)
}

/// Rays straight through a volume of 16 x 16 x 16 bricks of a page: those of a row of rays lie in 16 places.
fn rays() -> Vec<Access> {
    let rows = (0..16).flat_map(|y| (0..16).map(move |x| (x, y)));
    reads(rows.flat_map(|(x, y)| (0..16).map(move |z| z * 256 + y * 16 + x)))
}

#[test]
fn a_program_that_computes_waits_for_less_in_passes() {
    let (plan, compute) = (rays(), 110_000);
    let computed = plan.len() as u64 * compute;
    let [at_once, passes] =
        [false, true].map(|passes| time(&plan, compute, passes, || None) - computed);
    assert!(passes * 3 < at_once * 2, "{passes} against {at_once}");
}

#[test]
fn a_program_that_mostly_waits_is_soon_served_in_one_pass() {
    let plan = reads(scattered(4000, 100_000));
    let [at_once, passes] = [false, true].map(|passes| time(&plan, 0, passes, || Some(0)));
    assert!(passes * 10 < at_once * 12, "{passes} against {at_once}");
}
