use std::path::PathBuf;

use super::*;
use crate::observer::made::{began, event, opened};
use foreread_observe::Node;
use foreread_sources::files::{Epcm, Levels};

fn mind() -> Mind {
    let one = || Epcm::new(Epcm::shape(64, 1000, 100), 8).looking_ahead();
    let model = Box::new(Levels::new(one(), one()));
    Mind::new(model, Symbols::new(1000), Files::new(1000), 0.55)
}

fn file(number: u64) -> File {
    File {
        path: PathBuf::from(format!("/files/{number}")),
        node: Some(Node {
            device: 1,
            inode: number,
            generation: 0,
            size: 10_000,
        }),
    }
}

/// A model that counts how often it is asked.
struct Counted(Levels<Epcm>, Arc<std::sync::atomic::AtomicU64>);

impl Model for Counted {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.0.see(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.predict(context, threshold, out);
    }

    fn end(&mut self, context: Context) {
        self.0.end(context);
    }

    fn end_all(&mut self) {
        self.0.end_all();
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[test]
fn a_sequence_that_goes_on_as_predicted_is_not_predicted_at_each_event() {
    let asked = Arc::default();
    let one = || Epcm::new(Epcm::shape(64, 1000, 100), 8).looking_ahead();
    let model = Counted(Levels::new(one(), one()), Arc::clone(&asked));
    let mut mind = Mind::new(Box::new(model), Symbols::new(1000), Files::new(1000), 0.55);
    let mut at = 0;
    for number in 0..4 {
        run(&mut mind, 100 + number, 1..201, &mut at);
    }
    let before = asked.load(std::sync::atomic::Ordering::Relaxed);
    let foretold = mind.accounts.all.predictions.foretold;
    run(&mut mind, 200, 1..201, &mut at);
    let asked = asked.load(std::sync::atomic::Ordering::Relaxed) - before;
    let foretold = mind.accounts.all.predictions.foretold - foretold;
    assert!(foretold >= 190, "{foretold}");
    assert!(asked <= 40, "{asked}");
}

/// A process of `program` that opens these files, an event a millisecond from `at` on.
fn run(mind: &mut Mind, pid: u32, files: std::ops::Range<u64>, at: &mut u64) {
    let mut out = Vec::new();
    let tell = |mind: &mut Mind, happened, out: &mut Vec<Outcome>| {
        mind.happened(happened, Means::All, out);
    };
    tell(
        mind,
        event((pid, 0), *at, What::Forked { parent: 1 }),
        &mut out,
    );
    let program = File {
        path: "/bin/program".into(),
        ..file(9999)
    };
    let (parent, uid) = (1, 1000);
    let started = event((pid, uid), *at, began(parent, program));
    tell(mind, started, &mut out);
    for number in files {
        *at += 1_000_000;
        let opened = opened(file(number));
        tell(mind, event((pid, uid), *at, opened), &mut out);
    }
    tell(mind, event((pid, 0), *at, What::Ended), &mut out);
}

#[test]
fn a_program_that_opens_the_same_files_is_foretold_with_its_leads() {
    let (mut mind, mut at) = (mind(), 0);
    for number in 0..20 {
        run(&mut mind, 100 + number, 1..31, &mut at);
    }
    let told = mind.accounts.told(&[]);
    let program = told.iter().find(|one| one.name == "program");
    let program = program.expect("the program");
    let predictions = program.predictions;
    assert!(
        predictions.foretold > predictions.events / 2,
        "{predictions:?}"
    );
    // What is predicted of the next start is still to come.
    assert!(predictions.made >= predictions.right + predictions.wrong);
    // Several files ahead, a millisecond each.
    assert!(program.lead.median >= 3_000_000, "{:?}", program.lead);
    assert_eq!(program.uid, 1000);
}

#[test]
fn what_is_predicted_for_a_sequence_that_ends_is_given_up() {
    let (mut mind, mut at) = (mind(), 0);
    for number in 0..20 {
        run(&mut mind, 100 + number, 1..31, &mut at);
    }
    let (pid, parent, uid) = (7, 1, 1000);
    let mut out = Vec::new();
    for happened in [
        event((pid, 0), at, What::Forked { parent }),
        event((pid, uid), at, opened(file(1))),
        // The sequence is its parent's, too.
        event((pid, 0), at, What::Ended),
        event((parent, 0), at, What::Ended),
    ] {
        mind.happened(happened, Means::All, &mut out);
    }
    let mut wanted: Vec<Symbol> = Vec::new();
    let mut given_up = Vec::new();
    for outcome in out {
        match outcome {
            Outcome::Wanted(one) => wanted.push(one.symbol),
            Outcome::GivenUp(symbol) => given_up.push(symbol),
            _ => {}
        }
    }
    assert!(!given_up.is_empty());
    let told = mind.accounts.all.predictions;
    assert_eq!(told.made, told.right + told.wrong, "{told:?}");
    let is_given_up = |symbol: &Symbol| given_up.contains(symbol);
    assert!(wanted.iter().all(is_given_up), "{wanted:?} {given_up:?}");
}

#[test]
fn a_large_file_that_is_opened_while_programs_wait_is_wanted_for_what_it_is_read_for() {
    let mut mind = mind();
    let open = |mind: &mut Mind, size, at| {
        let mut out = Vec::new();
        let mut file = file(size);
        file.node.iter_mut().for_each(|node| node.size = size);
        mind.happened(event((7, 1000), at, opened(file)), Means::All, &mut out);
        out
    };
    let is_wanted = |out: &[Outcome]| matches!(out[0], Outcome::Wanted(_));
    mind.waits(1);
    assert!(is_wanted(&open(&mut mind, 40 << 20, 2)));
    assert!(!is_wanted(&open(&mut mind, 10_000, 3)), "one read");
    let later = 2 + 2 * COLD;
    assert!(
        !is_wanted(&open(&mut mind, 40 << 20, later)),
        "nobody waits"
    );
}

#[test]
fn whoever_waits_for_a_device_is_no_event_and_has_the_daemon_hurry() {
    let mut mind = mind();
    let at = 5 * COLD;
    assert!(!mind.is_cold(at));
    let mut out = Vec::new();
    mind.happened(event((0, 0), at, What::Waits), Means::None, &mut out);
    assert!(mind.is_cold(at + 1) && !mind.is_cold(at + COLD));
    assert_eq!((mind.events, mind.ignored, out.len()), (0, 0, 0));
}

#[test]
fn a_user_is_told_of_files_alone_that_it_has_opened() {
    let (mut mind, mut at) = (mind(), 0);
    for number in 0..20 {
        run(&mut mind, 100 + number, 1..31, &mut at);
    }
    let mut told = |uid| mind.after(std::path::Path::new("/files/3"), uid).len();
    assert!(told(1000) > 3);
    assert_eq!(told(1000), told(0));
    assert_eq!(told(1001), 0);
}

#[test]
fn without_means_events_are_let_go_and_counted() {
    let mut mind = mind();
    let mut out = Vec::new();
    for number in 0..100 {
        let opened = event((7, 0), 0, opened(file(number)));
        mind.happened(opened, Means::None, &mut out);
    }
    assert_eq!((mind.symbols.len(), mind.ignored), (0, 100));
    assert!(out.is_empty());
}

#[test]
fn what_is_predicted_and_never_comes_is_bounded() {
    let (mut mind, mut at) = (mind(), 0);
    for round in 0..40 {
        run(&mut mind, 100 + round, 1..200, &mut at);
    }
    for tree in 0..mind.trees.len() as u64 + 100 {
        let pending = mind
            .trees
            .get(Context(tree))
            .map_or(0, |tree| tree.pending.len());
        assert!(pending <= PENDING);
    }
}

#[test]
fn files_count_for_the_program_that_opens_them_and_not_for_the_trees_first() {
    let (mut mind, mut at) = (mind(), 0);
    let shell = File {
        path: "/bin/shell".into(),
        ..file(9998)
    };
    let started = event((1, 1000), at, began(0, shell));
    mind.happened(started, Means::All, &mut Vec::new());
    // Children of the shell, one after the other: its sequence goes on in them.
    for number in 0..20 {
        run(&mut mind, 100 + number, 1..31, &mut at);
    }
    let told = mind.accounts.told(&[]);
    let of = |name: &str| {
        let one = told.iter().find(|one| one.name == name);
        one.map(|one| one.predictions).unwrap_or_default()
    };
    assert_eq!(of("shell").events, 1);
    assert_eq!(of("program").events, 20 * 31);
    assert!(of("program").right > 10 * 30, "{:?}", of("program"));
    assert!(of("shell").right <= 1, "{:?}", of("shell"));
}

#[test]
fn when_memory_is_lost_only_what_the_newest_prediction_has_is_wanted_again() {
    let (mut mind, mut at) = (mind(), 0);
    // Each half is foretold after itself: the second at the end. A prediction is shorter than a half.
    let (first, second) = (1..301, 401..701);
    for half in [&first, &second] {
        for number in 0..8 {
            run(&mut mind, 100 + number, half.clone(), &mut at);
        }
    }
    let (pid, uid) = (7, 1000);
    let mut out = Vec::new();
    let mut tell = |what, out: &mut Vec<Outcome>| {
        at += 1_000_000_000;
        mind.happened(event((pid, uid), at, what), Means::All, out);
    };
    tell(What::Forked { parent: 1 }, &mut out);
    for number in 1..4 {
        tell(opened(file(number)), &mut out);
    }
    let lost = || What::Fetched {
        device: 1,
        inode: 1,
        extent: Extent::new(0, 4096),
    };
    tell(lost(), &mut out);
    out.clear();
    tell(lost(), &mut out);
    let wanted: Vec<&Path> = out
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Wanted(one) => mind.symbols.path(one.symbol),
            _ => None,
        })
        .collect();
    let of = |half: &std::ops::Range<u64>| {
        let of_half = |number| wanted.contains(&file(number).path.as_path());
        half.clone().filter(|number| of_half(*number)).count()
    };
    let context = mind.trees.context(pid);
    let pending = mind.trees.tree(context).pending.len();
    assert!(of(&first) > 20, "{wanted:?}");
    assert_eq!(of(&second), 0, "{wanted:?}");
    assert!(pending > wanted.len(), "older predictions stay expected");
}
