//! Evict behind: pages that the program has passed make room for its next reads.

use foreread_backend::Sim;
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Report};
use foreread_plan::Access;
use foreread_sources::Replay;
use proptest::prelude::*;

use super::{Player, apart, machine, play, scattered};

/// A session's report, the most pages that were in memory at a time, and pages fetched by anyone.
struct Memory {
    report: Report,
    most: u64,
    fetched: u64,
}

fn remember(plan: &[Access], program: &[Access], budget_pages: u64, evict_behind: bool) -> Memory {
    let shared = machine(Model::NetworkSsd, 1 << 20);
    let config = Config {
        budget_pages,
        evict_behind,
        ..Config::default()
    };
    let source = Box::new(Replay::new(plan.to_vec()));
    let mut engine = Engine::new(Sim::new(shared.clone()), config).with_strand("replay", source);
    let mut most = 0;
    let mut players = [Player::new(Some(&mut engine), program, 500_000)];
    play(&shared, &mut players, false, |_| {
        most = most.max(shared.lock().unwrap().resident_pages());
    });
    let end = players[0].ready;
    let report = engine.finish(end);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    let fetched = shared.lock().unwrap().fetched_pages();
    Memory {
        report,
        most,
        fetched,
    }
}

#[test]
fn a_long_list_is_read_in_the_budgets_memory() {
    let plan = apart(scattered(8000, 100_000));
    let kept = remember(&plan, &plan, 512, false);
    assert_eq!(kept.most, 8000, "nothing is given back unless asked for");
    let given = remember(&plan, &plan, 512, true);
    assert!(given.most <= 512, "{} pages", given.most);
    assert_eq!(given.fetched, 8000, "no page is fetched twice");
    let ledger = given.report.ledger;
    assert_eq!((ledger.evicted, ledger.wasted), (0, 0), "{ledger:?}");
}

#[test]
fn with_room_for_all_of_it_nothing_is_given_back() {
    let plan = apart(scattered(2000, 100_000));
    let given = remember(&plan, &plan, 4096, true);
    assert_eq!(given.most, 2000);
}

#[test]
fn pages_the_list_comes_back_to_are_kept() {
    // A b-tree's upper pages between leaves that are read once.
    let leaves = scattered(6000, 100_000);
    let plan = apart(
        leaves
            .iter()
            .enumerate()
            .flat_map(|(n, &leaf)| [200_000, 200_001 + n as u64 % 50, leaf]),
    );
    let given = remember(&plan, &plan, 512, true);
    assert_eq!(given.fetched, 6051, "no page is fetched twice");
    assert!(given.most <= 512 + 51, "{} pages", given.most);
}

#[test]
fn skipped_pages_are_given_back_as_well() {
    let plan = scattered(30_000, 200_000);
    let program: Vec<u64> = plan.iter().copied().step_by(4).collect();
    let given = remember(&apart(plan), &apart(program), 1024, true);
    assert!(given.report.ledger.wasted > 0);
    // A skipped page counts as unread until it expires.
    assert!(given.most <= 16 * 1024, "{} pages", given.most);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any list: the program reads the same data, no page that it will read is evicted, and memory stays within the budget except for
    /// pages listed again.
    #[test]
    fn memory_stays_within_the_budget_and_no_listed_page_is_lost(
        list in proptest::collection::vec(0u64..3000, 500..3000),
        budget_pages in 256u64..1500,
    ) {
        let mut list = list;
        // A repetition is one disclosure, and its second read counts for the next listing.
        list.dedup();
        let mut distinct = list.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let plan = apart(list.iter().copied());
        let given = remember(&plan, &plan, budget_pages, true);
        let ledger = given.report.ledger;
        prop_assert_eq!(given.report.reads, plan.len() as u64);
        prop_assert_eq!(ledger.evicted + ledger.wasted, 0);
        // A page the list comes back to is kept for that, so each is fetched once.
        prop_assert_eq!(given.fetched, distinct.len() as u64);
    }
}
