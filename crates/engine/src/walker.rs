//! Looks up the names of a plan ahead of the program, beside the scheduler of pages.
//!
//! A name costs about 1 KiB of memory (an inode and its entry in a directory) and one or two accesses to a device, so names
//! are counted, not weighed: [`HORIZON`] of them are kept ahead of the program, many at a time, and the backend looks them up in
//! the device's order. The position among them follows from the names that it uses, and from the reads between them.
//!
//! A lookup gains the time for which the program would wait. If fewer than one in [`WORTH`] of the last lookups waited, only one name in
//! [`SPARSE`] is looked up. Names whose inodes are in one block come into memory with the first of them. The others are its neighbours, and
//! the same rule is applied to them separately, on each device. On a file system without such blocks each name is looked up.
//!
//! A device that does not answer keeps none of another's names waiting.
//!
//! Invariants: a name is asked for once in a session; of each device at most [`UNDER_WAY`] are unanswered; a name that was asked for is in
//! one column of [`NameLedger`] at the end: used, unused or unknown.
//!
//! Data flow: source → [`Walker::push`] → [`Walker::due`] → backend → [`Walker::looked`]; the program → [`Walker::used`].

use std::collections::VecDeque;

use foreread_backend::Outcome;
use foreread_plan::{FileId, Kind, Name, NameLedger};
use foreread_sched::DeviceId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Names kept ahead of the program: 4 MiB of inodes and directory entries.
pub(crate) const HORIZON: u64 = 4096;
/// Names looked up at a time on each device: enough for each thread of the backend to have the next one, and for an order
/// by inode to matter.
const UNDER_WAY: usize = 512;
/// Names looked up before the first answer. If they are in memory, no more are needed to know.
const FIRST: usize = 32;
/// A device with that many look-ups under way and no answer for this long, in ns, does not answer: its names are left out.
/// A rotating disk answers the first of 512 in 8 ms, and the slowest in 4 s.
const SILENT: u64 = 1_000_000_000;
/// After this many consecutive lookups without waiting, the next names are assumed to need none either: the names of two blocks. With twice
/// as many, more names in memory are looked up than a test permits.
const WARM: u32 = 32;
/// From then on one name in this many is looked up: the names of one block. With half as many, more names are looked up than two tests
/// permit.
const SPARSE: u64 = 16;
/// Useless lookups per lookup that waited, at most. A lookup takes 10 µs of processor time; a wait takes [`crate::upkeep::WAIT`]. ext4
/// reads 32 blocks of inodes at a time, so one lookup in 32 waits if each name is the first of its block.
const WORTH: u32 = 8;
/// The program may use a name up to this many names ahead of the assumed position without having skipped the names in between.
const JUMP: u64 = 256;
/// After this many such uses in a row the program has left them out.
const JUMPS: u32 = 8;

/// A file, and whether its entries are needed, or only its inode.
type Key = (FileId, bool);

fn key(file: FileId, kind: Kind) -> Key {
    (file, kind == Kind::List)
}

/// A requested name, until it is both looked up and used.
#[derive(Clone, Copy, Debug, Default)]
struct AskedName {
    /// Its number in the plan.
    number: u64,
    /// True if another name of its block was requested before.
    is_neighbour: bool,
    answered: bool,
    used: bool,
    /// True if the program was not observed at some time since the request.
    unwatched: bool,
}

/// The recent experience with a kind of names: whether their lookups wait.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    /// Lookups without waiting minus [`WORTH`] per lookup that waited, between 0 and [`WARM`].
    row: u32,
    /// Names of the kind that were due since then; most were left out.
    due: u64,
}

impl Quiet {
    fn is_warm(self) -> bool {
        self.row >= WARM
    }

    /// True if the next name is left out.
    fn leaves_out(&mut self) -> bool {
        self.due += 1;
        self.is_warm() && !self.due.is_multiple_of(SPARSE)
    }

    /// Notes a lookup. True if names that were left out may have to be waited for, too.
    fn looked(&mut self, waited: bool) -> bool {
        let was_warm = self.is_warm();
        self.row = if waited {
            self.row.saturating_sub(WORTH)
        } else {
            (self.row + 1).min(WARM)
        };
        waited && was_warm
    }
}

