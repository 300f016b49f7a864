//! Several sources in one session: the pages each fetches and leaves out, and its separate account.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use foreread_backend::SimMachine;
use foreread_disk::Model;
use foreread_engine::{Config, Engine, IDLE_READS, Ledger, Report};
use foreread_plan::{Access, Expected, Odds, PAGE, Pattern, Seen, Sequence, ThreadId};
use foreread_sources::{Nature, Outlook, Replay, Source};
use proptest::prelude::*;

use super::{FILE, Player, Sim, apart, machine, page_read, play, scattered};

/// More pages than any of these programs fetch.
const ROOMY: usize = 1 << 20;

/// Events shown to a guessing source.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u64>>>);

impl Shown {
    fn pages(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

/// Predicts the next read from each read that it is shown.
struct Guesser<F> {
    guess: F,
    odds: Odds,
    said: VecDeque<u64>,
    shown: Shown,
    void: bool,
}

impl<F: FnMut(u64) -> Vec<u64> + Send + 'static> Guesser<F> {
    fn new(guess: F, odds: Odds) -> (Box<Self>, Shown) {
        let shown = Shown::default();
        let guesser = Self {
            guess,
            odds,
            said: VecDeque::new(),
            shown: shown.clone(),
            void: false,
        };
        (Box::new(guesser), shown)
    }
}

impl<F: FnMut(u64) -> Vec<u64> + Send> Source for Guesser<F> {
    fn nature(&self) -> Nature {
        Nature::Guess
    }

    fn see(&mut self, seen: &Seen) {
        if let Seen::Read(sequence) = seen {
            for access in sequence.accesses() {
                let page = access.extent.pages().start;
                self.shown.0.lock().unwrap().push(page);
                let guessed = (self.guess)(page);
                self.void |= guessed.is_empty();
                self.said.extend(guessed);
            }
        }
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        if std::mem::take(&mut self.void) {
            self.said.clear();
            return Outlook::Void;
        }
        let count = room.min(self.said.len());
        out.extend(self.said.drain(..count).map(|page| Expected {
            file: FILE,
            pages: page..page + 1,
            thread: ThreadId(0),
            pattern: Pattern::Scattered,
            odds: self.odds,
        }));
        Outlook::Later
    }
}

/// Goes on at the stride of the last two reads, `ahead` of them.
fn strides(ahead: u64) -> impl FnMut(u64) -> Vec<u64> + Send + 'static {
    let (mut last, mut stride, mut said) = (None, 0, 0);
    move |page: u64| {
        let step = last.map_or(0, |last: u64| page.wrapping_sub(last));
        last = Some(page);
        if step != stride || step == 0 {
            (stride, said) = (step, page);
            return Vec::new();
        }
        let to = page + stride * ahead;
        let from = said.max(page) + stride;
        said = to.max(said);
        (from..=to).step_by(stride as usize).collect()
    }
}

fn told(plan: Vec<Access>) -> Box<dyn Source> {
    Box::new(Replay::new(plan))
}

fn session(shared: &Arc<Mutex<SimMachine>>) -> Engine<Sim> {
    Engine::new(Sim::new(Arc::clone(shared)), Config::default())
}

/// Run a program; the closed account, after it was held against the machine's, and when the program ended.
fn follow(
    shared: &Arc<Mutex<SimMachine>>,
    mut engine: Engine<Sim>,
    program: &[Access],
) -> (Report, u64) {
    let mut players = [Player::new(Some(&mut engine), program, 50_000)];
    play(shared, &mut players, false, |_| ());
    let (end, own) = (players[0].ready, players[0].fetched);
    let mut machine = shared.lock().unwrap();
    while let Some(next) = machine.next_event() {
        machine.advance(next);
    }
    let fetched = machine.fetched_pages();
    drop(machine);
    let report = engine.finish(end);
    assert_sums(&report);
    assert_eq!(report.ledger.issued, (fetched - own) * PAGE, "{report:?}");
    (report, end)
}

/// Asserts that the session's account and each strand's are closed, and that the former is the sum of the latter.
fn assert_sums(report: &Report) {
    let sum: Ledger = report.strands.iter().map(|strand| strand.ledger).sum();
    assert_eq!(report.ledger, sum);
    assert!(report.ledger.is_closed(), "{report:?}");
    for strand in &report.strands {
        assert!(strand.ledger.is_closed(), "{strand:?}");
    }
}

#[test]
fn what_one_strand_has_asked_for_no_other_asks_for() {
    let plan = scattered(3000, 2_000_000);
    let program = apart(plan);
    let shared = machine(Model::NetworkSsd, ROOMY);
    let engine = session(&shared)
        .with_strand("one", told(program.clone()))
        .with_strand("two", told(program.clone()));
    let (report, _) = follow(&shared, engine, &program);
    let all = program.len() as u64 * PAGE;
    let [one, two] = &report.strands[..] else {
        panic!("two strands");
    };
    assert!(
        report.ledger.issued + report.ledger.missed <= all,
        "{report:?}"
    );
    assert!(one.ledger.issued > all / 2, "{report:?}");
    assert_eq!(one.foreseen, two.foreseen);
    assert_eq!(report.ledger.wasted, 0);
}

#[test]
fn a_guess_that_is_right_gains_what_no_record_knows() {
    let program = apart((0..3000).map(|n| n * 2));
    let plain = {
        let shared = machine(Model::NetworkSsd, ROOMY);
        super::run(&shared, None, &program, 50_000)
    };
    let shared = machine(Model::NetworkSsd, ROOMY);
    let (guesser, shown) = Guesser::new(strides(64), Odds(250));
    let engine = session(&shared).with_strand("guess", guesser);
    let (report, end) = follow(&shared, engine, &program);
    assert!(end < plain / 2, "{end} ns against {plain}");
    assert_eq!(shown.pages().len(), program.len());
    assert!(report.strands[0].accuracy > Some(0.9), "{report:?}");
}

