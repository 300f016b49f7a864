use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const FILE: FileId = FileId(0);

#[test]
fn a_page_that_arrived_after_the_read_began_was_under_way() {
    let mut pages = Pages::default();
    pages.issue(FILE, &(0..2));
    pages.arrive(FILE, &(0..2), 100);
    assert_eq!(
        pages.read(FILE, &(0..1), 50, |_| ()),
        Read {
            there: 0,
            under_way: 1
        }
    );
    assert_eq!(
        pages.read(FILE, &(1..2), 100, |_| ()),
        Read {
            there: 1,
            under_way: 0
        }
    );
    assert_eq!(pages.len(), 0);
}

#[test]
fn when_its_neighbours_arrived_says_nothing_of_a_page() {
    let mut pages = Pages::default();
    pages.issue(FILE, &(0..3));
    pages.arrive(FILE, &(0..1), 100);
    pages.arrive(FILE, &(1..2), 200);
    pages.arrive(FILE, &(0..2), 300);
    let read = pages.read(FILE, &(0..3), 150, |_| ());
    assert_eq!((read.there, read.under_way), (1, 2));
    pages.issue(FILE, &(0..2));
    pages.arrive(FILE, &(0..1), 400);
    pages.arrive(FILE, &(1..2), 500);
    assert_eq!(pages.evict_arrived(FILE, &(0..2), 450, |_| ()), 1);
}

#[test]
fn pages_that_wait_are_looked_for_in_turn_and_each_time_all_over() {
    let mut pages = Pages::default();
    let of = |file: u32| (0..10).map(move |n| (FileId(file), n * 1000..n * 1000 + 1));
    let all: Vec<_> = (0..12).flat_map(of).collect();
    for (file, run) in &all {
        pages.issue(*file, run);
        pages.arrive(*file, run, 1);
    }
    assert_eq!(pages.waiting(5, 12, 120), (all.clone(), true));
    let mut looked = Vec::new();
    for turn in 0..6 {
        let (waiting, is_all) = pages.waiting(turn, 4, 20);
        let files: Vec<_> = waiting.chunk_by(|one, other| one.0 == other.0).collect();
        let spread = |runs: &&[(FileId, Range<u64>)]| runs.len() == 5;
        assert!(
            !is_all && files.len() == 4 && files.iter().all(spread),
            "{files:?}"
        );
        looked.extend(waiting);
    }
    looked.sort_unstable_by_key(|(file, run)| (*file, run.start));
    assert_eq!(looked, all);
}

#[test]
fn a_page_that_was_passed_is_still_read() {
    let mut pages = Pages::default();
    pages.issue(FILE, &(0..4));
    pages.arrive(FILE, &(0..4), 100);
    let mut past = Vec::new();
    pages.pass(FILE, &(0..3), |run| past.push(run));
    assert_eq!(past.into_iter().flatten().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(pages.len(), 1);
    assert_eq!(pages.waiting(0, usize::MAX, usize::MAX).0, [(FILE, 3..4)]);
    let read = pages.read(FILE, &(1..2), 200, |_| ());
    assert_eq!((read.there, read.under_way), (1, 0));
    pages.want(FILE, &(2..4));
    let left = Unread {
        wasted: 2,
        infill: 1,
        unknown: 0,
    };
    assert_eq!(pages.rest(), left);
}

#[test]
fn of_a_page_that_was_there_while_nobody_watched_nothing_is_claimed() {
    let mut pages = Pages::default();
    pages.issue(FILE, &(0..2));
    pages.want(FILE, &(0..3));
    pages.look_away();
    pages.issue(FILE, &(2..3));
    pages.want(FILE, &(2..3));
    let read = pages.read(FILE, &(0..1), 200, |_| ());
    assert_eq!(read.under_way, 1, "what was seen is known all the same");
    let left = Unread {
        wasted: 0,
        infill: 0,
        unknown: 2,
    };
    assert_eq!(pages.rest(), left);
}

#[test]
fn of_a_page_that_may_have_been_touched_after_the_last_sample_nothing_is_claimed() {
    let mut pages = Pages::default();
    for file in [FileId(0), FileId(1)] {
        pages.issue(file, &(0..2));
        pages.want(file, &(0..2));
    }
    pages.doubt(FileId(1));
    let left = Unread {
        wasted: 2,
        infill: 0,
        unknown: 2,
    };
    assert_eq!(pages.rest(), left);
}

#[derive(Clone, Debug)]
enum Op {
    Issue(Range<u64>),
    Arrive(Range<u64>),
    Read(Range<u64>),
    Want(Range<u64>),
    Pass(Range<u64>),
    Evict(Range<u64>),
    GiveBack(Range<u64>),
}

fn op() -> impl Strategy<Value = Op> {
    let range = || (0u64..300, 0u64..140).prop_map(|(start, len)| start..start + len);
    prop_oneof![
        range().prop_map(Op::Issue),
        range().prop_map(Op::Issue),
        range().prop_map(Op::Arrive),
        range().prop_map(Op::Read),
        range().prop_map(Op::Want),
        range().prop_map(Op::Pass),
        range().prop_map(Op::Evict),
        range().prop_map(Op::GiveBack),
    ]
}

/// The state of a single page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    arrived: bool,
    passed: bool,
    wanted: bool,
    unwatched: bool,
}

