//! Source `signatures`: recognises patterns in the reads of a running program, and discloses the reads that follow.
//!
//! Each read goes to two recognisers. The *nest* of its thread and file ([`Nest`]) knows loops of any depth, and anything
//! that cursors do in turns; the *cursors* of its file ([`Cursors`]) are found apart in any order and of any number of
//! threads. Whichever has predicted more of the thread's latest reads is followed; where they are level, the nest, which
//! knows where rows end.
//!
//! Everything that is followed has a *lead* ([`Lead`]): reads disclosed ahead, half as many as it has predicted correctly. When half of a
//! lead is read, all leads are extended, in the order in which the program is expected to read. When a pattern breaks, everything disclosed
//! becomes void, and the other patterns are disclosed again. Because this costs time, it waits until the cost is small for each read made
//! since ([`CREDIT`]).
//!
//! Sequential streams are left to the kernel's read-ahead, which recognises them equally soon; a stream that begins after a jump is
//! disclosed. Nothing is disclosed for a file of unknown size, nor beyond a file's end.
//!
//! Invariant: the tables have fixed sizes, all within 16 MiB; the least recently read entry leaves a full table. A follower
//! with disclosed reads, or with reads to disclose, is in `active`.

use std::sync::Arc;

use foreread_plan::{Expected, Extent, FileId, Kind, Pattern, Role, Seen, ThreadId};
use rustc_hash::FxHashMap;

use super::adjust::{Adjusted, LOOPS, Learnt, Step, adjust};
use super::cursors::{Cursors, Line, Met};
use super::flow::{Flow, Follower, Next};
use super::lead::Lead;
use super::nest::{Nest, Said};
use super::pattern::{Affine, Loop, Read, Term};
use super::table::Table;
use crate::streams::Stream;
use crate::{Nature, Outlook, Source};

/// Number of files whose size and roles are remembered (40 bytes each).
const FACTS: usize = 1 << 15;
/// Number of files whose cursors are followed (3 KiB each).
const FILES: usize = 1024;
/// Number of pairs of thread and file whose nests are followed (16 KiB each).
const PAIRS: usize = 256;
/// Roles, and first steps, of which signatures are kept for files to come (16 KiB each, at most).
const LEARNT: usize = 128;
/// Nests and cursors that may have disclosed reads at the same time.
const ACTIVE: usize = 256;
/// Reads disclosed again because another pattern broke, per read of the program, at most. One costs about 50 ns here and in the queue: no
/// more than half a microsecond per read.
const CREDIT: u64 = 8;
/// Credit that can be saved up: as many reads as are disclosed at a time.
const SAVED: u64 = 1 << 15;
/// A pattern that predicted this many reads correctly is kept for later files.
pub const KEPT_AFTER: u64 = 16;

/// Facts about a file besides its reads.
#[derive(Clone, Copy, Debug, Default)]
struct FileTraits {
    size: u64,
    role: Role,
    turn: Role,
    /// True if the kernel does not read the file ahead.
    unaided: bool,
}

/// One thread's reads of one file.
#[derive(Debug)]
struct Pair {
    nest: Nest,
    /// Number of the latest reads that the nest, and the cursors, predicted, in parts of [`ALL`].
    by_nest: u16,
    by_cursor: u16,
    /// The first read of the file, or the read that broke a pattern, until a second one comes.
    first: Option<Extent>,
    is_new: bool,
    /// True if a pattern has broken in this file.
    is_later: bool,
    seen: Stream,
    disclosed: Stream,
}

/// All of the latest reads.
const ALL: u16 = 1 << 12;

/// A share of the latest reads moves towards all or none: by an eighth a read.
fn moved(share: u16, right: bool) -> u16 {
    let to = if right { ALL } else { 0 };
    (share - share / 8) + to / 8
}

impl Pair {
    fn new(now: u64) -> Self {
        Self {
            nest: Nest::new(now),
            by_nest: 0,
            by_cursor: 0,
            first: None,
            is_new: true,
            is_later: false,
            seen: Stream::default(),
            disclosed: Stream::default(),
        }
    }

