//! Start-ups: the files that a program opens first, for every use. A start-up and the start form one symbol.
//!
//! `cat` opens the linker's cache, its library and a dozen files of its locale before its actual file. To a model these are events like any
//! other: a pattern from one use to the next then has two dozen events, and a partition, which grows by one node per instance, takes as
//! many rounds to reach the second file. So a model that is [`Folded`] sees only the program's start, and then the files outside its
//! start-up. When it predicts the start, the start-up is predicted with it.
//!
//! A start-up is learnt from runs of the program: the files of a run up to the first that was not opened by the previous run or in two
//! other runs in a row. A file belongs to the start-up if more than half of the runs opened it there, so a run in another locale does not
//! end it.
//!
//! Invariants: the number of programs is limited, and each has at most as many files as are predicted at once. Adding a file costs one
//! comparison with those of the start-up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::contexts::Bounded;
use super::{Context, LONGEST, Model, Prediction, Symbol};

/// Programs with a known start-up: a desktop runs a few hundred. Each takes up to 3 KiB.
const PROGRAMS: usize = 1024;
/// Runs that are counted, at most; then all counts are halved, so that the last runs count most.
const RUNS: u8 = 15;
/// Bytes of a saved program before its files, and of a file.
const KEPT_PROGRAM: usize = 7;
const KEPT_FILE: usize = 5;

/// A file of a program's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    symbol: Symbol,
    /// Runs that opened it before they went a way of their own.
    times: u8,
}

/// The runs of a program, as far as they are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Program {
    /// Runs that were compared with their predecessor.
    runs: u8,
    /// In the order in which they are opened.
    members: Vec<Member>,
    /// The files of its last run.
    last: Vec<Symbol>,
}

impl Program {
    fn is_usual(&self, member: Member) -> bool {
        u32::from(member.times) * 2 > self.runs.into()
    }

    /// The files of the start-up from this place on, each with its place and likelihood.
    fn usual(&self, from: usize) -> impl Iterator<Item = (usize, Symbol, f64)> + '_ {
        let members = self.members.iter().enumerate().skip(from);
        let usual = members.filter(|(_, member)| self.is_usual(**member));
        usual.map(|(place, member)| {
            let share = f64::from(member.times) / f64::from(self.runs.max(1));
            (place, member.symbol, share)
        })
    }

    /// The place of a file of the start-up.
    fn place(&self, symbol: Symbol) -> Option<usize> {
        let mut usual = self.usual(0);
        usual
            .find(|(_, known, _)| *known == symbol)
            .map(|(place, ..)| place)
    }

    /// A run that opened these files is over.
    fn learn(&mut self, files: Vec<Symbol>) {
        let before = std::mem::take(&mut self.last);
        if !before.is_empty() {
            let is_member = |file: &Symbol| self.members.iter().any(|one| one.symbol == *file);
            let is_known = |file: &&Symbol| before.contains(file) || is_member(file);
            let common = files.iter().take_while(is_known).count();
            self.runs += 1;
            let mut at = 0;
            for file in &files[..common] {
                let known = self.members.iter().position(|one| one.symbol == *file);
                let place = known.unwrap_or_else(|| {
                    let (symbol, times) = (*file, 0);
                    self.members.insert(at, Member { symbol, times });
                    at
                });
                self.members[place].times += 1;
                at = place + 1;
            }
            self.forget();
        }
        self.last = files;
    }

    fn forget(&mut self) {
        if self.runs > RUNS {
            self.runs /= 2;
            for member in &mut self.members {
                member.times /= 2;
            }
            self.members.retain(|one| one.times > 0);
        }
        if self.members.len() > LONGEST {
            let runs = self.runs;
            self.members.retain(|one| one.times * 2 > runs);
            self.members.truncate(LONGEST);
        }
    }
}

/// Bytes that are no start-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStartUps {
    /// They end within a program, or there are too many.
    #[error("{0} bytes are no start-ups")]
    Length(usize),
    /// Counts that no program has.
    #[error("program {0} cannot be there")]
    Counts(usize),
}

/// The start-ups of all programs. Clones share their content: one is the model's, another is saved.
#[derive(Clone, Debug)]
pub struct StartUps(Arc<Mutex<Bounded<Symbol, Program>>>);

impl Default for StartUps {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Bounded::new(PROGRAMS))))
    }
}

