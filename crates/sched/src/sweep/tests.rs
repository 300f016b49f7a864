use super::*;
use proptest::prelude::*;

const FILE: FileId = FileId(3);

fn in_turn(kin: Option<Kin>, file: FileId, page: u64) -> SweepPlace {
    SweepPlace::InTurn(Beside { kin, file, page })
}

/// Push these entries in their order, by position or not.
fn sweep_of(entries: &[Range<u64>], order: Order) -> Sweep {
    let mut sweep = Sweep::default();
    for (ordinal, pages) in entries.iter().enumerate() {
        let place = match order {
            Order::Program => in_turn(None, FILE, pages.start),
            Order::Position => SweepPlace::At(pages.start * PAGE),
        };
        sweep.push(place, pages.end - pages.start, ordinal as u64);
    }
    sweep
}

fn all(entries: &[Range<u64>], profile: &Profile) -> Vec<Batch> {
    let mut sweep = sweep_of(entries, profile.order);
    let mut dropped = Vec::new();
    let pages = |ordinal: u64| Some((FILE, entries[ordinal as usize].clone()));
    std::iter::from_fn(|| sweep.next(profile, u64::MAX, pages, &mut dropped)).collect()
}

fn single(pages: &[u64]) -> Vec<Range<u64>> {
    pages.iter().map(|&page| page..page + 1).collect()
}

fn exact(order: Order) -> Profile {
    Profile {
        order,
        infill_pages: 0,
        ..Profile::rotational()
    }
}

#[test]
fn the_talks_example_is_fetched_in_one_pass() {
    let entries = single(&[10, 60, 20, 80, 40, 70]);
    let order: Vec<u64> = all(&entries, &exact(Order::Position))
        .iter()
        .map(|batch| batch.pages.start)
        .collect();
    assert_eq!(order, [10, 20, 40, 60, 70, 80]);
}

#[test]
fn in_turn_neighbours_on_both_sides_come_along() {
    let runs: Vec<_> = all(&single(&[9, 4, 1, 3, 5, 2, 7]), &exact(Order::Program))
        .into_iter()
        .map(|batch| (batch.pages, batch.ordinals.to_vec()))
        .collect();
    assert_eq!(
        runs,
        [
            (9..10, vec![0]),
            (1..6, vec![1, 4, 3, 5, 2]),
            (7..8, vec![6])
        ]
    );
}

#[test]
fn neighbours_of_another_file_are_none() {
    let mut sweep = Sweep::default();
    for (ordinal, file) in [1, 0, 2].into_iter().enumerate() {
        sweep.push(in_turn(None, FileId(file), 7), 1, ordinal as u64);
    }
    let files = [1, 0, 2];
    let wanted = |ordinal: u64| Some((FileId(files[ordinal as usize]), 7..8));
    let profile = exact(Order::Program);
    let batches: Vec<_> =
        std::iter::from_fn(|| sweep.next(&profile, u64::MAX, wanted, &mut Vec::new())).collect();
    assert_eq!(batches.len(), 3);
    assert!(batches.iter().all(|batch| batch.pages == (7..8)));
}

#[test]
fn small_files_that_are_kin_are_taken_with_each_other_whenever_they_are_due() {
    let mut sweep = Sweep::default();
    // Files 0 to 5, of two kins in turn, and 6, of none.
    let kin = |file: u64| Kin::new(file as u32 % 2 + 1).filter(|_| file < 6);
    for file in [4, 0, 3, 6, 1, 2, 5] {
        sweep.push(in_turn(kin(file), FileId(file as u32), 0), 1, file);
    }
    let wanted = |ordinal: u64| (ordinal != 2).then_some((FileId(ordinal as u32), 0..1));
    let (profile, mut dropped) = (exact(Order::Program), Vec::new());
    let first = sweep.next(&profile, 0, wanted, &mut dropped).unwrap();
    assert_eq!((first.file, first.kin), (FileId(0), Kin::new(1)));
    let mut of_kin = || sweep.next_of_kin(&profile, Kin::MIN, wanted, &mut dropped);
    assert_eq!(of_kin().map(|batch| batch.file), Some(FileId(4)));
    assert_eq!(of_kin(), None);
    assert_eq!(dropped, [2]);
    let left = std::iter::from_fn(|| sweep.next(&profile, 9, wanted, &mut Vec::new()));
    assert_eq!(
        left.map(|batch| batch.file.0).collect::<Vec<_>>(),
        [1, 3, 5, 6]
    );
}

#[test]
fn a_small_gap_is_read_along_and_counted() {
    let profile = Profile {
        infill_pages: 4,
        ..exact(Order::Position)
    };
    let batches = all(&single(&[0, 5, 11]), &profile);
    assert_eq!(batches.len(), 2, "a gap of 4 is filled, a gap of 5 is not");
    assert_eq!(batches[0].pages, 0..6);
    assert_eq!(batches[0].infill.len(), 1);
    assert_eq!(batches[0].infill[0], 1..5);
}