    /// True if the nest is followed, and not the cursors.
    fn nest_leads(&self) -> bool {
        self.by_nest >= self.by_cursor
    }
}

/// Source `signatures`.
#[derive(Debug)]
pub struct Signatures {
    facts: Table<FileId, FileTraits>,
    files: Table<FileId, Cursors>,
    pairs: Table<(ThreadId, FileId), Pair>,
    /// Signatures by the role of their file, those learnt last first, and by their first step.
    by_role: FxHashMap<Role, Vec<Arc<Loop>>>,
    by_step: FxHashMap<Step, Arc<Loop>>,
    active: Vec<Follower>,
    /// Reads of all files so far.
    now: u64,
    /// Some follower has more reads to disclose.
    is_due: bool,
    /// Some disclosed reads are void; `at_once`: the plan must learn this without delay.
    is_void: bool,
    at_once: bool,
    credit: u64,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            facts: Table::new(FACTS),
            files: Table::new(FILES),
            pairs: Table::new(PAIRS),
            by_role: FxHashMap::default(),
            by_step: FxHashMap::default(),
            active: Vec::new(),
            now: 0,
            is_due: false,
            is_void: false,
            at_once: false,
            credit: 0,
        }
    }
}

impl Signatures {
    /// A source without any knowledge.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begin with the signatures of earlier runs.
    pub fn with_learnt(mut self, learnt: impl IntoIterator<Item = Learnt>) -> Self {
        for Learnt { role, nest } in learnt {
            if Learnt::fits(&nest) {
                self.keep(role, Arc::new(nest));
            }
        }
        self
    }

    /// The signatures of files with a role.
    pub fn learnt(&self) -> Vec<Learnt> {
        let known = self.by_role.iter();
        let each = known.flat_map(|(&role, nests)| nests.iter().map(move |nest| (role, nest)));
        each.map(|(role, nest)| Learnt {
            role,
            nest: Loop::clone(nest),
        })
        .collect()
    }

    fn keep(&mut self, role: Role, nest: Arc<Loop>) {
        if self.by_role.len() >= LEARNT || self.by_step.len() >= LEARNT {
            self.by_role.clear();
            self.by_step.clear();
        }
        let step = Step::first_of(&nest);
        if let Some(step) = step {
            self.by_step.insert(step, Arc::clone(&nest));
        }
        if role != Role::default() {
            let nests = self.by_role.entry(role).or_default();
            nests.retain(|one| Step::first_of(one) != step);
            nests.insert(0, nest);
            nests.truncate(LOOPS);
        }
    }

    /// The signature for a file of these roles in which a thread has read so: that of the role which begins so, or else any of
    /// the role; or that of any file which begins so. After a pattern of the file has broken (`is_later`), only one of several of its role:
    /// most patterns break at the end of a row, and go on in the next one.
    fn known(&self, facts: FileTraits, step: Step, is_later: bool) -> Option<&Arc<Loop>> {
        let by_role = self.by_role.get(&facts.role);
        let nests = by_role.or_else(|| self.by_role.get(&facts.turn));
        let nests = nests.map_or(&[][..], Vec::as_slice);
        let mut begin_so = nests
            .iter()
            .filter(|nest| Step::first_of(nest) == Some(step));
        if is_later {
            return begin_so.next().filter(|_| nests.len() > 1);
        }
        let of_role = begin_so.next().or(nests.first());
        of_role.or_else(|| self.by_step.get(&step))
    }

    fn role(&self, file: FileId) -> Role {
        self.facts
            .get(file)
            .map_or(Role::default(), |facts| facts.role)
    }

