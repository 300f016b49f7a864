//! Every request completes exactly once, not before it arrived, within a bound,
//! and the same history always ends the same way.

use std::collections::HashMap;

use foreread_disk::{Completion, Disk, Layout, Model, Request};
use proptest::prelude::*;

/// No device here needs longer for a request once earlier ones are complete, besides the transfer,
const WORST_NS: u64 = 30_000_000;
/// and for each of those: 11.8 MB/s, the slowest link of a server.
const WORST_BYTE_NS: u64 = 85;

#[derive(Clone, Debug)]
struct Arrival {
    gap_ns: u64,
    request: Request,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0u64), 0..100_000u64, 0..50_000_000u64];
    let offset = prop_oneof![0..1u64 << 20, 0..8u64 << 30, any::<u64>()];
    let len = prop_oneof![Just(0u32), Just(4096u32), 1..2u32 << 20];
    prop::collection::vec((gap, offset, len, prop::bool::weighted(0.2)), 1..200).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(i, (gap_ns, offset, len, write))| Arrival {
                gap_ns,
                request: Request {
                    id: i as u64,
                    offset,
                    len,
                    write,
                },
            })
            .collect()
    })
}

fn model() -> impl Strategy<Value = Model> {
    prop::sample::select(Model::ALL.to_vec())
}

/// Submits all and drains; `step` is the interval at which time advances.
fn play(model: Model, layout: Layout, all: &[Arrival], step: Option<u64>) -> Vec<Completion> {
    let mut disk = Disk::new(model, layout);
    let mut done = Vec::new();
    let mut now = 0;
    for arrival in all {
        let until = now + arrival.gap_ns;
        while let Some(step) = step
            && now + step < until
        {
            now += step;
            done.extend(disk.advance(now));
        }
        now = until;
        disk.submit(now, arrival.request);
    }
    while let Some(at) = disk.next_event() {
        done.extend(disk.advance(at));
    }
    assert_eq!(disk.queued(), 0);
    done
}

proptest! {
    #[test]
    fn each_completes_once_after_its_arrival_and_within_a_bound(
        model in model(), stretch: bool, begins in 0..490_000_000_000_u64, all in arrivals()
    ) {
        let layout = Layout { stretch, ..Layout::beginning(begins, 8 << 30) };
        let done = play(model, layout, &all, None);
        prop_assert!(done.is_sorted_by_key(|completion| completion.at_ns));
        let mut at = HashMap::new();
        for completion in &done {
            prop_assert!(at.insert(completion.id, completion.at_ns).is_none(), "twice");
        }
        prop_assert_eq!(at.len(), all.len());
        let worst = |arrival: &Arrival| WORST_NS + WORST_BYTE_NS * u64::from(arrival.request.len);
        let bound: u64 = all.iter().map(worst).sum();
        let mut now = 0;
        for arrival in &all {
            now += arrival.gap_ns;
            let waited = at[&arrival.request.id].checked_sub(now);
            prop_assert!(waited.is_some(), "completed before it arrived");
            prop_assert!(waited.unwrap_or(0) <= bound);
        }
    }

    #[test]
    fn looking_at_the_clock_more_often_changes_nothing(
        model in model(), begins in 0..490_000_000_000_u64, all in arrivals(),
        step in 100_000..5_000_000u64
    ) {
        let layout = Layout::beginning(begins, 8 << 30);
        prop_assert_eq!(
            play(model, layout, &all, None),
            play(model, layout, &all, Some(step))
        );
    }
}

#[test]
fn a_far_request_is_not_starved_by_a_flood_of_near_ones() {
    let mut disk = Disk::new(Model::Hdd7200, Layout::stretched(8 << 30));
    let near = |id: u64| Request {
        id,
        offset: id % 4000 * 262_144,
        len: 4096,
        write: false,
    };
    let far = Request {
        id: u64::MAX,
        offset: 8 << 30,
        len: 4096,
        write: false,
    };
    for id in 0..31 {
        disk.submit(0, near(id * 997));
    }
    disk.submit(0, far);
    let mut id = 31;
    while let Some(at) = disk.next_event() {
        for done in disk.advance(at) {
            if done.id == far.id {
                assert!(done.at_ns < 700_000_000, "{} ms", done.at_ns / 1_000_000);
                return;
            }
            disk.submit(done.at_ns, near(id * 997));
            id += 1;
        }
    }
    panic!("never completed");
}
