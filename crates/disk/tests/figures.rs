//! Each model's realised figures, in virtual time, against its specification.

use foreread_disk::{Disk, Layout, Model, Request, hdd, striped};

const GIB: u64 = 1 << 30;
const IMAGE: u64 = 8 * GIB;

/// Sends `count` reads, `depth` in flight, each `think` ns after the completion that it follows; returns the total time in ns.
fn run(
    disk: &mut Disk,
    count: u64,
    len: u32,
    depth: u64,
    think: u64,
    mut offset: impl FnMut(u64) -> u64,
) -> u64 {
    let mut now = 0;
    let mut sent = 0;
    let mut send = |disk: &mut Disk, now: u64| {
        if sent < count {
            let request = Request {
                id: sent,
                offset: offset(sent),
                len,
                write: false,
            };
            disk.submit(now, request);
            sent += 1;
        }
    };
    for _ in 0..depth {
        send(disk, now);
    }
    while let Some(at) = disk.next_event() {
        now = at;
        for done in disk.advance(at) {
            send(disk, done.at_ns + think);
        }
    }
    now
}

fn random_us(model: Model, layout: Layout, span: u64) -> f64 {
    let mut dice = fastrand::Rng::with_seed(1);
    let count = 4000;
    let mut disk = Disk::new(model, layout);
    let ns = run(&mut disk, count, 4096, 1, 0, |_| {
        dice.u64(..span / 4096) * 4096
    });
    ns as f64 / count as f64 / 1e3
}

fn deep_iops(model: Model, layout: Layout) -> f64 {
    let mut dice = fastrand::Rng::with_seed(2);
    let count = 20_000;
    let mut disk = Disk::new(model, layout);
    let ns = run(&mut disk, count, 4096, 32, 0, |_| {
        dice.u64(..layout.size / 4096) * 4096
    });
    count as f64 * 1e9 / ns as f64
}

fn sequential_mb_s(model: Model, len: u32, depth: u64) -> f64 {
    let count = GIB / u64::from(len);
    let mut disk = Disk::new(model, Layout::new(IMAGE));
    let ns = run(&mut disk, count, len, depth, 20_000, |i| i * u64::from(len));
    GIB as f64 * 1e3 / ns as f64
}

#[track_caller]
fn within(percent: f64, realised: f64, specified: f64) {
    let off = (realised / specified - 1.0) * 100.0;
    assert!(
        off.abs() <= percent,
        "realised {realised:.2}, specified {specified:.2}: {off:+.1} %, allowed ±{percent} %"
    );
}

#[test]
fn seeks_average_8_5_ms_over_the_stroke_and_18_ms_at_most() {
    let mut dice = fastrand::Rng::with_seed(3);
    let steps = 1_000_000;
    let total: f64 = (0..100_000)
        .map(|_| dice.u64(..steps).abs_diff(dice.u64(..steps)).max(1))
        .map(|distance| hdd::seek_ns(distance as f64 / steps as f64) as f64)
        .sum();
    within(1.0, total / 100_000.0 / 1e6, 8.5);
    within(0.1, hdd::seek_ns(1.0) as f64 / 1e6, 18.0);
    within(6.0, hdd::seek_ns(1.0 / 130_000.0) as f64 / 1e6, 0.8);
}

#[test]
fn a_random_read_takes_the_specified_time_on_every_model() {
    for model in Model::ALL {
        let realised = random_us(model, Layout::stretched(IMAGE), IMAGE);
        within(2.0, realised, model.spec().random_us);
    }
}

#[test]
fn thirty_two_at_once_give_the_specified_rate_on_every_model() {
    for model in Model::ALL {
        let realised = deep_iops(model, Layout::stretched(IMAGE));
        within(4.0, realised, model.spec().deep_iops);
    }
}

#[test]
fn reading_in_order_at_some_depth_gives_the_specified_rate_on_every_model() {
    for model in Model::ALL {
        within(
            3.0,
            sequential_mb_s(model, 128 << 10, model.spec().streams),
            model.spec().sequential_mb_s,
        );
        within(
            3.0,
            sequential_mb_s(model, 1 << 20, model.spec().streams),
            model.spec().sequential_mb_s,
        );
    }
}

#[test]
fn the_disk_reads_ahead_so_that_small_reads_in_order_cost_no_rotation() {
    within(3.0, sequential_mb_s(Model::Hdd7200, 128 << 10, 1), 105.0);
    let mut disk = Disk::new(Model::Hdd7200, Layout::new(IMAGE));
    let ns = run(&mut disk, 2000, 4096, 1, 10_000, |i| i * 8192);
    assert!(ns / 2000 < 200_000, "{} ns each", ns / 2000);
}

#[test]
fn a_slow_reader_in_order_finds_everything_read_ahead() {
    let mut disk = Disk::new(Model::Hdd7200, Layout::new(IMAGE));
    let think = 1_000_000;
    let ns = run(&mut disk, 2000, 4096, 1, think, |i| i * 4096);
    assert!(ns / 2000 - think < 100_000, "{} ns each", ns / 2000 - think);
}

#[test]
fn reading_backward_costs_a_rotation_each_time() {
    let mut disk = Disk::new(Model::Hdd7200, Layout::new(IMAGE));
    let ns = run(&mut disk, 1000, 4096, 1, 10_000, |i| (2000 - i) * 4096);
    within(3.0, ns as f64 / 1000.0, hdd::REVOLUTION_NS as f64);
}

