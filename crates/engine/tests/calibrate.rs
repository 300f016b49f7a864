//! Tests the whole measurement on disk models in virtual time, and the profiles derived from it.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foreread_backend::{ReadOutcome, Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::calibrate::{Probe, Samples, Trial, decide, measure};
use foreread_engine::{Config, Engine, Order, Profile};
use foreread_plan::{Access, Extent, FileId, Kind, PAGE, Seen, ThreadId};
use foreread_sources::Replay;

const FILE: FileId = FileId(0);
const GIB: u64 = 1 << 30;
/// 256 MiB.
const PAGES: u64 = 1 << 16;
/// The engine's timer.
const TICK_NS: u64 = 200_000;
/// A read from memory.
const HIT_NS: u64 = 1_000;
const TOTAL: Duration = Duration::from_secs(20);

fn read(page: u64) -> Access {
    Access {
        file: FILE,
        extent: Extent::new(page * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }
}

/// A file in the first 8 GiB of a model's disk; each experiment gets a new machine, so all are cold.
struct Virtual(Model);

impl Virtual {
    fn machine(&self) -> SimMachine {
        let mut machine = SimMachine::new(self.0, 8 * GIB, 1 << 20);
        machine.place(FILE, GIB);
        machine
    }
}

impl Probe for Virtual {
    type Error = Infallible;

    fn pages(&self) -> u64 {
        PAGES
    }

    fn single(&mut self, pages: &[u64], limit: Duration) -> Result<Vec<u64>, Infallible> {
        let mut machine = self.machine();
        let (mut now, mut times) = (0, Vec::new());
        for &page in pages {
            let begun = now;
            while machine.read(FILE, page..page + 1) == ReadOutcome::Wait {
                now = machine.next_event().unwrap();
                machine.advance(now);
            }
            times.push(now - begun);
            if now > limit.as_nanos() as u64 {
                break;
            }
        }
        Ok(times)
    }

    fn fetch(
        &mut self,
        runs: &[Range<u64>],
        depth: usize,
        limit: Duration,
    ) -> Result<Trial, Infallible> {
        let mut machine = self.machine();
        let (mut now, mut count) = (0, 0);
        let mut under_way: Vec<&Range<u64>> = Vec::new();
        let mut waiting = runs.iter();
        loop {
            while under_way.len() < depth
                && now <= limit.as_nanos() as u64
                && let Some(run) = waiting.next()
            {
                machine.read(FILE, run.clone());
                under_way.push(run);
                count += 1;
            }
            let Some(next) = machine.next_event() else {
                break;
            };
            now = next;
            machine.advance(now);
            under_way.retain(|run| machine.read(FILE, (*run).clone()) == ReadOutcome::Wait);
        }
        Ok(Trial {
            count,
            took: Duration::from_nanos(now),
        })
    }

    fn follow(
        &mut self,
        pages: &[u64],
        profile: &Profile,
        limit: Duration,
    ) -> Result<Trial, Infallible> {
        let machine = Arc::new(Mutex::new(self.machine()));
        let (profile, planned) = (profile.clone(), pages.to_vec());
        let mut engine = Engine::new(Sim::new(Arc::clone(&machine)), Config::default())
            .with_strand(
                "replay",
                Box::new(Replay::new(planned.into_iter().map(read))),
            )
            .with_profiles(move |_, _| Some(profile.clone()));
        let (mut now, mut tick, mut count) = (0, 0, 0);
        for &page in pages {
            let begun = now;
            while machine.lock().unwrap().read(FILE, page..page + 1) == ReadOutcome::Wait {
                let event = machine.lock().unwrap().next_event().unwrap_or(u64::MAX);
                now = now.max(event.min(tick));
                machine.lock().unwrap().advance(now);
                if now >= tick {
                    engine.step(now);
                    tick = now + TICK_NS;
                }
            }
            now += HIT_NS;
            engine.see(&Seen::Read(
                Access {
                    start: begun,
                    took: now - begun,
                    ..read(page)
                }
                .into(),
            ));
            count += 1;
            if now > limit.as_nanos() as u64 {
                break;
            }
        }
        Ok(Trial {
            count,
            took: Duration::from_nanos(now),
        })
    }
}

fn calibrated(model: Model) -> (Samples, Profile) {
    let Ok(samples) = measure(&mut Virtual(model), TOTAL, |_| {});
    let profile = decide(&samples);
    eprintln!("{model}: {samples:#?}\n{profile:#?}");
    (samples, profile)
}

#[test]
fn a_disk_with_a_moving_head_is_read_by_position_with_large_gaps_along() {
    let (samples, profile) = calibrated(Model::Hdd7200);
    assert_eq!(profile.order, Order::Position);
    assert!(
        (16..=256).contains(&profile.infill_pages),
        "a skipped gap costs half a turn, 100 pages, or with a full queue a third of that: {profile:?}"
    );
    assert_eq!(profile.horizon.queue_threshold, u64::MAX);
    assert!(
        profile.request_pages >= 256,
        "a seek is worth 150: {profile:?}"
    );
    assert!((3_000_000..10_000_000).contains(&samples.service_ns));
    let rate = samples.sequential_bytes_per_s();
    assert!((95_000_000..110_000_000).contains(&rate), "{rate} B/s");
}

#[test]
fn a_network_volume_capped_in_requests_reads_gaps_along_that_cost_less_than_a_request() {
    let (samples, profile) = calibrated(Model::NetworkSsd);
    assert_eq!(profile.order, Order::Program);
    // 3000 requests and 125 MB a second: a request is worth 40 KiB, ten pages.
    assert_eq!(profile.infill_pages, 8);
    // 0.7 ms of latency at 3000 a second: Little's law asks for three at least.
    assert!((2..=16).contains(&profile.depth), "{profile:?}");
    assert_eq!(samples.service_ns, 700_000);
}

#[test]
fn a_file_server_is_kept_as_busy_as_it_has_threads() {
    let (_, profile) = calibrated(Model::Nfs);
    assert_eq!(profile.order, Order::Program);
    assert!((8..=32).contains(&profile.depth), "{profile:?}");
    assert!(profile.infill_pages <= 2, "{profile:?}");
}

/// A local solid-state disk by formula: 32 channels of 80 µs, 2 GB/s, 6 µs of the host's a request.
struct Flash;

impl Flash {
    const LATENCY_NS: f64 = 80_000.0;
    const HOST_NS: f64 = 6_000.0;
    const PAGE_NS: f64 = 2_048.0;

    fn page_ns(depth: usize) -> f64 {
        (Self::LATENCY_NS / depth.min(32) as f64).max(Self::HOST_NS)
    }

    fn trial(count: usize, each: f64) -> Trial {
        Trial {
            count: count as u64,
            took: Duration::from_nanos((count as f64 * each) as u64),
        }
    }
}

impl Probe for Flash {
    type Error = Infallible;
    fn pages(&self) -> u64 {
        PAGES
    }
    fn single(&mut self, pages: &[u64], _: Duration) -> Result<Vec<u64>, Infallible> {
        Ok(vec![Self::LATENCY_NS as u64; pages.len()])
    }
    fn fetch(
        &mut self,
        runs: &[Range<u64>],
        depth: usize,
        _: Duration,
    ) -> Result<Trial, Infallible> {
        let pages = (runs[0].end - runs[0].start) as f64;
        let each = (Self::page_ns(depth)).max(pages * Self::PAGE_NS);
        Ok(Self::trial(runs.len(), each))
    }
    fn follow(
        &mut self,
        pages: &[u64],
        profile: &Profile,
        _: Duration,
    ) -> Result<Trial, Infallible> {
        let lead = profile.horizon.queue_threshold.min(1 << 20) as usize;
        let each = if profile.horizon.time_threshold == 0 {
            Self::LATENCY_NS
        } else {
            Self::page_ns(profile.depth.min(lead))
        };
        Ok(Self::trial(pages.len(), each))
    }
}

#[test]
fn a_fast_local_disk_is_read_deep_in_the_programs_order_and_without_gaps() {
    let Ok(samples) = measure(&mut Flash, TOTAL, |_| {});
    let profile = decide(&samples);
    assert_eq!(profile.order, Order::Program);
    assert!(profile.depth >= 16, "{profile:?}");
    assert_eq!(profile.infill_pages, 0);
    assert!(profile.horizon.queue_threshold >= 4096, "{profile:?}");
}

#[test]
fn a_measured_profile_takes_the_place_of_the_built_in_one() {
    // Too far apart to become one request.
    let pages: Vec<u64> = (0..500).rev().map(|n| n * 400).collect();
    let follow = |depth| {
        let profile = Profile {
            depth,
            ..Profile::solid_state()
        };
        let Ok(trial) = Virtual(Model::NetworkSsd).follow(&pages, &profile, TOTAL);
        trial.took
    };
    assert!(
        follow(1) > follow(4) * 3 / 2,
        "one at a time waits 0.7 ms for each"
    );
}

#[test]
fn measuring_takes_the_time_it_is_given_on_any_device() {
    for model in Model::ALL {
        let mut clocked = Clocked(Virtual(model), Duration::ZERO);
        let Ok(_) = measure(&mut clocked, Duration::from_secs(5), |_| {});
        assert!(
            clocked.1 < Duration::from_secs(12),
            "{model}: {:?}",
            clocked.1
        );
    }
}

/// Adds up the time of the experiments.
struct Clocked(Virtual, Duration);

impl Probe for Clocked {
    type Error = Infallible;
    fn pages(&self) -> u64 {
        self.0.pages()
    }
    fn single(&mut self, pages: &[u64], limit: Duration) -> Result<Vec<u64>, Infallible> {
        let times = self.0.single(pages, limit)?;
        self.1 += Duration::from_nanos(times.iter().sum());
        Ok(times)
    }
    fn fetch(
        &mut self,
        runs: &[Range<u64>],
        depth: usize,
        limit: Duration,
    ) -> Result<Trial, Infallible> {
        let trial = self.0.fetch(runs, depth, limit)?;
        self.1 += trial.took;
        Ok(trial)
    }
    fn follow(
        &mut self,
        pages: &[u64],
        profile: &Profile,
        limit: Duration,
    ) -> Result<Trial, Infallible> {
        let trial = self.0.follow(pages, profile, limit)?;
        self.1 += trial.took;
        Ok(trial)
    }
}
