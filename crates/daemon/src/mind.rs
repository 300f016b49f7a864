//! From what happens to what is expected: events → symbols → models → predictions, and how these turned out.
//!
//! An event is the start of a program, or the opening of a file that is not written to. It belongs to the sequence of its process tree
//! ([`Trees`]), and to the one of the machine. The start of the system is an event of both. A repetition of the last event of its sequence
//! is no event.
//!
//! Invariants: nothing here touches a file; memory is bounded by the limits of the parts.
//!
//! Data flow: [`Mind::happened`] → [`Wanted`], the files that are predicted and were not before.

use std::path::Path;
use std::sync::Arc;

use foreread_observe::{Event, File, What, Who};
use foreread_plan::Extent;
use foreread_sources::files::{Context, Identity, Model, Prediction, Symbol, SymbolKind, Symbols};

use crate::Predicted;
use crate::accounts::Accounts;
use crate::files::Files;
use crate::programs::Key;
use crate::trees::{EXPIRES, PENDING, Pending, Tree, Trees};
use crate::upkeep::Means;

/// The process that all others come from.
const INIT: u32 = 1;
/// Files fetched at the system's start are accounted for under this name, as root's.
const SYSTEM: &str = "system start";
/// Letters of a program's name that are kept.
const NAME: usize = 64;
/// A sequence that continues as predicted is predicted anew when one part in this many of the predicted files has come. Predicting 64 files
/// takes 15 µs, five times as long as everything else for an event, and all of them but the last are known already.
const PART: u32 = 4;
/// Time after a fetch from a device for which programs count as waiting for devices, in ns.
const COLD: u64 = 1_000_000_000;
/// User of a process that ended before it could be examined.
const NOBODY: u32 = u32::MAX;

/// A file that is predicted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// The program for which it is predicted.
    pub(crate) key: Key,
    pub(crate) symbol: Symbol,
    pub(crate) likelihood: f64,
}

/// The outcome of an event, for the fetcher.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A file was opened, or run, at this time.
    Used(Symbol, u64),
    /// A program has fetched from this device this many bytes; true if anything is predicted for its process tree.
    Fetched(u64, u64, bool),
    /// A file is predicted.
    Wanted(Wanted),
    /// A file that was predicted is not expected any more.
    GivenUp(Symbol),
}

