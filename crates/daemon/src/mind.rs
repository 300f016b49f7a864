//! From what happens to what is expected: events → symbols → models → predictions, and how these turned out.
//!
//! An event is the start of a program, or the opening of a file that is not written to. It belongs to the sequence of its
//! process tree ([`Trees`]), and to the one of the machine. The file that was the last event of its sequence already is none.
//!
//! Invariants: nothing here touches a file; memory is bounded by the limits of the parts.
//!
//! Data flow: [`Mind::happened`] → [`Wanted`], the files that are predicted and were not before.

use std::sync::Arc;

use foreread_sources::files::{Context, Identity, Kind, Model, Prediction, Symbol, Symbols};

use crate::accounts::{Accounts, Key};
use crate::files::Files;
use crate::trees::{EXPIRES, PENDING, Pending, Tree, Trees};
use crate::upkeep::Means;
use crate::{File, Happened, Predicted};

/// Letters of a program's name that are kept.
const NAME: usize = 64;
/// A sequence that goes on as predicted is predicted anew when one part in so many of what was predicted has come: to predict 64
/// files takes 15 µs, as long as all else that an event costs together five times over, and says again what is known but for the last of them.
const PART: u32 = 4;
/// How long after something was fetched from a device programs are taken to wait for devices, in ns.
const COLD: u64 = 1_000_000_000;

/// A file that is predicted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// For whom.
    pub(crate) key: Key,
    pub(crate) symbol: Symbol,
    pub(crate) likelihood: f64,
}

/// What came of an event for those who fetch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A file was opened, or run, at this time.
    Used(Symbol, u64),
    /// A program has fetched so many bytes from this device; whether anything is predicted for its process tree.
    Fetched(u64, u64, bool),
    /// A file is predicted.
    Wanted(Wanted),
    /// A file that was predicted is not expected any more.
    GivenUp(Symbol),
}

/// All that is known.
pub(crate) struct Mind {
    pub(crate) symbols: Symbols,
    pub(crate) files: Files,
    pub(crate) accounts: Accounts,
    pub(crate) events: u64,
    pub(crate) ignored: u64,
    model: Box<dyn Model>,
    trees: Trees,
    threshold: f64,
    /// When something was fetched from a device last.
    cold: Option<u64>,
    list: Vec<Prediction>,
}

impl Mind {
    pub(crate) fn new(
        model: Box<dyn Model>,
        symbols: Symbols,
        files: Files,
        threshold: f64,
    ) -> Self {
        Self {
            symbols,
            files,
            accounts: Accounts::default(),
            events: 0,
            ignored: 0,
            model,
            trees: Trees::default(),
            threshold,
            cold: None,
            list: Vec::new(),
        }
    }

    /// Something has happened; what comes of it, as far as there are the means.
    pub(crate) fn happened(&mut self, happened: Happened, means: Means, out: &mut Vec<Outcome>) {
        match happened {
            Happened::Waits { at } => return self.waits(at),
            Happened::Forked { pid, parent, .. } => self.trees.forked(pid, parent),
            Happened::Ended { pid, .. } => self.trees.ended(pid),
            Happened::Fetched {
                pid,
                device,
                inode,
                offset,
                len,
                at,
            } => self.fetched(pid, (device, inode), (offset, len), at, out),
            Happened::Started {
                pid,
                uid,
                program,
                at,
                ..
            } => self.met(Kind::Start, pid, uid, &program, at, means, out),
            Happened::Opened {
                pid,
                uid,
                file,
                writes: false,
                at,
            } => self.met(Kind::File, pid, uid, &file, at, means, out),
            Happened::Opened { .. } => self.ignored += 1,
        }
        self.events += 1;
        self.judge_ended(out);
    }

    /// At `now` something is fetched from a device.
    pub(crate) fn waits(&mut self, now: u64) {
        self.cold = self.cold.max(Some(now));
    }

    /// Whether programs wait for devices at `now`, or would without what is fetched ahead.
    pub(crate) fn is_cold(&self, now: u64) -> bool {
        self.cold
            .is_some_and(|cold| now.saturating_sub(cold) < COLD)
    }

    fn fetched(
        &mut self,
        pid: u32,
        place: (u64, u64),
        (offset, len): (u64, u64),
        at: u64,
        out: &mut Vec<Outcome>,
    ) {
        self.waits(at);
        let page = |bytes: u64| u32::try_from(bytes / foreread_plan::PAGE).unwrap_or(u32::MAX);
        let pages = (page(offset), page(offset.saturating_add(len)));
        let is_gone = self.files.fetched(place, pages, at);
        let context = self.trees.context(pid);
        let Some(tree) = self.trees.get(context) else {
            out.push(Outcome::Fetched(place.0, len, false));
            return;
        };
        let key = tree.key();
        self.accounts.enter(&key, |one| one.bytes.missed += len);
        out.push(Outcome::Fetched(place.0, len, !tree.pending.is_empty()));
        if is_gone {
            // What was thought to be in memory was not asked for.
            let mut pending: Vec<_> = tree.pending.iter().collect();
            pending.sort_unstable_by_key(|(symbol, one)| (one.at, **symbol));
            let wanted = pending.into_iter().map(|(symbol, one)| Wanted {
                key: key.clone(),
                symbol: *symbol,
                likelihood: one.likelihood,
            });
            out.extend(wanted.map(Outcome::Wanted));
        }
    }