    fn read(&mut self, thread: ThreadId, file: FileId, extent: Extent) {
        if extent.is_empty() || extent.end() > i64::MAX as u64 {
            return;
        }
        self.now += 1;
        self.credit = (self.credit + CREDIT).min(SAVED);
        let now = self.now;
        let pair = self.pairs.used((thread, file), now, || Pair::new(now));
        pair.seen.next(extent);
        let led = pair.nest_leads();
        let before = pair.nest.lead.right();
        let said = pair.nest.read(extent, now);
        let is_right = matches!(said, Said::Right | Said::Near);
        pair.by_nest = moved(pair.by_nest, is_right);
        if let Said::Wrong(_) | Said::Near = said {
            self.is_void = true;
        }
        if before >= KEPT_AFTER && matches!(said, Said::Wrong(_) | Said::Nothing) {
            // Another pattern of the file may begin here.
            (pair.is_new, pair.is_later, pair.first) = (true, true, None);
        }
        let is_new = pair.is_new;
        let is_due = pair.nest.lead.is_due() && pair.nest.may_disclose();
        let right = pair.nest.lead.right();
        if led && pair.nest_leads() && is_right {
            if is_due {
                self.wake(Follower::Nest(thread, file));
            }
            if right >= KEPT_AFTER && right.is_power_of_two() {
                self.learn(thread, file);
            }
            return;
        }
        let cursors = self.files.used(file, now, Cursors::default);
        let met = cursors.read(extent, thread, now);
        pair.by_cursor = moved(pair.by_cursor, matches!(met, Met::Expected(_)));
        let leads = pair.nest_leads();
        if leads != led {
            // The reads that one of the two disclosed are disclosed again by the other.
            self.is_void |= !self.active.is_empty();
        }
        match met {
            Met::Expected(slot) | Met::Found(slot, _) => {
                if let Met::Found(_, vain) = met {
                    self.is_void |= vain > 0 || cursors.part() > 0;
                }
                let cursor = cursors.get(slot).expect("the slot has a cursor");
                let (line, right) = (cursor.line, cursor.lead.right());
                let follower = Follower::Cursor(file, slot, cursor.generation);
                let is_due = !leads && cursor.lead.is_due() && cursors.may_disclose(slot);
                if is_due {
                    self.wake(follower);
                }
                if right >= KEPT_AFTER && right.is_power_of_two() {
                    self.keep(self.role(file), Arc::new(straight(line, right)));
                }
            }
            Met::Stray => self.is_void |= cursors.part() > 0,
        }
        if leads && is_due {
            self.wake(Follower::Nest(thread, file));
        }
        if is_new {
            self.begins(thread, file, extent);
        }
    }

    /// Checks the first two reads of a thread in a file, or after a pattern, for a known signature.
    fn begins(&mut self, thread: ThreadId, file: FileId, extent: Extent) {
        let facts = match self.facts.get(file) {
            Some(_) => *self.facts.used(file, self.now, FileTraits::default),
            None => FileTraits::default(),
        };
        let pair = self.pairs.get_mut((thread, file));
        let Some(pair) = pair.filter(|pair| pair.is_new) else {
            return;
        };
        let Some(first) = pair.first.replace(extent) else {
            return;
        };
        pair.is_new = false;
        let is_later = pair.is_later;
        let Some(nest) = self.known(facts, Step::between(first, extent), is_later) else {
            return;
        };
        let adjusted = adjust(nest, first, extent);
        let Some(pair) = self.pairs.get_mut((thread, file)) else {
            return;
        };
        match adjusted {
            Adjusted::Follow(model) => {
                pair.nest.follow(model);
                self.wake(Follower::Nest(thread, file));
            }
            // The recogniser knows of the program's own lines by now.
            Adjusted::Learn(line) if !is_later => {
                let cursors = self.files.used(file, self.now, Cursors::default);
                if let Met::Found(slot, _) = cursors.admit(line, thread, self.now)
                    && let Some(cursor) = cursors.get(slot)
                {
                    // Until the nest or the cursor is right, the cursor is used.
                    pair.by_cursor = pair.by_cursor.max(pair.by_nest + 1);
                    let follower = Follower::Cursor(file, slot, cursor.generation);
                    self.wake(follower);
                }
            }
            Adjusted::Learn(_) | Adjusted::Leave => {}
        }
    }

    /// Keep the nest of a pair for files to come.
    fn learn(&mut self, thread: ThreadId, file: FileId) {
        let nest = self
            .pairs
            .get((thread, file))
            .and_then(|pair| pair.nest.learnt());
        if let Some(nest) = nest {
            let role = self.role(file);
            self.keep(role, nest);
        }
    }

