//! Passes predictions to one engine: a strand for each program that opens files, in a session that lasts while there is something to fetch.
//! All processes of one program share its credibility and its account: a parallel build has hundreds of them in a minute, each too short to
//! be judged by itself.
//!
//! A session costs a timer, and remembers each of its files, so it ends when nothing was requested for a while. When it has many files
//! another session replaces it; it continues for its earlier requests until none of them was used for a moment. Its account is entered at
//! its end.
//!
//! Invariants: a session's memory is bounded; nothing here waits for a device.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_backend::Backend;
use foreread_engine::{Config, Engine, Session};
use foreread_plan::{Access, Extent, FileId, Kind, Ledger, PAGE, Seen, ThreadId};
use foreread_profiles::Profiles;
use foreread_sources::files::Symbol;
use foreread_sys::memory;
use rustc_hash::FxHashMap;

use crate::accounts::Accounts;
use crate::clock;
use crate::disks::Disks;
use crate::files::{AT_OPEN, FileFacts, Pages, meta};
use crate::programs::Key;
use crate::proofs::Proof;
use crate::source::{Feed, Predicted};

/// Time for which a session continues without a request or a use of fetched files, in ns: half of all leads are shorter than a second.
const QUIET: u64 = 15_000_000_000;
/// The same for a session with many files that gets no more requests, in ns: its latest requests are still to be read.
const LEFT: u64 = 1_000_000_000;
/// The longest session, in ns: unread pages are accounted for by then.
const LONGEST: u64 = 600_000_000_000;
/// Strands and files of a session.
const STRANDS: usize = 64;
pub(crate) const FILES: u32 = 1 << 14;
/// Entries of a strand's queue, of 22 bytes.
const QUEUE: usize = 1 << 13;
/// Pages of the largest read passed to the engine: the largest entry of a queue.
const PIECE: u32 = 256;
/// Interval at which the engine is told that programs wait for devices, in ns: a strand rests after 1,000 reads without waiting.
const WAITS: u64 = 100_000_000;
/// Reported duration of such a read, in ns: more than any copy from memory. The engine does not measure it, because it is of no known file.
const WAITED: u64 = 1_000_000;
/// A file that is never asked for.
const NONE: FileId = FileId(0);
/// Factor of the engine's timers compared with a session for one program, which checks its requests each millisecond. With 1 the engine's
/// thread took 1.6 % of a core beside a cold compile that took 1.2 s of each 4, with 10 half of that.
const CALM: u32 = 10;
/// Ns after which the pages beyond [`AT_OPEN`] count as read: a compiler's program of 20 MiB is read while it runs, so its
/// later pages must still be fetched.
const LATER: u64 = 1_000_000_000;
/// One part in this many of the free memory may be fetched and unread.
const PART: u64 = 4;

/// Makes the backend of a session.
pub(crate) type MakeBackend = Box<dyn Fn() -> Box<dyn Backend>>;

struct Strand {
    key: Key,
    feed: Feed,
}

/// A file that was asked for.
struct Fetching {
    id: FileId,
    /// The feed from which the engine takes it.
    feed: Feed,
    pages: Vec<Pages>,
    /// True if it was opened since.
    used: bool,
}

struct Running {
    session: Session,
    /// When it began.
    since: u64,
    strands: Vec<Strand>,
    files: FxHashMap<Symbol, Fetching>,
    next: u32,
    used: u64,
    /// Opened files, to be confirmed when the engine has taken them from their feed.
    certain: Vec<(FileId, Feed, Vec<Pages>)>,
    /// Files whose further pages count as read after some time.
    later: VecDeque<(u64, FileId, Vec<Pages>)>,
    /// Time at which the engine was last told that programs wait.
    waited: u64,
}

/// Fetches predicted files.
pub(crate) struct Fetcher {
    make: MakeBackend,
    budget: Option<u64>,
    running: Option<Running>,
    /// The session before, which is asked for nothing more.
    former: Option<Running>,
    fed: bool,
    disks: Disks,
    /// Waiting that ended sessions have spared programs, in ns.
    spared: u64,
}

impl Fetcher {
    pub(crate) fn new(make: MakeBackend, budget: Option<u64>) -> Self {
        Self {
            make,
            budget,
            running: None,
            former: None,
            fed: false,
            disks: Disks::default(),
            spared: 0,
        }
    }