    /// A program was started or a file opened.
    #[expect(clippy::too_many_arguments, reason = "an event has as many parts")]
    fn met(
        &mut self,
        kind: Kind,
        pid: u32,
        uid: u32,
        file: &File,
        at: u64,
        means: Means,
        out: &mut Vec<Outcome>,
    ) {
        if means == Means::None {
            self.ignored += 1;
            return;
        }
        let identity = Identity {
            device: file.device,
            inode: file.inode,
            made: file.generation.into(),
        };
        let symbol = self.symbols.meet(kind, &file.path, Some(identity));
        self.files.met(symbol, file, uid);
        let context = self.trees.context(pid);
        let tree = self.trees.tree(context);
        if tree.program.is_none() && kind == Kind::Start {
            tree.program = Some((name_of(file), uid));
        }
        tree.uid = uid;
        let key = tree
            .program
            .clone()
            .unwrap_or_else(|| (Arc::from("?"), uid));
        let is_cold = self.cold.is_some_and(|cold| at.saturating_sub(cold) < COLD);
        let facts = self.files.get(symbol).filter(|_| is_cold);
        if facts.is_some_and(|facts| !facts.is_read_at_open()) {
            // The program is about to read it, for a while.
            out.push(Outcome::Wanted(Wanted {
                key: key.clone(),
                symbol,
                likelihood: 1.0,
            }));
        }
        out.push(Outcome::Used(symbol, at));
        if tree.last == Some(symbol) {
            return;
        }
        tree.last = Some(symbol);
        tree.events += 1;
        let foretold = tree.pending.remove(&symbol);
        tree.come += 1;
        let is_on_its_way = foretold.is_some() && tree.come * PART < tree.reach;
        self.accounts.enter(&key, |one| {
            one.predictions.events += 1;
            if let Some(pending) = foretold {
                one.predictions.foretold += 1;
                one.predictions.right += 1;
                one.leads.add(at.saturating_sub(pending.at));
            }
        });
        self.model.see(context, symbol, true);
        if !is_on_its_way && (means == Means::All || is_cold) {
            self.predict(context, &key, at, out);
        }
    }

    /// What is expected now in a sequence, and was not before.
    fn predict(&mut self, context: Context, key: &Key, at: u64, out: &mut Vec<Outcome>) {
        self.model.predict(context, self.threshold, &mut self.list);
        let tree = self.trees.tree(context);
        let event = tree.events;
        (tree.reach, tree.come) = (self.list.last().map_or(0, |one| one.ahead), 0);
        let epoch = self.files.epoch();
        let mut made = 0;
        for one in &self.list {
            let likelihood = one.likelihood;
            if let Some(known) = tree.pending.get_mut(&one.symbol) {
                known.event = event;
                // What was asked for in an earlier epoch may be gone.
                if std::mem::replace(&mut known.epoch, epoch) == epoch {
                    continue;
                }
            } else {
                let pending = Pending {
                    at,
                    event,
                    epoch,
                    likelihood,
                };
                tree.pending.insert(one.symbol, pending);
                made += 1;
            }
            out.push(Outcome::Wanted(Wanted {
                key: key.clone(),
                symbol: one.symbol,
                likelihood: one.likelihood,
            }));
        }
        let before = out.len();
        expire(tree, out);
        let wrong = (out.len() - before) as u64;
        if made + wrong > 0 {
            self.accounts.enter(key, |one| {
                one.predictions.made += made;
                one.predictions.wrong += wrong;
            });
        }
    }

    /// Sequences that have ended: what was predicted for them will not be opened.
    fn judge_ended(&mut self, out: &mut Vec<Outcome>) {
        for (context, tree) in self.trees.take_ended() {
            self.model.end(context);
            let wrong = tree.pending.len() as u64;
            out.extend(tree.pending.keys().copied().map(Outcome::GivenUp));
            if let Some(key) = tree.program.filter(|_| wrong > 0) {
                self.accounts
                    .enter(&key, |one| one.predictions.wrong += wrong);
            }
        }
    }

