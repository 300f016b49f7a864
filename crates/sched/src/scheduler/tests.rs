use std::collections::VecDeque;
use std::sync::Arc;

use super::admit::STREAM_LEAD;
use super::*;
use crate::{Horizon, Layout, Profile};
use foreread_plan::{Expected, Extent, Kind, Odds, PAGE, Pattern, ThreadId};

const SOLE: StrandId = StrandId(0);

fn observe(scheduler: &mut Scheduler, access: &Access) -> Matched {
    scheduler.saw(access);
    scheduler.observe(SOLE, access)
}

/// One file on one device.
struct OneDisk(Profile);

impl Devices for OneDisk {
    fn device(&mut self, _: FileId) -> Option<DeviceId> {
        Some(DeviceId(0))
    }
    fn profile(&mut self, _: DeviceId) -> Profile {
        self.0.clone()
    }
    fn layout(&mut self, _: FileId) -> Option<Arc<Layout>> {
        Some(Arc::default())
    }
    fn announce(&mut self, _: FileId) {}
    fn computed(&mut self) -> Option<u64> {
        None
    }
}

fn ssd(queue_threshold: u64, depth: usize) -> OneDisk {
    OneDisk(Profile {
        depth,
        horizon: Horizon {
            time_threshold: i64::MIN,
            queue_threshold,
        },
        ..Profile::solid_state()
    })
}

fn expected(page: u64) -> Expected {
    Expected {
        odds: Odds::SURE,
        file: FileId(0),
        pages: page..page + 1,
        thread: ThreadId(0),
        pattern: Pattern::Scattered,
    }
}

fn scheduler(pages: &[u64], budget_pages: u64) -> Scheduler {
    let mut scheduler = Scheduler::new(Config {
        queue_entries: 1 << 16,
        budget_pages,
        ..Config::default()
    });
    scheduler.add(false);
    for &page in pages {
        scheduler.queue(SOLE).push(&expected(page));
    }
    scheduler
}

