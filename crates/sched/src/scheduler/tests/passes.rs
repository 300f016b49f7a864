//! Devices that are asked in passes.

use super::*;

const MS: u64 = 1_000_000;

/// A disk with a moving head, read by a program with this many ns of computing so far.
struct Computing(OneDisk, u64);

impl Devices for Computing {
    fn device(&mut self, file: FileId) -> Option<DeviceId> {
        self.0.device(file)
    }
    fn profile(&mut self, device: DeviceId) -> Profile {
        self.0.profile(device)
    }
    fn layout(&mut self, file: FileId) -> Option<Arc<Layout>> {
        self.0.layout(file)
    }
    fn announce(&mut self, _: FileId) {}
    fn computed(&mut self) -> Option<u64> {
        Some(self.1)
    }
}

#[test]
fn what_is_read_first_comes_in_growing_passes() {
    let mut disk = hdd();
    let mut scheduler = in_passes(&scattered(8000));
    let first = scheduler.next(0, &mut disk);
    let served: Vec<u64> = first.iter().map(|request| request.pages.start).collect();
    assert!(scattered(512).iter().all(|page| served.contains(page)));
    assert_eq!(first.len(), 512);
    for request in &first[1..] {
        scheduler.completed(request.id, true, 1);
        let next = scheduler.next(1, &mut disk);
        assert_eq!(next, [], "the last would be left lying");
    }
    scheduler.completed(first[0].id, true, 1);
    assert_eq!(scheduler.next(1, &mut disk).len(), 768);
}

/// Two passes, of 512 and 768 pages, that take 50 ms each; the program computes for `computed` ns in them.
fn two_passes(scheduler: &mut Scheduler, disk: &mut Computing, computed: [u64; 2]) {
    for (began, pages, computed) in [(0, 512, computed[0]), (50, 768, computed[1])] {
        let requests = scheduler.next(began * MS, disk);
        assert_eq!(requests.len(), pages);
        disk.1 += computed * MS;
        for request in requests {
            scheduler.completed(request.id, true, (began + 50) * MS);
        }
    }
}

/// Number of pages requested from `now` (ms) on after the first 1,024 pages have come: as many again if the pass has all entries, or the
/// remainder of the pass.
fn after_the_first(scheduler: &mut Scheduler, disk: &mut Computing, now: u64) -> usize {
    let first = scheduler.next(now * MS, disk);
    assert_eq!(first.len(), 1024, "as much as may be under way");
    for request in first {
        scheduler.completed(request.id, true, now * MS);
    }
    scheduler.next(now * MS, disk).len()
}

#[test]
fn a_program_that_mostly_waits_has_all_there_is_in_one_pass() {
    let (mut scheduler, mut disk) = (in_passes(&scattered(8000)), Computing(hdd(), 0));
    two_passes(&mut scheduler, &mut disk, [50, 5]);
    assert_eq!(after_the_first(&mut scheduler, &mut disk, 100), 1024);
}

#[test]
fn one_that_computes_for_a_quarter_of_the_time_has_it_in_growing_passes() {
    let (mut scheduler, mut disk) = (in_passes(&scattered(8000)), Computing(hdd(), 0));
    two_passes(&mut scheduler, &mut disk, [0, 13]);
    assert_eq!(after_the_first(&mut scheduler, &mut disk, 100), 1152 - 1024);
}

#[test]
fn one_that_comes_to_compute_has_what_is_listed_then_in_passes_again() {
    let (mut scheduler, mut disk) = (in_passes(&scattered(2304)), Computing(hdd(), 0));
    two_passes(&mut scheduler, &mut disk, [0, 0]);
    assert_eq!(after_the_first(&mut scheduler, &mut disk, 100), 0);
    disk.1 += 80 * MS;
    let list = |pages: Range<u64>, scheduler: &mut Scheduler| {
        pages.for_each(|page| scheduler.queue(SOLE).push(&expected(page * 2)));
    };
    list(10_000..10_001, &mut scheduler);
    for request in scheduler.next(200 * MS, &mut disk) {
        scheduler.completed(request.id, true, 200 * MS);
    }
    list(10_001..14_000, &mut scheduler);
    let pass = 1152 - 1024;
    assert_eq!(after_the_first(&mut scheduler, &mut disk, 200), pass);
}
