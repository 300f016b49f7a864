//! A disk that says it turns, before it has proved it.

use super::*;
use crate::Stretch;

/// A disk that is not yet known to be one with a moving head, and then has its one file from behind.
struct Unproved(OneDisk, Option<Arc<Layout>>);

impl Devices for Unproved {
    fn device(&mut self, file: FileId) -> Option<DeviceId> {
        self.0.device(file)
    }
    fn profile(&mut self, device: DeviceId) -> Profile {
        self.0.profile(device)
    }
    fn layout(&mut self, _: FileId) -> Option<Arc<Layout>> {
        self.1.clone()
    }
    fn announce(&mut self, _: FileId) {}
    fn computed(&mut self) -> Option<u64> {
        None
    }
}

#[test]
fn a_program_that_computes_does_not_wait_for_its_disk_to_prove_itself() {
    const MS: u64 = 1_000_000;
    let mut disk = Unproved(hdd(), None);
    // The last pages first, and no two together.
    let pages: Vec<u64> = scattered(2000).into_iter().rev().collect();
    let mut scheduler = in_passes(&pages);
    assert_eq!(
        scheduler.next(0, &mut disk),
        [],
        "a quick one would have answered"
    );
    assert_eq!(scheduler.next(MS - 1, &mut disk), []);
    let first = scheduler.next(MS, &mut disk);
    let served: Vec<u64> = first.iter().map(|request| request.pages.start).collect();
    assert_eq!(served, scattered(2000)[2000 - 512..], "by offset");
    // Proved while the first pass is under way: the second is by position.
    let run = |page: u64| Stretch {
        logical: page * PAGE,
        physical: (10_000 - page) * PAGE,
        len: PAGE,
    };
    disk.1 = Some(Arc::new(Layout::new((0..4000).map(run).collect())));
    scheduler.placed(FileId(0), &mut disk);
    assert_eq!(scheduler.next(MS, &mut disk), [], "the first is not over");
    for request in &first {
        scheduler.completed(request.id, true, 2 * MS);
    }
    let second: Vec<u64> = scheduler
        .next(2 * MS, &mut disk)
        .iter()
        .map(|request| request.pages.start)
        .collect();
    assert_eq!(second.len(), 768);
    assert!(second.is_sorted_by(|a, b| a > b), "{second:?}");
}

#[test]
fn a_program_that_waits_has_its_disk_prove_itself_first() {
    const MS: u64 = 1_000_000;
    let mut disk = Unproved(hdd(), None);
    let mut scheduler = scheduler(&scattered(10), 1000);
    assert_eq!(scheduler.next(0, &mut disk), []);
    assert_eq!(scheduler.next(100 * MS, &mut disk), []);
    disk.1 = Some(Arc::default());
    scheduler.placed(FileId(0), &mut disk);
    assert_eq!(scheduler.next(100 * MS, &mut disk).len(), 10);
}