    fn sessions(&mut self) -> impl Iterator<Item = &mut Running> {
        self.running.iter_mut().chain(&mut self.former)
    }

    /// The session that a program's predictions go to.
    fn session(&mut self, key: &Key, accounts: &mut Accounts) -> Option<&mut Running> {
        if self.running.as_ref().is_some_and(|one| one.is_full(key)) {
            let former = self.former.take();
            self.close(former, accounts);
            self.former = self.running.take();
        }
        if self.running.is_none() {
            let unread = self.former.as_ref().map_or(0, Running::unread);
            self.running = begin(&self.make, self.budget, unread, &self.disks.known());
        }
        self.running.as_mut()
    }

    /// Fetches pages of a predicted file for a program at `now`; `false` if that cannot be done.
    pub(crate) fn want(
        &mut self,
        key: &Key,
        (symbol, path, facts): (Symbol, &Path, &FileFacts),
        pages: Vec<Pages>,
        likelihood: f64,
        accounts: &mut Accounts,
        now: u64,
    ) -> bool {
        let Some(running) = self.session(key, accounts) else {
            return false;
        };
        running.used = now;
        let feed = running.feed(key, accounts);
        let id = FileId(running.next);
        running.next += 1;
        running.session.add_file(id, meta(facts, path));
        if !feed.put(id, &pages, likelihood) {
            return false;
        }
        let used = false;
        let asked = Fetching {
            id,
            feed,
            pages,
            used,
        };
        if let Some(before) = running.files.insert(symbol, asked) {
            running.take_back(&before);
        }
        if let Some(former) = &mut self.former {
            former.leave(symbol);
        }
        self.fed = true;
        true
    }

    /// A file that was predicted is not expected any more.
    pub(crate) fn give_up(&mut self, symbol: Symbol) {
        let is_news = self.sessions().map(|one| one.leave(symbol));
        self.fed |= is_news.fold(false, |before, one| before | one);
    }

    /// A file was opened at `now`, by any process: its fetched pages count as read.
    pub(crate) fn opened(&mut self, symbol: Symbol, at: u64, now: u64) {
        let is_news = self.sessions().map(|one| one.opened(symbol, at, now));
        self.fed |= is_news.fold(false, |before, one| before | one);
    }

    /// Tells the engine that the files opened a while before `now` were read.
    pub(crate) fn settle(&mut self, now: u64) {
        let is_news = self.sessions().map(|one| one.settle(now));
        self.fed |= is_news.fold(false, |before, one| before | one);
    }

    /// A program has waited for a device at `now`: a strand that rests because everything was in memory continues.
    pub(crate) fn waited(&mut self, now: u64) {
        let is_news = self.sessions().map(|one| one.waited(now));
        self.fed |= is_news.fold(false, |before, one| before | one);
    }

    /// Wakes the engine, if there is anything new for it.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.fed) {
            self.sessions().for_each(|one| one.session.wake());
        }
    }

    /// Ends sessions that are not worth going on with at `now`.
    pub(crate) fn rest(&mut self, accounts: &mut Accounts, now: u64) {
        let quiet = |one: &Running| now.saturating_sub(one.used);
        let is_over =
            |one: &mut Running| quiet(one) > QUIET || now.saturating_sub(one.since) > LONGEST;
        let over = self.running.take_if(is_over);
        self.close(over, accounts);
        let over = self.former.take_if(|one| quiet(one) > LEFT);
        self.close(over, accounts);
    }

    /// Ends all sessions, and enters their accounts.
    pub(crate) fn end(&mut self, accounts: &mut Accounts) {
        for one in [self.former.take(), self.running.take()] {
            self.close(one, accounts);
        }
    }

    /// Ends a session, if there is one, and enters its account.
    fn close(&mut self, running: Option<Running>, accounts: &mut Accounts) {
        let Some(mut running) = running else {
            return;
        };
        running.settle(u64::MAX);
        self.spared += running.spared();
        // Died, or stuck in a file system that does not answer: its last account is lost.
        let Some(report) = running.session.finish() else {
            return;
        };
        self.disks.learn(&report.found);
        for (strand, report) in running.strands.iter().zip(report.strands) {
            accounts.close(&strand.key, &of_files(report.ledger));
        }
    }

    /// Accounts of the present sessions, by program.
    pub(crate) fn running(&self) -> Vec<(Key, Ledger)> {
        let sessions = self.running.iter().chain(&self.former);
        let each = sessions.flat_map(|running| {
            let ledgers = running.session.ledgers();
            let keys = running.strands.iter().map(|strand| strand.key.clone());
            keys.zip(ledgers.into_iter().map(of_files))
                .collect::<Vec<_>>()
        });
        each.collect()
    }

    /// Waiting that prefetching has spared programs, in ns.
    pub(crate) fn spared(&self) -> u64 {
        let sessions = self.running.iter().chain(&self.former);
        sessions.fold(self.spared, |sum, one| sum + one.spared())
    }

    /// True if anything is being fetched.
    pub(crate) fn is_busy(&self) -> bool {
        let mut sessions = self.running.iter().chain(&self.former);
        sessions.any(|running| running.session.is_busy())
    }

    /// True if there is a session.
    pub(crate) fn runs(&self) -> bool {
        self.running.is_some() || self.former.is_some()
    }
}

