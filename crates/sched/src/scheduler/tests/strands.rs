//! Several strands: their order, entries requested once only, and guesses that are not requested.

use super::*;
use foreread_plan::Odds;
use proptest::prelude::*;

fn strands(guesses: &[bool], depth: usize) -> (OneDisk, Scheduler, Vec<StrandId>) {
    let mut scheduler = Scheduler::new(Config::default());
    let ids = guesses.iter().map(|&one| scheduler.add(one)).collect();
    (ssd(4096, depth), scheduler, ids)
}

fn list(scheduler: &mut Scheduler, strand: StrandId, pages: &[u64], odds: Odds) {
    for &page in pages {
        scheduler.queue(strand).push(&Expected {
            odds,
            ..expected(page)
        });
    }
}

/// The pages asked for next, by strand.
fn asked(scheduler: &mut Scheduler, disk: &mut OneDisk) -> Vec<(StrandId, Range<u64>)> {
    let requests = scheduler.next(0, disk);
    let of = |request: &Request| (scheduler.strand(request.id).unwrap(), request.pages.clone());
    requests.iter().map(of).collect()
}

#[test]
fn those_who_know_have_their_turn_before_those_who_guess() {
    let (mut disk, mut scheduler, ids) = strands(&[true, false], 4);
    list(&mut scheduler, ids[0], &apart(20), Odds::SURE);
    let other: Vec<u64> = apart(20).iter().map(|page| 1000 + page).collect();
    list(&mut scheduler, ids[1], &other, Odds::SURE);
    let asked = asked(&mut scheduler, &mut disk);
    assert!(
        asked.len() == 4 && asked.iter().all(|(strand, _)| *strand == ids[1]),
        "{asked:?}"
    );
}

fn observe_in(scheduler: &mut Scheduler, strand: StrandId, page: u64) -> Matched {
    scheduler.observe(strand, &read(page))
}

#[test]
fn those_believed_alike_have_their_turn_in_turns() {
    let (mut disk, mut scheduler, ids) = strands(&[false, false], 6);
    list(&mut scheduler, ids[0], &apart(20), Odds::SURE);
    let other: Vec<u64> = apart(20).iter().map(|page| 1000 + page).collect();
    list(&mut scheduler, ids[1], &other, Odds::SURE);
    let asked = asked(&mut scheduler, &mut disk);
    let of = |id| asked.iter().filter(|(strand, _)| *strand == id).count();
    assert_eq!((of(ids[0]), of(ids[1])), (3, 3), "{asked:?}");
}

#[test]
fn a_guess_that_costs_more_than_it_gains_is_not_asked_for_and_still_known() {
    let (mut disk, mut scheduler, ids) = strands(&[true], 100);
    list(&mut scheduler, ids[0], &[3], Odds(1));
    list(&mut scheduler, ids[0], &[9], Odds(250));
    let asked = asked(&mut scheduler, &mut disk);
    assert_eq!(asked, [(ids[0], 9..10)]);
    assert!(observe_in(&mut scheduler, ids[0], 3).known);
}

#[test]
fn a_strand_that_does_not_follow_is_asked_for_nothing() {
    let (mut disk, mut scheduler, ids) = strands(&[false, false], 100);
    list(&mut scheduler, ids[0], &[3], Odds::SURE);
    list(&mut scheduler, ids[1], &[9], Odds::SURE);
    scheduler.follow(ids[0], false);
    assert_eq!(asked(&mut scheduler, &mut disk), [(ids[1], 9..10)]);
    assert!(!scheduler.is_due());
}

#[test]
fn a_guess_nothing_is_read_of_has_little_unread_and_one_that_is_right_ever_more() {
    let (mut disk, mut scheduler, ids) = strands(&[true], 1000);
    list(&mut scheduler, ids[0], &apart(2000), Odds::SURE);
    let first = asked(&mut scheduler, &mut disk).len();
    assert_eq!(asked(&mut scheduler, &mut disk).len(), 0);
    let mut all = first;
    for page in apart(first as u64) {
        observe_in(&mut scheduler, ids[0], page);
        all += asked(&mut scheduler, &mut disk).len();
    }
    assert!(first <= 64 && all > 3 * first, "{first}, {all}");
}

#[test]
fn of_several_places_followed_at_a_time_none_is_passed_over() {
    let (mut disk, mut scheduler, ids) = strands(&[true], 4);
    // Eight cursors, each guessed for some way ahead; they are read in turns.
    let page = |cursor: u64, n: u64| cursor * 100_000 + n * 4;
    for cursor in 0..8 {
        let pages: Vec<u64> = (0..16).map(|n| page(cursor, n)).collect();
        list(&mut scheduler, ids[0], &pages, Odds(250));
    }
    scheduler.next(0, &mut disk);
    for cursor in 0..8 {
        observe_in(&mut scheduler, ids[0], page(cursor, 0));
    }
    let queue = scheduler.queue(ids[0]);
    for ordinal in queue.floor()..queue.end() {
        let entry = queue.get(ordinal).unwrap();
        assert_ne!(entry.state, EntryState::Left, "{ordinal}: {entry:?}");
    }
    assert!(queue.floor() <= 1, "{}", queue.floor());
}

proptest! {
    /// However entries of two strands overlap, no strand requests a page as part of an entry that the other has requested as a whole, and
    /// only admitted pages count in the budget.
    #[test]
    fn what_a_strand_has_asked_for_is_asked_for_once(
        one in proptest::collection::vec((0u64..400, 1u64..20), 1..40),
        two in proptest::collection::vec((0u64..400, 1u64..20), 1..40),
        guess in any::<bool>(),
    ) {
        let (_, mut scheduler, ids) = strands(&[false, guess], 1000);
        let mut disk = OneDisk(Profile { infill_pages: 0, ..ssd(4096, 1000).0 });
        let entries = [one, two];
        for (list, &id) in entries.iter().zip(&ids) {
            for &(first, count) in list {
                scheduler.queue(id).push(&Expected { pages: first..first + count, ..expected(first) });
            }
        }
        scheduler.next(0, &mut disk);
        let covers = |list: &[(u64, u64)], page: u64| list.iter().any(|&(first, count)| (first..first + count).contains(&page));
        for &(first, count) in &entries[1] {
            let covered = (first..first + count).all(|page| covers(&entries[0], page));
            for ordinal in 0..scheduler.queue(ids[1]).end() {
                let entry = scheduler.queue(ids[1]).get(ordinal).unwrap();
                if entry.range() == (first..first + count) {
                    prop_assert!(!covered || entry.state != EntryState::Admitted, "{first} {count}");
                }
            }
        }
        scheduler.restart(ids[0]);
        scheduler.restart(ids[1]);
        prop_assert_eq!(scheduler.budget().held(), 0);
    }
}