/// The names of one device.
#[derive(Clone, Debug, Default)]
struct OnDevice {
    /// Under way.
    count: usize,
    /// When the last of them was answered, or the first was asked for, in ns.
    heard: u64,
    /// The blocks of which a name was asked for.
    blocks: FxHashSet<u64>,
    neighbours: Quiet,
}

/// The place of a name's inode: the device, and the block if known.
pub(crate) type Lies = (DeviceId, Option<u64>);

/// The names of one strand.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// Disclosed names from the program's position on; the first has the number `base`.
    ahead: VecDeque<Name>,
    base: u64,
    /// The number of the first that is neither asked for nor left out.
    next: u64,
    /// The number of the first use ahead of each file.
    first: FxHashMap<FileId, u64>,
    /// Names that need not be requested.
    met: FxHashSet<Key>,
    asked: FxHashMap<Key, AskedName>,
    devices: FxHashMap<DeviceId, OnDevice>,
    has_answers: bool,
    /// True if the source has ended.
    ended: bool,
    /// Names that are not neighbours.
    firsts: Quiet,
    /// Uses in a row that were far ahead.
    jumps: u32,
    /// For some disclosures of accesses, by their number, the ordinal that they have in the queue.
    marks: VecDeque<(u64, u64)>,
    disclosed: u64,
    unwatched: bool,
    ledger: NameLedger,
}

impl Walker {
    /// Notes that `count` accesses were disclosed, beginning with this ordinal of the queue.
    pub(crate) fn disclosed(&mut self, count: u64, ordinal: u64) {
        if count > 0 {
            self.marks.push_back((self.disclosed, ordinal));
            self.disclosed += count;
        }
    }

    /// Number of names that may still be disclosed.
    pub(crate) fn room(&self) -> usize {
        if self.ended {
            return 0;
        }
        (HORIZON as usize).saturating_sub(self.ahead.len())
    }

    /// Adds the next names of the plan; there are no more if `end`.
    pub(crate) fn push(&mut self, names: &[Name], end: bool) {
        self.ended = end;
        for name in names {
            let number = self.base + self.ahead.len() as u64;
            self.first.entry(name.file).or_insert(number);
            self.ahead.push_back(*name);
        }
    }

    /// The program is at this ordinal of the queue.
    pub(crate) fn reached(&mut self, ordinal: u64) {
        while let Some(&(_, next)) = self.marks.get(1)
            && next <= ordinal
        {
            self.marks.pop_front();
        }
        let Some(&(number, first)) = self.marks.front() else {
            return;
        };
        let most = self.marks.get(1).map_or(self.disclosed, |&(next, _)| next);
        let read = (number + ordinal.saturating_sub(first)).min(most);
        while self.ahead.front().is_some_and(|name| name.before < read) {
            self.pass();
        }
    }

    fn pass(&mut self) {
        if let Some(name) = self.ahead.pop_front() {
            if self.first.get(&name.file) == Some(&self.base) {
                self.first.remove(&name.file);
            }
            self.base += 1;
            self.next = self.next.max(self.base);
        }
    }

    /// The program has used a name. If it used the name by reading its file, that may have begun long ago.
    pub(crate) fn used(&mut self, file: FileId, kind: Kind) {
        let key = key(file, kind);
        self.met.insert(key);
        if let Some(asked) = self.asked.get_mut(&key)
            && !std::mem::replace(&mut asked.used, true)
        {
            self.ledger.used += 1;
            self.ledger.late += u64::from(!asked.answered);
            if asked.answered {
                self.asked.remove(&key);
            }
        }
        let Some(&number) = self.first.get(&file) else {
            return;
        };
        if number > self.base + JUMP {
            self.jumps += 1;
            if self.jumps < JUMPS {
                return;
            }
        }
        self.jumps = 0;
        while self.base <= number {
            self.pass();
        }
    }