/// The account of files that programs were predicted to open. The bytes that they missed are reported by the observer.
fn of_files(ledger: Ledger) -> Ledger {
    Ledger {
        wasted: ledger.wasted + ledger.unknown,
        unknown: 0,
        missed: 0,
        ..ledger
    }
}

impl Running {
    /// True if no more files are accepted for a program.
    fn is_full(&self, key: &Key) -> bool {
        let is_known = || self.strands.iter().any(|strand| strand.key == *key);
        self.next >= FILES || self.strands.len() >= STRANDS && !is_known()
    }

    /// Fetched bytes whose fate is still unknown.
    fn unread(&self) -> u64 {
        let all: Ledger = self.session.ledgers().into_iter().sum();
        all.issued.saturating_sub(all.judged())
    }

    /// Waiting that prefetching has spared programs, in ns: wasted bytes spared nothing.
    fn spared(&self) -> u64 {
        let all: Ledger = self.session.ledgers().into_iter().sum();
        (self.session.gained() as f64 * all.accuracy().unwrap_or(0.0)) as u64
    }

    /// A file that was not opened is no longer expected. True if that is news to the engine.
    fn leave(&mut self, symbol: Symbol) -> bool {
        if self.files.get(&symbol).is_none_or(|asked| asked.used) {
            return false;
        }
        let Some(asked) = self.files.remove(&symbol) else {
            return false;
        };
        self.give_up(&asked);
        true
    }

    /// A file was opened at `now`. True if that is news to the engine.
    fn opened(&mut self, symbol: Symbol, at: u64, now: u64) -> bool {
        let Some(asked) = self.files.get_mut(&symbol).filter(|asked| !asked.used) else {
            return false;
        };
        asked.used = true;
        self.used = now;
        let (first, rest) = split(&asked.pages, AT_OPEN);
        let is_new = match rest.is_empty() {
            // Asked for after it was read, it would lie there unread, as far as the engine knows.
            true if asked.feed.cancel(asked.id) => return false,
            true => false,
            false => asked.feed.holds(asked.id),
        };
        let thread = ThreadId(0);
        let (file, kind) = (asked.id, Kind::Open);
        self.session.see(Seen::Named { file, kind, thread });
        // The engine must not take a read for one that it is about to be told to foresee.
        let (first, rest) = match is_new {
            true => (Vec::new(), asked.pages.clone()),
            false => (first, rest),
        };
        let feed = asked.feed.clone();
        self.read(file, &first, at);
        if !rest.is_empty() {
            self.certain.push((file, feed, rest.clone()));
            self.later.push_back((now + LATER, file, rest));
        }
        true
    }

    /// Tells the engine that the files opened some time before `now` were read. True if there were any.
    fn settle(&mut self, now: u64) -> bool {
        let mut any = self.confirm();
        while self.later.front().is_some_and(|(due, ..)| *due <= now)
            && let Some((due, file, pages)) = self.later.pop_front()
        {
            self.read(file, &pages, due);
            any = true;
        }
        any
    }

    /// Confirms later pages of opened files to the engine. True if there were any.
    fn confirm(&mut self) -> bool {
        let before = self.certain.len();
        for (file, feed, pages) in std::mem::take(&mut self.certain) {
            if feed.holds(file) {
                self.certain.push((file, feed, pages));
                continue;
            }
            for (from, to) in pages {
                self.session.come_true(file, from.into()..to.into());
            }
        }
        self.certain.len() < before
    }

