//! Tests of the time for which infill counts in the budget.

use super::*;

/// A disk on which every second page is wanted and the pages between are infill, for a strand that knows or guesses.
fn with_infill(evict_behind: bool, is_guess: bool) -> (OneDisk, Scheduler, Vec<Request>) {
    let mut disk = OneDisk(Profile {
        depth: 100,
        ..Profile::rotational()
    });
    let mut scheduler = Scheduler::new(Config {
        evict_behind,
        ..Config::default()
    });
    scheduler.add(is_guess);
    for page in scattered(8) {
        scheduler.queue(SOLE).push(&expected(page));
    }
    let requests = scheduler.next(0, &mut disk);
    assert_eq!(requests.len(), 1);
    assert_eq!(scheduler.budget().held(), 8 + 7, "on its way");
    (disk, scheduler, requests)
}

#[test]
fn infill_holds_room_until_all_that_its_request_serves_is_read() {
    for is_guess in [false, true] {
        let (_, mut scheduler, requests) = with_infill(false, is_guess);
        scheduler.completed(requests[0].id, true, 1);
        assert_eq!(scheduler.budget().held(), 8 + 7);
        let pages = scattered(8);
        let (last, others) = pages.split_last().unwrap();
        for &page in others {
            observe(&mut scheduler, &read(page));
        }
        assert_eq!(scheduler.budget().held(), 1 + 7);
        observe(&mut scheduler, &read(*last));
        assert_eq!(scheduler.budget().held(), 0);
    }
}

#[test]
fn infill_of_what_is_given_up_holds_no_room() {
    for is_guess in [false, true] {
        let (_, mut scheduler, _) = with_infill(false, is_guess);
        observe(&mut scheduler, &read(scattered(8)[0]));
        scheduler.restart(SOLE);
        assert_eq!(scheduler.budget().held(), 0);
    }
}

#[test]
fn infill_of_what_is_asked_for_once_more_holds_room_once() {
    let (mut disk, mut scheduler, requests) = with_infill(false, false);
    scheduler.completed(requests[0].id, true, 1);
    for page in scattered(8) {
        scheduler.lost(SOLE, FileId(0), page, &mut disk);
    }
    assert_eq!(scheduler.next(2, &mut disk).len(), 1);
    assert_eq!(scheduler.budget().held(), 8 + 7);
    for page in scattered(8) {
        observe(&mut scheduler, &read(page));
    }
    assert_eq!(scheduler.budget().held(), 0);
}

#[test]
fn infill_that_can_be_given_back_holds_room_until_it_arrives() {
    let (_, mut scheduler, requests) = with_infill(true, false);
    let pages = requests[0].pages.clone();
    scheduler.arrived(requests[0].id, FileId(0), &pages);
    scheduler.completed(requests[0].id, true, 1);
    assert_eq!(scheduler.budget().held(), 8);
    let mut behind = scheduler.behind.take().unwrap();
    let given = behind.give_back(0, 0, |file, pages, out| {
        scheduler.queue(SOLE).unlisted(file, pages, out);
    });
    let given: Vec<u64> = given.into_iter().flat_map(|(_, run)| run).collect();
    assert_eq!(given, [1, 3, 5, 7, 9, 11, 13]);
}