#[test]
fn random_reads_of_a_small_file_cost_rotation_rather_than_seeks() {
    let us = random_us(Model::Hdd7200, Layout::new(IMAGE), 256 << 20);
    assert!((4_500.0..7_000.0).contains(&us), "{us} µs");
}

#[test]
fn a_deep_queue_halves_the_time_of_a_random_read() {
    let layout = Layout::stretched(IMAGE);
    let alone = random_us(Model::Hdd7200, layout, IMAGE);
    let together = 1e6 / deep_iops(Model::Hdd7200, layout);
    let gain = alone / together;
    assert!((1.7..2.8).contains(&gain), "{gain}");
}

/// Reading in order from the disk's byte `begins` on, MB/s.
fn rate_at(begins: u64) -> f64 {
    let mut disk = Disk::new(Model::Hdd7200, Layout::beginning(begins, GIB));
    let len = 1 << 20;
    let ns = run(&mut disk, 256, len, 4, 20_000, |i| i * u64::from(len));
    (256 << 20) as f64 * 1e3 / ns as f64
}

#[test]
fn inner_tracks_hold_less_and_are_slower_in_proportion() {
    within(3.0, rate_at(0), 105.0);
    let rates: Vec<f64> = (0..5).map(|i| rate_at(i * 110_000_000_000)).collect();
    assert!(
        rates.is_sorted_by(|outer, inner| outer > inner),
        "{rates:?}"
    );
    let share = hdd::track_bytes(hdd::ZONES - 1) as f64 / hdd::track_bytes(0) as f64;
    within(3.0, rate_at(hdd::CAPACITY - GIB), 105.0 * share);
    within(2.0, share, 0.5);
}

#[test]
fn a_turn_takes_as_long_on_every_track_and_a_random_read_nearly_so() {
    let us = |begins| {
        let layout = Layout::beginning(begins, GIB);
        random_us(Model::Hdd7200, layout, 256 << 20)
    };
    within(10.0, us(hdd::CAPACITY - GIB), us(0));
}

#[test]
fn a_volume_at_rest_lets_a_burst_through_and_then_its_cap() {
    let mut disk = Disk::new(Model::NetworkSsd, Layout::new(IMAGE));
    let ns = run(&mut disk, 32, 4096, 32, 0, |i| i * 4096);
    assert_eq!(ns, 700_000);
    let mut disk = Disk::new(Model::NetworkSsd, Layout::new(IMAGE));
    let ns = run(&mut disk, 9000, 4096, 256, 0, |i| i * 4096);
    within(1.0, 9000.0 * 1e9 / ns as f64, 3000.0);
}

#[test]
fn a_forgetful_disk_reads_the_platter_again() {
    let read = |disk: &mut Disk, now: u64| {
        disk.submit(
            now,
            Request {
                id: 0,
                offset: 1 << 20,
                len: 4096,
                write: false,
            },
        );
        let at = disk.next_event().expect("under way");
        disk.advance(at);
        at - now
    };
    let mut disk = Disk::new(Model::Hdd7200, Layout::new(IMAGE));
    read(&mut disk, 0);
    let cached = read(&mut disk, 100_000_000);
    disk.forget(200_000_000);
    let forgotten = read(&mut disk, 200_000_000);
    assert!(cached < 100_000, "{cached} ns");
    assert!(forgotten > 1_000_000, "{forgotten} ns");
}

/// Time until all of `reads` (offset, length), sent at once, are complete.
fn together(model: Model, reads: &[(u64, u32)]) -> u64 {
    let mut disk = Disk::new(model, Layout::new(IMAGE));
    for (id, &(offset, len)) in (0..).zip(reads) {
        disk.submit(
            0,
            Request {
                id,
                offset,
                len,
                write: false,
            },
        );
    }
    let mut last = 0;
    while let Some(at) = disk.next_event() {
        last = disk.advance(at).last().map_or(last, |done| done.at_ns);
    }
    last
}

#[test]
fn reads_of_stripes_on_different_servers_overlap_and_those_on_one_wait_for_each_other() {
    let stripe = striped::STRIPE_BYTES;
    for model in [Model::Striped, Model::Striped2008] {
        let one = together(model, &[(0, stripe as u32)]);
        let all: Vec<_> = (0..striped::SERVERS)
            .map(|i| (i * stripe, stripe as u32))
            .collect();
        assert_eq!(
            together(model, &all),
            one,
            "{model}: a stripe of each server"
        );
        let whole = (striped::SERVERS * stripe) as u32;
        assert_eq!(
            together(model, &[(0, whole)]),
            one,
            "{model}: one read of all"
        );
        let same: Vec<_> = (0..striped::SERVERS)
            .map(|i| (i * striped::SERVERS * stripe, stripe as u32))
            .collect();
        let waits = together(model, &same);
        assert!(
            waits > 3 * one,
            "{model}: {waits} ns for eight of one server, {one} for one"
        );
    }
}

#[test]
fn one_stripe_takes_the_round_trip_the_service_and_the_transfer() {
    let figures = striped::TODAY;
    let transfer = striped::STRIPE_BYTES * 1_000_000_000 / figures.link_bytes_per_s;
    assert_eq!(
        together(
            Model::Striped,
            &[(5 * striped::STRIPE_BYTES, striped::STRIPE_BYTES as u32)]
        ),
        figures.round_trip_ns + figures.service_ns + transfer
    );
}