    /// This follower has more reads to disclose.
    fn wake(&mut self, follower: Follower) {
        self.is_due = true;
        if self.active.contains(&follower) {
            return;
        }
        if self.active.len() >= ACTIVE {
            self.active.remove(0);
        }
        self.active.push(follower);
    }

    /// Reads of this follower that were disclosed and not yet made.
    fn outstanding(&mut self, follower: Follower) -> u64 {
        self.lead(follower).map_or(0, |lead| lead.disclosed())
    }

    /// True if everything disclosed is void and the plan has to learn this now.
    fn voids(&mut self) -> bool {
        if !self.is_void {
            return false;
        }
        let now = self.now;
        let active = std::mem::take(&mut self.active);
        let is_gone =
            |source: &mut Self, one| source.lead(one).is_none_or(|lead| lead.is_gone(now));
        let (gone, active): (Vec<_>, Vec<_>) =
            active.into_iter().partition(|&one| is_gone(self, one));
        let again = active.iter().map(|&one| self.outstanding(one)).sum::<u64>();
        if again > self.credit && !self.at_once {
            self.active = [gone, active].concat();
            return false;
        }
        self.credit -= again.min(self.credit);
        (self.is_void, self.at_once) = (false, false);
        for &follower in gone.iter().chain(&active) {
            if let Some(lead) = self.lead(follower) {
                lead.void();
            }
            if let Follower::Nest(thread, file) = follower
                && let Some(pair) = self.pairs.get_mut((thread, file))
            {
                pair.disclosed = Stream::default();
            }
        }
        self.active = active;
        self.is_due = !self.active.is_empty();
        true
    }

    /// The lead of one that is followed.
    fn lead(&mut self, follower: Follower) -> Option<&mut Lead> {
        match follower {
            Follower::Nest(thread, file) => {
                Some(&mut self.pairs.get_mut((thread, file))?.nest.lead)
            }
            Follower::Cursor(file, slot, generation) => {
                let cursor = self.files.get_mut(file)?.get_mut(slot)?;
                (cursor.generation == generation).then_some(&mut cursor.lead)
            }
        }
    }

    /// The part of this follower in a round; none if it has disclosed enough, or if the other recogniser is followed.
    fn flow(&mut self, follower: Follower) -> Option<Flow> {
        let (Follower::Nest(_, file) | Follower::Cursor(file, ..)) = follower;
        let FileTraits { size, unaided, .. } = *self.facts.get(file)?;
        let (thread, next, lead) = match follower {
            Follower::Nest(thread, _) => {
                let pair = self.pairs.get_mut((thread, file))?;
                if !pair.nest_leads() || !pair.nest.may_disclose() || !pair.nest.lead.joins() {
                    return None;
                }
                let lead = pair.nest.lead.clone();
                (thread, Next::Nest(pair.nest.ahead()), lead)
            }
            Follower::Cursor(_, slot, generation) => {
                let cursors = self.files.get(file)?;
                let cursor = cursors
                    .get(slot)
                    .filter(|one| one.generation == generation)?;
                let leads = self.pairs.get((cursor.thread, file))?.nest_leads();
                if leads || !cursors.may_disclose(slot) || !cursor.lead.joins() {
                    return None;
                }
                (cursor.thread, Next::Line(cursor.line), cursor.lead.clone())
            }
        };
        Some(Flow {
            follower,
            thread,
            file,
            size,
            unaided,
            when: lead.when(lead.disclosed(), self.now),
            disclosed: lead.disclosed(),
            lead,
            next,
            last: 0..0,
        })
    }