impl StartUps {
    fn lock(&self) -> MutexGuard<'_, Bounded<Symbol, Program>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them as bytes: of each program its symbol, its runs, the number of files, and of each file its symbol and
    /// runs. Numbers are little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (symbol, program) in self.lock().iter() {
            bytes.extend(symbol.0.to_le_bytes());
            bytes.push(program.runs);
            bytes.extend((program.members.len() as u16).to_le_bytes());
            for member in &program.members {
                bytes.extend(member.symbol.0.to_le_bytes());
                bytes.push(member.times);
            }
        }
        bytes
    }

    /// Decodes start-ups.
    ///
    /// # Errors
    /// When the bytes are not encoded start-ups.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoStartUps> {
        let wrong = NoStartUps::Length(bytes.len());
        let start_ups = Self::default();
        let mut all = start_ups.lock();
        let mut rest = bytes;
        while !rest.is_empty() {
            let place = all.len();
            let (head, after) = rest.split_first_chunk::<KEPT_PROGRAM>().ok_or(wrong)?;
            let [a, b, c, d, runs, low, high] = *head;
            let count = usize::from(u16::from_le_bytes([low, high]));
            let length = count * KEPT_FILE;
            let (files, after) = after.split_at_checked(length).ok_or(wrong)?;
            if place >= PROGRAMS {
                return Err(wrong);
            }
            let members = files.as_chunks::<KEPT_FILE>().0.iter();
            let members: Vec<Member> = members
                .map(|[a, b, c, d, times]| Member {
                    symbol: Symbol(u32::from_le_bytes([*a, *b, *c, *d])),
                    times: *times,
                })
                .collect();
            let fits = |one: &Member| (1..=runs).contains(&one.times);
            if runs > RUNS || count > LONGEST || !members.iter().all(fits) {
                return Err(NoStartUps::Counts(place));
            }
            let symbol = Symbol(u32::from_le_bytes([a, b, c, d]));
            let program = Program {
                runs,
                members,
                last: Vec::new(),
            };
            all.insert(symbol, program, |_, _| {});
            rest = after;
        }
        drop(all);
        Ok(start_ups)
    }

    /// Puts the start-up of a program after its start, `odds` that it starts.
    fn add(program: &Program, from: usize, odds: f64, threshold: f64, out: &mut Vec<Prediction>) {
        for (_, symbol, share) in program.usual(from) {
            let likelihood = odds * share;
            if out.len() >= LONGEST {
                return;
            }
            if likelihood >= threshold {
                let ahead = out.len() as u32 + 1;
                out.push(Prediction {
                    symbol,
                    likelihood,
                    ahead,
                });
            }
        }
    }

    /// Appends predictions, each start with its start-up.
    fn unfold(&self, list: &[Prediction], threshold: f64, out: &mut Vec<Prediction>) {
        let all = self.lock();
        for one in list {
            if out.len() >= LONGEST {
                return;
            }
            let ahead = out.len() as u32 + 1;
            out.push(Prediction { ahead, ..*one });
            if let Some(program) = all.get(one.symbol) {
                Self::add(program, 0, one.likelihood, threshold, out);
            }
        }
    }

    /// The successors of a file in its start-up, if most starts of all programs that open the file have the same.
    fn after(&self, symbol: Symbol, threshold: f64, out: &mut Vec<Prediction>) {
        let all = self.lock();
        let known = all.iter().filter_map(|(_, program)| {
            let place = program.place(symbol)?;
            Some((program.members[place].times, place, program))
        });
        let known: Vec<(u8, usize, &Program)> = known.collect();
        let sum: f64 = known.iter().map(|(times, ..)| f64::from(*times)).sum();
        if let Some((times, place, program)) = known.iter().max_by_key(|(times, ..)| *times) {
            let odds = f64::from(*times) / sum;
            Self::add(program, place + 1, odds, threshold, out);
        }
    }

    fn bytes(&self) -> usize {
        let all = self.lock();
        let one = |(_, program): (Symbol, &Program)| {
            size_of::<(Symbol, u64, Program)>()
                + program.members.capacity() * size_of::<Member>()
                + program.last.capacity() * size_of::<Symbol>()
        };
        all.iter().map(one).sum()
    }
}

/// A run of a program in a context.
#[derive(Clone, Debug)]
struct Run {
    start: Symbol,
    /// The files that it has opened, each once.
    files: Vec<Symbol>,
    /// During the start-up: the place of the next file in it.
    next: Option<usize>,
    learn: bool,
}