    /// The names to ask for at `now`, each with its device. `lies` returns the place of a name, if known.
    pub(crate) fn due(
        &mut self,
        now: u64,
        mut lies: impl FnMut(FileId) -> Option<Lies>,
        out: &mut Vec<(Name, DeviceId)>,
    ) {
        let most = if self.has_answers { UNDER_WAY } else { FIRST };
        while let Some(&name) = self.ahead.get((self.next - self.base) as usize) {
            let number = self.next;
            let key = key(name.file, name.kind);
            let lies = match self.met.contains(&key) {
                true => None,
                false => lies(name.file),
            };
            let Some((device, block)) = lies else {
                self.next += 1;
                continue;
            };
            let on = self.devices.entry(device).or_default();
            if on.count == 0 {
                on.heard = now;
            }
            // Requested in batches, so that they can be ordered.
            let is_full = on.count >= most || out.is_empty() && on.count > most / 2;
            if is_full && now.saturating_sub(on.heard) < SILENT {
                break;
            }
            self.next += 1;
            // The entries of a directory lie in blocks of their own.
            let block = block.filter(|_| name.kind != Kind::List);
            let is_neighbour = block.is_some_and(|block| on.blocks.contains(&block));
            let is_left_out = match is_neighbour {
                true => on.neighbours.leaves_out(),
                false => self.firsts.leaves_out(),
            };
            if is_full || is_left_out {
                continue;
            }
            on.count += 1;
            on.blocks.extend(block);
            self.met.insert(key);
            let asked = AskedName {
                number,
                is_neighbour,
                answered: false,
                used: false,
                unwatched: self.unwatched,
            };
            self.asked.insert(key, asked);
            self.ledger.asked += 1;
            out.push((name, device));
        }
    }

    /// A name that was asked for of this device is answered at `now`.
    pub(crate) fn looked(
        &mut self,
        file: FileId,
        kind: Kind,
        device: DeviceId,
        outcome: Outcome,
        now: u64,
    ) {
        let on = self.devices.entry(device).or_default();
        on.count = on.count.saturating_sub(1);
        on.heard = now;
        self.has_answers = true;
        let waited = outcome == Outcome::Fetched;
        self.ledger.fetched += u64::from(waited);
        let key = key(file, kind);
        let Some(asked) = self.asked.get_mut(&key) else {
            return;
        };
        asked.answered = true;
        let asked = *asked;
        if asked.used {
            self.asked.remove(&key);
        }
        let quiet = match asked.is_neighbour {
            true => &mut on.neighbours,
            false => &mut self.firsts,
        };
        if quiet.looked(waited) {
            // Names that were left out around it may have to be waited for, too.
            let from = asked.number.saturating_sub(2 * SPARSE);
            self.next = self.next.min(from.max(self.base));
        }
    }

    /// True if any lookup is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.devices.values().any(|one| one.count > 0)
    }

    /// True if nothing needs to be requested until the program has moved by half of the horizon.
    pub(crate) fn rests(&self) -> bool {
        let all = self.base + self.ahead.len() as u64;
        let enough = self.ended || self.ahead.len() as u64 >= HORIZON / 2;
        !self.is_busy() && self.next == all && enough
    }

    /// The program is not watched from now on.
    pub(crate) fn look_away(&mut self) {
        self.unwatched = true;
        self.asked.values_mut().for_each(|one| one.unwatched = true);
    }

    /// The account so far.
    pub(crate) fn ledger(&self) -> NameLedger {
        self.ledger
    }

    /// Close the account.
    pub(crate) fn close(&mut self) {
        for (_, asked) in self.asked.drain().filter(|(_, one)| !one.used) {
            if asked.unwatched {
                self.ledger.unknown += 1;
            } else {
                self.ledger.unused += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case of ext4, which reads 32 blocks of inodes at a time.
    #[test]
    fn where_one_name_in_many_is_waited_for_few_are_looked_up() {
        const ALL: u32 = 3200;
        const AT_ONCE: u32 = 32;
        let name = |number| Name {
            file: FileId(number),
            kind: Kind::Stat,
            before: 0,
        };
        let mut walker = Walker::default();
        walker.push(&(0..ALL).map(name).collect::<Vec<_>>(), true);
        let (mut due, mut read) = (Vec::new(), FxHashSet::default());
        loop {
            walker.due(0, |_| Some((DeviceId(0), None)), &mut due);
            if due.is_empty() {
                break;
            }
            for (name, device) in due.drain(..) {
                let outcome = match read.insert(name.file.0 / AT_ONCE) {
                    true => Outcome::Fetched,
                    false => Outcome::InMemory,
                };
                walker.looked(name.file, name.kind, device, outcome, 0);
            }
        }
        let NameLedger { asked, fetched, .. } = walker.ledger();
        assert!(asked < u64::from(ALL / 2), "{asked} of {ALL}");
        assert!(
            fetched * 10 > u64::from(9 * ALL / AT_ONCE),
            "{fetched} waited for"
        );
    }
}