    /// What would be predicted after a file was opened, of files that this user has opened, too.
    pub(crate) fn after(&mut self, path: &std::path::Path, uid: u32) -> Vec<Predicted> {
        let find = |kind| self.symbols.find(kind, path);
        let Some(symbol) = find(Kind::File).or_else(|| find(Kind::Start)) else {
            return Vec::new();
        };
        let may_know = |symbol| {
            let facts = self.files.get(symbol);
            uid == 0 || facts.is_some_and(|facts| facts.users.contains(&uid))
        };
        if !may_know(symbol) {
            return Vec::new();
        }
        self.model
            .predict_after(symbol, self.threshold, &mut self.list);
        let known = self.list.iter().filter(|one| may_know(one.symbol));
        let told = known.filter_map(|one| {
            Some(Predicted {
                path: self.symbols.path(one.symbol)?.to_path_buf(),
                likelihood: one.likelihood,
                ahead: one.ahead,
            })
        });
        told.collect()
    }

    /// Bytes of memory, about: the models', 300 of a symbol with its names, 200 of a file.
    pub(crate) fn bytes(&self) -> u64 {
        (self.model.bytes() + self.symbols.len() * 300 + self.files.len() * 200) as u64
    }

    /// Hands all that has changed to the store.
    pub(crate) fn flush(&mut self) {
        self.model.flush();
    }
}

/// Gives up predictions of a sequence that are not expected any more.
fn expire(tree: &mut Tree, out: &mut Vec<Outcome>) {
    if tree.pending.len() <= PENDING / 2 {
        return;
    }
    let mut oldest = tree.events.saturating_sub(EXPIRES);
    if tree.pending.len() > PENDING {
        let mut events: Vec<u64> = tree.pending.values().map(|one| one.event).collect();
        events.sort_unstable();
        oldest = oldest.max(events[events.len() - PENDING] + 1);
    }
    tree.pending.retain(|symbol, one| {
        let is_expected = one.event >= oldest;
        if !is_expected {
            out.push(Outcome::GivenUp(*symbol));
        }
        is_expected
    });
}

/// The name of a program, of letters that a terminal does not act on.
fn name_of(program: &File) -> Arc<str> {
    let name = program.path.file_name().unwrap_or_default();
    let name: String = name.to_string_lossy().chars().take(NAME).collect();
    Arc::from(foreread_words::shown(&name).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_sources::files::{Epcm, Levels};

    fn mind() -> Mind {
        let one = || Epcm::new(Epcm::shape(64, 1000, 100), 8).looking_ahead();
        let model = Box::new(Levels::new(one(), one()));
        Mind::new(model, Symbols::new(1000), Files::new(1000), 0.55)
    }

    fn file(number: u64) -> File {
        File {
            path: Arc::new(format!("/files/{number}").into()),
            device: 1,
            inode: number,
            generation: 0,
            size: 10_000,
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
            Happened::Forked {
                pid,
                parent: 1,
                at: *at,
            },
            &mut out,
        );
        let program = File {
            path: Arc::new("/bin/program".into()),
            ..file(9999)
        };
        let (parent, uid) = (1, 1000);
        let started = Happened::Started {
            pid,
            parent,
            uid,
            program,
            at: *at,
        };
        tell(mind, started, &mut out);
        for number in files {
            *at += 1_000_000;
            let (file, writes, at) = (file(number), false, *at);
            tell(
                mind,
                Happened::Opened {
                    pid,
                    uid,
                    file,
                    writes,
                    at,
                },
                &mut out,
            );
        }
        tell(mind, Happened::Ended { pid, at: *at }, &mut out);
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
        let (pid, parent, uid, writes) = (7, 1, 1000, false);
        let mut out = Vec::new();
        for happened in [
            Happened::Forked { pid, parent, at },
            Happened::Opened {
                pid,
                uid,
                file: file(1),
                writes,
                at,
            },
            // The sequence is its parent's, too.
            Happened::Ended { pid, at },
            Happened::Ended { pid: parent, at },
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
        let opened = |mind: &mut Mind, size, at| {
            let mut out = Vec::new();
            let file = File { size, ..file(size) };
            let (pid, uid, writes) = (7, 1000, false);
            let opened = Happened::Opened {
                pid,
                uid,
                file,
                writes,
                at,
            };
            mind.happened(opened, Means::All, &mut out);
            out
        };
        let is_wanted = |out: &[Outcome]| matches!(out[0], Outcome::Wanted(_));
        mind.waits(1);
        assert!(is_wanted(&opened(&mut mind, 40 << 20, 2)));
        assert!(!is_wanted(&opened(&mut mind, 10_000, 3)), "one read");
        let later = 2 + 2 * COLD;
        assert!(
            !is_wanted(&opened(&mut mind, 40 << 20, later)),
            "nobody waits"
        );
    }

    #[test]
    fn whoever_waits_for_a_device_is_no_event_and_has_the_daemon_hurry() {
        let mut mind = mind();
        let at = 5 * COLD;
        assert!(!mind.is_cold(at));
        let mut out = Vec::new();
        mind.happened(Happened::Waits { at }, Means::None, &mut out);
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
            let opened = Happened::Opened {
                pid: 7,
                uid: 0,
                file: file(number),
                writes: false,
                at: 0,
            };
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
}