/// A model to which a start-up is one symbol with the start of its program.
pub struct Folded<M> {
    model: M,
    start_ups: StartUps,
    runs: Bounded<Context, Run>,
}

impl<M: Model> Folded<M> {
    /// The model, with this limit of contexts and with known start-ups.
    pub fn new(model: M, start_ups: StartUps, contexts: usize) -> Self {
        Self {
            model,
            start_ups,
            runs: Bounded::new(contexts),
        }
    }

    /// The run of a program in a context is over.
    fn end_run(&mut self, context: Context) {
        let Some(run) = self.runs.remove(context).filter(|run| run.learn) else {
            return;
        };
        if !run.files.is_empty() {
            let mut all = self.start_ups.lock();
            all.entry(run.start, Program::default, |_, _| {})
                .learn(run.files);
        }
    }
}

impl<M: Model> Model for Folded<M> {
    fn start(&mut self, context: Context, symbol: Symbol, learn: bool) {
        self.end_run(context);
        let run = Run {
            start: symbol,
            files: Vec::new(),
            next: Some(0),
            learn,
        };
        self.runs.insert(context, run, |_, _| {});
        self.model.start(context, symbol, learn);
    }

    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        if let Some(run) = self.runs.used(context) {
            if run.files.len() < LONGEST && !run.files.contains(&symbol) {
                run.files.push(symbol);
            }
            if let Some(next) = run.next {
                let all = self.start_ups.lock();
                let place = all.get(run.start).and_then(|known| known.place(symbol));
                run.next = place.map(|place| next.max(place + 1));
                if run.next.is_some() {
                    return;
                }
            }
        }
        self.model.see(context, symbol, learn);
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        self.model.predict(context, threshold, out);
        let list = std::mem::take(out);
        if let Some(run) = self.runs.get(context)
            && let Some(next) = run.next
        {
            let all = self.start_ups.lock();
            if let Some(program) = all.get(run.start) {
                StartUps::add(program, next, 1.0, threshold, out);
            }
        }
        self.start_ups.unfold(&list, threshold, out);
    }

    fn predict_after(&mut self, symbol: Symbol, threshold: f64, out: &mut Vec<Prediction>) {
        self.model.predict_after(symbol, threshold, out);
        let list = std::mem::take(out);
        if let Some(program) = self.start_ups.lock().get(symbol) {
            StartUps::add(program, 0, 1.0, threshold, out);
        }
        self.start_ups.unfold(&list, threshold, out);
        if out.is_empty() {
            self.start_ups.after(symbol, threshold, out);
        }
    }

    fn end(&mut self, context: Context) {
        self.end_run(context);
        self.model.end(context);
    }

    fn end_all(&mut self) {
        let all: Vec<Context> = self.runs.iter().map(|(context, _)| context).collect();
        for context in all {
            self.end_run(context);
        }
        self.model.end_all();
    }

    fn bytes(&self) -> usize {
        let run = |(_, run): (Context, &Run)| {
            size_of::<(Context, u64, Run)>() + run.files.capacity() * size_of::<Symbol>()
        };
        self.model.bytes() + self.start_ups.bytes() + self.runs.iter().map(run).sum::<usize>()
    }

    fn flush(&mut self) {
        self.model.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Epcm;
    use proptest::prelude::*;

    const SHELL: Context = Context(1);
    /// `cat` and the program that pauses, and the files of their start-ups.
    const CAT: u32 = 1;
    const SLEEP: u32 = 2;
    const LIBRARIES: [u32; 2] = [10, 11];
    const LOCALE: std::ops::Range<u32> = 20..34;
    /// The files that are shown.
    const FILES: std::ops::Range<u32> = 100..108;

    fn folded() -> Folded<Epcm> {
        let model = Epcm::new(Epcm::shape(64, 1000, 10), 8).looking_ahead();
        Folded::new(model, StartUps::default(), 10)
    }

    fn run(model: &mut Folded<Epcm>, program: u32, locale: bool, file: Option<u32>) {
        model.start(SHELL, Symbol(program), true);
        let locale = LOCALE.filter(|_| locale);
        for one in LIBRARIES.into_iter().chain(locale).chain(file) {
            model.see(SHELL, Symbol(one), true);
        }
    }

    /// The first of the shown files that is predicted after one, and its likelihood.
    fn first(model: &mut Folded<Epcm>, file: u32) -> Option<(u32, f64)> {
        let mut out = Vec::new();
        model.predict_after(Symbol(file), 0.55, &mut out);
        let shown = out.iter().find(|one| FILES.contains(&one.symbol.0));
        shown.map(|one| (one.symbol.0, one.likelihood))
    }

    #[test]
    fn the_next_file_of_separate_commands_is_known_after_three_rounds_and_no_other_before() {
        for locale in [false, true] {
            let mut model = folded();
            for round in 1..=3 {
                for file in FILES {
                    run(&mut model, CAT, locale, Some(file));
                }
                let told = first(&mut model, 102);
                assert!(told.is_none_or(|(file, _)| file == 103), "{told:?}");
                assert!(told.is_some() || round < 3, "{round}");
            }
        }
    }

    #[test]
    fn a_program_that_does_the_same_each_time_is_one_symbol_as_well() {
        let mut model = folded();
        for _ in 0..4 {
            for file in FILES {
                run(&mut model, CAT, true, Some(file));
                run(&mut model, SLEEP, true, None);
            }
        }
        assert_eq!(first(&mut model, 102).map(|one| one.0), Some(103));
    }

    #[test]
    fn runs_in_another_locale_leave_the_start_up_of_the_others_whole() {
        let mut model = folded();
        for number in 0..40 {
            run(&mut model, CAT, number % 4 > 0, Some(1000 + number));
        }
        let all = model.start_ups.lock();
        let known: Vec<u32> = all
            .get(Symbol(CAT))
            .expect("cat")
            .usual(0)
            .map(|one| one.1.0)
            .collect();
        let expected: Vec<u32> = LIBRARIES.into_iter().chain(LOCALE).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn a_start_is_predicted_with_its_start_up_and_a_file_of_it_with_the_rest() {
        let mut model = folded();
        for number in 0..5 {
            run(&mut model, CAT, true, Some(1000 + number));
        }
        let mut out = Vec::new();
        model.predict_after(Symbol(CAT), 0.55, &mut out);
        let told: Vec<u32> = out.iter().map(|one| one.symbol.0).collect();
        let expected: Vec<u32> = LIBRARIES.into_iter().chain(LOCALE).collect();
        assert!(told.starts_with(&expected), "{told:?}");
        model.predict_after(Symbol(25), 0.55, &mut out);
        assert_eq!(out.first().map(|one| one.symbol), Some(Symbol(26)));
        // While it starts, the rest of the start-up is expected, nearest first.
        model.start(SHELL, Symbol(CAT), true);
        model.see(SHELL, Symbol(10), true);
        model.predict(SHELL, 0.55, &mut out);
        assert_eq!(out[0].symbol, Symbol(11));
        assert!(out.iter().zip(1..).all(|(one, at)| one.ahead == at));
    }

    #[test]
    fn start_ups_are_decoded_as_they_were_encoded() {
        let mut model = folded();
        for number in 0..20 {
            run(&mut model, CAT, number % 3 > 0, Some(1000 + number));
            run(&mut model, SLEEP, true, None);
        }
        let bytes = model.start_ups.encode();
        let again = StartUps::decode(&bytes).expect("start-ups");
        let (before, after) = (model.start_ups.lock(), again.lock());
        for program in [CAT, SLEEP].map(Symbol) {
            let members = |all: &Bounded<Symbol, Program>| all.get(program).cloned();
            let (before, after) = (members(&before), members(&after));
            let both = before.zip(after).expect("both know it");
            assert_eq!(both.0.members, both.1.members);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_start_ups_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(start_ups) = StartUps::decode(&bytes) {
                prop_assert!(start_ups.lock().len() <= bytes.len());
            }
        }

        #[test]
        fn start_ups_are_bounded_whatever_is_opened(events in proptest::collection::vec((0_u32..4, 0_u32..1000), 1..3000)) {
            let mut model = folded();
            for (kind, file) in events {
                if kind == 0 {
                    model.start(SHELL, Symbol(file % 3), true);
                } else {
                    model.see(SHELL, Symbol(1000 + file), true);
                }
            }
            for (_, program) in model.start_ups.lock().iter() {
                prop_assert!(program.members.len() <= LONGEST && program.last.len() <= LONGEST);
                prop_assert!(program.members.iter().all(|one| (1..=program.runs).contains(&one.times)));
            }
        }
    }
}