    /// A program has waited for a device at `now`. True if the engine is told.
    fn waited(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.waited) < WAITS {
            return false;
        }
        self.waited = now;
        let read = Access {
            file: NONE,
            extent: Extent::new(0, PAGE),
            thread: ThreadId(0),
            kind: Kind::Read,
            start: now.saturating_sub(self.since),
            took: WAITED,
        };
        self.session.see(Seen::Read(read.into()));
        true
    }

    /// A file is asked for anew: memory has lost it, which is nobody's mistake.
    fn take_back(&self, asked: &Fetching) {
        if asked.used || asked.feed.cancel(asked.id) {
            return;
        }
        for &(from, to) in &asked.pages {
            self.session.take_back(asked.id, from.into()..to.into());
        }
    }

    /// A file is not waited for any more.
    fn give_up(&self, asked: &Fetching) {
        if asked.used || asked.feed.cancel(asked.id) {
            return;
        }
        for &(from, to) in &asked.pages {
            self.session.give_up(asked.id, from.into()..to.into());
        }
    }

    /// These pages of a file were read at some time.
    fn read(&self, file: FileId, pages: &[Pages], at: u64) {
        for &(from, to) in pages {
            for first in (from..to).step_by(PIECE as usize) {
                let count = u64::from(PIECE.min(to - first));
                let read = Access {
                    file,
                    extent: Extent::new(u64::from(first) * PAGE, count * PAGE),
                    thread: ThreadId(0),
                    kind: Kind::Touch,
                    start: at.saturating_sub(self.since),
                    took: 0,
                };
                self.session.see(Seen::Read(read.into()));
            }
        }
    }

    /// The feed of a program's strand.
    fn feed(&mut self, key: &Key, accounts: &Accounts) -> Feed {
        if let Some(strand) = self.strands.iter().find(|strand| strand.key == *key) {
            return strand.feed.clone();
        }
        let feed = Feed::default();
        let Proof { right, wrong } = accounts.proofs.of(key);
        let source = Predicted::new(feed.clone(), right, wrong);
        self.session.add_strand("predictions", Box::new(source));
        self.strands.push(Strand {
            key: key.clone(),
            feed: feed.clone(),
        });
        feed
    }
}

/// The first `most` pages of these, and the others.
fn split(pages: &[Pages], most: u32) -> (Vec<Pages>, Vec<Pages>) {
    let (mut first, mut rest, mut room) = (Vec::new(), Vec::new(), most);
    for &(from, to) in pages {
        let end = to.min(from.saturating_add(room));
        room -= end - from;
        if from < end {
            first.push((from, end));
        }
        if end < to {
            rest.push((end, to));
        }
    }
    (first, rest)
}

/// A new session, while `unread` bytes of another's are in memory, and with known disks.
fn begin(
    make: &MakeBackend,
    budget: Option<u64>,
    unread: u64,
    disks: &[(u64, bool)],
) -> Option<Running> {
    let free = memory::available().map_or(u64::MAX, |free| free / PART);
    let budget = budget.unwrap_or_else(memory::budget).min(free);
    let budget = budget.saturating_sub(unread);
    let config = Config {
        queue_entries: QUEUE,
        budget_pages: budget / PAGE,
        calm: CALM,
        ..Config::default()
    };
    let profiles = Profiles::load().unwrap_or_default();
    let mut backend = make();
    for &(dev, positions) in disks {
        backend.assume(dev, positions);
    }
    let engine =
        Engine::new(backend, config).with_profiles(move |dev, _| profiles.of(dev)?.profile());
    let (since, start) = (clock::now(), Instant::now());
    let session = Session::start(move || engine, start).ok()?;
    Some(Running {
        session,
        since,
        strands: Vec::new(),
        files: FxHashMap::default(),
        next: 1,
        used: since,
        certain: Vec::new(),
        later: VecDeque::new(),
        waited: since,
    })
}

/// Longest sleep of the loop while there is a session.
pub(crate) const TICK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_split_where_the_first_are_enough() {
        let pages = [(0, 10), (100, 140), (200, 201)];
        assert_eq!(
            split(&pages, 32),
            (vec![(0, 10), (100, 122)], vec![(122, 140), (200, 201)])
        );
        assert_eq!(split(&pages, 100), (pages.to_vec(), Vec::new()));
        assert_eq!(split(&pages, 10), (vec![(0, 10)], pages[1..].to_vec()));
    }
}
