use super::*;
use foreread_plan::Odds;
use proptest::prelude::*;

const FILE: FileId = FileId(1);
const ONE: ThreadId = ThreadId(0);

fn expected(pages: Range<u64>, thread: ThreadId) -> Expected {
    Expected {
        odds: Odds::SURE,
        file: FILE,
        pages,
        thread,
        pattern: Pattern::Scattered,
    }
}

fn queue_of(pages: &[u64]) -> Queue {
    let mut queue = Queue::new(1 << 16);
    for &page in pages {
        queue.push(&expected(page..page + 1, ONE));
    }
    queue
}

#[test]
fn the_position_follows_reads_in_order() {
    let mut queue = queue_of(&(0..100).collect::<Vec<_>>());
    for page in 0..50 {
        assert!(queue.observe(FILE, page..page + 1).known);
    }
    assert!(
        (44..=50).contains(&queue.position()),
        "{}",
        queue.position()
    );
}

#[test]
fn a_page_read_again_and_again_does_not_move_the_position_ahead() {
    // 0, then a leaf, then 0, then a leaf …
    let pages: Vec<u64> = (0..200).flat_map(|leaf| [0, 1000 + leaf]).collect();
    let mut queue = queue_of(&pages);
    for leaf in 0..40 {
        queue.observe(FILE, 0..1);
        queue.observe(FILE, 1000 + leaf..1001 + leaf);
        queue.observe(FILE, 0..1); // one read of the root more than was recorded
    }
    let position = queue.position();
    assert!((60..=120).contains(&position), "{position}");
    assert!(queue.observe(FILE, 1040..1041).known);
}

#[test]
fn inserted_reads_are_unknown_and_move_nothing() {
    let mut queue = queue_of(&(0..100).collect::<Vec<_>>());
    for page in 0..20 {
        queue.observe(FILE, page..page + 1);
    }
    let before = queue.position();
    for page in 5000..5100 {
        assert!(!queue.observe(FILE, page..page + 1).known);
    }
    assert_eq!(queue.position(), before);
}

#[test]
fn skipped_entries_are_passed_over() {
    let mut queue = queue_of(&(0..10_000).collect::<Vec<_>>());
    for page in 0..10 {
        queue.observe(FILE, page..page + 1);
    }
    for page in 8000..8010 {
        assert!(queue.observe(FILE, page..page + 1).known);
    }
    assert!(queue.position() >= 8000);
    let mut expired = 0;
    while queue.expire().is_some() {
        expired += 1;
    }
    assert!(expired > 3800, "{expired}");
}

#[test]
fn pages_that_a_cache_of_the_programs_serves_now_and_then_do_not_hold_the_position_back() {
    // 50 pages in turn; every other read of each never comes.
    let mut queue = queue_of(&(0..20_000).map(|n| n % 50).collect::<Vec<_>>());
    for n in (0..10_000u64).filter(|n| (n / 50 + n) % 2 == 0) {
        assert!(queue.observe(FILE, n % 50..n % 50 + 1).known);
    }
    assert!(queue.position() > 9_950, "{}", queue.position());
    assert!(queue.position() <= 10_000, "{}", queue.position());
}

/// Pages found touched in another file: loose entries.
fn sampled(queue: &mut Queue, pages: Range<u64>) {
    for page in pages {
        queue.push(&Expected {
            file: LIBRARY,
            pattern: Pattern::Loose,
            ..expected(page..page + 1, ONE)
        });
    }
}

const LIBRARY: FileId = FileId(2);

#[test]
fn a_sample_that_finds_late_pages_early_does_not_carry_the_position_over_strict_reads() {
    let mut queue = queue_of(&(0..5000).collect::<Vec<_>>());
    sampled(&mut queue, 0..200);
    assert_eq!(queue.observe(LIBRARY, 0..200).consumed.len(), 200);
    assert_eq!(queue.position(), 0);
    for page in 0..20 {
        assert!(queue.observe(FILE, page..page + 1).known);
    }
    assert!(
        (14..=20).contains(&queue.position()),
        "{}",
        queue.position()
    );
}

#[test]
fn where_all_is_sampled_the_samples_carry_the_position() {
    let mut queue = Queue::new(1 << 16);
    sampled(&mut queue, 0..5000);
    for page in 0..3000 {
        queue.observe(LIBRARY, page..page + 1);
    }
    assert!(queue.position() > 2900, "{}", queue.position());
}