fn read(page: u64) -> Access {
    Access {
        file: FileId(0),
        extent: Extent::new(page * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }
}

/// Pages two apart, so that nothing merges.
fn scattered(count: u64) -> Vec<u64> {
    (0..count).map(|n| n * 2).collect()
}

/// Further apart than the largest gap.
fn apart(count: u64) -> Vec<u64> {
    (0..count).map(|n| n * 4).collect()
}

#[test]
fn no_more_than_the_depth_is_in_flight() {
    let mut disk = ssd(1000, 4);
    let mut scheduler = scheduler(&apart(50), 1000);
    let first = scheduler.next(0, &mut disk);
    assert_eq!(first.len(), 4);
    assert!(scheduler.next(1, &mut disk).is_empty());
    scheduler.completed(first[0].id, true, 2);
    assert_eq!(scheduler.next(3, &mut disk).len(), 1);
}

#[test]
fn nothing_beyond_the_queue_threshold_is_fetched() {
    let mut disk = ssd(10, 1000);
    let mut scheduler = scheduler(&apart(50), 1000);
    assert_eq!(scheduler.next(0, &mut disk).len(), 11, "leads 0 to 10");
    for page in apart(20) {
        observe(&mut scheduler, &read(page));
    }
    let more: Vec<u64> = scheduler
        .next(1, &mut disk)
        .iter()
        .map(|r| r.pages.start)
        .collect();
    assert!(!more.is_empty() && more.iter().all(|&page| page >= 44));
}

#[test]
fn a_neighbour_beyond_the_queue_threshold_is_taken_along_and_never_asked_for_alone() {
    let mut disk = ssd(10, 1000);
    let mut pages = apart(50);
    pages.push(45);
    let mut scheduler = scheduler(&pages, 1000);
    let first = scheduler.next(0, &mut disk);
    assert_eq!(first.len(), 11);
    for request in first {
        scheduler.completed(request.id, true, 1);
    }
    assert!(scheduler.next(2, &mut disk).is_empty());
    assert!(!scheduler.is_due());
    observe(&mut scheduler, &read(0));
    assert!(scheduler.is_due());
    let next = scheduler.next(3, &mut disk);
    assert_eq!(next.len(), 1, "lead 10");
    assert_eq!(next[0].pages, 44..49, "with the last entry of the list");
}

#[test]
fn by_position_nothing_beyond_the_queue_threshold_is_fetched_whatever_was() {
    let mut disk = ssd(10, 1000);
    disk.0.order = Order::Position;
    let mut scheduler = scheduler(&scattered(50), 1000);
    let first = scheduler.next(0, &mut disk);
    assert_eq!(first.len(), 11);
    for request in first {
        scheduler.completed(request.id, true, 1);
    }
    assert!(scheduler.next(2, &mut disk).is_empty());
}

#[test]
fn nothing_beyond_the_queue_threshold_is_looked_at_where_nothing_had_to_be_fetched() {
    let mut disk = ssd(10, 1000);
    let mut scheduler = scheduler(&scattered(50), 1000);
    for request in scheduler.next(0, &mut disk) {
        scheduler.completed(request.id, false, 1);
    }
    scheduler.next(2, &mut disk);
    assert_eq!(scheduler.waiting(SOLE), 39);
}

/// Makes and completes requests at `now` until there are none. Returns their number.
fn fetch_all(scheduler: &mut Scheduler, disk: &mut OneDisk, now: u64) -> usize {
    let mut made = 0;
    loop {
        let requests = scheduler.next(now, disk);
        if requests.is_empty() {
            return made;
        }
        made += requests.len();
        for request in requests {
            scheduler.completed(request.id, true, now);
        }
    }
}

/// A plan of these pages, for devices asked in passes.
fn in_passes(pages: &[u64]) -> Scheduler {
    let mut scheduler = Scheduler::new(Config {
        passes: true,
        ..Config::default()
    });
    scheduler.add(false);
    for &page in pages {
        scheduler.queue(SOLE).push(&expected(page));
    }
    scheduler
}

fn hdd() -> OneDisk {
    OneDisk(Profile {
        infill_pages: 0,
        depth: 100_000,
        ..Profile::rotational()
    })
}

#[test]
fn a_page_between_two_that_are_wanted_is_read_along_while_memory_is_plentiful() {
    let requests = |budget_pages| {
        let mut scheduler = scheduler(&scattered(100), budget_pages);
        scheduler.next(0, &mut ssd(1000, 1000)).len()
    };
    assert_eq!(requests(1 << 16), 1);
    assert_eq!(requests(300), 100);
}

#[test]
fn what_will_not_be_read_after_all_makes_room_for_what_is_guessed_next() {
    let mut scheduler = Scheduler::new(Config::default());
    let strand = scheduler.add(true);
    for page in 0..200 {
        scheduler.queue(strand).push(&expected(page * 1000));
    }
    let mut disk = ssd(1000, 1000);
    let first = scheduler.next(0, &mut disk);
    assert!(!first.is_empty() && first.len() < 200);
    for request in &first {
        scheduler.completed(request.id, true, 1);
    }
    assert!(scheduler.next(1, &mut disk).is_empty(), "as much is unread");
    for request in first {
        scheduler.give_up(strand, request.file, request.pages);
    }
    assert!(!scheduler.next(2, &mut disk).is_empty());
}

#[test]
fn what_has_come_true_is_judged_once_and_holds_nothing_back() {
    let mut disk = ssd(1000, 1000);
    let mut scheduler = Scheduler::new(Config::default());
    let strand = scheduler.add(true);
    for page in 0..200 {
        scheduler.queue(strand).push(&expected(page * 1000));
    }
    let first = scheduler.next(0, &mut disk);
    let count = first.len() as u64;
    for request in &first {
        scheduler.completed(request.id, true, 1);
        scheduler.come_true(strand, request.file, request.pages.clone());
        scheduler.come_true(strand, request.file, request.pages.clone());
    }
    let judged = |scheduler: &Scheduler| {
        let plan = &scheduler.plans[strand.0];
        (plan.held, plan.proof.credit() - 64)
    };
    assert_eq!(judged(&scheduler), (0, 2 * count));
    assert!(
        !scheduler.next(1, &mut disk).is_empty(),
        "as many as at first"
    );
    let held = judged(&scheduler).0;
    for request in &first {
        observe(&mut scheduler, &read(request.pages.start));
    }
    assert_eq!(judged(&scheduler), (held, 2 * count), "once");
    assert!(scheduler.plans[strand.0].come_true.is_empty());
}

#[test]
fn large_requests_are_few_at_a_time() {
    let mut disk = ssd(100_000, 100);
    // Runs of 256 pages, far apart.
    let pages: Vec<u64> = (0..8)
        .flat_map(|run| (0..256).map(move |n| run * 1000 + n))
        .collect();
    let mut scheduler = scheduler(&pages, 1 << 16);
    assert_eq!(scheduler.next(0, &mut disk).len(), 4, "4 MiB");
    scheduler.completed(RequestId(0), true, 1);
    assert_eq!(scheduler.next(2, &mut disk).len(), 1);
}

#[test]
fn it_rests_when_only_a_stream_is_left_and_never_while_reading_makes_room() {
    let mut disk = ssd(1000, 1000);
    let stream = |page| Expected {
        pattern: Pattern::Sequential,
        ..expected(page)
    };
    let mut scheduler = scheduler(&[], 256);
    (0..2 * STREAM_LEAD).for_each(|page| scheduler.queue(SOLE).push(&stream(page)));
    assert!(scheduler.next(0, &mut disk).is_empty());
    assert!(
        scheduler.rests() && scheduler.waiting(SOLE) > 0,
        "the stream goes on beyond what is looked at"
    );

    let mut scheduler = self::scheduler(&scattered(400), 256);
    let first = scheduler.next(0, &mut disk);
    assert!(!scheduler.rests(), "under way");
    for request in first {
        scheduler.completed(request.id, true, 1);
    }
    assert!(scheduler.next(2, &mut disk).is_empty());
    assert!(
        !scheduler.is_due() && !scheduler.rests(),
        "no room for more"
    );
}

#[test]
fn a_stream_is_asked_for_where_the_kernel_reads_nothing_ahead() {
    let mut disk = ssd(1000, 1000);
    let mut scheduler = scheduler(&[], 256);
    for page in 0..64 {
        scheduler.queue(SOLE).push(&Expected {
            pattern: Pattern::Sequential,
            ..expected(page)
        });
    }
    assert_eq!(fetch_all(&mut scheduler, &mut disk, 0), 0);
    scheduler.unaided(FileId(99));
    assert_eq!(fetch_all(&mut scheduler, &mut disk, 1), 0, "another file");
    scheduler.unaided(expected(0).file);
    assert_eq!(fetch_all(&mut scheduler, &mut disk, 2), 1);
    assert_eq!(scheduler.budget().held(), 64);
}

#[test]
fn long_reads_of_a_stream_are_asked_for_where_the_kernel_reads_nothing_ahead() {
    let mut disk = ssd(1000, 1000);
    let mut scheduler = scheduler(&[], 1 << 16);
    for read in 0..4 {
        scheduler.queue(SOLE).push(&Expected {
            pages: read * 4096..(read + 1) * 4096,
            pattern: Pattern::Sequential,
            ..expected(0)
        });
    }
    assert_eq!(fetch_all(&mut scheduler, &mut disk, 0), 0);
    scheduler.unaided(expected(0).file);
    assert!(fetch_all(&mut scheduler, &mut disk, 1) > 0);
    assert_eq!(scheduler.budget().held(), 4 * 4096);
}

#[test]
fn what_a_local_disk_is_asked_for_with_gaps_comes_in_few_requests() {
    // Two pages wanted, two left out: to read those along takes less than one more hint each.
    let pairs: Vec<u64> = (0..100).flat_map(|n| [4 * n, 4 * n + 1]).collect();
    for mut disk in [
        OneDisk(Profile::solid_state()),
        OneDisk(Profile::rotational()),
    ] {
        let mut scheduler = scheduler(&pairs, 1 << 16);
        let requests = scheduler.next(0, &mut disk);
        let pages = disk.0.request_pages;
        assert!(
            requests.len() as u64 <= 400_u64.div_ceil(pages) + 1,
            "{requests:?}"
        );
    }
    // Gaps that cost more than they save are not read.
    let far: Vec<u64> = (0..50).map(|n| 64 * n).collect();
    let mut scheduler = scheduler(&far, 1 << 16);
    let requests = scheduler.next(0, &mut OneDisk(Profile::solid_state()));
    assert_eq!(requests.len(), 50);
}

#[test]
fn entries_the_program_is_past_are_never_fetched() {
    let mut disk = ssd(1000, 8);
    let mut scheduler = scheduler(&scattered(200), 1000);
    for page in scattered(100) {
        observe(&mut scheduler, &read(page));
    }
    let requests = scheduler.next(0, &mut disk);
    assert!(
        requests.iter().all(|request| request.pages.start >= 190),
        "{requests:?}"
    );
}

#[test]
fn what_cannot_arrive_in_time_is_left_to_the_program() {
    let mut disk = OneDisk(Profile {
        depth: 1000,
        service_ns: 100,
        horizon: Horizon {
            time_threshold: 0,
            queue_threshold: 1000,
        },
        ..Profile::solid_state()
    });
    let mut scheduler = scheduler(&scattered(100), 1000);
    // Two reads, the second right after the first: C = 0, and by equation 1 nothing can ever be in time.
    for _ in 0..2 {
        let access = Access {
            file: FileId(99),
            extent: Extent::new(0, PAGE),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        };
        observe(&mut scheduler, &access);
    }
    assert!(scheduler.next(0, &mut disk).is_empty());
    assert_eq!(scheduler.too_late(), 100);
    assert_eq!(scheduler.budget().held(), 0);
}

#[test]
fn a_rotational_device_is_swept_by_position() {
    let mut disk = OneDisk(Profile {
        depth: 100,
        infill_pages: 0,
        ..Profile::rotational()
    });
    let mut scheduler = scheduler(&[90, 10, 50, 30, 70], 1000);
    let order: Vec<u64> = scheduler
        .next(0, &mut disk)
        .iter()
        .map(|r| r.pages.start)
        .collect();
    assert_eq!(order, [10, 30, 50, 70, 90]);
}

#[test]
fn a_device_that_turns_out_to_be_another_kind_is_asked_in_the_other_order() {
    let mut disk = OneDisk(Profile {
        depth: 1,
        infill_pages: 0,
        ..Profile::rotational()
    });
    let mut scheduler = scheduler(&[90, 10, 50], 1000);
    let first = scheduler.next(0, &mut disk);
    assert_eq!(first[0].pages, 10..11, "by position");
    disk.0 = ssd(1000, 4).0;
    scheduler.placed(FileId(0), &mut disk);
    let rest: Vec<u64> = scheduler
        .next(1, &mut disk)
        .iter()
        .map(|r| r.pages.start)
        .collect();
    assert_eq!(rest, [90, 50], "in program order");
}

#[test]
fn what_is_read_along_stays_in_proportion_however_late_completions_are_seen() {
    let mut disk = ssd(4096, 128);
    // An eleventh of a file, in an order of its own.
    let pages: Vec<u64> = (0..3000).map(|n| n * 7919 % 3001 * 11).collect();
    let mut scheduler = scheduler(&pages, 1 << 16);
    let mut under_way = VecDeque::new();
    let mut fetched = 0;
    for turn in 0.. {
        // A busy machine gives foreread a turn now and then.
        let now = turn * 50_000_000;
        for id in under_way.drain(..under_way.len().min(32)) {
            scheduler.completed(id, true, now);
        }
        let requests = scheduler.next(now, &mut disk);
        if requests.is_empty() && under_way.is_empty() {
            break;
        }
        for request in requests {
            fetched += request.pages.end - request.pages.start;
            under_way.push_back(request.id);
        }
    }
    assert!(
        (3000..=5 * 3000 + 256).contains(&fetched),
        "{fetched} pages for 3,000 that are read"
    );
}

mod budget;
mod infill;
mod passes;
mod strands;
mod unproved;