fn enter(unread: &mut Unread, page: Page) {
    match page {
        Page {
            unwatched: true, ..
        } => unread.unknown += 1,
        Page { wanted: true, .. } => unread.wasted += 1,
        _ => unread.infill += 1,
    }
}

proptest! {
    /// Against a map that keeps every page by itself.
    #[test]
    fn the_bitmaps_agree_with_a_page_by_page_map(
        ops in proptest::collection::vec(op(), 0..80),
        looks_away_at in 0usize..160,
    ) {
        let mut pages = Pages::default();
        let mut reference: BTreeMap<u64, Page> = BTreeMap::new();
        let mut unwatched = false;
        // Every page issued, less those that were accounted for.
        let mut open = 0;
        for (at, op) in ops.into_iter().enumerate() {
            if at == looks_away_at {
                pages.look_away();
                unwatched = true;
                reference.values_mut().for_each(|page| page.unwatched = true);
            }
            match op {
                Op::Issue(range) => {
                    let mut expected = Issued::default();
                    for page in range.clone() {
                        let before = reference.get(&page).copied();
                        let again = before.is_some_and(|page| page.arrived);
                        expected.again += u64::from(again);
                        expected.pages += u64::from(again || before.is_none());
                        let new = if again { Page::default() } else { before.unwrap_or_default() };
                        reference.insert(page, Page { unwatched: new.unwatched || unwatched, ..new });
                    }
                    prop_assert_eq!(pages.issue(FILE, &range), expected);
                    open += expected.pages - expected.again;
                }
                Op::Arrive(range) => {
                    pages.arrive(FILE, &range, 1);
                    for page in range { reference.entry(page).and_modify(|page| page.arrived = true); }
                }
                Op::Read(range) => {
                    let mut expected = Read::default();
                    let mut struck = Vec::new();
                    for page in range.clone() {
                        match reference.remove(&page) {
                            Some(Page { arrived: true, .. }) => expected.there += 1,
                            Some(_) => expected.under_way += 1,
                            None => continue,
                        }
                        struck.push(page);
                    }
                    let mut past = Vec::new();
                    prop_assert_eq!(pages.read(FILE, &range, 2, |run| past.extend(run)), expected);
                    prop_assert_eq!(past, struck);
                    open -= expected.there + expected.under_way;
                }
                Op::Want(range) => {
                    pages.want(FILE, &range);
                    for page in range { reference.entry(page).and_modify(|page| page.wanted = true); }
                }
                Op::Pass(range) => {
                    let mut past = Vec::new();
                    pages.pass(FILE, &range, |run| past.extend(run));
                    let issued = reference.range_mut(range).map(|(&number, page)| {
                        page.passed = true;
                        number
                    });
                    prop_assert_eq!(past, issued.collect::<Vec<_>>());
                }
                Op::Evict(range) => {
                    let expected = range.clone().filter(|page| reference.remove(page).is_some()).count();
                    prop_assert_eq!(pages.evict(FILE, &range), expected as u64);
                    open -= expected as u64;
                }
                Op::GiveBack(range) => {
                    let mut expected = Unread::default();
                    for page in range.clone() {
                        if let Some(page) = reference.remove(&page) { enter(&mut expected, page); }
                    }
                    prop_assert_eq!(pages.give_back(FILE, &range), expected);
                    open -= expected.wasted + expected.infill + expected.unknown;
                }
            }
            let mut waiting: Vec<u64> = pages.waiting(0, usize::MAX, usize::MAX).0.into_iter().flat_map(|(_, run)| run).collect();
            waiting.sort_unstable();
            let arrived = reference.iter().filter(|(_, page)| page.arrived && !page.passed).map(|(&page, _)| page);
            prop_assert_eq!(waiting, arrived.collect::<Vec<_>>());
            let waited_for = reference.values().filter(|page| !page.passed).count();
            prop_assert_eq!(pages.len(), waited_for as u64);
            prop_assert_eq!(pages.len() == 0, waited_for == 0);
        }
        let mut expected = Unread::default();
        reference.into_values().for_each(|page| enter(&mut expected, page));
        let rest = pages.rest();
        prop_assert_eq!(rest, expected);
        prop_assert_eq!(open, rest.wasted + rest.infill + rest.unknown, "every page issued is in one column");
    }
}