#[test]
fn a_strict_read_that_is_left_out_holds_samples_back_for_a_while_only() {
    let mut queue = queue_of(&[7]);
    sampled(&mut queue, 0..5000);
    for page in 0..u64::from(LOOSE_ONLY) {
        queue.observe(LIBRARY, page..page + 1);
    }
    assert_eq!(queue.position(), 0);
    for page in u64::from(LOOSE_ONLY)..3000 {
        queue.observe(LIBRARY, page..page + 1);
    }
    assert!(queue.position() > 2900, "{}", queue.position());
}

#[test]
fn a_page_read_in_small_pieces_does_not_use_up_its_next_visit() {
    // Each page is visited twice, the second time long after the first.
    let mut queue = queue_of(&(0..1000).chain(0..1000).collect::<Vec<_>>());
    for _ in 0..2 {
        for page in 0..1000 {
            for _ in 0..5 {
                assert!(queue.observe(FILE, page..page + 1).known, "{page}");
            }
        }
    }
    assert!(queue.position() > 1990, "{}", queue.position());
}

#[test]
fn one_large_read_consumes_the_small_ones_it_covers() {
    let mut queue = queue_of(&[4, 5, 6, 7, 20]);
    let matched = queue.observe(FILE, 4..8);
    assert_eq!(matched.consumed.len(), 4);
}

#[test]
fn a_read_inside_the_range_just_consumed_is_known() {
    let mut queue = Queue::new(16);
    queue.push(&expected(10..20, ONE));
    assert_eq!(queue.observe(FILE, 10..12).consumed.len(), 1);
    let again = queue.observe(FILE, 15..16);
    assert!(again.known && again.consumed.is_empty());
}

#[test]
fn only_a_plan_of_several_threads_keeps_entries_behind_the_position() {
    let mut queue = Queue::new(1 << 16);
    for n in 0..4000u64 {
        queue.push(&expected(n..n + 1, ThreadId((n % 2) as u32)));
    }
    for n in 3000..3010 {
        queue.observe(FILE, n..n + 1);
    }
    assert!(queue.floor() < queue.position());
    let mut single = queue_of(&(0..100).collect::<Vec<_>>());
    single.observe(FILE, 0..50);
    assert_eq!(single.floor(), single.position());
}

proptest! {
    /// Compared with a reference that searches the plan linearly: each page consumes its first entry that was not skipped, unless that is
    /// far ahead and the page was the last read, or else the last of the skipped ones.
    #[test]
    fn matching_agrees_with_a_linear_search(
        plan in proptest::collection::vec(0u64..40, 1..200),
        reads in proptest::collection::vec(0u64..40, 0..400),
    ) {
        let mut queue = queue_of(&plan);
        let mut taken = vec![false; plan.len()];
        let mut last = None;
        for page in reads {
            let floor = queue.floor() as usize;
            let far = (queue.position() + AGAIN) as usize;
            let matched = queue.observe(FILE, page..page + 1);
            let got: Vec<u64> = matched.consumed.iter().map(|(ordinal, _)| *ordinal).collect();
            let is = |at: &usize| !taken[*at] && plan[*at] == page;
            let expected = (floor..plan.len()).find(is).or((0..floor).rfind(is));
            if expected.is_some() {
                for at in (0..floor).filter(|&at| plan[at] == page) {
                    taken[at] = true;
                }
            }
            let expected = expected.filter(|&at| at <= far || last != Some(page));
            if let Some(expected) = expected {
                taken[expected] = true;
                last = Some(page);
            }
            let expected: Vec<u64> = expected.map(|at| at as u64).into_iter().collect();
            prop_assert_eq!(got, expected);
        }
    }

    /// Expiry keeps the index and the entries in step, whatever is read.
    #[test]
    fn expiry_never_loses_a_live_entry(
        plan in proptest::collection::vec(0u64..500, 6000..9000),
        step in 1usize..7,
    ) {
        let mut queue = queue_of(&plan);
        for (at, page) in plan.iter().enumerate().step_by(step) {
            prop_assert!(queue.observe(FILE, *page..*page + 1).known, "entry {} lost", at);
            while queue.expire().is_some() {}
        }
    }
}