/// All knowledge of files, programs and sequences.
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
    pub(crate) fn happened(&mut self, event: Event, means: Means, out: &mut Vec<Outcome>) {
        let Event { who, at, what } = event;
        match what {
            What::Waits => return self.waits(at),
            What::Forked { parent } => self.trees.forked(who.pid, parent),
            What::Ended => self.trees.ended(who.pid),
            What::Fetched {
                device,
                inode,
                extent,
            } => self.fetched(who.pid, (device, inode), extent, at, out),
            What::Begin { program, .. } => {
                self.met(SymbolKind::Start, who, &program, at, means, out)
            }
            What::Open { file, how, .. } if !how.writes => {
                self.met(SymbolKind::File, who, &file, at, means, out);
            }
            // Written to, or what observers of one program alone report.
            _ => self.ignored += 1,
        }
        self.events += 1;
        self.judge_ended(out);
    }

    /// The system has started. Predicts the files that were opened after its earlier starts.
    pub(crate) fn system_started(&mut self, at: u64, out: &mut Vec<Outcome>) {
        let context = self.trees.context(INIT);
        self.trees.tree(context).last = Some(Symbol::SYSTEM_START);
        self.model.see(context, Symbol::SYSTEM_START, true);
        self.predict(context, &(Arc::from(SYSTEM), 0), at, out);
    }

    /// At `now` something is fetched from a device.
    pub(crate) fn waits(&mut self, now: u64) {
        self.cold = self.cold.max(Some(now));
    }

    /// True if programs wait for devices at `now`, or would without prefetching.
    pub(crate) fn is_cold(&self, now: u64) -> bool {
        self.cold
            .is_some_and(|cold| now.saturating_sub(cold) < COLD)
    }

    fn fetched(
        &mut self,
        pid: u32,
        place: (u64, u64),
        extent: Extent,
        at: u64,
        out: &mut Vec<Outcome>,
    ) {
        self.waits(at);
        let page = |bytes: u64| u32::try_from(bytes / foreread_plan::PAGE).unwrap_or(u32::MAX);
        let len = extent.len;
        let pages = (page(extent.offset), page(extent.offset.saturating_add(len)));
        let is_gone = self.files.fetched(place, pages, at);
        let context = self.trees.context(pid);
        let Some(tree) = self.trees.get(context) else {
            out.push(Outcome::Fetched(place.0, len, false));
            return;
        };
        let key = self.trees.program(pid, tree.uid);
        self.accounts.enter(&key, |one| one.bytes.missed += len);
        out.push(Outcome::Fetched(place.0, len, !tree.pending.is_empty()));
        if is_gone {
            // What was thought to be in memory was not asked for. Older predictions that the newest does not repeat are of a
            // sequence that went elsewhere, such as a search predicted after a search, before the link that came.
            let newest = |(_, one): &(_, &Pending)| one.event == tree.predicted;
            let mut pending: Vec<_> = tree.pending.iter().filter(newest).collect();
            pending.sort_unstable_by_key(|(symbol, one)| (one.at, **symbol));
            let wanted = pending.into_iter().map(|(symbol, one)| Wanted {
                key: one.key.clone(),
                symbol: *symbol,
                likelihood: one.likelihood,
            });
            out.extend(wanted.map(Outcome::Wanted));
        }
    }

    /// A program was started or a file opened.
    fn met(
        &mut self,
        kind: SymbolKind,
        who: Who,
        file: &File,
        at: u64,
        means: Means,
        out: &mut Vec<Outcome>,
    ) {
        let Some(node) = file.node.filter(|_| means != Means::None) else {
            self.ignored += 1;
            return;
        };
        let (pid, uid) = (who.pid, who.uid.unwrap_or(NOBODY));
        let identity = Identity {
            device: node.device,
            inode: node.inode,
            made: node.generation.into(),
        };
        let symbol = self.symbols.meet(kind, &file.path, Some(identity));
        self.files.met(symbol, &node, uid);
        let context = self.trees.context(pid);
        if kind == SymbolKind::Start {
            self.trees.started(pid, (name_of(&file.path), uid));
        }
        let key = self.trees.program(pid, uid);
        let tree = self.trees.tree(context);
        tree.uid = uid;
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
        let is_newest = |one: &Pending| one.event == tree.predicted;
        let is_on_its_way =
            foretold.as_ref().is_some_and(is_newest) && tree.come * PART < tree.reach;
        self.accounts.enter(&key, |one| {
            one.predictions.events += 1;
            if let Some(pending) = &foretold {
                one.predictions.foretold += 1;
                one.leads.add(at.saturating_sub(pending.at));
            }
        });
        if let Some(pending) = &foretold {
            self.accounts
                .enter(&pending.key, |one| one.predictions.right += 1);
        }
        match kind {
            SymbolKind::Start => self.model.start(context, symbol, true),
            SymbolKind::File => self.model.see(context, symbol, true),
        }
        if !is_on_its_way && (means == Means::All || is_cold) {
            self.predict(context, &key, at, out);
        }
    }

    /// Reports files that are expected in a sequence now and were not before. A file is for the program that starts before it in the
    /// prediction, or for this one.
    fn predict(&mut self, context: Context, key: &Key, at: u64, out: &mut Vec<Outcome>) {
        self.model.predict(context, self.threshold, &mut self.list);
        let tree = self.trees.tree(context);
        let event = tree.events;
        (tree.reach, tree.come) = (self.list.last().map_or(0, |one| one.ahead), 0);
        if !self.list.is_empty() {
            tree.predicted = event;
        }
        let epoch = self.files.epoch();
        let (mut key, mut made) = (key.clone(), 0);
        for one in &self.list {
            let likelihood = one.likelihood;
            // Predictions at the system's start have an account of their own.
            if let Some(program) = self
                .symbols
                .program(one.symbol)
                .filter(|_| *key.0 != *SYSTEM)
            {
                enter_made(&mut self.accounts, &key, std::mem::take(&mut made));
                key.0 = name_of(program);
            }
            if let Some(known) = tree.pending.get_mut(&one.symbol) {
                known.event = event;
                // A file requested in an earlier epoch may have been evicted.
                if std::mem::replace(&mut known.epoch, epoch) == epoch {
                    continue;
                }
            } else {
                let pending = Pending {
                    key: key.clone(),
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
        enter_made(&mut self.accounts, &key, made);
        for (symbol, pending) in expire(tree) {
            out.push(Outcome::GivenUp(symbol));
            wrong(&mut self.accounts, &pending.key);
        }
    }

    /// Sequences that have ended: what was predicted for them will not be opened.
    fn judge_ended(&mut self, out: &mut Vec<Outcome>) {
        for (context, tree) in self.trees.take_ended() {
            self.model.end(context);
            for (symbol, pending) in &tree.pending {
                out.push(Outcome::GivenUp(*symbol));
                wrong(&mut self.accounts, &pending.key);
            }
        }
    }

    /// The files that would be predicted after a file was opened, limited to files that this user has opened, too.
    pub(crate) fn after(&mut self, path: &Path, uid: u32) -> Vec<Predicted> {
        let find = |kind| self.symbols.find(kind, path);
        let Some(symbol) = find(SymbolKind::File).or_else(|| find(SymbolKind::Start)) else {
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

/// The predictions of a sequence that are not expected any more.
fn expire(tree: &mut Tree) -> Vec<(Symbol, Pending)> {
    if tree.pending.len() <= PENDING / 2 {
        return Vec::new();
    }
    let mut oldest = tree.events.saturating_sub(EXPIRES);
    if tree.pending.len() > PENDING {
        let mut events: Vec<u64> = tree.pending.values().map(|one| one.event).collect();
        events.sort_unstable();
        oldest = oldest.max(events[events.len() - PENDING] + 1);
    }
    let expired = tree.pending.extract_if(|_, one| one.event < oldest);
    expired.collect()
}

/// Enters that `made` files were predicted for a program.
fn enter_made(accounts: &mut Accounts, key: &Key, made: u64) {
    if made > 0 {
        accounts.enter(key, |one| one.predictions.made += made);
    }
}

/// A file that was to be opened by a program was not.
fn wrong(accounts: &mut Accounts, key: &Key) {
    accounts.enter(key, |one| one.predictions.wrong += 1);
}

/// The name of a program, of letters that a terminal does not act on.
fn name_of(program: &Path) -> Arc<str> {
    let name = program.file_name().unwrap_or_default();
    let name: String = name.to_string_lossy().chars().take(NAME).collect();
    Arc::from(foreread_words::shown(&name).as_ref())
}

#[cfg(test)]
mod tests;
