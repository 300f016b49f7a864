//! Fetched, unread pages stay within the memory budget.

use super::*;

#[test]
fn the_budget_bounds_what_lies_unread_and_reading_frees_it() {
    let mut disk = ssd(100_000, 100_000);
    let mut scheduler = scheduler(&scattered(1000), 300);
    assert_eq!(scheduler.next(0, &mut disk).len(), 300);
    assert!(scheduler.next(0, &mut disk).is_empty());
    for page in scattered(100) {
        observe(&mut scheduler, &read(page));
    }
    assert_eq!(scheduler.next(0, &mut disk).len(), 100);
}

#[test]
fn by_position_a_full_budget_is_refilled_half_at_a_time() {
    let mut disk = hdd();
    let mut scheduler = scheduler(&scattered(4000), 1000);
    assert_eq!(fetch_all(&mut scheduler, &mut disk, 0), 1000);
    for page in scattered(499) {
        observe(&mut scheduler, &read(page));
        assert_eq!(scheduler.next(0, &mut disk), [], "one page is no pass");
    }
    observe(&mut scheduler, &read(scattered(500)[499]));
    assert_eq!(scheduler.next(0, &mut disk).len(), 500);
}

#[test]
fn a_smaller_target_takes_back_what_is_not_asked_for_yet() {
    let mut disk = ssd(100_000, 8);
    let mut scheduler = scheduler(&scattered(2000), 1024);
    assert_eq!(scheduler.next(0, &mut disk).len(), 8);
    assert_eq!(scheduler.budget().held(), 1024);
    scheduler.budget().lost(100);
    assert_eq!(scheduler.budget().target(), 512);
    scheduler.next(1, &mut disk);
    assert_eq!(scheduler.budget().held(), 512);
    // Withdrawn entries are still fetched in their turn.
    for page in scattered(8) {
        observe(&mut scheduler, &read(page));
    }
    scheduler.completed(RequestId(0), true, 2);
    assert_eq!(scheduler.next(3, &mut disk)[0].pages.start, 16);
}

#[test]
fn by_position_a_smaller_target_has_what_is_read_next_fetched_before_what_is_read_last() {
    let mut disk = hdd();
    // One request after another, in an order unrelated to the positions.
    let pages: Vec<u64> = (0..2000).map(|n| n * 769 % 2000 * 100).collect();
    let mut scheduler = scheduler(&pages, 4096);
    let mut asked = Vec::new();
    while asked.len() < 500 {
        for request in scheduler.next(0, &mut disk) {
            scheduler.completed(request.id, true, 0);
            asked.push(request.pages.start);
        }
    }
    while scheduler.budget().target() > 512 {
        scheduler.budget().lost(4096);
    }
    let fetched = fetch_all(&mut scheduler, &mut disk, 1);
    assert!(fetched > 0);
    let first = |page: &u64| pages.iter().position(|one| one == page).expect("listed");
    let next: Vec<usize> = (0..200).filter(|&n| !asked.contains(&pages[n])).collect();
    assert!(next.len() > 100, "the pass was far from over");
    let held = scheduler.budget().held();
    assert!(held <= 512, "{held}");
    for n in next {
        let entry = scheduler
            .queue(SOLE)
            .get(first(&pages[n]) as u64)
            .expect("held");
        assert_eq!(entry.state, EntryState::Admitted, "{n}");
    }
}

#[test]
fn pages_found_in_memory_and_evicted_before_their_read_lower_the_target_and_late_ones_do_not() {
    let target_after = |found: bool, pages: &[u64]| {
        let mut disk = ssd(100_000, 512);
        let mut scheduler = scheduler(&scattered(2000), 1024);
        for request in scheduler.next(0, &mut disk) {
            if found {
                scheduler.completed(request.id, false, 1);
            }
        }
        for page in pages {
            let matched = observe(&mut scheduler, &read(*page));
            scheduler.waited(SOLE, FileId(0), &matched);
        }
        scheduler.budget().target()
    };
    let pages = scattered(700);
    assert!(target_after(true, &pages[..100]) < 1024);
    assert_eq!(target_after(false, &pages[..100]), 1024, "on their way");
    assert_eq!(target_after(true, &pages[600..]), 1024, "not requested");
}

#[test]
fn entries_passed_over_hold_no_room_in_a_small_budget() {
    let mut disk = ssd(100_000, 100_000);
    let mut scheduler = scheduler(&scattered(8000), 256);
    let mut issued = 0;
    for (at, page) in scattered(4000).into_iter().enumerate() {
        let requests = scheduler.next(0, &mut disk);
        for request in requests {
            issued += request.pages.end - request.pages.start;
            scheduler.completed(request.id, true, 0);
        }
        // One in eight is in the program's own cache, and is not read.
        if at % 8 != 0 {
            observe(&mut scheduler, &read(page));
        }
    }
    assert!(issued > 4000, "{issued}");
    assert!(scheduler.budget().held() <= 256);
}

#[test]
fn what_begins_past_the_end_of_its_file_holds_no_room_until_the_file_has_grown() {
    let mut disk = ssd(1000, 1000);
    let mut scheduler = scheduler(&scattered(100), 300);
    let requests = scheduler.next(0, &mut disk);
    assert_eq!((requests.len(), scheduler.budget().held()), (100, 100));
    // The file has 150 pages: 75 of the entries.
    for request in requests {
        let pages = request.pages;
        assert_eq!(
            scheduler.past_end(request.id, request.file, pages.start.max(150)..pages.end),
            pages.start >= 150
        );
        scheduler.completed(request.id, pages.start < 150, 1);
    }
    assert_eq!(scheduler.budget().held(), 75);
    assert!(scheduler.next(2, &mut disk).is_empty());
    scheduler.grown(SOLE, FileId(0), 150..160);
    let again: Vec<u64> = scheduler
        .next(3, &mut disk)
        .iter()
        .map(|request| request.pages.start)
        .collect();
    assert_eq!(again, [150, 152, 154, 156, 158]);
    assert_eq!(scheduler.budget().held(), 80);
    // Passed entries are no longer requested.
    for page in scattered(100) {
        observe(&mut scheduler, &read(page));
    }
    scheduler.grown(SOLE, FileId(0), 160..200);
    assert!(scheduler.next(4, &mut disk).is_empty());
    assert_eq!(scheduler.budget().held(), 0);
}

#[test]
fn what_a_read_of_several_pages_passes_over_holds_no_room() {
    let mut disk = ssd(1000, 8);
    let mut scheduler = scheduler(&[1, 70, 80, 90, 100, 0, 1], 1000);
    scheduler.next(0, &mut disk);
    let mut both = read(0);
    both.extent.len = 2 * PAGE;
    observe(&mut scheduler, &both);
    assert_eq!(scheduler.budget().held(), 0);
}

#[test]
fn all_held_pages_are_released_when_the_plan_is_given_up() {
    let mut disk = ssd(1000, 8);
    let mut scheduler = scheduler(&scattered(200), 1000);
    scheduler.next(0, &mut disk);
    scheduler.restart(SOLE);
    assert_eq!(scheduler.budget().held(), 0);
    assert!(!scheduler.is_due() && scheduler.waiting(SOLE) == 0);
}
