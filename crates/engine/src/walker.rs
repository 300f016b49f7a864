//! The names of a plan: looked up ahead of the program, beside the scheduler of pages.
//!
//! A name costs about 1 KiB of memory (an inode and its entry in a directory) and one or two accesses to a device, so names
//! are counted, not weighed: [`HORIZON`] of them are kept ahead of the program, many at a time, and the backend looks them up in
//! the device's order. The position among them follows from the names that it uses, and from the reads between them.
//!
//! A lookup gains the time that the program would wait. Once fewer than one in [`WORTH`] of the last lookups waited, only one name in
//! [`SPARSE`] is looked up. Names whose inodes lie in one block are brought into memory by the first of them: the
//! others are its neighbours, of which the same is learnt apart, on each device. On a file system of which this is not so each of
//! them is looked up.
//!
//! A device that does not answer keeps none of another's names waiting.
//!
//! Invariants: a name is asked for once in a session; of each device at most [`UNDER_WAY`] are unanswered; a name that was asked for is in one column of [`Names`] at the end:
//! used, unused or unknown.
//!
//! Data flow: source → [`Walker::push`] → [`Walker::due`] → backend → [`Walker::looked`]; the program → [`Walker::used`].

use std::collections::VecDeque;

use foreread_backend::Outcome;
use foreread_plan::{FileId, Kind, Name};
use foreread_sched::DeviceId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

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
/// Names in a row that nobody had to wait for, from which on it is taken that the next are of that kind, too: the
/// names of two blocks. With double, more names in memory are looked up than a test allows.
const WARM: u32 = 32;
/// And of which one in so many is looked up then: the names of one block. With half, more names are looked up than
/// two tests allow.
const SPARSE: u64 = 16;
/// Names looked up in vain for each one that had to be waited for, at most. A look-up takes 10 µs of processor time; a wait
/// takes [`crate::upkeep::WAIT`]. ext4 reads 32 blocks of inodes at a time, so one name in 32 has to be waited for where
/// each is the first of its block.
const WORTH: u32 = 8;
/// How far ahead of the assumed position the program may use a name, in names, without having left out those between.
const JUMP: u64 = 256;
/// After this many such uses in a row the program has left them out.
const JUMPS: u32 = 8;

/// What became of the names that were looked up ahead of the program.
///
/// Invariant of a closed account: `asked = used + unused + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Looked up ahead of the program.
    pub asked: u64,
    /// Of these, those that were waited for.
    pub fetched: u64,
    /// Used by the program after that, or while it was under way.
    pub used: u64,
    /// Of these, those that were still under way.
    pub late: u64,
    /// Not used by the program, which was watched all that time.
    pub unused: u64,
    /// Not seen to be used by the program, which was not watched all the time.
    pub unknown: u64,
}

impl std::iter::Sum for Names {
    fn sum<I: Iterator<Item = Self>>(names: I) -> Self {
        names.fold(Self::default(), |sum, one| Self {
            asked: sum.asked + one.asked,
            fetched: sum.fetched + one.fetched,
            used: sum.used + one.used,
            late: sum.late + one.late,
            unused: sum.unused + one.unused,
            unknown: sum.unknown + one.unknown,
        })
    }
}

impl Names {
    /// Whether every name asked for is accounted for.
    pub fn is_closed(&self) -> bool {
        self.asked == self.used + self.unused + self.unknown
    }
}

/// A file, and whether its entries are needed, or only its inode.
type Key = (FileId, bool);

fn key(file: FileId, kind: Kind) -> Key {
    (file, kind == Kind::List)
}

/// A name that was asked for, until it is both answered and used.
#[derive(Clone, Copy, Debug, Default)]
struct AskedName {
    /// Its number in the plan.
    number: u64,
    /// Whether another name of its block was asked for before.
    is_neighbour: bool,
    answered: bool,
    used: bool,
    /// Whether the program was not watched at some time since.
    unwatched: bool,
}

/// Whether names of some kind have to be waited for, as far as they were looked up.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    /// Those that nobody had to wait for, less [`WORTH`] for each that was, between 0 and [`WARM`].
    row: u32,
    /// Those since then that were due, most of them left out.
    due: u64,
}

impl Quiet {
    fn is_warm(self) -> bool {
        self.row >= WARM
    }

    /// Whether the next one is left out.
    fn leaves_out(&mut self) -> bool {
        self.due += 1;
        self.is_warm() && !self.due.is_multiple_of(SPARSE)
    }

    /// One was looked up. Whether some were left out that may have to be waited for, too.
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
    /// Those that need not be asked for any more.
    met: FxHashSet<Key>,
    asked: FxHashMap<Key, AskedName>,
    devices: FxHashMap<DeviceId, OnDevice>,
    has_answers: bool,
    /// Whether the source has no more.
    ended: bool,
    /// Of names that are nobody's neighbours.
    firsts: Quiet,
    /// Uses in a row that were far ahead.
    jumps: u32,
    /// For some disclosures of accesses, by their number, the ordinal that they have in the queue.
    marks: VecDeque<(u64, u64)>,
    disclosed: u64,
    unwatched: bool,
    ledger: Names,
}

impl Walker {
    /// So many accesses were disclosed, the first of which has this ordinal in the queue.
    pub(crate) fn disclosed(&mut self, count: u64, ordinal: u64) {
        if count > 0 {
            self.marks.push_back((self.disclosed, ordinal));
            self.disclosed += count;
        }
    }

    /// How many more names are to be disclosed.
    pub(crate) fn room(&self) -> usize {
        if self.ended {
            return 0;
        }
        (HORIZON as usize).saturating_sub(self.ahead.len())
    }

    /// These come next; there are no more if they `end` the plan.
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
            // Many at once, so that they have an order.
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
            // Those that were left out around it may have to be waited for, too.
            let from = asked.number.saturating_sub(2 * SPARSE);
            self.next = self.next.min(from.max(self.base));
        }
    }

    /// Whether any are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.devices.values().any(|one| one.count > 0)
    }

    /// Whether there is nothing more to ask for until the program has gone on by half of the horizon.
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
    pub(crate) fn ledger(&self) -> Names {
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

    /// As ext4 has it, which reads 32 blocks of inodes at a time.
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
        let Names { asked, fetched, .. } = walker.ledger();
        assert!(asked < u64::from(ALL / 2), "{asked} of {ALL}");
        assert!(
            fetched * 10 > u64::from(9 * ALL / AT_ONCE),
            "{fetched} waited for"
        );
    }
}