#[test]
fn a_strand_that_lies_is_soon_believed_no_more_and_takes_nothing_from_another() {
    let plan = scattered(6000, 2_000_000);
    let (known, _) = plan.split_at(3000);
    let program = apart(plan.iter().copied());
    let alone = {
        let shared = machine(Model::NetworkSsd, ROOMY);
        let engine = session(&shared).with_strand("replay", told(apart(known.to_vec())));
        follow(&shared, engine, &program).1
    };
    let shared = machine(Model::NetworkSsd, ROOMY);
    let lie = |page: u64| (0..8).map(|n| 64_000_000 + page * 9 + n * 5).collect();
    let (liar, shown) = Guesser::new(lie, Odds::SURE);
    let engine = session(&shared)
        .with_strand("replay", told(apart(known.to_vec())))
        .with_strand("liar", liar);
    let (report, end) = follow(&shared, engine, &program);
    let liar = &report.strands[1];
    // Most of the program's pages, and not one of those it was asked to fetch for the other.
    assert!(shown.pages().len() > 2000, "{report:?}");
    assert!(
        liar.ledger.issued > 0 && liar.ledger.useful == 0,
        "{report:?}"
    );
    let most = 64 * PAGE;
    assert!(
        liar.ledger.issued - liar.ledger.infill <= most && liar.ledger.infill <= 16 * most,
        "{report:?}"
    );
    assert!(end < alone + alone / 20, "{end} ns against {alone}");
}

#[test]
fn who_guesses_is_shown_what_no_one_who_knows_had_foreseen() {
    let plan = scattered(4000, 2_000_000);
    let program = apart(
        plan[..2000]
            .iter()
            .copied()
            .chain((0..2000).map(|n| 3_000_000 + n * 2)),
    );
    let shared = machine(Model::NetworkSsd, ROOMY);
    let (guesser, shown) = Guesser::new(strides(64), Odds(250));
    let engine = session(&shared)
        .with_strand("replay", told(apart(plan)))
        .with_strand("guess", guesser);
    let (report, _) = follow(&shared, engine, &program);
    let foreseen = |page: &u64| *page < 3_000_000 * 32;
    assert_eq!(
        shown.pages().iter().filter(|page| foreseen(page)).count(),
        0
    );
    assert_eq!(shown.pages().len(), 2000);
    let guess = &report.strands[1];
    assert!(
        guess.ledger.useful + guess.ledger.late > 1500 * PAGE,
        "{report:?}"
    );
}

#[test]
fn what_a_sequence_holds_of_reads_not_foreseen_is_shown_and_the_rest_is_not() {
    let shared = machine(Model::NetworkSsd, ROOMY);
    let (guesser, shown) = Guesser::new(|_| Vec::new(), Odds(250));
    let plan: Vec<Access> = [3, 4, 7].map(page_read).into();
    let mut engine = session(&shared)
        .with_strand("replay", told(plan))
        .with_strand("guess", guesser);
    engine.step(0);
    let sequence = Sequence {
        first: page_read(0),
        more: 9,
    };
    engine.see(&Seen::Read(sequence));
    assert_eq!(shown.pages(), [0, 1, 2, 5, 6, 8, 9]);
}

#[test]
fn a_guess_that_is_of_no_use_rests_until_a_read_waits() {
    let shared = machine(Model::NetworkSsd, ROOMY);
    let (guesser, shown) = Guesser::new(|_| Vec::new(), Odds(250));
    let mut engine = session(&shared).with_strand("guess", guesser);
    let read = |engine: &mut Engine<Sim>, n: u64, took| {
        engine.see(&Seen::Read(
            Access {
                took,
                ..page_read(n)
            }
            .into(),
        ));
    };
    for n in 0..2 * u64::from(IDLE_READS) {
        read(&mut engine, n, 1000);
    }
    let seen = shown.pages().len();
    // The last of them is not shown any more.
    assert_eq!(seen, IDLE_READS as usize - 1);
    assert!(engine.is_quiet());
    read(&mut engine, 7, 1_000_000);
    assert!(!engine.is_quiet());
    assert_eq!(shown.pages().len(), seen + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For any number of strands, however right they are: each account is closed, and the session's is their sum and equals the pages
    /// fetched by the machine.
    #[test]
    fn the_account_is_the_sum_of_the_strands(
        from in proptest::collection::vec((0usize..3000, 1usize..2000), 1..3),
        guesses in proptest::collection::vec((1u64..80, 0u64..3, 1u8..=255), 0..3),
        memory in prop_oneof![Just(ROOMY), 500usize..3000],
        run_at in 0usize..2500,
    ) {
        let plan = scattered(3000, 60_000);
        let strided = (0..600).map(|n| 70_000 + n * 3);
        let program = apart(plan[run_at..].iter().copied().take(1500).chain(strided).chain(plan[..300].iter().copied()));
        let shared = machine(Model::NetworkSsd, memory);
        let mut engine = session(&shared);
        for (from, count) in from {
            let plan = plan.iter().copied().skip(from).take(count);
            engine = engine.with_strand("replay", told(apart(plan)));
        }
        for (ahead, off, odds) in guesses {
            let mut strides = strides(ahead);
            let guess = move |page| strides(page).into_iter().map(|page| page + off * 7).collect();
            engine = engine.with_strand("guess", Guesser::new(guess, Odds(odds)).0);
        }
        let (report, _) = follow(&shared, engine, &program);
        prop_assert_eq!(report.ledger.unknown, 0);
    }
}