    /// Discloses the reads of all flows, in the expected order, until there is no more room. True if reads are left.
    fn disclose_flows(
        &mut self,
        mut flows: Vec<Flow>,
        room: usize,
        out: &mut Vec<Expected>,
    ) -> bool {
        for flow in flows.iter().filter(|flow| flow.disclosed == 0) {
            if let Some(pair) = self.pairs.get_mut((flow.thread, flow.file))
                && let Some(served) = pair.seen.served()
            {
                pair.disclosed = served;
            }
        }
        let full = out.len().saturating_add(room);
        while out.len() < full {
            let first = (0..flows.len())
                .min_by(|&one, &other| flows[one].when.total_cmp(&flows[other].when));
            let Some(first) = first else {
                return false;
            };
            let flow = &mut flows[first];
            let Some(read) = flow.next() else {
                let flow = flows.swap_remove(first);
                self.end(flow);
                continue;
            };
            let pair = self.pairs.get_mut((flow.thread, flow.file));
            let pattern = pair.map_or(Pattern::Scattered, |pair| {
                pair.disclosed.next(read).pattern()
            });
            let pages = read.pages();
            let pattern = match flow.unaided {
                true => pattern.unaided(),
                false => pattern,
            };
            let is_disclosed = flow.last.start <= pages.start && pages.end <= flow.last.end;
            if pattern == Pattern::Sequential || is_disclosed {
                continue;
            }
            flow.last = pages.clone();
            out.push(Expected {
                file: flow.file,
                pages,
                thread: flow.thread,
                pattern,
                odds: flow.lead.odds(flow.disclosed - flow.lead.disclosed()),
            });
        }
        for flow in flows {
            self.end(flow);
        }
        true
    }

    /// A flow's round is over.
    fn end(&mut self, flow: Flow) {
        if let (Follower::Nest(thread, file), Next::Nest(reads)) = (flow.follower, flow.next)
            && let Some(pair) = self.pairs.get_mut((thread, file))
        {
            pair.nest.goes_on(reads);
        }
        if let Some(lead) = self.lead(flow.follower) {
            lead.disclosed_to(flow.disclosed);
        }
    }
}

/// The line of a cursor as a loop that has come so far.
fn straight(line: Line, count: u64) -> Loop {
    let along = |base: u64, step: i64| Affine {
        base: base as i64,
        steps: vec![step],
    };
    Loop {
        count: Affine::constant(count as i64),
        body: vec![Term::Read(Read {
            offset: along(line.next.offset, line.stride),
            len: along(line.next.len, line.growth),
        })],
    }
}

impl Source for Signatures {
    fn nature(&self) -> Nature {
        Nature::Guess
    }

    fn see(&mut self, seen: &Seen) {
        match *seen {
            Seen::File { file, size, .. } => {
                let facts = self.facts.used(file, self.now, FileTraits::default);
                let shrinks = size < facts.size;
                facts.size = size;
                if shrinks && !self.active.is_empty() {
                    (self.is_void, self.at_once) = (true, true);
                }
            }
            Seen::Unaided { file } => {
                self.facts.used(file, self.now, FileTraits::default).unaided = true;
                // Reads left to the kernel until now have to be disclosed.
                if !self.active.is_empty() {
                    (self.is_void, self.at_once) = (true, true);
                }
            }
            Seen::Role { file, role, turn } => {
                let facts = self.facts.used(file, self.now, FileTraits::default);
                (facts.role, facts.turn) = (role, turn);
            }
            Seen::Read(sequence)
                if sequence.first.kind.reads() && sequence.first.kind != Kind::Touch =>
            {
                let (thread, file) = (sequence.first.thread, sequence.first.file);
                for access in sequence.accesses() {
                    self.read(thread, file, access.extent);
                }
            }
            Seen::Exit { thread } | Seen::Exec { thread } => {
                self.pairs.retain(|(one, _), _| one != thread);
                self.is_void |= !self.active.is_empty();
            }
            _ => {}
        }
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        if self.voids() {
            return Outlook::Void;
        }
        if !self.is_due || room == 0 {
            return if self.is_due {
                Outlook::More
            } else {
                Outlook::Later
            };
        }
        let followers = std::mem::take(&mut self.active);
        let mut flows = Vec::new();
        for follower in followers {
            let flow = self.flow(follower);
            if flow.is_some() || self.outstanding(follower) > 0 {
                self.active.push(follower);
            }
            flows.extend(flow);
        }
        self.is_due = self.disclose_flows(flows, room, out);
        if self.is_due {
            Outlook::More
        } else {
            Outlook::Later
        }
    }
}

#[cfg(test)]
mod tests;