#[test]
fn what_the_program_read_meanwhile_is_dropped() {
    let entries = single(&[0, 10, 20, 30]);
    let mut sweep = sweep_of(&entries, Order::Position);
    let mut dropped = Vec::new();
    let batch = sweep.next(
        &exact(Order::Position),
        u64::MAX,
        |ordinal| (ordinal >= 2).then(|| (FILE, entries[ordinal as usize].clone())),
        &mut dropped,
    );
    assert_eq!(batch.unwrap().ordinals.as_slice(), [2]);
    assert_eq!(dropped, [0, 1]);
}

#[test]
fn entries_placed_late_are_still_asked_for_in_program_order() {
    let mut sweep = Sweep::default();
    for ordinal in [5, 7, 2, 6] {
        sweep.push(in_turn(None, FILE, 0), 1, ordinal);
    }
    assert_eq!(sweep.drain().collect::<Vec<_>>(), [2, 5, 6, 7]);
    assert!(sweep.is_empty() && sweep.neighbours.is_empty());
}

#[test]
fn a_pass_takes_along_what_lies_on_its_way() {
    let mut sweep = Sweep::in_passes();
    // First: 0, 60 and 300. Between them, later: half of the first gap, and all of the second, which is too long.
    let first = [0, 60, 300];
    let later = (1..60).step_by(2).chain(61..300);
    for (ordinal, page) in (0..).zip(first.into_iter().chain(later)) {
        sweep.push(SweepPlace::At(page * PAGE), 1, ordinal);
    }
    assert_eq!(sweep.begin_pass(3, 32), 3);
    let places = sweep.by_position.iter().map(|one| one.0 / PAGE);
    let on_the_way: Vec<u64> = [0]
        .into_iter()
        .chain((1..60).step_by(2))
        .chain([60, 300])
        .collect();
    assert_eq!(places.collect::<Vec<_>>(), on_the_way);
    assert_eq!(sweep.later.len(), 239);
}

#[test]
fn a_pass_is_of_what_will_be_read_first() {
    let mut sweep = Sweep::in_passes();
    for (ordinal, page) in [50, 10, 30, 20, 40].into_iter().enumerate() {
        sweep.push(SweepPlace::At(page * PAGE), 2, ordinal as u64);
    }
    assert!(sweep.pass_is_over() && !sweep.is_empty());
    let pages = [50, 10, 30, 20, 40];
    let wanted = |ordinal: u64| Some((FILE, pages[ordinal as usize]..pages[ordinal as usize] + 2));
    let pass = |sweep: &mut Sweep| -> Vec<u64> {
        let profile = exact(Order::Position);
        std::iter::from_fn(|| sweep.next(&profile, u64::MAX, wanted, &mut Vec::new()))
            .map(|batch| batch.pages.start)
            .collect()
    };
    assert_eq!(sweep.begin_pass(5, 0), 6);
    assert_eq!(pass(&mut sweep), [10, 30, 50]);
    sweep.push(SweepPlace::At(60 * PAGE), 2, 2);
    assert!(
        !sweep.pass_is_over(),
        "what was expected before its end is of this pass"
    );
    sweep.pass_over_all();
    assert_eq!(sweep.drain().count(), 3);
    assert!(sweep.is_empty());
    assert_eq!(sweep.begin_pass(5, 0), 0);
    sweep.push(SweepPlace::At(0), 1, 7);
    assert!(sweep.pass_is_over(), "in passes again");
}

proptest! {
    /// Each entry is fetched exactly once, within the request size; by position a pass never turns
    /// back, and in turn each request holds the earliest entry that is left.
    #[test]
    fn every_entry_is_fetched_once_in_passes(
        pages in proptest::collection::vec((0u64..2000, 1u64..8), 1..300),
        infill in 0u64..16,
        in_turn in any::<bool>(),
    ) {
        let order = if in_turn { Order::Program } else { Order::Position };
        let profile = Profile { infill_pages: infill, request_pages: 64, ..exact(order) };
        let entries: Vec<_> = pages.iter().map(|&(first, count)| first..first + count).collect();
        let batches = all(&entries, &profile);
        let mut served: Vec<u64> = batches.iter().flat_map(|b| b.ordinals.clone()).collect();
        served.sort_unstable();
        prop_assert_eq!(served, (0..pages.len() as u64).collect::<Vec<_>>());
        for batch in &batches {
            prop_assert!(batch.pages.end - batch.pages.start <= 64);
            for &ordinal in &batch.ordinals {
                let (first, count) = pages[ordinal as usize];
                prop_assert!(batch.pages.start <= first && first + count <= batch.pages.end);
            }
            for page in batch.pages.clone() {
                let wanted = batch.ordinals.iter().any(|&at| entries[at as usize].contains(&page));
                let infill = batch.infill.iter().any(|gap| gap.contains(&page));
                prop_assert!(wanted != infill, "page {}", page);
            }
        }
        if in_turn {
            let mut left: BTreeSet<u64> = (0..pages.len() as u64).collect();
            for batch in &batches {
                prop_assert!(batch.ordinals.contains(left.first().unwrap()));
                left.retain(|ordinal| !batch.ordinals.contains(ordinal));
            }
            return Ok(());
        }
        let turns = batches.windows(2).filter(|w| w[1].pages.start < w[0].pages.start).count();
        prop_assert!(turns <= 1, "{} turns", turns);
    }
}
